/* See mini-session.h. The "init" is the first process in the namespaces of the view, made by the test before anything
 * else is there, which forks the execs when it is told so: functions are where they are in the test, as it is the same program. */
#include "mini-session.h"

#include "common/control.h"
#include "common/io-util.h"
#include "common/program-path.h"
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#define PATIENCE_MS 20000

struct MiniSession {
	char *dir;
	ControlSocket *control; /* with the gateway */
	ControlSocket *init;	/* with init */
	pid_t gateway, init_pid;
	gint64 id;
};

struct MiniExec {
	MiniSession *session;
	ControlSocket *supervisor; /* tells of its start and end */
	int peer;
	gint64 exec, pid_namespace;
	pid_t pid; /* in our namespace of pids */
	gboolean killed, ended;
};

/* --- in the namespaces --- */

static void send_number(ControlSocket *socket, const char *name, gint64 number, int fd)
{
	JsonObject *object = json_object_new();

	json_object_set_int_member(object, name, number);
	if (control_socket_send(socket, object, fd) < 0)
		_exit(1);
}

/* Not fork() and unshare(): a process with threads, as ThreadSanitizer makes one of each, may not leave its user
 * namespace. */
static pid_t clone_into(unsigned long namespaces)
{
	return (pid_t)syscall(SYS_clone, namespaces | SIGCHLD, NULL, NULL, NULL, NULL);
}

/* The parent of an exec's first process, which it has made in a namespace of its own. */
static G_GNUC_NORETURN void supervise(MiniBody body, const char *root, int fd)
{
	ControlSocket *socket = control_socket_new(fd);
	char path[64];
	int peer[2], status = -1;
	struct stat st;
	pid_t pid;

	if (chdir(root) != 0 || socketpair(AF_UNIX, SOCK_STREAM, 0, peer) != 0)
		_exit(1);
	pid = clone_into(CLONE_NEWPID);
	if (pid == 0) {
		char go;

		prctl(PR_SET_PDEATHSIG, SIGKILL);
		close(fd);
		close(peer[0]);
		if (read(peer[1], &go, 1) != 1)
			_exit(1);
		body(peer[1]);
		_exit(0);
	}
	close(peer[1]);
	snprintf(path, sizeof path, "/proc/%d/ns/pid", (int)pid);
	if (pid < 0 || stat(path, &st) != 0)
		_exit(1);
	send_number(socket, "namespace", (gint64)st.st_ino, peer[0]);
	close(peer[0]);
	if (waitpid(pid, &status, 0) != pid)
		_exit(1);
	send_number(socket, "status", status, -1);
	_exit(0);
}

static void serve_init(ControlSocket *socket, const char *root)
{
	JsonObject *request;
	int fd;

	signal(SIGCHLD, SIG_IGN);
	while (control_socket_receive(socket, -1, &request, &fd) == 0) {
		uintptr_t body = (uintptr_t)json_object_get_int_member(request, "run");

		json_object_unref(request);
		if (fork() == 0) {
			signal(SIGCHLD, SIG_DFL);
			close(control_socket_fd(socket));
			supervise((MiniBody)body, root, fd);
		}
		close(fd);
	}
}

static G_GNUC_NORETURN void run_init(ControlSocket *socket, const char *dir)
{
	g_autofree char *root = g_build_filename(dir, "root", NULL);
	g_autofree char *options = NULL;
	int device = open("/dev/fuse", O_RDWR | O_CLOEXEC), tasks;
	char go;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	/* the other end writes the maps meanwhile */
	if (recv(control_socket_fd(socket), &go, 1, 0) != 1)
		_exit(1);
	options = g_strdup_printf("fd=%d,rootmode=40000,user_id=0,group_id=0", device);
	if (device < 0 || mount(NULL, "/", NULL, MS_REC | MS_SLAVE, NULL) != 0 ||
	    mount("proc", "/proc", "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC, NULL) != 0 ||
	    mount("mini", root, "fuse", MS_NOSUID | MS_NODEV, options) != 0 ||
	    (tasks = open("/proc", O_PATH | O_DIRECTORY | O_CLOEXEC)) < 0) {
		perror("mini-session");
		_exit(1);
	}
	send_number(socket, "device", 0, device);
	send_number(socket, "tasks", 0, tasks);
	close(device);
	close(tasks);
	serve_init(socket, root);
	_exit(0);
}

/* --- the session --- */

static JsonObject *receive(ControlSocket *socket, int *ret_fd)
{
	JsonObject *object = NULL;

	assert_int_equal(control_socket_receive(socket, PATIENCE_MS, &object, ret_fd), 0);
	assert_non_null(object);
	return object;
}

static int receive_fd(ControlSocket *socket, const char *name)
{
	g_autoptr(JsonObject) object = NULL;
	int fd = -1;

	object = receive(socket, &fd);
	assert_true(json_object_has_member(object, name));
	assert_true(fd >= 0);
	return fd;
}

static ControlSocket *socket_pair(int *ret_other)
{
	int pair[2];

	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
	*ret_other = pair[1];
	return control_socket_new(pair[0]);
}

static void write_map(pid_t pid, const char *name, const char *text)
{
	g_autofree char *path = g_strdup_printf("/proc/%d/%s", (int)pid, name);
	int fd = open(path, O_WRONLY | O_CLOEXEC);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, strlen(text)), (ssize_t)strlen(text));
	close(fd);
}

