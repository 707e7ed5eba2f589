/* Every modifying operation on a read-only mount is refused, by every way to the mount, and the host's tree is
 * bit for bit as before; the same table on a writable mount works, so that a gate that refuses
 * everything fails too. */
#include "fsgate/gate.h"
#include "lib/preflight.h"
#include "lib/view-fixture.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <cmocka.h>

/* What an operation works on: a directory with file "f" (with user.x), directory "d", link "l"; and
 * a writable directory outside of it. */
typedef struct {
	int dir;
	int other; /* a writable directory of the same host file system, in another mount */
	int file;  /* dir/f, opened for reading before */
	int opath; /* dir/f, O_PATH */
} Target;

/* Of a call that gives -1 and errno. */
static int result_of(long result)
{
	return result < 0 ? errno : 0;
}

static int open_and_close(int dirfd, const char *name, int flags)
{
	int fd = openat(dirfd, name, flags | O_CLOEXEC, 0644);

	if (fd < 0)
		return errno;
	close(fd);
	return 0;
}

static int op_open_wronly(const Target *t)
{
	return open_and_close(t->dir, "f", O_WRONLY);
}
static int op_open_rdwr(const Target *t)
{
	return open_and_close(t->dir, "f", O_RDWR);
}
static int op_open_append(const Target *t)
{
	return open_and_close(t->dir, "f", O_WRONLY | O_APPEND);
}
static int op_open_rdonly_trunc(const Target *t)
{
	return open_and_close(t->dir, "f", O_RDONLY | O_TRUNC);
}
static int op_open_wronly_trunc(const Target *t)
{
	return open_and_close(t->dir, "f", O_WRONLY | O_TRUNC);
}
static int op_open_creat_rdwr(const Target *t)
{
	return open_and_close(t->dir, "f", O_RDWR | O_CREAT | O_TRUNC);
}
static int op_create(const Target *t)
{
	return open_and_close(t->dir, "new", O_WRONLY | O_CREAT | O_EXCL);
}
static int op_create_rdonly(const Target *t)
{
	return open_and_close(t->dir, "new-r", O_RDONLY | O_CREAT);
}
static int op_tmpfile(const Target *t)
{
	return open_and_close(t->dir, ".", O_TMPFILE | O_RDWR);
}

/* An attribute that a file's user may set (chattr +d), through an fd that can only read. */
static int op_set_flags(const Target *t)
{
	int flags = 0;

	if (ioctl(t->file, FS_IOC_GETFLAGS, &flags) != 0)
		return errno;
	flags ^= FS_NODUMP_FL;
	return ioctl(t->file, FS_IOC_SETFLAGS, &flags) == 0 ? 0 : errno;
}

/* The O_PATH fd through /proc: the kernel opens the same inode again. */
static int op_reopen_opath(const Target *t)
{
	char path[32];

	snprintf(path, sizeof path, "/proc/self/fd/%d", t->opath);
	return open_and_close(AT_FDCWD, path, O_RDWR);
}

static int op_reopen_fd_trunc(const Target *t)
{
	char path[32];

	snprintf(path, sizeof path, "/proc/self/fd/%d", t->file);
	return open_and_close(AT_FDCWD, path, O_RDONLY | O_TRUNC);
}

static int op_mkdir(const Target *t)
{
	return result_of(mkdirat(t->dir, "nd", 0755));
}
static int op_mkfifo(const Target *t)
{
	return result_of(mkfifoat(t->dir, "fifo", 0644));
}
static int op_mknod_file(const Target *t)
{
	return result_of(mknodat(t->dir, "nf", S_IFREG | 0644, 0));
}
static int op_symlink(const Target *t)
{
	return result_of(symlinkat("f", t->dir, "nl"));
}
static int op_link_within(const Target *t)
{
	return result_of(linkat(t->dir, "f", t->dir, "f2", 0));
}

static int op_bind_socket(const Target *t)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0), r;

	snprintf(address.sun_path, sizeof address.sun_path, "/proc/self/fd/%d/sock", t->dir);
	r = result_of(bind(fd, (struct sockaddr *)&address, sizeof address));
	close(fd);
	return r;
}

