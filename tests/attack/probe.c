/* Printing and counting of tries; see probe.h. */
#include "probe.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define CHILD_SECONDS 10
#define SIGNALED      1000

Probe probe_begin(int argc, char **argv)
{
	Probe probe = { .argc = argc - 1, .argv = argv + 1 };

	if (probe.argc > 0 && strcmp(probe.argv[0], "--outside") == 0) {
		probe.outside = true;
		probe.argc--;
		probe.argv++;
	}
	return probe;
}

static const char *name_of(int errnum, char text[static 32])
{
	const char *name = errnum == 0 ? "0" : strerrorname_np(errnum);

	if (name)
		return name;
	if (errnum > SIGNALED)
		snprintf(text, 32, "SIG%s", sigabbrev_np(errnum - SIGNALED));
	else
		snprintf(text, 32, "%d", errnum);
	return text;
}

static bool matches(const char *expected, const char *got)
{
	size_t length = strlen(got);

	if (strcmp(expected, "*") == 0)
		return true;
	if (expected[0] == '!')
		return !matches(expected + 1, got);
	for (const char *at = expected; *at;) {
		size_t here = strcspn(at, "|");

		if (here == length && strncmp(at, got, length) == 0)
			return true;
		at += here + (at[here] == '|');
	}
	return false;
}

void probe_check(Probe *probe, const char *name, Expected expected, int errnum)
{
	const char *wanted = probe->outside ? expected.outside : expected.inside;
	char text[32];
	const char *got = name_of(errnum, text);
	bool right = matches(wanted, got);

	probe->count++;
	probe->wrong += !right;
	printf("%s%s: %s %s\n", right ? "" : "WRONG ", name, wanted, got);
	fflush(stdout);
}

void probe_that(Probe *probe, const char *name, bool right)
{
	probe_check(probe, name, ALLOWED, right ? 0 : EINVAL);
}

int probe_end(const Probe *probe)
{
	printf("%d tries, %d wrong\n", probe->count, probe->wrong);
	return probe->wrong == 0 && probe->count > 0 ? 0 : 1;
}

int probe_in_child(int (*body)(void *data), void *data)
{
	int status;
	pid_t pid;

	fflush(stdout);
	pid = fork();
	if (pid == 0) {
		alarm(CHILD_SECONDS);
		_exit(body(data));
	}
	if (pid < 0 || waitpid(pid, &status, 0) != pid)
		return ECHILD;
	return WIFSIGNALED(status) ? SIGNALED + WTERMSIG(status) : WEXITSTATUS(status);
}

typedef struct {
	int (*body)(void *data);
	void *data;
	int result;
} Call;

static void *call(void *data)
{
	Call *wanted = data;

	wanted->result = wanted->body(wanted->data);
	return NULL;
}

int probe_in_thread(int (*body)(void *data), void *data)
{
	Call wanted = { body, data, 0 };
	pthread_t thread;

	if (pthread_create(&thread, NULL, call, &wanted) != 0 || pthread_join(thread, NULL) != 0)
		return EAGAIN;
	return wanted.result;
}
