/* Modes, times, extended attributes and permissions: the values are the host's, down to the error of each wrong call;
 * what the owner of the mount may not do, nobody may through the view. */
#include "lib/preflight.h"
#include "lib/workspace-fixture.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <cmocka.h>

/* A user of the host that is neither root nor the owner of the mount. */
#define STRANGER 54321
#define OWNER	 12345

static int open_dir(const char *path)
{
	int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	assert_true(fd >= 0);
	return fd;
}

/* --- modes of what is made --- */

static void make_all_kinds(int dir, mode_t mode)
{
	int fd = openat(dir, "file", O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode);

	assert_true(fd >= 0);
	close(fd);
	assert_int_equal(mkdirat(dir, "dir", mode), 0);
	assert_int_equal(mknodat(dir, "fifo", S_IFIFO | mode, 0), 0);
	assert_int_equal(mknodat(dir, "nod", S_IFREG | mode, 0), 0);
	assert_int_equal(symlinkat("x", dir, "link"), 0);
}

static void assert_equal_modes(int a, int b)
{
	static const char *const names[] = { "file", "dir", "fifo", "nod", "link" };

	for (size_t i = 0; i < G_N_ELEMENTS(names); i++) {
		struct stat x, y;

		assert_int_equal(fstatat(a, names[i], &x, AT_SYMLINK_NOFOLLOW), 0);
		assert_int_equal(fstatat(b, names[i], &y, AT_SYMLINK_NOFOLLOW), 0);
		assert_int_equal(x.st_mode, y.st_mode);
	}
}

static void masks_and_modes_give_what_they_give_on_the_host(void **state)
{
	static const mode_t masks[] = { 0, 022, 077, 0777, 027 };
	static const mode_t modes[] = { 0777, 0755, 0666, 0600, 01777, 0444, 0 };
	const Workspace *ws = *state;
	mode_t before = umask(0);

	for (size_t i = 0; i < G_N_ELEMENTS(masks) * G_N_ELEMENTS(modes); i++) {
		g_autofree char *name = g_strdup_printf("%zu", i);
		g_autofree char *inside = workspace_inside(ws, name);
		g_autofree char *native = g_build_filename(ws->native, name, NULL);
		g_autofree char *host = workspace_host(ws, name);
		int dirs[3];

		umask(022);
		assert_int_equal(mkdir(inside, 0755), 0);
		assert_int_equal(mkdir(native, 0755), 0);
		dirs[0] = open_dir(inside);
		dirs[1] = open_dir(native);
		dirs[2] = open_dir(host);
		umask(masks[i % G_N_ELEMENTS(masks)]);
		for (size_t k = 0; k < 2; k++)
			make_all_kinds(dirs[k], modes[i / G_N_ELEMENTS(masks)]);
		assert_equal_modes(dirs[0], dirs[1]);
		assert_equal_modes(dirs[2], dirs[1]);
		for (size_t k = 0; k < 3; k++)
			close(dirs[k]);
	}
	umask(before);
}

/* Not by any way to make a file: on the host, whoever runs it would be its owner. */
static void set_id_bits_reach_the_host_by_no_way(void **state)
{
	const Workspace *ws = *state;
	int dir = open_dir(ws->inside), host = open_dir(ws->host), fd;
	struct stat st;

	fd = openat(dir, "create", O_RDWR | O_CREAT | O_CLOEXEC, 06755);
	assert_true(fd >= 0);
	close(fd);
	assert_int_equal(mknodat(dir, "mknod", S_IFREG | 06755, 0), 0);
	fd = openat(dir, "fchmod", O_RDWR | O_CREAT | O_CLOEXEC, 0644);
	assert_int_equal(fchmod(fd, 06755), 0);
	close(fd);
	fd = openat(dir, "chmod", O_RDWR | O_CREAT | O_CLOEXEC, 0644);
	close(fd);
	assert_int_equal(fchmodat(dir, "chmod", 06755, 0), 0);
	static const char *const names[] = { "create", "mknod", "fchmod", "chmod" };
	for (size_t i = 0; i < G_N_ELEMENTS(names); i++) {
		assert_int_equal(fstatat(host, names[i], &st, 0), 0);
		assert_int_equal(st.st_mode & 07777, 0755);
	}
	/* A directory's group bit inherits a group, and stays. */
	assert_int_equal(mkdirat(dir, "dir", 0755), 0);
	assert_int_equal(fchmodat(dir, "dir", 02755, 0), 0);
	assert_int_equal(fstatat(host, "dir", &st, 0), 0);
	assert_int_equal(st.st_mode & 07777, 02755);
	close(dir);
	close(host);
}

/* --- times --- */

