/* bench-exec [--rounds N] [--execs N] [--sessions N] [--drain MIB] [--growth N] [ROW...]: what commands and sessions
 * cost, beside a plain spawn and beside bwrap with an equivalent policy. One line a row; README.md says what they
 * are. Loops are bounded by the options; nothing here decides whether a figure is good. */
#include "bench/bench-rivals.h"

#include "common/io-util.h"
#include "common/policy-json.h"
#include "executor/session-exec.h"
#include "lib/session-usage.h"

#include <fcntl.h>
#include <glib.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define WARM_UP 100

typedef struct {
	int rounds, execs, sessions, drain_mib, growth;
	char **rows; /* none: all */
	char *dir, *workspace;
	StellaPolicy *policy;
	ExrSession *session; /* of all rows that need one that is there already */
} Bench;

static const char *const command[] = { "true", NULL };

static ExrSession *session_start(const Bench *bench)
{
	ExrSessionConfig config = { .policy = bench->policy, .temporary_user = true };
	ExrSession *session = NULL;
	ExrError error = { 0 };

	if (exr_session_new(&config, &session, &error) < 0)
		rivals_die("session: %s", error.message);
	return session;
}

static void exec_in(ExrSession *session, const char *const *argv)
{
	g_autoptr(ExrOutcome) outcome = NULL;
	ExrExecOptions options;

	exr_exec_options_init(&options);
	options.argv = argv;
	outcome = exr_session_exec_until(session, &options, -1);
	if (outcome->result.ended != EXR_ENDED_EXITED || outcome->result.exit_code != 0)
		rivals_die("%s failed in the session", argv[0]);
}

static bool wants(const Bench *bench, const char *row)
{
	return !bench->rows[0] || g_strv_contains((const char *const *)bench->rows, row);
}

/* --- one command, one session: interleaved rounds, medians --- */

enum { SPAWN, EXEC, BWRAP, RUN, START, END, N_TIMES };

static const char *const time_names[N_TIMES] = { "spawn", "exec", "bwrap", "run", "start", "end" };

static void one_round(const Bench *bench, double *ret_us)
{
	ExrSession *session;
	double at = rivals_now_us();

	rivals_spawn(command);
	ret_us[SPAWN] = rivals_now_us() - at;
	at = rivals_now_us();
	exec_in(bench->session, command);
	ret_us[EXEC] = rivals_now_us() - at;
	ret_us[BWRAP] = rivals_bwrap(bench->workspace, command);
	at = rivals_now_us();
	rivals_run(bench->workspace, command);
	ret_us[RUN] = rivals_now_us() - at;
	at = rivals_now_us();
	session = session_start(bench);
	ret_us[START] = rivals_now_us() - at;
	at = rivals_now_us();
	exr_session_free(session);
	ret_us[END] = rivals_now_us() - at;
}

static int compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return x < y ? -1 : x > y;
}

static void print_time(const Bench *bench, int which, double median, const double *all)
{
	if (!wants(bench, time_names[which]))
		return;
	if (median < 0) {
		printf("%-12s not given: bwrap is not installed, or cannot do this here\n",
		       time_names[which]);
		return;
	}
	printf("%-12s %10.0f us", time_names[which], median);
	if (which == EXEC)
		printf("   %.2f of a plain spawn", median / all[SPAWN]);
	if ((which == EXEC || which == RUN) && all[BWRAP] > 0)
		printf("   %.2f of bwrap", median / all[BWRAP]);
	printf("\n");
}

static void times(const Bench *bench)
{
	g_autofree double *us = g_new(double, (size_t)bench->rounds *N_TIMES);
	g_autofree double *column = g_new(double, (size_t)bench->rounds);
	double medians[N_TIMES];

	for (int r = 0; r < bench->rounds; r++)
		one_round(bench, us + (size_t)r * N_TIMES);
	for (int which = 0; which < N_TIMES; which++) {
		for (int r = 0; r < bench->rounds; r++)
			column[r] = us[(size_t)r * N_TIMES + (size_t)which];
		qsort(column, (size_t)bench->rounds, sizeof *column, compare);
		medians[which] = column[bench->rounds / 2];
	}
	for (int which = 0; which < N_TIMES; which++)
		print_time(bench, which, medians[which], medians);
}

