/* request: from the place that refuses, over the reply, to what is recorded. */
#include "fsgate/refusal.h"

#include "fsgate/events.h"
#include "fsgate/ops.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

static char view_path[] = "/opt/stella";
static char no_name[] = "";

typedef struct {
	FsgAnchor anchor; /* a read-only mount, which is the whole view here */
	FsgNode root;
	FsgView view;
	FsgAsked request;
} Fixture;

static int set_up(void **state)
{
	Fixture *f = g_new0(Fixture, 1);

	f->anchor = (FsgAnchor){ .id = 1, .fd = -1, .is_dir = true, .view_path = view_path };
	f->root = (FsgNode){
		.kind = FSG_NODE_MOUNT,
		.name = no_name,
		.anchor = &f->anchor,
		.children = g_ptr_array_new(),
	};
	f->view.inodes = fsg_inode_table_new(&f->root, 8);
	f->view.denials = fsg_denials_new();
	f->view.events = fsg_events_new();
	fsg_stats_init(&f->view.stats);
	f->request = (FsgAsked){
		.view = &f->view,
		.op = FSG_OP_MKDIR,
		.pid = 42,
		.inode = f->root.inode,
		.name = "new",
	};
	*state = f;
	return 0;
}

static int tear_down(void **state)
{
	Fixture *f = *state;

	fsg_inode_table_free(f->view.inodes);
	fsg_denials_free(f->view.denials);
	fsg_events_free(f->view.events);
	g_ptr_array_unref(f->root.children);
	g_free(f);
	return 0;
}

/* The rows, of which there have to be that many; to be cleared. */
static void expect_rows(Fixture *f, guint count, FsgDenialList *ret_list)
{
	fsg_denials_list(f->view.denials, 0, ret_list);
	assert_int_equal(ret_list->rows->len, count);
}

static void a_refusal_is_recorded_when_it_is_the_answer(void **state)
{
	Fixture *f = *state;
	FsgDenialList list;
	const FsgDenial *row;

	fsg_asked_begin(&f->request);
	fsg_asked_replies(fsg_gate(FSG_OP_MKDIR, f->root.inode));
	fsg_asked_end(&f->request);
	expect_rows(f, 1, &list);
	row = g_ptr_array_index(list.rows, 0);
	assert_string_equal(row->op, "mkdir");
	assert_string_equal(row->path, "/new");
	assert_string_equal(row->mount, "/opt/stella");
	assert_int_equal(row->reason, DENIAL_READ_ONLY_MOUNT);
	assert_int_equal(row->errnum, EROFS);
	assert_int_equal(row->pid, 42);
	assert_true(row->time_us > 0);
	assert_int_equal(fsg_stats_requests(&f->view.stats, FSG_OP_MKDIR), 1);
	fsg_denial_list_clear(&list);
}

/* What one place refuses may be granted in the end (O_CREAT of an existing file), or answered otherwise. */
static void a_refusal_that_is_not_the_answer_is_not_recorded(void **state)
{
	static const int answers[] = { 0, -ENOENT, -EEXIST, -EBUSY };
	Fixture *f = *state;
	FsgDenialList list;

	for (size_t i = 0; i < sizeof answers / sizeof *answers; i++) {
		fsg_asked_begin(&f->request);
		assert_int_equal(fsg_refuse(DENIAL_HIDDEN, -EACCES), -EACCES);
		fsg_asked_replies(answers[i]);
		fsg_asked_end(&f->request);
		f->request.refused = 0;
	}
	expect_rows(f, 0, &list);
	fsg_denial_list_clear(&list);
}

static void what_nobody_claims_is_the_hosts(void **state)
{
	static const struct {
		int r, reason; /* -1: no denial */
	} cases[] = {
		{ -EACCES, DENIAL_HOST_PERMISSION },
		{ -EPERM, DENIAL_HOST_PERMISSION },
		{ -EROFS, DENIAL_HOST_READ_ONLY },
		{ -ENOENT, -1 },
		{ -EEXIST, -1 },
		{ -ENOTEMPTY, -1 },
		{ -EBUSY, -1 },
		{ -EXDEV, -1 },
		{ -EIO, -1 },
	};
	Fixture *f = *state;

	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		FsgDenialList list;
		uint64_t before;

		fsg_denials_list(f->view.denials, 0, &list);
		before = list.last;
		fsg_denial_list_clear(&list);
		fsg_asked_begin(&f->request);
		fsg_asked_replies(cases[i].r);
		fsg_asked_end(&f->request);
		fsg_denials_list(f->view.denials, before, &list);
		assert_int_equal(list.rows->len, cases[i].reason >= 0);
		if (cases[i].reason >= 0)
			assert_int_equal(((FsgDenial *)g_ptr_array_index(list.rows, 0))->reason,
					 cases[i].reason);
		fsg_denial_list_clear(&list);
	}
}