static void times_keep_their_nanoseconds(void **state)
{
	static const struct timespec times[] = {
		{ 0, 0 },	   { 1, 1 },	      { 1000000000, 999999999 },
		{ 2147483648, 5 }, { 4294967296, 7 }, { -1000, 123456789 },
	};
	const Workspace *ws = *state;
	g_autofree char *path = workspace_inside(ws, "f");
	g_autofree char *host = workspace_host(ws, "f");
	struct stat a, b;
	int fd = workspace_open(ws, "f", O_RDWR | O_CREAT);

	for (size_t i = 0; i < G_N_ELEMENTS(times); i++) {
		const struct timespec both[2] = { times[i], times[(i + 1) % 6] };

		assert_int_equal(i % 2 ? futimens(fd, both) : utimensat(AT_FDCWD, path, both, 0),
				 0);
		assert_int_equal(stat(path, &a), 0);
		assert_int_equal(stat(host, &b), 0);
		assert_int_equal(a.st_atim.tv_sec, both[0].tv_sec);
		assert_int_equal(a.st_atim.tv_nsec, both[0].tv_nsec);
		assert_int_equal(a.st_mtim.tv_sec, both[1].tv_sec);
		assert_int_equal(a.st_mtim.tv_nsec, both[1].tv_nsec);
		assert_memory_equal(&a.st_atim, &b.st_atim, sizeof a.st_atim);
		assert_memory_equal(&a.st_mtim, &b.st_mtim, sizeof a.st_mtim);
		assert_memory_equal(&a.st_ctim, &b.st_ctim, sizeof a.st_ctim);
	}
	/* One of them only, and neither. */
	const struct timespec one[2] = { { .tv_nsec = UTIME_OMIT }, { 77, 0 } };
	const struct timespec none[2] = { { .tv_nsec = UTIME_OMIT }, { .tv_nsec = UTIME_OMIT } };
	assert_int_equal(stat(path, &b), 0);
	assert_int_equal(futimens(fd, one), 0);
	assert_int_equal(futimens(fd, none), 0);
	assert_int_equal(stat(path, &a), 0);
	assert_int_equal(a.st_mtim.tv_sec, 77);
	assert_memory_equal(&a.st_atim, &b.st_atim, sizeof a.st_atim);
	close(fd);
}

/* --- extended attributes --- */

static void xattr_calls_answer_as_on_the_host(void **state)
{
	const Workspace *ws = *state;
	g_autofree char *inside = workspace_inside(ws, "f");
	g_autofree char *host = workspace_host(ws, "f");
	g_autofree char *native = g_build_filename(ws->native, "f", NULL);
	const char *const paths[] = { inside, native };
	g_autofree char *large = g_malloc0(70000);
	g_autofree char *many = g_strnfill(300, 'n');
	g_autofree char *long_name = g_strconcat("user.", many, NULL);
	char got[64];

	close(workspace_open(ws, "f", O_RDWR | O_CREAT));
	assert_true(g_file_set_contents(native, "", 0, NULL));
	for (size_t i = 0; i < 2; i++) {
		const char *path = paths[i];

		assert_int_equal(result_of(getxattr(path, "user.a", got, sizeof got)), ENODATA);
		assert_int_equal(result_of(removexattr(path, "user.a")), ENODATA);
		assert_int_equal(result_of(setxattr(path, "user.a", "1", 1, XATTR_REPLACE)),
				 ENODATA);
		assert_int_equal(setxattr(path, "user.a", "value", 5, XATTR_CREATE), 0);
		assert_int_equal(result_of(setxattr(path, "user.a", "1", 1, XATTR_CREATE)), EEXIST);
		assert_int_equal(setxattr(path, "user.a", "VALUE", 5, XATTR_REPLACE), 0);
		assert_int_equal(setxattr(path, "user.empty", "", 0, 0), 0);
		assert_int_equal(getxattr(path, "user.a", NULL, 0), 5);
		assert_int_equal(getxattr(path, "user.empty", NULL, 0), 0);
		assert_int_equal(result_of(getxattr(path, "user.a", got, 4)), ERANGE);
		assert_int_equal(getxattr(path, "user.a", got, 5), 5);
		assert_memory_equal(got, "VALUE", 5);
		assert_int_equal(result_of(listxattr(path, got, 3)), ERANGE);
		assert_int_equal(listxattr(path, NULL, 0), sizeof "user.a" + sizeof "user.empty");
		assert_int_equal(result_of(setxattr(path, "user.big", large, 70000, 0)), E2BIG);
		assert_int_equal(result_of(setxattr(path, long_name, "1", 1, 0)), ERANGE);
		assert_int_equal(result_of(setxattr(path, "user.a", "1", 1, 0x80)), EINVAL);
		assert_int_equal(result_of(setxattr(path, "nothing.a", "1", 1, 0)), EOPNOTSUPP);
		assert_int_equal(removexattr(path, "user.empty"), 0);
	}
	assert_int_equal(getxattr(host, "user.a", got, sizeof got), 5);
	assert_memory_equal(got, "VALUE", 5);
}

