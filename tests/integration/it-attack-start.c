/* The moments between the birth of a command's process and its first instruction, seen from outside; two commands of
 * one session that try to reach each other; ends by every signal; arguments that are too long.
 *
 * A thread of the test looks at the processes below the session's init all the time. What it finds under our own name
 * must not be dumpable, and what it finds under the command's must have the filter and no capability. */
#include "lib/preflight.h"
#include "session-fixture.h"

#include <dirent.h>
#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#define EXECS	     60
#define MAX_CHILDREN 16

static int make(void **state)
{
	*state = fixture_new();
	return 0;
}

static int clear(void **state)
{
	fixture_free(*state);
	return 0;
}

typedef struct {
	pid_t init;
	bool is_root;
	atomic_bool end;
	/* samples, and which of them were wrong */
	int of_ours, of_commands;
	int dumpable, unconfined;
} Sampler;

static int children_of(pid_t pid, pid_t pids[static MAX_CHILDREN])
{
	char path[64], text[256];
	int count = 0;
	FILE *file;

	snprintf(path, sizeof path, "/proc/%d/task/%d/children", (int)pid, (int)pid);
	file = fopen(path, "re");
	if (!file)
		return 0;
	if (fgets(text, sizeof text, file))
		for (char *at = text, *end; count < MAX_CHILDREN; at = end) {
			pids[count] = (pid_t)strtol(at, &end, 10);
			if (end == at)
				break;
			count++;
		}
	fclose(file);
	return count;
}

static bool has(const char *status, const char *line)
{
	return strstr(status, line) != NULL;
}

/* One read gives one moment. A process that is not dumpable belongs to root outside, whoever runs it; that can only be
 * told from its user where the test is root itself. */
static void sample(Sampler *sampler, pid_t pid)
{
	char path[64], status[4096];
	struct stat st;
	size_t size;
	FILE *file;

	snprintf(path, sizeof path, "/proc/%d/status", (int)pid);
	file = fopen(path, "re");
	if (!file)
		return;
	size = fread(status, 1, sizeof status - 1, file);
	status[size] = '\0';
	if (size == 0 || has(status, "\nState:\tZ") || has(status, "\nState:\tX") ||
	    fstat(fileno(file), &st) != 0) {
		fclose(file);
		return;
	}
	fclose(file);
	if (has(status, "Name:\tstella-")) {
		sampler->of_ours++;
		/* between the two reads it may have become the command, whose files are its own */
		if (sampler->is_root && st.st_uid != 0) {
			g_autofree char *comm = NULL;

			snprintf(path, sizeof path, "/proc/%d/comm", (int)pid);
			if (g_file_get_contents(path, &comm, NULL, NULL) &&
			    g_str_has_prefix(comm, "stella-"))
				sampler->dumpable++;
		}
		return;
	}
	sampler->of_commands++;
	if (!has(status, "\nSeccomp:\t2\n") || !has(status, "\nNoNewPrivs:\t1\n") ||
	    !has(status, "\nCapEff:\t0000000000000000\n") ||
	    !has(status, "\nCapPrm:\t0000000000000000\n") ||
	    !has(status, "\nCapBnd:\t0000000000000000\n"))
		sampler->unconfined++;
}

static void *run_sampler(void *data)
{
	Sampler *sampler = data;

	while (!atomic_load(&sampler->end)) {
		pid_t inits[MAX_CHILDREN], commands[MAX_CHILDREN];
		int count = children_of(sampler->init, inits);

		sample(sampler, sampler->init);
		for (int i = 0; i < count; i++) {
			sample(sampler, inits[i]);
			for (int j = children_of(inits[i], commands); j-- > 0;)
				sample(sampler, commands[j]);
		}
	}
	return NULL;
}

static void no_moment_is_unconfined(void **state)
{
	Fixture *fixture = *state;
	Sampler sampler = { .is_root = geteuid() == 0 };
	const char *const argv[] = { "/usr/bin/sleep", "0.002", NULL };
	pthread_t thread;

	fixture_start(fixture, "\"network\": {\"mode\": \"disabled\"}, ");
	sampler.init = find_child("stella-sandbox-init");
	assert_true(sampler.init > 0);
	assert_int_equal(pthread_create(&thread, NULL, run_sampler, &sampler), 0);
	for (int i = 0; i < EXECS; i++) {
		RAN_AUTO ran = fixture_run(fixture, &(Run){ .argv = argv });

		assert_false(ran.end.start_failed);
		assert_int_equal(ran.end.exit_code, 0);
	}
	atomic_store(&sampler.end, true);
	assert_int_equal(pthread_join(thread, NULL), 0);
	print_message("%d looks at ours, %d at commands\n", sampler.of_ours, sampler.of_commands);
	assert_true(sampler.of_ours > 0 && sampler.of_commands > 0);
	assert_int_equal(sampler.dumpable, 0);
	assert_int_equal(sampler.unconfined, 0);
}

