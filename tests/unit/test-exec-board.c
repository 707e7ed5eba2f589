/* exec-board: the page is shared, and only one that can never become smaller is mapped. */
#include "common/exec-board.h"

#include "common/fd-util.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <sys/mman.h>

#include <cmocka.h>

#define SEALS (F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL)

static void what_one_writes_the_other_reads(void **state)
{
	ExecBoard *ours, *theirs;
	FD_AUTO fd = -1;

	(void)state;
	assert_int_equal(exec_board_new(&ours, &fd), 0);
	assert_int_equal(exec_board_map(fd, &theirs), 0);
	assert_ptr_not_equal(ours, theirs);
	assert_int_equal(atomic_load(&theirs->execs), 0);
	atomic_fetch_add(&ours->execs, 7);
	assert_int_equal(atomic_load(&theirs->execs), 7);
	atomic_store(&theirs->happened, 3);
	assert_int_equal(atomic_load(&ours->happened), 3);
	/* whoever has the fd cannot take the memory away */
	assert_int_equal(ftruncate(fd, 0), -1);
	assert_int_equal(errno, EPERM);
	exec_board_unmap(ours);
	exec_board_unmap(theirs);
	exec_board_unmap(NULL);
}

static void what_is_no_board_is_not_mapped(void **state)
{
	static const struct {
		off_t size;
		int seals, r;
	} cases[] = {
		{ sizeof(ExecBoard), SEALS, 0 },
		{ sizeof(ExecBoard), F_SEAL_SEAL, -EINVAL },
		{ sizeof(ExecBoard), F_SEAL_GROW | F_SEAL_SEAL, -EINVAL },
		{ sizeof(ExecBoard) - 1, SEALS, -EINVAL },
		{ 0, SEALS, -EINVAL },
	};
	FD_AUTO file = open("/dev/null", O_RDWR | O_CLOEXEC);
	ExecBoard *board = NULL;

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		FD_AUTO fd = memfd_create("board", MFD_CLOEXEC | MFD_ALLOW_SEALING);

		assert_int_equal(ftruncate(fd, cases[i].size), 0);
		assert_int_equal(fcntl(fd, F_ADD_SEALS, cases[i].seals), 0);
		assert_int_equal(exec_board_map(fd, &board), cases[i].r);
		if (cases[i].r == 0)
			exec_board_unmap(board);
	}
	assert_int_equal(exec_board_map(file, &board), -EINVAL);
	assert_int_equal(exec_board_map(-1, &board), -EINVAL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_one_writes_the_other_reads),
		cmocka_unit_test(what_is_no_board_is_not_mapped),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
