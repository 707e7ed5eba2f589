/* path-resolver: what each form answers, and each kind of problem beside what is allowed. What happens while the
 * directories change is test-path-race's. The suite runs this with openat2 made to fail, too. */
#include "path-resolver-fixture.h"

#include "lib/preflight.h"

#include "common/syscall-wrap.h"

#include <sys/wait.h>
#include <sys/xattr.h>

/* --- the string form --- */

static void resolves_to(const char *path, bool for_write, const char *view_path,
			const char *host_name)
{
	PathResolved resolved;
	PathProblem problem = { .reason = -1 };

	if (path_resolver_resolve(resolver, path, for_write, &resolved, &problem) < 0)
		fail_msg("%s", problem.message);
	assert_string_equal(resolved.view_path, view_path);
	assert_string_equal(resolved.host_path, host(host_name));
	assert_ptr_equal(resolved.mount,
			 view_plan_find_by_view_path(path_resolver_plan(resolver), view_path));
	path_resolved_clear(&resolved);
}

static void is_refused(const char *path, bool for_write, PathProblemKind kind, int errnum)
{
	PathResolved resolved;
	PathProblem problem = { .reason = -1 };
	int r = path_resolver_resolve(resolver, path, for_write, &resolved, &problem);

	if (r != -errnum || problem.kind != kind)
		fail_msg("%.80s: %d, kind %d: %s", path, r, (int)problem.kind,
			 problem.message ? problem.message : "allowed");
	assert_int_equal(problem.errnum, errnum);
	/* One line, and nothing of the host's that was not asked about. */
	assert_null(strpbrk(problem.message, "\n\r\t"));
	assert_true(strstr(path, root) || !strstr(problem.message, root));
	path_problem_clear(&problem);
}

static void spellings_of_one_path_give_one_answer(void **state)
{
	static const char *const spellings[] = {
		"/workspace/dir",
		"/workspace/dir/",
		"//workspace//dir",
		"/workspace/./dir/.",
		"/user/../workspace/dir",
		"dir",
		"./dir",
		"../workspace/dir",
		"dir/absent/..",
	};

	(void)state;
	for (size_t i = 0; i < G_N_ELEMENTS(spellings); i++)
		resolves_to(spellings[i], true, "/workspace/dir", "ws/dir");
	resolves_to(host("ws/dir"), true, "/workspace/dir", "ws/dir");
	resolves_to("/workspace", true, "/workspace", "ws");
	resolves_to(".", true, "/workspace", "ws");
	resolves_to("/note", false, "/note", "note");
}

static void names_are_compared_by_component_and_nothing_is_decoded(void **state)
{
	(void)state;
	is_refused("/workspace-evil/x", false, PATH_PROBLEM_OUTSIDE_MOUNTS, ENOENT);
	is_refused("/workspaceX", false, PATH_PROBLEM_OUTSIDE_MOUNTS, ENOENT);
	is_refused(host("ws-evil"), false, PATH_PROBLEM_OUTSIDE_MOUNTS, ENOENT);
	is_refused("/opt/stella2/x", false, PATH_PROBLEM_OUTSIDE_MOUNTS, ENOENT);
	resolves_to("/opt/stella/rwX", false, "/opt/stella/rwX", "ro/rwX");
	resolves_to("/opt/stella/rw/x", true, "/opt/stella/rw/x", "ro/rw/x");
	resolves_to("/workspace/%2e%2e", true, "/workspace/%2e%2e", "ws/%2e%2e");
	resolves_to("/workspace/..\\x", true, "/workspace/..\\x", "ws/..\\x");
	is_refused("/etc/passwd", false, PATH_PROBLEM_OUTSIDE_MOUNTS, ENOENT);
	is_refused("/workspace/../etc/passwd", false, PATH_PROBLEM_OUTSIDE_MOUNTS, ENOENT);
	is_refused("/..", false, PATH_PROBLEM_OUTSIDE_MOUNTS, ENOENT);
	is_refused("/opt", false, PATH_PROBLEM_OUTSIDE_MOUNTS, ENOENT);
}

static void what_is_no_path_is_invalid(void **state)
{
	g_autofree char *name = g_strnfill(256, 'n');
	g_autofree char *long_path = g_strnfill(4096, '/');
	g_autofree char *named = g_strconcat("/workspace/", name, NULL);

	(void)state;
	is_refused("", false, PATH_PROBLEM_INVALID, ENOENT);
	is_refused(long_path, false, PATH_PROBLEM_INVALID, ENAMETOOLONG);
	is_refused(named, true, PATH_PROBLEM_INVALID, ENAMETOOLONG);
	name[255] = '\0';
	named[strlen("/workspace/") + 255] = '\0';
	g_free(g_steal_pointer(&long_path));
	long_path = g_strconcat("ws/", name, NULL);
	resolves_to(named, true, named, long_path);
	g_free(g_steal_pointer(&long_path));
	long_path = g_strnfill(4095, '/');
	memcpy(long_path + 4084, "/workspace", 10);
	resolves_to(long_path, true, "/workspace", "ws");
}

/* A view path that fits, of a host path that does not. */
static void no_host_path_is_cut(void **state)
{
	g_autoptr(GString) path = g_string_new("/user");

	(void)state;
	while (path->len < 4090)
		g_string_append(path, "/x");
	is_refused(path->str, true, PATH_PROBLEM_INVALID, ENAMETOOLONG);
}

