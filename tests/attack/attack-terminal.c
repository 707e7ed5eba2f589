/* Typing into terminals: of one's own, which a command may make, and of whoever called. */
#include "probe.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <termios.h>
#include <unistd.h>

static const struct {
	const char *name;
	unsigned long request;
} requests[] = {
	{ "TIOCSTI", TIOCSTI },
	{ "TIOCSTI with bit 32", TIOCSTI | 1ul << 32 },
	{ "TIOCSTI with bit 63", TIOCSTI | 1ul << 63 },
	{ "TIOCLINUX", TIOCLINUX },
	{ "TIOCLINUX with bit 32", TIOCLINUX | 1ul << 32 },
	{ "TIOCSETD", TIOCSETD },
	{ "TIOCSETD with bit 32", TIOCSETD | 1ul << 32 },
};

/* A terminal of one's own, as controlling terminal. */
static int on_own_terminal(void *data)
{
	unsigned long request = *(const unsigned long *)data;
	int master = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC), slave;
	char argument[8] = "x";

	if (master < 0 || unlockpt(master) != 0 || setsid() < 0)
		return errno;
	slave = open(ptsname(master), O_RDWR | O_CLOEXEC);
	if (slave < 0)
		return errno;
	return PROBE_CALL(syscall(SYS_ioctl, slave, request, argument));
}

int main(int argc, char **argv)
{
	Probe probe = probe_begin(argc, argv);
	unsigned long set_size = TIOCSWINSZ;
	char name[64];

	for (size_t i = 0; i < sizeof requests / sizeof requests[0]; i++) {
		unsigned long request = requests[i].request;
		bool low = request >> 32 == 0;

		/* EIO where the kernel has typing switched off; pasting is of consoles only */
		probe_check(&probe, requests[i].name,
			    (Expected){ "EPERM", low ? "0|EIO|EINVAL|ENOTTY" : "*" },
			    probe_in_child(on_own_terminal, &request));
		for (int fd = 0; fd < 3; fd++) {
			snprintf(name, sizeof name, "%s on fd %d", requests[i].name, fd);
			probe_check(&probe, name, (Expected){ "EPERM", "*" },
				    PROBE_CALL(syscall(SYS_ioctl, fd, request, "x")));
		}
	}
	probe_check(&probe, "the size of an own terminal", ALLOWED,
		    probe_in_child(on_own_terminal, &set_size));
	if (!probe.outside) {
		for (int fd = 0; fd < 3; fd++) {
			snprintf(name, sizeof name, "fd %d is a terminal", fd);
			probe_that(&probe, name, !isatty(fd));
		}
		probe_check(&probe, "the caller's terminal", (Expected){ "ENXIO", "*" },
			    PROBE_CALL(open("/dev/tty", O_RDWR | O_NOCTTY)));
		probe_that(&probe, "a session of its own", getsid(0) != 0 && getsid(0) != 1);
	}
	return probe_end(&probe);
}
