/* The directory of a session on the host, and what crashed owners have left beside it.
 *
 *   STATE/lock               held while sessions are listed or a new one appears
 *   STATE/sessions/ID.lock   held by the session's owner for as long as it lives
 *   STATE/sessions/ID/       tmp, var-tmp, user: directories of the sandbox's user; view: a mountpoint; cgroups: the
 *                            record of the session's cgroups, which go with the directory (cgroup.h)
 *
 * STATE is STELLA_STATE_DIR, for root /var/lib/stella, otherwise XDG_STATE_HOME/stella
 * (~/.local/state/stella). All of it is 0700. */
#pragma once

#include "executor/error.h"
#include "executor/identity.h"

#include <stdbool.h>
#include <sys/types.h>

#define EXR_STATE_DIR_CGROUPS "cgroups"

typedef struct ExrStateDir ExrStateDir;

/* Makes an id and its directories, after removing what dead owners left. On failure -errno with
 * *reterr_error (code state-dir-failed), and nothing is left. */
int exr_state_dir_new(const ExrIdentity *identity, bool with_user, ExrStateDir **ret_dir,
		      ExrError *reterr_error);
/* Removes the session's directory, whatever the agent has put there, and frees. NULL is allowed. */
void exr_state_dir_free(ExrStateDir *dir);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(ExrStateDir, exr_state_dir_free)

const char *exr_state_dir_id(const ExrStateDir *dir);	/* "sandbox-0123456789abcdef" */
const char *exr_state_dir_path(const ExrStateDir *dir); /* .../sessions/ID */
const char *exr_state_dir_root(const ExrStateDir *dir); /* STATE, with all sessions in it */

/* PATH/name. The caller frees. */
char *exr_state_dir_join(const ExrStateDir *dir, const char *name);

/* Takes a FUSE mount off path (fusermount3 when we are not root), lazily. Best effort: 0, or -errno when
 * it is still there. */
int exr_state_dir_detach(const char *path);

/* fusermount3, which is looked for in fixed places only; NULL when there is none. The caller frees. */
char *exr_find_fusermount(void);