/* --- many at once --- */

typedef struct {
	ExrSession *const *sessions;
	int session_count;
	int execs; /* altogether */
	int next;  /* atomic */
} Work;

static void *work(void *data)
{
	Work *all = data;
	int i;

	while ((i = g_atomic_int_add(&all->next, 1)) < all->execs)
		exec_in(all->sessions[i % all->session_count], command);
	return NULL;
}

static double execs_a_second(ExrSession *const *sessions, int session_count, int execs, int threads)
{
	Work all = { .sessions = sessions, .session_count = session_count, .execs = execs };
	g_autofree pthread_t *ids = g_new(pthread_t, (size_t)threads);
	double at = rivals_now_us();

	for (int i = 0; i < threads; i++)
		if (pthread_create(&ids[i], NULL, work, &all) != 0)
			rivals_die("thread");
	for (int i = 0; i < threads; i++)
		pthread_join(ids[i], NULL);
	return execs / (rivals_now_us() - at) * 1e6;
}

static void throughput(const Bench *bench)
{
	static const int threads[] = { 1, 2, 8 };

	for (size_t i = 0; i < G_N_ELEMENTS(threads); i++)
		printf("%-12s %10.0f execs/s by %d at once\n", "throughput",
		       execs_a_second(&bench->session, 1, bench->execs, threads[i]), threads[i]);
}

static void many_sessions(const Bench *bench)
{
	g_autofree ExrSession **sessions = g_new(ExrSession *, (size_t)bench->sessions);
	int execs = MAX(bench->execs, bench->sessions);
	double one, many;
	SessionUsage usage;

	one = execs_a_second(&bench->session, 1, execs, 8);
	for (int i = 0; i < bench->sessions; i++)
		sessions[i] = session_start(bench);
	many = execs_a_second(sessions, bench->sessions, execs, 8);
	session_usage_read(-1, &usage);
	for (int i = 0; i < bench->sessions; i++)
		exr_session_free(sessions[i]);
	printf("%-12s %10.0f execs/s by 8 at once in %d sessions   %.2f of one session   "
	       "%ld KiB in all\n",
	       "sessions", many, bench->sessions, many / one, usage.session_kib);
}

/* --- output that is not kept --- */

static void drain(const Bench *bench)
{
	g_autofree char *script = g_strdup_printf("head -c %dM /dev/zero", bench->drain_mib);
	g_autofree char *native = g_strconcat(script, " | cat >/dev/null", NULL);
	const char *const ours[] = { "sh", "-c", script, NULL };
	const char *const theirs[] = { "sh", "-c", native, NULL };
	double best_ours = 0, best_theirs = 0;

	for (int r = 0; r < MIN(bench->rounds, 3); r++) {
		double at = rivals_now_us(), rate;

		rivals_spawn(theirs);
		rate = bench->drain_mib / (rivals_now_us() - at) * 1e6;
		best_theirs = MAX(best_theirs, rate);
		at = rivals_now_us();
		exec_in(bench->session, ours);
		rate = bench->drain_mib / (rivals_now_us() - at) * 1e6;
		best_ours = MAX(best_ours, rate);
	}
	printf("%-12s %10.0f MiB/s   %.2f of cat >/dev/null\n", "drain", best_ours,
	       best_ours / best_theirs);
}

/* --- what is held --- */

static void memory(const Bench *bench)
{
	SessionUsage idle, used;
	ExrSession *session = session_start(bench);

	session_usage_read(-1, &idle);
	for (int i = 0; i < WARM_UP; i++)
		exec_in(session, command);
	session_usage_read(-1, &used);
	exr_session_free(session);
	printf("%-12s %10ld KiB private in a new session   %ld KiB after %d commands\n", "memory",
	       idle.session_kib, used.session_kib, WARM_UP);
}

