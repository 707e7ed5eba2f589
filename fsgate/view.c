/* One view while it is served; see view.h. */
#include "fsgate/view.h"

#include "fsgate/boundary.h"

#include "common/errno-util.h"
#include "common/fd-util.h"
#include "common/path-util.h"
#include "fsgate/invalidate.h"
#include "fsgate/locks.h"
#include "fsgate/odd-dirs.h"
#include "fsgate/twins.h"

#include <fnmatch.h>
#include <glib.h>
#include <string.h>
#include <sys/resource.h>

typedef struct {
	dev_t dev;
	ino_t ino;
} FsgHostId;

static guint host_id_hash(gconstpointer data)
{
	const FsgHostId *id = data;

	return (guint)(id->ino * 2654435761u ^ id->dev);
}

static gboolean host_id_equal(gconstpointer a, gconstpointer b)
{
	const FsgHostId *x = a, *y = b;

	return x->dev == y->dev && x->ino == y->ino;
}

static void pin(FsgView *view, dev_t dev, ino_t ino)
{
	FsgHostId *id = g_new(FsgHostId, 1);

	*id = (FsgHostId){ .dev = dev, .ino = ino };
	g_hash_table_add(view->pinned, id);
}

/* The mounted object and every directory above it. More than the ancestors inside other mounts, but
 * what lies outside all mounts is never met, and this way no two sets have to be compared. */
static int pin_with_ancestors(FsgView *view, const char *host_path, struct stat *ret_st)
{
	struct stat st, above;
	FD_AUTO fd = open(host_path, O_PATH | O_CLOEXEC);

	if (fd < 0 || fstat(fd, &st) != 0)
		return -errno;
	*ret_st = st;
	pin(view, st.st_dev, st.st_ino);
	if (!S_ISDIR(st.st_mode)) {
		g_autofree char *real = NULL;
		g_autofree char *dir = NULL;
		char link[FD_PROC_PATH_SIZE];

		fd_proc_path(fd, link);
		real = g_file_read_link(link, NULL);
		if (!real)
			return -EIO;
		dir = g_path_get_dirname(real);
		fd_close(&fd);
		fd = open(dir, O_PATH | O_DIRECTORY | O_CLOEXEC);
		if (fd < 0 || fstat(fd, &st) != 0)
			return -errno;
		pin(view, st.st_dev, st.st_ino);
	}
	for (;;) {
		int up = openat(fd, "..", O_PATH | O_DIRECTORY | O_CLOEXEC);

		/* A directory that we may not search: no mount of this user's lies above it either. */
		if (up < 0)
			return errno == EACCES ? 0 : -errno;
		fd_close(&fd);
		fd = up;
		if (fstat(fd, &above) != 0)
			return -errno;
		if (above.st_dev == st.st_dev && above.st_ino == st.st_ino)
			return 0;
		st = above;
		pin(view, st.st_dev, st.st_ino);
	}
}

static void note_device(FsgView *view, dev_t dev)
{
	for (guint i = 0; i < view->devices->len; i++)
		if (g_array_index(view->devices, dev_t, i) == dev)
			return;
	g_array_append_val(view->devices, dev);
}

static int collect_host_ids(FsgView *view, char **reterr_message)
{
	for (guint i = 0; i < view->plan->entries->len; i++) {
		const ViewEntry *entry = g_ptr_array_index(view->plan->entries, i);
		struct stat st;
		int r;

		if (entry->kind != VIEW_ENTRY_MOUNT)
			continue;
		note_device(view, entry->dev);
		pin(view, entry->dev, entry->ino);
		if ((r = pin_with_ancestors(view, entry->host_path, &st)) < 0) {
			g_autofree char *path = path_escape(entry->host_path);

			*reterr_message = g_strdup_printf("mount %s: \"%s\": %s", entry->view_path,
							  path, errno_text(-r));
			return r;
		}
	}
	return 0;
}

