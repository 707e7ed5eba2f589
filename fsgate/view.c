/* One view while it is served; see view.h. */
#include "fsgate/view.h"

#include "common/errno-util.h"
#include "common/fd-util.h"
#include "common/path-util.h"
#include "common/view-host-ids.h"
#include "fsgate/boundary.h"
#include "fsgate/change.h"
#include "fsgate/client.h"
#include "fsgate/invalidate.h"
#include "fsgate/locks.h"
#include "fsgate/odd-dirs.h"
#include "fsgate/twins.h"

#include <glib.h>
#include <string.h>
#include <sys/resource.h>

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
		view_host_ids_add(view->pinned, entry->dev, entry->ino);
		if ((r = view_host_ids_add_with_ancestors(view->pinned, entry->host_path, &st)) <
		    0) {
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
	view_host_ids_add(view->odd_dirs, dev, ino);
}

bool fsg_view_is_odd_dir(const FsgView *view, dev_t dev, ino_t ino)
{
	return view_host_ids_have(view->odd_dirs, dev, ino);
}

/* A workspace that is a home directory contains the state directory, and so the private files of every other
 * session of this user. */
static int shut_off(FsgView *view, const char *private_dir, char **reterr_message)
{
	struct stat st;
	int r = view_host_ids_add_with_ancestors(view->pinned, private_dir, &st);

	if (r < 0) {
		g_autofree char *path = path_escape(private_dir);

		*reterr_message =
			g_strdup_printf("state directory \"%s\": %s", path, errno_text(-r));
		return r;
	}
	view_host_ids_add(view->private_dirs, st.st_dev, st.st_ino);
	fsg_view_find_odd_parent(view, private_dir);
	return 0;
}

bool fsg_view_is_private(const FsgView *view, dev_t dev, ino_t ino)
{
	return view_host_ids_have(view->private_dirs, dev, ino);
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
	view->pinned = view_host_ids_new();
	view->private_dirs = view_host_ids_new();
	view->odd_dirs = view_host_ids_new();
	view->mountpoint = g_strdup(config->mountpoint);
	view->original_links = config->original_links;
	view->shown_uid = config->shown_uid;
	view->shown_gid = config->shown_gid;
	view->maps_one_id = config->maps_one_id;
	view->kernel_decides = config->kernel_decides;
	view->is_for_one_exec = config->is_for_one_exec;
	view->denials = fsg_denials_new();
	view->changes = fsg_changes_new(view);
	view->events = fsg_events_new();
	fsg_stats_init(&view->stats);
	if (take_plan->presentation == VIEW_FOR_SANDBOX) {
		view->boundary = fsg_boundary_new();
		view->clients = fsg_clients_new();
	}
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
	fsg_changes_free(view->changes);
	fsg_inode_table_free(view->inodes);
	fsg_handle_budget_free(view->handles);
	fsg_denials_free(view->denials);
	fsg_events_free(view->events);
	fsg_boundary_free(view->boundary);
	fsg_clients_free(view->clients);
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
	return view_host_ids_have(view->pinned, dev, ino);
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
	return view_anchor_hides(dir->anchor, path);
}
