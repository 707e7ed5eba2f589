/* identity, stage, error, packet: the small parts that a session stands on. */
#include "common/fd-util.h"
#include "executor/error.h"
#include "executor/identity.h"
#include "executor/packet.h"
#include "executor/spawn.h"
#include "executor/stage.h"

#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include <cmocka.h>

static void id_map_is_read_by_its_inner_side(void **state)
{
	static const char *const all = "         0          0 4294967295\n";
	static const char *const few = "0 100000 1000\n1000 1000 1\n 1001 101001 64535\n";

	(void)state;
	assert_true(exr_identity_map_covers(all, 0));
	assert_true(exr_identity_map_covers(all, 1900065535));
	assert_false(exr_identity_map_covers(all, 4294967295u));
	assert_true(exr_identity_map_covers(few, 999));
	assert_true(exr_identity_map_covers(few, 1000));
	assert_true(exr_identity_map_covers(few, 65534));
	assert_false(exr_identity_map_covers(few, 65536));
	assert_false(exr_identity_map_covers(few, 100000));
	assert_false(exr_identity_map_covers("", 0));
	assert_false(exr_identity_map_covers("garbage", 0));
}

static void identity_is_never_roots(void **state)
{
	ExrIdentity identity = exr_identity_choose(0);

	(void)state;
	assert_int_equal(identity.inside, 0);
	if (identity.lent)
		assert_true(identity.outside_uid != 0 && identity.outside_gid != 0);
	else
		assert_int_equal(identity.outside_uid, geteuid());
}

static void every_stage_has_a_row_of_its_own(void **state)
{
	(void)state;
	for (unsigned int i = 0; i < _EXR_STAGE_N; i++) {
		const ExrStageInfo *info = exr_stage_info(i);

		assert_non_null(info->name);
		assert_non_null(info->code);
		assert_non_null(info->sentence);
		for (unsigned int j = 0; j < i; j++)
			assert_string_not_equal(info->name, exr_stage_info(j)->name);
	}
	assert_ptr_equal(exr_stage_info(_EXR_STAGE_N), exr_stage_info(EXR_STAGE_NONE));
}

static void the_first_cause_counts(void **state)
{
	ExrError error = { 0 };

	(void)state;
	assert_int_equal(exr_error_set(&error, "internal", "first", ENOENT, "%s", "one"), -ENOENT);
	assert_int_equal(exr_error_set(&error, "internal", "second", EPERM, "%s", "two"), -EPERM);
	assert_string_equal(error.stage, "first");
	assert_string_equal(error.message, "one");
	assert_int_equal(error.errnum, ENOENT);
	exr_error_set_hint(&error, "hint %d", 1);
	exr_error_set_hint(&error, "hint %d", 2);
	assert_string_equal(error.hint, "hint 1");
	exr_error_clear(&error);
	assert_null(error.code);
	assert_int_equal(exr_error_set(&error, "internal", "third", 0, "%s", ""), -EINVAL);
	exr_error_clear(&error);
}

static void packet_arrives_whole_with_its_fds(void **state)
{
	WireMessage message = { .type = WIRE_EXEC, .value = -7, .cpu_us = INT64_C(1) << 40 }, got;
	FD_AUTO a = -1;
	FD_AUTO b = -1;
	int pair[2], sent[WIRE_MAX_FDS], fds[WIRE_MAX_FDS];
	struct stat one, other;
	size_t count;

	(void)state;
	assert_int_equal(exr_socketpair(SOCK_SEQPACKET, pair), 0);
	a = pair[0];
	b = pair[1];
	for (size_t i = 0; i < WIRE_MAX_FDS; i++)
		sent[i] = a;
	assert_int_equal(packet_send(a, &message, sent, WIRE_MAX_FDS), 0);
	assert_int_equal(packet_send(a, &message, sent, 1), 0);
	assert_int_equal(packet_receive(b, 1000, &got, fds, &count), 0);
	assert_int_equal(count, WIRE_MAX_FDS);
	assert_int_equal(got.value, -7);
	assert_true(got.cpu_us == INT64_C(1) << 40);
	for (size_t i = 0; i < count; i++) {
		assert_int_equal(fstat(fds[i], &one), 0);
		assert_int_equal(fstat(a, &other), 0);
		assert_true(one.st_ino == other.st_ino);
		assert_int_equal(fcntl(fds[i], F_GETFD), FD_CLOEXEC);
		fd_close(&fds[i]);
	}
	/* who expects none gets none, and keeps none */
	assert_int_equal(packet_receive(b, 1000, &got, NULL, NULL), 0);
	assert_int_equal(packet_receive(b, 0, &got, NULL, NULL), -ETIMEDOUT);
	fd_close(&a);
	assert_int_equal(packet_receive(b, 1000, &got, NULL, NULL), -EPIPE);
	assert_int_equal(packet_send(b, &message, NULL, 0), -EPIPE);
}

