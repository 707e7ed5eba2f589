/* Serving a view; see fuse-session.h. */
#include "fsgate/fuse-session.h"

#include "common/errno-util.h"
#include "common/fd-util.h"
#include "common/mount-util.h"
#include "common/syscall-wrap.h"
#include "fsgate/boundary.h"
#include "fsgate/client.h"
#include "fsgate/device.h"
#include "fsgate/fusermount.h"
#include "fsgate/invalidate.h"
#include "fsgate/locks.h"
#include "fsgate/loop.h"
#include "fsgate/mountinfo.h"
#include "fsgate/mountpoint.h"
#include "fsgate/ops.h"
#include "fsgate/passthrough.h"

#include <fcntl.h>
#include <glib.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>

struct FsgSession {
	FsgView *view; /* borrowed */
	struct fuse_session *fuse;
	bool own_mount;	     /* made by us with move_mount */
	bool fuse_mount;     /* made by libfuse through fusermount3 */
	FsgViewMount *mount; /* what own_mount or fuse_mount made */
	FsgDevice *device;
	FsgPassthrough *passthrough;
	FsgLoop *loop; /* once started */
};

static int session_new(FsgView *view, bool allow_other, FsgSession **ret_session)
{
	g_autofree char *options =
		g_strconcat("fsname=" FSG_FS_SOURCE ",subtype=" FSG_FS_SUBTYPE,
			    allow_other ? ",allow_other" : "",
			    view->kernel_decides ? ",default_permissions" : "", NULL);
	const char *argv[] = { "stella-fsgate", "-o", options, NULL };
	struct fuse_args args = FUSE_ARGS_INIT(3, (char **)(uintptr_t)argv);
	const struct fuse_lowlevel_ops ops = fsg_observed_ops();
	FsgSession *session = g_new0(FsgSession, 1);

	session->view = view;
	session->fuse = fuse_session_new(&args, &ops, sizeof ops, view);
	view->fuse = session->fuse;
	fuse_opt_free_args(&args);
	if (!session->fuse) {
		(void)fsg_session_free(session, 0);
		return -ENOMEM;
	}
	*ret_session = session;
	return 0;
}

/* libfuse takes a path of this form for an open /dev/fuse, and then the fd is its own. */
static int adopt_device(FsgSession *session, int take_device_fd)
{
	char path[32];

	snprintf(path, sizeof path, "/dev/fd/%d", take_device_fd);
	if (fuse_session_mount(session->fuse, path) != 0) {
		fd_close(&take_device_fd);
		return -EINVAL;
	}
	return 0;
}

int fsg_session_adopt(FsgView *view, int take_device_fd, FsgSession **ret_session,
		      char **reterr_message)
{
	FD_AUTO device = take_device_fd;
	FsgSession *session;
	int r = session_new(view, false, &session);

	if (r == 0 && (r = adopt_device(session, fd_steal(&device))) < 0)
		(void)fsg_session_free(session, 0);
	if (r < 0)
		*reterr_message = g_strdup_printf("cannot serve the view: %s", errno_text(-r));
	else
		*ret_session = session;
	return r;
}

static char *explain_device(int errnum)
{
	if (errnum == ENOENT)
		return g_strdup("/dev/fuse does not exist: load the kernel module \"fuse\" "
				"(modprobe fuse), or pass the device into the container");
	if (errnum == EACCES || errnum == EPERM)
		return g_strdup("/dev/fuse: Permission denied; the device has to be open to this "
				"user (as root: chmod 666 /dev/fuse)");
	return g_strdup_printf("/dev/fuse: %s", errno_text(errnum));
}

static int mount_directly(FsgSession *session, int device, int mountpoint_fd, bool allow_other)
{
	char fd_text[16], uid[16], gid[16];
	int r, n = 12;
	const char *options[] = {
		"source", FSG_FS_SOURCE, "subtype", FSG_FS_SUBTYPE, "fd", fd_text, "rootmode",
		"40000",  "user_id",	 uid,	    "group_id",	    gid,  NULL,	   NULL,
		NULL,	  NULL,		 NULL,
	};

	snprintf(fd_text, sizeof fd_text, "%d", device);
	snprintf(uid, sizeof uid, "%u", getuid());
	snprintf(gid, sizeof gid, "%u", getgid());
	if (allow_other) {
		options[n] = "allow_other";
		n += 2;
	}
	if (session->view->kernel_decides)
		options[n] = "default_permissions";
	FD_AUTO mount_fd = mount_new("fuse", options, MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV);
	if (mount_fd < 0)
		return mount_fd;
	if ((r = mount_attach(mount_fd, mountpoint_fd, "")) < 0)
		return r;
	session->own_mount = true;
	return 0;
}

