/* stella-fsgate: which command was asked for. */
#include "fsgate/cli.h"

#include "common/policy-options.h"

#include "config.h"

#include <glib.h>
#include <stdio.h>
#include <string.h>

static const struct {
	const char *name;
	int (*run)(int argc, char **argv);
} commands[] = {
	{ "mount", fsg_cmd_mount },
	{ "unmount", fsg_cmd_unmount },
	{ "check", fsg_cmd_check },
	{ "serve", fsg_cmd_serve },
};

static int print_help(void)
{
	printf("Usage: stella-fsgate COMMAND [OPTION]...\n"
	       "\n"
	       "  mount [policy options] [-r] [-f] [--allow-other] [--links MODE] MOUNTPOINT\n"
	       "      serve the view that the policy describes, for people and programs to look "
	       "into\n"
	       "        -r             everything read-only\n"
	       "        -f             stay in the foreground; SIGINT and SIGTERM unmount\n"
	       "        --allow-other  let other users of this host enter, as the mode bits say\n"
	       "        --links MODE   rewritten (default): a link that leaves the view is "
	       "refused, one\n"
	       "                       that could climb is shown as a path below MOUNTPOINT;\n"
	       "                       original: unchanged texts, which host programs may follow "
	       "out\n"
	       "  unmount [--lazy] MOUNTPOINT\n"
	       "      end a view; --lazy also one that is in use\n"
	       "  check [policy options]\n"
	       "      validate, and print what the view would hold\n"
	       "\n"
	       "Policy options:\n%s",
	       policy_options_help());
	return fflush(stdout) == 0 ? 0 : FSG_EXIT_FAILED;
}

int main(int argc, char **argv)
{
	if (argc < 2) {
		fsg_cli_complain("no command given (see stella-fsgate --help)");
		return FSG_EXIT_USAGE;
	}
	for (size_t i = 0; i < G_N_ELEMENTS(commands); i++)
		if (strcmp(argv[1], commands[i].name) == 0)
			return commands[i].run(argc - 1, argv + 1);
	if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0)
		return print_help();
	if (strcmp(argv[1], "--version") == 0) {
		printf("stella-fsgate " STELLA_VERSION "\n");
		return fflush(stdout) == 0 ? 0 : FSG_EXIT_FAILED;
	}
	fsg_cli_complain("%s: unknown command (see stella-fsgate --help)", argv[1]);
	return FSG_EXIT_USAGE;
}
