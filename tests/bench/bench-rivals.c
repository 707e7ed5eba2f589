/* The rivals of bench-exec; see bench-rivals.h. */
#include "bench/bench-rivals.h"

#include "common/fd-util.h"
#include "common/io-util.h"
#include "config.h"
#include "executor/seccomp-filter.h"

#include <errno.h>
#include <fcntl.h>
#include <glib.h>
#include <poll.h>
#include <spawn.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

double rivals_now_us(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)now.tv_sec * 1e6 + (double)now.tv_nsec / 1e3;
}

void rivals_die(const char *format, ...)
{
	va_list arguments;

	fputs("bench-exec: ", stderr);
	va_start(arguments, format);
	vfprintf(stderr, format, arguments);
	va_end(arguments);
	fputc('\n', stderr);
	exit(1);
}

static void read_both(int out, int err)
{
	struct pollfd p[] = { { .fd = out, .events = POLLIN }, { .fd = err, .events = POLLIN } };
	char data[65536];

	while (p[0].fd >= 0 || p[1].fd >= 0) {
		if (poll(p, 2, -1) < 0)
			continue;
		for (int i = 0; i < 2; i++)
			if (p[i].revents && read(p[i].fd, data, sizeof data) <= 0)
				p[i].fd = -1;
	}
}

/* With both outputs captured, as any caller of commands does. */
static bool spawn(const char *const *argv)
{
	posix_spawn_file_actions_t actions;
	int out[2], err[2], status = -1, r;
	pid_t pid;

	if (pipe2(out, O_CLOEXEC) != 0 || pipe2(err, O_CLOEXEC) != 0)
		rivals_die("pipe");
	posix_spawn_file_actions_init(&actions);
	posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
	posix_spawn_file_actions_adddup2(&actions, out[1], 1);
	posix_spawn_file_actions_adddup2(&actions, err[1], 2);
	r = posix_spawnp(&pid, argv[0], &actions, NULL, (char *const *)(uintptr_t)argv, environ);
	posix_spawn_file_actions_destroy(&actions);
	fd_close(&out[1]);
	fd_close(&err[1]);
	if (r == 0) {
		read_both(out[0], err[0]);
		while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
			;
	}
	fd_close(&out[0]);
	fd_close(&err[0]);
	return r == 0 && status == 0;
}

void rivals_spawn(const char *const *argv)
{
	if (!spawn(argv))
		rivals_die("%s failed", argv[0]);
}

static GPtrArray *words(const char *const *first, const char *const *argv)
{
	GPtrArray *all = g_ptr_array_new();

	for (; *first; first++)
		g_ptr_array_add(all, (char *)(uintptr_t)*first);
	for (; argv && *argv; argv++)
		g_ptr_array_add(all, (char *)(uintptr_t)*argv);
	return all;
}

void rivals_run(const char *workspace, const char *const *argv)
{
	const char *const first[] = { STELLA_BUILD_DIR "/executor/stella-exec",
				      "run",
				      "--workspace",
				      workspace,
				      "--",
				      NULL };
	g_autoptr(GPtrArray) all = words(first, argv);

	g_ptr_array_add(all, NULL);
	if (!spawn((const char *const *)all->pdata))
		rivals_die("stella-exec run failed");
}

/* The filter for bwrap, which reads it from an fd. */
static int filter_fd(const ExrSeccomp *seccomp, char text[static 16])
{
	int fd = io_memfd_new("filter", seccomp->code, seccomp->size);

	if (fd >= 0 && (lseek(fd, 0, SEEK_SET) != 0 || fd_set_cloexec(fd, false) < 0))
		rivals_die("filter");
	g_snprintf(text, 16, "%d", fd);
	return fd;
}

/* Parts of the root that are links on the host are links inside too. */
static void add_root(GPtrArray *all)
{
	static const char *const tops[] = { "/bin", "/sbin", "/lib", "/lib64" };
	static const char *const targets[] = { "usr/bin", "usr/sbin", "usr/lib", "usr/lib64" };

	for (size_t i = 0; i < G_N_ELEMENTS(tops); i++) {
		bool link = g_file_test(tops[i], G_FILE_TEST_IS_SYMLINK);

		if (!g_file_test(tops[i], G_FILE_TEST_EXISTS))
			continue;
		g_ptr_array_add(all, (char *)(uintptr_t)(link ? "--symlink" : "--ro-bind"));
		g_ptr_array_add(all, (char *)(uintptr_t)(link ? targets[i] : tops[i]));
		g_ptr_array_add(all, (char *)(uintptr_t)tops[i]);
	}
}

double rivals_bwrap(const char *workspace, const char *const *argv)
{
	g_autofree char *program = g_find_program_in_path("bwrap");
	ExrSeccomp seccomp = { 0 };
	char filter[16];
	/* The same namespaces, root, filter and environment as a session's. */
	const char *const first[] = { "bwrap",	       "--unshare-user",
				      "--unshare-ipc", "--unshare-pid",
				      "--unshare-uts", "--unshare-cgroup",
				      "--uid",	       "1000",
				      "--gid",	       "1000",
				      "--hostname",    "sandbox",
				      "--ro-bind",     "/usr",
				      "/usr",	       "--ro-bind",
				      "/etc",	       "/etc",
				      "--proc",	       "/proc",
				      "--dev",	       "/dev",
				      "--tmpfs",       "/tmp",
				      "--tmpfs",       "/run",
				      "--bind",	       workspace,
				      "/workspace",    "--chdir",
				      "/workspace",    "--die-with-parent",
				      "--new-session", "--clearenv",
				      "--setenv",      "PATH",
				      "/usr/bin:/bin", "--seccomp",
				      filter,	       NULL };
	g_autoptr(GPtrArray) all = NULL;
	FD_AUTO fd = -1;
	double at;

	if (!program || exr_seccomp_build(&seccomp) < 0)
		return -1;
	fd = filter_fd(&seccomp, filter);
	exr_seccomp_clear(&seccomp);
	all = words(first, NULL);
	add_root(all);
	for (; *argv; argv++)
		g_ptr_array_add(all, (char *)(uintptr_t)*argv);
	g_ptr_array_add(all, NULL);
	at = rivals_now_us();
	return spawn((const char *const *)all->pdata) ? rivals_now_us() - at : -1;
}