static void what_is_absent_resolves_if_the_rest_does(void **state)
{
	(void)state;
	resolves_to("/workspace/a/b/c", true, "/workspace/a/b/c", "ws/a/b/c");
	resolves_to("new/", true, "/workspace/new", "ws/new");
	is_refused("/workspace/file/x", true, PATH_PROBLEM_IO, ENOTDIR);
	is_refused("/workspace/file/", false, PATH_PROBLEM_IO, ENOTDIR);
	is_refused("/note/x", false, PATH_PROBLEM_IO, ENOTDIR);
}

static void no_link_may_be_on_the_way_wherever_it_leads(void **state)
{
	static const char *const paths[] = {
		"out/f", "out",	   "in/f",	  "in",	   "dangling", "loop",
		"out/",	 "dir/up", "out/new.txt", "magic", "dir/up/f",
	};

	(void)state;
	put_link("/etc", "ws/out");
	put_link("dir", "ws/in");
	put_link("nowhere", "ws/dangling");
	put_link("loop", "ws/loop");
	put_link("..", "ws/dir/up");
	put_link("/proc/self/root", "ws/magic");
	for (size_t i = 0; i < G_N_ELEMENTS(paths); i++) {
		is_refused(paths[i], false, PATH_PROBLEM_SYMLINK, ELOOP);
		is_refused(paths[i], true, PATH_PROBLEM_SYMLINK, ELOOP);
	}
	resolves_to("dir/f", true, "/workspace/dir/f", "ws/dir/f");
}

static void a_link_is_named_with_its_target_and_a_hint(void **state)
{
	static const char *const hint = "(a host path; in the view this is \"/user/notes\")";
	PathResolved resolved;
	PathProblem problem = { .reason = -1 };

	(void)state;
	put_link("/etc", "ws/out");
	put_link(host("user/notes"), "ws/by-host");
	assert_int_equal(path_resolver_resolve(resolver, "out/passwd", false, &resolved, &problem),
			 -ELOOP);
	assert_non_null(strstr(problem.message, "\"/workspace/out\" is a link to \"/etc\""));
	assert_null(strstr(problem.message, "host path"));
	assert_string_equal(problem.path, "/workspace/out");
	assert_string_equal(problem.mount, "/workspace");
	path_problem_clear(&problem);
	assert_int_equal(path_resolver_resolve(resolver, "by-host", false, &resolved, &problem),
			 -ELOOP);
	assert_non_null(strstr(problem.message, hint));
	path_problem_clear(&problem);
}

static void writing_is_judged_by_the_deepest_host_mount(void **state)
{
	static const char *const read_only[] = {
		"/opt/stella/x",
		"/opt/stella/new",
		"/inner/f",
		"/inner",
		"/workspace/inner/f",
		"/workspace/inner",
		"/workspace/inner/new/er",
		"/note",
	};

	(void)state;
	for (size_t i = 0; i < G_N_ELEMENTS(read_only); i++)
		is_refused(read_only[i], true, PATH_PROBLEM_READ_ONLY, EROFS);
	resolves_to("/opt/stella/x", false, "/opt/stella/x", "ro/x");
	resolves_to("/workspace/inner/f", false, "/workspace/inner/f", "ws/inner/f");
	resolves_to("/workspace/innerX", true, "/workspace/innerX", "ws/innerX");
	resolves_to("/opt/stella/rw/w", true, "/opt/stella/rw/w", "ro/rw/w");
}

static void a_read_only_mount_is_named(void **state)
{
	PathResolved resolved;
	PathProblem problem = { .reason = -1 };

	(void)state;
	assert_int_equal(
		path_resolver_resolve(resolver, "/opt/stella/x", true, &resolved, &problem),
		-EROFS);
	assert_string_equal(problem.message,
			    "\"/opt/stella/x\": read-only mount /opt/stella; writable: "
			    "/workspace /opt/stella/rw /user");
	assert_string_equal(problem.mount, "/opt/stella");
	assert_int_equal(problem.reason, DENIAL_READ_ONLY_MOUNT);
	path_problem_clear(&problem);
}

/* A directory that only leads to a mount covers what the host has by that name: a link, here, to outside. */
static void what_only_leads_to_a_mount_is_no_host_path(void **state)
{
	StellaPolicy *policy = policy_of_root();

	(void)state;
	put_link(host("secret"), "ws/link");
	policy_add_mount(policy, host("user/notes"), "/workspace/link/notes",
			 STELLA_MOUNT_READ_ONLY);
	policy_add_mount(policy, host("note"), "/workspace/way/note", STELLA_MOUNT_READ_ONLY);
	path_resolver_unref(resolver);
	resolver = resolver_of(policy, VIEW_FOR_HOST, NULL);
	is_refused("link/f", false, PATH_PROBLEM_OUTSIDE_MOUNTS, ENOENT);
	is_refused("link", false, PATH_PROBLEM_OUTSIDE_MOUNTS, ENOENT);
	is_refused("way/new", false, PATH_PROBLEM_OUTSIDE_MOUNTS, ENOENT);
	is_refused("link/new", true, PATH_PROBLEM_READ_ONLY, EROFS);
	resolves_to("link/notes", false, "/workspace/link/notes", "user/notes");
	resolves_to("way/note", false, "/workspace/way/note", "note");
	resolves_to("wayside", true, "/workspace/wayside", "ws/wayside");
}

