/* The command line of stella-fsgate: what its commands share. */
#pragma once

#include "common/view-plan.h"

#include <glib.h>

/* Exit statuses. */
#define FSG_EXIT_FAILED	     1	 /* what was asked for did not work; one line on stderr says why */
#define FSG_EXIT_USAGE	     2	 /* the command line or the policy is wrong */
#define FSG_EXIT_UNSUPPORTED 125 /* the policy asks for what this version does not do */

/* One line "stella-fsgate: ..." on stderr. */
void fsg_cli_complain(const char *format, ...) G_GNUC_PRINTF(1, 2);

/* Commands: argv[0] is the command's name. Each returns the exit status. */
int fsg_cmd_mount(int argc, char **argv);
int fsg_cmd_unmount(int argc, char **argv);
int fsg_cmd_status(int argc, char **argv);
int fsg_cmd_events(int argc, char **argv);
int fsg_cmd_check(int argc, char **argv);
int fsg_cmd_resolve(int argc, char **argv);
/* For the executor only: serves one sandbox's view over a control socket. */
int fsg_cmd_serve(int argc, char **argv);

/* Refuses a policy with keys that have no effect yet: 0, or FSG_EXIT_UNSUPPORTED after a line on stderr. */
int fsg_cli_check_supported(const StellaPolicy *policy);

/* What every gateway process does before it opens anything: no umask of its own, no groups of the caller. */
int fsg_cli_prepare_process(char **reterr_message);

/* A mountpoint as mountinfo has it: absolute, with the links of all but the last component resolved. Never touches
 * what is mounted there. The caller frees. */
char *fsg_cli_find_mountpoint(const char *path);
