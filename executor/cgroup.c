/* Directories of cgroup file systems; see cgroup.h.
 *
 * A cgroup is always made below our own, so that whatever limits are around us hold for the sandbox too,
 * and always by the fd of a directory that was checked to be of a cgroup file system: a path of mountinfo
 * can be covered by another mount. */
#include "executor/cgroup-internal.h"

#include "common/errno-util.h"
#include "common/fd-util.h"
#include "common/io-util.h"
#include "executor/cgroup-find.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

/* Between two looks at a cgroup whose last processes are dying. */
#define BUSY_SLEEP_US 5000
/* A file of ours or of a cgroup; cgroup.procs of a large one is the longest. */
#define FILE_BYTES_MAX (16 * 1024 * 1024)

void exr_cgroup_clear(ExrCgroup *cgroup)
{
	fd_close(&cgroup->fd);
	g_clear_pointer(&cgroup->path, g_free);
	cgroup->version = 0;
}

bool cgroup_is_cgroup(int fd, int version)
{
	struct statfs fs;

	if (fstatfs(fd, &fs) != 0)
		return false;
	return (unsigned long)fs.f_type ==
	       (unsigned long)(version == 1 ? CGROUP_SUPER_MAGIC : CGROUP2_SUPER_MAGIC);
}

char *cgroup_read_text(int dir_fd, const char *file, int *reterr_errnum)
{
	FD_AUTO fd = openat(dir_fd, file, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
	char *text = NULL;
	size_t size;
	int r = fd < 0 ? -errno : io_read_to_end(fd, FILE_BYTES_MAX, &text, &size);

	if (r < 0 && reterr_errnum)
		*reterr_errnum = -r;
	return r < 0 ? NULL : text;
}

int cgroup_write_text(int dir_fd, const char *file, const char *text)
{
	FD_AUTO fd = openat(dir_fd, file, O_WRONLY | O_NOFOLLOW | O_CLOEXEC);

	if (fd < 0)
		return -errno;
	/* One write is one command to the kernel. */
	return write(fd, text, strlen(text)) < 0 ? -errno : 0;
}

int exr_cgroup_write(const ExrCgroup *cgroup, const char *file, uint64_t value)
{
	g_autofree char *text = g_strdup_printf("%" G_GUINT64_FORMAT, value);

	return cgroup_write_text(cgroup->fd, file, text);
}

uint64_t exr_cgroup_read(const ExrCgroup *cgroup, const char *file, const char *key)
{
	g_autofree char *text = cgroup_read_text(cgroup->fd, file, NULL);
	g_auto(GStrv) lines = g_strsplit(text ? text : "", "\n", -1);

	for (char **line = lines; *line; line++) {
		size_t length = key ? strlen(key) : 0;

		if (!key)
			return g_ascii_strtoull(*line, NULL, 10);
		if (strncmp(*line, key, length) == 0 && (*line)[length] == ' ')
			return g_ascii_strtoull(*line + length, NULL, 10);
	}
	return 0;
}

/* The first of the place's directories that is what it is said to be. */
static int open_own(const ExrCgroupPlace *place, ExrCgroup *ret_own)
{
	int r = -ENOENT;

	for (char **dir = place->dirs; *dir; dir++) {
		FD_AUTO fd = open(*dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

		if (fd < 0) {
			r = -errno;
			continue;
		}
		if (!cgroup_is_cgroup(fd, place->version))
			continue;
		ret_own->version = place->version;
		ret_own->path = g_strdup(*dir);
		ret_own->fd = fd_steal(&fd);
		return 0;
	}
	return r;
}

static int find_own(const char *controller, ExrCgroup *ret_own, char **reterr_reason)
{
	g_autofree char *cgroup = NULL;
	g_autofree char *mountinfo = NULL;
	ExrCgroupPlace place;
	int r, version;

	if (!g_file_get_contents("/proc/self/cgroup", &cgroup, NULL, NULL) ||
	    !g_file_get_contents("/proc/self/mountinfo", &mountinfo, NULL, NULL)) {
		*reterr_reason = g_strdup("/proc does not tell which cgroup we are in");
		return -EOPNOTSUPP;
	}
	exr_cgroup_find(cgroup, mountinfo, controller, &place);
	version = place.version;
	r = version == 0 ? -EOPNOTSUPP : open_own(&place, ret_own);
	exr_cgroup_place_clear(&place);
	if (version == 0)
		*reterr_reason =
			g_strdup_printf("this kernel has no cgroup controller \"%s\"", controller);
	else if (r < 0)
		*reterr_reason =
			g_strdup_printf("no file system of cgroups shows our own for \"%s\": %s",
					controller, errno_text(-r));
	return r;
}

int exr_cgroup_find_parent(const char *controller, ExrCgroup *ret_parent, char **reterr_reason)
{
	CGROUP_AUTO own = EXR_NO_CGROUP;
	int r = find_own(controller, &own, reterr_reason);

	if (r == 0 && own.version == 2)
		r = cgroup_v2_prepare(controller, &own, reterr_reason);
	if (r < 0)
		return r;
	*ret_parent = own;
	own = (ExrCgroup)EXR_NO_CGROUP;
	return 0;
}

int exr_cgroup_check(const char *controller, char **reterr_reason)
{
	CGROUP_AUTO own = EXR_NO_CGROUP;
	bool have_to_move;
	int r = find_own(controller, &own, reterr_reason);

	if (r == 0 && own.version == 2)
		r = cgroup_v2_check(controller, &own, &have_to_move, reterr_reason);
	if (r < 0)
		return r;
	/* That a directory may be written to says so of its files, too: both go with its owner. */
	if (faccessat(own.fd, ".", W_OK, AT_EACCESS) == 0)
		return 0;
	r = -errno;
	*reterr_reason =
		g_strdup_printf("cannot make a cgroup in \"%s\": %s", own.path, errno_text(-r));
	return r;
}

static int add_to_record(const char *record, const char *path)
{
	FD_AUTO fd = open(record, O_WRONLY | O_CREAT | O_APPEND | O_NOFOLLOW | O_CLOEXEC, 0600);
	g_autofree char *line = g_strconcat(path, "\n", NULL);

	return fd < 0 ? -errno : io_write_all(fd, line, strlen(line));
}

int exr_cgroup_make(const ExrCgroup *parent, const char *name, const char *record,
		    ExrCgroup *ret_cgroup)
{
	g_autofree char *path = g_build_filename(parent->path, name, NULL);
	int r, fd;

	/* The record has a path a line. */
	if (strchr(path, '\n'))
		return -EINVAL;
	if ((r = add_to_record(record, path)) < 0)
		return r;
	if (mkdirat(parent->fd, name, 0755) != 0 && errno != EEXIST)
		return -errno;
	fd = openat(parent->fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	ret_cgroup->version = parent->version;
	ret_cgroup->fd = fd;
	ret_cgroup->path = g_steal_pointer(&path);
	return 0;
}

/* A cgroup without processes and children goes; no other can be removed. What is not there, or no cgroup (any
 * more, in this mount namespace), is not ours to look for. */
static int remove_one(const char *path, const char *name, gint64 deadline_us)
{
	g_autofree char *base = g_path_get_basename(path);
	g_autofree char *parent = g_path_get_dirname(path);
	FD_AUTO fd = -1;

	if (strcmp(base, name) != 0)
		return 0;
	fd = open(parent, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0 || !(cgroup_is_cgroup(fd, 1) || cgroup_is_cgroup(fd, 2)))
		return 0;
	while (unlinkat(fd, name, AT_REMOVEDIR) != 0) {
		int r = -errno;

		/* On a read-only mount the kernel does not even look. */
		if (r == -ENOENT || faccessat(fd, name, F_OK, AT_SYMLINK_NOFOLLOW) != 0)
			return 0;
		if (r != -EBUSY || g_get_monotonic_time() >= deadline_us)
			return r;
		g_usleep(BUSY_SLEEP_US);
	}
	return 0;
}

int exr_cgroup_remove_recorded(const char *record, const char *name, gint64 deadline_us)
{
	int errnum = 0, result = 0;
	g_autofree char *text = cgroup_read_text(AT_FDCWD, record, &errnum);
	g_auto(GStrv) lines = NULL;

	if (!text)
		return errnum == ENOENT ? 0 : -errnum;
	lines = g_strsplit(text, "\n", -1);
	for (char **line = lines; *line; line++) {
		int r = **line ? remove_one(*line, name, deadline_us) : 0;

		if (r < 0 && result == 0)
			result = r;
	}
	return result;
}