static void our_own_directories_do_not_resolve(void **state)
{
	PathResolver *other;

	(void)state;
	assert_int_equal(g_mkdir_with_parents(host("ws/state/session"), 0700), 0);
	other = resolver_of(policy_of_root(), VIEW_FOR_HOST, host("ws/state"));
	resolves_to("/workspace/state/session", true, "/workspace/state/session",
		    "ws/state/session");
	path_resolver_unref(resolver);
	resolver = other;
	is_refused("/workspace/state/session", false, PATH_PROBLEM_REFUSED, EACCES);
	is_refused("/workspace/state", false, PATH_PROBLEM_REFUSED, EACCES);
	is_refused("/workspace/state/session", true, PATH_PROBLEM_READ_ONLY, EROFS);
	resolves_to("/workspace/statue", true, "/workspace/statue", "ws/statue");
}

/* --- the open form --- */

static int open_at(const char *path, int flags)
{
	PathProblem problem = { .reason = -1 };
	int fd = path_resolver_open(resolver, path, flags, 0640, &problem);

	if (fd < 0) {
		assert_int_equal(problem.errnum, -fd);
		assert_non_null(problem.message);
		/* A link's text is the agent's own. */
		assert_true(problem.kind == PATH_PROBLEM_SYMLINK || !strstr(problem.message, root));
	} else {
		assert_null(problem.message);
		assert_true(fcntl(fd, F_GETFD) & FD_CLOEXEC);
	}
	path_problem_clear(&problem);
	return fd;
}

static void reads(const char *path, const char *text)
{
	FD_AUTO fd = open_at(path, O_RDONLY);
	char got[64] = "";

	if (fd < 0)
		fail_msg("%s: %d", path, fd);
	assert_true(io_read_all(fd, got, sizeof got - 1) >= 0);
	assert_string_equal(got, text);
}

static void cannot_open(const char *path, int flags, int errnum)
{
	FD_AUTO fd = open_at(path, flags);

	if (fd != -errnum)
		fail_msg("%s: %d instead of %d", path, fd, -errnum);
}

static void links_are_followed_in_the_view(void **state)
{
	(void)state;
	put_link("dir/f", "ws/in");
	put_link("/user/notes", "ws/absolute");
	put_link("../user/notes", "ws/relative");
	put_link("in", "ws/chain");
	put_link("/workspace/dir", "user/back");
	put_link("/secret", "ws/secret");
	assert_int_equal(g_mkdir_with_parents(host("ws/user"), 0755), 0);
	put_file("ws/user/notes", "another"); /* what "../user" of the host's names is not */
	reads("in", "f");
	reads("chain", "f");
	reads("/workspace/absolute", "notes");
	reads("relative", "notes");
	reads("/user/back/f", "f");
	reads("/user/back/../file", "file");
	cannot_open("secret", O_RDONLY, EACCES);
	cannot_open("in", O_RDONLY | O_NOFOLLOW, ELOOP);
	cannot_open("in/", O_RDONLY, ENOTDIR);
}

static void a_link_that_leaves_is_refused(void **state)
{
	static const char *const links[][2] = {
		{ "ws/etc", "/etc" },
		{ "ws/up", "../../../../../../etc" },
		{ "ws/magic", "/proc/self/root" },
		{ "ws/fd", "/proc/self/fd/0" },
		{ "ws/relative", "../secret" },
		{ "ws/second", "etc" },
	};

	(void)state;
	put_link(host("secret"), "ws/host");
	cannot_open("host/f", O_RDONLY, EACCES);
	for (size_t i = 0; i < G_N_ELEMENTS(links); i++) {
		g_autofree char *below = g_strconcat(links[i][0] + 3, "/f", NULL);

		put_link(links[i][1], links[i][0]);
		cannot_open(links[i][0] + 3, O_RDONLY, EACCES);
		cannot_open(below, O_RDONLY, EACCES);
		cannot_open(below, O_WRONLY | O_CREAT, EACCES);
	}
	assert_false(exists("secret/new"));
	reads("file", "file");
}

static void a_dangling_link_makes_its_target_in_the_view_or_nothing(void **state)
{
	g_autofree char *evil = g_strconcat(host("secret"), "/evil", NULL);

	(void)state;
	put_link(evil, "ws/evil");
	put_link("dir/new", "ws/good");
	put_link("absent/new", "ws/gone");
	cannot_open("evil", O_WRONLY | O_CREAT, EACCES);
	assert_false(exists("secret/evil"));
	cannot_open("good", O_WRONLY | O_CREAT | O_EXCL, EEXIST);
	assert_false(exists("ws/dir/new"));
	cannot_open("gone", O_WRONLY | O_CREAT, ENOENT);
	assert_false(exists("ws/absent/new"));
	FD_AUTO fd = open_at("good", O_WRONLY | O_CREAT);
	assert_true(fd >= 0);
	assert_true(exists("ws/dir/new"));
}

static void loops_and_long_chains_end(void **state)
{
	(void)state;
	put_link("loop", "ws/loop");
	put_link("file", "ws/c0");
	for (int i = 1; i <= 40; i++) {
		g_autofree char *text = g_strdup_printf("c%d", i - 1);
		g_autofree char *name = g_strdup_printf("ws/c%d", i);

		put_link(text, name);
	}
	cannot_open("loop", O_RDONLY, ELOOP);
	cannot_open("c40", O_RDONLY, ELOOP); /* 41 of them */
	reads("c39", "file");
}

