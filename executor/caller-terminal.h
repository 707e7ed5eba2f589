/* The terminal that the caller sits at, while a command runs that has a terminal of its own.
 *
 * In raw mode every key goes to the command's terminal as a byte, and what it means (Ctrl-C, Ctrl-Z, the
 * end of input) is decided there. The caller's modes are put back before anything else is said, when
 * this program is stopped, and when a signal ends it that is not an event of its loop. */
#pragma once

#include "executor/session.h"

#include <signal.h>
#include <termios.h>

/* The size of a command's terminal when nobody looks at it. */
#define EXR_TERMINAL_ROWS    24
#define EXR_TERMINAL_COLUMNS 80

typedef struct {
	int input_fd; /* the terminal whose keys are the command's; -1: none */
	int size_fd;  /* the terminal whose size is the command's; -1: none */
	int event_fd; /* readable when exr_caller_terminal_on_event() has something to do; -1: never */
	bool has_entered; /* at least once */
	bool is_raw;
	struct termios before, raw;
	sigset_t old_mask;
} ExrCallerTerminal;

#define EXR_CALLER_TERMINAL_NONE                                                                   \
	(ExrCallerTerminal)                                                                        \
	{                                                                                          \
		.input_fd = -1, .size_fd = -1, .event_fd = -1                                      \
	}

/* Finds it among our standard streams, and makes events of SIGWINCH, SIGTSTP and SIGCONT. input_fd: where
 * the command's input comes from, or -1. 0 or -errno. */
int exr_caller_terminal_init(ExrCallerTerminal *terminal, int input_fd);

void exr_caller_terminal_size(const ExrCallerTerminal *terminal, uint16_t *ret_rows,
			      uint16_t *ret_columns);

/* Raw mode, if keys are to be read. A job in the background stops, as by SIGTTOU, until it is in front;
 * where it cannot be stopped the terminal is left alone. */
void exr_caller_terminal_enter(ExrCallerTerminal *terminal);
/* The caller's modes again. Idempotent; enter may follow. */
void exr_caller_terminal_leave(ExrCallerTerminal *terminal);

/* An ExrRelayConfig's on_event: enters at first; passes the size on; stops and goes on as this program does. */
void exr_caller_terminal_on_event(ExrExec *exec, void *terminal);

/* Leaves, and gives the signals their ordinary effect again. Idempotent. */
void exr_caller_terminal_clear(ExrCallerTerminal *terminal);
