/* as-user [--home DIR] UID -- PROGRAM [ARG...]
 *
 * Runs a program as an ordinary user (uid and gid UID, no other groups, no capabilities) who may
 * open /dev/fuse, as on an ordinary system, whatever its mode here. For tests that root runs.
 *
 * It lives in a mount namespace of its own, of which nothing is seen outside: there a device node
 * that everyone may open lies over /dev/fuse. --home makes DIR (where it is missing), gives it to
 * the user, and sets HOME to it and STELLA_STATE_DIR to DIR/state. Exit status: the program's; 125
 * when the setting up failed, 126 or 127 when the program could not be run. */
#include "common/errno-util.h"

#include <errno.h>
#include <glib.h>
#include <grp.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#define STATUS_FAILED 125

#define FUSE_DEVICE makedev(10, 229)

static int fail(const char *what)
{
	fprintf(stderr, "as-user: %s: %s\n", what, errno_text(errno));
	return STATUS_FAILED;
}

/* A file system for the node is mounted over /tmp for a moment: a directory that is everywhere, and
 * that is as before once the node is bound to its place. */
static int open_up_fuse(void)
{
	if (unshare(CLONE_NEWNS) != 0)
		return fail("unshare(CLONE_NEWNS)");
	if (mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0)
		return fail("make mounts private");
	if (mount("as-user", "/tmp", "tmpfs", MS_NOSUID | MS_NOEXEC, "size=64k,mode=755") != 0)
		return fail("mount a tmpfs");
	if (mknod("/tmp/fuse", S_IFCHR | 0666, FUSE_DEVICE) != 0)
		return fail("make the device node");
	/* mknod obeys the umask */
	if (chmod("/tmp/fuse", 0666) != 0)
		return fail("set the mode of the device node");
	if (mount("/tmp/fuse", "/dev/fuse", NULL, MS_BIND, NULL) != 0)
		return fail("bind the device node to /dev/fuse");
	if (umount2("/tmp", MNT_DETACH) != 0)
		return fail("unmount the tmpfs");
	return 0;
}

static int set_home(const char *home, uid_t uid)
{
	g_autofree char *state = g_build_filename(home, "state", NULL);

	if (mkdir(home, 0700) != 0 && errno != EEXIST)
		return fail(home);
	if (chown(home, uid, uid) != 0)
		return fail(home);
	if (setenv("HOME", home, 1) != 0 || setenv("STELLA_STATE_DIR", state, 1) != 0)
		return fail("setenv");
	return 0;
}

/* What root has in its environment for itself. */
static void forget_root(void)
{
	static const char *const names[] = { "XDG_RUNTIME_DIR", "XDG_STATE_HOME", "XDG_CONFIG_HOME",
					     "XDG_DATA_HOME",	"XDG_CACHE_HOME", "SUDO_UID",
					     "SUDO_GID",	"SUDO_USER" };

	for (size_t i = 0; i < G_N_ELEMENTS(names); i++)
		(void)unsetenv(names[i]); /* these names cannot be invalid */
}

static int become(uid_t uid)
{
	if (setgroups(0, NULL) != 0)
		return fail("setgroups");
	if (setresgid(uid, uid, uid) != 0)
		return fail("setresgid");
	if (setresuid(uid, uid, uid) != 0)
		return fail("setresuid");
	return 0;
}

int main(int argc, char **argv)
{
	const char *home = NULL;
	guint64 uid;
	int status;

	if (argc > 2 && strcmp(argv[1], "--home") == 0) {
		home = argv[2];
		argv += 2;
		argc -= 2;
	}
	if (argc < 4 || strcmp(argv[2], "--") != 0 ||
	    !g_ascii_string_to_unsigned(argv[1], 10, 1, G_MAXINT32, &uid, NULL)) {
		fprintf(stderr, "usage: as-user [--home DIR] UID -- PROGRAM [ARG...]\n");
		return STATUS_FAILED;
	}
	status = open_up_fuse();
	if (status == 0 && home)
		status = set_home(home, (uid_t)uid);
	if (status == 0) {
		forget_root();
		status = become((uid_t)uid);
	}
	if (status != 0)
		return status;
	execvp(argv[3], argv + 3);
	status = errno == ENOENT ? 127 : 126;
	fprintf(stderr, "as-user: %s: %s\n", argv[3], errno_text(errno));
	return status;
}
