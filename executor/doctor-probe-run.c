/* The verdict, and one backend's: `run` itself, with an empty directory as its workspace and `true` as its command; see doctor.h.
 * What it says is what it would say to everybody else. The workspace lies in a session directory of our own, which
 * the next start removes if we are killed. */
#include "executor/doctor.h"

#include "common/fd-util.h"
#include "common/io-util.h"
#include "common/json.h"
#include "executor/cmd-run.h"
#include "executor/launcher-bwrap.h"
#include "executor/spawn.h"
#include "executor/state-dir.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#define RESULT_MAX 65536
#define VERSION_MS 1000

/* The object that run printed, or NULL. backend may be NULL: the first that there is. */
static JsonNode *run_true(const char *workspace, const char *backend)
{
	const char *const words[] = { "run",
				      "--json",
				      "--workspace",
				      workspace,
				      "--quiet",
				      backend ? "--backend" : "--",
				      backend ? backend : "true",
				      backend ? "--" : NULL,
				      "true",
				      NULL };
	g_auto(GStrv) argv = g_strdupv((char **)(uintptr_t)words);
	g_autofree char *text = NULL;
	FD_AUTO out = memfd_create("result", MFD_CLOEXEC);
	size_t size;
	pid_t pid;

	if (out < 0)
		return NULL;
	/* A process can run only once: it is a program of its own. */
	pid = fork();
	if (pid == 0) {
		(void)prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
		_exit(dup2(out, STDOUT_FILENO) < 0
			      ? 1
			      : exr_cmd_run((int)g_strv_length(argv), argv, environ));
	}
	while (pid > 0 && waitpid(pid, NULL, 0) < 0 && errno == EINTR)
		;
	if (pid < 0 || lseek(out, 0, SEEK_SET) < 0 ||
	    io_read_to_end(out, RESULT_MAX, &text, &size) < 0)
		return NULL;
	return json_from_string(text, (gssize)size);
}

static const char *get_text(JsonObject *object, const char *name)
{
	JsonNode *node = object ? json_object_get_member(object, name) : NULL;

	return json_node_get_string(node);
}

/* Whether it is for want of something of the host that nothing was run. */
static bool judge(JsonObject *result, ExrFinding *ret_finding)
{
	const char *ended = get_text(result, "ended");
	JsonNode *node = result ? json_object_get_member(result, "error") : NULL;
	JsonObject *error =
		node && JSON_NODE_HOLDS_OBJECT(node) ? json_node_get_object(node) : NULL;

	if (error)
		exr_finding_set(ret_finding, EXR_DOCTOR_MISSING, 0, get_text(error, "hint"), "%s",
				get_text(error, "message"));
	else if (g_strcmp0(ended, "exited") == 0 &&
		 json_object_get_int_member(result, "exit_code") == 0)
		return false;
	else
		exr_finding_set(ret_finding, EXR_DOCTOR_MISSING, 0, NULL,
				"a command that should succeed %s",
				ended ? ended : "gave no result");
	return g_strcmp0(get_text(error, "code"), "host-unsupported") == 0;
}

static bool try_backend(const char *workspace, const char *backend, ExrFinding *ret_finding)
{
	g_autoptr(JsonNode) result = run_true(workspace, backend);

	return judge(result && JSON_NODE_HOLDS_OBJECT(result) ? json_node_get_object(result) : NULL,
		     ret_finding);
}

/* A directory of ours as the workspace; or NULL with the finding. */
static ExrStateDir *make_workspace(ExrDoctorState otherwise, ExrFinding *ret_finding)
{
	ExrIdentity identity = exr_identity_choose(0);
	ExrStateDir *dir = NULL;
	ExrError error = { 0 };

	if (exr_state_dir_new(&identity, true, &dir, &error) < 0)
		exr_finding_set(ret_finding, otherwise, error.errnum, error.hint, "%s",
				error.message);
	exr_error_clear(&error);
	return dir;
}

void exr_probe_run(ExrFinding *ret_finding)
{
	g_autoptr(ExrStateDir) dir = make_workspace(EXR_DOCTOR_MISSING, ret_finding);
	g_autofree char *workspace = dir ? exr_state_dir_join(dir, "user") : NULL;
	ExrFinding best = { 0 };

	if (!dir)
		return;
	/* What run does by default. */
	if (!try_backend(workspace, "fsgate", &best)) {
		*ret_finding = best;
		return;
	}
	(void)try_backend(workspace, NULL, ret_finding);
	if (ret_finding->state == EXR_DOCTOR_OK)
		exr_finding_set(ret_finding, EXR_DOCTOR_DEGRADED, 0, best.remedy,
				"by bwrap, denials and changes not being known: %s", best.found);
	exr_finding_clear(&best);
}

/* The version that a bwrap says that it is; the caller frees. */
static char *version_of(const char *program)
{
	const char *const argv[] = { program, "--version", NULL };
	g_auto(GStrv) env = exr_spawn_env();
	ExrProcess process = EXR_NO_PROCESS;

	if (exr_spawn(program, argv, (const char *const *)env, -1, -1, &process) == 0)
		(void)exr_process_end(&process, VERSION_MS, VERSION_MS);
	return exr_doctor_take_stderr();
}

void exr_probe_bwrap(ExrFinding *ret_finding)
{
	const char *program = exr_find_bwrap();
	g_autofree char *version = NULL;
	g_autofree char *workspace = NULL;
	g_autoptr(ExrStateDir) dir = NULL;

	if (!program) {
		exr_finding_set_failed(ret_finding, EXR_DOCTOR_DEGRADED, "bwrap", ENOENT, "bwrap");
		return;
	}
	if (!(dir = make_workspace(EXR_DOCTOR_UNKNOWN, ret_finding)))
		return;
	workspace = exr_state_dir_join(dir, "user");
	version = version_of(program);
	(void)try_backend(workspace, "bwrap", ret_finding);
	if (ret_finding->state == EXR_DOCTOR_MISSING)
		ret_finding->state = EXR_DOCTOR_DEGRADED;
	else
		exr_finding_set(ret_finding, EXR_DOCTOR_OK, 0, NULL, "%s, %s", program, version);
}
