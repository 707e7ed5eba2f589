/* The open form of a path resolver; see path-resolver.h.
 *
 * What is opened is the object that the walk came to, through its O_PATH fd: whatever happens to its name meanwhile, nothing
 * else is. It is asked what it is before (a device or FIFO has effects when it is opened). What is not there is made with
 * O_EXCL in the directory that the walk came to, by one checked name, so that nothing that appears meanwhile is taken
 * for it, and no link; then the walk is done again. */
#include "common/path-resolver-internal.h"

#include "common/fd-util.h"
#include "common/io-util.h"

#include <errno.h>
#include <fcntl.h>

#define KNOWN_FLAGS                                                                                \
	(O_ACCMODE | O_CREAT | O_EXCL | O_TRUNC | O_APPEND | O_DIRECTORY | O_NOFOLLOW |            \
	 O_NONBLOCK | O_SYNC | O_DSYNC | O_PATH | O_CLOEXEC)
/* What the kernel keeps of an open file. */
#define PASSED_FLAGS (O_ACCMODE | O_APPEND | O_SYNC | O_DSYNC)

typedef struct {
	PathResolver *resolver;
	const char *path;
	int flags;
	mode_t mode;
	PathPlace *ret_place; /* or NULL */
	PathProblem *reterr_problem;
} Request;

static int fail(const Request *request, const PathPlace *place, PathProblemKind kind, int errnum,
		int reason)
{
	const char *op = request->flags & O_CREAT ? "create" : "open";

	return path_resolver_fail(request->resolver, op, request->path, kind, errnum, reason,
				  place ? place->view_path : NULL, place ? place->mount : NULL,
				  request->reterr_problem);
}

/* What the host says: as the gateway has it, its permissions are denials too. */
static int fail_io(const Request *request, const PathPlace *place, int r)
{
	int reason = -1;

	if (r == -EACCES || r == -EPERM)
		reason = DENIAL_HOST_PERMISSION;
	else if (r == -EROFS)
		reason = DENIAL_HOST_READ_ONLY;
	return fail(request, place, r == -EROFS ? PATH_PROBLEM_READ_ONLY : PATH_PROBLEM_IO, -r,
		    reason);
}

static int fail_read_only(const Request *request, const PathPlace *place)
{
	if (place->read_only_reason == DENIAL_HIDDEN)
		return fail(request, place, PATH_PROBLEM_REFUSED, EACCES, DENIAL_HIDDEN);
	return fail(request, place, PATH_PROBLEM_READ_ONLY, EROFS, place->read_only_reason);
}

static bool wants_change(int flags)
{
	return (flags & O_ACCMODE) != O_RDONLY || (flags & O_TRUNC);
}

static int make_file(const Request *request, const PathPlace *place)
{
	mode_t mode = request->mode & 01777;
	PathActing acting;
	int r = path_resolver_act_begin(place, &acting);

	if (r < 0)
		return r;
	FD_AUTO fd = openat(place->parent_fd, place->name,
			    (request->flags & (PASSED_FLAGS | O_NONBLOCK)) | O_CREAT | O_EXCL |
				    O_NOFOLLOW | O_NOCTTY | O_CLOEXEC,
			    mode);
	r = fd < 0 ? -errno : path_resolver_give_mode(place, fd, mode);
	path_resolver_act_end(&acting);
	return r < 0 ? r : fd_steal(&fd);
}

/* -EEXIST: it is there by now. */
static int open_absent(const Request *request, const PathPlace *place)
{
	int fd;

	if (!(request->flags & O_CREAT) && place->is_hidden)
		return fail(request, place, PATH_PROBLEM_REFUSED, ENOENT, DENIAL_HIDDEN);
	if (!(request->flags & O_CREAT))
		return fail(request, place,
			    place->is_synthetic && place->anchor == NULL
				    ? PATH_PROBLEM_OUTSIDE_MOUNTS
				    : PATH_PROBLEM_IO,
			    ENOENT, -1);
	if (!place->writable)
		return fail_read_only(request, place);
	fd = make_file(request, place);
	if (fd == -EEXIST && !(request->flags & O_EXCL))
		return fd;
	return fd < 0 ? fail_io(request, place, fd) : fd;
}

/* Reading what is read-only changes nothing of it, not even the time of its last access; where that is somebody else's the
 * kernel does not let us say so, and keeps it. */
int path_resolver_reopen(const PathPlace *place, int flags)
{
	FD_AUTO proc_fd = fd_open_proc();
	PathActing acting;
	int fd = -EPERM, r;

	if (proc_fd < 0)
		return proc_fd;
	if ((r = path_resolver_act_begin(place, &acting)) < 0)
		return r;
	if (!place->writable)
		fd = fd_reopen(proc_fd, place->fd, flags | O_NOATIME);
	if (fd == -EPERM)
		fd = fd_reopen(proc_fd, place->fd, flags);
	path_resolver_act_end(&acting);
	return fd;
}

/* Nobody is waited for but who holds a lease, and him only when that was not excluded. */
static int open_regular(const Request *request, const PathPlace *place)
{
	int flags = request->flags & (PASSED_FLAGS | O_TRUNC);
	FD_AUTO fd = path_resolver_reopen(place, flags | O_NONBLOCK);
	int r;

	if (request->flags & O_NONBLOCK)
		return fd_steal(&fd);
	if (fd == -EAGAIN)
		return path_resolver_reopen(place, flags);
	if (fd >= 0 && (r = fd_set_nonblock(fd, false)) < 0)
		return r;
	return fd_steal(&fd);
}

/* What stands in for a file of the host's is empty. */
static int open_stand_in(void)
{
	FD_AUTO fd = io_memfd_new("stella-stand-in", "", 0);

	return fd < 0 ? fd : fd_reopen_now(fd, O_RDONLY);
}