static void dots_are_walked_as_the_kernel_does(void **state)
{
	(void)state;
	put_link("dir/sub", "ws/to-sub");
	reads("to-sub/../f", "f");
	reads("dir/sub/../../file", "file");
	reads("/../../workspace/./file", "file");
	reads("/inner/../workspace/file", "file");
	cannot_open("absent/../file", O_RDONLY, ENOENT);
	cannot_open("file/../file", O_RDONLY, ENOTDIR);
	cannot_open("file/.", O_RDONLY, ENOTDIR);
}

/* Older than its last change, so that any file system that keeps times of access would set it. */
static void set_old_access(const char *name)
{
	const struct timespec times[] = { { .tv_sec = 1000 }, { .tv_nsec = UTIME_OMIT } };

	assert_int_equal(utimensat(AT_FDCWD, host(name), times, 0), 0);
}

static bool has_old_access(const char *name)
{
	struct stat st;

	assert_int_equal(stat(host(name), &st), 0);
	return st.st_atim.tv_sec == 1000;
}

static void read_all(const char *path)
{
	FD_AUTO fd = path_resolver_open(resolver, path, O_RDONLY, 0, NULL);
	char byte[2];

	assert_true(fd >= 0);
	assert_int_equal(read(fd, byte, 1), 1);
}

static void reading_a_read_only_mount_leaves_no_time_of_access(void **state)
{
	(void)state;
	put_file("ro/read", "x");
	put_file("ws/read", "x");
	set_old_access("ro/read");
	set_old_access("ws/read");
	read_all("/opt/stella/read");
	assert_true(has_old_access("ro/read"));
	/* the twin, as the host's own mount options have it */
	put_file("ws/plain", "x");
	set_old_access("ws/plain");
	g_free(text_of("ws/plain"));
	read_all("/workspace/read");
	assert_int_equal(has_old_access("ws/read"), has_old_access("ws/plain"));
}

static void a_read_only_mount_is_not_changed_by_any_way_to_it(void **state)
{
	static const char *const paths[] = {
		"/opt/stella/x", "/inner/f", "/workspace/inner/f",
		"/note",	 "via-link", "/user/inner/f",
	};
	static const int flags[] = { O_WRONLY, O_RDWR, O_RDONLY | O_TRUNC, O_WRONLY | O_APPEND,
				     O_WRONLY | O_CREAT };
	g_autofree char *text = NULL;

	(void)state;
	put_link("inner/f", "ws/via-link");
	put_link("/workspace/inner", "user/inner");
	for (size_t i = 0; i < G_N_ELEMENTS(paths); i++)
		for (size_t k = 0; k < G_N_ELEMENTS(flags); k++)
			cannot_open(paths[i], flags[k], EROFS);
	cannot_open("/opt/stella/new", O_WRONLY | O_CREAT, EROFS);
	cannot_open("/workspace/inner/new", O_WRONLY | O_CREAT, EROFS);
	cannot_open("/new", O_WRONLY | O_CREAT, EROFS);
	cannot_open("/opt/stella/new", O_RDONLY, ENOENT);
	assert_false(exists("ro/new") || exists("ws/inner/new"));
	text = text_of("ws/inner/f");
	assert_string_equal(text, "inner");
	/* With O_CREAT what is there may be read, as on Linux. */
	FD_AUTO fd = open_at("/opt/stella/x", O_RDONLY | O_CREAT);
	assert_true(fd >= 0);
	FD_AUTO writable = open_at("/opt/stella/rw/w", O_RDWR | O_TRUNC);
	assert_true(writable >= 0);
}

static void what_is_made_has_the_mode_that_was_asked_for(void **state)
{
	mode_t old = umask(077);
	PathProblem problem = { .reason = -1 };
	FD_AUTO fd =
		path_resolver_open(resolver, "new", O_RDWR | O_CREAT | O_EXCL, 06775, &problem);
	struct stat st;

	(void)state;
	umask(old);
	assert_true(fd >= 0);
	assert_int_equal(fstat(fd, &st), 0);
	assert_int_equal(st.st_mode & 07777, 0775);
	assert_int_equal(io_write_all(fd, "text", 4), 0);
	reads("new", "text");
	cannot_open("new", O_RDWR | O_CREAT | O_EXCL, EEXIST);
	cannot_open("new2/", O_RDWR | O_CREAT, EISDIR);
	cannot_open("new/", O_RDWR | O_CREAT, EISDIR);
	cannot_open("dir/", O_RDONLY | O_CREAT | O_EXCL, EISDIR);
	cannot_open("absent/new/", O_RDWR | O_CREAT, ENOENT);
	cannot_open("new/", O_RDWR, ENOTDIR);
	assert_false(exists("ws/new2"));
}

