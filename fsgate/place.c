/* Places; see place.h. What is found under a name is taken for the inode only if it has its identity: whatever
 * an agent or the host puts there meanwhile costs a look-up anew (ESTALE), never another object. */
#include "fsgate/place.h"

#include "common/fd-util.h"
#include "common/resolve.h"
#include "fsgate/lookup.h"

#include <errno.h>
#include <fcntl.h>
#include <glib.h>

typedef struct {
	FsgInode *parent; /* a reference */
	char *name;	  /* owned */
	int dirfd;	  /* of the parent, which is inside the mount; a user of it */
} Place;

static int place_get(FsgView *view, FsgInode *inode, Place *ret_place)
{
	Place place = { .dirfd = -ESTALE };

	if (inode->kind != FSG_INODE_HOST || inode->fd_borrowed ||
	    !fsg_inode_dup_hint(view->inodes, inode, &place.parent, &place.name))
		return -ESTALE;
	/* The root of an alias lies in another clone than its parent. */
	if (place.parent->anchor == inode->anchor)
		place.dirfd = fsg_get_dir_fd(view, place.parent);
	if (place.dirfd < 0) {
		fsg_inode_unref(view->inodes, place.parent);
		g_free(place.name);
		return place.dirfd;
	}
	*ret_place = place;
	return 0;
}

static void place_put(FsgView *view, Place *place)
{
	fsg_inode_put_fd(view->inodes, place->parent);
	fsg_inode_unref(view->inodes, place->parent);
	g_free(place->name);
}

static int check_identity(const FsgInode *inode, const struct statx *stx)
{
	FsgInodeKey key = fsg_inode_key(inode->anchor, stx);

	return fsg_inode_key_equal(&key, &inode->key) ? 0 : -ESTALE;
}

static int stat_opened(int fd, struct statx *ret_stx)
{
	return statx(fd, "", AT_EMPTY_PATH | AT_NO_AUTOMOUNT, FSG_STATX_MASK, ret_stx) == 0
		       ? 0
		       : -errno;
}

int fsg_stat_child(const FsgAnchor *anchor, int dirfd, const char *name, struct statx *ret_stx)
{
	FD_AUTO fd = -1;

	if (anchor->cross_mounts)
		return resolve_stat_child(dirfd, name, FSG_STATX_MASK, RESOLVE_ANY_MOUNT, ret_stx);
	if (anchor->mount_id)
		return resolve_stat_child(dirfd, name, FSG_STATX_MASK, anchor->mount_id, ret_stx);
	fd = resolve_child(dirfd, name, false);
	return fd < 0 ? fd : stat_opened(fd, ret_stx);
}

int fsg_place_stat(FsgView *view, FsgInode *inode, struct statx *ret_stx)
{
	Place place;
	int r = place_get(view, inode, &place);

	if (r < 0)
		return r;
	r = fsg_stat_child(inode->anchor, place.dirfd, place.name, ret_stx);
	place_put(view, &place);
	if (r < 0)
		return r == -ENOENT || r == -EXDEV ? -ESTALE : r;
	return check_identity(inode, ret_stx);
}

int fsg_place_open(FsgView *view, FsgInode *inode)
{
	struct statx stx;
	FD_AUTO fd = -1;
	Place place;
	int r = place_get(view, inode, &place);

	if (r < 0)
		return r;
	fd = resolve_child(place.dirfd, place.name, inode->anchor->cross_mounts);
	place_put(view, &place);
	if (fd < 0)
		return fd == -ENOENT || fd == -EXDEV ? -ESTALE : fd;
	if ((r = stat_opened(fd, &stx)) < 0 || (r = check_identity(inode, &stx)) < 0)
		return r;
	return fsg_inode_install_fd(view->inodes, inode, fd_steal(&fd));
}
