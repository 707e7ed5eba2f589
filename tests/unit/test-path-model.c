/* The path resolver against a model of a view (lib/path-model.h): ten thousand small random trees with random mounts, and
 * paths in them that go up, through links, and to what is not there. Each form has to say of each path what the model
 * says, and mean the same object.
 *
 * Another seed: STELLA_TEST_SEED; more trees: STELLA_TEST_TREES. A failure names both, and the tree. */
#include "lib/path-model.h"

#include "common/errno-util.h"
#include "common/fd-util.h"
#include "common/path-resolver.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#define TREES	       10000
#define PATHS_PER_TREE 8
#define DEPTH	       4

typedef struct {
	GRand *random;
	Model *model;
	char *base; /* host directory that is the model's root */
	PathResolver *resolver;
} World;

static const char *const names[] = { "a", "b", "c", "d" };
/* Where mounts are, and where links and paths like to begin. */
static const char *const view_paths[] = { "/a",	  "/b",	    "/c",   "/a/b",
					  "/a/c", "/b/a/c", "/c/b", "/a/b/d" };

static int pick(World *world, int count)
{
	return g_rand_int_range(world->random, 0, count);
}

static bool chance(World *world, int percent)
{
	return pick(world, 100) < percent;
}

/* --- making one up --- */

static void append_names(World *world, GString *out, int count)
{
	for (int i = 0; i < count; i++) {
		int what = pick(world, 10);

		if (out->len > 0 && out->str[out->len - 1] != '/')
			g_string_append(out, chance(world, 5) ? "//" : "/");
		g_string_append(out, what < 7	 ? names[pick(world, G_N_ELEMENTS(names))]
				     : what == 7 ? "."
						 : "..");
	}
}

static char *make_up_path(World *world, int percent_absolute)
{
	GString *out = g_string_new(NULL);

	if (chance(world, percent_absolute)) {
		g_string_append(out, chance(world, 80)
					     ? view_paths[pick(world, G_N_ELEMENTS(view_paths))]
					     : "/");
		append_names(world, out, pick(world, 5));
	} else {
		append_names(world, out, 1 + pick(world, 4));
	}
	if (chance(world, 12))
		g_string_append_c(out, '/');
	return g_string_free(out, FALSE);
}

static char *make_up_target(World *world)
{
	if (chance(world, 5))
		return g_strconcat(world->base, "/", names[pick(world, G_N_ELEMENTS(names))], NULL);
	return make_up_path(world, 35);
}

static int depth_of(const ModelNode *node)
{
	return node->parent ? 1 + depth_of(node->parent) : 0;
}

static void collect(ModelNode *node, GPtrArray *all)
{
	g_ptr_array_add(all, node);
	for (guint i = 0; node->children && i < node->children->len; i++)
		collect(g_ptr_array_index(node->children, i), all);
}

/* One that is a directory, or no link; the root is always one. */
static ModelNode *pick_node(World *world, bool dirs_only)
{
	g_autoptr(GPtrArray) all = g_ptr_array_new();

	collect(world->model->root, all);
	for (;;) {
		ModelNode *node = g_ptr_array_index(all, pick(world, (int)all->len));

		if (node->type == S_IFDIR || (!dirs_only && node->type == S_IFREG))
			return node;
	}
}

static void make_up_tree(World *world)
{
	int count = 4 + pick(world, 12);

	for (int i = 0; i < count; i++) {
		ModelNode *parent = pick_node(world, true);
		const char *name = names[pick(world, G_N_ELEMENTS(names))];
		int what = pick(world, 100);
		g_autofree char *target = what >= 65 ? make_up_target(world) : NULL;

		if (depth_of(parent) < DEPTH && !model_find_child(parent, name))
			model_add_node(parent, name,
				       what < 45   ? S_IFDIR
				       : what < 65 ? S_IFREG
						   : S_IFLNK,
				       target);
	}
}

static bool is_below(const char *path, const char *above)
{
	size_t length = strlen(above);

	return strncmp(path, above, length) == 0 && (path[length] == '/' || path[length] == '\0');
}