void fsg_view_add_odd_dir(FsgView *view, dev_t dev, ino_t ino)
{
	FsgHostId *id = g_new(FsgHostId, 1);

	*id = (FsgHostId){ .dev = dev, .ino = ino };
	g_hash_table_add(view->odd_dirs, id);
}

bool fsg_view_is_odd_dir(const FsgView *view, dev_t dev, ino_t ino)
{
	const FsgHostId id = { .dev = dev, .ino = ino };

	return g_hash_table_contains(view->odd_dirs, &id);
}

/* A workspace that is a home directory contains the state directory, and so the private files of every other
 * session of this user. */
static int shut_off(FsgView *view, const char *private_dir, char **reterr_message)
{
	FsgHostId *id;
	struct stat st;
	int r = pin_with_ancestors(view, private_dir, &st);

	if (r < 0) {
		g_autofree char *path = path_escape(private_dir);

		*reterr_message =
			g_strdup_printf("state directory \"%s\": %s", path, errno_text(-r));
		return r;
	}
	id = g_new(FsgHostId, 1);
	*id = (FsgHostId){ .dev = st.st_dev, .ino = st.st_ino };
	g_hash_table_add(view->private_dirs, id);
	fsg_view_find_odd_parent(view, private_dir);
	return 0;
}

bool fsg_view_is_private(const FsgView *view, dev_t dev, ino_t ino)
{
	const FsgHostId id = { .dev = dev, .ino = ino };

	return g_hash_table_contains(view->private_dirs, &id);
}

/* Fds are shared out once: half of what the hard limit allows for open files, a quarter, at most 16384,
 * for the cache, the rest for ourselves and the moment. */
#define FD_CACHE_MOST 16384
#define FD_OTHERS     64

static int share_out_fds(FsgView *view, char **reterr_message)
{
	struct rlimit limit;
	size_t usable;

	if (getrlimit(RLIMIT_NOFILE, &limit) != 0)
		return -errno;
	limit.rlim_cur = limit.rlim_max;
	(void)setrlimit(RLIMIT_NOFILE, &limit); /* what we have is read back */
	if (getrlimit(RLIMIT_NOFILE, &limit) != 0)
		return -errno;
	usable = limit.rlim_cur > FD_OTHERS + view->anchors->len
			 ? limit.rlim_cur - FD_OTHERS - view->anchors->len
			 : 0;
	if (usable < 256) {
		*reterr_message = g_strdup_printf(
			"the limit of open files (%llu) is too low; raise it to 1024 or more",
			(unsigned long long)limit.rlim_cur);
		return -EMFILE;
	}
	/* Of the kernel's memory, 128 KiB at the most. */
	fd_reserve((int)MIN(limit.rlim_cur, FD_CACHE_MOST));
	view->inodes = fsg_inode_table_new(view->root, MIN(usable / 4, FD_CACHE_MOST));
	view->handles = fsg_handle_budget_new(usable / 2);
	return 0;
}

int fsg_view_new(ViewPlan *take_plan, const FsgViewConfig *config, FsgView **ret_view,
		 char **reterr_message)
{
	FsgView *view = g_new0(FsgView, 1);
	int r;

	view->plan = take_plan;
	view->devices = g_array_new(FALSE, FALSE, sizeof(dev_t));
	view->pinned = g_hash_table_new_full(host_id_hash, host_id_equal, g_free, NULL);
	view->private_dirs = g_hash_table_new_full(host_id_hash, host_id_equal, g_free, NULL);
	view->odd_dirs = g_hash_table_new_full(host_id_hash, host_id_equal, g_free, NULL);
	view->mountpoint = g_strdup(config->mountpoint);
	view->original_links = config->original_links;
	view->shown_uid = config->shown_uid;
	view->shown_gid = config->shown_gid;
	view->maps_one_id = config->maps_one_id;
	view->kernel_decides = config->kernel_decides;
	view->denials = fsg_denials_new();
	fsg_stats_init(&view->stats);
	if (take_plan->presentation == VIEW_FOR_SANDBOX)
		view->boundary = fsg_boundary_new();
	view->locks = fsg_locks_new();
	view->proc_fd = fd_open_proc();
	r = view->proc_fd;
	if (r < 0)
		*reterr_message =
			g_strdup_printf("/proc/self/fd: %s (is /proc mounted?)", errno_text(-r));
	if (r >= 0)
		r = fsg_anchors_new(take_plan, &view->anchors, reterr_message);
	if (r >= 0)
		r = collect_host_ids(view, reterr_message);
	if (r >= 0 && config->private_dir)
		r = shut_off(view, config->private_dir, reterr_message);
	if (r >= 0) {
		view->root = fsg_view_tree_new(take_plan, view->anchors);
		r = share_out_fds(view, reterr_message);
	}
	if (r >= 0) {
		fsg_view_find_twins(view);
		fsg_view_find_odd_dirs(view);
		view->invalidate = fsg_invalidate_new(view);
	}
	if (r < 0) {
		fsg_view_free(view);
		return r;
	}
	*ret_view = view;
	return 0;
}

