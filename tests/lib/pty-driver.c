/* A program on a pty; see pty-driver.h. */
#include "lib/pty-driver.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pty.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#define PATIENCE_MS 20000

static gint64 deadline(void)
{
	return g_get_monotonic_time() + PATIENCE_MS * G_TIME_SPAN_MILLISECOND;
}

void pty_start(PtyDriver *pty, const char *const *argv, unsigned short rows, unsigned short columns)
{
	struct winsize size = { .ws_row = rows, .ws_col = columns };
	/* Who started the test may have them ignored, as shells have it for background jobs, and nohup. */
	void (*interrupt)(int) = signal(SIGINT, SIG_DFL), (*quit)(int) = signal(SIGQUIT, SIG_DFL);
	void (*hangup)(int) = signal(SIGHUP, SIG_DFL);
	gint64 until = deadline();

	pty->pid = forkpty(&pty->master, NULL, NULL, &size);
	assert_true(pty->pid >= 0);
	if (pty->pid == 0) {
		execv(argv[0], (char *const *)(uintptr_t)argv);
		_exit(99);
	}
	assert_int_equal(fcntl(pty->master, F_SETFD, FD_CLOEXEC), 0);
	assert_int_equal(fcntl(pty->master, F_SETFL, O_NONBLOCK), 0);
	pty->seen = g_string_new(NULL);
	(void)signal(SIGINT, interrupt);
	(void)signal(SIGQUIT, quit);
	(void)signal(SIGHUP, hangup);
	/* From now on its keys reach it. */
	while (tcgetpgrp(pty->master) != pty->pid && g_get_monotonic_time() < until)
		g_usleep(1000);
	assert_int_equal(tcgetpgrp(pty->master), pty->pid);
}

void pty_type(PtyDriver *pty, const char *keys)
{
	assert_int_equal(write(pty->master, keys, strlen(keys)), strlen(keys));
}

static _Noreturn void give_up(const PtyDriver *pty, const char *what)
{
	g_autofree char *seen = g_strescape(pty->seen->str, NULL);

	fail_msg("%s; seen: \"%s\"", what, seen);
	abort();
}

/* Takes what comes within a moment. false at the end. */
static bool read_more(PtyDriver *pty)
{
	struct pollfd poll_fd = { .fd = pty->master, .events = POLLIN };
	char data[4096];
	ssize_t size;

	(void)poll(&poll_fd, 1, 50);
	size = read(pty->master, data, sizeof data);
	if (size > 0)
		g_string_append_len(pty->seen, data, size);
	return size > 0 || (size < 0 && (errno == EAGAIN || errno == EINTR));
}

void pty_expect(PtyDriver *pty, const char *text)
{
	gint64 until = deadline();
	const char *found;

	while (!(found = strstr(pty->seen->str, text)))
		if (!read_more(pty) || g_get_monotonic_time() > until) {
			g_autofree char *what = g_strdup_printf("\"%s\" did not come", text);

			give_up(pty, what);
		}
	g_string_erase(pty->seen, 0, found - pty->seen->str + (gssize)strlen(text));
}

void pty_resize(PtyDriver *pty, unsigned short rows, unsigned short columns)
{
	struct winsize size = { .ws_row = rows, .ws_col = columns };

	assert_int_equal(ioctl(pty->master, TIOCSWINSZ, &size), 0);
}

struct termios pty_modes(const PtyDriver *pty)
{
	struct termios modes;

	assert_int_equal(tcgetattr(pty->master, &modes), 0);
	return modes;
}

bool pty_is_raw(const PtyDriver *pty)
{
	struct termios modes = pty_modes(pty);

	return !(modes.c_lflag & (ICANON | ECHO | ISIG)) && !(modes.c_oflag & OPOST);
}

bool pty_same_modes(const struct termios *a, const struct termios *b)
{
	return a->c_iflag == b->c_iflag && a->c_oflag == b->c_oflag && a->c_cflag == b->c_cflag &&
	       a->c_lflag == b->c_lflag && memcmp(a->c_cc, b->c_cc, sizeof a->c_cc) == 0;
}

void pty_await_raw(PtyDriver *pty, bool raw)
{
	gint64 until = deadline();

	while (pty_is_raw(pty) != raw) {
		if (g_get_monotonic_time() > until)
			give_up(pty, raw ? "the terminal is not raw" : "the terminal stays raw");
		(void)read_more(pty);
	}
}

int pty_wait(PtyDriver *pty)
{
	gint64 until = deadline();
	int status;

	while (waitpid(pty->pid, &status, WNOHANG) == 0) {
		if (g_get_monotonic_time() > until)
			give_up(pty, "the program does not end");
		(void)read_more(pty);
	}
	pty->pid = 0;
	while (read_more(pty) && g_get_monotonic_time() < until)
		;
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

void pty_clear(PtyDriver *pty)
{
	if (pty->pid > 0) {
		(void)kill(pty->pid, SIGKILL);
		(void)waitpid(pty->pid, NULL, 0);
		pty->pid = 0;
	}
	if (pty->seen) {
		(void)close(pty->master);
		g_string_free(g_steal_pointer(&pty->seen), TRUE);
	}
}