static void start_init(MiniSession *session)
{
	g_autofree char *uid_map = g_strdup_printf("0 %u 1", geteuid());
	g_autofree char *gid_map = g_strdup_printf("0 %u 1", getegid());
	int other;

	session->init = socket_pair(&other);
	session->init_pid = clone_into(CLONE_NEWUSER | CLONE_NEWNS | CLONE_NEWPID);
	assert_true(session->init_pid >= 0);
	if (session->init_pid == 0) {
		close(control_socket_fd(session->init));
		run_init(control_socket_new(other), session->dir);
	}
	close(other);
	write_map(session->init_pid, "setgroups", "deny");
	write_map(session->init_pid, "uid_map", uid_map);
	write_map(session->init_pid, "gid_map", gid_map);
	assert_int_equal(send(control_socket_fd(session->init), "", 1, 0), 1);
}

static void start_gateway(MiniSession *session)
{
	g_autofree char *program = program_path("stella-fsgate");
	int other;

	session->control = socket_pair(&other);
	session->gateway = fork();
	assert_true(session->gateway >= 0);
	if (session->gateway == 0) {
		g_autofree char *number = g_strdup_printf("%d", other);

		prctl(PR_SET_PDEATHSIG, SIGKILL);
		(void)fcntl(other, F_SETFD, 0);
		execl(program, "stella-fsgate", "serve", "--control-fd", number, (char *)NULL);
		_exit(127);
	}
	close(other);
}

static JsonObject *policy_of(const MiniSession *session, const char *mounts)
{
	g_auto(GStrv) parts = g_strsplit(mounts, "%s", -1);
	g_autofree char *rows = g_strjoinv(session->dir, parts);
	g_autofree char *text = g_strdup_printf(
		"{\"version\": 1, \"filesystem\": {\"working_dir\": \"/workspace\", "
		"\"runtime\": \"none\", \"mounts\": [%s]}}",
		rows);
	g_autoptr(JsonNode) root = json_from_string(text, -1);

	assert_non_null(root);
	return json_node_dup_object(root);
}

static void send_object(ControlSocket *socket, JsonObject *take_object, int fd)
{
	assert_int_equal(control_socket_send(socket, take_object, fd), 0);
}

static void send_start(MiniSession *session, const char *mounts)
{
	JsonObject *start = json_object_new(), *message = json_object_new();
	g_autofree char *state = mini_session_path(session, "state");

	json_object_set_string_member(start, "version", STELLA_VERSION);
	json_object_set_object_member(start, "policy", policy_of(session, mounts));
	json_object_set_int_member(start, "uid", 0); /* as the namespace of the mount has it */
	json_object_set_int_member(start, "gid", 0);
	json_object_set_string_member(start, "state_dir", state);
	json_object_set_object_member(message, "start", start);
	send_object(session->control, message, -1);
}

static void expect_word(MiniSession *session, const char *word)
{
	g_autoptr(JsonObject) answer = receive(session->control, NULL);

	if (!json_object_has_member(answer, word)) {
		g_autoptr(JsonNode) node = json_node_new(JSON_NODE_OBJECT);
		g_autofree char *text = NULL;

		json_node_take_object(node, json_object_ref(answer));
		text = json_to_string(node, false);
		fail_msg("%s instead of %s", text, word);
	}
}

static void attach(MiniSession *session, const char *what, int take_fd)
{
	JsonObject *message = json_object_new();

	json_object_set_string_member(message, "attach", what);
	send_object(session->control, message, take_fd);
	close(take_fd);
}

MiniSession *mini_session_new(const char *const *names, const char *mounts)
{
	static const char *const own[] = { "root", "state", NULL };
	MiniSession *session = g_new0(MiniSession, 1);
	int device, tasks;

	umask(022);
	session->dir = g_dir_make_tmp("stella-mini-XXXXXX", NULL);
	assert_non_null(session->dir);
	for (const char *const *lists[] = { own, names, NULL }, *const **list = lists; *list;
	     list++)
		for (const char *const *name = *list; *name; name++) {
			g_autofree char *path = mini_session_path(session, *name);

			assert_int_equal(mkdir(path, 0755), 0);
		}
	start_init(session);
	device = receive_fd(session->init, "device");
	tasks = receive_fd(session->init, "tasks");
	start_gateway(session);
	send_start(session, mounts);
	expect_word(session, "ready");
	attach(session, "tasks", tasks);
	attach(session, "device", device);
	expect_word(session, "serving");
	return session;
}

