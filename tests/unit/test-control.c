/* control: one fd comes with its line, and a line whose fd finds no room is an error, never a line without it. */
#include "common/control.h"

#include "common/fd-util.h"

#include <errno.h>
#include <fcntl.h>
#include <glib.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include <cmocka.h>

static void make_pair(ControlSocket **ret_ours, ControlSocket **ret_theirs)
{
	int pair[2];

	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
	*ret_ours = control_socket_new(pair[0]);
	*ret_theirs = control_socket_new(pair[1]);
}

static void send_word(ControlSocket *socket, const char *word, int fd)
{
	JsonObject *object = json_object_new();

	json_object_set_boolean_member(object, word, TRUE);
	assert_int_equal(control_socket_send(socket, object, fd), 0);
}

static void an_fd_comes_with_its_line(void **state)
{
	g_autoptr(ControlSocket) ours = NULL, theirs = NULL;
	g_autoptr(JsonObject) first = NULL, second = NULL;
	FD_AUTO null = open("/dev/null", O_RDONLY | O_CLOEXEC);
	FD_AUTO with = -1, without = -1;
	struct stat sent, got;

	(void)state;
	make_pair(&ours, &theirs);
	send_word(theirs, "one", null);
	assert_int_equal(control_socket_receive(ours, 1000, &first, &with), 0);
	assert_true(json_object_has_member(first, "one"));
	assert_true(with >= 0);
	assert_int_equal(fstat(null, &sent), 0);
	assert_int_equal(fstat(with, &got), 0);
	assert_true(sent.st_rdev == got.st_rdev);
	send_word(theirs, "two", -1);
	assert_int_equal(control_socket_receive(ours, 1000, &second, &without), 0);
	assert_int_equal(without, -1);
}

static void a_line_whose_fd_finds_no_room_is_an_error(void **state)
{
	g_autoptr(ControlSocket) ours = NULL, theirs = NULL;
	JsonObject *object = NULL;
	FD_AUTO null = open("/dev/null", O_RDONLY | O_CLOEXEC);
	int taken[64], fd = -1, r;
	struct rlimit before, few;
	size_t count = 0;

	(void)state;
	make_pair(&ours, &theirs);
	send_word(theirs, "one", null);
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
	few = (struct rlimit){ .rlim_cur = G_N_ELEMENTS(taken), .rlim_max = before.rlim_max };
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
	while ((taken[count] = fcntl(null, F_DUPFD_CLOEXEC, 0)) >= 0)
		count++;
	r = control_socket_receive(ours, 1000, &object, &fd);
	while (count > 0)
		fd_close(&taken[--count]);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
	assert_int_equal(r, -EMFILE);
	assert_null(object);
	assert_int_equal(fd, -1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_fd_comes_with_its_line),
		cmocka_unit_test(a_line_whose_fd_finds_no_room_is_an_error),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
