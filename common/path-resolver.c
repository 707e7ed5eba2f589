/* Making a path resolver; see path-resolver.h.
 *
 * A library is no gateway: it may have no right to make mounts, and its process is not its own. So there are no private
 * clones of the host's mounts here, by which the kernel would enforce the access once more; what is reached is reached by
 * the walk alone (view-walk.c), from the directories that are opened here. They are opened once, with links followed as
 * the plan did, and have to be what the plan has looked at: what the host puts in their place later is not seen. */
#include "common/path-resolver-internal.h"

#include "common/errno-util.h"
#include "common/fd-util.h"
#include "common/path-util.h"
#include "common/view-host-ids.h"

#include <fcntl.h>

static int refuse_mount(const ViewEntry *entry, int r, char **reterr_message)
{
	g_autofree char *path = path_escape(entry->host_path);

	*reterr_message = r == -ESTALE ? g_strdup_printf("mount %s: \"%s\" was replaced meanwhile",
							 entry->view_path, path)
				       : g_strdup_printf("mount %s: \"%s\": %s", entry->view_path,
							 path, errno_text(-r));
	return r;
}

static int open_mount(PathResolver *resolver, ViewAnchor *anchor, const ViewEntry *entry,
		      char **reterr_message)
{
	struct stat st;
	int r;

	anchor->fd = open(entry->host_path, O_PATH | O_CLOEXEC);
	r = anchor->fd < 0 ? -errno : view_anchor_check_identity(anchor, entry);
	if (r < 0)
		return refuse_mount(entry, r, reterr_message);
	view_host_ids_add(resolver->pinned, entry->dev, entry->ino);
	r = view_host_ids_add_with_ancestors(resolver->pinned, entry->host_path, &st);
	return r < 0 ? refuse_mount(entry, r, reterr_message) : 0;
}

static int open_entries(PathResolver *resolver, char **reterr_message)
{
	const ViewPlan *plan = resolver->plan;
	unsigned int next_id = 1;
	int r = 0;

	for (guint i = 0; r == 0 && i < plan->entries->len; i++) {
		const ViewEntry *entry = g_ptr_array_index(plan->entries, i);
		ViewAnchor *anchor;

		if (entry->kind != VIEW_ENTRY_MOUNT && entry->kind != VIEW_ENTRY_GENERATED)
			continue;
		anchor = view_anchor_new(plan, entry, next_id++);
		g_ptr_array_add(resolver->anchors, anchor);
		resolver->has_mounts = true;
		if (entry->kind == VIEW_ENTRY_MOUNT) {
			r = open_mount(resolver, anchor, entry, reterr_message);
			continue;
		}
		r = view_anchor_open_generated(anchor, entry);
		if (r < 0)
			*reterr_message = g_strdup_printf("%s: cannot hold its content: %s",
							  entry->view_path, errno_text(-r));
	}
	if (r == 0)
		view_anchors_add_aliases(resolver->anchors, &next_id);
	return r;
}

static int shut_off(PathResolver *resolver, const char *private_dir, char **reterr_message)
{
	struct stat st;
	int r = view_host_ids_add_with_ancestors(resolver->pinned, private_dir, &st);

	if (r < 0) {
		g_autofree char *path = path_escape(private_dir);

		*reterr_message =
			g_strdup_printf("state directory \"%s\": %s", path, errno_text(-r));
		return r;
	}
	view_host_ids_add(resolver->private_dirs, st.st_dev, st.st_ino);
	return 0;
}

/* It is opened anew each time: one that is kept would be the parent's in a process that a host forks, where the numbers of fds
 * mean other files. */
static int check_proc(char **reterr_message)
{
	FD_AUTO proc_fd = fd_open_proc();

	if (proc_fd < 0)
		*reterr_message = g_strdup_printf("/proc/self/fd: %s (is /proc mounted?)",
						  errno_text(-proc_fd));
	return MIN(proc_fd, 0);
}

int path_resolver_new(ViewPlan *take_plan, const char *private_dir, const char *session_id,
		      PathResolver **ret_resolver, char **reterr_message)
{
	g_autoptr(PathResolver) resolver = g_new0(PathResolver, 1);
	int r;

	resolver->refs = 1;
	resolver->plan = take_plan;
	resolver->session_id = g_strdup(session_id);
	resolver->anchors = view_anchors_new();
	resolver->pinned = view_host_ids_new();
	resolver->private_dirs = view_host_ids_new();
	if ((r = check_proc(reterr_message)) < 0 ||
	    (r = open_entries(resolver, reterr_message)) < 0)
		return r;
	if (private_dir && (r = shut_off(resolver, private_dir, reterr_message)) < 0)
		return r;
	resolver->root = view_tree_new(take_plan, resolver->anchors);
	*ret_resolver = g_steal_pointer(&resolver);
	return 0;
}

PathResolver *path_resolver_ref(PathResolver *resolver)
{
	g_atomic_int_inc(&resolver->refs);
	return resolver;
}

void path_resolver_unref(PathResolver *resolver)
{
	if (!resolver || !g_atomic_int_dec_and_test(&resolver->refs))
		return;
	view_tree_free(resolver->root);
	g_ptr_array_unref(resolver->anchors);
	g_hash_table_unref(resolver->pinned);
	g_hash_table_unref(resolver->private_dirs);
	view_plan_free(resolver->plan);
	g_free(resolver->session_id);
	g_free(resolver);
}

const ViewPlan *path_resolver_plan(const PathResolver *resolver)
{
	return resolver->plan;
}