static int open_directory(const Request *request, const PathPlace *place)
{
	int fd;

	if (wants_change(request->flags) || (request->flags & O_CREAT))
		return fail(request, place, PATH_PROBLEM_IO, EISDIR, -1);
	if (place->is_synthetic)
		return fail(request, place, PATH_PROBLEM_REFUSED, EOPNOTSUPP, -1);
	fd = path_resolver_reopen(
		place, O_RDONLY | O_DIRECTORY | (request->flags & (O_NONBLOCK | O_SYNC | O_DSYNC)));
	return fd < 0 ? fail_io(request, place, fd) : fd;
}

static int open_path_only(const Request *request, PathPlace *place)
{
	if (place->fd < 0)
		return fail(request, place, PATH_PROBLEM_REFUSED, EOPNOTSUPP, -1);
	return fd_steal(&place->fd);
}

static int open_existing(const Request *request, PathPlace *place)
{
	int flags = request->flags, fd;

	if ((flags & O_CREAT) && (flags & O_EXCL))
		return fail(request, place, PATH_PROBLEM_IO, EEXIST, -1);
	if ((flags & O_DIRECTORY) && !S_ISDIR(place->type))
		return fail(request, place, PATH_PROBLEM_IO, ENOTDIR, -1);
	if (flags & O_PATH)
		return open_path_only(request, place);
	if (S_ISLNK(place->type)) /* kept by O_NOFOLLOW only */
		return fail(request, place, PATH_PROBLEM_SYMLINK, ELOOP, -1);
	if (S_ISDIR(place->type))
		return open_directory(request, place);
	if (!S_ISREG(place->type))
		return fail(request, place, PATH_PROBLEM_IO, ENXIO, -1);
	if (wants_change(flags) && !place->writable)
		return fail_read_only(request, place);
	fd = place->is_synthetic ? open_stand_in() : open_regular(request, place);
	return fd < 0 ? fail_io(request, place, fd) : fd;
}

/* Which flags it is about, and in the notation of the headers that define them. */
static int fail_flags(const Request *request, int flags, const char *why)
{
	g_autofree char *text = g_strdup_printf("flags %#o: %s", (unsigned int)flags, why);
	const PathFailure failure = {
		.op = request->flags & O_CREAT ? "create" : "open",
		.path = request->path,
		.kind = PATH_PROBLEM_INVALID,
		.errnum = EINVAL,
		.reason = -1,
		.why = text,
	};

	return path_fail(request->resolver, &failure, request->reterr_problem);
}

static int check_flags(const Request *request)
{
	int flags = request->flags;

	if (flags & ~KNOWN_FLAGS)
		return fail_flags(request, flags & ~KNOWN_FLAGS, "not known here");
	if ((flags & O_ACCMODE) == O_ACCMODE)
		return fail_flags(request, O_ACCMODE, "no access mode");
	if ((flags & O_CREAT) && (flags & O_DIRECTORY))
		return fail_flags(request, O_CREAT | O_DIRECTORY,
				  "O_CREAT and O_DIRECTORY exclude each other");
	return 0;
}

static unsigned int walk_flags(int flags)
{
	bool keeps = (flags & O_NOFOLLOW) || (flags & (O_CREAT | O_EXCL)) == (O_CREAT | O_EXCL);

	return (keeps ? VIEW_WALK_KEEP_LAST : 0) | (flags & O_CREAT ? VIEW_WALK_MAKES : 0);
}

/* One walk, and what there is to be opened. -ESTALE: another one is needed. */
static int open_once(const Request *request, bool is_last_try)
{
	PathPlace place = { .fd = -1, .parent_fd = -1 };
	PathWalk walk;
	int r = path_walk_begin(request->resolver, request->path, walk_flags(request->flags),
				&walk);

	if (r == 0)
		r = path_walk_get_place(request->resolver, &walk, &place);
	path_actor_end(&walk.actor);
	if (r < 0 && (r != -ESTALE || is_last_try))
		r = path_walk_fail(request->resolver, "open", request->path, &walk, r,
				   request->reterr_problem);
	else if (r == 0)
		r = place.type == 0 ? open_absent(request, &place) : open_existing(request, &place);
	if (r == -EEXIST && !(request->flags & O_EXCL))
		r = is_last_try ? fail_io(request, &place, -ESTALE) : -ESTALE;
	path_walk_end(&walk);
	if (r >= 0 && request->ret_place) {
		*request->ret_place = place;
		return r;
	}
	path_place_clear(&place);
	return r;
}

int path_resolver_open_place(PathResolver *resolver, const char *path, int flags, mode_t mode,
			     PathPlace *ret_place, PathProblem *reterr_problem)
{
	Request request = { resolver, path, flags, mode, ret_place, reterr_problem };
	int r;

	/* The kernel looks at no others with O_PATH. */
	if (flags & O_PATH)
		request.flags &= O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;
	if ((r = check_flags(&request)) < 0 ||
	    (r = path_check_text(resolver, "open", path, reterr_problem)) < 0)
		return r;
	r = -ESTALE;
	for (int tries = 1; r == -ESTALE && tries <= PATH_TRIES; tries++) {
		if (reterr_problem && tries > 1)
			path_problem_clear(reterr_problem);
		if (tries > 1)
			path_pause(tries);
		r = open_once(&request, tries == PATH_TRIES);
	}
	return r;
}

int path_resolver_open(PathResolver *resolver, const char *path, int flags, mode_t mode,
		       PathProblem *reterr_problem)
{
	return path_resolver_open_place(resolver, path, flags, mode, NULL, reterr_problem);
}
