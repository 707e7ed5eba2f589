/* The file of an output; see spill.h.
 *
 * What an agent controls here: all of the directory but the name of the next file, and, from the moment it
 * is there, the file. So nothing of it is looked up again but to remove it (which removes whatever has
 * that name, in a directory where the agent could do the same), and nothing is read back. A file that others
 * have open can neither be leased nor locked against writing, so a write waits for the disk only. */
#include "executor/spill.h"

#include "common/fd-util.h"
#include "common/io-util.h"
#include "common/limits.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

struct ExrSpill {
	const ExrSpillDir *dir; /* borrowed */
	char *view_tmp;
	char *stream_name;
	char *name; /* NULL until the file is made */
	char *path; /* in the view, once finished */
	int fd;
	dev_t dev;
	ino_t ino;
	uint64_t size;	  /* written */
	uint64_t allowed; /* by our own RLIMIT_FSIZE, whose signal would end the process */
	int failed;	  /* -errno, for good */
	bool finished;
};

static const ViewEntry *find_entry(const ViewPlan *plan, const char *view_path)
{
	for (unsigned int i = 0; i < plan->entries->len; i++) {
		const ViewEntry *entry = plan->entries->pdata[i];

		if (strcmp(entry->view_path, view_path) == 0)
			return entry;
	}
	return NULL;
}

static bool has_quota(const StellaPolicy *policy, const char *view_path)
{
	for (unsigned int i = 0; i < policy->mounts->len; i++) {
		const PolicyMount *mount = policy->mounts->pdata[i];

		if (strcmp(mount->view_path, view_path) == 0)
			return mount->quota_bytes != 0 || mount->quota_files != 0;
	}
	return false;
}

/* Of the gateway, which hands every file to the owner of its mount, when it can. It serves the session's own
 * directory too, when there are mounts below it. */
static int open_mount(const ViewPlan *plan, const ViewEntry *entry, const char *own,
		      ExrSpillDir *ret_dir)
{
	FD_AUTO fd = -1;
	struct stat st;

	if (!entry->is_dir)
		return -ENOTDIR;
	if (!view_entry_is_writable(entry))
		return -EROFS;
	if (has_quota(plan->policy, entry->view_path))
		return -EDQUOT;
	fd = open(entry->host_path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0 || fstat(fd, &st) != 0)
		return -errno;
	if (st.st_dev != entry->dev || st.st_ino != entry->ino)
		return -ESTALE;
	*ret_dir = EXR_NO_SPILL_DIR;
	ret_dir->of_session = strcmp(entry->host_path, own) == 0;
	if (geteuid() == 0) {
		ret_dir->uid = entry->owner_uid;
		ret_dir->gid = entry->owner_gid;
	}
	ret_dir->fd = fd_steal(&fd);
	return 0;
}

/* The session's own, bound in the sandbox. */
static int open_private(const char *own, const ExrIdentity *identity, ExrSpillDir *ret_dir)
{
	int fd = open(own, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

	if (fd < 0)
		return -errno;
	*ret_dir = EXR_NO_SPILL_DIR;
	ret_dir->fd = fd;
	ret_dir->of_session = true;
	if (identity->lent) {
		ret_dir->uid = identity->outside_uid;
		ret_dir->gid = identity->outside_gid;
	}
	return 0;
}

int exr_spill_dir_open(const ViewPlan *plan, const ExrStateDir *state, const ExrIdentity *identity,
		       ExrSpillDir *ret_dir)
{
	const ViewEntry *entry = find_entry(plan, "/tmp");
	g_autofree char *own = exr_state_dir_join(state, "tmp");

	if (!entry)
		return -ENOENT;
	if (entry->kind == VIEW_ENTRY_MOUNT)
		return open_mount(plan, entry, own, ret_dir);
	if (entry->kind == VIEW_ENTRY_POINT && !entry->host_path)
		return open_private(own, identity, ret_dir);
	return -EROFS;
}

void exr_spill_dir_close(ExrSpillDir *dir)
{
	fd_close(&dir->fd);
}

ExrSpill *exr_spill_new(const ExrSpillDir *dir, const char *view_tmp, const char *stream_name)
{
	ExrSpill *spill = g_new0(ExrSpill, 1);

	spill->dir = dir;
	spill->view_tmp = g_strdup(view_tmp);
	spill->stream_name = g_strdup(stream_name);
	spill->fd = -1;
	return spill;
}

void exr_spill_free(ExrSpill *spill)
{
	if (!spill)
		return;
	fd_close(&spill->fd);
	g_free(spill->view_tmp);
	g_free(spill->stream_name);
	g_free(spill->name);
	g_free(spill->path);
	g_free(spill);
}

static uint64_t own_file_size_limit(void)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_FSIZE, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY)
		return UINT64_MAX;
	return limit.rlim_cur;
}

