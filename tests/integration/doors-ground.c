/* The host side of a world of the table; see doors-ground.h. */
#include "integration/doors-ground.h"

#include "common/errno-util.h"
#include "common/io-util.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <cmocka.h>

#define NS_PER_S    INT64_C(1000000000)
#define FIRST_MTIME (1000000000 * NS_PER_S)

char *ground_path(const Ground *ground, const char *name)
{
	return g_build_filename(ground->host, name, NULL);
}

/* Also of a name that leaves no room for a temporary one beside it. */
static void put_content(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);

	assert_true(fd >= 0);
	assert_int_equal(io_write_all(fd, text, strlen(text)), 0);
	close(fd);
}

static void bind_at(Ground *ground, const char *source, const char *path)
{
	g_autofree char *from = ground_path(ground, source);

	assert_int_equal(mkdir(path, 0755), 0);
	assert_int_equal(mount(from, path, NULL, MS_BIND, NULL), 0);
	g_ptr_array_add(ground->binds, g_strdup(path));
}

/* One line of the tree: a letter, the path, and for some of them what it is made of. */
static void make_object(Ground *ground, const char *line)
{
	const char *const between = line[0] == 'l' ? " -> " : " = ";
	g_auto(GStrv) parts = g_strsplit(line + 2, between, 2);
	g_autofree char *path = ground_path(ground, parts[0]);
	g_autofree char *parent = g_path_get_dirname(path);
	g_autofree char *text = g_strconcat("this is ", parts[0], NULL);
	g_autofree char *other = parts[1] ? ground_path(ground, parts[1]) : NULL;
	int r = g_mkdir_with_parents(parent, 0755);

	assert_int_equal(r, 0);
	switch (line[0]) {
	case 'd':
		r = g_mkdir_with_parents(path, 0755);
		break;
	case 'f':
		put_content(path, text);
		break;
	case 'x': /* a file that nobody may read */
		put_content(path, text);
		r = chmod(path, 0);
		break;
	case 'l':
		r = symlink(parts[1], path);
		break;
	case 'h':
		r = link(other, path);
		break;
	case 'p':
		r = mkfifo(path, 0644);
		break;
	case 's':
		r = mknod(path, S_IFSOCK | 0644, 0);
		break;
	case 'c':
		r = mknod(path, S_IFCHR | 0666, makedev(1, 3));
		break;
	case 'b':
		bind_at(ground, parts[1], path);
		break;
	default:
		fail_msg("tree: %s", line);
	}
	if (r != 0)
		fail_msg("tree: %s: %s", line, errno_text(errno));
}

static void set_mtime(const char *path, int64_t mtime)
{
	struct timespec times[2] = { { .tv_nsec = UTIME_OMIT } };

	times[1].tv_sec = mtime / NS_PER_S;
	times[1].tv_nsec = mtime % NS_PER_S;
	assert_int_equal(utimensat(AT_FDCWD, path, times, AT_SYMLINK_NOFOLLOW), 0);
}

static void stamp(Ground *ground, const char *path)
{
	struct dirent *entry;
	struct stat st;
	DIR *dir;

	assert_int_equal(lstat(path, &st), 0);
	if (S_ISDIR(st.st_mode)) {
		dir = opendir(path);
		assert_non_null(dir);
		while ((entry = readdir(dir))) {
			g_autofree char *child = g_build_filename(path, entry->d_name, NULL);

			if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
				stamp(ground, child);
		}
		closedir(dir);
	}
	set_mtime(path, ground->end_mtime++);
}

Ground *ground_new(const char *table, const char *name)
{
	Ground *ground = g_new0(Ground, 1);

	ground->view = view_fixture_new();
	view_fixture_mkdir(ground->view, "h");
	ground->host = view_fixture_path(ground->view, "h");
	ground->binds = g_ptr_array_new_with_free_func(g_free);
	ground->world = doors_table_read(table, name, ground->host);
	if (ground->world->needs_root && geteuid() != 0)
		return ground;
	for (char **line = ground->world->tree; *line; line++)
		make_object(ground, *line);
	ground->first_mtime = ground->end_mtime = FIRST_MTIME;
	stamp(ground, ground->host);
	ground->snapshot = tree_snapshot(ground->host);
	return ground;
}

