/* The whole of an output that is longer than its cap, in a file below the view's /tmp.
 *
 * The supervisor writes it, through a descriptor of the host directory that the view's /tmp is: into a
 * directory where the command writes too. The file is new, has a name that cannot be guessed, and is
 * only ever reached by the descriptor that made it; what the command does to it (it is the command's
 * user's) or to the names around it can spoil the copy, and nothing else. It goes with the /tmp: at the end
 * of the session, or, with a temp_dir_host, never.
 *
 * Spilling is no promise: what does not work leaves no file, and is no error of the command. One thread
 * per object. */
#pragma once

#include "common/output-buffer.h"
#include "common/view-plan.h"
#include "executor/identity.h"
#include "executor/state-dir.h"

/* Where a session's files go. */
typedef struct ExrSpillDir {
	int fd;	   /* the host directory; owned; -1: none */
	uid_t uid; /* who is to own them; (uid_t)-1: whoever makes them */
	gid_t gid;
	bool of_session; /* it is the session's own, and goes with it */
} ExrSpillDir;

#define EXR_NO_SPILL_DIR ((ExrSpillDir){ .fd = -1, .uid = (uid_t)-1, .gid = (gid_t)-1 })

/* Finds what is at /tmp in the view. To be called before a command runs, for afterwards the way to a mount
 * may be in a command's hands. 0; -errno when nothing can be written there: /tmp is no directory, not
 * writable (EROFS), a mount with a quota, which writing past the gateway would not keep to (EDQUOT), or no
 * longer what the plan was made of (ESTALE). */
int exr_spill_dir_open(const ViewPlan *plan, const ExrStateDir *state, const ExrIdentity *identity,
		       ExrSpillDir *ret_dir);
void exr_spill_dir_close(ExrSpillDir *dir); /* may be called twice */

typedef struct ExrSpill ExrSpill;

/* For one stream ("stdout"), whose file is to be seen at view_tmp ("/tmp"). Makes no file yet. The directory
 * is borrowed until exr_spill_finish(). */
ExrSpill *exr_spill_new(const ExrSpillDir *dir, const char *view_tmp, const char *stream_name);
void exr_spill_free(ExrSpill *spill); /* NULL is allowed; the file stays */
G_DEFINE_AUTOPTR_CLEANUP_FUNC(ExrSpill, exr_spill_free)

/* Appends to the file; the first call makes it. What is beyond LIMIT_SPILL_BYTES is dropped. After any
 * failure (no room, a quota, an RLIMIT_FSIZE of ours) the file is gone, and this and every later call gives
 * that -errno. */
int exr_spill_write(ExrSpill *spill, const void *data, size_t size);

/* Gives bytes of a stream to its buffer, and, from when they no longer fit it, the whole stream to the
 * spill (NULL: there is none). */
void exr_spill_capture(ExrSpill *spill, OutputBuffer *buffer, const void *data, size_t size);

/* Ends the writing. The file's path in the view, or NULL: none was made, or its name does not lead to it
 * any more. The spill's. The same at each call. */
const char *exr_spill_finish(ExrSpill *spill);

/* What a marker says about such a file: "whole output in PATH", or "first 1GiB in PATH" when total bytes are
 * more than go in. NULL for a NULL path. The caller frees. */
char *exr_spill_remark(const char *path, uint64_t total);