static int make_file(ExrSpill *spill)
{
	const ExrSpillDir *dir = spill->dir;
	struct stat st;
	uint64_t random;

	if (getrandom(&random, sizeof random, 0) != sizeof random)
		return -EIO;
	spill->name = g_strdup_printf("stella-%s-%016" PRIx64 ".txt", spill->stream_name, random);
	spill->fd = openat(dir->fd, spill->name,
			   O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (spill->fd < 0) {
		int r = -errno;

		g_clear_pointer(&spill->name, g_free);
		return r;
	}
	spill->allowed = own_file_size_limit();
	if (fchmod(spill->fd, 0600) != 0 || fstat(spill->fd, &st) != 0)
		return -errno;
	spill->dev = st.st_dev;
	spill->ino = st.st_ino;
	if (dir->uid != (uid_t)-1 && (st.st_uid != dir->uid || st.st_gid != dir->gid) &&
	    fchown(spill->fd, dir->uid, dir->gid) != 0)
		return -errno;
	return 0;
}

/* Emptied first: its room is given back even where its name cannot be. */
static void remove_file(ExrSpill *spill)
{
	if (spill->fd >= 0)
		(void)!ftruncate(spill->fd, 0);
	if (spill->name)
		(void)unlinkat(spill->dir->fd, spill->name, 0);
	fd_close(&spill->fd);
	g_clear_pointer(&spill->name, g_free);
}

static int append(ExrSpill *spill, const void *data, size_t size)
{
	int r;

	if (!spill->name && (r = make_file(spill)) < 0)
		return r;
	size = MIN(size, LIMIT_SPILL_BYTES - spill->size);
	if (size > spill->allowed || spill->size > spill->allowed - size)
		return -EFBIG;
	if ((r = io_write_all(spill->fd, data, size)) < 0)
		return r;
	spill->size += size;
	return 0;
}

int exr_spill_write(ExrSpill *spill, const void *data, size_t size)
{
	int r;

	if (spill->finished || spill->failed)
		return spill->failed;
	r = append(spill, data, size);
	if (r < 0) {
		spill->failed = r;
		remove_file(spill);
	}
	return r;
}

void exr_spill_capture(ExrSpill *spill, OutputBuffer *buffer, const void *data, size_t size)
{
	if (spill && !spill->name && output_buffer_fits(buffer, 0) &&
	    !output_buffer_fits(buffer, size)) {
		size_t kept_size;
		const char *kept = output_buffer_data(buffer, &kept_size);

		(void)exr_spill_write(spill, kept, kept_size);
	}
	/* Without its beginning, which may have found no memory, there is no file. */
	if (spill && spill->name)
		(void)exr_spill_write(spill, data, size);
	output_buffer_write(buffer, data, size);
}

static bool is_still_there(const ExrSpill *spill)
{
	struct stat st;

	return fstatat(spill->dir->fd, spill->name, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
	       st.st_dev == spill->dev && st.st_ino == spill->ino;
}

const char *exr_spill_finish(ExrSpill *spill)
{
	if (spill->finished)
		return spill->path;
	spill->finished = true;
	if (spill->name && is_still_there(spill))
		spill->path = g_build_filename(spill->view_tmp, spill->name, NULL);
	fd_close(&spill->fd);
	return spill->path;
}

char *exr_spill_remark(const char *path, uint64_t total)
{
	g_autofree char *most = NULL;

	if (!path)
		return NULL;
	if (total <= LIMIT_SPILL_BYTES)
		return g_strdup_printf("whole output in %s", path);
	most = output_buffer_format_size(LIMIT_SPILL_BYTES);
	return g_strdup_printf("first %s in %s", most, path);
}