/* Nothing is mounted twice at one place, nor below a file. */
static bool has_room(const Model *model, const char *view_path, const ModelNode *node)
{
	for (guint i = 0; i < model->mounts->len; i++) {
		const ModelMount *mount = g_ptr_array_index(model->mounts, i);

		if (strcmp(mount->view_path, view_path) == 0 ||
		    (mount->node->type == S_IFREG && is_below(view_path, mount->view_path)) ||
		    (node->type == S_IFREG && is_below(mount->view_path, view_path)))
			return false;
	}
	return true;
}

static void make_up_mounts(World *world)
{
	int count = 1 + pick(world, 4);

	for (int i = 0; i < count; i++) {
		const char *view_path = view_paths[pick(world, G_N_ELEMENTS(view_paths))];
		ModelNode *node = pick_node(world, i == 0);

		if (has_room(world->model, view_path, node))
			model_add_mount(world->model, view_path, node, chance(world, 60));
		if (i == 0)
			world->model->working_dir = g_strdup(view_path);
	}
	world->model->denies_links = chance(world, 10);
}

/* --- the same on the host --- */

static char *host_path(const World *world, const ModelNode *node)
{
	g_autofree char *below = model_node_path(node);

	return g_strconcat(world->base, below, NULL);
}

static void make_children(const World *world, const ModelNode *node)
{
	for (guint i = 0; node->children && i < node->children->len; i++) {
		const ModelNode *child = g_ptr_array_index(node->children, i);
		g_autofree char *path = host_path(world, child);
		int r = child->type == S_IFDIR	 ? mkdir(path, 0755)
			: child->type == S_IFREG ? mknod(path, S_IFREG | 0644, 0)
						 : symlink(child->target, path);

		assert_int_equal(r, 0);
		make_children(world, child);
	}
}

static void remove_children(const World *world, const ModelNode *node)
{
	for (guint i = 0; node->children && i < node->children->len; i++) {
		const ModelNode *child = g_ptr_array_index(node->children, i);
		g_autofree char *path = host_path(world, child);

		remove_children(world, child);
		assert_int_equal(remove(path), 0);
	}
}

static PathResolver *resolver_of(const World *world)
{
	g_autoptr(StellaPolicy) policy = policy_new_defaults();
	const GPtrArray *mounts = world->model->mounts;
	g_autofree char *message = NULL;
	PathResolver *resolver = NULL;
	ViewPlan *plan = NULL;

	for (guint i = 0; i < mounts->len; i++) {
		const ModelMount *mount = g_ptr_array_index(mounts, i);
		g_autofree char *path = host_path(world, mount->node);

		policy_add_mount(policy, path, mount->view_path,
				 mount->writable ? STELLA_MOUNT_READ_WRITE
						 : STELLA_MOUNT_READ_ONLY);
		if (i == 0)
			policy_set_path(&policy->workspace_root, path);
	}
	policy_set_path(&policy->working_dir, world->model->working_dir);
	policy->runtime = POLICY_RUNTIME_NONE;
	policy->symlinks =
		world->model->denies_links ? POLICY_SYMLINKS_DENY : POLICY_SYMLINKS_CONTAINED;
	if (policy_validate(policy, &message) < 0 ||
	    view_plan_new(policy, VIEW_FOR_HOST, &plan, &message) < 0 ||
	    path_resolver_new(plan, NULL, NULL, &resolver, &message) < 0)
		fail_msg("%s", message);
	return resolver;
}

/* --- comparing: NULL, or what differs, to be freed --- */

static bool is_same_object(const World *world, const ModelNode *node, int fd)
{
	g_autofree char *path = host_path(world, node);
	struct stat st, got;

	return fd >= 0 && lstat(path, &st) == 0 && fstat(fd, &got) == 0 &&
	       st.st_dev == got.st_dev && st.st_ino == got.st_ino;
}

static char *compare_places(const World *world, const ModelPlace *wanted, const PathPlace *got)
{
	if (strcmp(got->view_path, wanted->view_path) != 0)
		return g_strdup_printf("view path %s, wanted %s", got->view_path,
				       wanted->view_path);
	if (got->type != wanted->type)
		return g_strdup_printf("type %o, wanted %o", got->type, wanted->type);
	if (got->is_synthetic != wanted->own)
		return g_strdup_printf("%sthe view's own", got->is_synthetic ? "" : "not ");
	if ((bool)got->writable != wanted->writable)
		return g_strdup_printf("%swritable", got->writable ? "" : "not ");
	if (!wanted->absent && got->pinned != wanted->pinned)
		return g_strdup_printf("%spinned", got->pinned ? "" : "not ");
	if (!wanted->own &&
	    !is_same_object(world, wanted->node, wanted->absent ? got->parent_fd : got->fd))
		return g_strdup("another object");
	return NULL;
}