static void only_files_and_directories_are_opened(void **state)
{
	(void)state;
	assert_int_equal(mkfifo(host("ws/fifo"), 0666), 0);
	cannot_open("fifo", O_RDONLY, ENXIO);
	cannot_open("fifo", O_WRONLY, ENXIO);
	cannot_open("fifo", O_RDWR | O_CREAT, ENXIO);
	if (geteuid() == 0) {
		assert_int_equal(mknod(host("ws/null"), S_IFCHR | 0666, makedev(1, 3)), 0);
		cannot_open("null", O_RDONLY, ENXIO);
		cannot_open("null", O_WRONLY | O_TRUNC, ENXIO);
	}
	FD_AUTO fd = open_at("fifo", O_PATH);
	assert_true(fd >= 0);
	FD_AUTO dir = open_at("dir", O_RDONLY | O_DIRECTORY);
	assert_true(dir >= 0);
	cannot_open("dir", O_WRONLY, EISDIR);
	cannot_open("dir", O_RDONLY | O_CREAT, EISDIR);
	cannot_open("file", O_RDONLY | O_DIRECTORY, ENOTDIR);
	cannot_open("/", O_RDONLY, EOPNOTSUPP);
}

static void flags_are_refused(int flags, int named, const char *why)
{
	g_autofree char *expected =
		g_strdup_printf("\"file\": flags %#o: %s", (unsigned int)named, why);
	PathProblem problem = { .reason = -1 };

	assert_int_equal(path_resolver_open(resolver, "file", flags, 0640, &problem), -EINVAL);
	assert_int_equal(problem.kind, PATH_PROBLEM_INVALID);
	assert_string_equal(problem.message, expected);
	path_problem_clear(&problem);
}

static void unknown_flags_are_refused(void **state)
{
	(void)state;
	cannot_open("dir", O_TMPFILE | O_RDWR, EINVAL);
	cannot_open("file", O_ACCMODE, EINVAL);
	cannot_open("file", O_DIRECT, EINVAL);
	cannot_open("file", O_NOATIME, EINVAL);
	cannot_open("x", O_CREAT | O_DIRECTORY, EINVAL);
	flags_are_refused(O_DIRECT | O_NOATIME, O_DIRECT | O_NOATIME, "not known here");
	flags_are_refused(O_TMPFILE | O_RDWR, O_TMPFILE & ~O_DIRECTORY, "not known here");
	flags_are_refused(O_ACCMODE | O_APPEND, O_ACCMODE, "no access mode");
	flags_are_refused(O_CREAT | O_DIRECTORY | O_EXCL, O_CREAT | O_DIRECTORY,
			  "O_CREAT and O_DIRECTORY exclude each other");
	FD_AUTO fd = open_at("file", O_RDWR | O_APPEND | O_SYNC | O_NONBLOCK);
	assert_true(fd >= 0);
	assert_int_equal(fcntl(fd, F_GETFL) & (O_ACCMODE | O_APPEND | O_SYNC | O_NONBLOCK),
			 O_RDWR | O_APPEND | O_SYNC | O_NONBLOCK);
	FD_AUTO plain = open_at("file", O_RDONLY);
	assert_false(fcntl(plain, F_GETFL) & O_NONBLOCK);
}

static void a_policy_that_denies_links_follows_none(void **state)
{
	StellaPolicy *policy = policy_of_root();

	(void)state;
	put_link("dir", "ws/in");
	reads("in/f", "f");
	policy->symlinks = POLICY_SYMLINKS_DENY;
	path_resolver_unref(resolver);
	resolver = resolver_of(policy, VIEW_FOR_HOST, NULL);
	cannot_open("in/f", O_RDONLY, ELOOP);
	cannot_open("in", O_RDONLY, ELOOP);
	reads("dir/f", "f");
}

static void permissions_are_the_owners(void **state)
{
	(void)state;
	assert_int_equal(chmod(host("ws/dir/f"), 0), 0);
	cannot_open("dir/f", O_RDONLY, EACCES);
	assert_int_equal(chmod(host("ws/dir"), 0), 0);
	cannot_open("dir/f", O_RDONLY, EACCES);
	if (geteuid() == 0) { /* whom the directory belongs to, and who has no say over root's */
		FD_AUTO fd = -1;
		struct stat st;

		path_resolver_unref(resolver);
		assert_int_equal(chown(host("ws"), 12345, 12346), 0);
		resolver = resolver_of(policy_of_root(), VIEW_FOR_HOST, NULL);
		fd = open_at("made", O_WRONLY | O_CREAT);
		assert_int_equal(fstat(fd, &st), 0);
		assert_int_equal(st.st_uid, 12345);
		assert_int_equal(st.st_gid, 12346);
		cannot_open("file", O_WRONLY, EACCES);
		assert_int_equal(geteuid(), 0);
	}
	assert_int_equal(chmod(host("ws/dir"), 0755), 0);
	assert_int_equal(chmod(host("ws/dir/f"), 0644), 0);
	reads("dir/f", "f");
}

/* What the kernel has of this thread. */
typedef struct {
	int uid, gid, n_groups;
	gid_t groups[64];
	uint64_t effective, permitted, inheritable;
} Identity;

static Identity identity(void)
{
	Identity now = { .uid = sys_setfsuid((uid_t)-1), .gid = sys_setfsgid((gid_t)-1) };

	now.n_groups = getgroups(G_N_ELEMENTS(now.groups), now.groups);
	assert_int_equal(sys_capget(&now.effective, &now.permitted, &now.inheritable), 0);
	return now;
}

