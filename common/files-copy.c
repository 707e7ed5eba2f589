/* Copying files and links, between any two mounts. Each copy is made beside its name and takes it when it is whole; see
 * files-temp.c. The tree's part is in files-copy-tree.c. */
#include "common/files-internal.h"

#include "common/fd-util.h"
#include "common/files-replace.h"
#include "common/io-util.h"
#include "common/limits.h"
#include "common/path-util.h"
#include "common/syscall-wrap.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#define COPY_STEP ((off_t)16 * 1024 * 1024)
#define READ_STEP ((size_t)256 * 1024)

static bool is_canceled(const FilesCall *call)
{
	return call->is_canceled && call->is_canceled(call->data);
}

/* By hand, where the two file systems cannot do it for us, or the file is made up while it is read. Bytes copied, or
 * -errno. */
static ssize_t copy_by_hand(int from_fd, int to_fd, off_t at, off_t size)
{
	size_t step = (size_t)MIN(size, (off_t)READ_STEP), done = 0;
	g_autofree char *buffer = g_malloc(step);
	ssize_t got;

	do
		got = pread(from_fd, buffer, step, at);
	while (got < 0 && errno == EINTR);
	if (got < 0)
		return -errno;
	while (done < (size_t)got) {
		ssize_t put = pwrite(to_fd, buffer + done, (size_t)got - done, at + (off_t)done);

		if (put < 0 && errno != EINTR)
			return -errno;
		done += put > 0 ? (size_t)put : 0;
	}
	return got;
}

static ssize_t copy_some(int from_fd, int to_fd, off_t at, off_t size)
{
	off_t from = at, to = at;
	ssize_t copied = copy_file_range(from_fd, &from, to_fd, &to, (size_t)size, 0);

	if (copied > 0)
		return copied;
	if (copied < 0 && errno != EXDEV && errno != EINVAL && errno != EOPNOTSUPP &&
	    errno != ENOSYS && errno != EPERM)
		return -errno;
	/* 0 is the end, or a file system that knows its files' sizes only when they are read. */
	return copy_by_hand(from_fd, to_fd, at, size);
}

/* From *at up to end; less when the file has become shorter. */
static int copy_range(const FilesCall *call, int from_fd, int to_fd, off_t *at, off_t end)
{
	while (*at < end) {
		ssize_t copied;

		if (is_canceled(call))
			return -ECANCELED;
		copied = copy_some(from_fd, to_fd, *at, MIN(end - *at, COPY_STEP));
		if (copied < 0)
			return (int)copied;
		if (copied == 0)
			return 1;
		*at += copied;
	}
	return 0;
}

int files_copy_bytes(FilesCall *call, int from_fd, int to_fd)
{
	struct stat st;
	off_t at = 0, size;
	int r = 0;

	if (fstat(from_fd, &st) != 0)
		return -errno;
	/* A file without a size may be one whose content is made up: that is small. What is appended meanwhile is not
	 * copied, or there would be no end. */
	size = st.st_size > 0 ? st.st_size : (off_t)FILES_MAX_BYTES;
	while (r == 0 && at < size) {
		off_t data = st.st_size > 0 ? lseek(from_fd, at, SEEK_DATA) : -1, hole = -1;

		if (data < 0 && st.st_size > 0 && errno == ENXIO) {
			at = size; /* a hole up to the end */
			break;
		}
		if (data >= at) {
			at = data;
			hole = lseek(from_fd, at, SEEK_HOLE);
		}
		r = copy_range(call, from_fd, to_fd, &at, hole > at ? MIN(hole, size) : size);
	}
	if (r < 0)
		return r;
	return ftruncate(to_fd, at) == 0 ? 0 : -errno;
}

static int copy_file(FilesCall *call, const PathPlace *from, const PathPlace *to, bool replace)
{
	FILES_TEMP_AUTO temp = { .fd = -1 };
	FD_AUTO fd = path_resolver_reopen(from, O_RDONLY | O_NONBLOCK | O_NOCTTY);
	struct stat st;
	int r;

	if (fd < 0)
		return files_fail(call, fd, from, "");
	if ((r = files_temp_new(to, 0600, &temp)) < 0)
		return files_fail(call, r, to, "");
	if ((r = files_copy_bytes(call, fd, temp.fd)) < 0)
		return files_fail(call, r, from, "");
	if (fstat(fd, &st) != 0)
		return files_fail(call, -errno, from, "");
	if ((r = files_check_canceled(call)) < 0)
		return r;
	r = files_temp_commit(&temp, st.st_mode, replace, to->type != 0);
	return r < 0 ? files_fail(call, r, to, "") : 0;
}

/* A link of the view's own has its text in the plan. */
static int read_link(const FilesCall *call, const PathPlace *link, char text[LIMIT_PATH_BYTES])
{
	const GPtrArray *entries = path_resolver_plan(call->resolver)->entries;
	ssize_t length;

	for (guint i = 0; link->fd < 0 && i < entries->len; i++) {
		const ViewEntry *entry = entries->pdata[i];

		if (entry->kind == VIEW_ENTRY_LINK &&
		    strcmp(entry->view_path, link->view_path) == 0) {
			g_strlcpy(text, entry->target, LIMIT_PATH_BYTES);
			return 0;
		}
	}
	if (link->fd < 0)
		return -ENOENT;
	length = readlinkat(link->fd, "", text, LIMIT_PATH_BYTES);
	if (length < 0)
		return -errno;
	if (length == LIMIT_PATH_BYTES)
		return -ENAMETOOLONG;
	text[length] = '\0';
	return 0;
}