static void the_entry_that_was_refused_is_named(void **state)
{
	Fixture *f = *state;
	FsgDenialList list;

	f->request.op = FSG_OP_RENAME;
	f->request.to_inode = f->root.inode;
	f->request.to_name = "there";
	fsg_asked_begin(&f->request);
	fsg_asked_replies(
		fsg_refuse_entry(DENIAL_PINNED_DIRECTORY, -EBUSY, f->root.inode, "there"));
	fsg_asked_end(&f->request);
	expect_rows(f, 1, &list);
	assert_string_equal(((FsgDenial *)g_ptr_array_index(list.rows, 0))->path, "/there");
	fsg_denial_list_clear(&list);
}

static void what_an_inode_is_gives_the_reason(void **state)
{
	const FsgInode synthetic = { .kind = FSG_INODE_SYNTHETIC };
	const FsgInode stand_in = { .kind = FSG_INODE_BLOCKED };
	const FsgInode private = { .kind = FSG_INODE_BLOCKED, .key.ino = FSG_INO_PRIVATE | 5 };
	const struct {
		const FsgInode *inode;
		DenialReason reason;
	} cases[] = {
		{ &synthetic, DENIAL_VIEW_DIRECTORY },
		{ &stand_in, DENIAL_STAND_IN },
		{ &private, DENIAL_PRIVATE_DIRECTORY },
	};
	Fixture *f = *state;

	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		fsg_asked_begin(&f->request);
		assert_int_equal(fsg_refuse_change(cases[i].inode, -EROFS), -EROFS);
		assert_int_equal(f->request.reason, cases[i].reason);
		fsg_asked_end(&f->request);
	}
}

/* A new operation without a wrapper would be neither counted nor, when it is refused, recorded. */
static void every_handler_is_observed(void **state)
{
	static const char *const not_about_a_request[] = { "init", "forget", "forget_multi" };
	struct fuse_lowlevel_ops seen = fsg_observed_ops();
	uintptr_t plain[sizeof fsg_ops / sizeof(uintptr_t)], wrapped[G_N_ELEMENTS(plain)];
	size_t handlers = 0, unseen = 0;

	(void)state;
	memcpy(plain, &fsg_ops, sizeof plain);
	memcpy(wrapped, &seen, sizeof wrapped);
	for (size_t i = 0; i < G_N_ELEMENTS(plain); i++) {
		assert_int_equal(plain[i] == 0, wrapped[i] == 0);
		handlers += plain[i] != 0;
		unseen += plain[i] != 0 && plain[i] == wrapped[i];
	}
	assert_true(handlers > 30);
	assert_int_equal(unseen, G_N_ELEMENTS(not_about_a_request));
	assert_true(seen.init == fsg_ops.init && seen.forget == fsg_ops.forget &&
		    seen.forget_multi == fsg_ops.forget_multi);
}

static void without_a_request_nothing_happens(void **state)
{
	Fixture *f = *state;
	FsgDenialList list;

	assert_int_equal(fsg_refuse(DENIAL_CHOWN, -EPERM), -EPERM);
	fsg_refuse_target("/etc");
	fsg_asked_replies(-EPERM);
	expect_rows(f, 0, &list);
	fsg_denial_list_clear(&list);
}

int main(void)
{
#define ROW(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		ROW(a_refusal_is_recorded_when_it_is_the_answer),
		ROW(a_refusal_that_is_not_the_answer_is_not_recorded),
		ROW(what_nobody_claims_is_the_hosts),
		ROW(the_entry_that_was_refused_is_named),
		ROW(what_an_inode_is_gives_the_reason),
		ROW(every_handler_is_observed),
		ROW(without_a_request_nothing_happens),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
