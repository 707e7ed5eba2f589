/* Private clones of host mounts: the fds below which all of the view's host access happens.
 *
 * Root clones directly. Anybody else may do it only in a user namespace, so a child makes one, makes the
 * clones there, hands the fds back and ends: the clones live on in their fds. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

typedef struct {
	const char *host_path; /* absolute; links in it are followed: the policy is trusted */
	bool read_only;
	int *ret_fd; /* O_PATH at the clone's root; the caller owns it */
} FsgCloneRequest;

/* Makes all clones or none. Before any other thread exists: it may fork. On failure -errno with
 * *reterr_message one line that names the path and, where user namespaces are forbidden, says so. */
int fsg_clone_mounts(FsgCloneRequest *requests, size_t count, char **reterr_message);
