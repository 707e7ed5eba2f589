/* kill-cycles [OPTION...] -- stella-exec run ... -- COMMAND
 *
 * Starts runs, one after the other, and kills one process of each with SIGKILL at some moment: the supervisor, the
 * gateway, init or exec init, from the start to a little after the end. Whatever is killed, no process and no mount
 * stays; a killed supervisor's directory goes with the next start. The moments follow from the seed, which is printed.
 *
 *   --cycles N --seed S
 *   --points N --fail-nth PROGRAM   and at N points of the start, spread over its system calls, the supervisor
 *                                   is killed: after a second no process is there
 *
 * To be run where all processes and mounts are the test's own (sh-lib.sh). Exit status 0 when all was as it should be. */
#include "lib/leaks.h"

#include <errno.h>
#include <fcntl.h>
#include <glib.h>
#include <signal.h>
#include <spawn.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

/* The longest wait of ours for what does not die. */
#define END_SECONDS   20
#define LEAVE_SECONDS 1
#define LOOK_US	      200

typedef enum { SUPERVISOR, GATEWAY, INIT, EXEC_INIT, _VICTIM_N } Victim;

static const char *const victim_names[_VICTIM_N] = { "supervisor", "gateway", "init", "exec-init" };

typedef struct {
	char **command;
	char *before;
	gint64 whole_us; /* a run that nothing is done to */
	int killed[_VICTIM_N];
	int ended; /* before their time came */
	int failures;
	gint64 longest_us; /* from the kill until no process is left */
} Cycles;

static pid_t start(char *const *argv)
{
	posix_spawn_file_actions_t actions;
	pid_t pid = -1;

	posix_spawn_file_actions_init(&actions);
	for (int fd = 0; fd < 3; fd++)
		posix_spawn_file_actions_addopen(&actions, fd, "/dev/null", O_RDWR, 0);
	if (posix_spawnp(&pid, argv[0], &actions, NULL, argv, environ) != 0)
		pid = -1;
	posix_spawn_file_actions_destroy(&actions);
	return pid;
}

/* The child of parent whose name begins so. 0: there is none now. */
static pid_t find_child(pid_t parent, const char *name)
{
	g_autoptr(GDir) dir = g_dir_open("/proc", 0, NULL);
	const char *entry;

	while (dir && (entry = g_dir_read_name(dir))) {
		g_autofree char *path = g_build_filename("/proc", entry, "stat", NULL);
		g_autofree char *text = NULL;
		char comm[32], state;
		int pid, ppid;

		if (g_ascii_isdigit(*entry) && g_file_get_contents(path, &text, NULL, NULL) &&
		    sscanf(text, "%d (%31[^)]) %c %d", &pid, comm, &state, &ppid) == 4 &&
		    ppid == parent && state != 'Z' && g_str_has_prefix(comm, name))
			return pid;
	}
	return 0;
}

static pid_t find_victim(Victim victim, pid_t supervisor)
{
	pid_t init;

	switch (victim) {
	case SUPERVISOR:
		return supervisor;
	case GATEWAY:
		return find_child(supervisor, "stella-fsgate");
	case INIT:
		return find_child(supervisor, "stella-sandbox");
	case EXEC_INIT:
		init = find_child(supervisor, "stella-sandbox");
		return init > 0 ? find_child(init, "stella-sandbox") : 0;
	case _VICTIM_N:
		break;
	}
	return 0;
}

static bool has_ended(pid_t pid)
{
	siginfo_t info = { 0 };

	return waitid(P_PID, (id_t)pid, &info, WEXITED | WNOHANG | WNOWAIT) == 0 &&
	       info.si_pid == pid;
}

/* false: it was killed by us after END_SECONDS. */
static bool await_end(pid_t pid)
{
	gint64 until = g_get_monotonic_time() + END_SECONDS * G_USEC_PER_SEC;
	bool in_time = true;

	while (!has_ended(pid) && in_time) {
		g_usleep(LOOK_US);
		in_time = g_get_monotonic_time() < until;
	}
	if (!in_time)
		(void)kill(pid, SIGKILL);
	(void)waitpid(pid, NULL, 0);
	return in_time;
}

