/* See fusermount.h. */
#include "fsgate/fusermount.h"

#include "common/fd-util.h"
#include "common/io-util.h"
#include "common/path-util.h"

#include <errno.h>
#include <fcntl.h>
#include <glib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* Room for what can be said in some lines. */
#define SAID_MAX 4096

/* The first line of it, which is the cause: the others are of what gave up because of it. */
static char *first_line(char *said)
{
	said[strcspn(said, "\n")] = '\0';
	return path_escape(*said ? said : "fusermount3 failed");
}

int fsg_fusermount(struct fuse_session *fuse, const char *mountpoint, char **reterr_why)
{
	FD_AUTO own = fd_dup(STDERR_FILENO);
	FD_AUTO file = memfd_create("fusermount3", MFD_CLOEXEC);
	char said[SAID_MAX] = "";
	bool held = own >= 0 && file >= 0 && dup2(file, STDERR_FILENO) >= 0;
	int r = fuse_session_mount(fuse, mountpoint) == 0 ? 0 : -EPERM;
	ssize_t size = 0;

	if (held) {
		size = pread(file, said, sizeof said - 1, 0);
		(void)dup2(own, STDERR_FILENO);
	}
	said[MAX(size, 0)] = '\0';
	if (r < 0)
		*reterr_why = first_line(said);
	else if (size > 0)
		(void)io_write_all(STDERR_FILENO, said, (size_t)size);
	return r;
}
