/* A lasting end of input for a terminal; see relay-terminal.h. */
#include "executor/relay-terminal.h"

#include "common/fd-util.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

/* What was typed and not read yet, an end that was typed included. */
static bool has_unread(int slave)
{
	struct pollfd poll_fd = { .fd = slave, .events = POLLIN };

	return poll(&poll_fd, 1, 0) > 0 && (poll_fd.revents & POLLIN);
}

void exr_terminal_type_end(int master)
{
	struct pollfd poll_fd = { .fd = master, .events = POLLOUT };
	struct termios modes;

	if (tcgetattr(master, &modes) == 0 && modes.c_cc[VEOF] != _POSIX_VDISABLE &&
	    poll(&poll_fd, 1, 0) > 0 && (poll_fd.revents & POLLOUT))
		(void)!write(master, &modes.c_cc[VEOF], 1);
}

void exr_terminal_end_input(ExrTerminalEnd *end)
{
	if (end->slave < 0)
		end->slave = ioctl(end->master, TIOCGPTPEER, O_RDWR | O_NOCTTY | O_CLOEXEC);
	if (end->slave >= 0 && !has_unread(end->slave))
		exr_terminal_type_end(end->master);
}

void exr_terminal_end_clear(ExrTerminalEnd *end)
{
	fd_close(&end->slave);
}