static void growth(const Bench *bench)
{
	SessionUsage before, after;

	for (int i = 0; i < WARM_UP; i++)
		exec_in(bench->session, command);
	session_usage_read(-1, &before);
	for (int i = 0; i < bench->growth; i++)
		exec_in(bench->session, command);
	session_usage_read(-1, &after);
	printf("%-12s %10d execs: %+ld KiB in the session, %+ld KiB here, %+d fds, %+d mounts, "
	       "%+d processes\n",
	       "growth", bench->growth, after.session_kib - before.session_kib,
	       after.own_kib - before.own_kib, after.fds - before.fds, after.mounts - before.mounts,
	       after.processes - before.processes);
}

static void set_up(Bench *bench)
{
	g_autofree char *text = NULL, *state = NULL, *message = NULL;

	bench->dir = g_dir_make_tmp("stella-bench-XXXXXX", NULL);
	if (!bench->dir)
		rivals_die("temporary directory");
	bench->workspace = g_build_filename(bench->dir, "workspace", NULL);
	state = g_build_filename(bench->dir, "state", NULL);
	if (mkdir(bench->workspace, 0777) != 0 || chmod(bench->dir, 0755) != 0)
		rivals_die("workspace");
	g_setenv("STELLA_STATE_DIR", state, TRUE);
	text = g_strdup_printf(
		"{\"version\": 1, \"filesystem\": {\"working_dir\": \"/workspace\", "
		"\"mounts\": [{\"host_path\": \"%s\", \"view_path\": \"/workspace\", "
		"\"access\": \"rw\"}]}}",
		bench->workspace);
	if (policy_json_parse(text, strlen(text), &bench->policy, &message) < 0)
		rivals_die("%s", message);
}

static void clear(Bench *bench)
{
	exr_session_free(bench->session);
	stella_policy_unref(bench->policy);
	(void)io_remove_tree(AT_FDCWD, bench->dir);
	g_free(bench->workspace);
	g_free(bench->dir);
}

/* The options; what is left in argv are the rows. */
static void take_options(Bench *bench, char **argv)
{
	const struct {
		const char *name;
		int *value;
	} options[] = {
		{ "--rounds", &bench->rounds },	    { "--execs", &bench->execs },
		{ "--sessions", &bench->sessions }, { "--drain", &bench->drain_mib },
		{ "--growth", &bench->growth },
	};

	for (bench->rows = argv + 1; bench->rows[0] && bench->rows[0][0] == '-';) {
		size_t i = 0;

		while (i < G_N_ELEMENTS(options) && strcmp(options[i].name, bench->rows[0]) != 0)
			i++;
		if (i == G_N_ELEMENTS(options) || !bench->rows[1] ||
		    (*options[i].value = atoi(bench->rows[1])) <= 0)
			rivals_die("%s: unknown option, or no number for it", bench->rows[0]);
		bench->rows += 2;
	}
}

int main(int argc, char **argv)
{
	static const struct {
		const char *row;
		void (*measure)(const Bench *bench);
	} rows[] = {
		{ "throughput", throughput },
		{ "sessions", many_sessions },
		{ "drain", drain },
		{ "growth", growth },
	};
	Bench bench = {
		.rounds = 50,
		.execs = 400,
		.sessions = 100,
		.drain_mib = 1024,
		.growth = 10000,
	};
	bool any_time = false;

	(void)argc;
	take_options(&bench, argv);
	set_up(&bench);
	if (wants(&bench, "memory")) /* with no other session beside it */
		memory(&bench);
	bench.session = session_start(&bench);
	exec_in(bench.session, command);
	for (size_t i = 0; i < N_TIMES; i++)
		any_time |= wants(&bench, time_names[i]);
	if (any_time)
		times(&bench);
	for (size_t i = 0; i < G_N_ELEMENTS(rows); i++) {
		if (wants(&bench, rows[i].row))
			rows[i].measure(&bench);
		(void)fflush(stdout);
	}
	clear(&bench);
	return 0;
}
