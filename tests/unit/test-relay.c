/* relay: the loop between a command and the caller's descriptors. The session behind it is made up
 * here: real processes on real pipes, without a sandbox. */
#include "executor/relay.h"

#include "common/fd-util.h"
#include "common/output-buffer.h"
#include "executor/signals.h"

#include <fcntl.h>
#include <glib.h>
#include <poll.h>
#include <pty.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/pidfd.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include <cmocka.h>

/* What a relay is given of a session. */
struct ExrExec {
	pid_t pid; /* leader of its own process group */
	int stdin_fd, stdout_fd, stderr_fd, end_fd;
};

int exr_exec_stdin_fd(const ExrExec *exec)
{
	return exec->stdin_fd;
}

int exr_exec_stdout_fd(const ExrExec *exec)
{
	return exec->stdout_fd;
}

int exr_exec_stderr_fd(const ExrExec *exec)
{
	return exec->stderr_fd;
}

void exr_exec_close_stdin(ExrExec *exec)
{
	fd_close(&exec->stdin_fd);
}

void exr_exec_close_stdout(ExrExec *exec)
{
	fd_close(&exec->stdout_fd);
}

void exr_exec_close_stderr(ExrExec *exec)
{
	fd_close(&exec->stderr_fd);
}

int exr_exec_end_fd(const ExrExec *exec)
{
	return exec->end_fd;
}

int exr_exec_status_fd(const ExrExec *exec)
{
	(void)exec;
	return -1;
}

int exr_exec_signal(ExrExec *exec, int sig)
{
	return kill(-exec->pid, sig) < 0 ? -errno : 0;
}

void exr_exec_kill(ExrExec *exec)
{
	(void)kill(-exec->pid, SIGKILL);
}

bool exr_exec_take_told(ExrExec *exec)
{
	exr_exec_kill(exec);
	return false;
}

static void make_pipe(int ends[2])
{
	assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
}

/* A process in a group of its own, with those descriptors as 0, 1 and 2. */
static pid_t spawn(const char *command, int in, int out, int err)
{
	pid_t pid = fork();

	assert_true(pid >= 0);
	if (pid == 0) {
		sigset_t none;

		sigemptyset(&none);
		(void)sigprocmask(SIG_SETMASK, &none, NULL);
		(void)signal(SIGPIPE, SIG_DFL);
		if (setpgid(0, 0) < 0 || dup2(in, 0) < 0 || dup2(out, 1) < 0 || dup2(err, 2) < 0)
			_exit(120);
		execl("/bin/sh", "sh", "-c", command, NULL);
		_exit(121);
	}
	(void)setpgid(pid, pid); /* whoever is first */
	return pid;
}

static void start(ExrExec *exec, const char *command)
{
	int in[2], out[2], err[2];

	make_pipe(in);
	make_pipe(out);
	make_pipe(err);
	exec->pid = spawn(command, in[0], out[1], err[1]);
	fd_close(&in[0]);
	fd_close(&out[1]);
	fd_close(&err[1]);
	exec->stdin_fd = in[1];
	exec->stdout_fd = out[0];
	exec->stderr_fd = err[0];
	assert_int_equal(fd_set_nonblock(in[1], true), 0);
	assert_int_equal(fd_set_nonblock(out[0], true), 0);
	assert_int_equal(fd_set_nonblock(err[0], true), 0);
	exec->end_fd = pidfd_open(exec->pid, 0);
	assert_true(exec->end_fd >= 0);
}

/* The wait status; ends what is left. */
static int finish(ExrExec *exec)
{
	int status = -1;

	(void)kill(-exec->pid, SIGKILL);
	assert_int_equal(waitpid(exec->pid, &status, 0), exec->pid);
	fd_close(&exec->stdin_fd);
	fd_close(&exec->stdout_fd);
	fd_close(&exec->stderr_fd);
	fd_close(&exec->end_fd);
	return status;
}

static ExrRelayConfig nothing(void)
{
	return (ExrRelayConfig){ .stdin_fd = -1,
				 .out.fd = -1,
				 .err.fd = -1,
				 .signal_fd = -1,
				 .cancel_fd = -1,
				 .kill_fd = -1,
				 .ended_fd = -1,
				 .kill_after_ms = 10000 };
}

