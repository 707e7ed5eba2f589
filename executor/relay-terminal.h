/* The end of input, for a command whose input is a terminal. */
#pragma once

#include <stdint.h>

/* Types the end-of-input character of the terminal whose master that is. Nothing happens when it has no such
 * character, has no room, or is no terminal. */
void exr_terminal_type_end(int master);

typedef struct {
	int master; /* borrowed */
	int slave;  /* ours, to see what is not read yet; -1 before the end */
} ExrTerminalEnd;

/* Types the terminal's end-of-input character, unless something waits to be read that was typed before: an
 * earlier end as well. A terminal has no lasting end as a pipe has, and a program that changes its modes
 * (a shell before each line) loses one that it has not read: so this is to be called again from time to
 * time, as long as the command runs. */
void exr_terminal_end_input(ExrTerminalEnd *end);

void exr_terminal_end_clear(ExrTerminalEnd *end);
