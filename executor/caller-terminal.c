/* Raw mode, and back in every case; see caller-terminal.h.
 *
 * The modes of a terminal belong to whoever is in front: a job that has been put into the background
 * touches them neither to set nor to restore, for a shell has put its own in place. */
#include "executor/caller-terminal.h"

#include "common/fd-util.h"

#include <errno.h>
#include <glib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/signalfd.h>
#include <unistd.h>

/* Of the terminal that is raw right now, for a handler, which can be told nothing otherwise. */
static struct {
	volatile sig_atomic_t is_raw;
	int fd;
	struct termios before;
} emergency;

/* So is who has another controlling terminal, or none: nobody manages its jobs at this one. */
static bool in_foreground(int fd)
{
	pid_t foreground = tcgetpgrp(fd);

	return foreground <= 0 || foreground == getpgrp();
}

static void on_fatal_signal(int sig)
{
	int saved = errno;

	if (emergency.is_raw && in_foreground(emergency.fd))
		(void)tcsetattr(emergency.fd, TCSANOW, &emergency.before);
	emergency.is_raw = 0;
	errno = saved;
	/* SA_RESETHAND: its default action comes as soon as this returns. */
	(void)raise(sig);
}

/* Whatever would end this program while the terminal is raw. Those that are events of its loop, and
 * those that the caller has it ignore, stay so. */
static void catch_fatal_signals(void)
{
	static const int harmless[] = { SIGCHLD, SIGCONT, SIGURG,  SIGWINCH, SIGKILL,
					SIGSTOP, SIGTSTP, SIGTTIN, SIGTTOU };

	for (int sig = 1; sig < NSIG; sig++) {
		struct sigaction action;
		bool ends = true;

		for (size_t i = 0; i < G_N_ELEMENTS(harmless); i++)
			ends = ends && sig != harmless[i];
		if (!ends || sigaction(sig, NULL, &action) != 0 || action.sa_handler != SIG_DFL)
			continue;
		memset(&action, 0, sizeof action);
		action.sa_handler = on_fatal_signal;
		action.sa_flags = SA_RESETHAND;
		(void)sigaction(sig, &action, NULL); /* those of libc itself answer EINVAL */
	}
}

/* An ignored signal stays ignored: blocked, it would be queued after all. */
static void add_unless_ignored(sigset_t *mask, int sig)
{
	struct sigaction action;

	if (sigaction(sig, NULL, &action) == 0 && action.sa_handler != SIG_IGN)
		sigaddset(mask, sig);
}

int exr_caller_terminal_init(ExrCallerTerminal *terminal, int input_fd)
{
	sigset_t mask;

	*terminal = EXR_CALLER_TERMINAL_NONE;
	if (input_fd >= 0 && isatty(input_fd))
		terminal->input_fd = input_fd;
	for (int fd = STDIN_FILENO; fd <= STDERR_FILENO && terminal->size_fd < 0; fd++)
		if (isatty(fd))
			terminal->size_fd = fd;
	if (terminal->size_fd < 0)
		return 0;
	sigemptyset(&mask);
	sigaddset(&mask, SIGWINCH);
	if (terminal->input_fd >= 0) {
		sigaddset(&mask, SIGCONT);
		add_unless_ignored(&mask, SIGTSTP);
	}
	if (sigprocmask(SIG_BLOCK, &mask, &terminal->old_mask) != 0)
		return -errno;
	terminal->event_fd = signalfd(-1, &mask, SFD_CLOEXEC | SFD_NONBLOCK);
	if (terminal->event_fd < 0) {
		int r = -errno;

		(void)sigprocmask(SIG_SETMASK, &terminal->old_mask, NULL);
		return r;
	}
	return 0;
}