static char *compare_walk(const World *world, const char *path, bool keep_last)
{
	ModelPlace wanted = model_walk(world->model, path, keep_last, false);
	PathPlace got = { .fd = -1, .parent_fd = -1 };
	char *wrong = NULL;
	int r = path_resolver_walk(world->resolver, path, keep_last ? PATH_WALK_NOFOLLOW : 0, &got,
				   NULL);

	if (r != -wanted.errnum)
		wrong = g_strdup_printf("%s, wanted %s", errno_name(-r), errno_name(wanted.errnum));
	else if (r == 0)
		wrong = compare_places(world, &wanted, &got);
	if (r == 0)
		path_place_clear(&got);
	model_place_clear(&wanted);
	return wrong;
}

/* What was made is taken away again. */
static char *compare_made(const World *world, const ModelPlace *place, int fd)
{
	g_autofree char *dir = host_path(world, place->node);
	g_autofree char *path = g_strconcat(dir, strrchr(place->view_path, '/'), NULL);
	struct stat st, got;

	if (lstat(path, &st) != 0 || fstat(fd, &got) != 0 || st.st_ino != got.st_ino ||
	    st.st_dev != got.st_dev)
		return g_strdup("made elsewhere");
	assert_int_equal(unlink(path), 0);
	return NULL;
}

static char *compare_open(const World *world, const char *path, int flags)
{
	ModelPlace place = { .errnum = 0 };
	char *wrong = NULL;
	bool made;
	int errnum = model_open(world->model, path, flags, &place, &made);
	FD_AUTO fd = path_resolver_open(world->resolver, path, flags, 0644, NULL);

	if ((fd < 0 ? -fd : 0) != errnum)
		wrong = g_strdup_printf("%s, wanted %s", fd < 0 ? errno_name(-fd) : "opened",
					errnum ? errno_name(errnum) : "an fd");
	else if (fd >= 0 && made)
		wrong = compare_made(world, &place, fd);
	else if (fd >= 0 && !is_same_object(world, place.node, fd))
		wrong = g_strdup("another object");
	model_place_clear(&place);
	return wrong;
}

static const char *kind_name(PathProblemKind kind)
{
	switch (kind) {
	case PATH_PROBLEM_OUTSIDE_MOUNTS:
		return "outside";
	case PATH_PROBLEM_READ_ONLY:
		return "read-only";
	case PATH_PROBLEM_SYMLINK:
		return "link";
	case PATH_PROBLEM_IO:
		return "io";
	case PATH_PROBLEM_NONE:
	case PATH_PROBLEM_INVALID:
	case PATH_PROBLEM_NO_MOUNTS:
	case PATH_PROBLEM_REFUSED:
		break;
	}
	return "another problem";
}

/* asked: what the resolver is asked; path: as the model has it, or NULL: it is outside. */
static char *compare_strict(const World *world, const char *asked, const char *path, bool for_write)
{
	g_autofree char *view = NULL, *below = NULL, *host = NULL;
	PathProblem problem = { .reason = -1 };
	PathResolved resolved = { .host_path = NULL };
	const char *kind = "outside";
	char *wrong = NULL;
	int errnum =
		path ? model_resolve(world->model, path, for_write, &view, &below, &kind) : ENOENT;
	int r = path_resolver_resolve(world->resolver, asked, for_write, &resolved, &problem);

	host = g_strconcat(world->base, below, NULL);
	if (r != -errnum || (r < 0 && strcmp(kind_name(problem.kind), kind) != 0))
		wrong = g_strdup_printf("%s, %s, wanted %s, %s", errno_name(-r),
					r < 0 ? kind_name(problem.kind) : "", errno_name(errnum),
					errnum ? kind : "");
	else if (r == 0 && strcmp(resolved.view_path, view) != 0)
		wrong = g_strdup_printf("%s, wanted %s", resolved.view_path, view);
	else if (r == 0 && strcmp(resolved.host_path, host) != 0)
		wrong = g_strdup_printf("%s, wanted %s", resolved.host_path, host);
	path_resolved_clear(&resolved);
	path_problem_clear(&problem);
	return wrong;
}