static int make_link(const char *text, const PathPlace *to, bool replace)
{
	ACTING_AUTO acting = { 0 };
	char name[40];
	int r;

	if ((r = files_random_name(name)) < 0 || (r = path_resolver_act_begin(to, &acting)) < 0)
		return r;
	if (!replace)
		return symlinkat(text, to->parent_fd, to->name) == 0 ? 0 : -errno;
	if (symlinkat(text, to->parent_fd, name) != 0)
		return -errno;
	r = sys_renameat2(to->parent_fd, name, to->parent_fd, to->name, 0);
	if (r < 0)
		(void)unlinkat(to->parent_fd, name, 0); /* or an agent has taken it */
	return r;
}

int files_copy_one(FilesCall *call, const PathPlace *from, const PathPlace *to, bool replace)
{
	char text[LIMIT_PATH_BYTES];
	int r;

	if (S_ISREG(from->type))
		return copy_file(call, from, to, replace);
	if (!S_ISLNK(from->type))
		return files_fail(call, -ENXIO, from, "");
	if ((r = read_link(call, from, text)) < 0)
		return files_fail(call, r, from, "");
	r = make_link(text, to, replace);
	return r < 0 ? files_fail(call, r, to, "") : 0;
}

static bool is_one_object(const PathPlace *a, const PathPlace *b)
{
	struct stat one, two;

	return a->fd >= 0 && b->fd >= 0 && fstat(a->fd, &one) == 0 && fstat(b->fd, &two) == 0 &&
	       one.st_dev == two.st_dev && one.st_ino == two.st_ino;
}

/* By names; a host directory may have further ones in the view, which the copying itself notices. */
static bool is_inside(const FilesCall *call, const PathPlace *place, const PathPlace *dir)
{
	const ViewPlan *plan = path_resolver_plan(call->resolver);
	g_autofree char *inner = view_plan_to_host_path(plan, place->view_path);
	g_autofree char *outer = view_plan_to_host_path(plan, dir->view_path);

	return path_is_below(place->view_path, dir->view_path) ||
	       (inner && outer && path_is_below(inner, outer));
}

/* What is there is to be replaced by something of another kind, or by itself. */
static int check_replaceable(FilesCall *call, const PathPlace *source, const PathPlace *target)
{
	if (is_one_object(source, target))
		return files_fail(call, -EINVAL, target, "");
	if (S_ISDIR(source->type) && !S_ISDIR(target->type))
		return files_fail(call, -ENOTDIR, target, "");
	if (!S_ISDIR(source->type) && S_ISDIR(target->type))
		return files_fail(call, -EISDIR, target, "");
	return S_ISREG(target->type) ? files_replace_check(call, target)
				     : files_check_movable(call, target);
}

/* As by rename(2): a directory gives way if it is empty. */
static int remove_empty(FilesCall *call, const PathPlace *place)
{
	ACTING_AUTO acting = { 0 };
	int r = path_resolver_act_begin(place, &acting);

	if (r == 0 && unlinkat(place->parent_fd, place->name, AT_REMOVEDIR) != 0)
		r = -errno;
	path_resolver_act_end(&acting);
	return r < 0 ? files_fail(call, r, place, "") : 0;
}

static int copy_directory(FilesCall *call, const PathPlace *source, const PathPlace *target)
{
	int r;

	if (is_inside(call, target, source))
		return files_fail(call, -EINVAL, target, "");
	if (target->type != 0 && (r = remove_empty(call, target)) < 0)
		return r;
	return files_copy_tree(call, source, target);
}

int files_copy(FilesCall *call, const char *from, const char *to, unsigned int flags)
{
	PLACE_AUTO source = PLACE_NONE;
	PLACE_AUTO target = PLACE_NONE;
	bool replace = flags & FILES_REPLACE;
	int r;

	files_begin(call, "copy", NULL, from, to);
	r = files_walk(call, from, flags & FILES_RECURSIVE ? PATH_WALK_NOFOLLOW : 0, false,
		       &source);
	if (r < 0)
		return r;
	if (source.type == 0)
		return files_fail_absent(call, &source);
	if (S_ISDIR(source.type) && !(flags & FILES_RECURSIVE))
		return files_fail(call, -EISDIR, &source, "");
	r = files_walk_to_name(call, to, flags & FILES_PARENTS, &target);
	if (r < 0)
		return r;
	if (target.type == 0 && !S_ISDIR(source.type) && g_str_has_suffix(to, "/"))
		return files_fail(call, -ENOTDIR, &target, "");
	if (target.type != 0 && !replace)
		return files_fail(call, -EEXIST, &target, "");
	if ((r = files_check_writable(call, &target)) < 0 ||
	    (target.type != 0 && (r = check_replaceable(call, &source, &target)) < 0))
		return r;
	if (S_ISDIR(source.type))
		return copy_directory(call, &source, &target);
	return files_copy_one(call, &source, &target, replace);
}