void ground_free(Ground *ground)
{
	for (guint i = 0; i < ground->binds->len; i++)
		assert_int_equal(umount(g_ptr_array_index(ground->binds, i)), 0);
	g_ptr_array_unref(ground->binds);
	view_fixture_free(ground->view);
	world_free(ground->world);
	g_free(ground->host);
	g_free(ground->snapshot);
	g_free(ground->content);
	g_free(ground);
}

/* "rw HOST:VIEW", "ro HOST:VIEW", with a question mark behind the access when it is optional. */
static void add_mount(const Ground *ground, const char *line, StellaPolicy *policy)
{
	g_auto(GStrv) words = g_strsplit(line, " ", 2);
	g_auto(GStrv) paths = g_strsplit(words[1], ":", 2);
	g_autofree char *host = ground_path(ground, paths[0]);
	PolicyMount *mount = policy_add_mount(policy, host, paths[1],
					      words[0][1] == 'w' ? STELLA_MOUNT_READ_WRITE
								 : STELLA_MOUNT_READ_ONLY);

	mount->optional = words[0][2] == '?';
}

StellaPolicy *ground_policy(const Ground *ground, PolicyRuntime runtime)
{
	const char *build = g_getenv("STELLA_TEST_BUILD");
	g_autofree char *probe =
		g_build_filename(build ? build : "", "tests/integration/doors-probe", NULL);
	const World *world = ground->world;
	StellaPolicy *policy = policy_new_defaults();

	assert_non_null(build);
	policy_set_path(&policy->working_dir,
			world->working_dir ? world->working_dir : "/workspace");
	policy_set_path(&policy->workspace_root, policy->working_dir);
	for (char **line = world->mounts; *line; line++)
		add_mount(ground, *line, policy);
	policy_add_mount(policy, probe, "/doors-probe", STELLA_MOUNT_READ_ONLY);
	policy->runtime = runtime;
	policy->cache = POLICY_CACHE_STRICT;
	policy->symlinks = world->denies_links ? POLICY_SYMLINKS_DENY : POLICY_SYMLINKS_CONTAINED;
	return policy;
}

void ground_remember(Ground *ground, const Want *want)
{
	g_autofree char *path = want->path ? ground_path(ground, want->path) : NULL;

	g_clear_pointer(&ground->content, g_free);
	ground->existed = path && lstat(path, &ground->st) == 0;
	if (ground->existed && S_ISREG(ground->st.st_mode))
		g_file_get_contents(path, &ground->content, NULL, NULL);
	if (want->kind == WANT_OBJECT && !ground->existed)
		fail_msg("the table is wrong: there is no %s", want->path);
	if (want->kind == WANT_NEW && ground->existed)
		fail_msg("the table is wrong: there is %s already", want->path);
}

static bool can_read(const Vector *vector)
{
	return !(vector->flags & O_PATH) && (vector->flags & O_ACCMODE) != O_WRONLY;
}

static bool can_write(const Vector *vector)
{
	return !(vector->flags & O_PATH) && (vector->flags & O_ACCMODE) != O_RDONLY;
}

/* What a file has to hold at the time of the look. */
static const char *content_at_look(const Ground *ground, const Vector *vector)
{
	return (vector->flags & O_TRUNC) || !ground->content ? "" : ground->content;
}

/* And afterwards. */
static char *content_at_end(const Ground *ground, const Vector *vector)
{
	const char *was = content_at_look(ground, vector);

	if (!can_write(vector))
		return g_strdup(was);
	if (vector->flags & O_APPEND)
		return g_strconcat(was, DOOR_TEXT, NULL);
	return g_strconcat(DOOR_TEXT,
			   strlen(was) > strlen(DOOR_TEXT) ? was + strlen(DOOR_TEXT) : "", NULL);
}

