/* spill: the whole of an output in a file, in a directory where somebody else does as they like. */
#include "executor/spill.h"

#include "common/fd-util.h"
#include "unit/view-plan-fixture.h"

#include <sys/resource.h>

#define CAP 100

/* The linker puts this around the writes of a spill: from the failing one on there is no room. With
 * `counted`, nothing is written. */
ssize_t __real_write(int fd, const void *data, size_t size);
ssize_t __wrap_write(int fd, const void *data, size_t size);
static int writes, failing_write;
static bool counts_only;
static uint64_t counted;

ssize_t __wrap_write(int fd, const void *data, size_t size)
{
	if (++writes == failing_write) {
		errno = ENOSPC;
		return -1;
	}
	counted += size;
	return counts_only ? (ssize_t)size : __real_write(fd, data, size);
}

typedef struct {
	ExrSpillDir dir;
	ExrSpill *spill;
	OutputBuffer *buffer;
	char stream[1000];
} Setup;

static int set_up(void **state)
{
	Setup *setup = g_new0(Setup, 1);

	if (make_root(NULL) != 0)
		return -1;
	setup->dir = EXR_NO_SPILL_DIR;
	setup->dir.fd = open(host("ws"), O_PATH | O_DIRECTORY | O_CLOEXEC);
	setup->spill = exr_spill_new(&setup->dir, "/tmp", "stdout");
	setup->buffer = output_buffer_new_with_tail(CAP, 10);
	for (size_t i = 0; i < sizeof setup->stream; i++)
		setup->stream[i] = (char)(i * 7 % 251);
	writes = failing_write = 0;
	counted = 0;
	counts_only = false;
	*state = setup;
	return 0;
}

static int tear_down(void **state)
{
	Setup *setup = *state;

	exr_spill_free(setup->spill);
	exr_spill_dir_close(&setup->dir);
	exr_spill_dir_close(&setup->dir);
	output_buffer_free(setup->buffer);
	g_free(setup);
	return remove_root(NULL);
}

static void capture(Setup *setup, size_t total, size_t step)
{
	for (size_t done = 0; done < total; done += step)
		exr_spill_capture(setup->spill, setup->buffer, setup->stream + done,
				  MIN(step, total - done));
	assert_int_equal(output_buffer_total(setup->buffer), total);
}

/* The only file of the directory, or NULL when it is empty. The caller frees. */
static char *only_name(void)
{
	GDir *dir = g_dir_open(host("ws"), 0, NULL);
	char *name = g_strdup(g_dir_read_name(dir));

	assert_null(g_dir_read_name(dir));
	g_dir_close(dir);
	return name;
}

static void assert_nothing(Setup *setup)
{
	assert_null(exr_spill_finish(setup->spill));
	assert_null(only_name());
}

/* The file, by the path that is told. */
static void assert_whole(Setup *setup, size_t total)
{
	const char *path = exr_spill_finish(setup->spill);
	g_autofree char *name = only_name();
	g_autofree char *expected = g_strconcat("/tmp/", name, NULL);
	g_autofree char *file = path_join(host("ws"), name);
	g_autofree char *content = NULL;
	struct stat st;
	gsize size;

	assert_string_equal(path, expected);
	assert_true(g_regex_match_simple("^/tmp/stella-stdout-[0-9a-f]{16}[.]txt$", path, 0, 0));
	assert_ptr_equal(exr_spill_finish(setup->spill), path);
	assert_int_equal(stat(file, &st), 0);
	assert_int_equal(st.st_mode, S_IFREG | 0600);
	assert_true(g_file_get_contents(file, &content, &size, NULL));
	assert_int_equal(size, total);
	assert_memory_equal(content, setup->stream, total);
}

static void what_fits_makes_no_file_and_one_byte_more_does(void **state)
{
	Setup *setup = *state;

	capture(setup, CAP, 1);
	assert_null(only_name());
	exr_spill_capture(setup->spill, setup->buffer, NULL, 0);
	assert_null(only_name());
	exr_spill_capture(setup->spill, setup->buffer, setup->stream + CAP, 1);
	assert_whole(setup, CAP + 1);
}

static void nothing_is_made_for_a_stream_that_fitted(void **state)
{
	Setup *setup = *state;

	capture(setup, CAP, 33);
	assert_nothing(setup);
}

static void the_file_is_the_whole_stream_whatever_the_writes_are(void **state)
{
	static const size_t steps[] = { 1, 7, CAP - 1, CAP, CAP + 1, 1000 };

	for (size_t i = 0; i < G_N_ELEMENTS(steps); i++) {
		Setup *setup;

		if (i > 0 && set_up(state) != 0)
			fail();
		setup = *state;
		capture(setup, sizeof setup->stream, steps[i]);
		assert_whole(setup, sizeof setup->stream);
		if (i + 1 < G_N_ELEMENTS(steps))
			assert_int_equal(tear_down(state), 0);
	}
}

