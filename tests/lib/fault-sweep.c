/* fault-sweep [OPTION...] -- stella-exec run --json ... -- COMMAND
 *
 * Every single system call of the set-up of a run fails once, each in a run of its own (fail-nth.c makes it
 * fail): nothing is run that was not set up in full, the stage is named, nothing is left. COMMAND makes the file
 * --marker.
 *
 *   --role ROLE      whose calls; may be given more than once
 *   --errno NAME     how they fail; may be given more than once (EPERM)
 *   --stride K       every Kth call only, which one first is told by --seed
 *   --seed S         (0)
 *   --marker FILE --stages README --fail-nth PROGRAM
 *   --verbose        a line for each call
 *
 * To be run where all processes and mounts are the test's own (sh-lib.sh). Exit status 0 when all was as it should be. */
#include "lib/fault-verdict.h"
#include "lib/leaks.h"

#include <errno.h>
#include <fcntl.h>
#include <glib.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

/* A run that takes longer hangs: its longest own deadline is 15 s. */
#define HANG_SECONDS "40"
#define LEAK_SECONDS 3
#define SLOW_MS	     4000

typedef struct {
	char **roles, **errnos;
	char *marker, *readme, *fail_nth;
	int stride, seed;
	gboolean verbose;

	char **command; /* stella-exec and its arguments */
	char **stages;
	char *dir; /* for outputs and report */
	char *before;
	int kinds[_FAULT_N];
	int failures, cases, slow, left_for_next;
} Sweep;

static char *in_dir(const Sweep *sweep, const char *name)
{
	return g_build_filename(sweep->dir, name, NULL);
}

static char *take_text(const char *path)
{
	char *text = NULL;

	return g_file_get_contents(path, &text, NULL, NULL) ? text : g_strdup("");
}

