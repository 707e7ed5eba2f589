/* Run by it-doors in a sandbox: opens the paths that come on stdin, one after the other, from the directory where it was
 * started, and answers on stdout (doors-try.h). Linked statically, so that it needs nothing of the view. */
#include "integration/doors-try.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

static int transfer(int fd, char *data, size_t size, int writes)
{
	while (size > 0) {
		ssize_t done = writes ? write(fd, data, size) : read(fd, data, size);

		if (done < 0 && errno == EINTR)
			continue;
		if (done <= 0)
			return -1;
		data += done;
		size -= (size_t)done;
	}
	return 0;
}

int main(void)
{
	static char path[DOOR_PATH_BYTES + 1];
	DoorRequest request;
	DoorAnswer answer;

	while (transfer(STDIN_FILENO, (char *)&request, sizeof request, 0) == 0) {
		if (request.length > DOOR_PATH_BYTES ||
		    transfer(STDIN_FILENO, path, request.length, 0) != 0)
			return 1;
		path[request.length] = '\0';
		door_try(AT_FDCWD, path, request.flags, &answer);
		if (transfer(STDOUT_FILENO, (char *)&answer, sizeof answer, 1) != 0)
			return 1;
	}
	return 0;
}