/* Of the host tree: of what is outside it the model knows nothing. */
static char *make_up_host_path(World *world)
{
	for (;;) {
		char *path = make_up_path(world, 0);

		if (!strstr(path, ".."))
			return path;
		g_free(path);
	}
}

static char *compare_host_path(World *world, const char *path)
{
	g_autofree char *whole = g_strconcat(world->base, "/", path, NULL);
	g_autofree char *view_path = NULL;

	view_path = model_locate(world->model, path);
	if (view_path && g_str_has_suffix(path, "/")) {
		char *with_slash = g_strconcat(view_path, "/", NULL);

		g_free(view_path);
		view_path = with_slash;
	}
	return compare_strict(world, whole, view_path, chance(world, 50));
}

/* --- the test --- */

typedef struct {
	guint32 seed;
	int tree;
	World *world;
	const char *path;
} Where;

static void check(const Where *where, const char *what, char *take_wrong)
{
	g_autofree char *wrong = take_wrong;
	g_autofree char *text = NULL;

	if (!wrong)
		return;
	text = model_format(where->world->model);
	fail_msg("STELLA_TEST_SEED=%u, tree %d: \"%s\", %s: %s\n%s", where->seed, where->tree,
		 where->path, what, wrong, text);
}

static void check_path(const Where *where)
{
	static const int flags[] = {
		O_RDONLY,
		O_WRONLY,
		O_RDWR | O_TRUNC,
		O_RDONLY | O_TRUNC,
		O_WRONLY | O_APPEND,
		O_RDONLY | O_DIRECTORY,
		O_RDONLY | O_NOFOLLOW,
		O_PATH,
		O_PATH | O_NOFOLLOW,
		O_RDONLY | O_CREAT,
		O_WRONLY | O_CREAT,
		O_RDWR | O_CREAT | O_TRUNC,
		O_WRONLY | O_CREAT | O_EXCL,
		O_WRONLY | O_CREAT | O_NOFOLLOW,
	};
	World *world = where->world;
	g_autofree char *what = NULL;
	int flag = flags[pick(world, G_N_ELEMENTS(flags))];
	bool for_write = chance(world, 50);

	check(where, "walk", compare_walk(world, where->path, false));
	check(where, "walk, last link kept", compare_walk(world, where->path, true));
	what = g_strdup_printf("open %#o", (unsigned int)flag);
	check(where, what, compare_open(world, where->path, flag));
	check(where, for_write ? "string form, to write" : "string form",
	      compare_strict(world, where->path, where->path, for_write));
}

static void check_tree(World *world, guint32 seed, int tree)
{
	Where where = { seed, tree, world, NULL };
	g_autofree char *host = NULL;

	world->model = model_new();
	make_up_tree(world);
	make_up_mounts(world);
	make_children(world, world->model->root);
	world->resolver = resolver_of(world);
	for (int i = 0; i < PATHS_PER_TREE; i++) {
		g_autofree char *path = make_up_path(world, 75);

		where.path = path;
		check_path(&where);
	}
	host = make_up_host_path(world);
	where.path = host;
	check(&where, "string form of that host path", compare_host_path(world, host));
	path_resolver_unref(world->resolver);
	remove_children(world, world->model->root);
	model_free(world->model);
}

static guint64 number_from(const char *variable, guint64 otherwise)
{
	const char *text = g_getenv(variable);

	return text ? g_ascii_strtoull(text, NULL, 10) : otherwise;
}

static void resolver_and_model_agree(void **state)
{
	guint32 seed = (guint32)number_from("STELLA_TEST_SEED", 1);
	int trees = (int)number_from("STELLA_TEST_TREES", TREES);
	World world = { .random = g_rand_new_with_seed(seed) };

	(void)state;
	/* Half a million objects are made: in memory, where that can be had. */
	world.base = g_strdup("/dev/shm/test-path-model-XXXXXX");
	if (!g_mkdtemp(world.base)) {
		g_free(world.base);
		world.base = g_dir_make_tmp("test-path-model-XXXXXX", NULL);
	}
	assert_non_null(world.base);
	for (int tree = 0; tree < trees; tree++)
		check_tree(&world, seed, tree);
	assert_int_equal(rmdir(world.base), 0);
	g_free(world.base);
	g_rand_free(world.random);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(resolver_and_model_agree) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