static void the_mask_of_the_process_takes_no_right_away(void **state)
{
	Setup *setup = *state;
	mode_t before = umask(0777);

	capture(setup, 200, 200);
	umask(before);
	assert_whole(setup, 200);
}

static void without_a_spill_the_buffer_alone_is_filled(void **state)
{
	Setup *setup = *state;

	exr_spill_capture(NULL, setup->buffer, setup->stream, 1000);
	assert_int_equal(output_buffer_total(setup->buffer), 1000);
	assert_null(only_name());
}

/* Whichever write finds no room: no file, the buffer as ever, and nothing more is tried. */
static void without_room_there_is_no_file_and_no_error(void **state)
{
	int n;

	for (n = 1; n < 100; n++) {
		Setup *setup = *state;
		const char *kept;
		size_t size;

		failing_write = n;
		capture(setup, sizeof setup->stream, 50);
		if (writes < n)
			break;
		assert_int_equal(writes, n);
		assert_int_equal(exr_spill_write(setup->spill, "x", 1), -ENOSPC);
		assert_nothing(setup);
		kept = output_buffer_data(setup->buffer, &size);
		assert_int_equal(size, CAP);
		assert_memory_equal(kept, setup->stream, CAP - 10);
		assert_memory_equal(kept + CAP - 10, setup->stream + sizeof setup->stream - 10, 10);
		assert_int_equal(tear_down(state), 0);
		if (set_up(state) != 0)
			fail();
	}
	assert_int_equal(n, 20); /* the kept beginning, and what follows in steps of 50 */
	assert_whole(*state, 1000);
}

/* The signal of that limit would end the whole process. */
static void our_own_limit_of_file_sizes_is_kept_to(void **state)
{
	Setup *setup = *state;
	struct rlimit before, less;

	assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
	less = before;
	less.rlim_cur = 500;
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &less), 0);
	capture(setup, 500, 50);
	assert_int_equal(exr_spill_write(setup->spill, "x", 1), -EFBIG);
	assert_nothing(setup);
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
}

static void more_than_a_file_may_hold_is_left_out_of_it(void **state)
{
	Setup *setup = *state;
	g_autofree char *chunk = g_malloc0(64 << 20);
	g_autofree char *remark = NULL;
	g_autofree char *first = NULL;
	const char *path;

	counts_only = true;
	for (int i = 0; i < 18; i++)
		exr_spill_capture(setup->spill, setup->buffer, chunk, (64 << 20) - 1);
	assert_true(counted == LIMIT_SPILL_BYTES);
	path = exr_spill_finish(setup->spill);
	assert_non_null(path);
	remark = exr_spill_remark("/tmp/x", LIMIT_SPILL_BYTES);
	assert_string_equal(remark, "whole output in /tmp/x");
	first = exr_spill_remark("/tmp/x", LIMIT_SPILL_BYTES + 1);
	assert_string_equal(first, "first 1GiB in /tmp/x");
	assert_null(exr_spill_remark(NULL, 1));
}

/* What the command may do to the file while it is written, all of it without an error; and what is
 * there afterwards under its name is not called ours. */
static void what_is_done_to_the_name_leads_nowhere(void **state)
{
	static const struct {
		bool leaves_ours;
		const char *put; /* where the name is afterwards: "link", "file", "dir" or NULL */
	} cases[] = { { false, NULL },
		      { false, "link" },
		      { false, "file" },
		      { false, "dir" },
		      { true, NULL } };

	for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
		Setup *setup = *state;
		g_autofree char *name = NULL;
		g_autofree char *path = NULL;
		g_autofree char *victim = NULL;

		capture(setup, 200, 200);
		name = only_name();
		path = path_join(host("ws"), name);
		if (!cases[i].leaves_ours)
			assert_int_equal(unlink(path), 0);
		if (g_strcmp0(cases[i].put, "link") == 0)
			assert_int_equal(symlink(host("file"), path), 0);
		else if (g_strcmp0(cases[i].put, "file") == 0)
			assert_true(g_file_set_contents(path, "mine", -1, NULL));
		else if (g_strcmp0(cases[i].put, "dir") == 0)
			assert_int_equal(mkdir(path, 0700), 0);
		failing_write = i % 2 ? writes + 2 : 0; /* with and without an end of its own */
		exr_spill_capture(setup->spill, setup->buffer, setup->stream, 100);
		exr_spill_capture(setup->spill, setup->buffer, setup->stream, 100);
		assert_int_equal(exr_spill_finish(setup->spill) != NULL, cases[i].leaves_ours);
		assert_true(g_file_get_contents(host("file"), &victim, NULL, NULL));
		assert_string_equal(victim, "x");
		assert_int_equal(tear_down(state), 0);
		if (set_up(state) != 0)
			fail();
	}
}

