/* Fuzz target: bytes make a small tree of directories, files, links and FIFOs, and paths that are looked at in it. Lines:
 *
 *   dNAME            a directory         fNAME   a file        xNAME   a FIFO
 *   lNAME<TAB>TEXT   a link
 *   pPATH            by every form       wPATH   opened to be written, and made
 *
 * NAME is below root/ ("workspace/a", "user/b"). What cannot be made is not. Whatever is opened is inside; the walk finds what the kernel
 * finds when root is its root directory, and that alone; where the strict form says yes, no link was on the way and the walk comes
 * to the same place; what is read-only or outside stays as it was; and no fd is left. */
#include "path-world.h"

#include "common/limits.h"
#include "common/resolve.h"
#include "common/syscall-wrap.h"

#include <errno.h>
#include <sys/stat.h>
#include <unistd.h>

#define LINES_MOST 64

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void empty(const char *name)
{
	g_autofree char *path = world_path(name);
	g_autoptr(GDir) dir = g_dir_open(path, 0, NULL);
	const char *entry;

	g_assert_nonnull(dir);
	while ((entry = g_dir_read_name(dir))) {
		g_autofree char *child = g_build_filename(path, entry, NULL);

		if (strcmp(entry, "inner") != 0)
			g_assert_cmpint(io_remove_tree(AT_FDCWD, child), ==, 0);
	}
}

/* In a directory that is reached without links, or not at all: nothing is made elsewhere. */
static void make(char kind, const char *line)
{
	FD_AUTO root = open(world.root, O_PATH | O_DIRECTORY | O_CLOEXEC);
	g_auto(GStrv) words = g_strsplit(line, "\t", 2);
	g_autofree char *rooted = g_strconcat("/", words[0] ? words[0] : "", NULL);
	g_autofree char *clean = path_clean(rooted);
	g_autofree char *dir = g_path_get_dirname(clean);
	g_autofree char *name = g_path_get_basename(clean);
	bool in_mount = path_is_below(clean, "/workspace") || path_is_below(clean, "/user");

	if (!in_mount || path_is_below(clean, "/workspace/inner") || path_check_name(name) < 0)
		return;
	FD_AUTO dirfd = resolve_dir_below(root, dir + 1, false);
	if (dirfd < 0)
		return;
	if (kind == 'd')
		(void)!mkdirat(dirfd, name, 0755);
	else if (kind == 'x')
		(void)!mkfifoat(dirfd, name, 0644);
	else if (kind == 'l' && words[0] && words[1])
		(void)!symlinkat(words[1], dirfd, name);
	else if (kind == 'f') {
		FD_AUTO made = openat(dirfd, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);

		if (made >= 0)
			g_assert_cmpint(io_write_all(made, "f", 1), ==, 0);
	}
}

/* Which errors of the walk say what the kernel says, where both have the same names and links. */
static bool is_same_error(int walked, int by_kernel)
{
	if (walked == -EACCES) /* a link that leaves the view: for the kernel there is no outside */
		return by_kernel == -ENOENT;
	return walked == by_kernel;
}

static int open_by_kernel(const char *path, unsigned int flags)
{
	FD_AUTO root = open(world.root, O_PATH | O_DIRECTORY | O_CLOEXEC);
	int fd;

	do /* a rename elsewhere makes it unsure */
		fd = sys_openat2(root, path,
				 O_PATH | O_CLOEXEC | (flags & PATH_WALK_NOFOLLOW ? O_NOFOLLOW : 0),
				 0, RESOLVE_IN_ROOT);
	while (fd == -EAGAIN);
	return fd;
}

static void check_as_kernel(const char *path, unsigned int flags)
{
	g_autofree char *rooted =
		g_build_filename("/", path[0] == '/' ? "" : "workspace", path, NULL);
	PathProblem problem = { .reason = -1 };
	PathPlace place;
	struct stat st, st_by_kernel;
	int r = path_resolver_walk(world.resolver, path, flags, &place, &problem);
	FD_AUTO by_kernel = open_by_kernel(rooted, flags);

	if (r < 0) {
		if (problem.kind != PATH_PROBLEM_INVALID && !is_same_error(r, by_kernel))
			g_error("%s: %d, by the kernel %d", rooted, r, by_kernel);
		path_problem_clear(&problem);
		return;
	}
	if (place.type == 0) {
		g_assert_cmpint(by_kernel, ==, -ENOENT);
	} else {
		g_assert_cmpint(by_kernel, >=, 0);
		g_assert_cmpint(fstat(by_kernel, &st_by_kernel), ==, 0);
		g_assert_cmpuint(place.type, ==, st_by_kernel.st_mode & S_IFMT);
		if (place.fd >= 0) {
			g_assert_cmpint(fstat(place.fd, &st), ==, 0);
			g_assert_cmpuint(st.st_ino, ==, st_by_kernel.st_ino);
		}
	}
	path_place_clear(&place);
}

