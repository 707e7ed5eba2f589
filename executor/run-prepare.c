/* From arguments to a command and its policy; see run.h. Files that the caller names are opened here:
 * one that is missing is an error before anything runs, and while they are opened (a FIFO may block)
 * a signal still ends the program. */
#include "executor/run.h"

#include "common/errno-util.h"
#include "common/fd-util.h"
#include "common/io-util.h"
#include "common/limits.h"
#include "common/path-util.h"
#include "common/syscall-wrap.h"
#include "executor/script.h"
#include "executor/shell.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static int fail_request(ExrRun *run, int errnum, const char *message)
{
	int r = exr_error_set(&run->error, "request-invalid", "options", errnum, "%s", message);

	exr_error_set_hint(&run->error, "see stella-exec %s --help",
			   run->is_shell ? "shell"
			   : run->is_sh	 ? "sh"
					 : "run");
	return r;
}

/* The command that `sh -` reads from our own stdin. */
static int read_script(ExrRun *run, char **ret_text)
{
	size_t size;
	int r = io_read_to_end(STDIN_FILENO, LIMIT_EXEC_PAYLOAD_BYTES, ret_text, &size);

	if (r < 0)
		return exr_error_set(&run->error, "request-invalid", "options", -r,
				     "standard input: %s", errno_text(-r));
	if (strlen(*ret_text) != size)
		return fail_request(run, 0, "standard input: a command cannot hold a NUL byte");
	return 0;
}

static int take_sh_command(ExrRun *run)
{
	g_autofree char *text = NULL;
	char **rest = run->options.rest;
	int r;

	if (!rest[0] || rest[1])
		return fail_request(run, 0,
				    rest[0] ? "more than one command string; quote the command"
					    : "no command given");
	if (strcmp(rest[0], "-") != 0) {
		run->argv = exr_script_argv(rest[0]);
		return 0;
	}
	if (g_strcmp0(run->options.stdin_path, "-") == 0)
		return fail_request(run, 0, "--stdin: the command itself is read from there");
	r = read_script(run, &text);
	if (r == 0)
		run->argv = exr_script_argv(text);
	return r;
}

static int take_shell(ExrRun *run)
{
	if (run->options.rest[0])
		return fail_request(run, 0, "shell takes no command; sh runs one");
	if (run->options.json)
		return fail_request(run, 0,
				    "--json: a shell is for a person; sh --json runs a command");
	run->argv = exr_shell_argv();
	exr_shell_add_env(run->options.env);
	return 0;
}

static int take_command(ExrRun *run)
{
	if (run->is_shell)
		return take_shell(run);
	if (run->is_sh)
		return take_sh_command(run);
	if (!run->options.rest[0])
		return fail_request(run, 0, "no program given");
	run->argv = g_strdupv(run->options.rest);
	return 0;
}

static int make_policy(ExrRun *run)
{
	g_autofree char *message = NULL;
	const char *backend = policy_options_backend(run->options.policy);
	int r = policy_options_finish(run->options.policy, &run->policy, &message);

	if (r < 0)
		return exr_error_set_policy(&run->error, r, message);
	run->backend = backend ? exr_backend_find(backend) : NULL;
	if (backend && !run->backend) {
		g_autofree char *shown = path_escape(backend);
		g_autofree char *wrong =
			g_strdup_printf("--backend \"%s\": expected " EXR_BACKEND_NAMES, shown);

		return fail_request(run, 0, wrong);
	}
	/* What fsgate does not support, none does that is taken by default. */
	return (run->backend ? run->backend : &exr_backend_fsgate)
		->supported(run->policy, &run->error);
}

/* The part of a path below a directory that commands may write to, which is opened as *ret_dir; or NULL. */
static const char *below_writable(const ExrRun *run, const char *path, int *ret_dir)
{
	const GPtrArray *mounts = run->policy->mounts;

	for (unsigned int i = 0; i < mounts->len; i++) {
		const PolicyMount *mount = mounts->pdata[i];

		if (mount->access != STELLA_MOUNT_READ_ONLY &&
		    path_is_below(path, mount->host_path) && strcmp(path, mount->host_path) != 0) {
			*ret_dir = open(mount->host_path, O_PATH | O_CLOEXEC);
			return path_below(path, mount->host_path);
		}
	}
	return NULL;
}

/* What lies in a directory that commands write to may be a link that one of them has planted, and would be
 * followed with our rights. */
static int open_input(const ExrRun *run, const char *path)
{
	g_autofree char *current = g_get_current_dir();
	g_autofree char *clean = path_clean_from(current, path);
	FD_AUTO dir = -1;
	const char *below = below_writable(run, clean, &dir);
	int fd;

	if (below && dir >= 0)
		return sys_openat2(dir, below, O_RDONLY | O_CLOEXEC | O_NOCTTY, 0,
				   RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS);
	fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
	return fd < 0 ? -errno : fd;
}

/* Input: --stdin, or ours when the command runs live and `sh -` has not used it up. */
static int open_stdin(ExrRun *run)
{
	const char *path = run->options.stdin_path;
	bool used_up = run->is_sh && strcmp(run->options.rest[0], "-") == 0;
	FD_AUTO fd = -1;
	struct stat st;
	int errnum = 0;

	if (!path) {
		run->stdin_fd = run->options.json || used_up ? -1 : STDIN_FILENO;
		return 0;
	}
	if (strcmp(path, "-") == 0) {
		run->stdin_fd = STDIN_FILENO;
		return 0;
	}
	fd = open_input(run, path);
	if (fd < 0)
		errnum = -fd;
	else if (fstat(fd, &st) < 0)
		errnum = errno;
	else if (S_ISDIR(st.st_mode))
		errnum = EISDIR;
	if (errnum) {
		g_autofree char *shown = path_escape(path);

		return exr_error_set(&run->error, "request-invalid", "options", errnum,
				     "--stdin \"%s\": %s", shown, errno_text(errnum));
	}
	run->stdin_fd = fd_steal(&fd);
	return 0;
}

int exr_run_open_result_file(ExrRun *run, char **reterr_message)
{
	const char *path = g_steal_pointer(&run->options.result_path);

	return path ? exr_result_file_open(path, &run->result_file, reterr_message) : 0;
}

static int open_result_file(ExrRun *run)
{
	g_autofree char *message = NULL;
	int r = exr_run_open_result_file(run, &message);

	if (r < 0)
		return exr_error_set(&run->error, "request-invalid", "options", -r, "--result %s",
				     message);
	return 0;
}

int exr_run_prepare(ExrRun *run, int argc, char **argv)
{
	g_autofree char *message = NULL;
	int r = exr_run_options_parse(argc, argv, run->host_env, &run->options, &message);

	if (r < 0)
		return fail_request(run, 0, message);
	if (run->options.wants_help)
		return 0;
	r = make_policy(run);
	if (r == 0)
		r = take_command(run);
	if (r == 0)
		r = open_result_file(run);
	if (r == 0)
		r = open_stdin(run);
	run->tty = run->options.tty ||
		   (run->is_shell && run->stdin_fd == STDIN_FILENO && isatty(STDIN_FILENO));
	return r;
}
