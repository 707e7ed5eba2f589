/* The environment of one command, made of six layers, of which later ones win:
 *
 *   1. nothing, or with the policy's inherit_env the host's less the deny list (env-filter.h)
 *   2. the host's variables that every command may have (host-env.h)
 *   3. the policy's env
 *   4. the view's own: HOME, PATH, TMPDIR, XDG_*, USER, SHELL, PWD, ...; with the policy's
 *      env_override its own values of these stay
 *   5. the session's refreshed values
 *   6. the request's own
 *
 * Then MISE_* values that are host paths of a mount become view paths, whichever layer they came
 * from. */
#pragma once

#include "common/policy.h"
#include "common/view-plan.h"

/* Everything that the result depends on; all borrowed. A list is NULL-terminated, and may be
 * NULL. */
typedef struct {
	const ViewPlan *plan;		  /* its policy gives layers 1, 3 and 4 */
	const char *const *host;	  /* the host's environment, NAME=value; malformed entries
					     are skipped, of repeated names the first counts */
	const char *const *denied;	  /* more patterns for the deny list */
	const char *const *refresh;	  /* NAME=value */
	const char *const *request_unset; /* names that are taken away before request_set */
	const char *const *request_set;	  /* NAME=value */
	const char *cwd;		  /* view path for PWD; NULL: the working directory */
	const char *home;		  /* view path for HOME; NULL: the plan's (the workspace) */
} EnvironmentOptions;

/* Makes the environment: a sorted, NULL-terminated list of NAME=value without repeated names, which
 * the caller frees with g_strfreev. Values are passed byte for byte. 0, or with *reterr_message one
 * line that names the variable, the value never being told: -EINVAL: a name that is empty or holds
 * '=', or an entry without '='; -E2BIG: a variable that is longer than the kernel hands to a
 * program. Any thread at once. Asks the file system whether /bin/bash exists, and nothing else. */
int environment_new(const EnvironmentOptions *options, char ***ret_env, char **reterr_message);