/* Runs it with its outputs in files: pipes could be held open by what should have died. */
static int run(char *const *argv, const char *out, const char *err)
{
	posix_spawn_file_actions_t actions;
	int status = -1;
	pid_t pid;

	posix_spawn_file_actions_init(&actions);
	posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
	posix_spawn_file_actions_addopen(&actions, 1, out, O_WRONLY | O_CREAT | O_TRUNC, 0600);
	posix_spawn_file_actions_addopen(&actions, 2, err, O_WRONLY | O_CREAT | O_TRUNC, 0600);
	if (posix_spawnp(&pid, argv[0], &actions, NULL, argv, environ) == 0)
		while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
			;
	posix_spawn_file_actions_destroy(&actions);
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

static int run_with(const Sweep *sweep, const char *role, int nth, const char *errno_name)
{
	g_autoptr(GPtrArray) argv = g_ptr_array_new_with_free_func(g_free);
	g_autofree char *out = in_dir(sweep, "out"), *err = in_dir(sweep, "err");
	const char *const options[] = { sweep->fail_nth, "--seconds", HANG_SECONDS, "--role",
					role };

	for (size_t i = 0; i < G_N_ELEMENTS(options); i++)
		g_ptr_array_add(argv, g_strdup(options[i]));
	if (nth > 0) {
		g_ptr_array_add(argv, g_strdup_printf("--nth=%d", nth));
		g_ptr_array_add(argv, g_strdup_printf("--errno=%s", errno_name));
	}
	g_ptr_array_add(argv, g_strdup("--report"));
	g_ptr_array_add(argv, in_dir(sweep, "report"));
	g_ptr_array_add(argv, g_strdup("--"));
	for (char **word = sweep->command; *word; word++)
		g_ptr_array_add(argv, g_strdup(*word));
	g_ptr_array_add(argv, NULL);
	(void)unlink(sweep->marker);
	return run((char *const *)argv->pdata, out, err);
}

static void read_report(const Sweep *sweep, FaultOutcome *outcome)
{
	g_autofree char *path = in_dir(sweep, "report");
	g_autofree char *text = take_text(path);
	g_auto(GStrv) lines = g_strsplit(text, "\n", -1);

	for (char **line = lines; *line; line++) {
		if (sscanf(*line, "failed %31s %d %31s", outcome->role, &outcome->nth,
			   outcome->call) == 3) {
			outcome->reached = true;
			outcome->too_late = outcome->started;
		} else if (strcmp(*line, "run") == 0) {
			outcome->started = true;
		} else if (strcmp(*line, "hang") == 0) {
			outcome->hung = true;
		} else if (g_str_has_prefix(*line, "left ")) {
			g_free(outcome->left);
			outcome->left = g_strdup(*line);
		}
	}
}

/* A start that nothing is done to: it succeeds, and removes what a dead one has left. */
static bool clean_start(const Sweep *sweep)
{
	g_autofree char *out = in_dir(sweep, "clean-out"), *err = in_dir(sweep, "clean-err");

	return run(sweep->command, out, err) == 0;
}

static bool is_of_state_only(const char *leaks)
{
	g_auto(GStrv) lines = g_strsplit(leaks, "\n", -1);

	for (char **line = lines; *line; line++)
		if (**line && !g_str_has_prefix(*line, "state "))
			return false;
	return true;
}

/* What is left of the directory of a supervisor that died, or that could not remove it, goes with the next start. */
static char *find_leaks(Sweep *sweep, const FaultOutcome *outcome, int kind)
{
	char *leaks = leaks_find_new(sweep->before, false, LEAK_SECONDS);

	if (!leaks || strcmp(outcome->role, "supervisor") != 0 ||
	    (kind != FAULT_NO_MEMORY &&
	     !strstr("unlinkat openat getdents64 newfstatat fcntl", outcome->call)) ||
	    !is_of_state_only(leaks))
		return leaks;
	if (sweep->verbose)
		printf("  left to the next start: %s", leaks);
	g_free(leaks);
	sweep->left_for_next++;
	if (!clean_start(sweep))
		return g_strdup("the next start failed\n");
	return leaks_find_new(sweep->before, false, LEAK_SECONDS);
}

static void one_case(Sweep *sweep, const char *role, int nth, const char *errno_name)
{
	g_autofree char *out = in_dir(sweep, "out"), *err = in_dir(sweep, "err");
	FaultOutcome outcome = { .interrupted = strcmp(errno_name, "EINTR") == 0 };
	gint64 begin = g_get_monotonic_time(), took_ms;
	const char *why = NULL;
	g_autofree char *leaks = NULL;
	int kind;

	outcome.status = run_with(sweep, role, nth, errno_name);
	took_ms = (g_get_monotonic_time() - begin) / 1000;
	outcome.out = take_text(out);
	outcome.err = take_text(err);
	outcome.marker = access(sweep->marker, F_OK) == 0;
	read_report(sweep, &outcome);
	kind = fault_judge(&outcome, (const char *const *)sweep->stages, &why);
	leaks = find_leaks(sweep, &outcome, kind);
	sweep->cases++;
	sweep->slow += took_ms > SLOW_MS;
	if (kind >= 0 && !leaks)
		sweep->kinds[kind]++;
	else
		sweep->failures++;
	if (kind < 0 || leaks)
		printf("FAIL: %s %d %s %s: %s\n", role, nth, outcome.call, errno_name,
		       kind < 0 ? why : "something is left");
	if (leaks)
		printf("  | %s\n", leaks);
	if (sweep->verbose || kind < 0)
		printf("%s %d %s %s: %s, status %d, %d ms%s | %s", role, nth, outcome.call,
		       errno_name, kind < 0 ? "wrong" : fault_kind_names[kind], outcome.status,
		       (int)took_ms, took_ms > SLOW_MS ? " SLOW" : "",
		       *outcome.err ? outcome.err : "\n");
	(void)fflush(stdout);
	g_free(outcome.out);
	g_free(outcome.err);
	g_free(outcome.left);
}

/* How many calls a run has when nothing fails; 0 when it does not succeed. */
static int count_calls(const Sweep *sweep, const char *role)
{
	g_autofree char *path = in_dir(sweep, "report"), *text = NULL;
	int status = run_with(sweep, role, 0, NULL), count = 0;

	if (status != 0 || access(sweep->marker, F_OK) != 0)
		return 0;
	text = take_text(path);
	for (const char *at = text; (at = strstr(at, "call ")); at += strlen("call "))
		count++;
	return count;
}

static void sweep_role(Sweep *sweep, const char *role)
{
	int count = count_calls(sweep, role);

	if (count == 0) {
		printf("FAIL: %s: no calls, or a run that fails by itself\n", role);
		sweep->failures++;
		return;
	}
	for (char **errno_name = sweep->errnos; *errno_name; errno_name++) {
		for (int nth = 1 + sweep->seed % sweep->stride; nth <= count; nth += sweep->stride)
			one_case(sweep, role, nth, *errno_name);
	}
	printf("%s: %d calls\n", role, count);
}

static bool parse(Sweep *sweep, int argc, char **argv)
{
	const GOptionEntry entries[] = {
		{ "role", 0, 0, G_OPTION_ARG_STRING_ARRAY, &sweep->roles, "whose", "ROLE" },
		{ "errno", 0, 0, G_OPTION_ARG_STRING_ARRAY, &sweep->errnos, "how", "NAME" },
		{ "stride", 0, 0, G_OPTION_ARG_INT, &sweep->stride, "every Kth", "K" },
		{ "seed", 0, 0, G_OPTION_ARG_INT, &sweep->seed, "which one first", "S" },
		{ "marker", 0, 0, G_OPTION_ARG_FILENAME, &sweep->marker, "made", "FILE" },
		{ "stages", 0, 0, G_OPTION_ARG_FILENAME, &sweep->readme, "published", "FILE" },
		{ "fail-nth", 0, 0, G_OPTION_ARG_FILENAME, &sweep->fail_nth, "it", "FILE" },
		{ "verbose", 0, 0, G_OPTION_ARG_NONE, &sweep->verbose, "all lines", NULL },
		{ 0 },
	};
	g_autoptr(GOptionContext) context = g_option_context_new("-- COMMAND");
	g_autoptr(GError) mistake = NULL;

	g_option_context_add_main_entries(context, entries, NULL);
	g_option_context_set_strict_posix(context, TRUE);
	if (!g_option_context_parse(context, &argc, &argv, &mistake)) {
		printf("FAIL: %s\n", mistake->message);
		return false;
	}
	argv += argc > 1 && strcmp(argv[1], "--") == 0 ? 2 : 1;
	sweep->command = g_strdupv(argv);
	sweep->stages = sweep->readme ? fault_read_stages(sweep->readme) : NULL;
	return *argv && sweep->stages && sweep->roles && sweep->errnos && sweep->marker &&
	       sweep->fail_nth && sweep->stride > 0 && sweep->seed >= 0;
}

int main(int argc, char **argv)
{
	static Sweep sweep = { .stride = 1 };
	g_autofree char *everywhere = NULL, *leaks = NULL;

	if (!parse(&sweep, argc, argv)) {
		printf("FAIL: the arguments of fault-sweep, or no table of stages\n");
		return 2;
	}
	sweep.dir = g_dir_make_tmp("fault-sweep.XXXXXX", NULL);
	if (!sweep.dir || !clean_start(&sweep)) {
		printf("FAIL: a run that nothing is done to fails\n");
		return 1;
	}
	everywhere = leaks_list(true);
	sweep.before = leaks_list(false);
	for (char **role = sweep.roles; *role; role++)
		sweep_role(&sweep, *role);
	leaks = leaks_find_new(everywhere, true, 10);
	if (leaks)
		printf("FAIL: left at the end:\n%s", leaks);
	printf("%d calls failed:", sweep.cases);
	for (int kind = 0; kind < _FAULT_N; kind++)
		printf(" %d %s,", sweep.kinds[kind], fault_kind_names[kind]);
	printf(" %d wrong; %d slow, %d left to the next start\n", sweep.failures, sweep.slow,
	       sweep.left_for_next);
	return sweep.failures || leaks || sweep.cases == 0 ? 1 : 0;
}
