/* fail-nth [OPTION...] -- PROGRAM [ARG...]
 *
 * Runs a program of ours, follows it and whatever it starts by ptrace, and makes the Nth system call of one
 * of its parts fail, without the kernel having done anything (but a close, which always closes). Nothing is built in for this: it is the
 * programs that are shipped. Without --nth all calls of that part happen, and are listed.
 *
 *   --role ROLE      whose calls: supervisor, gateway-start, gateway, init-start, init, exec-init, child,
 *                    helper; a "-start" is the process before it executes its program, child the command's
 *                    before it does; everybody's when not given
 *   --call NAME      only calls of this name are counted
 *   --nth N          which one, from 1
 *   --errno NAME     how it fails (EPERM)
 *   --kill N         instead of --nth: the process gets SIGKILL at that call
 *   --stop N         or it gets SIGSTOP, for good
 *   --outlive S      how long what the program started may outlive it (2)
 *   --seconds S      after that everything is killed, which is told as "hang" (60)
 *   --report FILE    one line an event: "call ROLE N NAME ARG0 ARG1", "failed" likewise, "run" when the
 *                    command's process has executed it, "hang", and "left ROLE PID" for what outlives the
 *                    program by too long
 *
 * Exit status: the program's, 128 + n for a signal; 125 with a line on stderr for an own mistake, which
 * programs that are tested print too, but never one that begins with "fail-nth:".
 *
 * The command itself is let go as soon as it is one. Calls of threads count together, in the order they come in.
 * Calls that never fail are left alone: exit, umask, getpid and the like. */
#include "common/errno-util.h"

#include <elf.h>
#include <glib.h>
#include <seccomp.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

#define FAILED 125

typedef enum {
	SUPERVISOR,
	GATEWAY_START,
	GATEWAY,
	INIT_START,
	INIT,
	EXEC_INIT,
	CHILD,
	HELPER,
	_ROLE_N
} Role;

static const char *const role_names[_ROLE_N] = {
	[SUPERVISOR] = "supervisor",
	[GATEWAY_START] = "gateway-start",
	[GATEWAY] = "gateway",
	[INIT_START] = "init-start",
	[INIT] = "init",
	[EXEC_INIT] = "exec-init",
	[CHILD] = "child",
	[HELPER] = "helper",
};

typedef struct {
	Role role;
	bool counted; /* its calls are looked at */
	bool failing; /* inside the call that does not happen */
} Task;

typedef struct {
	Role role; /* _ROLE_N: everybody */
	int call;  /* -1: every one */
	unsigned int nth;
	int errnum;
	int signal; /* instead of a failure; or 0 */
	int outlive;
	FILE *report;

	GHashTable *tasks; /* pid to Task */
	pid_t root;
	char root_user_ns[64];
	unsigned int seen[_ROLE_N], seen_in_all;
	bool done; /* the call has failed: nobody is looked at any more */
	int status;
	bool ended;
} Tracer;

static _Noreturn void give_up(const char *what, int errnum)
{
	fprintf(stderr, "fail-nth: %s: %s\n", what, errno_text(errnum));
	exit(FAILED);
}

static void set_call_number(pid_t pid, long number)
{
#if defined __x86_64__
	(void)ptrace(PTRACE_POKEUSER, pid, offsetof(struct user_regs_struct, orig_rax), number);
#else
	int value = (int)number;
	struct iovec iov = { &value, sizeof value };

	(void)ptrace(PTRACE_SETREGSET, pid, NT_ARM_SYSTEM_CALL, &iov);
#endif
}

static void set_result(pid_t pid, long result)
{
#if defined __x86_64__
	(void)ptrace(PTRACE_POKEUSER, pid, offsetof(struct user_regs_struct, rax), result);
#else
	struct user_regs_struct regs;
	struct iovec iov = { &regs, sizeof regs };

	if (ptrace(PTRACE_GETREGSET, pid, NT_PRSTATUS, &iov) != 0)
		return;
	regs.regs[0] = (unsigned long)result;
	(void)ptrace(PTRACE_SETREGSET, pid, NT_PRSTATUS, &iov);
#endif
}

/* Of a process that is stopped. 0 when it is gone. */
static pid_t number_in_status(pid_t pid, const char *key)
{
	g_autofree char *path = g_strdup_printf("/proc/%d/status", (int)pid);
	g_autofree char *text = NULL;
	const char *at;

	if (!g_file_get_contents(path, &text, NULL, NULL) || !(at = strstr(text, key)))
		return 0;
	return (pid_t)strtol(at + strlen(key), NULL, 10);
}