/* An end that closes with something unread in it says so: after what it had said itself. */
static void an_end_that_has_not_read_all_is_told_apart(void **state)
{
	WireMessage message = { .type = WIRE_GO, .value = 1 }, got;

	(void)state;
	for (int c = 0; c < 4; c++) {
		const bool reads_all = c % 2 == 0, speaks = c < 2;
		FD_AUTO a = -1;
		FD_AUTO b = -1;
		int pair[2];

		assert_int_equal(exr_socketpair(SOCK_SEQPACKET, pair), 0);
		a = pair[0];
		b = pair[1];
		assert_int_equal(packet_send(a, &message, NULL, 0), 0);
		if (reads_all)
			assert_int_equal(packet_receive(b, 1000, &got, NULL, NULL), 0);
		if (speaks)
			assert_int_equal(packet_send(b, &message, NULL, 0), 0);
		fd_close(&b);
		/* Its words, with which the kernel's are taken. */
		if (speaks)
			assert_int_equal(packet_receive(a, 1000, &got, NULL, NULL), 0);
		assert_int_equal(packet_receive(a, 1000, &got, NULL, NULL),
				 reads_all || speaks ? -EPIPE : -ECONNRESET);
	}
}

static void what_is_no_message_is_refused(void **state)
{
	WireMessage message = { .type = WIRE_GO }, got;
	FD_AUTO a = -1;
	FD_AUTO b = -1;
	char larger[sizeof message + 1];
	int pair[2];

	(void)state;
	assert_int_equal(exr_socketpair(SOCK_SEQPACKET, pair), 0);
	a = pair[0];
	b = pair[1];
	memset(larger, 0, sizeof larger);
	assert_true(send(a, "x", 1, 0) == 1);
	assert_true(send(a, larger, sizeof larger, 0) > 0);
	assert_true(send(a, &message, sizeof message, 0) > 0); /* without the magic number */
	for (int i = 0; i < 3; i++)
		assert_int_equal(packet_receive(b, 1000, &got, NULL, NULL), -EBADMSG);
	assert_int_equal(packet_send(a, &message, NULL, 0), 0);
	assert_int_equal(packet_receive(b, 1000, &got, NULL, NULL), 0);
	assert_int_equal(got.type, WIRE_GO);
}

static void spawned_program_is_waited_for_and_killed(void **state)
{
	static const char *const env[] = { NULL };
	static const char *const quick[] = { "true", NULL };
	static const char *const slow[] = { "sleep", "1000", NULL };
	ExrProcess process = EXR_NO_PROCESS;

	(void)state;
	assert_int_equal(exr_spawn("/no/such/program", quick, env, -1, -1, &process), -ENOENT);
	assert_int_equal(exr_process_wait(&process, 0), 0);
	assert_int_equal(exr_spawn("/bin/true", quick, env, -1, -1, &process), 0);
	assert_int_equal(exr_process_wait(&process, 5000), 0);
	assert_int_equal(process.pidfd, -1);
	assert_int_equal(exr_spawn("/bin/sleep", slow, env, -1, -1, &process), 0);
	assert_int_equal(exr_process_wait(&process, 10), -ETIMEDOUT);
	assert_int_equal(exr_process_end(&process, 0, 5000), 0);
	assert_int_equal(process.pidfd, -1);
}

static void last_words_arrive_though_something_was_unread(void **state)
{
	WireMessage failed = { .type = WIRE_FAILED,
			       .stage = EXR_STAGE_START_INIT,
			       .errnum = ENOENT };
	WireMessage plan = { .type = WIRE_PLAN }, got;
	int pair[2];

	(void)state;
	assert_int_equal(exr_socketpair(SOCK_SEQPACKET, pair), 0);
	assert_int_equal(packet_send(pair[0], &plan, NULL, 0), 0);
	assert_int_equal(packet_send(pair[1], &failed, NULL, 0), 0);
	fd_close(&pair[1]);
	assert_int_equal(packet_receive(pair[0], 1000, &got, NULL, NULL), 0);
	assert_int_equal(got.type, WIRE_FAILED);
	assert_int_equal(got.errnum, ENOENT);
	assert_int_equal(packet_receive(pair[0], 1000, &got, NULL, NULL), -EPIPE);
	fd_close(&pair[0]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(id_map_is_read_by_its_inner_side),
		cmocka_unit_test(identity_is_never_roots),
		cmocka_unit_test(every_stage_has_a_row_of_its_own),
		cmocka_unit_test(the_first_cause_counts),
		cmocka_unit_test(packet_arrives_whole_with_its_fds),
		cmocka_unit_test(an_end_that_has_not_read_all_is_told_apart),
		cmocka_unit_test(what_is_no_message_is_refused),
		cmocka_unit_test(spawned_program_is_waited_for_and_killed),
		cmocka_unit_test(last_words_arrive_though_something_was_unread),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