/* The device is opened first in any case, so that a missing or forbidden one is named as such. */
int fsg_session_mount(FsgView *view, int mountpoint_fd, bool allow_other, FsgSession **ret_session,
		      char **reterr_message)
{
	FD_AUTO device = open("/dev/fuse", O_RDWR | O_CLOEXEC);
	g_autofree char *why = NULL;
	FsgSession *session;
	int r;

	if (device < 0) {
		r = -errno;
		*reterr_message = explain_device(-r);
		return r;
	}
	if ((r = session_new(view, allow_other, &session)) < 0) {
		*reterr_message = g_strdup_printf("cannot serve the view: %s", errno_text(-r));
		return r;
	}
	r = mount_directly(session, device, mountpoint_fd, allow_other);
	if (r == 0) {
		r = adopt_device(session, fd_steal(&device));
	} else if (r == -EPERM) {
		fd_close(&device);
		r = fsg_fusermount(session->fuse, view->mountpoint, &why);
		session->fuse_mount = r == 0;
	}
	if (r < 0) {
		*reterr_message = g_strdup_printf("mountpoint \"%s\": mounting failed: %s",
						  view->mountpoint, why ? why : errno_text(-r));
		(void)fsg_session_free(session, 0);
		return r;
	}
	session->mount = fsg_view_mount_find(view->mountpoint);
	*ret_session = session;
	return 0;
}

/* The device is there now: libfuse's reads and writes go through us. */
static int connect_device(FsgSession *session)
{
	session->device = fsg_device_new(session->fuse, fsg_passthrough_is_allowed());
	if (!session->device)
		return -EINVAL;
	session->passthrough = fsg_passthrough_new(session->device);
	session->view->device = session->device;
	session->view->passthrough = session->passthrough;
	return 0;
}

int fsg_session_start(FsgSession *session, int take_tasks_fd)
{
	FsgLoopConfig config = {
		.view = session->view,
		.fuse = session->fuse,
		.take_tasks_fd = take_tasks_fd,
		.prepare = fsg_view_serves_callers(session->view)
				   ? fsg_identity_start_serving_callers
				   : fsg_identity_start_serving,
	};
	ExecBoard *board;
	int r = connect_device(session);

	/* Of a session only: nobody else has execs. */
	if (take_tasks_fd >= 0 && session->view->clients)
		fsg_clients_set_tasks(session->view->clients, fd_dup(take_tasks_fd));
	if ((board = fsg_boundary_board(session->view->boundary)))
		atomic_store(&board->knows, fsg_clients_are_known(session->view->clients));
	config.device = session->device;
	if (r < 0) {
		fd_close(&take_tasks_fd);
		return r;
	}
	session->loop = fsg_loop_new(&config);
	if ((r = fsg_invalidate_start(session->view, session->fuse)) < 0 ||
	    (r = fsg_loop_start(session->loop)) < 0) {
		fsg_loop_free(session->loop);
		session->loop = NULL;
	}
	return r;
}

int fsg_session_end_fd(const FsgSession *session)
{
	return fsg_loop_end_fd(session->loop);
}

static bool connection_has_ended(const FsgSession *session)
{
	struct pollfd device = { .fd = fuse_session_fd(session->fuse) };

	return poll(&device, 1, 0) == 1 && (device.revents & POLLERR);
}

/* A device number is given again as soon as its view has gone, but then our connection has ended too. */
bool fsg_session_is_mounted(const FsgSession *session)
{
	g_autoptr(FsgViewMount) now = fsg_view_mount_find(session->view->mountpoint);

	return now && session->mount && now->dev_major == session->mount->dev_major &&
	       now->dev_minor == session->mount->dev_minor && !connection_has_ended(session);
}

void fsg_session_unmount(FsgSession *session)
{
	const char *path = session->view->mountpoint;

	if (!session->own_mount && !session->fuse_mount)
		return;
	/* Ours may have been unmounted by somebody else, and another be there now. */
	if (!fsg_session_is_mounted(session)) {
		session->own_mount = session->fuse_mount = false;
		return;
	}
	if (session->own_mount && fsg_mountpoint_unmount(path, false) == -EBUSY)
		(void)fsg_mountpoint_unmount(path, true);
	if (session->fuse_mount)
		fuse_session_unmount(session->fuse);
	session->own_mount = session->fuse_mount = false;
}

bool fsg_session_free(FsgSession *session, int timeout_ms)
{
	if (!session)
		return true;
	fsg_session_unmount(session);
	/* Who tells the kernel what changed uses the session that libfuse is about to free. */
	if ((session->loop && (!fsg_loop_wait(session->loop, timeout_ms) ||
			       !fsg_locks_stop(session->view->locks, timeout_ms))) ||
	    (session->device && !fsg_invalidate_stop(session->view, timeout_ms))) {
		fsg_device_abort(session->device, session->fuse);
		return false;
	}
	fsg_loop_free(session->loop);
	if (session->fuse) {
		/* Frees the mountpoint's name, which libfuse keeps when somebody else has unmounted; there is
		 * nothing that this could unmount. */
		if (connection_has_ended(session))
			fuse_session_unmount(session->fuse);
		fuse_session_destroy(session->fuse);
	}
	session->view->device = NULL;
	session->view->passthrough = NULL;
	fsg_passthrough_free(session->passthrough);
	fsg_device_free(session->device);
	fsg_view_mount_free(session->mount);
	g_free(session);
	return true;
}
