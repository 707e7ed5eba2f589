/* The command line of bwrap, and the process that becomes it; see launcher-bwrap.h.
 *
 * bwrap takes sources by path, also those that are given by fd (it looks the path up and compares). An ordinary user's
 * are /proc/self/fd/N. Root's bwrap is started as the sandbox's user, who may not walk to them: there they are
 * attached below /tmp of a mount namespace of bwrap's own first (bwrap-stage.h), all of which is one source. Either way
 * init compares what it finds with what we opened.
 *
 * bwrap must not make the second user namespace that it makes for a devpts, for init's power over mounts would end at
 * it: so /dev is init's, from the host's devices. It gets all capabilities of the one that it makes, and hands them on
 * to init, which uses them up as it does elsewhere.
 *
 * No --die-with-parent: that is the death of the thread that started it. Init dies when its socket ends, and bwrap with
 * it. */
#include "executor/launcher-bwrap.h"

#include "common/errno-util.h"
#include "common/fd-util.h"
#include "common/io-util.h"
#include "common/program-path.h"
#include "common/syscall-wrap.h"
#include "executor/bwrap-stage.h"
#include "executor/launcher.h"
#include "executor/native-source.h"
#include "executor/packet.h"
#include "executor/sandbox-plan-native.h"
#include "executor/stage.h"

#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#define STAGE	"bwrap"
#define HIGH_FD 10
#define GO_MS	60000

/* All of it made before the clone; fds are HIGH_FD and above. */
typedef struct {
	const ExrIdentity *identity;
	const char *program;
	char **argv;
	char **env;
	ExrBwrapStage *stage; /* NULL: the sources are passed on by fd */
	int *sources;
	unsigned int source_count;
	int socket;
	int messages;
	int go; /* readable once it is in its cgroup */
} Start;

const char *exr_find_bwrap(void)
{
	static const char *const places[] = { "/usr/bin/bwrap", "/bin/bwrap",
					      "/usr/local/bin/bwrap" };

	for (size_t i = 0; i < G_N_ELEMENTS(places); i++)
		if (access(places[i], X_OK) == 0)
			return places[i];
	return NULL;
}

static void add(GPtrArray *argv, const char *word)
{
	g_ptr_array_add(argv, g_strdup(word));
}

static void add3(GPtrArray *argv, const char *option, const char *from, const char *to)
{
	add(argv, option);
	add(argv, from);
	add(argv, to);
}

static void add_namespaces(GPtrArray *argv, const ExrBwrapLaunch *launch)
{
	g_autofree char *id = g_strdup_printf("%u", launch->identity->inside);
	static const char *const words[] = { "--unshare-user",	 "--unshare-pid",
					     "--unshare-ipc",	 "--unshare-uts",
					     "--unshare-cgroup", "--as-pid-1",
					     "--cap-add",	 "ALL" };

	for (size_t i = 0; i < G_N_ELEMENTS(words); i++)
		add(argv, words[i]);
	if (launch->own_network)
		add(argv, "--unshare-net");
	add(argv, "--uid");
	add(argv, id);
	add(argv, "--gid");
	add(argv, id);
}

/* Init's devices, a /proc that lets it mount others, and what a dynamically linked init needs. */
static void add_host(GPtrArray *argv)
{
	static const char *const devices[] = { "/dev/null",   "/dev/zero",    "/dev/full",
					       "/dev/random", "/dev/urandom", "/dev/tty" };

	add(argv, "--proc");
	add(argv, "/proc");
	for (size_t i = 0; i < G_N_ELEMENTS(devices); i++)
		add3(argv, "--dev-bind", devices[i], devices[i]);
#ifndef STELLA_INIT_STATIC
	static const char *const libraries[] = { "/usr",   "/bin",   "/lib",
						 "/lib32", "/lib64", "/etc/ld.so.cache" };

	for (size_t i = 0; i < G_N_ELEMENTS(libraries); i++)
		add3(argv, "--ro-bind-try", libraries[i], libraries[i]);
#endif
}