/* Runs command to its end; the wait status. */
static int relay(const char *command, const ExrRelayConfig *config, ExrRelayEnd *ret_end)
{
	ExrExec exec;

	start(&exec, command);
	exr_relay_run(&exec, config, ret_end);
	return finish(&exec);
}

static int new_file(void)
{
	int fd = open("/tmp", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);

	assert_true(fd >= 0);
	return fd;
}

static void assert_holds(int fd, const char *text)
{
	char data[256] = { 0 };

	assert_true(pread(fd, data, sizeof(data) - 1, 0) >= 0);
	assert_string_equal(data, text);
}

static void push(const void *data, size_t size, void *buffer)
{
	output_buffer_write(buffer, data, size);
}

static bool is_nonblocking(int fd)
{
	return fcntl(fd, F_GETFL) & O_NONBLOCK;
}

static double seconds_since(int64_t start_us)
{
	return (double)(g_get_monotonic_time() - start_us) / G_USEC_PER_SEC;
}

static void every_byte_passes_to_a_pipe(void **state)
{
	for (int captured = 0; captured < 2; captured++) {
		g_autoptr(OutputBuffer) buffer = output_buffer_new(100);
		ExrRelayConfig config = nothing();
		ExrRelayEnd end;
		FD_AUTO counted = new_file();
		int ends[2];
		pid_t consumer;

		make_pipe(ends);
		consumer = spawn("wc -c", ends[0], counted, 2);
		fd_close(&ends[0]);
		config.out.fd = ends[1];
		if (captured)
			config.out = (ExrRelayOutput){ ends[1], push, buffer };
		assert_int_equal(relay("head -c 3000000 /dev/zero", &config, &end), 0);
		assert_false(is_nonblocking(ends[1]));
		fd_close(&ends[1]);
		assert_int_equal(waitpid(consumer, NULL, 0), consumer);
		assert_holds(counted, "3000000\n");
		assert_int_equal(output_buffer_total(buffer), captured ? 3000000 : 0);
		assert_int_equal(end.out_errno, 0);
	}
	(void)state;
}

static void streams_stay_apart_on_files_and_in_captures(void **state)
{
	g_autoptr(OutputBuffer) out = output_buffer_new(100), err = output_buffer_new(100);
	ExrRelayConfig config = nothing();
	ExrRelayEnd end;
	FD_AUTO out_file = new_file();
	FD_AUTO err_file = new_file();

	config.out = (ExrRelayOutput){ out_file, push, out };
	config.err = (ExrRelayOutput){ err_file, push, err };
	assert_int_equal(relay("echo out; echo err >&2; exit 3", &config, &end), 3 << 8);
	assert_holds(out_file, "out\n");
	assert_holds(err_file, "err\n");
	assert_string_equal(output_buffer_data(out, NULL), "out\n");
	assert_string_equal(output_buffer_data(err, NULL), "err\n");
	assert_false(end.timed_out);
	assert_int_equal(end.canceled_by, 0);
	(void)state;
}

static void both_streams_flooding_at_once_do_not_block(void **state)
{
	g_autoptr(OutputBuffer) out = output_buffer_new(10), err = output_buffer_new(10);
	ExrRelayConfig config = nothing();
	ExrRelayEnd end;

	config.out = (ExrRelayOutput){ -1, push, out };
	config.err = (ExrRelayOutput){ -1, push, err };
	assert_int_equal(relay("head -c 2000000 /dev/zero >&2 & head -c 2000000 /dev/zero; wait",
			       &config, &end),
			 0);
	assert_int_equal(output_buffer_total(out), 2000000);
	assert_int_equal(output_buffer_total(err), 2000000);
	(void)state;
}

static void input_reaches_the_command_and_ends(void **state)
{
	ExrRelayConfig config = nothing();
	ExrRelayEnd end;
	FD_AUTO out = new_file();
	int in[2];

	make_pipe(in);
	assert_int_equal(write(in[1], "abc", 3), 3);
	fd_close(&in[1]);
	config.stdin_fd = in[0];
	config.out.fd = out;
	assert_int_equal(relay("tr a-c x-z", &config, &end), 0);
	assert_holds(out, "xyz");
	assert_false(is_nonblocking(in[0]));
	fd_close(&in[0]);
	(void)state;
}

