/* files: on a file system that cannot rename without replacing (as NFS) a new file appears all the same, and nothing is
 * replaced that appears meanwhile. */
#include "files-fixture.h"

#include "common/syscall-wrap.h"

#include <stdio.h>

static unsigned int refused;
static const char
	*appears; /* a name of the host side that another program makes at that moment, or NULL */

int __real_sys_renameat2(int from_dirfd, const char *from, int to_dirfd, const char *to,
			 unsigned int flags);
int __wrap_sys_renameat2(int from_dirfd, const char *from, int to_dirfd, const char *to,
			 unsigned int flags);
int __wrap_sys_renameat2(int from_dirfd, const char *from, int to_dirfd, const char *to,
			 unsigned int flags)
{
	if (!(flags & RENAME_NOREPLACE))
		return __real_sys_renameat2(from_dirfd, from, to_dirfd, to, flags);
	refused++;
	if (appears)
		put_file(appears, "another's");
	appears = NULL;
	return -EINVAL;
}

static void a_new_file_appears_all_the_same(void **state)
{
	struct stat st;

	(void)state;
	refused = 0;
	WORKS(writes("new", "new", STELLA_FILES_EXCLUSIVE, &error));
	assert_host("ws/new", "new");
	assert_int_equal(stat(host("ws/new"), &st), 0);
	assert_int_equal(st.st_nlink, 1);
	WORKS(stella_files_copy(files, "new", "copy", 0, NULL, &error));
	assert_host("ws/copy", "new");
	assert_int_equal(refused, 2);
}

static void what_appears_meanwhile_is_not_replaced(void **state)
{
	(void)state;
	appears = "ws/new";
	FAILS(writes("new", "mine", STELLA_FILES_EXCLUSIVE, &error), STELLA_ERROR_EXISTS);
	assert_host("ws/new", "another's");
	appears = "ws/copy";
	FAILS(stella_files_copy(files, "file", "copy", 0, NULL, &error), STELLA_ERROR_EXISTS);
	assert_host("ws/copy", "another's");
	/* Where it may be replaced, it is one that has been there. */
	appears = "ws/third";
	WORKS(writes("third", "mine", 0, &error));
	assert_host("ws/third", "mine");
}

static void a_rename_that_could_replace_is_not_done(void **state)
{
	(void)state;
	FAILS(stella_files_rename(files, "file", "new", 0, NULL, &error),
	      STELLA_ERROR_INVALID_ARGUMENT);
	assert_host("ws/file", "file");
	WORKS(stella_files_rename(files, "file", "new", STELLA_FILES_REPLACE, NULL, &error));
	assert_host("ws/new", "file");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TREE(a_new_file_appears_all_the_same),
		TREE(what_appears_meanwhile_is_not_replaced),
		TREE(a_rename_that_could_replace_is_not_done),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