static void read_user_ns(pid_t pid, char ret_text[static 64])
{
	g_autofree char *path = g_strdup_printf("/proc/%d/ns/user", (int)pid);
	ssize_t size = readlink(path, ret_text, 63);

	ret_text[size < 0 ? 0 : size] = '\0';
}

static Role role_of_new(const Tracer *tracer, pid_t pid)
{
	pid_t leader = number_in_status(pid, "\nTgid:");
	pid_t parent = leader == pid ? number_in_status(pid, "\nPPid:") : leader;
	const Task *task = g_hash_table_lookup(tracer->tasks, GINT_TO_POINTER(parent));
	char user_ns[64];

	if (!task)
		return HELPER;
	if (leader != pid)
		return task->role;
	switch (task->role) {
	case SUPERVISOR:
		read_user_ns(pid, user_ns);
		return strcmp(user_ns, tracer->root_user_ns) == 0 ? GATEWAY_START : INIT_START;
	case INIT:
		return EXEC_INIT;
	case EXEC_INIT:
		return CHILD;
	case GATEWAY_START:
	case GATEWAY:
	case INIT_START:
	case CHILD:
	case HELPER:
	case _ROLE_N:
		break;
	}
	return HELPER;
}

static void count(const Tracer *tracer, Task *task)
{
	task->counted = tracer->role == _ROLE_N || task->role == tracer->role;
}

static Task *ensure_task(Tracer *tracer, pid_t pid)
{
	Task *task = g_hash_table_lookup(tracer->tasks, GINT_TO_POINTER(pid));

	if (task)
		return task;
	task = g_new0(Task, 1);
	task->role = role_of_new(tracer, pid);
	count(tracer, task);
	g_hash_table_insert(tracer->tasks, GINT_TO_POINTER(pid), task);
	return task;
}

/* The ioctl that gives a process's namespaces is another call in all but its number. */
static char *name_of(const struct __ptrace_syscall_info *info)
{
	if (info->entry.nr == SYS_ioctl && (info->entry.args[1] >> 8 & 0xff) == 0xff)
		return strdup("ioctl-namespace");
	return seccomp_syscall_resolve_num_arch(SCMP_ARCH_NATIVE, (int)info->entry.nr);
}

static void report_call(Tracer *tracer, const char *event, const Task *task,
			const struct __ptrace_syscall_info *info)
{
	char *name = name_of(info);
	unsigned int n = tracer->role == _ROLE_N ? tracer->seen_in_all : tracer->seen[task->role];

	fprintf(tracer->report, "%s %s %u %s %" G_GINT64_MODIFIER "x %" G_GINT64_MODIFIER "x\n",
		event, role_names[task->role], n, name ? name : "unknown",
		(guint64)info->entry.args[0], (guint64)info->entry.args[1]);
	free(name);
}

/* Calls that have no failure which a program could see. */
static bool cannot_fail(long number)
{
	static const long calls[] = {
		SYS_exit,    SYS_exit_group, SYS_rt_sigreturn, SYS_futex,   SYS_umask,	SYS_getpid,
		SYS_getppid, SYS_gettid,     SYS_getuid,       SYS_geteuid, SYS_getgid, SYS_getegid,
	};

	for (size_t i = 0; i < G_N_ELEMENTS(calls); i++)
		if (number == calls[i])
			return true;
	return number < 0;
}

static void on_entry(Tracer *tracer, pid_t pid, Task *task,
		     const struct __ptrace_syscall_info *info)
{
	long number = (long)info->entry.nr;
	unsigned int n;

	if (cannot_fail(number) || (tracer->call >= 0 && number != tracer->call))
		return;
	tracer->seen_in_all++;
	tracer->seen[task->role]++;
	n = tracer->role == _ROLE_N ? tracer->seen_in_all : tracer->seen[task->role];
	if (tracer->nth == 0)
		report_call(tracer, "call", task, info);
	if (n != tracer->nth)
		return;
	report_call(tracer, "failed", task, info);
	tracer->done = true;
	if (tracer->signal) {
		(void)kill(pid, tracer->signal);
		(void)fflush(tracer->report);
		return;
	}
	/* A close that fails has closed all the same. */
	if (number != SYS_close)
		set_call_number(pid, -1);
	task->failing = true;
}

static void on_call(Tracer *tracer, pid_t pid, Task *task)
{
	struct __ptrace_syscall_info info;

	if (ptrace(PTRACE_GET_SYSCALL_INFO, pid, sizeof info, &info) <= 0)
		return;
	if (info.op == PTRACE_SYSCALL_INFO_ENTRY && task->counted && !tracer->done) {
		on_entry(tracer, pid, task, &info);
	} else if (info.op == PTRACE_SYSCALL_INFO_EXIT && task->failing) {
		set_result(pid, -tracer->errnum);
		task->failing = false;
	}
}

