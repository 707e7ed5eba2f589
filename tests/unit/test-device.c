/* device: what libfuse is told when the kernel does not take something. The kernel is not there: what would be written
 * to it fails as the test says (--wrap=writev). */
#include "fsgate/device.h"

#include "common/fd-util.h"
#include "fsgate/notify.h"
#include "fsgate/view.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/fuse.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include <cmocka.h>

static FsgView view;
static int refusal, writes; /* errno of the next writes, or 0; how many there were */

ssize_t __wrap_writev(int fd, const struct iovec *iov, int count);
ssize_t __wrap_writev(int fd, const struct iovec *iov, int count)
{
	ssize_t size = 0;

	(void)fd;
	writes++;
	for (int i = 0; i < count; i++)
		size += (ssize_t)iov[i].iov_len;
	errno = refusal;
	return refusal ? -1 : size;
}

/* A session that has been told which protocol the kernel speaks; before that libfuse notifies of nothing. */
static struct fuse_session *start(void)
{
	struct {
		struct fuse_in_header header;
		struct fuse_init_in init;
	} init = {
		.header = { .len = sizeof init, .opcode = FUSE_INIT, .unique = 2 },
		.init = { .major = FUSE_KERNEL_VERSION,
			  .minor = 38,
			  .flags2 = FUSE_HAS_EXPIRE_ONLY >> 32,
			  .flags = FUSE_INIT_EXT },
	};
	const struct fuse_buf buffer = { .size = sizeof init, .mem = &init };
	const struct fuse_lowlevel_ops ops = { .init = NULL };
	const char *const argv[] = { "test", NULL };
	struct fuse_args args = FUSE_ARGS_INIT(1, (char **)(uintptr_t)argv);
	struct fuse_session *fuse = fuse_session_new(&args, &ops, sizeof ops, &view);
	char path[32];

	assert_non_null(fuse);
	fuse_opt_free_args(&args);
	snprintf(path, sizeof path, "/dev/fd/%d", open("/dev/null", O_RDWR | O_CLOEXEC));
	assert_int_equal(fuse_session_mount(fuse, path), 0);
	view.device = fsg_device_new(fuse, false);
	assert_non_null(view.device);
	/* its reply goes the way of what is not extended, by write() */
	fuse_session_process_buf(fuse, &buffer);
	return fuse;
}

static void stop(struct fuse_session *fuse)
{
	fuse_session_destroy(fuse);
	fsg_device_free(view.device);
	view.device = NULL;
}

/* How much is printed on stderr while the kernel answers a notification so. */
static off_t printed(struct fuse_session *fuse, int errnum)
{
	FD_AUTO before = fd_dup(STDERR_FILENO);
	FD_AUTO file = open("/tmp", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
	struct stat st;

	assert_true(before >= 0 && file >= 0);
	assert_int_equal(dup2(file, STDERR_FILENO), STDERR_FILENO);
	refusal = errnum;
	writes = 0;
	fsg_notify_name(fuse, 4096, "name");
	refusal = 0;
	assert_int_equal(dup2(before, STDERR_FILENO), STDERR_FILENO);
	assert_int_equal(writes, 1);
	assert_int_equal(fstat(file, &st), 0);
	return st.st_size;
}

static void notification_about_something_else_prints_nothing(void **state)
{
	struct fuse_session *fuse = start();

	(void)state;
	assert_int_equal(printed(fuse, 0), 0);
	assert_int_equal(printed(fuse, ENOENT), 0);
	assert_int_equal(printed(fuse, ENOTDIR), 0);
	/* The end of the connection is heard of. */
	assert_true(printed(fuse, ENODEV) > 0);
	stop(fuse);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(notification_about_something_else_prints_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
