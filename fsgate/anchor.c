/* Anchors; see anchor.h. This file decides what each mount may at most do, by which clone it gets, and
 * whom the gateway acts as in it. It runs once, before any thread and before any request. */
#include "fsgate/anchor.h"

#include "common/errno-util.h"
#include "common/fd-util.h"
#include "common/io-util.h"
#include "common/path-util.h"
#include "common/resolve.h"
#include "common/syscall-wrap.h"
#include "fsgate/clone-helper.h"
#include "fsgate/local-fs.h"

#include <fcntl.h>
#include <glib.h>
#include <stdio.h>
#include <string.h>

/* Whom root acts as in a runtime directory: nobody, so that only what is readable to all is shown. */
#define RUNTIME_ID 65534

static void anchor_free(gpointer data)
{
	FsgAnchor *anchor = data;

	if (anchor->owns_fd)
		fd_close(&anchor->fd);
	if (anchor->aliases)
		g_ptr_array_unref(anchor->aliases);
	g_free(anchor);
}

static void fill_identity(FsgAnchor *anchor, const ViewEntry *entry, PolicyOwnership ownership)
{
	bool runtime = entry->origin == VIEW_ORIGIN_RUNTIME;

	anchor->as_caller = ownership == POLICY_OWNERSHIP_HOST && !runtime;
	if (geteuid() != 0) {
		anchor->act_uid = (uid_t)-1;
		anchor->act_gid = (gid_t)-1;
		return;
	}
	anchor->act_uid = runtime ? RUNTIME_ID : entry->owner_uid;
	anchor->act_gid = runtime ? RUNTIME_ID : entry->owner_gid;
}

static FsgAnchor *anchor_new(const ViewPlan *plan, const ViewEntry *entry, unsigned int id)
{
	FsgAnchor *anchor = g_new0(FsgAnchor, 1);

	anchor->id = id;
	anchor->view_path = entry->view_path;
	anchor->fd = -1;
	anchor->owns_fd = true;
	anchor->is_dir = entry->is_dir;
	anchor->writable = view_entry_is_writable(entry);
	anchor->cross_mounts = entry->cross_submounts;
	/* The host's own programs need the links of runtime directories, and no agent can make one there. */
	anchor->denies_links = plan->policy->symlinks == POLICY_SYMLINKS_DENY &&
			       entry->origin != VIEW_ORIGIN_RUNTIME;
	anchor->hide = entry->hide;
	anchor->dev = entry->dev;
	anchor->ino = entry->ino;
	fill_identity(anchor, entry, plan->policy->ownership);
	return anchor;
}

static int open_generated(FsgAnchor *anchor, const ViewEntry *entry)
{
	struct stat st;
	int fd = io_memfd_new("stella-generated", entry->content, entry->content_size);

	if (fd < 0)
		return fd;
	anchor->fd = fd;
	if (fstat(fd, &st) != 0)
		return -errno;
	anchor->is_dir = false;
	anchor->writable = false;
	anchor->dev = st.st_dev;
	anchor->ino = st.st_ino;
	anchor->as_caller = false;
	anchor->act_uid = (uid_t)-1; /* the memfd is ours */
	anchor->act_gid = (gid_t)-1;
	return 0;
}

/* The host object may have been replaced since the plan was made: what was judged is what is used. */
static int check_identity(const FsgAnchor *anchor, const ViewEntry *entry)
{
	struct stat st;

	if (fstat(anchor->fd, &st) != 0)
		return -errno;
	if (st.st_dev != entry->dev || st.st_ino != entry->ino)
		return -ESTALE;
	return 0;
}

/* For each writable mount, a read-only twin of every read-only mount: whichever of them is met inside
 * the writable one is served through the twin (same clone, same access), under an identity of its
 * own, for one directory inode must not appear at two places of the kernel's tree. */
static void make_aliases(GPtrArray *anchors, unsigned int *next_id)
{
	for (guint i = 0; i < anchors->len; i++) {
		FsgAnchor *outer = g_ptr_array_index(anchors, i);

		if (!outer->writable || !outer->is_dir)
			continue;
		outer->aliases = g_ptr_array_new_with_free_func(anchor_free);
		for (guint j = 0; j < anchors->len; j++) {
			const FsgAnchor *inner = g_ptr_array_index(anchors, j);
			FsgAnchor *alias;

			if (inner->writable || !inner->is_clone)
				continue;
			/* The same directory mounted twice has each view path's own access. */
			if (inner->dev == outer->dev && inner->ino == outer->ino)
				continue;
			alias = g_memdup2(inner, sizeof *inner);
			alias->id = (*next_id)++;
			alias->owns_fd = false;
			alias->aliases = NULL;
			g_ptr_array_add(outer->aliases, alias);
		}
	}
}

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
	g_autoptr(GPtrArray) anchors = g_ptr_array_new_with_free_func(anchor_free);
	g_autoptr(GArray) wanted = g_array_new(FALSE, TRUE, sizeof(FsgCloneRequest));
	unsigned int next_id = 1;
	int r;

	for (guint i = 0; i < plan->entries->len; i++) {
		const ViewEntry *entry = g_ptr_array_index(plan->entries, i);
		FsgAnchor *anchor;

		if (entry->kind != VIEW_ENTRY_MOUNT && entry->kind != VIEW_ENTRY_GENERATED)
			continue;
		anchor = anchor_new(plan, entry, next_id++);
		g_ptr_array_add(anchors, anchor);
		if (entry->kind == VIEW_ENTRY_GENERATED) {
			if ((r = open_generated(anchor, entry)) < 0) {
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
		if (entry->kind == VIEW_ENTRY_MOUNT && (r = check_identity(anchor, entry)) < 0) {
			g_autofree char *path = path_escape(entry->host_path);

			*reterr_message = g_strdup_printf(
				"mount %s: \"%s\" was replaced while the view started",
				entry->view_path, path);
			return r;
		}
	}
	note_mount_ids(anchors);
	make_aliases(anchors, &next_id);
	*ret_anchors = g_steal_pointer(&anchors);
	return 0;
}

FsgAnchor *fsg_anchor_find_alias(const FsgAnchor *anchor, dev_t dev, ino_t ino)
{
	for (guint i = 0; anchor->aliases && i < anchor->aliases->len; i++) {
		FsgAnchor *alias = g_ptr_array_index(anchor->aliases, i);

		if (alias->dev == dev && alias->ino == ino)
			return alias;
	}
	return NULL;
}