/* On the host they would mean something. */
static void attributes_with_power_are_refused(void **state)
{
	static const struct {
		const char *name;
		int set, get;
	} cases[] = {
		{ "security.capability", EPERM, ENODATA }, /* the kernel looks at its form first */
		{ "trusted.a", EPERM, ENODATA },
		{ "security.selinux", EOPNOTSUPP, EOPNOTSUPP },
		{ "security.a", EOPNOTSUPP, EOPNOTSUPP },
	};
	const Workspace *ws = *state;
	g_autofree char *inside = workspace_inside(ws, "f");
	g_autofree char *host = workspace_host(ws, "f");
	g_autofree char *before = NULL;
	g_autofree char *after = NULL;
	int fd = workspace_open(ws, "f", O_RDWR | O_CREAT);
	/* VFS_CAP_REVISION_2, effective: CAP_NET_RAW; to the others, any bytes. */
	static const uint32_t value[5] = { 0x02000001, 1 << 13, 0, 0, 0 };
	char got[64];

	before = tree_snapshot(ws->host);
	for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
		int set = result_of(setxattr(inside, cases[i].name, value, sizeof value, 0));

		assert_int_equal(set, cases[i].set);
		set = result_of(fsetxattr(fd, cases[i].name, value, sizeof value, 0));
		assert_int_equal(set, cases[i].set);
		assert_int_equal(result_of(getxattr(inside, cases[i].name, got, sizeof got)),
				 cases[i].get);
		assert_true(removexattr(inside, cases[i].name) < 0);
	}
	after = tree_snapshot(ws->host);
	assert_string_equal(before, after);
	/* Set on the host, they stay there. */
	assert_int_equal(setxattr(host, "trusted.a", "1", 1, 0), 0);
	assert_int_equal(result_of(getxattr(inside, "trusted.a", got, sizeof got)), ENODATA);
	assert_int_equal(listxattr(inside, got, sizeof got), 0);
	assert_int_equal(setxattr(inside, "user.a", "1", 1, 0), 0);
	close(fd);
}

/* --- permissions: the owner's, whoever asks --- */

typedef struct {
	ViewFixture *view;
	char *host;
	char *inside;
} Owned;

/* A workspace of OWNER's, with things of root's and a stranger's in it. */
static Owned owned_new(void)
{
	Owned o = { .view = view_fixture_new() };

	o.host = view_fixture_path(o.view, "ws");
	o.inside = g_build_filename(o.view->mountpoint, "workspace", NULL);
	assert_int_equal(chmod(o.view->dir, 0755), 0);
	view_fixture_mkdir(o.view, "ws");
	view_fixture_mkdir(o.view, "ws/sticky");
	view_fixture_mkdir(o.view, "ws/private");
	view_fixture_write(o.view, "ws/secret", "root's");
	view_fixture_write(o.view, "ws/private/f", "root's");
	view_fixture_write(o.view, "ws/sticky/root", "root's");
	view_fixture_write(o.view, "ws/sticky/stranger", "a stranger's");
	view_fixture_write(o.view, "ws/sticky/own", "own");
	return o;
}

static void owned_free(Owned *o)
{
	view_fixture_free(o->view);
	g_free(o->host);
	g_free(o->inside);
}

static void own(int dir, const char *name, uid_t id, mode_t mode)
{
	assert_int_equal(fchownat(dir, name, id, id, 0), 0);
	assert_int_equal(fchmodat(dir, name, mode, 0), 0);
}

static void what_the_owner_may_not_is_refused_to_root_too(void **state)
{
	Owned o = owned_new();
	int host = open_dir(o.host), dir;
	g_autofree char *before = NULL;
	g_autofree char *after = NULL;

	(void)state;
	own(host, ".", OWNER, 0755);
	own(host, "secret", 0, 0600);
	own(host, "private", 0, 0700);
	own(host, "sticky", 0, 01777);
	own(host, "sticky/stranger", STRANGER, 0666);
	own(host, "sticky/own", OWNER, 0644);
	before = tree_snapshot(o.host);
	view_fixture_mount(o.view, (const char *const[]){ "--workspace", o.host, NULL });
	dir = open_dir(o.inside);
	assert_int_equal(result_of(openat(dir, "secret", O_RDONLY)), EACCES);
	assert_int_equal(result_of(openat(dir, "secret", O_WRONLY | O_TRUNC)), EACCES);
	assert_int_equal(result_of(faccessat(dir, "secret", R_OK, 0)), EACCES);
	assert_int_equal(result_of(openat(dir, "private", O_RDONLY | O_DIRECTORY)), EACCES);
	assert_int_equal(result_of(openat(dir, "private/f", O_RDONLY)), EACCES);
	assert_int_equal(result_of(fchmodat(dir, "secret", 0644, 0)), EPERM);
	assert_int_equal(result_of(unlinkat(dir, "sticky/root", 0)), EPERM);
	assert_int_equal(result_of(unlinkat(dir, "sticky/stranger", 0)), EPERM);
	assert_int_equal(result_of(renameat(dir, "sticky/stranger", dir, "sticky/s")), EPERM);
	assert_int_equal(result_of(renameat(dir, "sticky/own", dir, "sticky/stranger")), EPERM);
	after = tree_snapshot(o.host);
	assert_string_equal(before, after);
	/* What is the owner's own goes. */
	assert_int_equal(renameat(dir, "sticky/own", dir, "sticky/o"), 0);
	assert_int_equal(unlinkat(dir, "sticky/o", 0), 0);
	close(dir);
	close(host);
	owned_free(&o);
}

