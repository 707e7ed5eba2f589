/* Session directories; see state-dir.h.
 *
 * A lock file is taken before its directory is made and removed after its directory is gone, so a
 * directory whose lock is free has no owner. Making and listing are kept apart by the lock of the whole
 * state directory: nobody can find a lock file between its creation and its being locked. What dead
 * owners left is removed under its own lock, after the common one is released, for trees can be large. */
#include "executor/state-dir.h"

#include "common/errno-util.h"
#include "common/fd-util.h"
#include "common/io-util.h"
#include "common/private-dir.h"
#include "common/runtime-dir.h"
#include "executor/cgroup.h"
#include "executor/session-id.h"
#include "executor/spawn.h"

#include <fcntl.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mount.h>
#include <sys/stat.h>

#define CODE	    "state-dir-failed"
#define STAGE	    "state-dir"
#define LOCK_SUFFIX ".lock"
/* The common lock is held for moments only. */
#define LOCK_TRIES    500
#define LOCK_SLEEP_US 10000
/* Dead sessions removed by one start; the next start takes the rest. */
#define SWEEP_MAX	      32
#define FUSERMOUNT_TIMEOUT_MS 5000
/* For the last processes of all of them to leave their cgroups. */
#define CGROUP_TIMEOUT_US 500000

struct ExrStateDir {
	char *id;
	char *root;	/* STATE */
	char *sessions; /* STATE/sessions */
	char *path;	/* STATE/sessions/ID */
	int sessions_fd;
	int lock_fd; /* -1 until there is something to remove */
};

static int set_error(ExrError *error, int r, const char *path)
{
	return exr_error_set(error, CODE, STAGE, -r, "state directory \"%s\": %s", path,
			     errno_text(-r));
}

char *exr_find_fusermount(void)
{
	static const char *const places[] = { "/usr/bin/fusermount3", "/bin/fusermount3",
					      "/usr/local/bin/fusermount3" };

	for (size_t i = 0; i < G_N_ELEMENTS(places); i++)
		if (access(places[i], X_OK) == 0)
			return g_strdup(places[i]);
	return NULL;
}

int exr_state_dir_detach(const char *path)
{
	g_autofree char *program = NULL;
	g_auto(GStrv) env = NULL;
	ExrProcess process = EXR_NO_PROCESS;
	int r;

	if (umount2(path, MNT_DETACH | UMOUNT_NOFOLLOW) == 0)
		return 0;
	if (errno != EPERM)
		return errno == EINVAL || errno == ENOENT ? 0 : -errno; /* not mounted */
	program = exr_find_fusermount();
	if (!program)
		return -ENOENT;
	const char *const argv[] = { program, "-u", "-z", "-q", "--", path, NULL };
	env = exr_spawn_env();
	if ((r = exr_spawn(program, argv, (const char *const *)env, -1, -1, &process)) < 0)
		return r;
	return exr_process_end(&process, FUSERMOUNT_TIMEOUT_MS, FUSERMOUNT_TIMEOUT_MS);
}

static int take_common_lock(const char *state, int *ret_fd)
{
	g_autofree char *path = g_build_filename(state, "lock", NULL);
	FD_AUTO fd = open(path, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);

	if (fd < 0)
		return -errno;
	for (int i = 0; i < LOCK_TRIES; i++) {
		if (flock(fd, LOCK_EX | LOCK_NB) == 0) {
			*ret_fd = fd_steal(&fd);
			return 0;
		}
		if (errno != EWOULDBLOCK && errno != EINTR)
			return -errno;
		g_usleep(LOCK_SLEEP_US);
	}
	return -ETIMEDOUT;
}

/* The directory of a session whose lock we hold. An O_PATH open asks a mounted gateway nothing, which
 * may be dead or hang. While a cgroup still has processes, the record of it has to stay, and with it all of this,
 * for a later start. */
static void remove_session(int sessions_fd, const char *sessions, const char *id,
			   gint64 deadline_us)
{
	g_autofree char *cgroups = g_build_filename(sessions, id, EXR_STATE_DIR_CGROUPS, NULL);
	g_autofree char *view = g_build_filename(sessions, id, "view", NULL);
	g_autofree char *lock = g_strconcat(id, LOCK_SUFFIX, NULL);
	FD_AUTO mountpoint = open(view, O_PATH | O_NOFOLLOW | O_CLOEXEC);

	if (mountpoint >= 0) {
		fd_close(&mountpoint);
		(void)exr_state_dir_detach(view);
	}
	if (exr_cgroup_remove_recorded(cgroups, id, deadline_us) < 0)
		return;
	/* Twice: one interruption should not leave it to the next start. */
	for (int tries = 0; tries < 2; tries++)
		if (io_remove_tree(sessions_fd, id) == 0 &&
		    (unlinkat(sessions_fd, lock, 0) == 0 || errno == ENOENT))
			return;
}

typedef struct {
	char *id;
	int lock_fd;
} DeadSession;

