/* Too much of everything, each bounded so that a defect does not take the machine: see main. */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

/* So many are told on the way. */
#define GONE_OFF 100

/* Processes that multiply until there are so many. */
static int bomb(int most)
{
	atomic_int *count = mmap(NULL, sizeof *count, PROT_READ | PROT_WRITE,
				 MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	if (count == MAP_FAILED)
		return 2;
	for (;;) {
		int before = atomic_fetch_add(count, 1);

		if (before == GONE_OFF) {
			printf("%d processes\n", before);
			fflush(stdout);
			(void)close(open("/workspace/gone-off", O_WRONLY | O_CREAT, 0600));
		}
		if (before >= most)
			for (;;)
				pause();
		(void)fork();
	}
}

/* Children that do nothing but make the next one, of which there is always one; the command itself ends. */
static int churn(int chains)
{
	for (int i = 0; i < chains; i++) {
		if (fork() != 0)
			continue;
		setsid();
		for (;;)
			if (fork() != 0)
				_exit(0);
	}
	usleep(100000);
	return 5;
}

static int make_orphan(void)
{
	/* who shares the memory until it ends is made much faster */
	pid_t pid = vfork();
	int status;

	if (pid == 0) {
		if (vfork() != 0)
			_exit(9);
		_exit(11);
	}
	return pid > 0 && waitpid(pid, &status, 0) == pid ? WEXITSTATUS(status) : -1;
}

/* Orphans that end while the command runs on, and one that becomes a child of PID 1 by clone. */
static int orphans(int count)
{
	int zombies = 0;

	for (int i = 0; i < count; i++)
		if (make_orphan() != 9)
			return 2;
	if (syscall(SYS_clone, CLONE_PARENT | SIGCHLD, 0L, 0L, 0L, 0L) == 0)
		_exit(12);
	for (int tries = 0; tries < 100; tries++) {
		FILE *states = popen("cat /proc/[0-9]*/stat 2>/dev/null | grep -c ') Z '", "r");

		zombies = -1;
		if (!states || fscanf(states, "%d", &zombies) != 1)
			return 3;
		pclose(states);
		if (zombies == 0)
			break;
		usleep(20000);
	}
	printf("%d zombies\n", zombies);
	return 42;
}

/* All memory that there is, up to a limit of one's own. */
static int hog(rlim_t bytes)
{
	struct rlimit limit = { bytes, bytes };
	size_t got = 0;

	if (setrlimit(RLIMIT_AS, &limit) != 0)
		return 2;
	for (;;) {
		char *block = mmap(NULL, 1 << 20, PROT_READ | PROT_WRITE,
				   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

		if (block == MAP_FAILED)
			break;
		memset(block, 1, 1 << 20);
		got += 1 << 20;
	}
	printf("%s after %zu MiB\n", errno == ENOMEM ? "ENOMEM" : "something else", got >> 20);
	return got < bytes ? 0 : 1;
}

static int flood(void)
{
	static char block[65536];

	memset(block, 'y', sizeof block);
	for (;;) {
		if (write(1, block, sizeof block) < 0 || write(2, block, sizeof block) < 0)
			return 3;
	}
}

static _Noreturn void block_signals(void)
{
	sigset_t all;

	sigfillset(&all);
	sigprocmask(SIG_SETMASK, &all, NULL);
	if (fork() == 0)
		setsid();
	for (;;)
		pause();
}

int main(int argc, char **argv)
{
	static const char usage[] =
		"bomb N | churn N | orphans N | hog MIB | flood | block-signals\n";
	const char *what = argc > 1 ? argv[1] : "";
	int number = argc > 2 ? atoi(argv[2]) : 0;

	if (strcmp(what, "bomb") == 0)
		return bomb(number);
	if (strcmp(what, "churn") == 0)
		return churn(number);
	if (strcmp(what, "orphans") == 0)
		return orphans(number);
	if (strcmp(what, "hog") == 0)
		return hog((rlim_t)number << 20);
	if (strcmp(what, "flood") == 0)
		return flood();
	if (strcmp(what, "block-signals") == 0)
		block_signals();
	fputs(usage, stderr);
	return 64;
}