static bool is_of_state(const char *line)
{
	return !*line || g_str_has_prefix(line, "state ");
}

/* What is there but for the directory of a killed supervisor, which is the next start's to remove. */
static char *find_left(const Cycles *cycles, double seconds)
{
	gint64 until = g_get_monotonic_time() + (gint64)(seconds * G_USEC_PER_SEC);

	for (;;) {
		g_autofree char *more = leaks_find_new(cycles->before, false, 0);
		g_auto(GStrv) lines = g_strsplit(more ? more : "", "\n", -1);
		bool only_state = true;

		for (char **line = lines; *line; line++)
			only_state = only_state && is_of_state(*line);
		if (only_state)
			return NULL;
		if (g_get_monotonic_time() >= until)
			return g_steal_pointer(&more);
		g_usleep(LOOK_US);
	}
}

static void fail(Cycles *cycles, const char *what, const char *detail)
{
	cycles->failures++;
	printf("FAIL: %s\n%s%s", what, detail ? detail : "", detail ? "\n" : "");
	(void)fflush(stdout);
}

static void one_cycle(Cycles *cycles, int number, GRand *random)
{
	Victim victim = (Victim)g_rand_int_range(random, 0, _VICTIM_N);
	gint64 after_us = (gint64)(g_rand_double(random) * 1.1 * (double)cycles->whole_us);
	g_autofree char *what = g_strdup_printf("cycle %d, %s killed after %d us", number,
						victim_names[victim], (int)after_us);
	gint64 begin = g_get_monotonic_time(), killed_at;
	pid_t pid = start(cycles->command), target = 0;
	g_autofree char *left = NULL;

	if (pid < 0) {
		fail(cycles, "cannot start", NULL);
		return;
	}
	/* One that is not there yet is killed as soon as it is. */
	while (!has_ended(pid)) {
		if (g_get_monotonic_time() - begin >= after_us &&
		    (target = find_victim(victim, pid)) > 0)
			break;
		g_usleep(LOOK_US);
	}
	if (target > 0 && kill(target, SIGKILL) == 0)
		cycles->killed[victim]++;
	else
		cycles->ended++;
	killed_at = g_get_monotonic_time();
	if (!await_end(pid))
		fail(cycles, what, "the run did not end");
	if ((left = find_left(cycles, END_SECONDS)))
		fail(cycles, what, left);
	cycles->longest_us = MAX(cycles->longest_us, g_get_monotonic_time() - killed_at);
}

/* A run under fail-nth with this option more, which leaves its report. false: it did not end. */
static bool run_followed(const Cycles *cycles, char *fail_nth, const char *option, char *report)
{
	g_autoptr(GPtrArray) argv = g_ptr_array_new_with_free_func(g_free);
	const char *const words[] = { fail_nth,	  "--role", "supervisor", "--outlive", "1",
				      "--report", report,   option,	  "--" };
	pid_t pid;

	for (size_t i = 0; i < G_N_ELEMENTS(words); i++)
		g_ptr_array_add(argv, g_strdup(words[i]));
	for (char **word = cycles->command; *word; word++)
		g_ptr_array_add(argv, g_strdup(*word));
	g_ptr_array_add(argv, NULL);
	pid = start((char *const *)argv->pdata);
	return pid > 0 && await_end(pid);
}

static void kill_at(Cycles *cycles, char *fail_nth, char *report, int nth)
{
	g_autofree char *option = g_strdup_printf("--kill=%d", nth), *left = NULL, *text = NULL;
	g_autofree char *what = g_strdup_printf("the supervisor killed at its call %d", nth);

	if (!run_followed(cycles, fail_nth, option, report) ||
	    !g_file_get_contents(report, &text, NULL, NULL))
		fail(cycles, what, "it did not end");
	else if (!strstr(text, "failed supervisor"))
		fail(cycles, what, "it was not");
	else if (strstr(text, "left "))
		fail(cycles, what, text);
	if ((left = find_left(cycles, LEAVE_SECONDS)))
		fail(cycles, what, left);
}

