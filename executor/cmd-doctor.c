/* The capabilities in the order in which a session needs them, then the verdict; see doctor.h. */
#include "executor/cmd-doctor.h"

#include "common/errno-util.h"
#include "common/io-util.h"
#include "common/path-util.h"
#include "executor/doctor.h"
#include "executor/help.h"
#include "executor/message.h"
#include "executor/result.h"
#include "executor/state-dir.h"

#include <string.h>
#include <unistd.h>

#define PROBE_MS 5000
/* Longer than the deadlines inside of it. */
#define RUN_MS	   30000
#define STATUS_NOT 1

#define NEEDED "run needs it"

static const ExrProbe probes[] = {
	{ "kernel", "kernel", NULL, exr_probe_kernel },
	{ "programs", "programs", NEEDED, exr_probe_programs },
	{ "state-dir", "state directory", NEEDED, exr_probe_state_dir },
	{ "user-namespaces", "user namespaces", NEEDED, exr_probe_user_namespaces },
	{ "network-namespaces", "network namespaces", "run --no-network needs them",
	  exr_probe_network_namespaces },
	{ "fuse-device", "FUSE device", NEEDED, exr_probe_fuse_device },
	{ "fuse-mount", "FUSE mount in a user namespace",
	  "run needs it, or for an ordinary user fusermount3", exr_probe_fuse_mount },
	{ "fusermount3", "fusermount3",
	  "stella-fsgate mount needs it, and run where FUSE cannot be mounted in a user namespace",
	  exr_probe_fusermount },
	{ "bwrap", "bwrap",
	  "there is no other way to run commands where the view cannot be mounted",
	  exr_probe_bwrap },
	{ "mount-calls", "mount calls by fd", NEEDED, exr_probe_mount_calls },
	{ "proc", "/proc of its own", NEEDED, exr_probe_proc },
	{ "pivot-root", "pivot_root", NEEDED, exr_probe_pivot_root },
	{ "seccomp", "seccomp filter", NEEDED, exr_probe_seccomp },
	{ "own-user", "user of its own", "outside of the view commands are this root",
	  exr_probe_own_user },
	{ "groups", "supplementary groups",
	  "what these groups may read or write in mounts, commands may too", exr_probe_groups },
	{ "abstract-sockets", "abstract sockets shut off",
	  "commands that share the network reach the host's abstract unix sockets",
	  exr_probe_scope },
	{ "openat2", "openat2", "the view is walked by other calls, as safe and slower",
	  exr_probe_openat2 },
	{ "passthrough", "kernel passthrough",
	  "reads and writes of open files go through the gateway, which is slower",
	  exr_probe_passthrough },
	{ "memory-cgroup", "memory limit by cgroup", "a session's memory cannot be limited",
	  exr_probe_memory_cgroup },
	{ "pids-cgroup", "process limit by cgroup", "a session's processes cannot be limited",
	  exr_probe_pids_cgroup },
};

static const ExrProbe run_probe = { "run", "run", NEEDED, exr_probe_run };

/* What a child that had to be killed has left is what any dead owner leaves. */
static void sweep(void)
{
	ExrIdentity identity = exr_identity_choose(0);
	ExrStateDir *dir = NULL;
	ExrError error = { 0 };

	if (exr_state_dir_new(&identity, false, &dir, &error) == 0)
		exr_state_dir_free(dir);
	exr_error_clear(&error);
}

static int print(GString *report)
{
	int r = io_write_all(STDOUT_FILENO, report->str, report->len);

	if (r < 0)
		exr_message_print(NULL, "standard output: %s", errno_text(-r));
	return r;
}

static int diagnose(bool json)
{
	ExrFinding findings[G_N_ELEMENTS(probes)] = { 0 }, verdict = { 0 };
	g_autoptr(GString) report = NULL;
	bool in_time = true;
	int status;

	for (size_t i = 0; i < G_N_ELEMENTS(probes); i++)
		in_time &= exr_doctor_try(&probes[i], PROBE_MS, &findings[i]);
	in_time &= exr_doctor_try(&run_probe, RUN_MS, &verdict);
	if (!in_time)
		sweep();
	report = (json ? exr_doctor_json : exr_doctor_text)(probes, findings, G_N_ELEMENTS(probes),
							    &verdict);
	status = verdict.state == EXR_DOCTOR_OK || verdict.state == EXR_DOCTOR_DEGRADED
			 ? 0
			 : STATUS_NOT;
	if (print(report) < 0)
		status = EXR_EXIT_FAILED;
	for (size_t i = 0; i < G_N_ELEMENTS(probes); i++)
		exr_finding_clear(&findings[i]);
	exr_finding_clear(&verdict);
	return status;
}

int exr_cmd_doctor(int argc, char **argv, char **host_env)
{
	bool json = false;

	(void)host_env;
	for (int i = 1; i < argc; i++) {
		g_autofree char *shown = path_escape(argv[i]);

		if (strcmp(argv[i], "--json") == 0) {
			json = true;
		} else if (strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0) {
			int r = exr_help_print_doctor();

			if (r == 0)
				return 0;
			exr_message_print(NULL, "standard output: %s", errno_text(-r));
			return EXR_EXIT_FAILED;
		} else {
			exr_message_print("see stella-exec doctor --help", "%s: unknown %s", shown,
					  argv[i][0] == '-' ? "option" : "argument");
			return EXR_EXIT_FAILED;
		}
	}
	return diagnose(json);
}