/* As many first moments of PID 1 as there are starts, each looked at from inside at once. */
static void init_is_never_open_to_the_command(void **state)
{
	Fixture *fixture = *state;
	const char *const argv[] = { "/workspace/attack-init", NULL };
	const char *build = g_getenv("STELLA_TEST_BUILD");
	g_autofree char *from =
		g_build_filename(build ? build : "", "tests/attack/attack-init", NULL);
	g_autofree char *to = g_build_filename(fixture->workspace, "attack-init", NULL);
	g_autofree char *program = NULL;
	gsize size;

	assert_non_null(build);
	assert_true(g_file_get_contents(from, &program, &size, NULL));
	assert_true(g_file_set_contents(to, program, (gssize)size, NULL));
	assert_int_equal(chmod(to, 0755), 0);
	fixture_start(fixture, "\"network\": {\"mode\": \"disabled\"}, ");
	for (int i = 0; i < EXECS / 3; i++) {
		RAN_AUTO ran = fixture_run(fixture, &(Run){ .argv = argv });

		if (ran.end.start_failed || ran.end.exit_code != 0)
			fail_msg("%d: %s", ran.end.exit_code, ran.out);
		assert_non_null(strstr(ran.out, " tries, 0 wrong\n"));
	}
}

/* What a command of the session can know of another one: a number, and with its help a pidfd. */
static const char sibling[] =
	"import os, socket, sys, time, ctypes\n"
	"libc = ctypes.CDLL(None, use_errno=True)\n"
	"path = '/tmp/sibling'\n"
	"if sys.argv[1] == 'give':\n"
	"    s = socket.socket(socket.AF_UNIX); s.bind(path + '.new'); s.listen(1)\n"
	"    os.rename(path + '.new', path)\n"
	"    print('up', flush=True)\n"
	"    c = s.accept()[0]\n"
	"    socket.send_fds(c, [str(os.getpid()).encode()], [os.pidfd_open(os.getpid())])\n"
	"    c.recv(1); print('alive', flush=True); sys.exit(0)\n"
	"s = socket.socket(socket.AF_UNIX)\n"
	"s.connect(path)\n"
	"data, fds, _, _ = socket.recv_fds(s, 16, 1)\n"
	"pid = int(data)\n"
	"def call(name, number, *args):\n"
	"    r = libc.syscall(number, *args)\n"
	"    print(name, ctypes.get_errno() if r < 0 else 0)\n"
	"ctypes.set_errno(0)\n"
	"call('signal', 424, fds[0], 9, None, 0)\n"
	"call('getfd', 438, fds[0], 0, 0)\n"
	"call('setns', 308 if os.uname().machine == 'x86_64' else 268, fds[0], 0x20000)\n"
	"own = os.pidfd_open(os.getpid())\n"
	"call('own', 424, own, 0, None, 0)\n"
	"others = [p for p in os.listdir('/proc') if p.isdigit() and int(p) not in (1, "
	"os.getpid())]\n"
	"print('others', len(others))\n"
	"s.send(b'x')\n";

static void drain(int fd, GString *text)
{
	char data[4096];
	ssize_t size;

	while ((size = read(fd, data, sizeof data)) > 0 ||
	       (size < 0 && (errno == EAGAIN || errno == EINTR)))
		if (size > 0)
			g_string_append_len(text, data, size);
		else
			g_usleep(1000);
}