static int op_chmod(const Target *t)
{
	return result_of(fchmodat(t->dir, "f", 0600, 0));
}
static int op_chmod_dir(const Target *t)
{
	return result_of(fchmodat(t->dir, "d", 0700, 0));
}
static int op_fchmod(const Target *t)
{
	return result_of(fchmod(t->file, 0640));
}
static int op_fchmod_root(const Target *t)
{
	return result_of(fchmod(t->dir, 0750));
}
static int op_chown(const Target *t)
{
	return result_of(fchownat(t->dir, "f", getuid(), getgid(), 0));
}
static int op_lchown(const Target *t)
{
	return result_of(fchownat(t->dir, "l", getuid(), getgid(), AT_SYMLINK_NOFOLLOW));
}
static int op_fchown(const Target *t)
{
	return result_of(fchown(t->file, getuid(), getgid()));
}

static int op_truncate(const Target *t)
{
	char path[48];

	snprintf(path, sizeof path, "/proc/self/fd/%d/f", t->dir);
	return result_of(truncate(path, 1));
}

static int op_truncate_opath(const Target *t)
{
	char path[32];

	snprintf(path, sizeof path, "/proc/self/fd/%d", t->opath);
	return result_of(truncate(path, 2));
}

static int op_utimens(const Target *t)
{
	const struct timespec times[2] = { { 1, 2 }, { 3, 4 } };

	return result_of(utimensat(t->dir, "f", times, 0));
}

static int op_utimens_now(const Target *t)
{
	return result_of(utimensat(t->dir, "d", NULL, 0));
}
static int op_utimens_link(const Target *t)
{
	return result_of(utimensat(t->dir, "l", NULL, AT_SYMLINK_NOFOLLOW));
}
static int op_futimens(const Target *t)
{
	return result_of(futimens(t->file, NULL));
}
static int op_fsetxattr(const Target *t)
{
	return result_of(fsetxattr(t->file, "user.y", "1", 1, 0));
}
static int op_fsetxattr_dir(const Target *t)
{
	return result_of(fsetxattr(t->dir, "user.y", "1", 1, 0));
}
static int op_fremovexattr(const Target *t)
{
	return result_of(fremovexattr(t->file, "user.x"));
}
static int op_access_w(const Target *t)
{
	return result_of(faccessat(t->dir, "f", W_OK, 0));
}
static int op_access_dir_w(const Target *t)
{
	return result_of(faccessat(t->dir, ".", W_OK, 0));
}
static int op_rename_out(const Target *t)
{
	return result_of(renameat(t->dir, "f", t->other, "f"));
}
static int op_rename_in(const Target *t)
{
	return result_of(renameat(t->other, "o", t->dir, "o"));
}
static int op_rename_exchange(const Target *t)
{
	return result_of(renameat2(t->dir, "f", t->dir, "d", RENAME_EXCHANGE));
}
static int op_rename_exchange_back(const Target *t)
{
	return result_of(renameat2(t->dir, "f", t->dir, "d", RENAME_EXCHANGE));
}
static int op_link_in(const Target *t)
{
	return result_of(linkat(t->other, "o", t->dir, "o2", 0));
}
static int op_unlink_link(const Target *t)
{
	return result_of(unlinkat(t->dir, "l", 0));
}
static int op_rmdir(const Target *t)
{
	return result_of(unlinkat(t->dir, "d", AT_REMOVEDIR));
}
static int op_rename_within(const Target *t)
{
	return result_of(renameat(t->dir, "f", t->dir, "g"));
}
static int op_unlink(const Target *t)
{
	return result_of(unlinkat(t->dir, "g", 0));
}

/* In this order they also work one after the other on a writable mount. `writable` is what they give there;
 * a table row of a name that is gone on the read-only side (never removed there) names its own. */