/* Whether it is the host's object `now`, as far as that can be seen from where the answer is from. */
static const char *compare_identity(const Ground *ground, const Vector *vector, Door door,
				    const DoorAnswer *answer, const struct stat *now)
{
	int64_t mtime = ground->st.st_mtim.tv_sec * NS_PER_S + ground->st.st_mtim.tv_nsec;

	if ((answer->mode & S_IFMT) != (now->st_mode & S_IFMT))
		return "an object of another kind";
	if (door == DOOR_RESOLVER && answer->dev != now->st_dev)
		return "an object of another device";
	if ((door == DOOR_RESOLVER || !ground->world->odd_inodes) && answer->ino != now->st_ino)
		return "another object, by its inode";
	if (ground->existed && !(vector->flags & O_TRUNC) && answer->mtime != mtime)
		return "another object, by its time";
	return NULL;
}

static const char *compare_content(const Ground *ground, const Vector *vector,
				   const DoorAnswer *answer, const char *path)
{
	g_autofree char *wanted = content_at_end(ground, vector);
	g_autofree char *content = NULL;
	const char *shown = content_at_look(ground, vector);

	if (answer->write_errnum != 0)
		return errno_name(answer->write_errnum);
	if (can_read(vector) && (answer->content_size != (int)strlen(shown) ||
				 memcmp(answer->content, shown, strlen(shown)) != 0))
		return "other content";
	if ((can_read(vector) || can_write(vector)) &&
	    (!g_file_get_contents(path, &content, NULL, NULL) || strcmp(content, wanted) != 0))
		return "other content on the host";
	return NULL;
}

/* Puts back what was changed as it should be, its time and its directory's included. */
static void put_back(Ground *ground, const Want *want, const Vector *vector, const char *path)
{
	g_autofree char *parent = g_path_get_dirname(path);
	int64_t mtime = ground->st.st_mtim.tv_sec * NS_PER_S + ground->st.st_mtim.tv_nsec;

	if (want->kind == WANT_NEW) {
		assert_int_equal(unlink(path), 0);
		set_mtime(parent, ground->end_mtime++);
	} else if (S_ISREG(ground->st.st_mode) &&
		   (can_write(vector) || (vector->flags & O_TRUNC))) {
		put_content(path, ground->content);
		set_mtime(path, mtime);
	}
	g_free(ground->snapshot);
	ground->snapshot = tree_snapshot(ground->host);
}

static const char *judge_object(Ground *ground, const Vector *vector, const Want *want, Door door,
				const DoorAnswer *answer)
{
	g_autofree char *path = ground_path(ground, want->path);
	const char *wrong;
	struct stat now;

	if (answer->errnum != 0)
		return errno_name(answer->errnum);
	if (lstat(path, &now) != 0)
		return "an object that is not on the host";
	wrong = compare_identity(ground, vector, door, answer, &now);
	if (!wrong && S_ISREG(now.st_mode))
		wrong = compare_content(ground, vector, answer, path);
	if (!wrong)
		put_back(ground, want, vector, path);
	return wrong;
}

static const char *judge(Ground *ground, const Vector *vector, Door door, const DoorAnswer *answer)
{
	const Want *want = &vector->want[door];

	switch (want->kind) {
	case WANT_ERROR:
		if (answer->errnum == want->errnum)
			return NULL;
		return answer->errnum ? errno_name(answer->errnum) : "it was allowed";
	case WANT_OWN:
		if (answer->errnum != 0)
			return errno_name(answer->errnum);
		return answer->mtime >= ground->first_mtime && answer->mtime < ground->end_mtime
			       ? "an object of the host tree"
			       : NULL;
	case WANT_OBJECT:
	case WANT_NEW:
		return judge_object(ground, vector, want, door, answer);
	case WANT_SKIP:
		break;
	}
	return NULL;
}

char *ground_judge(Ground *ground, const Vector *vector, Door door, const DoorAnswer *answer)
{
	const char *wrong = judge(ground, vector, door, answer);
	g_autofree char *after = tree_snapshot(ground->host);

	if (strcmp(after, ground->snapshot) != 0) {
		g_free(ground->snapshot);
		ground->snapshot = g_steal_pointer(&after);
		return g_strdup_printf("%s; the host tree has changed", wrong ? wrong : "right");
	}
	return g_strdup(wrong);
}