/* false: it is the command now, and no longer ours. */
static bool on_exec(Tracer *tracer, pid_t pid, Task *task)
{
	switch (task->role) {
	case GATEWAY_START:
		task->role = GATEWAY;
		break;
	case INIT_START:
		task->role = INIT;
		break;
	case CHILD:
		fputs("run\n", tracer->report);
		(void)ptrace(PTRACE_DETACH, pid, NULL, NULL);
		g_hash_table_remove(tracer->tasks, GINT_TO_POINTER(pid));
		return false;
	case SUPERVISOR:
	case GATEWAY:
	case INIT:
	case EXEC_INIT:
	case HELPER:
	case _ROLE_N:
		break;
	}
	count(tracer, task);
	return true;
}

/* A fault of its own ends a process 1 too, but not one that is traced: that one would fault for ever. */
static bool is_fault_of_first(const Task *task, int sig)
{
	return (task->role == INIT || task->role == EXEC_INIT) &&
	       (sig == SIGSEGV || sig == SIGILL || sig == SIGBUS || sig == SIGFPE);
}

static void on_stop(Tracer *tracer, pid_t pid, int status)
{
	Task *task = ensure_task(tracer, pid);
	int event = status >> 16, sig = WSTOPSIG(status);
	bool looked_at;

	if (sig == (SIGTRAP | 0x80)) {
		on_call(tracer, pid, task);
		sig = 0;
	} else if (event == PTRACE_EVENT_EXEC) {
		if (!on_exec(tracer, pid, task))
			return;
		sig = 0;
	} else if (event == PTRACE_EVENT_STOP &&
		   (sig == SIGSTOP || sig == SIGTSTP || sig == SIGTTIN || sig == SIGTTOU)) {
		(void)ptrace(PTRACE_LISTEN, pid, NULL, NULL);
		return;
	} else if (event) {
		sig = 0;
	} else if (is_fault_of_first(task, sig)) {
		(void)kill(pid, SIGKILL);
	}
	/* A process that has not executed yet may become one that counts: only its calls are not stopped at. */
	looked_at = task->failing || (task->counted && !tracer->done);
	(void)ptrace(looked_at ? PTRACE_SYSCALL : PTRACE_CONT, pid, NULL, (long)sig);
}