static void acting_lends_nothing_of_roots_and_is_put_back(void **state)
{
	const uint64_t overriding = 1ull << CAP_DAC_OVERRIDE | 1ull << CAP_DAC_READ_SEARCH |
				    1ull << CAP_FOWNER | 1ull << CAP_CHOWN | 1ull << CAP_FSETID;
	const gid_t groups[] = { 4, 24, 12346 };
	Identity before, now;
	PathActing acting;
	PathPlace place;

	(void)state;
	if (geteuid() != 0) {
		place = (PathPlace){ .fd = -1, .parent_fd = -1 };
		assert_int_equal(path_resolver_act_begin(&place, &acting), 0);
		assert_false(acting.switched);
		path_resolver_act_end(&acting);
		return;
	}
	assert_int_equal(chown(host("user"), 12345, 12346), 0);
	path_resolver_unref(resolver);
	resolver = resolver_of(policy_of_root(), VIEW_FOR_HOST, NULL);
	assert_int_equal(sys_setgroups(G_N_ELEMENTS(groups), groups), 0);
	before = identity();
	assert_true((before.effective & overriding) == overriding);
	for (int i = 0; i < 2; i++) { /* another owner, and root */
		PathProblem problem = { .reason = -1 };

		assert_int_equal(path_resolver_walk(resolver, i == 0 ? "/user" : "/workspace", 0,
						    &place, &problem),
				 0);
		assert_int_equal(path_resolver_act_begin(&place, &acting), 0);
		now = identity();
		path_resolver_act_end(&acting);
		path_place_clear(&place);
		assert_int_equal(now.uid, i == 0 ? 12345 : 0);
		assert_int_equal(now.gid, i == 0 ? 12346 : 0);
		assert_int_equal(now.n_groups, 0);
		assert_true((now.effective & overriding) == 0);
		now = identity();
		assert_memory_equal(&now, &before, sizeof now);
	}
	reads("/user/../workspace/dir/f", "f");
	cannot_open("/user/absent", O_RDONLY, ENOENT);
	now = identity();
	assert_memory_equal(&now, &before, sizeof now);
	assert_int_equal(sys_setgroups(0, NULL), 0);
}

/* A default ACL is the agent's: rwx r-x ---. */
/* The child has other files behind the numbers that the parent had then. */
static int open_in_child(void)
{
	int pair[2], others[16], status;
	pid_t child;

	assert_int_equal(pipe2(pair, O_CLOEXEC), 0);
	child = fork();
	if (child == 0) {
		char byte, text[8] = "";
		int fd;

		if (read(pair[0], &byte, 1) != 1)
			_exit(2);
		fd = path_resolver_open(resolver, "dir/f", O_RDONLY, 0, NULL);
		_exit(fd >= 0 && read(fd, text, sizeof text) == 1 && text[0] == 'f' ? 0 : 1);
	}
	for (size_t i = 0; i < G_N_ELEMENTS(others); i++)
		assert_true((others[i] = open(host("secret/f"), O_RDONLY | O_CLOEXEC)) >= 0);
	assert_int_equal(write(pair[1], "g", 1), 1);
	assert_int_equal(waitpid(child, &status, 0), child);
	for (size_t i = 0; i < G_N_ELEMENTS(others); i++)
		fd_close(&others[i]);
	fd_close(&pair[0]);
	fd_close(&pair[1]);
	return status;
}

static void a_forked_process_opens_files_of_the_view(void **state)
{
	(void)state;
	assert_int_equal(open_in_child(), 0);
}

static void a_default_acl_takes_the_place_of_no_umask(void **state)
{
	static const unsigned char acl[] = {
		2,    0, 0, 0,			       /* version */
		1,    0, 7, 0, 0xff, 0xff, 0xff, 0xff, /* the owner */
		4,    0, 5, 0, 0xff, 0xff, 0xff, 0xff, /* the group */
		0x20, 0, 0, 0, 0xff, 0xff, 0xff, 0xff, /* others */
	};
	struct stat st;

	(void)state;
	if (setxattr(host("ws/dir"), "system.posix_acl_default", acl, sizeof acl, 0) != 0) {
		assert_int_equal(errno, EOPNOTSUPP);
		PREFLIGHT_SKIP("POSIX ACLs");
	}
	FD_AUTO fd = path_resolver_open(resolver, "dir/new", O_WRONLY | O_CREAT, 0666, NULL);
	assert_int_equal(fstat(fd, &st), 0);
	assert_int_equal(st.st_mode & 07777, 0640);
}

/* --- the walk --- */

static PathPlace walk_to(const char *path, unsigned int flags)
{
	PathProblem problem = { .reason = -1 };
	PathPlace place;

	if (path_resolver_walk(resolver, path, flags, &place, &problem) < 0)
		fail_msg("%s", problem.message);
	return place;
}

