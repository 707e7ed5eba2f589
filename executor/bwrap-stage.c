/* Staging by mounts; see bwrap-stage.h.
 *
 * The sandbox's user is an id that owns nothing, so that what is bound for it as it is could not even be read. A mount
 * of the policy is bound with its owner's id and the sandbox's exchanged (an idmapped mount): what the owner may the
 * command may, new files are the owner's, and nobody else's rights are lent: files of others are nobody's, and are not written
 * to. Runtime directories are as they are, for everybody. */
#include "executor/bwrap-stage.h"

#include "common/errno-util.h"
#include "common/fd-util.h"
#include "common/mount-util.h"
#include "common/path-util.h"
#include "common/syscall-wrap.h"
#include "executor/native-source.h"
#include "executor/sandbox-plan-native.h"
#include "executor/spawn.h"

#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>

#define STAGE "bwrap"
/* A directory that every host has; bwrap itself mounts over it, too. */
#define PLACE  "/tmp"
#define END_MS 5000

typedef struct {
	uid_t uid;
	gid_t gid;
	int fd; /* of a user namespace that maps them to the sandbox's */
} IdMap;

struct ExrBwrapStage {
	int place_fd;	/* a tmpfs */
	GArray *mounts; /* StagedMount */
	GArray *maps;	/* IdMap */
};

typedef struct {
	int fd;
	bool is_dir;
} StagedMount;

static void clear_mount(void *data)
{
	fd_close(&((StagedMount *)data)->fd);
}

static void clear_map(void *data)
{
	fd_close(&((IdMap *)data)->fd);
}

void exr_bwrap_stage_free(ExrBwrapStage *stage)
{
	if (!stage)
		return;
	fd_close(&stage->place_fd);
	g_array_unref(stage->mounts);
	g_array_unref(stage->maps);
	g_free(stage);
}
G_DEFINE_AUTOPTR_CLEANUP_FUNC(ExrBwrapStage, exr_bwrap_stage_free)

static int write_map(pid_t pid, const char *name, unsigned int from, unsigned int to)
{
	g_autofree char *path = g_strdup_printf("/proc/%d/%s", (int)pid, name);
	g_autofree char *line = g_strdup_printf("%u %u 1\n", from, to);
	FD_AUTO fd = open(path, O_WRONLY | O_CLOEXEC);

	if (fd < 0)
		return -errno;
	return write(fd, line, strlen(line)) < 0 ? -errno : 0;
}

static _Noreturn void hold_namespace(void)
{
	sys_clone3_alone();
	(void)prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
	for (;;)
		(void)pause();
}

/* The namespace of a process that does nothing and is then ended. */
static int new_map(const IdMap *map, const ExrIdentity *identity)
{
	ExrProcess process = EXR_NO_PROCESS;
	g_autofree char *path = NULL;
	FD_AUTO fd = -1;
	sigset_t mask;
	int r;

	exr_signals_block_all(&mask);
	process.pid = sys_clone3(CLONE_NEWUSER | CLONE_PIDFD, SIGCHLD, &process.pidfd);
	if (process.pid == 0)
		hold_namespace();
	exr_signals_restore(&mask);
	if (process.pid < 0)
		return (int)process.pid;
	path = g_strdup_printf("/proc/%d/ns/user", (int)process.pid);
	r = write_map(process.pid, "uid_map", map->uid, identity->outside_uid);
	if (r == 0)
		r = write_map(process.pid, "gid_map", map->gid, identity->outside_gid);
	if (r == 0 && (fd = open(path, O_RDONLY | O_CLOEXEC)) < 0)
		r = -errno;
	(void)exr_process_end(&process, 0, END_MS);
	return r < 0 ? r : fd_steal(&fd);
}

static int find_map(ExrBwrapStage *stage, const struct stat *st, const ExrIdentity *identity)
{
	IdMap map = { .uid = st->st_uid, .gid = st->st_gid };

	for (unsigned int i = 0; i < stage->maps->len; i++) {
		const IdMap *known = &g_array_index(stage->maps, IdMap, i);

		if (known->uid == map.uid && known->gid == map.gid)
			return known->fd;
	}
	map.fd = new_map(&map, identity);
	if (map.fd >= 0)
		g_array_append_val(stage->maps, map);
	return map.fd;
}