static void large_input_passes_exactly(void **state)
{
	ExrRelayConfig config = nothing();
	ExrRelayEnd end;
	FD_AUTO out = new_file();
	FD_AUTO in = new_file();

	assert_int_equal(ftruncate(in, 3000000), 0);
	config.stdin_fd = in;
	config.out.fd = out;
	assert_int_equal(relay("sleep 0.1; wc -c", &config, &end), 0);
	assert_holds(out, "3000000\n");
	(void)state;
}

/* What the caller has already made non-blocking is no end of input when it is empty. */
static void slow_nonblocking_input_is_waited_for(void **state)
{
	ExrRelayConfig config = nothing();
	ExrRelayEnd end;
	FD_AUTO out = new_file();
	int in[2];
	pid_t writer;

	make_pipe(in);
	assert_int_equal(fd_set_nonblock(in[0], true), 0);
	writer = spawn("sleep 0.2; echo late", 0, in[1], 2);
	fd_close(&in[1]);
	config.stdin_fd = in[0];
	config.out.fd = out;
	assert_int_equal(relay("cat", &config, &end), 0);
	assert_holds(out, "late\n");
	assert_int_equal(waitpid(writer, NULL, 0), writer);
	fd_close(&in[0]);
	(void)state;
}

static void what_cannot_be_read_is_an_empty_input(void **state)
{
	FD_AUTO directory = open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	FD_AUTO write_only = open("/dev/null", O_WRONLY | O_CLOEXEC);
	FD_AUTO closed = open("/dev/null", O_RDONLY | O_CLOEXEC);
	FD_AUTO null = open("/dev/null", O_RDONLY | O_CLOEXEC);
	const int inputs[] = { -1, directory, write_only, null, closed };

	(void)close(fd_steal(&closed));
	for (size_t i = 0; i < G_N_ELEMENTS(inputs); i++) {
		ExrRelayConfig config = nothing();
		ExrRelayEnd end;
		FD_AUTO out = new_file();

		config.stdin_fd = inputs[i];
		config.out.fd = out;
		config.timeout_ms = 5000;
		assert_int_equal(relay("cat; echo end", &config, &end), 0);
		assert_holds(out, "end\n");
	}
	(void)state;
}

static void a_command_that_does_not_read_ends_all_the_same(void **state)
{
	static const char *const commands[] = { "exit 4", "exec <&-; sleep 0.2; exit 4",
						"sleep 0.2; exit 4" };
	FD_AUTO endless = open("/dev/zero", O_RDONLY | O_CLOEXEC);

	for (size_t i = 0; i < G_N_ELEMENTS(commands); i++) {
		ExrRelayConfig config = nothing();
		ExrRelayEnd end;

		config.stdin_fd = endless;
		config.timeout_ms = 5000;
		assert_int_equal(relay(commands[i], &config, &end), 4 << 8);
		assert_false(end.timed_out);
	}
	(void)state;
}

static void input_that_stays_open_does_not_hold_up_the_end(void **state)
{
	ExrRelayConfig config = nothing();
	ExrRelayEnd end;
	int in[2];

	make_pipe(in);
	config.stdin_fd = in[0];
	config.timeout_ms = 5000;
	assert_int_equal(relay("exit 0", &config, &end), 0);
	assert_false(end.timed_out);
	fd_close(&in[0]);
	fd_close(&in[1]);
	(void)state;
}

static void a_deadline_kills_and_one_in_time_does_not(void **state)
{
	ExrRelayConfig config = nothing();
	ExrRelayEnd end;
	int64_t from = g_get_monotonic_time();

	config.timeout_ms = 200;
	assert_int_equal(relay("sleep 100", &config, &end), SIGKILL);
	assert_true(end.timed_out);
	assert_true(seconds_since(from) >= 0.2 && seconds_since(from) < 2);
	config.timeout_ms = INT64_MAX;
	assert_int_equal(relay("sleep 0.1", &config, &end), 0);
	assert_false(end.timed_out);
	(void)state;
}