static void check_open(const char *path, int flags)
{
	PathProblem problem = { .reason = -1 };
	FD_AUTO fd = path_resolver_open(world.resolver, path, flags, 0644, &problem);

	if (fd >= 0)
		world_check_inside(fd);
	else
		world_check_problem(fd, &problem);
}

static bool has_dots(const char *path)
{
	const char *name;
	size_t length;

	while ((name = path_next(&path, &length)))
		if (length <= 2 && memcmp(name, "..", length) == 0)
			return true;
	return false;
}

/* "." and ".." apart, which only the strict form cleans away, and host paths, which only it takes. */
static void check_same(const char *path, const PathResolved *resolved)
{
	PathProblem problem = { .reason = -1 };
	g_autofree char *from = NULL;
	PathPlace place;
	int r;

	if (has_dots(path) || path_is_below(path, world.root))
		return;
	r = path_resolver_walk(world.resolver, path, 0, &place, &problem);
	if (r < 0) { /* the strict form needs no directory for what is absent */
		g_assert_cmpint(r, ==, -ENOENT);
		path_problem_clear(&problem);
		return;
	}
	g_assert_cmpstr(place.view_path, ==, resolved->view_path);
	if (place.fd >= 0) {
		from = world_place_of(place.fd);
		g_assert_cmpstr(from, ==, resolved->host_path);
	}
	path_place_clear(&place);
}

static void check_strict(const char *path, bool for_write)
{
	PathProblem problem = { .reason = -1 };
	PathResolved resolved;
	char *real;
	int r = path_resolver_resolve(world.resolver, path, for_write, &resolved, &problem);

	if (r < 0) {
		world_check_problem(r, &problem);
		return;
	}
	g_assert_true(path_is_below(resolved.host_path, resolved.mount->host_path));
	g_assert_true(path_is_below(resolved.view_path, resolved.mount->view_path));
	g_assert_cmpuint(strlen(resolved.host_path), <, LIMIT_PATH_BYTES);
	real = realpath(resolved.host_path, NULL);
	if (real)
		g_assert_cmpstr(real, ==, resolved.host_path);
	free(real);
	check_same(path, &resolved);
	path_resolved_clear(&resolved);
}

static void take_line(char *line)
{
	switch (line[0]) {
	case '\0':
		break;
	case 'p':
		check_strict(line + 1, false);
		check_strict(line + 1, true);
		check_as_kernel(line + 1, 0);
		check_as_kernel(line + 1, PATH_WALK_NOFOLLOW);
		check_open(line + 1, O_RDONLY);
		check_open(line + 1, O_RDONLY | O_NOFOLLOW | O_DIRECTORY);
		break;
	case 'w':
		check_open(line + 1, O_RDWR | O_TRUNC);
		check_open(line + 1, O_WRONLY | O_CREAT);
		check_open(line + 1, O_WRONLY | O_CREAT | O_EXCL);
		break;
	default:
		make(line[0], line + 1);
		break;
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	g_autofree char *text = g_strndup((const char *)data, size);
	g_auto(GStrv) lines = g_strsplit(text, "\n", LINES_MOST + 1);
	int next_fd, fd_after;

	world_begin(NULL);
	empty("workspace");
	empty("user");
	next_fd = fd_dup(0);
	close(next_fd);
	for (int i = 0; lines[i] && i < LINES_MOST; i++)
		take_line(lines[i]);
	fd_after = fd_dup(0);
	close(fd_after);
	g_assert_cmpint(fd_after, ==, next_fd);
	world_check_text("../secret/f", "secret");
	world_check_text("workspace/inner/f", "inner");
	world_check_text("opt/stella/f", "ro");
	return 0;
}