static int take(ExrBwrapStage *stage, int fd, bool is_dir, bool read_only)
{
	StagedMount staged = {
		.fd = sys_open_tree(
			fd, "", OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_EMPTY_PATH | AT_RECURSIVE),
		.is_dir = is_dir,
	};

	if (staged.fd < 0)
		return staged.fd;
	g_array_append_val(stage->mounts, staged);
	return read_only ? sys_mount_setattr(staged.fd, "", AT_EMPTY_PATH | AT_RECURSIVE,
					     MOUNT_ATTR_RDONLY, 0, 0)
			 : 0;
}

static int lend_rights(ExrBwrapStage *stage, const ExrSource *source, const ExrIdentity *identity)
{
	const StagedMount *staged =
		&g_array_index(stage->mounts, StagedMount, stage->mounts->len - 1);
	int map;

	if (!source->is_given || (source->st.st_uid == identity->outside_uid &&
				  source->st.st_gid == identity->outside_gid))
		return 0;
	map = find_map(stage, &source->st, identity);
	return map < 0 ? map : sys_mount_idmap(staged->fd, map);
}

static int cannot_stage(int r, const char *path, const char *what, ExrError *error)
{
	g_autofree char *shown = path_escape(path);

	r = exr_error_set(error, "host-unsupported", STAGE, -r, "cannot %s \"%s\" for bwrap: %s",
			  what, shown, errno_text(-r));
	exr_error_set_hint(error,
			   "as root it takes Linux 5.12 and a file system that can be mounted "
			   "with ids mapped (ext4, xfs, btrfs; tmpfs from Linux 6.3)");
	return r;
}

int exr_bwrap_stage_new(const GArray *sources, int init_fd, const ExrIdentity *identity,
			ExrBwrapStage **ret_stage, ExrError *reterr_error)
{
	static const char *const options[] = { "source", "stella", "mode", "0755", NULL };
	g_autoptr(ExrBwrapStage) stage = g_new0(ExrBwrapStage, 1);
	int r;

	stage->mounts = g_array_new(FALSE, FALSE, sizeof(StagedMount));
	g_array_set_clear_func(stage->mounts, clear_mount);
	stage->maps = g_array_new(FALSE, FALSE, sizeof(IdMap));
	g_array_set_clear_func(stage->maps, clear_map);
	stage->place_fd = mount_new("tmpfs", options, MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV);
	if (stage->place_fd < 0)
		return cannot_stage(stage->place_fd, PLACE, "mount", reterr_error);
	for (unsigned int i = 0; i < sources->len; i++) {
		const ExrSource *source = exr_source(sources, i);

		r = take(stage, source->fd, S_ISDIR(source->st.st_mode), source->read_only);
		if (r < 0)
			return cannot_stage(r, source->real, "bind", reterr_error);
		if ((r = lend_rights(stage, source, identity)) < 0)
			return cannot_stage(r, source->real, "map the ids of", reterr_error);
	}
	if ((r = take(stage, init_fd, false, true)) < 0)
		return cannot_stage(r, "stella-sandbox-init", "bind", reterr_error);
	*ret_stage = g_steal_pointer(&stage);
	return 0;
}

const char *exr_bwrap_stage_path(const ExrBwrapStage *stage)
{
	(void)stage;
	return PLACE;
}

static int attach(const ExrBwrapStage *stage, unsigned int i)
{
	const StagedMount *staged = &g_array_index(stage->mounts, StagedMount, i);
	FD_AUTO file = -1;
	char name[sizeof EXR_NATIVE_INIT];

	if (i + 1 < stage->mounts->len)
		snprintf(name, sizeof name, "%u", i);
	else
		strcpy(name, EXR_NATIVE_INIT);
	if (staged->is_dir) {
		if (mkdirat(stage->place_fd, name, 0755) != 0)
			return -errno;
	} else {
		file = openat(stage->place_fd, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
		if (file < 0)
			return -errno;
	}
	return mount_attach(staged->fd, stage->place_fd, name);
}

int exr_bwrap_stage_mount(const ExrBwrapStage *stage)
{
	int r;

	if (unshare(CLONE_NEWNS) != 0 || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0)
		return -errno;
	if ((r = mount_attach(stage->place_fd, AT_FDCWD, PLACE)) < 0)
		return r;
	for (unsigned int i = 0; i < stage->mounts->len; i++)
		if ((r = attach(stage, i)) < 0)
			return r;
	return 0;
}