/* Nobody reads: a pipe that is spliced to, a pipe with a capture, and a terminal. */
static void a_stalled_consumer_does_not_hold_up_a_deadline(void **state)
{
	for (int captured = 0; captured < 2; captured++) {
		g_autoptr(OutputBuffer) buffer = output_buffer_new(100);
		ExrRelayConfig config = nothing();
		ExrRelayEnd end;
		int64_t from = g_get_monotonic_time();
		int ends[2], terminal[2];

		make_pipe(ends);
		assert_int_equal(openpty(&terminal[0], &terminal[1], NULL, NULL, NULL), 0);
		config.out.fd = ends[1];
		if (captured)
			config.out = (ExrRelayOutput){ ends[1], push, buffer };
		config.err.fd = terminal[1];
		config.timeout_ms = 200;
		assert_true(WIFSIGNALED(relay("yes >&2 & exec yes", &config, &end)));
		assert_true(end.timed_out);
		assert_true(seconds_since(from) < 4);
		assert_false(is_nonblocking(terminal[1]));
		for (int i = 0; i < 2; i++) {
			fd_close(&ends[i]);
			fd_close(&terminal[i]);
		}
	}
	(void)state;
}

static void a_consumer_that_reads_slowly_gets_all_of_a_command_that_ended(void **state)
{
	ExrRelayConfig config = nothing();
	ExrRelayEnd end;
	FD_AUTO counted = new_file();
	int ends[2];
	pid_t consumer;

	make_pipe(ends);
	consumer = spawn("sleep 0.5; wc -c", ends[0], counted, 2);
	fd_close(&ends[0]);
	config.out.fd = ends[1];
	config.timeout_ms = 300; /* reached while its output waits */
	assert_int_equal(relay("head -c 100000 /dev/zero", &config, &end), 0);
	assert_false(end.timed_out);
	fd_close(&ends[1]);
	assert_int_equal(waitpid(consumer, NULL, 0), consumer);
	assert_holds(counted, "100000\n");
	(void)state;
}

static void a_consumer_that_went_away_ends_the_command_by_sigpipe(void **state)
{
	ExrRelayConfig config = nothing();
	ExrRelayEnd end;
	int ends[2];

	make_pipe(ends);
	fd_close(&ends[0]);
	config.out.fd = ends[1];
	config.timeout_ms = 5000;
	assert_int_equal(relay("exec yes", &config, &end), SIGPIPE);
	assert_false(end.timed_out);
	assert_int_equal(end.out_errno, 0);
	fd_close(&ends[1]);
	(void)state;
}

static void output_that_cannot_be_written_is_told(void **state)
{
	ExrRelayConfig config = nothing();
	ExrRelayEnd end;
	FD_AUTO full = open("/dev/full", O_WRONLY | O_CLOEXEC);
	FD_AUTO null = open("/dev/null", O_WRONLY | O_CLOEXEC);

	config.out.fd = full;
	config.timeout_ms = 5000;
	assert_int_equal(relay("exec yes", &config, &end), SIGPIPE);
	assert_int_equal(end.out_errno, ENOSPC);
	assert_int_equal(end.err_errno, 0);
	config.out.fd = null;
	assert_int_equal(relay("echo hi", &config, &end), 0);
	assert_int_equal(end.out_errno, 0);
	(void)state;
}

static void a_command_without_output_streams_runs_on_to_its_own_end(void **state)
{
	ExrRelayConfig config = nothing();
	ExrRelayEnd end;
	int64_t from = g_get_monotonic_time();

	assert_int_equal(relay("exec >&- 2>&-; sleep 0.3; exit 5", &config, &end), 5 << 8);
	assert_true(seconds_since(from) >= 0.3);
	(void)state;
}

/* Somebody else still holds the write ends when the command has ended. */
static void the_end_does_not_wait_for_the_end_of_a_pipe(void **state)
{
	ExrRelayConfig config = nothing();
	ExrRelayEnd end;
	FD_AUTO out = new_file();
	int64_t from = g_get_monotonic_time();

	config.out.fd = out;
	assert_int_equal(relay("sleep 30 & echo hi", &config, &end), 0);
	assert_holds(out, "hi\n");
	assert_true(seconds_since(from) < 5);
	(void)state;
}