static int wait_for(pid_t pid)
{
	int status = -1;

	for (int i = 0; i < PATIENCE_MS / 10; i++) {
		if (waitpid(pid, &status, WNOHANG) == pid)
			return status;
		g_usleep(10000);
	}
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	fail_msg("process %d did not end", (int)pid);
	return -1;
}

void mini_session_free(MiniSession *session)
{
	control_socket_free(session->init);
	(void)wait_for(session->init_pid);
	control_socket_free(session->control);
	assert_int_equal(wait_for(session->gateway), 0);
	assert_int_equal(io_remove_tree(AT_FDCWD, session->dir), 0);
	g_free(session->dir);
	g_free(session);
}

char *mini_session_path(const MiniSession *session, const char *name)
{
	return g_build_filename(session->dir, name, NULL);
}

void mini_session_write(const MiniSession *session, const char *name, const char *text)
{
	g_autofree char *path = mini_session_path(session, name);
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, strlen(text)), (ssize_t)strlen(text));
	close(fd);
}

gboolean mini_session_has(const MiniSession *session, const char *name)
{
	g_autofree char *path = mini_session_path(session, name);
	struct stat st;

	return lstat(path, &st) == 0;
}

/* --- execs --- */

static JsonObject *ask_boundary(MiniSession *session, const char *which, gint64 exec,
				gint64 pid_namespace)
{
	JsonObject *message = json_object_new(), *answer;

	json_object_set_string_member(message, "boundary", which);
	json_object_set_int_member(message, "id", ++session->id);
	if (exec > 0)
		json_object_set_int_member(message, "exec", exec);
	if (pid_namespace > 0)
		json_object_set_int_member(message, "pidns", pid_namespace);
	send_object(session->control, message, -1);
	answer = receive(session->control, NULL);
	assert_true(json_object_has_member(answer, "boundary"));
	assert_int_equal(json_object_get_int_member(answer, "id"), session->id);
	return answer;
}

MiniExec *mini_exec_start(MiniSession *session, MiniBody body)
{
	MiniExec *exec = g_new0(MiniExec, 1);
	g_autoptr(JsonObject) began = NULL;
	g_autoptr(JsonObject) told = NULL;
	JsonObject *message = json_object_new();
	int other;

	exec->session = session;
	began = ask_boundary(session, "start", 0, 0);
	exec->exec = json_object_get_int_member(began, "exec");
	exec->supervisor = socket_pair(&other);
	json_object_set_int_member(message, "run", (gint64)(uintptr_t)body);
	send_object(session->init, message, other);
	close(other);
	told = receive(exec->supervisor, &exec->peer);
	exec->pid_namespace = json_object_get_int_member(told, "namespace");
	assert_true(exec->pid_namespace > 0);
	assert_int_equal(write(exec->peer, "", 1), 1);
	return exec;
}

int mini_exec_peer(const MiniExec *exec)
{
	return exec->peer;
}

/* Its peer has a process of it at the other end as soon as it runs. */
void mini_exec_kill(MiniExec *exec)
{
	struct ucred peer;
	socklen_t size = sizeof peer;

	/* made by its parent, whose death is its own */
	assert_int_equal(getsockopt(exec->peer, SOL_SOCKET, SO_PEERCRED, &peer, &size), 0);
	assert_true(peer.pid > 0);
	exec->killed = TRUE;
	assert_int_equal(kill(peer.pid, SIGKILL), 0);
}

void mini_exec_wait(MiniExec *exec)
{
	JsonObject *told = NULL;
	char byte;

	if (exec->ended)
		return;
	exec->ended = TRUE;
	if (control_socket_receive(exec->supervisor, PATIENCE_MS, &told, NULL) == 0) {
		if (!exec->killed)
			assert_int_equal(json_object_get_int_member(told, "status"), 0);
		json_object_unref(told);
	} else if (!exec->killed) {
		fail_msg("an exec was not told to have ended");
	}
	/* A killed supervisor's child ends a moment later. */
	while (exec->killed && recv(exec->peer, &byte, 1, 0) > 0)
		;
}

JsonObject *mini_exec_end(MiniExec *exec, gboolean with_namespace)
{
	JsonObject *answer;

	mini_exec_wait(exec);
	answer = ask_boundary(exec->session, "end", exec->exec,
			      with_namespace ? exec->pid_namespace : 0);
	control_socket_free(exec->supervisor);
	close(exec->peer);
	g_free(exec);
	return answer;
}