static void a_sibling_is_out_of_reach(void **state)
{
	Fixture *fixture = *state;
	const char *const give[] = { "python3", "-c", sibling, "give", NULL };
	const char *const take[] = { "sh", "-c",
				     "while ! test -S /tmp/sibling; do sleep 0.01; done; "
				     "exec python3 -c \"$0\" take",
				     sibling, NULL };
	const char *const env[] = { "PATH=/usr/local/bin:/usr/bin:/bin", NULL };
	ExrRequest request = { .argv = give, .env = env, .cwd = "/workspace", .stdin_null = true };
	g_autoptr(GString) text = g_string_new(NULL);
	g_autofree char *expected = g_strdup_printf(
		"signal %d\ngetfd %d\nsetns %d\nown 0\nothers 0\n", EINVAL, EPERM, EPERM);
	ExrError error = { 0 };
	ExrExec *first = NULL;
	ExrEnd end;

	fixture_start(fixture, "");
	assert_int_equal(exr_exec_start(fixture->session, &request, &first, &error), 0);
	{
		RAN_AUTO second = fixture_run(fixture, &(Run){ .argv = take });

		if (strcmp(second.out, expected) != 0)
			fail_msg("%s%s", second.out, second.err);
	}
	drain(exr_exec_stdout_fd(first), text);
	assert_string_equal(text->str, "up\nalive\n");
	assert_int_equal(exr_exec_finish(first, &end), 0);
	assert_int_equal(end.exit_code, 0);
	exr_end_clear(&end);
}

/* The kernel takes 128 KiB an argument, the end of text included, and as much in all as the stack allows. */
static void arguments_too_long_are_told(void **state)
{
	Fixture *fixture = *state;
	g_autofree char *fits = g_strnfill(128 * 1024 - 1, 'x');
	g_autofree char *large = g_strnfill(128 * 1024, 'x');
	const char *const at_limit[] = { "true", fits, NULL };
	const char *const beyond[] = { "true", large, NULL };
	const char *const unnamed[] = { "", NULL };
	g_autofree const char **many = g_new0(const char *, 64);

	many[0] = "true";
	for (int i = 1; i < 60; i++) /* more than 7 MiB */
		many[i] = fits;
	fixture_start(fixture, "");
	{
		RAN_AUTO right = fixture_run(fixture, &(Run){ .argv = at_limit });
		RAN_AUTO wrong = fixture_run(fixture, &(Run){ .argv = beyond });
		RAN_AUTO nameless = fixture_run(fixture, &(Run){ .argv = unnamed });
		RAN_AUTO too_many = fixture_run(fixture, &(Run){ .argv = many });

		assert_false(right.end.start_failed);
		assert_int_equal(right.end.exit_code, 0);
		assert_true(wrong.end.start_failed);
		assert_int_equal(wrong.end.error.errnum, E2BIG);
		assert_string_equal(wrong.end.error.code, "program-not-executable");
		assert_true(nameless.end.start_failed);
		assert_int_equal(nameless.end.error.errnum, ENOENT);
		assert_true(too_many.end.start_failed);
		assert_int_equal(too_many.end.error.errnum, E2BIG);
	}
}

/* By its number, and what is not a death is not told as one. */
static void every_signal_is_told(void **state)
{
	Fixture *fixture = *state;

	fixture_start(fixture, "");
	for (int sig = 1; sig < 32; sig++) {
		bool ignored = sig == SIGCHLD || sig == SIGCONT || sig == SIGURG || sig == SIGWINCH;
		bool stops = sig == SIGSTOP || sig == SIGTSTP || sig == SIGTTIN || sig == SIGTTOU;
		g_autofree char *script = g_strdup_printf("kill -%d $$; exit 70", sig);

		if (!stops) {
			RAN_AUTO ran = fixture_sh(fixture, script);

			assert_false(ran.end.start_failed);
			assert_int_equal(ran.end.signal, ignored ? 0 : sig);
			if (ignored)
				assert_int_equal(ran.end.exit_code, 70);
		}
	}
	{
		RAN_AUTO ran = fixture_sh(fixture, "exit 137");

		assert_int_equal(ran.end.signal, 0);
		assert_int_equal(ran.end.exit_code, 137);
	}
}

int main(void)
{
	static const char *const needs[] = { "fuse", "userns", "seccomp", NULL };
#define TEST(name) cmocka_unit_test_setup_teardown(name, make, clear)
	const struct CMUnitTest tests[] = {
		TEST(no_moment_is_unconfined),	   TEST(init_is_never_open_to_the_command),
		TEST(a_sibling_is_out_of_reach),   TEST(every_signal_is_told),
		TEST(arguments_too_long_are_told),
	};
	int status = preflight_require(needs);

	return status ? status : cmocka_run_group_tests(tests, NULL, NULL);
}