static void add_sources(GPtrArray *argv, const Start *start, const GArray *sources)
{
	if (start->stage) {
		add3(argv, "--bind", exr_bwrap_stage_path(start->stage), EXR_NATIVE_SOURCES);
		return;
	}
	for (unsigned int i = 0; i < start->source_count; i++) {
		g_autofree char *to = i < sources->len
					      ? g_strdup_printf(EXR_NATIVE_SOURCES "/%u", i)
					      : g_strdup(EXR_NATIVE_SOURCES "/" EXR_NATIVE_INIT);
		char from[FD_PROC_PATH_SIZE];

		fd_proc_path(start->sources[i], from);
		add3(argv,
		     i < sources->len && !exr_source(sources, i)->read_only ? "--bind"
									    : "--ro-bind",
		     from, to);
	}
}

static char **make_argv(const ExrBwrapLaunch *launch, const Start *start)
{
	GPtrArray *argv = g_ptr_array_new();

	add(argv, "bwrap");
	add_namespaces(argv, launch);
	add_host(argv);
	add(argv, "--dir");
	add(argv, EXR_NATIVE_FILES);
	add(argv, "--dir");
	add(argv, EXR_NATIVE_ROOT);
	add_sources(argv, start, launch->sources);
	add(argv, "--");
	add(argv, EXR_NATIVE_SOURCES "/" EXR_NATIVE_INIT);
	g_ptr_array_add(argv, NULL);
	return (char **)g_ptr_array_free(argv, FALSE);
}

static int high_copy(int fd)
{
	int copy = fcntl(fd, F_DUPFD_CLOEXEC, HIGH_FD);

	return copy < 0 ? -errno : copy;
}

/* From here to execve: system calls only, with all signals blocked. */

static int take_fds(const Start *start)
{
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);
	int high = null < 0 ? -1 : fcntl(null, F_DUPFD_CLOEXEC, HIGH_FD);
	int r;

	if (high < 0 || dup2(high, STDIN_FILENO) < 0 || dup2(start->messages, STDOUT_FILENO) < 0 ||
	    dup2(start->messages, STDERR_FILENO) < 0 || dup2(start->socket, WIRE_INIT_FD) < 0)
		return -errno;
	if ((r = sys_close_range(WIRE_INIT_FD + 1, ~0u, CLOSE_RANGE_CLOEXEC)) < 0)
		return r;
	for (unsigned int i = 0; !start->stage && i < start->source_count; i++)
		if ((r = fd_set_cloexec(start->sources[i], false)) < 0)
			return r;
	return 0;
}

/* The raw calls: libc's would tell threads that are not here. */
static int become_user(const ExrIdentity *identity)
{
	uid_t uid = identity->outside_uid;
	gid_t gid = identity->outside_gid;

	if (!identity->lent)
		return 0;
	if (sys_setgroups(0, NULL) < 0 || syscall(SYS_setresgid, gid, gid, gid) != 0 ||
	    syscall(SYS_setresuid, uid, uid, uid) != 0)
		return -errno;
	return 0;
}

static _Noreturn void fail(const Start *start, int r)
{
	WireMessage message = {
		.type = WIRE_FAILED, .stage = EXR_STAGE_START_INIT, .errnum = -r, .value = -1
	};

	(void)packet_send(start->socket, &message, NULL, 0);
	_exit(127);
}

static _Noreturn void child(const Start *start)
{
	char byte;
	int r;

	sys_clone3_alone();
	/* The end of file: it could not be put into its cgroup, or the supervisor is gone. */
	if (read(start->go, &byte, 1) != 1)
		_exit(127);
	if (setsid() < 0)
		fail(start, -errno);
	if ((r = exr_launch_be_ordinary()) < 0 ||
	    (start->stage && (r = exr_bwrap_stage_mount(start->stage)) < 0) ||
	    (r = take_fds(start)) < 0 || (r = become_user(start->identity)) < 0)
		fail(start, r);
	if ((r = exr_signals_to_default()) < 0)
		fail(start, r);
	execve(start->program, start->argv, start->env);
	fail(start, -errno);
}

static int cannot_start(int r, const char *what, ExrError *error)
{
	return exr_error_set(error, "host-unsupported", STAGE, -r, "cannot start bwrap: %s: %s",
			     what, errno_text(-r));
}