static const struct {
	FsgOp op; /* the request by which the gateway is asked */
	const char *name;
	int (*run)(const Target *t);
	int read_only;
	int writable;
} operations[] = {
	{ FSG_OP_OPEN, "open O_WRONLY", op_open_wronly, EROFS, 0 },
	{ FSG_OP_OPEN, "open O_RDWR", op_open_rdwr, EROFS, 0 },
	{ FSG_OP_OPEN, "open O_APPEND", op_open_append, EROFS, 0 },
	{ FSG_OP_OPEN, "reopen O_PATH O_RDWR", op_reopen_opath, EROFS, 0 },
	{ FSG_OP_CREATE, "create", op_create, EROFS, 0 },
	{ FSG_OP_CREATE, "create O_RDONLY", op_create_rdonly, EROFS, 0 },
	{ FSG_OP_MKDIR, "mkdir", op_mkdir, EROFS, 0 },
	{ FSG_OP_MKNOD, "mkfifo", op_mkfifo, EROFS, 0 },
	{ FSG_OP_MKNOD, "mknod file", op_mknod_file, EROFS, 0 },
	{ FSG_OP_MKNOD, "bind", op_bind_socket, EROFS, 0 },
	{ FSG_OP_SYMLINK, "symlink", op_symlink, EROFS, 0 },
	{ FSG_OP_LINK, "link within", op_link_within, EROFS, 0 },
	{ FSG_OP_LINK, "link in", op_link_in, EROFS, EXDEV },
	{ FSG_OP_SETATTR, "chmod", op_chmod, EROFS, 0 },
	{ FSG_OP_SETATTR, "chmod directory", op_chmod_dir, EROFS, 0 },
	{ FSG_OP_SETATTR, "fchmod", op_fchmod, EROFS, 0 },
	{ FSG_OP_SETATTR, "fchmod of the root", op_fchmod_root, EROFS, 0 },
	{ FSG_OP_SETATTR, "chown", op_chown, EROFS, 0 },
	{ FSG_OP_SETATTR, "lchown", op_lchown, EROFS, 0 },
	{ FSG_OP_SETATTR, "fchown", op_fchown, EROFS, 0 },
	{ FSG_OP_SETATTR, "utimens", op_utimens, EROFS, 0 },
	{ FSG_OP_SETATTR, "utimens now", op_utimens_now, EROFS, 0 },
	{ FSG_OP_SETATTR, "utimens of a link", op_utimens_link, EROFS, 0 },
	{ FSG_OP_SETATTR, "futimens", op_futimens, EROFS, 0 },
	{ FSG_OP_SETXATTR, "fsetxattr", op_fsetxattr, EROFS, 0 },
	{ FSG_OP_SETXATTR, "fsetxattr directory", op_fsetxattr_dir, EROFS, 0 },
	{ FSG_OP_REMOVEXATTR, "fremovexattr", op_fremovexattr, EROFS, 0 },
	{ FSG_OP_SETFLAGS, "chattr", op_set_flags, EROFS, 0 },
	{ FSG_OP_ACCESS, "access W_OK", op_access_w, EROFS, 0 },
	{ FSG_OP_ACCESS, "access directory W_OK", op_access_dir_w, EROFS, 0 },
	{ FSG_OP_SETATTR, "truncate", op_truncate, EROFS, 0 },
	{ FSG_OP_SETATTR, "truncate O_PATH", op_truncate_opath, EROFS, 0 },
	{ FSG_OP_OPEN, "open O_RDONLY|O_TRUNC", op_open_rdonly_trunc, EROFS, 0 },
	{ FSG_OP_OPEN, "open O_WRONLY|O_TRUNC", op_open_wronly_trunc, EROFS, 0 },
	{ FSG_OP_OPEN, "open O_CREAT|O_TRUNC", op_open_creat_rdwr, EROFS, 0 },
	{ FSG_OP_OPEN, "reopen fd O_TRUNC", op_reopen_fd_trunc, EROFS, 0 },
	{ FSG_OP_RENAME, "rename out", op_rename_out, EROFS, EXDEV },
	{ FSG_OP_RENAME, "rename in", op_rename_in, EROFS, EXDEV },
	{ FSG_OP_RENAME, "rename exchange", op_rename_exchange, EROFS, 0 },
	{ FSG_OP_RENAME, "rename exchange back", op_rename_exchange_back, EROFS, 0 },
	{ FSG_OP_UNLINK, "unlink of a link", op_unlink_link, EROFS, 0 },
	{ FSG_OP_RMDIR, "rmdir", op_rmdir, EROFS, 0 },
	{ FSG_OP_RENAME, "rename within", op_rename_within, EROFS, 0 },
	{ FSG_OP_UNLINK, "unlink", op_unlink, ENOENT,
	  0 }, /* "g": the kernel knows that there is none */
};

#define CHANGES_READ(id)
#define CHANGES_FLAGS(id)	 FSG_OP_##id,
#define CHANGES_WRITE(id)	 FSG_OP_##id,
#define CHANGES(id, text, needs) CHANGES_##needs(id)

