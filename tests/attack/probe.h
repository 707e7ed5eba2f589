/* What the attack programs share: each tries one kind of thing that a command must not be able to do, and prints a
 * line for each try, `NAME: EXPECTED GOT`, in names of errno; 0 is success.
 *
 * With --outside the same tries are made where they are allowed, in namespaces of the test's own: they have to come
 * out as written for that, which shows that it is the sandbox that refuses and not the try that is wrong. */
#pragma once

#include <stdbool.h>

typedef struct {
	bool outside;
	int argc; /* without the program's name and --outside */
	char **argv;
	int count;
	int wrong;
} Probe;

/* What is expected: "EPERM", "EPERM|ENOENT", "!EPERM" (anything else), "*" (not looked at). */
typedef struct {
	const char *inside;
	const char *outside;
} Expected;

#define REFUSED(errnums) ((Expected){ (errnums), "0" })
/* Works on both sides: the allowed form of a refused call. */
#define ALLOWED ((Expected){ "0", "0" })

Probe probe_begin(int argc, char **argv);
/* errnum: 0 or an errno. A result of -1 and the errno of now are what PROBE_CALL makes of a call. */
void probe_check(Probe *probe, const char *name, Expected expected, int errnum);
/* The same where what is expected is no errno. */
void probe_that(Probe *probe, const char *name, bool right);
/* The exit status: 0 when all was as expected and something was tried at all. */
int probe_end(const Probe *probe);

#define PROBE_CALL(call) ((call) < 0 ? errno : 0)

/* Makes the try in a child, which what it does to itself does not survive: body gives an errno. A child that a signal
 * ended gives 1000 and the signal. Bounded by ten seconds. */
int probe_in_child(int (*body)(void *data), void *data);
/* The same in a second thread of this process. */
int probe_in_thread(int (*body)(void *data), void *data);
