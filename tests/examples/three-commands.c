/* One session, three commands: what one leaves in the workspace the next one finds, what it was refused is told, and nothing of
 * it runs on.
 *
 *   three-commands WORKSPACE */
#include <stdio.h>
#include <stella/stella.h>

static StellaSession *start(const char *workspace, GError **error)
{
	const StellaMount mounts[] = {
		{ workspace, STELLA_MOUNT_WORKSPACE, STELLA_MOUNT_READ_WRITE, FALSE, 0, 0 },
	};
	g_autoptr(StellaFactoryRegistry) registry = stella_factory_registry_new_default();
	g_autoptr(StellaPolicy) policy = NULL;
	StellaPolicyOptions options;

	stella_policy_options_init(&options);
	options.workspace_root = workspace;
	options.working_dir = STELLA_MOUNT_WORKSPACE;
	options.mounts = mounts;
	options.n_mounts = G_N_ELEMENTS(mounts);
	options.network_mode = STELLA_NETWORK_DISABLED;
	policy = stella_policy_new(&options);
	return stella_factory_registry_create_session(registry, policy, NULL, error);
}

static void show(const char *command, const StellaExecResult *result)
{
	StellaDenial denial;
	StellaChange change;

	printf("$ %s\n%s", command, stella_exec_result_get_stdout(result, NULL));
	printf("exit %d\n", stella_exec_result_get_exit_code(result));
	for (gsize i = 0; stella_exec_result_get_denial(result, i, &denial); i++)
		printf("refused: %s %s: %s\n", denial.op, denial.path, denial.reason);
	for (gsize i = 0; stella_exec_result_get_change(result, i, &change); i++)
		printf("%s: %s\n", change.change, change.path);
}

int main(int argc, char **argv)
{
	static const char *const commands[] = {
		"echo hello > greeting && wc -c greeting",
		"tr a-z A-Z < greeting; touch /etc/passwd",
		"sleep 100 & test -s greeting",
	};
	g_autoptr(GError) error = NULL;
	g_autoptr(StellaSession) session = argc == 2 ? start(argv[1], &error) : NULL;

	if (!session) {
		fprintf(stderr, "%s\n", error ? error->message : "usage: three-commands WORKSPACE");
		return 1;
	}
	for (gsize i = 0; i < G_N_ELEMENTS(commands); i++) {
		g_autoptr(StellaExecResult) result =
			stella_session_exec(session, commands[i], NULL, NULL, &error);

		if (!result) {
			fprintf(stderr, "%s\n", error->message);
			return 1;
		}
		show(commands[i], result);
	}
	return stella_session_close(session, NULL, NULL) ? 0 : 1;
}