static void every_changing_operation_of_the_gate_has_a_row(void **state)
{
	static const FsgOp changing[] = { FSG_OPS(CHANGES) };
	/* They need an fd that was opened for writing, which there is none of: it-view-raw.c asks for them. */
	static const FsgOp need_a_writer[] = { FSG_OP_WRITE, FSG_OP_FALLOCATE,
					       FSG_OP_COPY_FILE_RANGE };
	int missing = 0;

	(void)state;
	for (size_t i = 0; i < G_N_ELEMENTS(changing); i++) {
		bool found = false;

		for (size_t k = 0; k < G_N_ELEMENTS(operations); k++)
			found |= operations[k].op == changing[i];
		for (size_t k = 0; k < G_N_ELEMENTS(need_a_writer); k++)
			found |= need_a_writer[k] == changing[i];
		if (!found)
			print_message("no row asks for %s\n", fsg_op_name(changing[i]));
		missing += !found;
	}
	assert_int_equal(missing, 0);
}

static void fill(const ViewFixture *fixture, const char *name)
{
	g_autofree char *dir = view_fixture_path(fixture, name);
	g_autofree char *file = g_build_filename(dir, "f", NULL);
	g_autofree char *sub = g_build_filename(dir, "d", NULL);
	g_autofree char *link = g_build_filename(dir, "l", NULL);

	assert_int_equal(g_mkdir_with_parents(sub, 0755), 0);
	assert_true(g_file_set_contents(file, "content of f", -1, NULL));
	assert_int_equal(symlink("f", link), 0);
	assert_int_equal(setxattr(file, "user.x", "1", 1, 0), 0);
}

static Target open_target(const ViewFixture *fixture, const char *dir, const char *other)
{
	g_autofree char *dir_path = g_build_filename(fixture->mountpoint, dir, NULL);
	g_autofree char *other_path = g_build_filename(fixture->mountpoint, other, NULL);
	Target target = {
		.dir = open(dir_path, O_RDONLY | O_DIRECTORY | O_CLOEXEC),
		.other = open(other_path, O_RDONLY | O_DIRECTORY | O_CLOEXEC),
	};

	assert_true(target.dir >= 0 && target.other >= 0);
	target.file = openat(target.dir, "f", O_RDONLY | O_CLOEXEC);
	target.opath = openat(target.dir, "f", O_PATH | O_CLOEXEC);
	assert_true(target.file >= 0 && target.opath >= 0);
	return target;
}

static void close_target(Target *target)
{
	close(target->dir);
	close(target->other);
	close(target->file);
	close(target->opath);
}

static int run_all(const Target *target, bool read_only, const char *route)
{
	int wrong = 0;

	for (size_t i = 0; i < G_N_ELEMENTS(operations); i++) {
		int expected = read_only ? operations[i].read_only : operations[i].writable;
		int got = operations[i].run(target);

		if (got == expected)
			continue;
		print_message("%s: %s: got %s, expected %s\n", route, operations[i].name,
			      got ? strerrorname_np(got) : "success",
			      expected ? strerrorname_np(expected) : "success");
		wrong++;
	}
	return wrong;
}

/* Calls that fail on any file system because of the fd; here they must fail so and change nothing. */
static void check_read_only_fd(const Target *target)
{
	char byte = 'x';
	off_t offset = 0;
	void *map;

	assert_int_equal(pwrite(target->file, &byte, 1, 0), -1);
	assert_int_equal(errno, EBADF);
	assert_int_equal(ftruncate(target->file, 0), -1);
	assert_true(errno == EINVAL || errno == EBADF);
	assert_int_equal(fallocate(target->file, FALLOC_FL_KEEP_SIZE | FALLOC_FL_PUNCH_HOLE, 0, 4),
			 -1);
	assert_int_equal(errno, EBADF);
	assert_int_equal(copy_file_range(target->file, &offset, target->file, &offset, 1, 0), -1);
	map = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, target->file, 0);
	assert_ptr_equal(map, MAP_FAILED);
	assert_int_equal(errno, EACCES);
	map = mmap(NULL, 4096, PROT_READ, MAP_SHARED, target->file, 0);
	assert_ptr_not_equal(map, MAP_FAILED);
	assert_memory_equal(map, "content of f", 12);
	assert_int_equal(mprotect(map, 4096, PROT_READ | PROT_WRITE), -1);
	assert_int_equal(errno, EACCES);
	munmap(map, 4096);
}

static void check_reading_works(const Target *target)
{
	char text[16];

	assert_int_equal(pread(target->file, text, sizeof text, 0), 12);
	assert_int_equal(faccessat(target->dir, "f", R_OK, 0), 0);
	/* As on Linux: O_CREAT of an existing file for reading is no change. */
	assert_int_equal(open_and_close(target->dir, "f", O_RDONLY | O_CREAT), 0);
	assert_int_equal(open_and_close(target->dir, "f", O_RDONLY | O_CREAT | O_EXCL), EEXIST);
	assert_int_equal(fgetxattr(target->file, "user.x", text, sizeof text), 1);
	assert_int_equal(fgetxattr(target->file, "user.absent", text, sizeof text), -1);
	assert_int_equal(errno, ENODATA);
	assert_true(op_tmpfile(target) == EROFS || op_tmpfile(target) == EOPNOTSUPP);
}

