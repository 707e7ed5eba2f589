/* gate: the table of operations against inodes that may and may not be written. */
#include "fsgate/gate.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

static FsgAnchor writable_anchor = { .writable = true };
static FsgAnchor read_only_anchor = { .writable = false };
static const FsgInode writable = { .kind = FSG_INODE_HOST, .anchor = &writable_anchor };
static const FsgInode read_only = { .kind = FSG_INODE_HOST, .anchor = &read_only_anchor };
static const FsgInode synthetic = { .kind = FSG_INODE_SYNTHETIC };
/* A stand-in below a writable mount is read-only all the same. */
static const FsgInode blocked = { .kind = FSG_INODE_BLOCKED, .anchor = &writable_anchor };
static const FsgInode *const refusing[] = { &read_only, &synthetic, &blocked };

static bool needs_flags(FsgOp op)
{
	return op == FSG_OP_OPEN || op == FSG_OP_ACCESS || op == FSG_OP_CREATE;
}

static bool changes(FsgOp op)
{
	static const FsgOp changing[] = {
		FSG_OP_WRITE,		FSG_OP_SETATTR,	    FSG_OP_SYMLINK,
		FSG_OP_MKDIR,		FSG_OP_MKNOD,	    FSG_OP_UNLINK,
		FSG_OP_RMDIR,		FSG_OP_RENAME,	    FSG_OP_LINK,
		FSG_OP_SETXATTR,	FSG_OP_REMOVEXATTR, FSG_OP_FALLOCATE,
		FSG_OP_COPY_FILE_RANGE, FSG_OP_SETFLAGS,
	};

	for (size_t i = 0; i < sizeof changing / sizeof *changing; i++)
		if (changing[i] == op)
			return true;
	return false;
}

static void every_changing_operation_is_refused_without_write_access(void **state)
{
	(void)state;
	for (FsgOp op = 0; op < _FSG_OP_N; op++) {
		if (needs_flags(op))
			continue;
		assert_int_equal(fsg_gate(op, &writable), 0);
		for (size_t i = 0; i < 3; i++)
			assert_int_equal(fsg_gate(op, refusing[i]), changes(op) ? -EROFS : 0);
	}
}

/* An exec's end has to know of a change before it is made. */
static void what_changes_something_is_known_before(void **state)
{
	(void)state;
	for (FsgOp op = 0; op < _FSG_OP_N; op++)
		assert_int_equal(fsg_op_changes(op), changes(op) || op == FSG_OP_CREATE);
	assert_false(fsg_op_changes(_FSG_OP_N));
}

static void what_has_no_row_is_refused(void **state)
{
	(void)state;
	assert_int_equal(fsg_gate(_FSG_OP_N, &writable), -EROFS);
	assert_int_equal(fsg_gate(FSG_OP_OPEN, &writable), -EROFS); /* has its own function */
}

static void every_operation_has_a_name(void **state)
{
	(void)state;
	for (FsgOp op = 0; op < _FSG_OP_N; op++)
		assert_true(strlen(fsg_op_name(op)) > 0);
}

static void open_counts_truncation_as_writing(void **state)
{
	static const struct {
		int flags;
		bool writes;
	} cases[] = {
		{ O_RDONLY, false },
		{ O_RDONLY | O_CLOEXEC | O_NOFOLLOW, false },
		{ O_RDONLY | O_APPEND, false },
		{ O_RDONLY | O_CREAT, false }, /* of a file that exists */
		{ O_WRONLY, true },
		{ O_RDWR, true },
		{ O_RDONLY | O_TRUNC, true },
		{ O_WRONLY | O_TRUNC, true },
		{ O_RDWR | O_APPEND, true },
	};

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		assert_int_equal(fsg_gate_open(&writable, cases[i].flags), 0);
		for (size_t k = 0; k < 3; k++)
			assert_int_equal(fsg_gate_open(refusing[k], cases[i].flags),
					 cases[i].writes ? -EROFS : 0);
	}
	assert_int_equal(fsg_gate_open(&writable, O_ACCMODE), -EINVAL);
}

static void access_and_create_ask_for_write_access(void **state)
{
	(void)state;
	assert_int_equal(fsg_gate_create(&writable), 0);
	assert_int_equal(fsg_gate_access(&writable, R_OK | W_OK | X_OK), 0);
	for (size_t i = 0; i < 3; i++) {
		assert_int_equal(fsg_gate_create(refusing[i]), -EROFS);
		assert_int_equal(fsg_gate_access(refusing[i], W_OK), -EROFS);
		assert_int_equal(fsg_gate_access(refusing[i], R_OK | X_OK), 0);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_changing_operation_is_refused_without_write_access),
		cmocka_unit_test(what_changes_something_is_known_before),
		cmocka_unit_test(what_has_no_row_is_refused),
		cmocka_unit_test(every_operation_has_a_name),
		cmocka_unit_test(open_counts_truncation_as_writing),
		cmocka_unit_test(access_and_create_ask_for_write_access),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
