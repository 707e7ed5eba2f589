/* What the kernel was told; see told.h. */
#include "fsgate/told.h"

#include <pthread.h>
#include <string.h>

struct FsgTold {
	pthread_mutex_t lock;
	unsigned int recent_most, lasting_most;
	GQueue recent;		      /* FsgToldItem, by until_us */
	GHashTable *lasting;	      /* FsgToldItem, by (dir, name) */
	GHashTable *links;	      /* gint64 */
	_Atomic int64_t *believed_us; /* borrowed, or NULL; constant once threads run */
};

static guint item_hash(gconstpointer data)
{
	const FsgToldItem *item = data;

	return g_str_hash(item->name) ^ (guint)((item->dir * 0x9e3779b97f4a7c15u) >> 32);
}

static gboolean item_equal(gconstpointer a, gconstpointer b)
{
	const FsgToldItem *x = a, *y = b;

	return x->dir == y->dir && strcmp(x->name, y->name) == 0;
}

static FsgToldItem *item_new(uint64_t dir, const char *name, uint64_t object, bool is_dir)
{
	size_t size = strlen(name) + 1;
	FsgToldItem *item = g_malloc(sizeof *item + size);

	*item = (FsgToldItem){ .dir = dir, .object = object, .is_dir = is_dir };
	memcpy(item->name, name, size);
	return item;
}

FsgTold *fsg_told_new(unsigned int recent_most, unsigned int lasting_most)
{
	FsgTold *told = g_new0(FsgTold, 1);

	pthread_mutex_init(&told->lock, NULL);
	g_queue_init(&told->recent);
	told->recent_most = recent_most;
	told->lasting_most = lasting_most;
	told->lasting = g_hash_table_new_full(item_hash, item_equal, g_free, NULL);
	told->links = g_hash_table_new_full(g_int64_hash, g_int64_equal, g_free, NULL);
	return told;
}

void fsg_told_free(FsgTold *told)
{
	if (!told)
		return;
	g_queue_clear_full(&told->recent, g_free);
	g_hash_table_unref(told->lasting);
	g_hash_table_unref(told->links);
	pthread_mutex_destroy(&told->lock);
	g_free(told);
}

void fsg_told_show(FsgTold *told, _Atomic int64_t *believed_us)
{
	told->believed_us = believed_us;
}

/* Under the lock. */
static void show_believed(FsgTold *told, int64_t until_us)
{
	if (told->believed_us)
		atomic_store(told->believed_us, until_us);
}

static void drop_ended(FsgTold *told, int64_t now_us)
{
	FsgToldItem *first;

	while ((first = g_queue_peek_head(&told->recent)) && first->until_us <= now_us)
		g_free(g_queue_pop_head(&told->recent));
}

/* The kernel counts from when it takes the reply, which is later than now: a margin. */
#define MARGIN_US 200000

static bool add_recent(FsgTold *told, uint64_t dir, const char *name, uint64_t object, bool is_dir,
		       unsigned int most)
{
	FsgToldItem *item = item_new(dir, name, object, is_dir);
	bool fits;

	pthread_mutex_lock(&told->lock);
	/* Read under the lock, so that the list is in order. */
	item->until_us = g_get_monotonic_time();
	drop_ended(told, item->until_us);
	item->until_us += (int64_t)(FSG_BELIEF_SHORT_S * 1e6) + MARGIN_US;
	fits = told->recent.length < most;
	if (fits) {
		g_queue_push_tail(&told->recent, item);
		show_believed(told, item->until_us);
	}
	pthread_mutex_unlock(&told->lock);
	if (!fits)
		g_free(item);
	return fits;
}

bool fsg_told_add_recent(FsgTold *told, uint64_t dir, const char *name, uint64_t object,
			 bool is_dir)
{
	return add_recent(told, dir, name, object, is_dir, told->recent_most);
}

/* Within its time no more requests are served than these need. As a directory, for it may be one. */
void fsg_told_add_moved(FsgTold *told, uint64_t dir, const char *name)
{
	(void)add_recent(told, dir, name, 0, true, UINT_MAX);
}

bool fsg_told_add_lasting(FsgTold *told, uint64_t dir, const char *name)
{
	FsgToldItem *item = item_new(dir, name, 0, false);
	bool known, fits;

	pthread_mutex_lock(&told->lock);
	known = g_hash_table_contains(told->lasting, item);
	fits = !known && g_hash_table_size(told->lasting) < told->lasting_most;
	if (fits)
		g_hash_table_add(told->lasting, item);
	pthread_mutex_unlock(&told->lock);
	if (!fits)
		g_free(item);
	return known || fits;
}

void fsg_told_add_link(FsgTold *told, uint64_t link)
{
	gint64 *key = g_new(gint64, 1);

	*key = (gint64)link;
	pthread_mutex_lock(&told->lock);
	g_hash_table_add(told->links, key);
	pthread_mutex_unlock(&told->lock);
}

GArray *fsg_told_take_links(FsgTold *told)
{
	GArray *links = g_array_new(FALSE, FALSE, sizeof(uint64_t));
	GHashTableIter iter;
	gpointer key;

	pthread_mutex_lock(&told->lock);
	g_hash_table_iter_init(&iter, told->links);
	while (g_hash_table_iter_next(&iter, &key, NULL)) {
		uint64_t link = (uint64_t) * (const gint64 *)key;

		g_array_append_val(links, link);
	}
	g_hash_table_remove_all(told->links);
	pthread_mutex_unlock(&told->lock);
	return links;
}

bool fsg_told_is_clear(FsgTold *told)
{
	bool clear;

	pthread_mutex_lock(&told->lock);
	drop_ended(told, g_get_monotonic_time());
	clear = told->recent.length == 0 && g_hash_table_size(told->links) == 0;
	pthread_mutex_unlock(&told->lock);
	return clear;
}

GPtrArray *fsg_told_take_recent(FsgTold *told)
{
	GPtrArray *items = g_ptr_array_new_with_free_func(g_free);
	FsgToldItem *item;

	pthread_mutex_lock(&told->lock);
	drop_ended(told, g_get_monotonic_time());
	while ((item = g_queue_pop_head(&told->recent)))
		g_ptr_array_add(items, item);
	show_believed(told, 0);
	pthread_mutex_unlock(&told->lock);
	return items;
}

GPtrArray *fsg_told_take_lasting(FsgTold *told)
{
	GPtrArray *items = g_ptr_array_new_with_free_func(g_free);
	GHashTableIter iter;
	gpointer item;

	pthread_mutex_lock(&told->lock);
	g_hash_table_iter_init(&iter, told->lasting);
	while (g_hash_table_iter_next(&iter, &item, NULL)) {
		g_hash_table_iter_steal(&iter);
		g_ptr_array_add(items, item);
	}
	pthread_mutex_unlock(&told->lock);
	return items;
}