/* Copies of all sources and init's own file. */
static int take_sources(const ExrBwrapLaunch *launch, Start *start, ExrError *error)
{
	g_autofree char *path = program_path("stella-sandbox-init");
	FD_AUTO init = open(path, O_PATH | O_CLOEXEC);

	if (init < 0)
		return cannot_start(-errno, "stella-sandbox-init", error);
	start->source_count = launch->sources->len + 1;
	start->sources = g_new(int, start->source_count);
	for (unsigned int i = 0; i < start->source_count; i++)
		start->sources[i] = -1;
	for (unsigned int i = 0; i < start->source_count; i++) {
		int fd = i < launch->sources->len ? exr_source(launch->sources, i)->fd : init;
		int copy = high_copy(fd);

		if (copy < 0)
			return cannot_start(copy, "descriptors", error);
		start->sources[i] = copy;
	}
	if (!launch->identity->lent)
		return 0;
	return exr_bwrap_stage_new(launch->sources, init, launch->identity, &start->stage, error);
}

static void clear(Start *start)
{
	for (unsigned int i = 0; start->sources && i < start->source_count; i++)
		fd_close(&start->sources[i]);
	g_free(start->sources);
	exr_bwrap_stage_free(start->stage);
	g_strfreev(start->argv);
	g_strfreev(start->env);
	fd_close(&start->socket);
	fd_close(&start->messages);
	fd_close(&start->go);
}

static int send_plan(int socket, int plan_fd)
{
	WireMessage plan = { .type = WIRE_PLAN };
	int r = packet_send(socket, &plan, &plan_fd, 1);

	/* Whoever has failed by now has said why. */
	return r == -EPIPE ? 0 : r;
}

/* Clones it, puts it under the limits and lets it go. */
static int start_process(const ExrBwrapLaunch *launch, Start *start, ExrProcess *ret_process,
			 ExrError *error)
{
	ExrProcess process = EXR_NO_PROCESS;
	FD_AUTO go = -1;
	sigset_t mask;
	int pipe_fds[2], r;

	if (pipe2(pipe_fds, O_CLOEXEC) != 0)
		return cannot_start(-errno, "pipe", error);
	go = pipe_fds[1];
	start->go = pipe_fds[0];
	exr_signals_block_all(&mask);
	process.pid = sys_clone3_into(exr_session_limits_clone_fd(launch->limits), CLONE_PIDFD,
				      SIGCHLD, &process.pidfd);
	if (process.pid == 0) {
		fd_close(&go);
		child(start);
	}
	exr_signals_restore(&mask);
	if (exr_launch_is_refused_by_cgroup(launch->limits, process.pid))
		return exr_launch_cannot_limit(process.pid, error);
	if (process.pid < 0)
		return cannot_start((int)process.pid, "process", error);
	if ((r = exr_session_limits_add(launch->limits, process.pid)) < 0) {
		(void)exr_process_end(&process, 0, 2000);
		return exr_launch_cannot_limit(r, error);
	}
	if ((r = (int)io_write_without_sigpipe(go, "g", 1)) < 0) {
		(void)exr_process_end(&process, 0, 2000);
		return cannot_start(r, "pipe", error);
	}
	*ret_process = process;
	return 0;
}

int exr_bwrap_launch(const ExrBwrapLaunch *launch, int *ret_socket, ExrProcess *ret_monitor,
		     int *ret_messages, ExrError *reterr_error)
{
	Start start = { .identity = launch->identity,
			.program = exr_find_bwrap(),
			.socket = -1,
			.messages = -1,
			.go = -1 };
	ExrProcess process = EXR_NO_PROCESS;
	FD_AUTO ours = -1;
	FD_AUTO theirs = -1;
	FD_AUTO messages = memfd_create("bwrap", MFD_CLOEXEC);
	int pair[2], r;

	if (!start.program)
		return cannot_start(-ENOENT, "bwrap", reterr_error);
	if (messages < 0)
		return cannot_start(-errno, "memfd", reterr_error);
	if ((r = exr_socketpair(SOCK_SEQPACKET, pair)) < 0)
		return cannot_start(r, "socket", reterr_error);
	ours = pair[0];
	theirs = pair[1];
	start.socket = high_copy(theirs);
	start.messages = high_copy(messages);
	fd_close(&theirs);
	r = take_sources(launch, &start, reterr_error);
	if (r == 0) {
		start.env = exr_spawn_env();
		start.argv = make_argv(launch, &start);
		r = start_process(launch, &start, &process, reterr_error);
	}
	clear(&start);
	if (r < 0)
		return r;
	if ((r = send_plan(ours, launch->plan_fd)) < 0) {
		(void)exr_process_end(&process, 0, 2000);
		return cannot_start(r, "plan", reterr_error);
	}
	*ret_socket = fd_steal(&ours);
	*ret_messages = fd_steal(&messages);
	*ret_monitor = process;
	return 0;
}