static void on_end(Tracer *tracer, pid_t pid, int status)
{
	g_hash_table_remove(tracer->tasks, GINT_TO_POINTER(pid));
	if (pid != tracer->root)
		return;
	tracer->ended = true;
	tracer->status = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

static void report_left(Tracer *tracer)
{
	GHashTableIter iter;
	void *pid, *task;

	g_hash_table_iter_init(&iter, tracer->tasks);
	while (g_hash_table_iter_next(&iter, &pid, &task)) {
		fprintf(tracer->report, "left %s %d\n", role_names[((Task *)task)->role],
			GPOINTER_TO_INT(pid));
		(void)kill(GPOINTER_TO_INT(pid), SIGKILL);
	}
}

/* SIGALRM interrupts the wait; it is blocked otherwise. */
static void nothing(int sig)
{
	(void)sig;
}

static void follow(Tracer *tracer, unsigned int seconds)
{
	struct sigaction action = { .sa_handler = nothing };

	(void)sigaction(SIGALRM, &action, NULL);
	(void)alarm(seconds);
	while (g_hash_table_size(tracer->tasks) > 0) {
		bool had_ended = tracer->ended;
		int status;
		pid_t pid = waitpid(-1, &status, __WALL);

		if (pid < 0 && errno == EINTR) {
			if (!tracer->ended) {
				fputs("hang\n", tracer->report);
				(void)kill(tracer->root, SIGKILL);
				tracer->status = FAILED;
			}
			report_left(tracer);
			return;
		}
		if (pid < 0)
			return;
		if (WIFSTOPPED(status))
			on_stop(tracer, pid, status);
		else
			on_end(tracer, pid, status);
		if (tracer->ended && !had_ended)
			(void)alarm((unsigned int)tracer->outlive);
	}
}

static void start(Tracer *tracer, char **argv)
{
	const long options = PTRACE_O_TRACESYSGOOD | PTRACE_O_TRACEFORK | PTRACE_O_TRACEVFORK |
			     PTRACE_O_TRACECLONE | PTRACE_O_TRACEEXEC | PTRACE_O_EXITKILL;
	Task *task = g_new0(Task, 1);
	int go[2];
	char byte;

	if (pipe(go) != 0)
		give_up("pipe", errno);
	tracer->root = fork();
	if (tracer->root < 0)
		give_up("fork", errno);
	if (tracer->root == 0) {
		(void)close(go[1]);
		(void)!read(go[0], &byte, 1);
		(void)close(go[0]);
		execvp(argv[0], argv);
		give_up(argv[0], errno);
	}
	(void)close(go[0]);
	if (ptrace(PTRACE_SEIZE, tracer->root, NULL, options) != 0)
		give_up("ptrace", errno);
	read_user_ns(tracer->root, tracer->root_user_ns);
	/* Counted from its execve on, which is the first stop. */
	task->role = SUPERVISOR;
	g_hash_table_insert(tracer->tasks, GINT_TO_POINTER(tracer->root), task);
	(void)close(go[1]);
}

static int parse_errno(const char *text)
{
	for (int errnum = 1; errnum < 134; errnum++)
		if (strcmp(errno_name(errnum), text) == 0)
			return errnum;
	fprintf(stderr, "fail-nth: %s: no such errno\n", text);
	exit(FAILED);
}

static Role parse_role(const char *text)
{
	for (Role role = 0; role < _ROLE_N; role++)
		if (strcmp(role_names[role], text) == 0)
			return role;
	fprintf(stderr, "fail-nth: %s: no such role\n", text);
	exit(FAILED);
}

int main(int argc, char **argv)
{
	g_autofree char *role = NULL, *call = NULL, *error = NULL, *report = NULL;
	int nth = 0, kill_at = 0, stop_at = 0, seconds = 60, outlive = 2;
	const GOptionEntry entries[] = {
		{ "role", 0, 0, G_OPTION_ARG_STRING, &role, "whose calls", "ROLE" },
		{ "call", 0, 0, G_OPTION_ARG_STRING, &call, "which calls", "NAME" },
		{ "nth", 0, 0, G_OPTION_ARG_INT, &nth, "which of them fails", "N" },
		{ "errno", 0, 0, G_OPTION_ARG_STRING, &error, "how", "NAME" },
		{ "kill", 0, 0, G_OPTION_ARG_INT, &kill_at, "where it is killed", "N" },
		{ "stop", 0, 0, G_OPTION_ARG_INT, &stop_at, "where it stops", "N" },
		{ "outlive", 0, 0, G_OPTION_ARG_INT, &outlive, "for others", "S" },
		{ "seconds", 0, 0, G_OPTION_ARG_INT, &seconds, "the most that it takes", "S" },
		{ "report", 0, 0, G_OPTION_ARG_FILENAME, &report, "what happened", "FILE" },
		{ 0 },
	};
	g_autoptr(GOptionContext) context = g_option_context_new("-- PROGRAM [ARG...]");
	g_autoptr(GError) mistake = NULL;
	Tracer tracer = { .role = _ROLE_N, .call = -1, .status = FAILED };
	char **program;

	g_option_context_add_main_entries(context, entries, NULL);
	g_option_context_set_strict_posix(context, TRUE);
	if (!g_option_context_parse(context, &argc, &argv, &mistake) || argc < 2 || nth < 0) {
		fprintf(stderr, "fail-nth: %s\n",
			mistake ? mistake->message : "see fail-nth --help");
		return FAILED;
	}
	program = argv + (strcmp(argv[1], "--") == 0 ? 2 : 1);
	if (!*program)
		return FAILED;
	tracer.role = role ? parse_role(role) : _ROLE_N;
	tracer.call = call ? seccomp_syscall_resolve_name(call) : -1;
	tracer.errnum = error ? parse_errno(error) : EPERM;
	tracer.nth = (unsigned int)(kill_at > 0 ? kill_at : stop_at > 0 ? stop_at : nth);
	tracer.signal = kill_at > 0 ? SIGKILL : stop_at > 0 ? SIGSTOP : 0;
	tracer.outlive = outlive;
	tracer.report = report ? fopen(report, "we") : stderr;
	if (!tracer.report || (call && tracer.call < 0))
		give_up(call ? call : report, call ? EINVAL : errno);
	tracer.tasks = g_hash_table_new_full(NULL, NULL, NULL, g_free);
	start(&tracer, program);
	follow(&tracer, (unsigned int)seconds);
	g_hash_table_destroy(tracer.tasks);
	return fflush(tracer.report) == 0 ? tracer.status : FAILED;
}