static void a_place_says_what_may_be_done_there(void **state)
{
	static const struct {
		const char *path, *view_path, *name, *mount;
		mode_t type;
		bool has_fd, has_parent, is_synthetic, is_mount_root, writable, pinned;
		int reason;
	} rows[] = {
		{ "dir/f", "/workspace/dir/f", "f", "/workspace", S_IFREG, true, true, false, false,
		  true, false, -1 },
		{ "dir/sub/..", "/workspace/dir", "dir", "/workspace", S_IFDIR, true, true, false,
		  false, true, false, -1 },
		{ "new", "/workspace/new", "new", "/workspace", 0, false, true, false, false, true,
		  false, -1 },
		{ "new/", "/workspace/new", "new", "/workspace", 0, false, true, false, false, true,
		  false, -1 },
		{ "/workspace", "/workspace", "workspace", "/workspace", S_IFDIR, true, false,
		  false, true, true, true, -1 },
		{ "/", "/", "", NULL, S_IFDIR, false, false, true, false, false, true,
		  DENIAL_VIEW_DIRECTORY },
		{ "/opt", "/opt", "opt", NULL, S_IFDIR, false, false, true, false, false, true,
		  DENIAL_VIEW_DIRECTORY },
		{ "/new", "/new", "new", NULL, 0, false, false, true, false, false, false,
		  DENIAL_VIEW_DIRECTORY },
		{ "/opt/stella/x", "/opt/stella/x", "x", "/opt/stella", S_IFREG, true, true, false,
		  false, false, false, DENIAL_READ_ONLY_MOUNT },
		{ "inner", "/workspace/inner", "inner", "/inner", S_IFDIR, true, false, false, true,
		  false, true, DENIAL_READ_ONLY_MOUNT },
		{ "inner/f", "/workspace/inner/f", "f", "/inner", S_IFREG, true, true, false, false,
		  false, false, DENIAL_READ_ONLY_MOUNT },
		{ "inner/deep/../../file", "/workspace/file", "file", "/workspace", S_IFREG, true,
		  true, false, false, true, false, -1 },
		{ "/note", "/note", "note", "/note", S_IFREG, true, false, false, true, false, true,
		  DENIAL_READ_ONLY_MOUNT },
	};

	(void)state;
	for (size_t i = 0; i < G_N_ELEMENTS(rows); i++) {
		PathPlace place = walk_to(rows[i].path, 0);

		print_message("%s\n", rows[i].path);
		assert_string_equal(place.view_path, rows[i].view_path);
		assert_string_equal(place.name, rows[i].name);
		if (rows[i].mount)
			assert_string_equal(place.mount, rows[i].mount);
		else
			assert_null(place.mount);
		assert_int_equal(place.type, rows[i].type);
		assert_int_equal(place.fd >= 0, rows[i].has_fd);
		assert_int_equal(place.parent_fd >= 0, rows[i].has_parent);
		assert_int_equal(place.is_synthetic, rows[i].is_synthetic);
		assert_int_equal(place.is_mount_root, rows[i].is_mount_root);
		assert_int_equal(place.writable, rows[i].writable);
		assert_int_equal(place.pinned, rows[i].pinned);
		if (!place.writable)
			assert_int_equal(place.read_only_reason, rows[i].reason);
		path_place_clear(&place);
	}
}

static void what_leads_to_a_mount_is_pinned(void **state)
{
	PathPlace place = walk_to("/opt/stella/rw", 0);
	StellaPolicy *policy = policy_of_root();

	(void)state;
	assert_true(place.pinned && place.is_mount_root && place.writable);
	path_place_clear(&place);
	policy_add_mount(policy, host("ws/dir/sub"), "/sub", STELLA_MOUNT_READ_WRITE);
	place = walk_to("dir", 0);
	assert_false(place.pinned);
	path_place_clear(&place);
	path_resolver_unref(resolver);
	resolver = resolver_of(policy, VIEW_FOR_HOST, NULL);
	place = walk_to("dir", 0);
	assert_true(place.pinned && !place.is_mount_root);
	path_place_clear(&place);
}

static void a_link_at_the_end_is_itself_when_asked_for(void **state)
{
	PathPlace place;

	(void)state;
	put_link("/etc", "ws/out");
	place = walk_to("out", PATH_WALK_NOFOLLOW);
	assert_int_equal(place.type, S_IFLNK);
	assert_true(place.writable && !place.pinned);
	assert_string_equal(place.view_path, "/workspace/out");
	path_place_clear(&place);
	assert_int_equal(path_resolver_walk(resolver, "out", 0, &place, NULL), -EACCES);
	assert_int_equal(path_resolver_walk(resolver, "out/x", PATH_WALK_NOFOLLOW, &place, NULL),
			 -EACCES);
}

static void places_of_one_mount_have_one_anchor(void **state)
{
	PathPlace a = walk_to("dir/f", 0), b = walk_to("file", 0), c = walk_to("/user/notes", 0),
		  d = walk_to("inner/f", 0);

	(void)state;
	assert_ptr_equal(a.anchor, b.anchor);
	assert_ptr_not_equal(a.anchor, c.anchor);
	assert_ptr_not_equal(a.anchor, d.anchor);
	path_place_clear(&a);
	path_place_clear(&b);
	path_place_clear(&c);
	path_place_clear(&d);
}

/* --- other views --- */

static void a_bare_resolver_has_the_workspace_at_its_own_path(void **state)
{
	StellaPolicy *policy = policy_new_defaults();

	(void)state;
	policy_set_path(&policy->workspace_root, host("ws"));
	policy_set_path(&policy->working_dir, host("ws/dir"));
	policy->runtime = POLICY_RUNTIME_HOST;
	path_resolver_unref(resolver);
	resolver = resolver_of(policy, VIEW_FOR_TOOLS, NULL);
	resolves_to("f", true, host("ws/dir/f"), "ws/dir/f");
	resolves_to(host("ws/file"), true, host("ws/file"), "ws/file");
	reads("../file", "file");
	cannot_open("/workspace/file", O_RDONLY, ENOENT);
	cannot_open("/usr/bin/env", O_RDONLY, ENOENT);
}