static void a_right_that_the_host_takes_away_is_gone_at_once(void **state)
{
	Owned o = owned_new();
	int host = open_dir(o.host), dir, fd;

	(void)state;
	own(host, ".", OWNER, 0755);
	own(host, "secret", OWNER, 0644);
	view_fixture_mount(o.view, (const char *const[]){ "--workspace", o.host, NULL });
	dir = open_dir(o.inside);
	fd = openat(dir, "secret", O_RDWR | O_CLOEXEC);
	assert_true(fd >= 0);
	close(fd);
	own(host, "secret", 0, 0600);
	/* The name is in the kernel's cache; opening is asked of the host all the same. */
	assert_int_equal(result_of(openat(dir, "secret", O_RDWR)), EACCES);
	own(host, "secret", OWNER, 0);
	assert_int_equal(result_of(openat(dir, "secret", O_RDONLY)), EACCES);
	own(host, "secret", OWNER, 0600);
	fd = openat(dir, "secret", O_RDWR | O_CLOEXEC);
	assert_true(fd >= 0);
	close(fd);
	close(dir);
	close(host);
	owned_free(&o);
}

static int as_stranger(const char *path)
{
	pid_t pid = fork_helper();

	if (pid == 0) {
		if (setgid(STRANGER) != 0 || setuid(STRANGER) != 0)
			_exit(126);
		_exit(result_of(open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC)));
	}
	return WEXITSTATUS(wait_for_child(pid, 10000));
}

static void others_enter_only_when_asked_to(void **state)
{
	Owned o = owned_new();

	(void)state;
	view_fixture_mount(o.view, (const char *const[]){ "--workspace", o.host, NULL });
	assert_int_equal(as_stranger(o.view->mountpoint), EACCES);
	assert_int_equal(as_stranger(o.inside), EACCES);
	assert_int_equal(as_stranger(o.host), 0);
	view_fixture_unmount(o.view);
	view_fixture_mount(o.view,
			   (const char *const[]){ "--allow-other", "--workspace", o.host, NULL });
	assert_int_equal(as_stranger(o.inside), 0);
	owned_free(&o);
}

/* Either all of it or an error that programs know how to live with. */
static void unnamed_files_work_or_are_said_not_to(void **state)
{
	const Workspace *ws = *state;
	g_autofree char *name = workspace_inside(ws, "named");
	int fd = open(ws->inside, O_TMPFILE | O_RDWR | O_CLOEXEC, 0640);
	char path[32];
	struct stat st;

	if (fd < 0) {
		assert_int_equal(errno, EOPNOTSUPP);
		assert_int_equal(mknod(name, S_IFREG | 0640, 0), 0); /* the twin */
		return;
	}
	assert_int_equal(write(fd, "text", 4), 4);
	assert_int_equal(fstat(fd, &st), 0);
	assert_int_equal(st.st_nlink, 0);
	assert_int_equal(st.st_mode & 07777, 0640);
	snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
	assert_int_equal(linkat(AT_FDCWD, path, AT_FDCWD, name, AT_SYMLINK_FOLLOW), 0);
	workspace_assert_host(ws, "named", "text", 4);
	close(fd);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, workspace_set_up, workspace_tear_down)
	const struct CMUnitTest tests[] = {
		TEST(masks_and_modes_give_what_they_give_on_the_host),
		TEST(set_id_bits_reach_the_host_by_no_way),
		TEST(times_keep_their_nanoseconds),
		TEST(xattr_calls_answer_as_on_the_host),
		TEST(attributes_with_power_are_refused),
		cmocka_unit_test(what_the_owner_may_not_is_refused_to_root_too),
		cmocka_unit_test(a_right_that_the_host_takes_away_is_gone_at_once),
		cmocka_unit_test(others_enter_only_when_asked_to),
		TEST(unnamed_files_work_or_are_said_not_to),
	};
	int r = preflight_require((const char *const[]){ "root", "fuse", NULL });

	return r ? r : cmocka_run_group_tests(tests, NULL, NULL);
}