void exr_caller_terminal_size(const ExrCallerTerminal *terminal, uint16_t *ret_rows,
			      uint16_t *ret_columns)
{
	struct winsize size = { 0 };

	if (terminal->size_fd < 0 || ioctl(terminal->size_fd, TIOCGWINSZ, &size) != 0)
		size.ws_row = size.ws_col = 0;
	*ret_rows = size.ws_row ? size.ws_row : EXR_TERMINAL_ROWS;
	*ret_columns = size.ws_col ? size.ws_col : EXR_TERMINAL_COLUMNS;
}

static bool same_modes(const struct termios *a, const struct termios *b)
{
	return a->c_iflag == b->c_iflag && a->c_oflag == b->c_oflag && a->c_cflag == b->c_cflag &&
	       a->c_lflag == b->c_lflag && memcmp(a->c_cc, b->c_cc, sizeof a->c_cc) == 0;
}

void exr_caller_terminal_enter(ExrCallerTerminal *terminal)
{
	struct termios now;

	terminal->has_entered = true;
	if (terminal->input_fd < 0)
		return;
	/* Once: what cannot be stopped must not spin here, and what was stopped gets a SIGCONT. */
	if (!in_foreground(terminal->input_fd))
		(void)raise(SIGTTOU);
	if (!in_foreground(terminal->input_fd) || tcgetattr(terminal->input_fd, &now) != 0)
		return;
	/* After a stop they are our own still, unless a shell was in front meanwhile. */
	if (!terminal->is_raw || !same_modes(&now, &terminal->raw)) {
		terminal->before = now;
		cfmakeraw(&now);
	}
	emergency.fd = terminal->input_fd;
	emergency.before = terminal->before;
	catch_fatal_signals();
	emergency.is_raw = 1;
	terminal->is_raw = tcsetattr(terminal->input_fd, TCSANOW, &now) == 0;
	emergency.is_raw = terminal->is_raw;
	/* As the terminal has understood it. */
	if (terminal->is_raw && tcgetattr(terminal->input_fd, &terminal->raw) != 0)
		terminal->raw = now;
}

void exr_caller_terminal_leave(ExrCallerTerminal *terminal)
{
	/* Not TCSADRAIN: output that nobody takes must not hold this up. */
	if (terminal->is_raw && in_foreground(terminal->input_fd))
		(void)tcsetattr(terminal->input_fd, TCSANOW, &terminal->before);
	terminal->is_raw = false;
	emergency.is_raw = 0;
}

/* What the signal would have done, with the terminal as it was. */
static void stop(ExrCallerTerminal *terminal)
{
	sigset_t mask;

	exr_caller_terminal_leave(terminal);
	sigemptyset(&mask);
	sigaddset(&mask, SIGTSTP);
	(void)raise(SIGTSTP); /* blocked: it waits for the next line */
	(void)sigprocmask(SIG_UNBLOCK, &mask, NULL);
	(void)sigprocmask(SIG_BLOCK, &mask, NULL);
	exr_caller_terminal_enter(terminal);
}

void exr_caller_terminal_on_event(ExrExec *exec, void *data)
{
	ExrCallerTerminal *terminal = data;
	struct signalfd_siginfo info;
	uint16_t rows, columns;

	if (terminal->event_fd < 0)
		return;
	if (!terminal->has_entered)
		exr_caller_terminal_enter(terminal);
	while (read(terminal->event_fd, &info, sizeof info) == sizeof info) {
		if (info.ssi_signo == SIGTSTP)
			stop(terminal);
		else if (info.ssi_signo == SIGCONT)
			exr_caller_terminal_enter(terminal);
	}
	exr_caller_terminal_size(terminal, &rows, &columns);
	(void)exr_exec_resize(exec, rows, columns); /* it may end at this very moment */
}

void exr_caller_terminal_clear(ExrCallerTerminal *terminal)
{
	if (terminal->event_fd < 0)
		return;
	exr_caller_terminal_leave(terminal);
	fd_close(&terminal->event_fd);
	(void)sigprocmask(SIG_SETMASK, &terminal->old_mask, NULL); /* cannot fail */
}
