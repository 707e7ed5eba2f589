/* Sits at a terminal: a program on a pty, what it prints, and keys that are typed. Every wait has a bound,
 * and fails the test with what was seen instead. */
#pragma once

#include <glib.h>
#include <stdbool.h>
#include <sys/types.h>
#include <termios.h>

typedef struct {
	int master;
	pid_t pid;     /* leader of the pty's session; 0 once it was waited for */
	GString *seen; /* printed and not yet expected */
} PtyDriver;

/* Starts argv[0], a path, on a pty of rows by columns. */
void pty_start(PtyDriver *pty, const char *const *argv, unsigned short rows,
	       unsigned short columns);

void pty_type(PtyDriver *pty, const char *keys);
/* Waits until the program has printed text, and forgets what came up to there. */
void pty_expect(PtyDriver *pty, const char *text);
/* The terminal has another size. */
void pty_resize(PtyDriver *pty, unsigned short rows, unsigned short columns);
/* The modes of the terminal, as the program and all others at it have them. */
struct termios pty_modes(const PtyDriver *pty);
bool pty_is_raw(const PtyDriver *pty);
bool pty_same_modes(const struct termios *a, const struct termios *b);
/* Waits until it is, or is not. */
void pty_await_raw(PtyDriver *pty, bool raw);

/* Reads on to the end: the exit status, or 128 + n. */
int pty_wait(PtyDriver *pty);
/* Kills what still runs. */
void pty_clear(PtyDriver *pty);
#define PTY_AUTO __attribute__((cleanup(pty_clear))) PtyDriver
