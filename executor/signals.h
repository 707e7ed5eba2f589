/* The signals of the program that runs a command, as events of its loop.
 *
 * A signal that was ignored when we were started (nohup, a shell's background job) stays ignored:
 * whoever started us wants the command to survive it. */
#pragma once

#include <signal.h>

typedef struct {
	int fd; /* a non-blocking signalfd of SIGINT, SIGTERM, SIGHUP and SIGQUIT */
	sigset_t old_mask;
} ExrSignals;

/* Blocks them, so that from here on nothing ends this process half way; and ignores what a write or a
 * read would otherwise raise (SIGPIPE, SIGXFSZ, SIGTTIN): the call's own error says it. 0 or -errno. */
int exr_signals_init(ExrSignals *ret_signals);

/* The next one that has come, or 0. */
int exr_signals_take(const ExrSignals *signals);

/* Forgets those that have come, and lets the next one have its ordinary effect. */
void exr_signals_clear(ExrSignals *signals);
