/* A hang-fs for tests in C; see hang-fixture.h. */
#include "lib/hang-fixture.h"

#include "lib/workspace-fixture.h"

#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <unistd.h>

#include <cmocka.h>

/* Beside the library that this test was linked with. */
static char *find_program(void)
{
	g_autofree char *self = g_file_read_link("/proc/self/exe", NULL);
	g_autofree char *dir = g_path_get_dirname(self);

	return g_build_filename(dir, "..", "lib", "hang-fs", NULL);
}

static void command(const HangFs *fs, char which)
{
	char answer;

	assert_int_equal(write(fs->commands, &which, 1), 1);
	assert_int_equal(read(fs->answers, &answer, 1), 1);
}

HangFs hang_fs_start(const char *mountpoint)
{
	g_autofree char *program = find_program();
	HangFs fs = { 0 };
	int in[2], out[2];
	char ready;

	assert_int_equal(pipe2(in, O_CLOEXEC), 0);
	assert_int_equal(pipe2(out, O_CLOEXEC), 0);
	fs.pid = fork_helper();
	if (fs.pid == 0) {
		dup2(in[0], STDIN_FILENO);
		dup2(out[1], STDOUT_FILENO);
		execl(program, program, mountpoint, (char *)NULL);
		_exit(127);
	}
	close(in[0]);
	close(out[1]);
	fs.commands = in[1];
	fs.answers = out[0];
	assert_int_equal(read(fs.answers, &ready, 1), 1);
	return fs;
}

void hang_fs_hang(const HangFs *fs)
{
	command(fs, 'h');
}

void hang_fs_go_on(const HangFs *fs)
{
	command(fs, 'g');
}

void hang_fs_stop(HangFs *fs)
{
	int status;

	/* Children of the test may have the other end, so that closing ours says nothing. */
	assert_int_equal(write(fs->commands, "q", 1), 1);
	close(fs->commands);
	status = wait_for_child(fs->pid, 10000);
	if (status == -1)
		kill(fs->pid, SIGKILL);
	close(fs->answers);
	assert_int_equal(status, 0);
}
