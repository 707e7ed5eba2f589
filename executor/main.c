/* stella-exec: which command was asked for. */
#include "common/errno-util.h"
#include "common/fd-util.h"
#include "executor/cmd-doctor.h"
#include "executor/cmd-run.h"
#include "executor/cmd-serve.h"
#include "executor/help.h"
#include "executor/message.h"
#include "executor/result.h"

#include <fcntl.h>
#include <glib.h>
#include <string.h>
#include <unistd.h>

static const struct {
	const char *name;
	int (*run)(int argc, char **argv, char **host_env);
} commands[] = { { "run", exr_cmd_run },
		 { "sh", exr_cmd_sh },
		 { "shell", exr_cmd_shell },
		 { "serve", exr_cmd_serve },
		 { "doctor", exr_cmd_doctor } };

/* A standard stream that is closed would be the number of the next thing that we open. stdout is put on
 * something that cannot be written to, so that output is still the error that it would have been. */
static int fill_standard_fds(void)
{
	static const int flags[] = { O_RDONLY, O_RDONLY, O_WRONLY };

	for (int fd = 0; fd <= STDERR_FILENO; fd++) {
		int opened;

		if (fcntl(fd, F_GETFD) >= 0)
			continue;
		/* The lowest free number, which is fd; open in our children too, as the others are. */
		opened = open("/dev/null", flags[fd] | O_CLOEXEC);
		if (opened < 0)
			return -errno;
		(void)fd_set_cloexec(opened, false);
	}
	return 0;
}

static int print_text(int (*print)(void))
{
	int r = print();

	if (r < 0)
		exr_message_print(NULL, "standard output: %s", errno_text(-r));
	return r < 0 ? EXR_EXIT_FAILED : 0;
}

int main(int argc, char **argv)
{
	int r = fill_standard_fds();

	if (r < 0) {
		exr_message_print("a closed standard stream has to be replaced", "/dev/null: %s",
				  errno_text(-r));
		return EXR_EXIT_FAILED;
	}
	if (argc < 2) {
		exr_message_print("see stella-exec --help", "no command given");
		return EXR_EXIT_FAILED;
	}
	for (size_t i = 0; i < G_N_ELEMENTS(commands); i++)
		if (strcmp(argv[1], commands[i].name) == 0)
			return commands[i].run(argc - 1, argv + 1, environ);
	if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0 ||
	    strcmp(argv[1], "help") == 0)
		return print_text(exr_help_print);
	if (strcmp(argv[1], "--version") == 0)
		return print_text(exr_help_print_version);
	exr_message_print("see stella-exec --help", "%s: unknown command", argv[1]);
	return EXR_EXIT_FAILED;
}
