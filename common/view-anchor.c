/* Anchors; see view-anchor.h. This file decides what each mount may at most do, and whom root acts as in it. */
#include "common/view-anchor.h"

#include "common/fd-util.h"
#include "common/io-util.h"

#include <errno.h>
#include <fnmatch.h>
#include <unistd.h>

/* Whom root acts as in a runtime directory: nobody, so that only what is readable to all is shown. */
#define RUNTIME_ID 65534

static void anchor_free(gpointer data)
{
	ViewAnchor *anchor = data;

	if (anchor->owns_fd)
		fd_close(&anchor->fd);
	if (anchor->aliases)
		g_ptr_array_unref(anchor->aliases);
	g_free(anchor);
}

GPtrArray *view_anchors_new(void)
{
	return g_ptr_array_new_with_free_func(anchor_free);
}

static void fill_identity(ViewAnchor *anchor, const ViewEntry *entry, PolicyOwnership ownership)
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

ViewAnchor *view_anchor_new(const ViewPlan *plan, const ViewEntry *entry, unsigned int id)
{
	ViewAnchor *anchor = g_new0(ViewAnchor, 1);

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

int view_anchor_open_generated(ViewAnchor *anchor, const ViewEntry *entry)
{
	struct stat st;
	int fd = io_memfd_new("stella-generated", entry->content, entry->content_size);

	if (fd < 0)
		return fd;
	anchor->fd = fd;
	if (fstat(fd, &st) != 0)
		return -errno;
	anchor->is_generated = true;
	anchor->is_dir = false;
	anchor->writable = false;
	anchor->dev = st.st_dev;
	anchor->ino = st.st_ino;
	anchor->as_caller = false;
	anchor->act_uid = (uid_t)-1; /* the memfd is ours */
	anchor->act_gid = (gid_t)-1;
	return 0;
}

int view_anchor_check_identity(const ViewAnchor *anchor, const ViewEntry *entry)
{
	struct stat st;

	if (fstat(anchor->fd, &st) != 0)
		return -errno;
	if (st.st_dev != entry->dev || st.st_ino != entry->ino)
		return -ESTALE;
	return 0;
}

/* For each writable mount, a read-only twin of every read-only mount: whichever of them is met inside
 * the writable one is served through the twin (same fd, same access), under an identity of its
 * own, for one directory inode must not appear at two places of the kernel's tree. */
void view_anchors_add_aliases(GPtrArray *anchors, unsigned int *next_id)
{
	for (guint i = 0; i < anchors->len; i++) {
		ViewAnchor *outer = g_ptr_array_index(anchors, i);

		if (!outer->writable || !outer->is_dir)
			continue;
		outer->aliases = view_anchors_new();
		for (guint j = 0; j < anchors->len; j++) {
			const ViewAnchor *inner = g_ptr_array_index(anchors, j);
			ViewAnchor *alias;

			if (inner->writable || inner->is_generated)
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

ViewAnchor *view_anchor_find_alias(const ViewAnchor *anchor, dev_t dev, ino_t ino)
{
	for (guint i = 0; anchor->aliases && i < anchor->aliases->len; i++) {
		ViewAnchor *alias = g_ptr_array_index(anchor->aliases, i);

		if (alias->dev == dev && alias->ino == ino)
			return alias;
	}
	return NULL;
}

bool view_anchor_hides(const ViewAnchor *anchor, const char *path)
{
	for (const char *const *glob = anchor->hide; glob && *glob; glob++)
		if (fnmatch(*glob, path, FNM_PATHNAME) == 0)
			return true;
	return false;
}
