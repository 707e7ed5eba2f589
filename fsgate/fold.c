/* Folding changes; see fold.h. */
#include "fsgate/fold.h"

#include "common/limits.h"

#include <string.h>

/* An object that is there. */
typedef struct {
	char *path;  /* now; the key */
	char *start; /* where it was at the start; NULL: made since */
	bool modified;
} Entry;

struct FsgFold {
	GHashTable *live;      /* path -> Entry */
	GHashTable *gone;      /* of paths at the start */
	GHashTable *dropped;   /* hash of a path -> DROPPED_..., so that each is counted once */
	uint64_t dropped_more; /* what had no room there either */
	size_t most;
	size_t bytes;
	bool has_moved; /* something was renamed: a path of now need not be the one at the start */
};

enum { DROPPED_CREATED = 1, DROPPED_OTHER };

const char *fsg_change_name(FsgChangeKind kind)
{
	static const char *const names[_FSG_CHANGE_N] = {
		[FSG_CHANGE_CREATED] = "created",
		[FSG_CHANGE_MODIFIED] = "modified",
		[FSG_CHANGE_DELETED] = "deleted",
		[FSG_CHANGE_RENAMED] = "renamed",
	};

	return (unsigned int)kind < _FSG_CHANGE_N ? names[kind] : "unknown";
}

static void entry_free(gpointer data)
{
	Entry *entry = data;

	g_free(entry->path);
	g_free(entry->start);
	g_free(entry);
}

FsgFold *fsg_fold_new(size_t most)
{
	FsgFold *fold = g_new0(FsgFold, 1);

	fold->live = g_hash_table_new_full(g_str_hash, g_str_equal, NULL, entry_free);
	fold->gone = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
	fold->dropped = g_hash_table_new(g_direct_hash, g_direct_equal);
	fold->most = most;
	return fold;
}

void fsg_fold_free(FsgFold *fold)
{
	if (!fold)
		return;
	g_hash_table_unref(fold->live);
	g_hash_table_unref(fold->gone);
	g_hash_table_unref(fold->dropped);
	g_free(fold);
}

/* --- what has no room --- */

static gpointer dropped_key(const char *path)
{
	uint64_t hash = 0xcbf29ce484222325u;

	for (; *path; path++)
		hash = (hash ^ (unsigned char)*path) * 0x100000001b3u;
	return (gpointer)(uintptr_t)hash;
}

static bool is_dropping(const FsgFold *fold)
{
	return fold->dropped_more > 0 || g_hash_table_size(fold->dropped) > 0;
}

static void drop(FsgFold *fold, const char *path, int what)
{
	gpointer key = dropped_key(path);

	if (g_hash_table_contains(fold->dropped, key))
		return;
	if (g_hash_table_size(fold->dropped) < LIMIT_CHANGES_COUNTED)
		g_hash_table_insert(fold->dropped, key, GINT_TO_POINTER(what));
	else
		fold->dropped_more++;
}

static bool was_dropped_new(const FsgFold *fold, const char *path)
{
	return GPOINTER_TO_INT(g_hash_table_lookup(fold->dropped, dropped_key(path))) ==
	       DROPPED_CREATED;
}

static void undrop(FsgFold *fold, const char *path)
{
	(void)g_hash_table_remove(fold->dropped, dropped_key(path));
}

uint64_t fsg_fold_dropped(const FsgFold *fold)
{
	return g_hash_table_size(fold->dropped) + fold->dropped_more;
}

static bool is_too_long(const char *path)
{
	return strnlen(path, LIMIT_PATH_BYTES) == LIMIT_PATH_BYTES;
}

static bool has_room(const FsgFold *fold, const char *path)
{
	return !is_dropping(fold) && !is_too_long(path) &&
	       g_hash_table_size(fold->live) + g_hash_table_size(fold->gone) < fold->most &&
	       fold->bytes + 2 * strlen(path) < LIMIT_CHANGES_BYTES;
}

/* --- tables --- */

static Entry *find(const FsgFold *fold, const char *path)
{
	return g_hash_table_lookup(fold->live, path);
}

static size_t entry_bytes(const Entry *entry)
{
	return strlen(entry->path) + (entry->start ? strlen(entry->start) : 0);
}

static Entry *take(FsgFold *fold, const char *path)
{
	gpointer entry = NULL;

	if (!g_hash_table_steal_extended(fold->live, path, NULL, &entry))
		return NULL;
	fold->bytes -= entry_bytes(entry);
	return entry;
}

static void put_gone(FsgFold *fold, char *take_path)
{
	if (g_hash_table_contains(fold->gone, take_path)) {
		g_free(take_path);
		return;
	}
	fold->bytes += strlen(take_path);
	g_hash_table_add(fold->gone, take_path);
}

