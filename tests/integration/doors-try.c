/* One try of a path; see doors-try.h. Linked statically too: nothing but libc. */
#include "integration/doors-try.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static void read_content(int fd, DoorAnswer *answer)
{
	ssize_t size = pread(fd, answer->content, sizeof answer->content, 0);

	answer->content_size = size < 0 ? -1 : (int32_t)size;
}

void door_look(int take_fd, int flags, DoorAnswer *ret_answer)
{
	int access = flags & O_PATH ? -1 : flags & O_ACCMODE;
	struct stat st;

	memset(ret_answer, 0, sizeof *ret_answer);
	ret_answer->content_size = -1;
	if (take_fd < 0) {
		ret_answer->errnum = -take_fd;
		return;
	}
	if (fstat(take_fd, &st) != 0) {
		ret_answer->errnum = errno;
		(void)close(take_fd); /* the answer is that it is of no use */
		return;
	}
	ret_answer->mode = st.st_mode;
	ret_answer->size = st.st_size;
	ret_answer->mtime = st.st_mtim.tv_sec * INT64_C(1000000000) + st.st_mtim.tv_nsec;
	ret_answer->dev = st.st_dev;
	ret_answer->ino = st.st_ino;
	if (S_ISREG(st.st_mode) && (access == O_RDONLY || access == O_RDWR))
		read_content(take_fd, ret_answer);
	if (S_ISREG(st.st_mode) && (access == O_WRONLY || access == O_RDWR) &&
	    write(take_fd, DOOR_TEXT, strlen(DOOR_TEXT)) != (ssize_t)strlen(DOOR_TEXT))
		ret_answer->write_errnum = errno ? errno : EIO;
	if (close(take_fd) != 0 && ret_answer->write_errnum == 0)
		ret_answer->write_errnum = errno;
}

void door_try(int dirfd, const char *path, int flags, DoorAnswer *ret_answer)
{
	int fd = openat(dirfd, path, flags | O_CLOEXEC, 0644);

	door_look(fd < 0 ? -errno : fd, flags, ret_answer);
}