void fsg_view_free(FsgView *view)
{
	if (!view)
		return;
	fsg_locks_free(view->locks);
	fsg_invalidate_free(view->invalidate);
	fsg_inode_table_free(view->inodes);
	fsg_handle_budget_free(view->handles);
	fsg_denials_free(view->denials);
	fsg_boundary_free(view->boundary);
	fsg_view_tree_free(view->root);
	if (view->anchors)
		g_ptr_array_unref(view->anchors);
	g_hash_table_unref(view->pinned);
	g_hash_table_unref(view->private_dirs);
	g_hash_table_unref(view->odd_dirs);
	g_array_unref(view->devices);
	fd_close(&view->proc_fd);
	view_plan_free(view->plan);
	g_free(view->mountpoint);
	g_free(view);
}

bool fsg_view_is_pinned(const FsgView *view, dev_t dev, ino_t ino)
{
	const FsgHostId id = { .dev = dev, .ino = ino };

	return g_hash_table_contains(view->pinned, &id);
}

/* The device's place in the table, not its number, which another boot may change. A device that is not
 * in the table (below a runtime directory) has only its number. */
static uint64_t device_place(const FsgView *view, dev_t dev)
{
	for (guint i = 0; i < view->devices->len; i++)
		if (g_array_index(view->devices, dev_t, i) == dev)
			return i;
	return view->devices->len + (uint64_t)dev;
}

uint64_t fsg_view_ino(const FsgView *view, dev_t dev, ino_t ino)
{
	uint64_t place = device_place(view, dev), hash;

	if (place == 0)
		return ino;
	/* splitmix64's finisher: bijective for each place, so that two inodes of one device never collide. */
	hash = ino + place * 0x9e3779b97f4a7c15u;
	hash = (hash ^ (hash >> 30)) * 0xbf58476d1ce4e5b9u;
	hash = (hash ^ (hash >> 27)) * 0x94d049bb133111ebu;
	hash ^= hash >> 31;
	return hash ? hash : 1;
}

/* The path of dir/name below its anchor, by the hints. */
static char *path_in_anchor(FsgView *view, FsgInode *dir, const char *name)
{
	GString *path = g_string_new(name);
	FsgInode *inode = fsg_inode_ref(view->inodes, dir);
	FsgInode *parent;
	char *own_name;

	while (fsg_inode_dup_hint(view->inodes, inode, &parent, &own_name)) {
		g_string_prepend_c(path, '/');
		g_string_prepend(path, own_name);
		g_free(own_name);
		fsg_inode_unref(view->inodes, inode);
		inode = parent;
	}
	fsg_inode_unref(view->inodes, inode);
	return g_string_free(path, FALSE);
}

bool fsg_view_hides(FsgView *view, FsgInode *dir, const char *name)
{
	g_autofree char *path = NULL;

	if (!dir->anchor || !dir->anchor->hide)
		return false;
	path = path_in_anchor(view, dir, name);
	for (const char *const *glob = dir->anchor->hide; *glob; glob++)
		if (fnmatch(*glob, path, FNM_PATHNAME) == 0)
			return true;
	return false;
}