/* Gone: nothing is left of what was made since; of the rest, where it was. */
static void end_entry(FsgFold *fold, Entry *take_entry)
{
	if (take_entry->start)
		put_gone(fold, g_steal_pointer(&take_entry->start));
	entry_free(take_entry);
}

/* One rename of a directory can make a thousand paths as long as it likes: what has no room any more goes. */
static void put(FsgFold *fold, Entry *take_entry)
{
	Entry *old = take(fold, take_entry->path);

	if (old) /* it went without our knowing */
		end_entry(fold, old);
	if (is_too_long(take_entry->path) ||
	    fold->bytes + entry_bytes(take_entry) > LIMIT_CHANGES_BYTES) {
		drop(fold, take_entry->path, take_entry->start ? DROPPED_OTHER : DROPPED_CREATED);
		entry_free(take_entry);
		return;
	}
	fold->bytes += entry_bytes(take_entry);
	g_hash_table_insert(fold->live, take_entry->path, take_entry);
}

/* Where what is at this path now, and has not been moved itself, was at the start: some directory above it may have
 * been moved. */
static char *to_start(const FsgFold *fold, const char *path)
{
	size_t length = strlen(path);

	/* Each step looks at all that is above: of a path that nothing is kept of, none. */
	while (fold->has_moved && length > 0 && !is_too_long(path)) {
		g_autofree char *above = NULL;
		const Entry *entry;

		while (length > 0 && path[length - 1] != '/')
			length--;
		if (length <= 1)
			break;
		above = g_strndup(path, --length);
		entry = find(fold, above);
		if (entry && entry->start)
			return g_strconcat(entry->start, path + length, NULL);
		if (entry)
			break;
	}
	return g_strdup(path);
}

/* The entry of an object that nothing was known of: as it was at the start. NULL: no room. */
static Entry *new_entry(FsgFold *fold, const char *path)
{
	Entry *entry;

	if (!has_room(fold, path))
		return NULL;
	entry = g_new0(Entry, 1);
	entry->path = g_strdup(path);
	entry->start = to_start(fold, path);
	return entry;
}

/* --- steps --- */

void fsg_fold_created(FsgFold *fold, const char *path)
{
	Entry *entry = take(fold, path);

	if (entry) /* it went without our knowing */
		end_entry(fold, entry);
	if (!has_room(fold, path)) {
		drop(fold, path, DROPPED_CREATED);
		return;
	}
	entry = g_new0(Entry, 1);
	entry->path = g_strdup(path);
	put(fold, entry);
}

void fsg_fold_modified(FsgFold *fold, const char *path)
{
	Entry *entry = find(fold, path);
	g_autofree char *start = NULL;

	if (entry) {
		entry->modified = true;
		return;
	}
	/* Its name has gone: it was still open. */
	start = to_start(fold, path);
	if (g_hash_table_contains(fold->gone, start))
		return;
	entry = new_entry(fold, path);
	if (!entry) {
		drop(fold, path, DROPPED_OTHER);
		return;
	}
	entry->modified = true;
	put(fold, entry);
}

void fsg_fold_deleted(FsgFold *fold, const char *path)
{
	Entry *entry = take(fold, path);

	if (entry) {
		end_entry(fold, entry);
	} else if (has_room(fold, path)) {
		put_gone(fold, to_start(fold, path));
	} else if (was_dropped_new(fold, path)) {
		undrop(fold, path);
	} else {
		undrop(fold, path);
		drop(fold, path, DROPPED_OTHER);
	}
}

typedef struct {
	GPtrArray *entries; /* taken out of the table */
	char *below;	    /* "path/" */
} Subtree;

static gboolean steal_below(gpointer key, gpointer value, gpointer data)
{
	Subtree *subtree = data;

	if (!g_str_has_prefix(key, subtree->below))
		return FALSE;
	g_ptr_array_add(subtree->entries, value);
	return TRUE;
}

/* What is known of things below path, out of the table. */
static Subtree take_below(FsgFold *fold, const char *path, bool is_dir)
{
	Subtree subtree = {
		.entries = g_ptr_array_new(),
		.below = g_strconcat(path, "/", NULL),
	};

	if (is_dir)
		(void)g_hash_table_foreach_steal(fold->live, steal_below, &subtree);
	for (guint i = 0; i < subtree.entries->len; i++)
		fold->bytes -= entry_bytes(g_ptr_array_index(subtree.entries, i));
	return subtree;
}

