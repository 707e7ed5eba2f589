/* An owner of locks on one file and what it has on the host: a description that takes its locks; see locks.h. */
#include "fsgate/locks-internal.h"

#include "common/fd-util.h"
#include "fsgate/lookup.h"

#include <errno.h>
#include <sys/file.h>

/* --- the host's side ---
 *
 * Never blocks: neither call waits for another's lock. */

int fsg_lock_host_record(int fd, const FsgLockRange *range)
{
	struct flock lock = {
		.l_type = range->type,
		.l_whence = SEEK_SET,
		.l_start = (off_t)range->start,
		.l_len = range->end == FSG_LOCK_END ? 0 : (off_t)(range->end - range->start + 1),
	};

	if (fcntl(fd, F_OFD_SETLK, &lock) == 0)
		return 0;
	return errno == EACCES ? -EAGAIN : -errno;
}

int fsg_lock_host_flock(int fd, short type)
{
	int how = type == F_UNLCK ? LOCK_UN : type == F_RDLCK ? LOCK_SH : LOCK_EX;

	return flock(fd, how | LOCK_NB) == 0 ? 0 : -errno;
}

static const FsgLockRange whole_file = { .end = FSG_LOCK_END, .type = F_UNLCK };

/* --- an owner's description --- */

typedef struct {
	int fd;
	int mode;
	const FsgFile *fd_of;
} Description;

static bool is_lent(const FsgLockFile *file, const FsgFile *handle)
{
	for (guint i = 0; i < file->owners->len; i++) {
		const FsgLockOwner *owner = g_ptr_array_index(file->owners, i);

		if (!owner->flock && owner->fd_of == handle)
			return true;
	}
	return false;
}

static int open_description(FsgView *view, const FsgFile *handle, int flags)
{
	int r = fsg_handle_budget_take(view->handles);

	if (r < 0)
		return -ENOLCK;
	if ((r = fsg_view_act_as(handle->inode->anchor)) == 0)
		r = fsg_reopen(view, handle->fd, flags);
	if (r < 0)
		fsg_handle_budget_return(view->handles);
	return r < 0 ? -ENOLCK : r;
}

/* With the access that the handle has, so that nothing is opened in another way than the program did, and reading
 * too when it may only write: an owner can read-lock through one handle and write-lock through another.
 *
 * A handle that closes silently may have been closed already when the same owner locks through another one, and its
 * RELEASE may come afterwards: what that owner holds must not end with it. So record locks are never taken on it.
 *
 * The kernel keeps the description of a handle that it passes reads and writes through, and keeps it when we are
 * killed; so that locks end with us in any case, they are then taken on another one. */
static int description_new(FsgView *view, const FsgLockFile *file, const FsgFile *handle,
			   bool record, Description *ret_description)
{
	bool own = record && (handle->closes_silently || is_lent(file, handle));
	int flags = fcntl(handle->fd, F_GETFL), mode, wider, fd;

	if (flags < 0)
		return -errno;
	mode = flags & O_ACCMODE;
	wider = record && mode == O_WRONLY ? O_RDWR : mode;
	*ret_description = (Description){ handle->fd, mode, handle };
	if (wider == mode && !own && handle->backing_id <= 0)
		return 0;
	flags &= O_APPEND; /* some files can be opened for nothing else */
	if ((fd = open_description(view, handle, flags | wider)) >= 0)
		*ret_description = (Description){ fd, wider, NULL };
	else if (!own)
		return 0;
	else if (wider != mode && (fd = open_description(view, handle, flags | mode)) >= 0)
		*ret_description = (Description){ fd, mode, NULL };
	return fd < 0 ? fd : 0;
}

/* Whatever is locked on it ends. */
static void description_end(FsgView *view, int fd, const FsgFile *fd_of)
{
	if (fd_of) {
		(void)fsg_lock_host_record(fd, &whole_file);
	} else {
		fd_close(&fd);
		fsg_handle_budget_return(view->handles);
	}
}

static bool mode_allows(int mode, short type)
{
	if (type == F_UNLCK)
		return true;
	return type == F_RDLCK ? mode != O_WRONLY : mode != O_RDONLY;
}

/* The owner wants a kind of lock that its description does not allow, through a handle that does. What it
 * holds for reading can be held twice for a moment, so nobody gets in between. */
static int move(FsgView *view, const FsgLockFile *file, FsgLockOwner *owner, const FsgFile *handle)
{
	Description next;
	int r;

	if (owner->mode != O_RDONLY)
		return -ENOLCK;
	if ((r = description_new(view, file, handle, true, &next)) < 0)
		return r;
	for (guint i = 0; r == 0 && i < owner->ranges->len; i++)
		r = fsg_lock_host_record(next.fd, &g_array_index(owner->ranges, FsgLockRange, i));
	if (r < 0) {
		description_end(view, next.fd, next.fd_of);
		return -ENOLCK;
	}
	description_end(view, owner->fd, owner->fd_of);
	owner->fd = next.fd;
	owner->fd_of = next.fd_of;
	owner->mode = next.mode;
	return 0;
}

int fsg_lock_owner_prepare(FsgView *view, const FsgLockFile *file, FsgLockOwner *owner,
			   const FsgFile *handle, short type)
{
	return mode_allows(owner->mode, type) ? 0 : move(view, file, owner, handle);
}

/* --- owners --- */

int fsg_lock_owner_new(FsgView *view, const FsgLockFile *file, const FsgLockRequest *request,
		       FsgLockOwner **ret_owner)
{
	Description own;
	int r = description_new(view, file, request->file, !request->flock, &own);
	FsgLockOwner *owner;

	if (r < 0)
		return r;
	owner = g_new0(FsgLockOwner, 1);
	owner->flock = request->flock;
	owner->id = fsg_lock_owner_id(request);
	owner->fd = own.fd;
	owner->mode = own.mode;
	owner->fd_of = own.fd_of;
	owner->ranges = fsg_lock_ranges_new();
	*ret_owner = owner;
	return 0;
}

void fsg_lock_owner_end(FsgView *view, FsgLockOwner *owner)
{
	if (owner->flock && owner->fd_of)
		(void)fsg_lock_host_flock(owner->fd, F_UNLCK);
	else
		description_end(view, owner->fd, owner->fd_of);
	owner->fd = -1;
}

void fsg_lock_owner_free(FsgView *view, FsgLockOwner *owner)
{
	if (owner->fd >= 0 && !owner->fd_of)
		description_end(view, owner->fd, NULL);
	g_array_unref(owner->ranges);
	g_free(owner);
}
