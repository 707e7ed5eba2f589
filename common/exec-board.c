/* See exec-board.h. */
#include "common/exec-board.h"

#include "common/fd-util.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>

#define SEALS (F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL)

static int map(int fd, ExecBoard **ret_board)
{
	void *at = mmap(NULL, sizeof(ExecBoard), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

	if (at == MAP_FAILED)
		return -errno;
	*ret_board = at;
	return 0;
}

int exec_board_new(ExecBoard **ret_board, int *ret_fd)
{
	FD_AUTO fd = memfd_create("stella-exec-board", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	int r;

	if (fd < 0 || ftruncate(fd, sizeof(ExecBoard)) != 0 || fcntl(fd, F_ADD_SEALS, SEALS) != 0)
		return -errno;
	if ((r = map(fd, ret_board)) < 0)
		return r;
	*ret_fd = fd_steal(&fd);
	return 0;
}

/* One that could shrink would be a fault waiting to happen. */
int exec_board_map(int fd, ExecBoard **ret_board)
{
	struct stat st;
	int seals = fcntl(fd, F_GET_SEALS);

	if (seals < 0 || (seals & SEALS) != SEALS || fstat(fd, &st) != 0 ||
	    st.st_size != (off_t)sizeof(ExecBoard))
		return -EINVAL;
	return map(fd, ret_board);
}

void exec_board_unmap(ExecBoard *board)
{
	if (board)
		(void)munmap(board, sizeof *board);
}
