/* The rules of cgroup version 2 about who may have limited children; see cgroup.h.
 *
 * A cgroup that is not the hierarchy's root and hands out controllers to its children holds no process itself. So our
 * own, which we are in, has to be left first:
 *   - when we are its only process, we move to a child of it, EXR_CGROUP_LEAF. That changes no limit that
 *     is on us, and is how a scope of our own is used (systemd-run --user --scope -p Delegate=yes);
 *   - when we are in a leaf already, because we moved there, or because our service manager or our host put us in one
 *     (systemd's DelegateSubgroup=, a child of that name), sessions' cgroups are made beside it, provided that the leaf
 *     has no limit of its own, which they would escape;
 *   - when other processes are in it, nothing is done: they are not ours to move.
 * Controllers are enabled where we may, and never in a cgroup with processes: that would make its children unusable. */
#include "executor/cgroup-internal.h"

#include "common/errno-util.h"
#include "common/fd-util.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

static bool file_has_word(int dir_fd, const char *file, const char *word)
{
	g_autofree char *text = cgroup_read_text(dir_fd, file, NULL);
	g_auto(GStrv) words = g_strsplit_set(text ? text : "", " \n", -1);

	return g_strv_contains((const char *const *)words, word);
}

/* A file without a limit says "max"; one that is not there limits nothing. */
static bool has_no_limits(int dir_fd)
{
	static const char *const files[] = { "memory.max", "memory.high", "memory.swap.max",
					     "pids.max", "cpu.max" };

	for (size_t i = 0; i < G_N_ELEMENTS(files); i++) {
		g_autofree char *text = cgroup_read_text(dir_fd, files[i], NULL);

		if (text && !g_str_has_prefix(text, "max"))
			return false;
	}
	return true;
}

/* What systemd marks a cgroup with that it has given away, and will not touch below. */
static bool is_delegated(int dir_fd)
{
	char value[2];

	return fgetxattr(dir_fd, "user.delegate", value, sizeof value) == 1 && value[0] == '1';
}

/* Goes from a leaf to the cgroup that it divides. */
static void leave_leaf(ExrCgroup *own)
{
	g_autofree char *name = g_path_get_basename(own->path);
	FD_AUTO parent = openat(own->fd, "..", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	if (parent < 0 || !cgroup_is_cgroup(parent, 2) || !has_no_limits(own->fd))
		return;
	if (strcmp(name, EXR_CGROUP_LEAF) != 0 && !is_delegated(parent))
		return;
	g_free(name);
	name = g_path_get_dirname(own->path);
	g_free(own->path);
	own->path = g_steal_pointer(&name);
	fd_close(&own->fd);
	own->fd = fd_steal(&parent);
}

typedef enum { NOBODY, ONLY_US, OTHERS } Population;

static Population population(int dir_fd)
{
	g_autofree char *text = cgroup_read_text(dir_fd, "cgroup.procs", NULL);
	g_autofree char *us = g_strdup_printf("%d\n", (int)getpid());

	if (!text)
		return OTHERS;
	return text[0] == '\0' ? NOBODY : strcmp(text, us) == 0 ? ONLY_US : OTHERS;
}

static int move_us(int dir_fd, const char *file)
{
	g_autofree char *us = g_strdup_printf("%d", (int)getpid());

	return cgroup_write_text(dir_fd, file, us);
}

static int enable(const ExrCgroup *own, const char *controller)
{
	g_autofree char *text = g_strconcat("+", controller, NULL);

	if (file_has_word(own->fd, "cgroup.subtree_control", controller))
		return 0;
	return cgroup_write_text(own->fd, "cgroup.subtree_control", text);
}

static int move_and_enable(const ExrCgroup *own, const char *controller)
{
	int r;

	if (mkdirat(own->fd, EXR_CGROUP_LEAF, 0755) != 0 && errno != EEXIST)
		return -errno;
	r = move_us(own->fd, EXR_CGROUP_LEAF "/cgroup.procs");
	if (r == 0 && (r = enable(own, controller)) < 0)
		(void)move_us(own->fd, "cgroup.procs");
	if (r < 0)
		(void)unlinkat(own->fd, EXR_CGROUP_LEAF, AT_REMOVEDIR);
	return r;
}

int cgroup_v2_check(const char *controller, ExrCgroup *own, bool *ret_have_to_move,
		    char **reterr_reason)
{
	bool is_root;
	Population who;
	int r;

	leave_leaf(own);
	if (!file_has_word(own->fd, "cgroup.controllers", controller)) {
		*reterr_reason = g_strdup_printf(
			"\"%s\" was not given the cgroup controller \"%s\"", own->path, controller);
		return -EOPNOTSUPP;
	}
	/* Whoever moves a process needs this of the cgroup that both places are in. */
	if (faccessat(own->fd, "cgroup.procs", W_OK, AT_EACCESS) != 0) {
		r = -errno;
		*reterr_reason = g_strdup_printf("no processes may be moved in \"%s\": %s",
						 own->path, errno_text(-r));
		return r;
	}
	/* Only the root of the hierarchy has no type. */
	is_root = faccessat(own->fd, "cgroup.type", F_OK, 0) != 0 && errno == ENOENT;
	who = is_root ? NOBODY : population(own->fd);
	if (who == OTHERS) {
		*reterr_reason =
			g_strdup_printf("\"%s\" holds other processes too, so that nothing "
					"below it can be limited",
					own->path);
		return -EBUSY;
	}
	*ret_have_to_move = who == ONLY_US;
	return 0;
}

int cgroup_v2_prepare(const char *controller, ExrCgroup *own, char **reterr_reason)
{
	bool have_to_move;
	int r = cgroup_v2_check(controller, own, &have_to_move, reterr_reason);

	if (r < 0)
		return r;
	r = have_to_move ? move_and_enable(own, controller) : enable(own, controller);
	if (r < 0)
		*reterr_reason = g_strdup_printf("cannot enable the cgroup controller \"%s\" in "
						 "\"%s\": %s",
						 controller, own->path, errno_text(-r));
	return r;
}
