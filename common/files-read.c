/* Looking: stat, list, read. */
#include "common/files-internal.h"

#include "common/fd-util.h"
#include "common/io-util.h"

#include <errno.h>
#include <string.h>

void files_stat_clear(FilesStat *stat)
{
	g_clear_pointer(&stat->path, g_free);
	g_clear_pointer(&stat->mount, g_free);
}

void files_entry_free(FilesEntry *entry)
{
	g_free(entry->name);
	g_free(entry);
}

static uint64_t link_size(const FilesCall *call, const PathPlace *place)
{
	const GPtrArray *entries = path_resolver_plan(call->resolver)->entries;

	for (guint i = 0; i < entries->len; i++) {
		const ViewEntry *entry = entries->pdata[i];

		if (entry->kind == VIEW_ENTRY_LINK &&
		    strcmp(entry->view_path, place->view_path) == 0)
			return strlen(entry->target);
	}
	return 0;
}

/* What the view has by its plan has no times and no size of its own. */
static void stat_own(const FilesCall *call, const PathPlace *place, FilesStat *ret_stat)
{
	ret_stat->mode = place->type | (S_ISLNK(place->type) ? 0777 : 0555);
	if (S_ISLNK(place->type))
		ret_stat->size = link_size(call, place);
}

int files_stat(FilesCall *call, const char *path, unsigned int flags, FilesStat *ret_stat)
{
	unsigned int walk_flags = flags & FILES_NOFOLLOW ? PATH_WALK_NOFOLLOW : 0;
	PLACE_AUTO place = PLACE_NONE;
	FilesStat found = { 0 };
	struct stat st;
	int r;

	files_begin(call, "stat", NULL, path, NULL);
	if ((r = files_walk(call, path, walk_flags, false, &place)) < 0)
		return r;
	if (place.type == 0)
		return files_fail_absent(call, &place);
	if (place.fd >= 0) {
		if (fstat(place.fd, &st) != 0)
			return files_fail(call, -errno, &place, NULL);
		found.mode = st.st_mode;
		found.size = (uint64_t)st.st_size;
		found.mtime_ns =
			(int64_t)st.st_mtim.tv_sec * 1000000000 + (int64_t)st.st_mtim.tv_nsec;
	} else {
		stat_own(call, &place, &found);
	}
	found.writable = place.writable;
	found.path = g_steal_pointer(&place.view_path);
	found.mount = g_steal_pointer(&place.mount);
	*ret_stat = found;
	return 0;
}

typedef struct {
	FilesCall *call;
	const PathPlace *dir;
	GPtrArray *entries;
} Listing;

static void add_entry(Listing *listing, const char *name, mode_t type, uint64_t size)
{
	FilesEntry *entry = g_new0(FilesEntry, 1);

	entry->name = g_strdup(name);
	entry->type = type;
	entry->size = size;
	g_ptr_array_add(listing->entries, entry);
}

/* In a directory that may be read and not searched names are listed, of which nothing more is to be known. What is
 * hidden, or went meanwhile, is not listed. */
static int list_name(void *data, const char *name, mode_t type)
{
	Listing *listing = data;
	PLACE_AUTO place = PLACE_NONE;
	struct stat st = { 0 };
	int r;

	if ((r = files_check_canceled(listing->call)) < 0)
		return r;
	if (listing->entries->len == FILES_MAX_ENTRIES)
		return files_fail(listing->call, -EFBIG, listing->dir, NULL);
	if ((r = files_act(listing->call, listing->dir)) == 0)
		r = path_resolver_step(listing->call->resolver, listing->dir, name,
				       PATH_WALK_ACTING, &place);
	if (r == -ENOENT)
		return 0;
	if (r < 0) {
		if (type != 0)
			add_entry(listing, name, type, 0);
		return 0;
	}
	if (place.fd >= 0 && fstat(place.fd, &st) != 0)
		return 0;
	if (place.fd < 0 && S_ISLNK(place.type))
		st.st_size = (off_t)link_size(listing->call, &place);
	add_entry(listing, name, place.type, (uint64_t)st.st_size);
	return 0;
}

