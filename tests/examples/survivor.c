/* A session that survives the death of what serves it: the gateway is killed, and the next command runs in a new session, with
 * the workspace as it was.
 *
 *   survivor WORKSPACE */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <stella/stella.h>
#include <string.h>
#include <unistd.h>

/* Called whenever a session is needed: from the host's present state, in any thread. */
static StellaSession *make_session(GCancellable *cancellable, gpointer user_data, GError **error)
{
	g_autoptr(StellaFactory) factory = stella_factory_new_fsgate();
	g_autoptr(StellaPolicy) policy = NULL;
	StellaPolicyOptions options;

	stella_policy_options_init(&options);
	options.working_dir = user_data;
	options.network_mode = STELLA_NETWORK_DISABLED;
	policy = stella_policy_new(&options);
	return stella_factory_create_session(factory, policy, cancellable, error);
}

/* The process among our children that has that name; for this example alone. */
static pid_t find_child(const char *name)
{
	g_autofree char *path = g_strdup_printf("/proc/self/task/%d/children", getpid());
	g_autofree char *list = NULL;
	g_auto(GStrv) pids = NULL;

	if (!g_file_get_contents(path, &list, NULL, NULL))
		return -1;
	pids = g_strsplit_set(list, " ", -1);
	for (char **pid = pids; *pid; pid++) {
		g_autofree char *comm_path = g_strdup_printf("/proc/%s/comm", *pid);
		g_autofree char *comm = NULL;

		if (g_file_get_contents(comm_path, &comm, NULL, NULL) &&
		    g_str_has_prefix(comm, name))
			return atoi(*pid);
	}
	return -1;
}

static gboolean run(StellaSession *session, const char *command, GError **error)
{
	g_autoptr(StellaExecResult) result =
		stella_session_exec(session, command, NULL, NULL, error);

	if (!result || !stella_exec_result_check(result, error))
		return FALSE;
	printf("%s", stella_exec_result_get_stdout(result, NULL));
	return TRUE;
}

static gboolean run_twice(StellaSession *session, GError **error)
{
	pid_t gateway;

	if (!run(session, "echo first > log; cat log", error))
		return FALSE;
	gateway = find_child("stella-fsgate");
	if (gateway <= 0) {
		g_set_error(error, STELLA_ERROR, STELLA_ERROR_FAILED, "no gateway found");
		return FALSE;
	}
	kill(gateway, SIGKILL);
	if (!stella_session_wait_done(session, NULL, error))
		return FALSE;
	printf("the gateway is dead: alive %d\n", stella_session_is_alive(session));
	if (!run(session, "echo second >> log; cat log", error))
		return FALSE;
	printf("a new one: alive %d\n", stella_session_is_alive(session));
	return TRUE;
}

int main(int argc, char **argv)
{
	g_autoptr(GError) error = NULL;
	g_autoptr(StellaSession) first = NULL;
	g_autoptr(StellaResilientSession) session = NULL;

	if (argc != 2) {
		fprintf(stderr, "usage: survivor WORKSPACE\n");
		return 2;
	}
	first = make_session(NULL, argv[1], &error);
	if (first) {
		session = stella_resilient_session_new(first, make_session, argv[1], NULL);
		if (run_twice(STELLA_SESSION(session), &error))
			return stella_session_close(STELLA_SESSION(session), NULL, NULL) ? 0 : 1;
	}
	fprintf(stderr, "%s\n", error->message);
	return 1;
}
