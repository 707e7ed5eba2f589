/* Two sandboxes and what they could share. `put`: makes things and waits until standard input ends; `get`: looks for
 * them, and finds none; `find`: looks for its own, from another process, and finds all (the allowed twin: of the
 * sandbox that made them). */
#include "probe.h"

#include <errno.h>
#include <fcntl.h>
#include <mqueue.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/ipc.h>
#include <sys/msg.h>
#include <sys/sem.h>
#include <sys/shm.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#define KEY 0x57e11a

static const char *const files[] = { "/tmp/attack-file", "/var/tmp/attack-file",
				     "/dev/shm/attack-file", "/run/attack-file" };

static struct sockaddr_un address_of(const char *path)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };

	memcpy(address.sun_path, path, strlen(path) + 1);
	return address;
}

/* The path is in a mount that both have. */
static int serve(const char *path)
{
	struct sockaddr_un address = address_of(path);
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	(void)unlink(path);
	if (bind(fd, (struct sockaddr *)&address, sizeof address) != 0 || listen(fd, 5) != 0)
		return -1;
	return fd;
}

static int connect_to(const char *path)
{
	struct sockaddr_un address = address_of(path);
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	int r = PROBE_CALL(connect(fd, (struct sockaddr *)&address, sizeof address));

	close(fd);
	return r;
}

static void look(Probe *probe, bool own, const char *socket_path)
{
	const Expected there = { own ? "0" : "ENOENT", "*" };

	for (size_t i = 0; i < sizeof files / sizeof files[0]; i++)
		probe_check(probe, files[i], there, PROBE_CALL(access(files[i], F_OK)));
	probe_check(probe, "shared memory of System V", there, PROBE_CALL(shmget(KEY, 0, 0)));
	probe_check(probe, "message queue of System V", there, PROBE_CALL(msgget(KEY, 0)));
	probe_check(probe, "semaphore of System V", there, PROBE_CALL(semget(KEY, 0, 0)));
	probe_check(probe, "message queue of POSIX", there,
		    PROBE_CALL(mq_open("/attack", O_RDONLY)));
	/* the name is there for both, the listener for one */
	probe_check(probe, "the socket in the shared mount", ALLOWED,
		    PROBE_CALL(access(socket_path, F_OK)));
	probe_check(probe, "a connection to it", (Expected){ own ? "0" : "ECONNREFUSED", "*" },
		    connect_to(socket_path));
}

static int look_from_another_process(void *data)
{
	Probe probe = { 0 };

	look(&probe, true, data);
	return probe_end(&probe);
}

int main(int argc, char **argv)
{
	Probe probe = { 0 };
	char byte;

	if (argc != 3)
		return 2;
	if (strcmp(argv[1], "get") == 0) {
		look(&probe, false, argv[2]);
		return probe_end(&probe);
	}
	for (size_t i = 0; i < sizeof files / sizeof files[0]; i++)
		probe_that(&probe, files[i],
			   open(files[i], O_WRONLY | O_CREAT | O_CLOEXEC, 0666) >= 0);
	probe_that(&probe, "shared memory", shmget(KEY, 4096, IPC_CREAT | 0666) >= 0);
	probe_that(&probe, "message queue", msgget(KEY, IPC_CREAT | 0666) >= 0);
	probe_that(&probe, "semaphore", semget(KEY, 1, IPC_CREAT | 0666) >= 0);
	probe_that(&probe, "queue", mq_open("/attack", O_RDWR | O_CREAT, 0666, NULL) >= 0);
	probe_that(&probe, "socket", serve(argv[2]) >= 0);
	probe_check(&probe, "found by its own", ALLOWED,
		    probe_in_child(look_from_another_process, argv[2]));
	printf("ready\n");
	fflush(stdout);
	(void)!read(0, &byte, 1);
	return probe_end(&probe);
}
