/* The help texts; see help.h. Lines of at most 100 columns; the man page says the same at length. */
#include "executor/help.h"

#include "common/io-util.h"
#include "common/policy-options.h"
#include "config.h"

#include <glib.h>
#include <string.h>
#include <unistd.h>

static const char run_options_help[] =
	"Run options:\n"
	"  --json             print one JSON object instead of live output; stdin is empty\n"
	"                     unless --stdin is given\n"
	"  --result FILE      write that object to FILE, beside live output\n"
	"  --lossy-text       in that object, output that is not UTF-8 is text with U+FFFD in the "
	"places of\n"
	"                     what is not, instead of base64\n"
	"  --stdin FILE|-     the command's input: a file, or this program's own (-)\n"
	"  --timeout T        kill the command after T: 500ms, 10s, 5m, 1h; a bare number is "
	"seconds;\n"
	"                     0 (the default) leaves it to the policy\n"
	"  --kill-after T     after a signal was passed on, kill T later (default 10s)\n"
	"  --cwd DIR          run in DIR: a path in the view, relative to the working directory, "
	"or a\n"
	"                     host path inside a mount\n"
	"  --setenv NAME[=VALUE]\n"
	"                     set a variable; without =VALUE, to the caller's value\n"
	"  --unsetenv NAME    leave a variable out\n"
	"  --env-file FILE    set variables from lines NAME=value; # begins a comment line\n"
	"  --tty              give the command a terminal of its own; its output is then one "
	"stream\n"
	"  --log-format FORMAT\n"
	"                     text (default): errors only; json: also what happened to the "
	"sandbox,\n"
	"                     as JSON lines on stderr\n"
	"  --quiet            say nothing on stderr about refused operations\n"
	"\n"
	"Exit status: the program's; 128+n when signal n ended it; 124 timeout; 127 program not "
	"found;\n"
	"126 not executable; 125 the sandbox could not run it, with the reason on stderr.\n";

static int print(const char *text)
{
	return io_write_all(STDOUT_FILENO, text, strlen(text));
}

static int print_command_help(const char *head)
{
	g_autofree char *text =
		g_strconcat(head, "\n", policy_options_help(), "\n", run_options_help, NULL);

	return print(text);
}

int exr_help_print(void)
{
	return print("Usage: stella-exec run [OPTION...] [--] PROGRAM [ARG...]\n"
		     "       stella-exec sh [OPTION...] 'COMMAND'\n"
		     "       stella-exec shell [OPTION...]\n"
		     "       stella-exec serve [--socket PATH] [--log-format FORMAT]\n"
		     "       stella-exec doctor [--json]\n"
		     "\n"
		     "Runs a command in a sandbox whose file tree holds only what was given to it. "
		     "Without\n"
		     "options that is the current directory, as /workspace, writable.\n"
		     "\n"
		     "Commands:\n"
		     "  run        run a program with its arguments\n"
		     "  sh         run a shell command\n"
		     "  shell      an interactive shell\n"
		     "  serve      run commands for a program that asks in JSON-RPC\n"
		     "  doctor     say what this host can do, and how to get what is missing\n"
		     "\n"
		     "  --help     this text; `stella-exec run --help` lists the options\n"
		     "  --version  the version\n");
}

int exr_help_print_run(void)
{
	return print_command_help("Usage: stella-exec run [OPTION...] [--] PROGRAM [ARG...]\n"
				  "\n"
				  "Runs PROGRAM, found by the PATH of the view, in the sandbox.\n");
}

int exr_help_print_sh(void)
{
	return print_command_help(
		"Usage: stella-exec sh [OPTION...] 'COMMAND'\n"
		"       stella-exec sh [OPTION...] - <SCRIPT\n"
		"\n"
		"Runs COMMAND by the view's sh, in the sandbox. One that is longer "
		"than an argument of\n"
		"this program can be (128 KiB) is read from stdin, with -: up to "
		"about 2 MiB, the\n"
		"kernel's limit for arguments. It has no input of its own then "
		"unless --stdin FILE is\n"
		"given.\n");
}

int exr_help_print_shell(void)
{
	return print_command_help(
		"Usage: stella-exec shell [OPTION...]\n"
		"\n"
		"An interactive shell in the sandbox: the view's bash, else its sh. It has a "
		"terminal of its\n"
		"own, if there is one on stdin. It reads no start-up files and keeps no history "
		"file.\n"
		"--json is not for it.\n");
}

int exr_help_print_serve(void)
{
	return print(
		"Usage: stella-exec serve [--socket PATH] [--log-format FORMAT]\n"
		"\n"
		"Runs commands in sessions for a program that asks in JSON-RPC 2.0, one message a "
		"line: on\n"
		"stdin and stdout, or for any number of clients of this user on a unix socket. "
		"What "
		"a client\n"
		"has started ends with it. stella-exec(1) has the methods.\n");
}

int exr_help_print_doctor(void)
{
	return print(
		"Usage: stella-exec doctor [--json]\n"
		"\n"
		"Tries what a sandbox needs of this host and prints a line for each: ok, degraded "
		"(run\n"
		"works without it, at a cost), missing, or unknown (not tried, for something else "
		"is\n"
		"missing); what it costs, and how to get it. The last line says whether run works: "
		"a\n"
		"command has then really been run. Nothing is left behind.\n"
		"\n"
		"  --json  one JSON object instead; see stella-exec(1)\n"
		"\n"
		"Exit status: 0 if run works, 1 if it does not, 125 if the report could not be "
		"made.\n");
}

int exr_help_print_version(void)
{
	return print("stella-exec " STELLA_VERSION "\n");
}
