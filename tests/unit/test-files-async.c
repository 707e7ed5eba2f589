/* files: the asynchronous twins give what the blocking functions give, in the caller's main context, also when the caller has
 * let go of everything; and objects live as long as somebody holds them. */
#include "files-fixture.h"

/* For ThreadSanitizer, which calls it: it does not see how GLib orders what its own threads do with its own memory. */
const char *__tsan_default_suppressions(void);
const char *__tsan_default_suppressions(void)
{
	return "called_from_lib:libglib-2.0.so.0\n"
	       "called_from_lib:libgobject-2.0.so.0\n"
	       "called_from_lib:libgio-2.0.so.0\n";
}

typedef struct {
	GMainLoop *loop;
	GAsyncResult *result;
	GThread *thread;
} Wait;

static void done(GObject *source, GAsyncResult *result, gpointer data)
{
	Wait *wait = data;

	assert_null(source);
	assert_ptr_equal(g_thread_self(), wait->thread);
	wait->result = g_object_ref(result);
	g_main_loop_quit(wait->loop);
}

static Wait wait_new(void)
{
	return (Wait){ .loop = g_main_loop_new(NULL, FALSE), .thread = g_thread_self() };
}

/* Until the callback was called, in this context. */
static GAsyncResult *wait_for(Wait *wait)
{
	g_main_loop_run(wait->loop);
	g_main_loop_unref(wait->loop);
	assert_non_null(wait->result);
	return wait->result;
}

/* GTask's threads and the worker of GLib's main context hold descriptors: those are there before the first test counts. */
static int warm_up(void **state)
{
	Wait wait;
	GAsyncResult *result;

	make_host_side();
	files = files_over(STELLA_SYMLINKS_CONTAINED);
	wait = wait_new();
	stella_files_mkdir_async(files, "x", 0, NULL, done, &wait);
	result = wait_for(&wait);
	WORKS(stella_files_finish(files, result, &error));
	g_object_unref(result);
	g_clear_pointer(&files, stella_files_unref);
	fds_before = count_fds();
	return tear_down(state);
}

static void each_twin_gives_what_its_function_gives(void **state)
{
	g_autoptr(StellaFileInfo) info = NULL;
	g_autoptr(GPtrArray) entries = NULL;
	g_autoptr(GBytes) bytes = NULL;
	g_autoptr(GAsyncResult) stat_result = NULL, list_result = NULL, read_result = NULL;
	Wait wait = wait_new();

	(void)state;
	stella_files_stat_async(files, "file", 0, NULL, done, &wait);
	stat_result = wait_for(&wait);
	WORKS(info = stella_files_stat_finish(files, stat_result, &error));
	assert_string_equal(info->path, "/workspace/file");
	wait = wait_new();
	stella_files_list_async(files, "dir", NULL, done, &wait);
	list_result = wait_for(&wait);
	WORKS(entries = stella_files_list_finish(files, list_result, &error));
	assert_int_equal(entries->len, 2);
	wait = wait_new();
	stella_files_read_async(files, "file", 1, 2, NULL, done, &wait);
	read_result = wait_for(&wait);
	WORKS(bytes = stella_files_read_finish(files, read_result, &error));
	assert_int_equal(g_bytes_get_size(bytes), 2);
	assert_memory_equal(g_bytes_get_data(bytes, NULL), "il", 2);
}

static void finishes(Wait *wait)
{
	g_autoptr(GAsyncResult) result = wait_for(wait);

	WORKS(stella_files_finish(files, result, &error));
	*wait = wait_new();
}

static void twins_that_change_do_so(void **state)
{
	Wait wait = wait_new();
	g_autoptr(GAsyncResult) result = NULL;
	char text[] = "written";
	guint count = 0;

	(void)state;
	stella_files_write_async(files, "new", text, 7, 0, NULL, done, &wait);
	memset(text, 'x', 7); /* the caller's own again */
	finishes(&wait);
	assert_host("ws/new", "written");
	stella_files_append_async(files, "new", "+", 1, 0, NULL, done, &wait);
	finishes(&wait);
	assert_host("ws/new", "written+");
	stella_files_mkdir_async(files, "a/b", STELLA_FILES_PARENTS, NULL, done, &wait);
	finishes(&wait);
	stella_files_rename_async(files, "new", "a/b/moved", 0, NULL, done, &wait);
	finishes(&wait);
	assert_host("ws/a/b/moved", "written+");
	stella_files_copy_async(files, "a", "copy", STELLA_FILES_RECURSIVE, NULL, done, &wait);
	finishes(&wait);
	assert_host("ws/copy/b/moved", "written+");
	stella_files_remove_async(files, "a", STELLA_FILES_RECURSIVE, NULL, done, &wait);
	finishes(&wait);
	assert_false(exists("ws/a"));
	stella_files_edit_async(files, "copy/b/moved", "t", "T", STELLA_FILES_ALL, NULL, done,
				&wait);
	result = wait_for(&wait);
	WORKS(stella_files_edit_finish(files, result, &count, &error));
	assert_int_equal(count, 2);
	assert_host("ws/copy/b/moved", "wriTTen+");
}

