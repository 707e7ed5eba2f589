/* The record of denials; see denial.h. Rows stand in a fixed array and are found by comparing one number
 * each; the array is small enough for that to be cheaper than keeping a table in step with it. */
#include "fsgate/denial.h"

#include "common/limits.h"

#include <pthread.h>
#include <string.h>

typedef struct {
	FsgDenial denial; /* its texts are owned; count 0: empty */
	guint hash;	  /* of what makes two denials equal */
	uint64_t epoch;	  /* rows of an older one are not added to */
} Row;

struct FsgDenials {
	pthread_mutex_t lock;
	Row rows[LIMIT_DENIALS];
	uint64_t seq, total, dropped, epoch;
	uint64_t by_reason[_DENIAL_N];
};

FsgDenials *fsg_denials_new(void)
{
	FsgDenials *denials = g_new0(FsgDenials, 1);

	pthread_mutex_init(&denials->lock, NULL);
	return denials;
}

static void clear_texts(FsgDenial *denial)
{
	g_free(denial->path);
	g_free(denial->mount);
	g_free(denial->target);
}

void fsg_denials_free(FsgDenials *denials)
{
	if (!denials)
		return;
	for (size_t i = 0; i < LIMIT_DENIALS; i++)
		clear_texts(&denials->rows[i].denial);
	pthread_mutex_destroy(&denials->lock);
	g_free(denials);
}

static char *keep(const char *text, bool *cut)
{
	size_t length = text ? strnlen(text, LIMIT_DENIAL_PATH_BYTES) : 0;

	if (length == LIMIT_DENIAL_PATH_BYTES) {
		*cut = true;
		length--;
	}
	return text ? g_strndup(text, length) : NULL;
}

/* Compares what is kept of the texts, so that a path that was cut is equal to itself. */
static bool is_same(const FsgDenial *row, const FsgDenial *denial)
{
	return strcmp(row->op, denial->op) == 0 && row->reason == denial->reason &&
	       row->errnum == denial->errnum &&
	       strncmp(row->path, denial->path, LIMIT_DENIAL_PATH_BYTES - 1) == 0;
}

static guint hash_of(const FsgDenial *denial)
{
	guint hash = g_str_hash(denial->op) ^ ((guint)denial->reason << 8 | (guint)denial->errnum);

	for (size_t i = 0; i < LIMIT_DENIAL_PATH_BYTES - 1 && denial->path[i]; i++)
		hash = hash * 33 + (unsigned char)denial->path[i];
	return hash;
}

/* The row to count it in: its own, an empty one, or the one that was touched least recently. */
static Row *find_row(FsgDenials *denials, const FsgDenial *denial, guint hash, bool *ret_same)
{
	Row *oldest = &denials->rows[0];

	*ret_same = false;
	for (size_t i = 0; i < LIMIT_DENIALS; i++) {
		Row *row = &denials->rows[i];

		if (row->denial.seq < oldest->denial.seq)
			oldest = row;
		if (row->hash == hash && row->denial.count > 0 && row->epoch == denials->epoch &&
		    is_same(&row->denial, denial)) {
			*ret_same = true;
			return row;
		}
	}
	return oldest;
}

static void fill_row(Row *row, const FsgDenial *denial)
{
	clear_texts(&row->denial);
	row->denial = *denial;
	row->denial.cut = false;
	row->denial.path = keep(denial->path, &row->denial.cut);
	row->denial.mount = keep(denial->mount, &row->denial.cut);
	row->denial.target = keep(denial->target, &row->denial.cut);
	row->denial.count = 0;
}

void fsg_denials_add(FsgDenials *denials, const FsgDenial *denial)
{
	guint hash = hash_of(denial);
	bool same;
	Row *row;

	pthread_mutex_lock(&denials->lock);
	row = find_row(denials, denial, hash, &same);
	if (!same) {
		denials->dropped += row->denial.count;
		fill_row(row, denial);
		row->hash = hash;
		row->epoch = denials->epoch;
	}
	row->denial.count++;
	row->denial.pid = denial->pid;
	row->denial.time_us = denial->time_us;
	row->denial.seq = ++denials->seq;
	denials->total++;
	if ((unsigned int)denial->reason < _DENIAL_N)
		denials->by_reason[denial->reason]++;
	pthread_mutex_unlock(&denials->lock);
}

uint64_t fsg_denials_mark(FsgDenials *denials)
{
	uint64_t seq;

	pthread_mutex_lock(&denials->lock);
	denials->epoch++;
	seq = denials->seq;
	pthread_mutex_unlock(&denials->lock);
	return seq;
}

static void denial_free(gpointer data)
{
	clear_texts(data);
	g_free(data);
}

static gint compare_seq(gconstpointer a, gconstpointer b)
{
	const FsgDenial *x = *(FsgDenial *const *)a, *y = *(FsgDenial *const *)b;

	return x->seq < y->seq ? -1 : x->seq > y->seq;
}

void fsg_denials_list(FsgDenials *denials, uint64_t since, FsgDenialList *ret_list)
{
	ret_list->rows = g_ptr_array_new_with_free_func(denial_free);
	pthread_mutex_lock(&denials->lock);
	for (size_t i = 0; i < LIMIT_DENIALS; i++) {
		const FsgDenial *row = &denials->rows[i].denial;
		FsgDenial *copy;

		if (row->count == 0 || row->seq <= since)
			continue;
		copy = g_memdup2(row, sizeof *row);
		copy->path = g_strdup(row->path);
		copy->mount = g_strdup(row->mount);
		copy->target = g_strdup(row->target);
		g_ptr_array_add(ret_list->rows, copy);
	}
	ret_list->last = denials->seq;
	ret_list->total = denials->total;
	ret_list->dropped = denials->dropped;
	memcpy(ret_list->by_reason, denials->by_reason, sizeof ret_list->by_reason);
	pthread_mutex_unlock(&denials->lock);
	g_ptr_array_sort(ret_list->rows, compare_seq);
}

void fsg_denial_list_clear(FsgDenialList *list)
{
	if (list->rows)
		g_ptr_array_unref(list->rows);
	memset(list, 0, sizeof *list);
}