/* The host side in full, times of access included: reading must leave no trace either. */
static char *full_snapshot(const char *path)
{
	struct stat st;
	g_autofree char *tree = tree_snapshot(path);
	g_autofree char *file = g_build_filename(path, "f", NULL);

	assert_int_equal(stat(file, &st), 0);
	return g_strdup_printf("%satime %lld.%09ld\n", tree, (long long)st.st_atim.tv_sec,
			       st.st_atim.tv_nsec);
}

static void every_operation_is_refused_by_every_route(void **state)
{
	static const struct {
		const char *name, *dir;
	} routes[] = {
		{ "directly", "ro" },
		{ "through a link", "rw/to-ro" },
		{ "through the writable mount that contains it", "outer/inside" },
		{ "through a read-only mount of a writable directory", "outer-ro/w" },
	};
	ViewFixture *fixture = view_fixture_new();
	g_autofree char *outer = view_fixture_path(fixture, "outer");
	g_autofree char *rw = view_fixture_path(fixture, "rw");
	g_autofree char *inside = view_fixture_path(fixture, "outer/inside");
	g_autofree char *link = view_fixture_path(fixture, "rw/to-ro");
	g_autofree char *ro_mount = g_strconcat(inside, ":/ro", NULL);
	g_autofree char *rw_mount = g_strconcat(rw, ":/rw", NULL);
	g_autofree char *outer_mount = g_strconcat(outer, ":/outer", NULL);
	g_autofree char *outer_ro_mount = g_strconcat(outer, ":/outer-ro", NULL);
	g_autofree char *ws = view_fixture_path(fixture, "ws");
	int wrong = 0;

	(void)state;
	view_fixture_mkdir(fixture, "ws");
	view_fixture_mkdir(fixture, "rw");
	view_fixture_write(fixture, "rw/o", "other");
	fill(fixture, "outer/inside");
	fill(fixture, "outer/w");
	assert_int_equal(symlink("../ro", link), 0);
	view_fixture_mount(fixture, (const char *const[]){ "--workspace", ws, "--ro", ro_mount,
							   "--rw", rw_mount, "--rw", outer_mount,
							   "--ro", outer_ro_mount, NULL });
	for (size_t i = 0; i < G_N_ELEMENTS(routes); i++) {
		const char *host = i == 3 ? "outer/w" : "outer/inside";
		g_autofree char *host_path = view_fixture_path(fixture, host);
		g_autofree char *before = full_snapshot(host_path);
		g_autofree char *after = NULL;
		Target target = open_target(fixture, routes[i].dir, "rw");

		wrong += run_all(&target, true, routes[i].name);
		check_reading_works(&target);
		check_read_only_fd(&target);
		close_target(&target);
		after = full_snapshot(host_path);
		assert_string_equal(before, after);
	}
	assert_int_equal(wrong, 0);
	view_fixture_free(fixture);
}

static void every_operation_works_on_a_writable_mount(void **state)
{
	ViewFixture *fixture = view_fixture_new();
	g_autofree char *ws = view_fixture_path(fixture, "ws");
	g_autofree char *rw = view_fixture_path(fixture, "rw");
	g_autofree char *rw_mount = g_strconcat(rw, ":/rw", NULL);
	Target target;

	(void)state;
	fill(fixture, "ws");
	view_fixture_mkdir(fixture, "rw");
	view_fixture_write(fixture, "rw/o", "other");
	view_fixture_mount(fixture,
			   (const char *const[]){ "--workspace", ws, "--rw", rw_mount, NULL });
	target = open_target(fixture, "workspace", "rw");
	assert_int_equal(run_all(&target, false, "writable"), 0);
	close_target(&target);
	view_fixture_free(fixture);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_changing_operation_of_the_gate_has_a_row),
		cmocka_unit_test(every_operation_is_refused_by_every_route),
		cmocka_unit_test(every_operation_works_on_a_writable_mount),
	};
	int r = preflight_require((const char *const[]){ "root", "fuse", NULL });

	return r ? r : cmocka_run_group_tests(tests, NULL, NULL);
}
