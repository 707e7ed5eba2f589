/* Anchors of a view; see anchor.h. This file decides by which clone each mount is served. It runs once, before any
 * thread and before any request. */
#include "fsgate/anchor.h"

#include "common/errno-util.h"
#include "common/path-util.h"
#include "common/resolve.h"
#include "fsgate/clone-helper.h"
#include "fsgate/local-fs.h"

#include <fcntl.h>
#include <glib.h>
#include <stdio.h>
#include <string.h>

/* Where a kernel tells none, a look at an entry opens it (place.c). */
static void note_mount_ids(GPtrArray *anchors)
{
	for (guint i = 0; i < anchors->len; i++) {
		FsgAnchor *anchor = g_ptr_array_index(anchors, i);

		if (anchor->is_clone && !anchor->cross_mounts &&
		    resolve_mount_id(anchor->fd, &anchor->mount_id) < 0)
			anchor->mount_id = 0;
	}
}

int fsg_anchors_new(const ViewPlan *plan, GPtrArray **ret_anchors, char **reterr_message)
{
	g_autoptr(GPtrArray) anchors = view_anchors_new();
	g_autoptr(GArray) wanted = g_array_new(FALSE, TRUE, sizeof(FsgCloneRequest));
	unsigned int next_id = 1;
	int r;

	for (guint i = 0; i < plan->entries->len; i++) {
		const ViewEntry *entry = g_ptr_array_index(plan->entries, i);
		FsgAnchor *anchor;

		if (entry->kind != VIEW_ENTRY_MOUNT && entry->kind != VIEW_ENTRY_GENERATED)
			continue;
		anchor = view_anchor_new(plan, entry, next_id++);
		g_ptr_array_add(anchors, anchor);
		if (entry->kind == VIEW_ENTRY_GENERATED) {
			if ((r = view_anchor_open_generated(anchor, entry)) < 0) {
				*reterr_message = g_strdup_printf("%s: cannot hold its content: %s",
								  entry->view_path, errno_text(-r));
				return r;
			}
			continue;
		}
		g_array_append_val(wanted, ((FsgCloneRequest){
						   .host_path = entry->host_path,
						   .read_only = !anchor->writable,
						   .ret_fd = &anchor->fd,
					   }));
		anchor->is_clone = true;
	}
	r = fsg_clone_mounts((FsgCloneRequest *)(void *)wanted->data, wanted->len, reterr_message);
	if (r < 0)
		return r;
	for (guint i = 0, a = 0; i < plan->entries->len; i++) {
		const ViewEntry *entry = g_ptr_array_index(plan->entries, i);

		if (entry->kind != VIEW_ENTRY_MOUNT && entry->kind != VIEW_ENTRY_GENERATED)
			continue;
		FsgAnchor *anchor = g_ptr_array_index(anchors, a++);
		anchor->is_local = fsg_is_local_fs(anchor->fd);
		if (entry->kind == VIEW_ENTRY_MOUNT &&
		    (r = view_anchor_check_identity(anchor, entry)) < 0) {
			g_autofree char *path = path_escape(entry->host_path);

			*reterr_message = g_strdup_printf(
				"mount %s: \"%s\" was replaced while the view started",
				entry->view_path, path);
			return r;
		}
	}
	note_mount_ids(anchors);
	view_anchors_add_aliases(anchors, &next_id);
	*ret_anchors = g_steal_pointer(&anchors);
	return 0;
}
