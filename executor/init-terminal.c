/* The terminal of one exec, on a devpts of its own.
 *
 * Not the session's devpts: all execs of a session have the same user, so that each could open the
 * terminals of the others there, and read what a person types. This one is made detached, and only the
 * command's process, in this exec's mount namespace, puts it on /dev/pts: no other exec has a path to it,
 * and nothing has been looked up in the view before. The name that the kernel gives for the terminal is
 * then the one that it has for the command, /dev/pts/N.
 *
 * The caller's terminal is never handed in: bytes pass, through the master. */
#include "executor/init.h"

#include "common/mount-util.h"

#include <fcntl.h>
#include <sys/ioctl.h>
#include <termios.h>

/* Terminals that commands can have at the same time on one devpts: the kernel's number of them is the whole
 * machine's. */
#define MAX_TERMINALS "256"

int init_devpts_new(void)
{
	static const char *const options[] = { "source", "devpts", "mode",	  "620", "ptmxmode",
					       "666",	 "max",	   MAX_TERMINALS, NULL };

	return mount_new("devpts", options, MOUNT_ATTR_NOSUID | MOUNT_ATTR_NOEXEC);
}

/* The size before the command looks; erasing a character erases all of its bytes. */
static int prepare(int slave, const WireExec *request)
{
	struct winsize size = { .ws_row = request->rows, .ws_col = request->columns };
	struct termios modes;

	if (ioctl(slave, TIOCSWINSZ, &size) != 0 || tcgetattr(slave, &modes) != 0)
		return -errno;
	modes.c_iflag |= IUTF8;
	return tcsetattr(slave, TCSANOW, &modes) != 0 ? -errno : 0;
}

int init_terminal_open(const WireExec *request, bool plain, InitTerminal *ret_terminal)
{
	FD_AUTO devpts = plain ? -1 : init_devpts_new();
	FD_AUTO master = -1, slave = -1;
	int lock = 0, r;

	if (!plain && devpts < 0)
		return devpts;
	/* Non-blocking, as the supervisor will use it; the description is shared. */
	master = openat(devpts, plain ? "/dev/ptmx" : "ptmx",
			O_RDWR | O_NOCTTY | O_NONBLOCK | O_CLOEXEC);
	if (master < 0)
		return -errno;
	if (ioctl(master, TIOCSPTLCK, &lock) != 0)
		return -errno;
	slave = ioctl(master, TIOCGPTPEER, O_RDWR | O_NOCTTY | O_CLOEXEC);
	if (slave < 0)
		return -errno;
	if ((r = prepare(slave, request)) < 0)
		return r;
	ret_terminal->devpts_fd = fd_steal(&devpts);
	ret_terminal->master_fd = fd_steal(&master);
	ret_terminal->slave_fd = fd_steal(&slave);
	return 0;
}

int init_terminal_take(const InitTerminal *terminal)
{
	return ioctl(terminal->slave_fd, TIOCSCTTY, 0) != 0 ? -errno : 0;
}

int init_terminal_hand_up(const InitTerminal *terminal, int control_fd)
{
	WireMessage message = { .type = WIRE_TERMINAL, .value = -1 };
	int r = packet_send(control_fd, &message, &terminal->master_fd, 1);

	/* "dev" is the gateway's own directory there, no link, and what is mounted on it ours. */
	return r < 0 || terminal->devpts_fd < 0
		       ? r
		       : mount_attach(terminal->devpts_fd, AT_FDCWD, "/dev/pts");
}
