/* The record of denials; see denial.h. Rows stand in a fixed array and are found by comparing one number
 * each; the array is small enough for that to be cheaper than keeping a table in step with it. */
#include "fsgate/denial.h"

#include "common/limits.h"

#include <pthread.h>
#include <string.h>

/* Whose rows they are: an exec's, by its pid namespace, or nobody's (0). */
typedef struct {
	uint64_t pid_namespace;
	unsigned int rows;
	uint64_t dropped; /* no longer in any row */
} Owner;

typedef struct {
	FsgDenial denial; /* its texts are owned; count 0: empty */
	guint hash;	  /* of what makes two denials equal */
	uint64_t epoch;	  /* rows of an older one are not added to */
	Owner *owner;	  /* NULL: empty */
} Row;

struct FsgDenials {
	pthread_mutex_t lock;
	Row rows[LIMIT_DENIALS];
	Owner nobody;
	GHashTable *owners; /* by pid namespace: those that have rows, or have lost some */
	uint64_t seq, total, dropped;
	uint64_t by_reason[_DENIAL_N];
};

FsgDenials *fsg_denials_new(void)
{
	FsgDenials *denials = g_new0(FsgDenials, 1);

	pthread_mutex_init(&denials->lock, NULL);
	denials->owners = g_hash_table_new_full(g_int64_hash, g_int64_equal, NULL, g_free);
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
	g_hash_table_unref(denials->owners);
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
	       row->errnum == denial->errnum && row->pid_namespace == denial->pid_namespace &&
	       strncmp(row->path, denial->path, LIMIT_DENIAL_PATH_BYTES - 1) == 0;
}

static guint hash_of(const FsgDenial *denial)
{
	guint hash = g_str_hash(denial->op) ^ ((guint)denial->reason << 8 | (guint)denial->errnum);

	for (size_t i = 0; i < LIMIT_DENIAL_PATH_BYTES - 1 && denial->path[i]; i++)
		hash = hash * 33 + (unsigned char)denial->path[i];
	return hash;
}

static Owner *find_owner(FsgDenials *denials, uint64_t pid_namespace)
{
	return pid_namespace != 0 ? g_hash_table_lookup(denials->owners, &pid_namespace)
				  : &denials->nobody;
}

/* One that never ends (whoever ran the exec did not say so) is kept as long as it has rows; then, as long as there is
 * room, so that what it has lost is told. */
static Owner *ensure_owner(FsgDenials *denials, uint64_t pid_namespace)
{
	Owner *owner = find_owner(denials, pid_namespace);

	if (!owner) {
		owner = g_new0(Owner, 1);
		owner->pid_namespace = pid_namespace;
		g_hash_table_insert(denials->owners, &owner->pid_namespace, owner);
	}
	return owner;
}

static void leave_owner(FsgDenials *denials, Row *row)
{
	Owner *owner = row->owner;

	row->owner = NULL;
	if (!owner)
		return;
	owner->rows--;
	owner->dropped += row->denial.count;
	if (owner->rows == 0 && owner != &denials->nobody &&
	    g_hash_table_size(denials->owners) > 2 * LIMIT_DENIALS)
		g_hash_table_remove(denials->owners, &owner->pid_namespace);
}

static void join_owner(FsgDenials *denials, Row *row, uint64_t pid_namespace)
{
	row->owner = ensure_owner(denials, pid_namespace);
	row->owner->rows++;
}

/* Whether a is to go before b: empty, or of an owner with more rows, or touched less recently. */
static bool goes_first(const Row *a, const Row *b)
{
	if (!a->owner || !b->owner)
		return !a->owner && b->owner;
	if (a->owner->rows != b->owner->rows)
		return a->owner->rows > b->owner->rows;
	return a->denial.seq < b->denial.seq;
}

/* The row to count it in: its own, or the one that goes. */
static Row *find_row(FsgDenials *denials, const FsgDenial *denial, guint hash, bool *ret_same)
{
	Row *first = &denials->rows[0];

	*ret_same = false;
	for (size_t i = 0; i < LIMIT_DENIALS; i++) {
		Row *row = &denials->rows[i];

		if (goes_first(row, first))
			first = row;
		if (row->hash == hash && row->owner && row->epoch == denial->epoch &&
		    is_same(&row->denial, denial)) {
			*ret_same = true;
			return row;
		}
	}
	return first;
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
		leave_owner(denials, row);
		fill_row(row, denial);
		join_owner(denials, row, denial->pid_namespace);
		row->hash = hash;
		row->epoch = denial->epoch;
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

static void add_copy(GPtrArray *rows, const FsgDenial *row)
{
	FsgDenial *copy = g_memdup2(row, sizeof *row);

	copy->path = g_strdup(row->path);
	copy->mount = g_strdup(row->mount);
	copy->target = g_strdup(row->target);
	g_ptr_array_add(rows, copy);
}

void fsg_denials_list(FsgDenials *denials, uint64_t since, FsgDenialList *ret_list)
{
	ret_list->rows = g_ptr_array_new_with_free_func(denial_free);
	pthread_mutex_lock(&denials->lock);
	for (size_t i = 0; i < LIMIT_DENIALS; i++) {
		const FsgDenial *row = &denials->rows[i].denial;

		if (row->count > 0 && row->seq > since)
			add_copy(ret_list->rows, row);
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

/* Other execs that began meanwhile have opened new rows for the same. */
static void add_merged(GPtrArray *rows, const FsgDenial *row)
{
	for (guint i = 0; i < rows->len; i++) {
		FsgDenial *kept = g_ptr_array_index(rows, i);

		if (!is_same(kept, row))
			continue;
		kept->count += row->count;
		if (kept->seq < row->seq) {
			kept->seq = row->seq;
			kept->pid = row->pid;
			kept->time_us = row->time_us;
		}
		return;
	}
	add_copy(rows, row);
}

/* Nothing is added to it any more. */
#define EPOCH_CLOSED UINT64_MAX

void fsg_denials_take(FsgDenials *denials, uint64_t pid_namespace, uint64_t exec,
		      FsgDenialList *ret_list)
{
	Owner *owner;

	*ret_list = (FsgDenialList){ .rows = g_ptr_array_new_with_free_func(denial_free) };
	pthread_mutex_lock(&denials->lock);
	owner = find_owner(denials, pid_namespace);
	for (size_t i = 0; owner && i < LIMIT_DENIALS; i++) {
		Row *row = &denials->rows[i];

		if (row->owner != owner)
			continue;
		if (row->epoch >= exec && row->epoch != EPOCH_CLOSED)
			add_merged(ret_list->rows, &row->denial);
		row->epoch = EPOCH_CLOSED;
		row->owner = &denials->nobody;
		denials->nobody.rows++;
	}
	if (owner && owner != &denials->nobody) {
		ret_list->dropped = owner->dropped;
		g_hash_table_remove(denials->owners, &pid_namespace);
	}
	pthread_mutex_unlock(&denials->lock);
	g_ptr_array_sort(ret_list->rows, compare_seq);
}