static void put_below(FsgFold *fold, Subtree *subtree, const char *path)
{
	size_t length = strlen(subtree->below) - 1;

	for (guint i = 0; i < subtree->entries->len; i++) {
		Entry *entry = g_ptr_array_index(subtree->entries, i);
		char *moved = g_strconcat(path, entry->path + length, NULL);

		g_free(entry->path);
		entry->path = moved;
		put(fold, entry);
	}
	g_ptr_array_unref(subtree->entries);
	g_free(subtree->below);
}

/* Puts what was taken at its new place, unless it is back where it was, as it was. */
static void put_at(FsgFold *fold, Entry *take_entry, const char *path)
{
	g_autofree char *start = NULL;

	fold->has_moved = true;
	start = to_start(fold, path);
	g_free(take_entry->path);
	take_entry->path = g_strdup(path);
	if (g_strcmp0(take_entry->start, start) == 0 && !take_entry->modified)
		entry_free(take_entry);
	else
		put(fold, take_entry);
}

static void drop_renamed(FsgFold *fold, const char *from, const char *to)
{
	int what = was_dropped_new(fold, from) ? DROPPED_CREATED : DROPPED_OTHER;

	undrop(fold, from);
	undrop(fold, to);
	drop(fold, to, what);
}

void fsg_fold_renamed(FsgFold *fold, const char *from, const char *to, bool is_dir)
{
	Entry *entry = take(fold, from);
	Subtree below = take_below(fold, from, is_dir);

	if (!entry)
		entry = new_entry(fold, from);
	if (entry)
		put_at(fold, entry, to);
	else
		drop_renamed(fold, from, to);
	put_below(fold, &below, to);
}

void fsg_fold_exchanged(FsgFold *fold, const char *a, const char *b, bool are_dirs)
{
	Entry *at_a = take(fold, a), *at_b = take(fold, b);
	Subtree below_a = take_below(fold, a, are_dirs), below_b = take_below(fold, b, are_dirs);

	if (!at_a)
		at_a = new_entry(fold, a);
	if (!at_b)
		at_b = new_entry(fold, b);
	if (at_a)
		put_at(fold, at_a, b);
	else
		drop(fold, b, DROPPED_OTHER);
	if (at_b)
		put_at(fold, at_b, a);
	else
		drop(fold, a, DROPPED_OTHER);
	put_below(fold, &below_a, b);
	put_below(fold, &below_b, a);
}

/* --- the list --- */

static void change_free(gpointer data)
{
	FsgChange *change = data;

	g_free(change->path);
	g_free(change->from);
	g_free(change);
}

static void add(GPtrArray *list, FsgChangeKind kind, const char *path, const char *from)
{
	FsgChange *change = g_new0(FsgChange, 1);

	change->kind = kind;
	change->path = g_strdup(path);
	change->from = g_strdup(from);
	g_ptr_array_add(list, change);
}

static gint compare(gconstpointer a, gconstpointer b)
{
	const FsgChange *x = *(FsgChange *const *)a, *y = *(FsgChange *const *)b;
	int order = strcmp(x->path, y->path);

	return order ? order : (int)y->kind - (int)x->kind;
}

/* What is at the place of something that has gone takes its place in the list too: the latter goes from `gone`. */
static void add_entry(GPtrArray *list, const FsgFold *fold, const Entry *entry, GHashTable *gone)
{
	g_autofree char *start = to_start(fold, entry->path);
	bool replaces = g_hash_table_remove(gone, start);

	if (!entry->start) {
		add(list, replaces ? FSG_CHANGE_MODIFIED : FSG_CHANGE_CREATED, entry->path, NULL);
		return;
	}
	if (strcmp(entry->start, start) != 0)
		add(list, FSG_CHANGE_RENAMED, entry->path, entry->start);
	if (entry->modified)
		add(list, FSG_CHANGE_MODIFIED, entry->path, NULL);
}

GPtrArray *fsg_fold_list(const FsgFold *fold)
{
	GPtrArray *list = g_ptr_array_new_with_free_func(change_free);
	g_autoptr(GHashTable) gone = g_hash_table_new(g_str_hash, g_str_equal);
	GHashTableIter iter;
	gpointer item;

	g_hash_table_iter_init(&iter, fold->gone);
	while (g_hash_table_iter_next(&iter, &item, NULL))
		g_hash_table_add(gone, item);
	g_hash_table_iter_init(&iter, fold->live);
	while (g_hash_table_iter_next(&iter, NULL, &item))
		add_entry(list, fold, item, gone);
	g_hash_table_iter_init(&iter, gone);
	while (g_hash_table_iter_next(&iter, &item, NULL))
		add(list, FSG_CHANGE_DELETED, item, NULL);
	g_ptr_array_sort(list, compare);
	return list;
}