static size_t find_dead(int sessions_fd, const char *sessions, DeadSession dead[static SWEEP_MAX])
{
	g_autoptr(GDir) dir = g_dir_open(sessions, 0, NULL);
	const char *name;
	size_t count = 0;

	while (dir && count < SWEEP_MAX && (name = g_dir_read_name(dir))) {
		FD_AUTO fd = -1;

		if (!g_str_has_prefix(name, "sandbox-") || !g_str_has_suffix(name, LOCK_SUFFIX))
			continue;
		fd = openat(sessions_fd, name, O_RDWR | O_NOFOLLOW | O_CLOEXEC);
		if (fd < 0 || flock(fd, LOCK_EX | LOCK_NB) != 0)
			continue;
		dead[count].id = g_strndup(name, strlen(name) - strlen(LOCK_SUFFIX));
		dead[count].lock_fd = fd_steal(&fd);
		count++;
	}
	return count;
}

/* Makes and locks the lock file, then the directory. */
static int make_locked(ExrStateDir *dir)
{
	g_autofree char *lock = g_strconcat(dir->id, LOCK_SUFFIX, NULL);
	FD_AUTO fd = openat(dir->sessions_fd, lock,
			    O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);

	if (fd < 0)
		return -errno;
	if (flock(fd, LOCK_EX | LOCK_NB) != 0) {
		int r = -errno;

		(void)unlinkat(dir->sessions_fd, lock, 0);
		return r;
	}
	dir->lock_fd = fd_steal(&fd);
	return mkdirat(dir->sessions_fd, dir->id, 0700) != 0 ? -errno : 0;
}

/* A directory that the sandbox's user owns. mode goes past the umask. */
static int make_given(int session_fd, const char *name, mode_t mode, const ExrIdentity *identity)
{
	FD_AUTO fd = -1;

	if (mkdirat(session_fd, name, 0700) != 0)
		return -errno;
	fd = openat(session_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	if (identity->lent && fchown(fd, identity->outside_uid, identity->outside_gid) != 0)
		return -errno;
	return fchmod(fd, mode) != 0 ? -errno : 0;
}

/* tmp and var-tmp look as they do everywhere; what keeps others out is the directory above. */
static int make_content(const ExrStateDir *dir, bool with_user, const ExrIdentity *identity)
{
	FD_AUTO session =
		openat(dir->sessions_fd, dir->id, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	int r;

	if (session < 0)
		return -errno;
	if ((r = make_given(session, "tmp", 01777, identity)) < 0 ||
	    (r = make_given(session, "var-tmp", 01777, identity)) < 0)
		return r;
	if (with_user)
		return make_given(session, "user", 0700, identity);
	return 0;
}

static int make(ExrStateDir *dir, const char *state, bool with_user, const ExrIdentity *identity)
{
	DeadSession dead[SWEEP_MAX];
	FD_AUTO common = -1;
	size_t dead_count;
	gint64 deadline_us;
	int r;

	if ((r = private_dir_ensure(state)) < 0 || (r = private_dir_ensure(dir->sessions)) < 0)
		return r;
	dir->sessions_fd = open(dir->sessions, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (dir->sessions_fd < 0)
		return -errno;
	if ((r = take_common_lock(state, &common)) < 0)
		return r;
	dead_count = find_dead(dir->sessions_fd, dir->sessions, dead);
	r = make_locked(dir);
	fd_close(&common);
	deadline_us = g_get_monotonic_time() + CGROUP_TIMEOUT_US;
	for (size_t i = 0; i < dead_count; i++) {
		remove_session(dir->sessions_fd, dir->sessions, dead[i].id, deadline_us);
		fd_close(&dead[i].lock_fd);
		g_free(dead[i].id);
	}
	return r < 0 ? r : make_content(dir, with_user, identity);
}

int exr_state_dir_new(const ExrIdentity *identity, bool with_user, ExrStateDir **ret_dir,
		      ExrError *reterr_error)
{
	g_autofree char *state = runtime_dir_state();
	g_autoptr(ExrStateDir) dir = g_new0(ExrStateDir, 1);
	int r;

	dir->sessions_fd = dir->lock_fd = -1;
	dir->root = g_strdup(state);
	dir->sessions = g_build_filename(state, "sessions", NULL);
	dir->id = exr_session_id_new();
	if (!dir->id)
		return set_error(reterr_error, -EIO, state);
	dir->path = g_build_filename(dir->sessions, dir->id, NULL);
	if (!g_path_is_absolute(state)) {
		r = set_error(reterr_error, -EINVAL, state);
		exr_error_set_known_hint(reterr_error);
		return r;
	}
	if ((r = make(dir, state, with_user, identity)) < 0) {
		r = set_error(reterr_error, r, state);
		exr_error_set_known_hint(reterr_error);
		return r;
	}
	*ret_dir = g_steal_pointer(&dir);
	return 0;
}

void exr_state_dir_free(ExrStateDir *dir)
{
	if (!dir)
		return;
	if (dir->lock_fd >= 0)
		remove_session(dir->sessions_fd, dir->sessions, dir->id,
			       g_get_monotonic_time() + CGROUP_TIMEOUT_US);
	fd_close(&dir->lock_fd);
	fd_close(&dir->sessions_fd);
	g_free(dir->path);
	g_free(dir->sessions);
	g_free(dir->root);
	g_free(dir->id);
	g_free(dir);
}

const char *exr_state_dir_id(const ExrStateDir *dir)
{
	return dir->id;
}

const char *exr_state_dir_path(const ExrStateDir *dir)
{
	return dir->path;
}

const char *exr_state_dir_root(const ExrStateDir *dir)
{
	return dir->root;
}

char *exr_state_dir_join(const ExrStateDir *dir, const char *name)
{
	return g_build_filename(dir->path, name, NULL);
}
