/* A library that an agent has planted where the dynamic loader looks: it notes what the process could do that loaded
 * it. Of ours none must. */
#include <fcntl.h>
#include <unistd.h>

__attribute__((constructor)) static void note(void)
{
	char text[4096];
	int from = open("/proc/self/status", O_RDONLY | O_CLOEXEC);
	int to = open("/workspace/planted-notes", O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
	ssize_t size = read(from, text, sizeof text);

	if (size > 0)
		(void)!write(to, text, (size_t)size);
	close(from);
	close(to);
}
