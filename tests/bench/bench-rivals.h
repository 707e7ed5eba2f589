/* What sessions are compared with: the same command without a sandbox, in bwrap, and by `stella-exec run`. */
#pragma once

double rivals_now_us(void);
__attribute__((noreturn, format(printf, 1, 2))) void rivals_die(const char *format, ...);

/* Each runs the command to its end and takes in what it prints; a command that fails ends the program. */
void rivals_spawn(const char *const *argv);
void rivals_run(const char *workspace, const char *const *argv);
/* Microseconds; -1 when there is no bwrap, or it cannot do it here. */
double rivals_bwrap(const char *workspace, const char *const *argv);