static void points(Cycles *cycles, char *fail_nth, char *report, int count)
{
	g_autofree char *text = NULL;
	int calls = 0;

	if (run_followed(cycles, fail_nth, "--nth=0", report) &&
	    g_file_get_contents(report, &text, NULL, NULL))
		for (const char *at = text; (at = strstr(at, "call ")); at += strlen("call "))
			calls++;
	if (calls < count)
		fail(cycles, "the calls of the supervisor cannot be counted", NULL);
	for (int i = 0; i < count && calls >= count; i++)
		/* Not the last ones: how many there are depends on what comes together with what. */
		kill_at(cycles, fail_nth, report, 1 + (int)((gint64)calls * 8 / 10 * i / count));
	printf("%d points of %d calls\n", count, calls);
}

static bool clean_run(const Cycles *cycles)
{
	pid_t pid = start(cycles->command);

	return pid > 0 && await_end(pid);
}

int main(int argc, char **argv)
{
	int count = 60, seed = 1, n_points = 0;
	g_autofree char *dir = NULL, *report = NULL, *fail_nth = NULL, *everywhere = NULL,
			*left = NULL;
	const GOptionEntry entries[] = {
		{ "cycles", 0, 0, G_OPTION_ARG_INT, &count, "how many", "N" },
		{ "seed", 0, 0, G_OPTION_ARG_INT, &seed, "of the moments", "S" },
		{ "points", 0, 0, G_OPTION_ARG_INT, &n_points, "of the start", "N" },
		{ "fail-nth", 0, 0, G_OPTION_ARG_FILENAME, &fail_nth, "it", "FILE" },
		{ 0 },
	};
	g_autoptr(GOptionContext) context = g_option_context_new("-- COMMAND");
	g_autoptr(GError) mistake = NULL;
	static Cycles cycles = { 0 };
	GRand *random;

	g_option_context_add_main_entries(context, entries, NULL);
	g_option_context_set_strict_posix(context, TRUE);
	if (!g_option_context_parse(context, &argc, &argv, &mistake) || argc < 3 ||
	    (n_points > 0 && !fail_nth)) {
		printf("FAIL: the arguments of kill-cycles\n");
		return 2;
	}
	cycles.command = argv + (strcmp(argv[1], "--") == 0 ? 2 : 1);
	printf("seed %d\n", seed);
	dir = g_dir_make_tmp("kill-cycles.XXXXXX", NULL);
	report = g_build_filename(dir, "report", NULL);
	/* The first one makes the directories that stay. */
	if (!clean_run(&cycles))
		fail(&cycles, "a run that nothing is done to does not end", NULL);
	cycles.before = leaks_list(false);
	everywhere = leaks_list(true);
	cycles.whole_us = g_get_monotonic_time();
	(void)clean_run(&cycles);
	cycles.whole_us = g_get_monotonic_time() - cycles.whole_us;
	random = g_rand_new_with_seed((guint32)seed);
	for (int i = 1; i <= count; i++)
		one_cycle(&cycles, i, random);
	g_rand_free(random);
	if (n_points > 0)
		points(&cycles, fail_nth, report, n_points);
	/* A start removes what 32 dead owners have left. */
	for (int i = 0; i <= (count + n_points) / 32; i++)
		(void)clean_run(&cycles);
	if ((left = leaks_find_new(everywhere, true, END_SECONDS)))
		fail(&cycles, "left at the end", left);
	(void)unlink(report);
	(void)rmdir(dir);
	printf("a run takes %d ms; killed:", (int)(cycles.whole_us / 1000));
	for (int victim = 0; victim < _VICTIM_N; victim++)
		printf(" %d %s,", cycles.killed[victim], victim_names[victim]);
	printf(" %d ended before; all gone within %d ms; %d wrong\n", cycles.ended,
	       (int)(cycles.longest_us / 1000), cycles.failures);
	return cycles.failures ? 1 : 0;
}
