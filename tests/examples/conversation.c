/* A live process: a program that is talked to over its stdin and stdout while it runs.
 *
 *   conversation WORKSPACE */
#include <stdio.h>
#include <stella/stella.h>
#include <string.h>
#include <unistd.h>

static StellaProcess *start_shell(StellaSession *session, GError **error)
{
	static const char *const args[] = { "-c",
					    "while read -r line; do echo \"you said $line\"; done",
					    NULL };
	StellaProcessRequest request;

	stella_process_request_init(&request);
	request.path = "sh";
	request.args = args;
	request.timeout_ms = 60000;
	return stella_session_start_process(session, &request, NULL, error);
}

/* One line there, one line back. */
static gboolean say(StellaProcess *process, const char *line)
{
	char answer[256];
	ssize_t n, size = (ssize_t)strlen(line);

	if (write(stella_process_get_stdin_fd(process), line, (size_t)size) != size)
		return FALSE;
	for (n = 0; n == 0 || answer[n - 1] != '\n'; n++)
		if (n == sizeof answer ||
		    read(stella_process_get_stdout_fd(process), answer + n, 1) != 1)
			return FALSE;
	fwrite(answer, 1, (size_t)n, stdout);
	return TRUE;
}

static gboolean talk(StellaSession *session, GError **error)
{
	g_autoptr(StellaProcess) process = start_shell(session, error);
	g_autoptr(StellaExecResult) result = NULL;

	if (!process)
		return FALSE;
	if (!say(process, "hello\n") || !say(process, "goodbye\n")) {
		g_set_error(error, STELLA_ERROR, STELLA_ERROR_IO, "it does not answer");
		return FALSE;
	}
	/* the end of its input is the end of its loop */
	stella_process_close_stdin(process);
	result = stella_process_wait(process, 10000, NULL, error);
	if (!result || !stella_exec_result_check(result, error))
		return FALSE;
	printf("exit %d\n", stella_exec_result_get_exit_code(result));
	return stella_process_close(process, error);
}

int main(int argc, char **argv)
{
	g_autoptr(StellaFactory) factory = stella_factory_new_fsgate();
	g_autoptr(GError) error = NULL;
	g_autoptr(StellaPolicy) policy = NULL;
	g_autoptr(StellaSession) session = NULL;
	StellaPolicyOptions options;

	stella_policy_options_init(&options);
	options.working_dir = argc == 2 ? argv[1] : "";
	policy = stella_policy_new(&options);
	session = stella_factory_create_session(factory, policy, NULL, &error);
	if (session && talk(session, &error))
		return stella_session_close(session, NULL, NULL) ? 0 : 1;
	fprintf(stderr, "%s\n", error->message);
	return 1;
}
