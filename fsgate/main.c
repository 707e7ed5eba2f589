/* stella-fsgate: which command was asked for. */
#include "fsgate/cli.h"

#include "common/policy-options.h"

#include "config.h"

#include <glib.h>
#include <stdio.h>
#include <string.h>

static const char mount_help[] =
	"      serve the view that the policy describes, for people and programs to look into\n"
	"        -r             everything read-only\n"
	"        -f             stay in the foreground; SIGINT and SIGTERM unmount\n"
	"        --allow-other  let other users of this host enter, as modes and ACLs say\n"
	"        --links MODE   rewritten (default): a link that leaves the view is refused, one\n"
	"                       that could climb is shown as a path below MOUNTPOINT;\n"
	"                       original: unchanged texts, which host programs may follow out\n";
static const char unmount_help[] = "      end a view; --lazy also one that is in use\n";
static const char status_help[] =
	"      what a view holds, how it is used and what it has refused; all of yours by default\n"
	"        --json         as one JSON object (see the manual page)\n";
static const char events_help[] =
	"      what a view has refused lately and what was changed through it\n"
	"        --json         a JSON object a line (see the manual page)\n"
	"        --follow       go on, as it happens, until the view ends\n";
static const char resolve_help[] =
	"      where a path leads in that view: as a host path (strict: links are refused), and "
	"opened\n"
	"        --write        to change it, or to make it\n"
	"        --json         as one JSON object (see the manual page)\n";
static const char check_help[] = "      validate, and print what the view would hold\n";

static const struct {
	const char *name;
	int (*run)(int argc, char **argv);
	const char *arguments, *help; /* NULL: no command for people */
	bool takes_policy;
} commands[] = {
	{ "mount", fsg_cmd_mount,
	  "[policy options] [-r] [-f] [--allow-other] [--links MODE] MOUNTPOINT", mount_help,
	  true },
	{ "unmount", fsg_cmd_unmount, "[--lazy] MOUNTPOINT", unmount_help, false },
	{ "status", fsg_cmd_status, "[--json] [MOUNTPOINT]", status_help, false },
	{ "events", fsg_cmd_events, "[--json] [--follow] MOUNTPOINT", events_help, false },
	{ "resolve", fsg_cmd_resolve, "[--write] [--json] [policy options] PATH...", resolve_help,
	  true },
	{ "check", fsg_cmd_check, "[policy options]", check_help, true },
	{ "serve", fsg_cmd_serve, NULL, NULL, false },
};

static void print_policy_help(void)
{
	printf("\n%s"
	       "--no-network, --limit and --backend are about commands and change nothing here.\n",
	       policy_options_help());
}

static int print_command_help(size_t i)
{
	printf("Usage: stella-fsgate %s %s\n%s", commands[i].name, commands[i].arguments,
	       commands[i].help);
	if (commands[i].takes_policy)
		print_policy_help();
	return fflush(stdout) == 0 ? 0 : FSG_EXIT_FAILED;
}

static int print_help(void)
{
	printf("Usage: stella-fsgate COMMAND [OPTION]...\n\n");
	for (size_t i = 0; i < G_N_ELEMENTS(commands); i++)
		if (commands[i].help)
			printf("  %s %s\n%s", commands[i].name, commands[i].arguments,
			       commands[i].help);
	print_policy_help();
	return fflush(stdout) == 0 ? 0 : FSG_EXIT_FAILED;
}

/* Wherever it stands: a person who asks for help has not finished the rest. */
static bool asks_for_help(char **argv)
{
	for (; *argv; argv++)
		if (strcmp(*argv, "--help") == 0 || strcmp(*argv, "-h") == 0)
			return true;
	return false;
}

static int run_command(size_t i, int argc, char **argv)
{
	if (commands[i].help && asks_for_help(argv + 1))
		return print_command_help(i);
	return commands[i].run(argc, argv);
}

int main(int argc, char **argv)
{
	if (argc < 2) {
		fsg_cli_complain("no command given (see stella-fsgate --help)");
		return FSG_EXIT_USAGE;
	}
	for (size_t i = 0; i < G_N_ELEMENTS(commands); i++)
		if (strcmp(argv[1], commands[i].name) == 0)
			return run_command(i, argc - 1, argv + 1);
	if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0)
		return print_help();
	if (strcmp(argv[1], "--version") == 0) {
		printf("stella-fsgate " STELLA_VERSION "\n");
		return fflush(stdout) == 0 ? 0 : FSG_EXIT_FAILED;
	}
	fsg_cli_complain("%s: unknown command (see stella-fsgate --help)", argv[1]);
	return FSG_EXIT_USAGE;
}
