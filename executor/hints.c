/* The table of hints; see hints.h. The first row that fits counts. Where the same errno has several causes the
 * kernel does not tell apart, sysctls are looked at, and what is then left is said. */
#include "executor/hints.h"

#include <errno.h>
#include <glib.h>
#include <stdbool.h>
#include <string.h>

#define ANY 0

#define UNCONFINED "(--security-opt seccomp=unconfined)"
#define MOUNTS                                                                                     \
	"in a container, have its seccomp profile allow mounts in user namespaces " UNCONFINED
#define CLONE3 "in a container, have its seccomp profile allow clone3 " UNCONFINED
/* Tools that emulate system calls know some of them only. */
#define CLONE3_ABSENT CLONE3 "; not under a tool that lacks clone3, like valgrind"

#define USER_NAMESPACES "the host has to allow user namespaces, and it cannot be in a chroot; "

static const char *const mount_stages[] = { "private-mounts", "bind-source", "fuse-mount",
					    "hold-view",      "attach-view", "bind",
					    "mount-proc",     "mount-dev",   "mount-run",
					    "exec-proc",      "start-init",  NULL };
static const char *const clone_stages[] = { "clone",   "cgroup-namespace", "setgroups",
					    "uid-map", "gid-map",	   NULL };

static const struct {
	const char *stage;
	int errnum;
	const char *hint;
} rows[] = {
	{ "fuse-device", ENOENT,
	  "load FUSE (modprobe fuse), or give the container its device (--device /dev/fuse)" },
	{ "fuse-device", EPERM,
	  "the container's device rules do not allow /dev/fuse: start it with --device /dev/fuse" },
	{ "fuse-device", EACCES,
	  "this user may not open /dev/fuse: chmod 0666 /dev/fuse, which is its mode on ordinary "
	  "systems, and mount /dev without nodev" },
	{ "fuse-device", ANY,
	  "it is not the device of FUSE, character device 10:229, or the kernel has no FUSE "
	  "(modprobe fuse)" },
	{ "fuse-mount", ENODEV, "the kernel has no FUSE: modprobe fuse" },
	{ "fuse-mount", ENOSYS, "Linux 5.12 or newer is needed; " MOUNTS },
	{ "fuse-mount", ANY, "the kernel needs FUSE with user namespaces (Linux 4.18); " MOUNTS },
	{ "fusermount3", ENOENT, "install fusermount3 (package fuse3)" },
	{ "fusermount3", EACCES, "fusermount3 has to be executable for this user (package fuse3)" },
	{ "fusermount3", ANY,
	  "fusermount3 has to be set-user-ID root, on a file system without nosuid, and not under "
	  "no_new_privs" },
	{ "bwrap", ENOENT, "install bubblewrap" },
	{ "openat2", ANY,
	  "Linux 5.6 or newer, and in a container a seccomp profile that knows openat2" },
	{ "passthrough", EPERM, "run as root, outside of a container" },
	{ "passthrough", ANY, "Linux 6.9 or newer, built with CONFIG_FUSE_PASSTHROUGH" },
	{ "mount-proc", EPERM,
	  "the host's /proc is partly hidden, as in a container: start that with "
	  "--security-opt systempaths=unconfined" },
	{ "mount-point", ANY,
	  "inside a directory that the host's programs come from a mount can only cover what "
	  "exists there" },
	{ "pivot-root", EINVAL,
	  "a root that is an initial ramfs cannot be left: start from another one (switch_root)" },
	{ "pivot-root", ANY,
	  "in a container, have its seccomp profile allow pivot_root " UNCONFINED },
	{ "seccomp", ANY,
	  "the kernel needs CONFIG_SECCOMP_FILTER, and a container must not refuse "
	  "further filters" },
	{ "scope", ANY, "a container's seccomp profile has to let the calls of Landlock through" },
	{ "start-init", ENOENT,
	  "all programs have to be installed, or be run from one build directory" },
	{ "start-init", EACCES,
	  "stella-sandbox-init has to be executable for this user, on a file system without "
	  "noexec" },
	{ "init-version", ANY, "install all programs from one build" },
	{ "gateway", ENOENT,
	  "all programs have to be installed, or be run from one build directory" },
	{ "gateway", EACCES,
	  "stella-fsgate has to be executable for this user, on a file system without noexec" },
	{ "gateway", ENOSYS, "Linux 5.3 or newer is needed; " CLONE3_ABSENT },
	{ "gateway", EPERM, CLONE3 },
	{ "state-dir", EINVAL, "STELLA_STATE_DIR has to be an absolute path" },
	{ "state-dir", ANY, "STELLA_STATE_DIR names another directory, of your own, for it" },
	{ "exec-init", EPERM,
	  "in a container, have its seccomp profile allow clone in user namespaces " UNCONFINED },
};

static bool sysctl_is(const char *path, const char *value)
{
	g_autofree char *text = NULL;

	return g_file_get_contents(path, &text, NULL, NULL) && strcmp(g_strstrip(text), value) == 0;
}

const char *exr_hint_userns_sysctl(void)
{
	static const struct {
		const char *path, *value, *hint;
	} sysctls[] = {
		{ "/proc/sys/kernel/unprivileged_userns_clone", "0",
		  "user namespaces are off: sysctl -w kernel.unprivileged_userns_clone=1" },
		{ "/proc/sys/user/max_user_namespaces", "0",
		  "user namespaces are off: sysctl -w user.max_user_namespaces=10000" },
		{ "/proc/sys/kernel/apparmor_restrict_unprivileged_userns", "1",
		  "AppArmor restricts user namespaces: give stella-exec a profile with "
		  "\"userns,\", or sysctl -w kernel.apparmor_restrict_unprivileged_userns=0" },
	};

	for (size_t i = 0; i < G_N_ELEMENTS(sysctls); i++)
		if (sysctl_is(sysctls[i].path, sysctls[i].value))
			return sysctls[i].hint;
	return NULL;
}

static const char *clone_hint(int errnum)
{
	const char *sysctl = exr_hint_userns_sysctl();

	if (sysctl)
		return sysctl;
	switch (errnum) {
	case ENOSPC:
		return "no more namespaces are allowed: raise the limits user.max_*_namespaces "
		       "(sysctl -a | grep namespaces)";
	case EINVAL:
		return "the kernel needs user, pid, ipc, uts, cgroup and network namespaces "
		       "(CONFIG_USER_NS and so on)";
	case EAGAIN:
	case ENOMEM:
		return NULL;
	case ENOSYS:
		return USER_NAMESPACES CLONE3_ABSENT;
	default:
		return USER_NAMESPACES CLONE3;
	}
}

const char *exr_hint(const char *stage, int errnum)
{
	if (g_strv_contains(clone_stages, stage))
		return clone_hint(errnum);
	for (size_t i = 0; i < G_N_ELEMENTS(rows); i++)
		if (strcmp(rows[i].stage, stage) == 0 &&
		    (rows[i].errnum == ANY || rows[i].errnum == errnum))
			return rows[i].hint;
	if (!g_strv_contains(mount_stages, stage))
		return NULL;
	/* AppArmor gives the namespace, and then none of the powers in it. */
	if ((errnum == EPERM || errnum == EACCES) && exr_hint_userns_sysctl())
		return exr_hint_userns_sysctl();
	if (errnum == ENOSYS)
		return "Linux 5.12 or newer is needed; " MOUNTS;
	return errnum == EPERM ? MOUNTS : NULL;
}
