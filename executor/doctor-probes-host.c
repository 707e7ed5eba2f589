/* What a session needs of the host beside namespaces and FUSE; see doctor.h. */
#include "executor/doctor.h"

#include "common/errno-util.h"
#include "common/fd-util.h"
#include "common/program-path.h"
#include "common/syscall-wrap.h"
#include "config.h"
#include "executor/hints.h"
#include "executor/scope.h"
#include "executor/seccomp-filter.h"
#include "executor/spawn.h"
#include "executor/state-dir.h"

#include <fcntl.h>
#include <grp.h>
#include <sched.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <unistd.h>

#define PROGRAM_MS 3000

void exr_probe_kernel(ExrFinding *ret_finding)
{
	struct utsname name;

	if (uname(&name) == 0)
		exr_finding_set(ret_finding, EXR_DOCTOR_OK, 0, NULL, "%s %s, %s", name.sysname,
				name.release, name.machine);
}

/* Whether a program of ours is there and says that it is of this version. */
static bool check_program(const char *name, const char *stage, ExrFinding *ret_finding)
{
	const char *const argv[] = { name, "--version", NULL };
	g_autofree char *path = program_path(name);
	g_autofree char *expected = g_strconcat(name, " " STELLA_VERSION, NULL), *said = NULL;
	g_auto(GStrv) env = exr_spawn_env();
	ExrProcess process = EXR_NO_PROCESS;
	int r = exr_spawn(path, argv, (const char *const *)env, -1, -1, &process);

	if (r < 0) {
		exr_finding_set_failed(ret_finding, EXR_DOCTOR_MISSING, stage, -r, path);
		return false;
	}
	r = exr_process_end(&process, PROGRAM_MS, PROGRAM_MS);
	said = exr_doctor_take_stderr();
	if (r == 0 && strcmp(said, expected) == 0)
		return true;
	exr_finding_set(ret_finding, EXR_DOCTOR_MISSING, 0, exr_hint("init-version", EPROTO),
			"%s says '%s', not '%s'", path, said, expected);
	return false;
}

void exr_probe_programs(ExrFinding *ret_finding)
{
	if (check_program("stella-fsgate", "gateway", ret_finding) &&
	    check_program("stella-sandbox-init", "start-init", ret_finding))
		exr_finding_set(ret_finding, EXR_DOCTOR_OK, 0, NULL,
				"stella-fsgate and stella-sandbox-init, version " STELLA_VERSION);
}

void exr_probe_state_dir(ExrFinding *ret_finding)
{
	ExrIdentity identity = exr_identity_choose(0);
	g_autoptr(ExrStateDir) dir = NULL;
	ExrError error = { 0 };

	if (exr_state_dir_new(&identity, true, &dir, &error) < 0)
		exr_finding_set(ret_finding, EXR_DOCTOR_MISSING, error.errnum, error.hint,
				"%s (%s)", error.message, errno_name(error.errnum));
	else
		exr_finding_set(ret_finding, EXR_DOCTOR_OK, 0, NULL, "%s", exr_state_dir_root(dir));
	exr_error_clear(&error);
}

void exr_probe_own_user(ExrFinding *ret_finding)
{
	ExrIdentity identity = exr_identity_choose(0);

	if (identity.lent)
		exr_finding_set(ret_finding, EXR_DOCTOR_OK, 0, NULL,
				"commands are an id that owns nothing, such as %u",
				(unsigned int)identity.outside_uid);
	else if (geteuid() != 0)
		exr_finding_set(ret_finding, EXR_DOCTOR_OK, 0, NULL, "commands are yours, id %u",
				(unsigned int)geteuid());
	else
		exr_finding_set(
			ret_finding, EXR_DOCTOR_DEGRADED, EPERM,
			"CAP_SETUID, CAP_SETGID and CAP_CHOWN, and an id map that has 65534",
			"root without the power to change ids");
}

void exr_probe_groups(ExrFinding *ret_finding)
{
	ExrIdentity identity = exr_identity_choose(0);
	int count = getgroups(0, NULL);
	g_autofree gid_t *groups = g_new0(gid_t, (gsize)MAX(count, 0) + 1);
	g_autoptr(GString) list = g_string_new(NULL);

	count = identity.lent ? 0 : getgroups(count, groups);
	for (int i = 0; i < count; i++) {
		const struct group *group = groups[i] == getegid() ? NULL : getgrgid(groups[i]);

		if (groups[i] != getegid())
			g_string_append_printf(list, "%s%u%s%s%s", list->len ? ", " : "",
					       (unsigned int)groups[i], group ? " (" : "",
					       group ? group->gr_name : "", group ? ")" : "");
	}
	if (list->len)
		exr_finding_set(ret_finding, EXR_DOCTOR_DEGRADED, 0,
				"run as root, or without them (setpriv --clear-groups)",
				"commands keep %s", list->str);
	else
		exr_finding_set(ret_finding, EXR_DOCTOR_OK, 0, NULL, "commands have none");
}

/* The very filter of a session, which then has to refuse something. */
static int load_filter(void)
{
	ExrSeccomp seccomp;
	int r;

	if ((r = exr_seccomp_build(&seccomp)) < 0)
		return r;
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0)
		return -errno;
	if ((r = exr_seccomp_load(seccomp.code, seccomp.size)) < 0)
		return r;
	return syscall(SYS_unshare, CLONE_NEWUSER) == 0 ? -EPROTO : 0;
}

void exr_probe_seccomp(ExrFinding *ret_finding)
{
	int r = load_filter();

	if (r < 0)
		exr_finding_set_failed(ret_finding, EXR_DOCTOR_MISSING, "seccomp", -r,
				       "cannot load the seccomp filter");
}

void exr_probe_scope(ExrFinding *ret_finding)
{
	int r = -ENOSYS;

	/* An older Landlock would take the ruleset for a mistake. */
	if (exr_scope_available())
		r = prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 ? -errno : exr_scope_enter();
	if (r == -ENOSYS)
		exr_finding_set(ret_finding, EXR_DOCTOR_DEGRADED, ENOSYS,
				"Linux 6.12 or newer with Landlock (lsm=landlock,...), or "
				"--no-network",
				"the kernel has no scoping by Landlock");
	else if (r < 0)
		exr_finding_set_failed(ret_finding, EXR_DOCTOR_MISSING, "scope", -r,
				       "cannot shut off the host's abstract sockets");
}

void exr_probe_openat2(ExrFinding *ret_finding)
{
	FD_AUTO dir = open("/proc/self", O_PATH | O_DIRECTORY | O_CLOEXEC);
	FD_AUTO inside = -1, outside = -1;

	inside = sys_openat2(dir, "fd", O_PATH | O_CLOEXEC, 0, RESOLVE_BENEATH);
	outside = sys_openat2(dir, "..", O_PATH | O_CLOEXEC, 0, RESOLVE_BENEATH);
	if (inside >= 0 && outside == -EXDEV)
		return;
	exr_finding_set_failed(ret_finding, EXR_DOCTOR_DEGRADED, "openat2",
			       inside < 0 ? -inside : EPROTO, "openat2 cannot be used");
}