static void a_directory_that_takes_nothing_is_no_error(void **state)
{
	Setup *setup = *state;
	ExrSpillDir gone = EXR_NO_SPILL_DIR;
	g_autoptr(ExrSpill) spill = exr_spill_new(&gone, "/tmp", "stderr");

	gone.fd = open(host("a/b"), O_PATH | O_DIRECTORY | O_CLOEXEC);
	assert_int_equal(rmdir(host("a/b")), 0);
	exr_spill_capture(spill, setup->buffer, setup->stream, 1000);
	assert_int_equal(output_buffer_total(setup->buffer), 1000);
	assert_null(exr_spill_finish(spill));
	exr_spill_dir_close(&gone);
}

/* source is the host directory that is expected; NULL: the session's own. */
static int open_dir(const StellaPolicy *policy, const char *source, void (*meanwhile)(void),
		    ExrSpillDir *ret_dir)
{
	ExrIdentity identity = { .inside = 1000, .outside_uid = 7, .outside_gid = 8, .lent = true };
	ExrIdentity own = identity;
	g_autoptr(ExrStateDir) state = NULL;
	g_autoptr(ViewPlan) plan = plan_or_fail(policy, VIEW_FOR_SANDBOX);
	ExrError error = { 0 };
	int r;

	own.lent = false; /* making it needs no privilege then */
	g_setenv("STELLA_STATE_DIR", host("state"), TRUE);
	assert_int_equal(exr_state_dir_new(&own, false, &state, &error), 0);
	if (meanwhile)
		meanwhile();
	r = exr_spill_dir_open(plan, state, &identity, ret_dir);
	if (r == 0) {
		g_autofree char *tmp = exr_state_dir_join(state, "tmp");
		uid_t mount_owner = geteuid() == 0 ? 0 : (uid_t)-1;
		struct stat st, by_fd;

		assert_int_equal(fstat(ret_dir->fd, &by_fd), 0);
		assert_int_equal(stat(source ? host(source) : tmp, &st), 0);
		assert_true(st.st_dev == by_fd.st_dev && st.st_ino == by_fd.st_ino);
		assert_int_equal(ret_dir->uid, source ? mount_owner : 7);
		assert_int_equal(ret_dir->of_session, !source);
	}
	return r;
}

static void exchange_user(void)
{
	assert_int_equal(rename(host("user"), host("moved")), 0);
	assert_int_equal(symlink("/", host("user")), 0);
}

static void the_directory_is_whatever_the_view_has_at_tmp(void **state)
{
	static const struct {
		const char *source; /* at /tmp; NULL: the session's own */
		StellaMountAccess access;
		uint64_t quota;
		void (*meanwhile)(void);
		int result;
	} cases[] = {
		{ .source = NULL, .result = 0 },
		{ "user", STELLA_MOUNT_READ_WRITE, 0, NULL, 0 },
		{ "user", STELLA_MOUNT_READ_ONLY, 0, NULL, -EROFS },
		{ "user", STELLA_MOUNT_READ_WRITE, 1, NULL, -EDQUOT },
		{ "file", STELLA_MOUNT_READ_WRITE, 0, NULL, -ENOTDIR },
		{ "user", STELLA_MOUNT_READ_WRITE, 0, exchange_user, -ESTALE },
	};

	(void)state;
	for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
		g_autoptr(StellaPolicy) policy = new_policy();
		ExrSpillDir dir = EXR_NO_SPILL_DIR;

		if (cases[i].source) {
			PolicyMount *mount = policy_add_mount(policy, host(cases[i].source), "/tmp",
							      cases[i].access);

			mount->quota_bytes = cases[i].quota;
		}
		assert_int_equal(open_dir(policy, cases[i].source, cases[i].meanwhile, &dir),
				 cases[i].result);
		assert_int_equal(dir.fd >= 0, cases[i].result == 0);
		exr_spill_dir_close(&dir);
	}
}

static void a_given_temporary_directory_is_used(void **state)
{
	g_autoptr(StellaPolicy) policy = new_policy();
	ExrSpillDir dir = EXR_NO_SPILL_DIR;

	(void)state;
	policy_set_path(&policy->temp_dir_host, host("given"));
	assert_int_equal(open_dir(policy, "given", NULL, &dir), 0);
	exr_spill_dir_close(&dir);
}

#define SPILL(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		SPILL(what_fits_makes_no_file_and_one_byte_more_does),
		SPILL(nothing_is_made_for_a_stream_that_fitted),
		SPILL(the_file_is_the_whole_stream_whatever_the_writes_are),
		SPILL(the_mask_of_the_process_takes_no_right_away),
		SPILL(without_a_spill_the_buffer_alone_is_filled),
		SPILL(without_room_there_is_no_file_and_no_error),
		SPILL(our_own_limit_of_file_sizes_is_kept_to),
		SPILL(more_than_a_file_may_hold_is_left_out_of_it),
		SPILL(what_is_done_to_the_name_leads_nowhere),
		SPILL(a_directory_that_takes_nothing_is_no_error),
		ROOTED(the_directory_is_whatever_the_view_has_at_tmp),
		ROOTED(a_given_temporary_directory_is_used),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