static int compare_names(gconstpointer a, gconstpointer b)
{
	const FilesEntry *const *one = a, *const *two = b;

	return strcmp((*one)->name, (*two)->name);
}

int files_list(FilesCall *call, const char *path, GPtrArray **ret_entries)
{
	g_autoptr(GPtrArray) entries =
		g_ptr_array_new_with_free_func((GDestroyNotify)files_entry_free);
	PLACE_AUTO place = PLACE_NONE;
	Listing listing = { .call = call, .dir = &place, .entries = entries };
	int r;

	files_begin(call, "list", NULL, path, NULL);
	if ((r = files_walk(call, path, 0, false, &place)) < 0)
		return r;
	if (place.type == 0)
		return files_fail_absent(call, &place);
	if (!S_ISDIR(place.type))
		return files_fail(call, -ENOTDIR, &place, NULL);
	r = files_scan(call, &place, list_name, &listing);
	files_act_end(call);
	if (r < 0)
		return r;
	g_ptr_array_sort(entries, compare_names);
	*ret_entries = g_steal_pointer(&entries);
	return 0;
}

#define READ_STEP ((size_t)1024 * 1024)

/* Up to most bytes, and one more where there are more. hint: how many there will be. 0 or -errno, not failed yet. */
static int read_bytes(FilesCall *call, int fd, uint64_t offset, size_t most, size_t hint,
		      GByteArray *ret_bytes)
{
	if (offset > INT64_MAX || lseek(fd, (off_t)offset, SEEK_SET) < 0)
		return 0; /* behind any end */
	g_byte_array_set_size(ret_bytes, (guint)hint);
	g_byte_array_set_size(ret_bytes, 0);
	while (ret_bytes->len <= most) {
		size_t have = ret_bytes->len, step = MIN(READ_STEP, most + 1 - have);
		ssize_t got;

		if (call->is_canceled && call->is_canceled(call->data))
			return -ECANCELED;
		g_byte_array_set_size(ret_bytes, (guint)(have + step));
		got = io_read_all(fd, ret_bytes->data + have, step);
		g_byte_array_set_size(ret_bytes, (guint)(have + (got > 0 ? (size_t)got : 0)));
		if (got < 0)
			return (int)got;
		if ((size_t)got < step)
			break;
	}
	return 0;
}

int files_read(FilesCall *call, const char *path, uint64_t offset, size_t limit, GBytes **ret_bytes)
{
	size_t most = limit ? limit : FILES_MAX_BYTES;
	g_autoptr(GByteArray) bytes = g_byte_array_new();
	PLACE_AUTO place = PLACE_NONE;
	FD_AUTO fd = -1;
	struct stat st;
	uint64_t left;
	int r;

	files_begin(call, "read", NULL, path, NULL);
	if ((r = files_check_canceled(call)) < 0)
		return r;
	if (limit > FILES_MAX_BYTES)
		return files_fail(call, -EFBIG, NULL, NULL);
	fd = path_resolver_open_place(call->resolver, path, O_RDONLY, 0, &place, call->problem);
	if (fd < 0)
		return files_reword(call, path, fd);
	if (fstat(fd, &st) != 0)
		return files_fail(call, -errno, &place, NULL);
	if (!S_ISREG(st.st_mode))
		return files_fail(call, -EISDIR, &place, NULL);
	left = (uint64_t)st.st_size > offset ? (uint64_t)st.st_size - offset : 0;
	if (!limit && left > FILES_MAX_BYTES)
		return files_fail(call, -EFBIG, &place, NULL);
	r = read_bytes(call, fd, offset, most, (size_t)MIN(left, most) + 1, bytes);
	if (r == 0 && bytes->len > most && !limit)
		r = -EFBIG;
	if (r < 0)
		return files_fail(call, r, &place, NULL);
	g_byte_array_set_size(bytes, (guint)MIN(bytes->len, most));
	*ret_bytes = g_byte_array_free_to_bytes(g_steal_pointer(&bytes));
	return 0;
}
