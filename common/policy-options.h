/* The command-line options that make a policy, the same for both programs:
 *
 *   --policy FILE | --workspace DIR --user-dir DIR --stella-home DIR --ro HOST[:VIEW]
 *   --rw HOST[:VIEW] --same-path --no-network --runtime MODE --symlinks MODE --cache MODE
 *   --limit NAME=VALUE --backend NAME
 *
 * HOST[:VIEW] is split at its last ":/", for a VIEW is absolute; so a host path may have colons, and one
 * that has a ":/" in it needs its VIEW written out. Without VIEW the mount is at the host path itself.
 * --limit NAME=VALUE takes the names of the policy's limits object, sizes also as 512K, 10M, 1G. An option
 * may be given once, but --ro, --rw and (for different limits) --limit.
 *
 * A program hands each argument to policy_options_take() and keeps what that does not know. */
#pragma once

#include "common/policy.h"

typedef struct PolicyOptions PolicyOptions;

/* What the options are for: the defaults differ. */
typedef enum {
	POLICY_FOR_COMMANDS, /* runtime "host"; HOME is /user, temporary without --user-dir */
	POLICY_FOR_LOOKING,  /* runtime "none" */
} PolicyPurpose;

PolicyOptions *policy_options_new(PolicyPurpose purpose);
void policy_options_free(PolicyOptions *options); /* NULL is allowed */
G_DEFINE_AUTOPTR_CLEANUP_FUNC(PolicyOptions, policy_options_free)

/* Looks at argv[*index]. 1: it was an option of ours, and *index is at the last argument that belongs
 * to it ("--ro X" and "--ro=X" both work). 0: not ours. -EINVAL: ours but wrong, with
 * *reterr_message one line ("--runtime: expected host or none, got 'x'"). */
int policy_options_take(PolicyOptions *options, int argc, char **argv, int *index,
			char **reterr_message);

/* Makes the policy. Relative host paths are taken from the current directory. --policy excludes the
 * options that describe mounts and modes, except --limit, --backend and --no-network, which
 * narrow or choose and are applied on top. Without --policy: the workspace is
 * --workspace or the current directory, at /workspace, read-write; `for commands`: no cpu,
 * file-size or open-files limit unless --limit asks. On failure -EINVAL or what reading
 * FILE gave, with *reterr_message one line. */
int policy_options_finish(PolicyOptions *options, StellaPolicy **ret_policy, char **reterr_message);

/* A message about a key of the policy (from making a view plan) as one about the option that the key came
 * from: `filesystem.mounts[0].host_path "/x": ...` becomes `--workspace "/x": ...`. Unchanged where there is
 * none, as with --policy. What looks like a HOST:VIEW without a view path is said to be that. The caller frees. */
char *policy_options_explain(const PolicyOptions *options, const char *message);

/* Facts beside the policy. Borrowed. */
const char *policy_options_backend(const PolicyOptions *options); /* NULL: the first available */

/* Whether nothing is mounted at /user and no --policy was given: the program then makes a private
 * directory and mounts it there, for HOME is there (the policy's env and env_override say so). Known
 * after policy_options_finish(); false for POLICY_FOR_LOOKING. */
bool policy_options_user_is_temporary(const PolicyOptions *options);

/* The help text of these options, lines of at most 100 columns. Static storage. */
const char *policy_options_help(void);