static void a_runtime_is_read_and_its_made_up_files_too(void **state)
{
	StellaPolicy *policy = policy_of_root();
	PathResolved resolved;

	(void)state;
	policy->runtime = POLICY_RUNTIME_HOST;
	path_resolver_unref(resolver);
	resolver = resolver_of(policy, VIEW_FOR_HOST, NULL);
	FD_AUTO fd = open_at("/etc/passwd", O_RDONLY);
	char text[4096] = "";
	assert_true(fd >= 0);
	assert_true(io_read_all(fd, text, sizeof text - 1) > 0);
	assert_non_null(strstr(text, "agent"));
	assert_true(write(fd, "x", 1) < 0);
	cannot_open("/etc/passwd", O_RDWR, EROFS);
	cannot_open("/etc/shadow", O_RDONLY, ENOENT);
	assert_int_equal(path_resolver_resolve(resolver, "/etc/passwd", false, &resolved, NULL),
			 -ENOENT);
	FD_AUTO env = open_at("/bin/env", O_RDONLY);
	assert_true(env >= 0);
}

static void a_mount_that_is_replaced_is_not_followed(void **state)
{
	(void)state;
	assert_int_equal(rename(host("user"), host("user-moved")), 0);
	put_link("secret", "user");
	reads("/user/notes", "notes");
	cannot_open("/user/f", O_RDONLY, ENOENT);
}

static void a_replaced_mount_is_noticed_at_the_start(void **state)
{
	g_autoptr(StellaPolicy) policy = policy_of_root();
	g_autofree char *message = NULL;
	PathResolver *made = NULL;
	ViewPlan *plan = NULL;

	(void)state;
	assert_int_equal(view_plan_new(policy, VIEW_FOR_HOST, &plan, &message), 0);
	assert_int_equal(rename(host("user"), host("user-moved")), 0);
	assert_int_equal(g_mkdir(host("user"), 0755), 0);
	assert_int_equal(path_resolver_new(plan, NULL, NULL, &made, &message), -ESTALE);
	assert_non_null(strstr(message, "/user"));
	assert_null(made);
}

static void no_fd_is_left(void **state)
{
	int before = count_fds();

	(void)state;
	put_link("dir", "ws/in");
	put_link("/etc", "ws/out");
	for (int i = 0; i < 50; i++) {
		PathPlace place = walk_to("in/sub/../../inner/deep", 0);

		path_place_clear(&place);
		reads("in/f", "f");
		cannot_open("out", O_RDONLY, EACCES);
		cannot_open("in/sub/x/y", O_RDONLY, ENOENT);
		cannot_open("file", O_RDONLY | O_DIRECTORY, ENOTDIR);
		resolves_to("dir", true, "/workspace/dir", "ws/dir");
	}
	assert_int_equal(count_fds(), before);
	path_resolver_unref(resolver);
	resolver = resolver_of(policy_of_root(), VIEW_FOR_HOST, NULL);
	assert_int_equal(count_fds(), before);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(spellings_of_one_path_give_one_answer),
		TEST(names_are_compared_by_component_and_nothing_is_decoded),
		TEST(what_is_no_path_is_invalid),
		TEST(no_host_path_is_cut),
		TEST(what_is_absent_resolves_if_the_rest_does),
		TEST(no_link_may_be_on_the_way_wherever_it_leads),
		TEST(a_link_is_named_with_its_target_and_a_hint),
		TEST(writing_is_judged_by_the_deepest_host_mount),
		TEST(a_read_only_mount_is_named),
		TEST(what_only_leads_to_a_mount_is_no_host_path),
		TEST(our_own_directories_do_not_resolve),
		TEST(links_are_followed_in_the_view),
		TEST(a_link_that_leaves_is_refused),
		TEST(a_dangling_link_makes_its_target_in_the_view_or_nothing),
		TEST(loops_and_long_chains_end),
		TEST(dots_are_walked_as_the_kernel_does),
		TEST(a_read_only_mount_is_not_changed_by_any_way_to_it),
		TEST(reading_a_read_only_mount_leaves_no_time_of_access),
		TEST(what_is_made_has_the_mode_that_was_asked_for),
		TEST(only_files_and_directories_are_opened),
		TEST(unknown_flags_are_refused),
		TEST(a_policy_that_denies_links_follows_none),
		TEST(permissions_are_the_owners),
		TEST(acting_lends_nothing_of_roots_and_is_put_back),
		TEST(a_forked_process_opens_files_of_the_view),
		TEST(a_default_acl_takes_the_place_of_no_umask),
		TEST(a_place_says_what_may_be_done_there),
		TEST(what_leads_to_a_mount_is_pinned),
		TEST(a_link_at_the_end_is_itself_when_asked_for),
		TEST(places_of_one_mount_have_one_anchor),
		TEST(a_bare_resolver_has_the_workspace_at_its_own_path),
		TEST(a_runtime_is_read_and_its_made_up_files_too),
		TEST(a_mount_that_is_replaced_is_not_followed),
		TEST(a_replaced_mount_is_noticed_at_the_start),
		TEST(no_fd_is_left),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