/* Starts command, waits for the line by which it says that it is ready, sends us the signals, relays. */
static int relay_signals(const char *command, int signals_to_send, int64_t kill_after_ms,
			 ExrRelayEnd *ret_end)
{
	ExrRelayConfig config = nothing();
	ExrSignals signals;
	ExrExec exec;
	struct pollfd ready;
	int status;

	assert_int_equal(exr_signals_init(&signals), 0);
	start(&exec, command);
	ready = (struct pollfd){ exec.stdout_fd, POLLIN, 0 };
	assert_int_equal(poll(&ready, 1, 5000), 1);
	assert_int_equal(kill(getpid(), SIGTERM), 0);
	if (signals_to_send > 1)
		assert_int_equal(kill(getpid(), SIGINT), 0);
	config.signal_fd = signals.fd;
	config.kill_after_ms = kill_after_ms;
	config.timeout_ms = 8000;
	exr_relay_run(&exec, &config, ret_end);
	status = finish(&exec);
	exr_signals_clear(&signals);
	return status;
}

static void a_signal_goes_to_the_command_whose_own_end_counts(void **state)
{
	ExrRelayEnd end;

	assert_int_equal(relay_signals("trap 'exit 7' TERM; echo; while :; do sleep 0.05; done", 1,
				       10000, &end),
			 7 << 8);
	assert_int_equal(end.canceled_by, 0);
	assert_int_equal(relay_signals("echo; exec sleep 100", 1, 10000, &end), SIGTERM);
	assert_int_equal(end.canceled_by, 0);
	(void)state;
}

static void a_command_that_ignores_a_signal_is_killed_later(void **state)
{
	static const char stubborn[] = "trap '' TERM INT; echo; while :; do sleep 0.05; done";
	int64_t from = g_get_monotonic_time();
	ExrRelayEnd end;

	assert_int_equal(relay_signals(stubborn, 1, 300, &end), SIGKILL);
	assert_int_equal(end.canceled_by, SIGTERM);
	assert_false(end.timed_out);
	assert_true(seconds_since(from) >= 0.3);

	from = g_get_monotonic_time();
	assert_int_equal(relay_signals(stubborn, 2, 60000, &end), SIGKILL);
	assert_true(end.canceled_by == SIGTERM || end.canceled_by == SIGINT);
	assert_true(seconds_since(from) < 5);
	(void)state;
}

static void a_signal_that_was_ignored_stays_ignored(void **state)
{
	ExrSignals signals;

	(void)signal(SIGHUP, SIG_IGN);
	assert_int_equal(exr_signals_init(&signals), 0);
	assert_int_equal(kill(getpid(), SIGHUP), 0);
	assert_int_equal(exr_signals_take(&signals), 0);
	exr_signals_clear(&signals);
	(void)signal(SIGHUP, SIG_DFL);
	assert_int_equal(exr_signals_init(&signals), 0);
	assert_int_equal(kill(getpid(), SIGHUP), 0);
	assert_int_equal(exr_signals_take(&signals), SIGHUP);
	exr_signals_clear(&signals);
	(void)state;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_byte_passes_to_a_pipe),
		cmocka_unit_test(streams_stay_apart_on_files_and_in_captures),
		cmocka_unit_test(both_streams_flooding_at_once_do_not_block),
		cmocka_unit_test(input_reaches_the_command_and_ends),
		cmocka_unit_test(large_input_passes_exactly),
		cmocka_unit_test(slow_nonblocking_input_is_waited_for),
		cmocka_unit_test(what_cannot_be_read_is_an_empty_input),
		cmocka_unit_test(a_command_that_does_not_read_ends_all_the_same),
		cmocka_unit_test(input_that_stays_open_does_not_hold_up_the_end),
		cmocka_unit_test(a_deadline_kills_and_one_in_time_does_not),
		cmocka_unit_test(a_stalled_consumer_does_not_hold_up_a_deadline),
		cmocka_unit_test(a_consumer_that_reads_slowly_gets_all_of_a_command_that_ended),
		cmocka_unit_test(a_consumer_that_went_away_ends_the_command_by_sigpipe),
		cmocka_unit_test(output_that_cannot_be_written_is_told),
		cmocka_unit_test(a_command_without_output_streams_runs_on_to_its_own_end),
		cmocka_unit_test(the_end_does_not_wait_for_the_end_of_a_pipe),
		cmocka_unit_test(a_signal_goes_to_the_command_whose_own_end_counts),
		cmocka_unit_test(a_command_that_ignores_a_signal_is_killed_later),
		cmocka_unit_test(a_signal_that_was_ignored_stays_ignored),
	};

	(void)signal(SIGPIPE, SIG_IGN);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