static void errors_arrive_as_they_are(void **state)
{
	Wait wait = wait_new();
	g_autoptr(GAsyncResult) first = NULL, second = NULL, third = NULL;
	guint count = 7;

	(void)state;
	stella_files_write_async(files, "/inner/f", "x", 1, 0, NULL, done, &wait);
	first = wait_for(&wait);
	FAILS(stella_files_finish(files, first, &error), STELLA_ERROR_READ_ONLY);
	assert_host("ws/inner/f", "inner");
	wait = wait_new();
	stella_files_edit_async(files, "file", "absent", "x", 0, NULL, done, &wait);
	second = wait_for(&wait);
	FAILS(stella_files_edit_finish(files, second, &count, &error), STELLA_ERROR_NO_MATCH);
	assert_int_equal(count, 7);
	/* What is too much is not even copied. */
	wait = wait_new();
	stella_files_write_async(files, "big", "x", G_MAXSIZE, 0, NULL, done, &wait);
	third = wait_for(&wait);
	FAILS(stella_files_finish(files, third, &error), STELLA_ERROR_TOO_LARGE);
}

static void what_was_cancelled_before_is_not_done(void **state)
{
	g_autoptr(GCancellable) cancellable = g_cancellable_new();
	g_autoptr(GAsyncResult) first = NULL, second = NULL;
	Wait wait = wait_new();

	(void)state;
	g_cancellable_cancel(cancellable);
	stella_files_write_async(files, "new", "x", 1, STELLA_FILES_PARENTS, cancellable, done,
				 &wait);
	first = wait_for(&wait);
	FAILS(stella_files_finish(files, first, &error), STELLA_ERROR_CANCELED);
	assert_false(exists("ws/new"));
	wait = wait_new();
	stella_files_read_async(files, "file", 0, 0, cancellable, done, &wait);
	second = wait_for(&wait);
	FAILS(stella_files_read_finish(files, second, &error), STELLA_ERROR_CANCELED);
	FAILS(stella_files_remove(files, "file", 0, cancellable, &error), STELLA_ERROR_CANCELED);
	assert_host("ws/file", "file");
}

/* Between many copies something is cancelled: it is then whole or not there. */
static void what_is_cancelled_meanwhile_is_whole_or_not_there(void **state)
{
	struct stat st;

	(void)state;
	put_file("ws/large", "");
	assert_int_equal(truncate(host("ws/large"), 1024 * 1024), 0);
	for (int i = 0; i < 50; i++) {
		g_autoptr(GCancellable) cancellable = g_cancellable_new();
		g_autoptr(GAsyncResult) result = NULL;
		g_autoptr(GError) refusal = NULL;
		Wait wait = wait_new();

		stella_files_copy_async(files, "large", "copy", 0, cancellable, done, &wait);
		for (int k = 0; k < i * 20; k++)
			g_thread_yield();
		g_cancellable_cancel(cancellable);
		result = wait_for(&wait);
		if (stella_files_finish(files, result, &refusal)) {
			assert_int_equal(stat(host("ws/copy"), &st), 0);
			assert_int_equal(st.st_size, 1024 * 1024);
			assert_int_equal(unlink(host("ws/copy")), 0);
		} else {
			check_error(refusal, STELLA_ERROR_CANCELED, "copy");
			assert_false(exists("ws/copy"));
		}
		assert_int_equal(count_temps(host("ws")), 0);
	}
}

static void objects_live_as_long_as_they_are_used(void **state)
{
	StellaFiles *own = stella_files_ref(files);
	g_autoptr(GAsyncResult) result = NULL, dropped = NULL;
	Wait wait = wait_new();
	GValue value = G_VALUE_INIT;

	(void)state;
	/* Held by the call alone. */
	stella_files_write_async(files, "new", "x", 1, 0, NULL, done, &wait);
	g_clear_pointer(&files, stella_files_unref);
	g_value_init(&value, STELLA_TYPE_FILES);
	g_value_take_boxed(&value, own);
	g_value_unset(&value);
	dropped = wait_for(&wait);
	assert_host("ws/new", "x");
	/* A result that nobody asks for is freed with its task. */
	files = files_over(STELLA_SYMLINKS_CONTAINED);
	wait = wait_new();
	stella_files_list_async(files, "/workspace", NULL, done, &wait);
	result = wait_for(&wait);
	/* Nobody to be told. */
	stella_files_remove_async(files, "new", 0, NULL, NULL, NULL);
	while (exists("ws/new"))
		g_thread_yield();
	stella_files_unref(NULL);
	stella_file_info_free(NULL);
	stella_dir_entry_free(NULL);
}

static void a_result_of_another_function_is_a_programming_error(void **state)
{
	g_autoptr(GAsyncResult) result = NULL;
	g_autoptr(GBytes) bytes = NULL;
	Wait wait = wait_new();
	GError *error = NULL;

	(void)state;
	stella_files_read_async(files, "file", 0, 0, NULL, done, &wait);
	result = wait_for(&wait);
	g_test_expect_message(NULL, G_LOG_LEVEL_CRITICAL, "*tag*");
	assert_false(stella_files_finish(files, result, &error));
	g_test_assert_expected_messages();
	g_test_expect_message(NULL, G_LOG_LEVEL_CRITICAL, "*files != NULL*");
	assert_null(stella_files_read(NULL, "file", 0, 0, NULL, &error));
	g_test_assert_expected_messages();
	assert_null(error);
	bytes = stella_files_read_finish(files, result, &error);
	assert_non_null(bytes);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		TREE(each_twin_gives_what_its_function_gives),
		TREE(twins_that_change_do_so),
		TREE(errors_arrive_as_they_are),
		TREE(what_was_cancelled_before_is_not_done),
		TREE(what_is_cancelled_meanwhile_is_whole_or_not_there),
		TREE(objects_live_as_long_as_they_are_used),
		TREE(a_result_of_another_function_is_a_programming_error),
	};

	g_test_init(&argc, &argv, NULL);
	return cmocka_run_group_tests(tests, warm_up, NULL);
}
