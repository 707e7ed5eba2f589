/* mise-home, mise-shims, mise-links: a user's tool tree is prepared on a tree that its agents write
 * to, and nothing outside it changes, whatever they put there. */
#include "unit/mise-fixture.h"

static void a_new_tree_has_the_structure_and_the_systems_installs(void **state)
{
	static const char *const dirs[] = {
		"", "/installs", "/shims", "/cache", "/state", "/config"
	};
	mode_t old = umask(0);

	(void)state;
	make_file("home/.mise-tools/installs/node/.mise.backend", "core:node\n");
	make_file("home/.mise-tools/installs/notes", "x");
	make_link("./gone", "home/.mise-tools/installs/node/dead");
	make_dir("home/.mise-tools/installs/empty");
	prepare(0);
	umask(old);
	for (size_t i = 0; i < G_N_ELEMENTS(dirs); i++) {
		g_autofree char *path = g_strconcat(USER, dirs[i], NULL);

		assert_private(path);
	}
	assert_link(USER "/installs/node/20.1.0", TO_SYSTEM "node/20.1.0");
	assert_link(USER "/installs/node/20", "./20.1.0"); /* mise's own alias stays one */
	assert_link(USER "/installs/gh/2.0", TO_SYSTEM "gh/2.0");
	/* the links hold: through them the installs are found */
	assert_int_equal(access(USER "/installs/node/20/bin", F_OK), 0);
	/* what is no install is not linked */
	assert_int_equal(type_of(USER "/installs/node/.mise.backend"), 0);
	assert_int_equal(type_of(USER "/installs/notes"), 0);
	assert_int_equal(type_of(USER "/installs/node/dead"), 0);
	assert_int_equal(type_of(USER "/installs/empty"), 0);
	assert_int_equal(rmdir(USER "/shims"), 0); /* empty on purpose */
}

static void a_second_call_changes_nothing(void **state)
{
	struct stat before, after;

	(void)state;
	make_dir(USER "/shims");
	make_link("/elsewhere/mise", USER "/shims/gh");
	prepare(0);
	assert_int_equal(lstat(USER "/installs/node", &before), 0);
	prepare(0);
	assert_int_equal(lstat(USER "/installs/node", &after), 0);
	assert_memory_equal(&before.st_mtim, &after.st_mtim, sizeof before.st_mtim);
	assert_int_equal(lstat(USER "/shims", &before), 0);
	prepare(0);
	assert_int_equal(lstat(USER "/shims", &after), 0);
	assert_memory_equal(&before.st_mtim, &after.st_mtim, sizeof before.st_mtim);
}

static void an_empty_dir_or_home_is_no_tree(void **state)
{
	(void)state;
	assert_int_equal(ensure_user_mise_home(home, ""), 0);
	assert_int_equal(type_of("home/users"), 0);
	assert_int_equal(ensure_user_mise_home("", user), 0);
	assert_private(USER "/installs");
	assert_int_equal(type_of(USER "/installs/node"), 0);
}

static void paths_that_cannot_be_a_tree_are_refused(void **state)
{
	g_autofree char *above = g_build_filename(home, "..", NULL);
	struct stat st;

	(void)state;
	assert_int_equal(chmod("home", 0755), 0);
	assert_int_equal(ensure_user_mise_home(home, "relative"), -EINVAL);
	assert_int_equal(ensure_user_mise_home("relative", user), -EINVAL);
	assert_int_equal(ensure_user_mise_home(home, home), -EINVAL);
	assert_int_equal(ensure_user_mise_home(home, above), -EINVAL);
	assert_int_equal(ensure_user_mise_home(home, "/"), -EINVAL);
	assert_int_equal(ensure_user_mise_home("", "/"), -EINVAL);
	assert_int_equal(stat("home", &st), 0);
	assert_int_equal(st.st_mode & 07777, 0755);
	assert_int_equal(type_of("relative"), 0);
}

static void the_users_own_installs_are_never_touched(void **state)
{
	(void)state;
	make_dir(USER "/installs/node/18.0.0/bin");
	make_dir(USER "/installs/node/20.1.0"); /* their own build of a system version */
	make_file(USER "/installs/node/20.1.0/own", "mine");
	make_file(USER "/installs/node/.mise.backend", "core:node\n");
	make_file(USER "/installs/gh-is-a-file-here", "x");
	make_link("./18.0.0", USER "/installs/node/18");
	make_link("18", USER "/installs/node/lts");
	assert_int_equal(chmod(USER "/installs/node", 0755), 0);
	prepare(0);
	assert_int_equal(type_of(USER "/installs/node/18.0.0/bin"), S_IFDIR);
	assert_int_equal(type_of(USER "/installs/node/20.1.0"), S_IFDIR);
	assert_int_equal(access(USER "/installs/node/20.1.0/own", F_OK), 0);
	assert_link(USER "/installs/node/18", "./18.0.0");
	assert_link(USER "/installs/node/lts", "18");
	assert_link(USER "/installs/node/20", "./20.1.0");
	assert_int_equal(type_of(USER "/installs/node/.mise.backend"), S_IFREG);
}

static void links_that_lead_nowhere_are_removed_and_others_stay(void **state)
{
	static const struct {
		const char *name, *target;
		bool stays;
	} cases[] = {
		{ "a", TO_SYSTEM "node/19.0.0", false },
		{ "b", "/nonexistent/x", false },
		{ "c", "./absent", false },
		{ "d", "d", false }, /* a circle */
		{ "e", "../../../../../../../../../../../../../../etc/shadow", false },
		{ "f", TO_SYSTEM "node/20.1.0/bin/absent", false },
		{ "g", "20.1.0/bin/absent", false },
		{ "h", "/opt/stella/.mise-tools/installs/node/19", false },
		{ "i", "b", false }, /* a link to a dead one */
		/* a host file that exists, but in no view: that it exists must not show */
		{ "j", "/etc/passwd", false },
		{ "k", "/proc/self", false },
		{ "A", TO_SYSTEM "node/20.1.0", true },
		{ "B", TO_SYSTEM "node/20/bin", true }, /* through an alias */
		{ "C", "A", true },
		{ "D", "/opt/stella/.mise-tools/installs/node/20.1.0", true },
		{ "E", "/opt/stella/users/u1/.mise-tools/installs/node", true },
		{ "F", "/workspace/node",
		  true }, /* mise link: what views mount is not known here */
		{ "G", "/user/node", true },
		{ "H", "/usr/lib/node", true },
		{ "I", "../../shims", true },
		{ "J", "E/A/bin", true },
	};

	(void)state;
	make_dir(USER "/installs/node");
	for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
		g_autofree char *path = g_strconcat(USER "/installs/node/", cases[i].name, NULL);

		make_link(cases[i].target, path);
	}
	prepare(0);
	for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
		g_autofree char *path = g_strconcat(USER "/installs/node/", cases[i].name, NULL);

		if ((type_of(path) == S_IFLNK) != cases[i].stays)
			fail_msg("%s -> %s", cases[i].name, cases[i].target);
	}
	/* the same with the host's own name of the home */
	{
		g_autofree char *live = g_build_filename(home, ".mise-tools/installs/gh/2.0", NULL);
		g_autofree char *dead = g_build_filename(home, ".mise-tools/installs/gh/9", NULL);

		make_link(live, USER "/installs/gh/live");
		make_link(dead, USER "/installs/gh/dead");
		prepare(0);
		assert_link(USER "/installs/gh/live", live);
		assert_int_equal(type_of(USER "/installs/gh/dead"), 0);
	}
}

static void aliases_are_moved_by_their_owner_and_other_links_are_installs(void **state)
{
	static const struct {
		const char *name, *target, *seeded;
	} cases[] = {
		{ "latest", "./20.1.0", "./20.1.0" },
		{ "lts", "20.1.0", TO_SYSTEM "node/lts" }, /* not mise's */
		{ "bin-of", "./20.1.0/bin", TO_SYSTEM "node/bin-of" },
		{ "up", "./..", TO_SYSTEM "node/up" },
		{ "other", "../gh/2.0", TO_SYSTEM "node/other" },
	};

	(void)state;
	for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
		g_autofree char *path =
			g_build_filename("home/.mise-tools/installs/node", cases[i].name, NULL);

		make_link(cases[i].target, path);
	}
	prepare(0);
	for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
		g_autofree char *path =
			g_build_filename(USER "/installs/node", cases[i].name, NULL);

		assert_link(path, cases[i].seeded);
		assert_int_equal(access(path, F_OK), 0);
	}
	/* as mise moves it when the user installs a newer one */
	make_dir(USER "/installs/node/20.9.0/bin");
	assert_int_equal(unlink(USER "/installs/node/20"), 0);
	make_link("./20.9.0", USER "/installs/node/20");
	prepare(0);
	assert_link(USER "/installs/node/20", "./20.9.0");
}

static void a_version_that_the_system_dropped_goes_and_a_new_one_comes(void **state)
{
	(void)state;
	prepare(0);
	assert_int_equal(g_rename("home/.mise-tools/installs/node/20.1.0",
				  "home/.mise-tools/installs/node/20.2.0"),
			 0);
	assert_int_equal(unlink("home/.mise-tools/installs/node/20"), 0);
	make_link("./20.2.0", "home/.mise-tools/installs/node/20");
	prepare(0);
	assert_int_equal(type_of(USER "/installs/node/20.1.0"), 0);
	assert_link(USER "/installs/node/20.2.0", TO_SYSTEM "node/20.2.0");
	assert_int_equal(access(USER "/installs/node/20/bin", F_OK), 0);
}

static void links_in_the_place_of_directories_are_replaced(void **state)
{
	static const char *const dirs[] = { "",	      "/installs", "/shims",	    "/cache",
					    "/state", "/config",   "/installs/node" };

	(void)state;
	make_dir("home/users/u1");
	assert_int_equal(chmod("outside", 0755), 0);
	for (size_t i = 0; i < G_N_ELEMENTS(dirs); i++) {
		g_autofree char *path = g_strconcat(USER, dirs[i], NULL);
		g_autofree char *outside = g_build_filename(top, "outside", NULL);
		struct stat st;

		assert_int_equal(io_remove_tree(AT_FDCWD, path), 0);
		make_link(outside, path);
		prepare(0);
		assert_private(path);
		assert_link(USER "/installs/node/20.1.0", TO_SYSTEM "node/20.1.0");
		assert_int_equal(stat("outside", &st), 0);
		assert_int_equal(st.st_mode & 07777, 0755);
		assert_int_equal(type_of("outside/shims"), 0);
		assert_int_equal(type_of("outside/installs"), 0);
		assert_int_equal(type_of("outside/node"), S_IFDIR);
		assert_int_equal(rmdir("outside/node"), 0); /* and still empty */
		make_dir("outside/node");
	}
}

static void a_file_in_the_place_of_a_directory_is_an_error_but_not_the_end(void **state)
{
	(void)state;
	make_dir(USER "/installs");
	make_file(USER "/cache", "x");
	make_file(USER "/installs/gh", "x");
	prepare(-ENOTDIR);
	assert_int_equal(type_of(USER "/cache"), S_IFREG);
	assert_int_equal(type_of(USER "/installs/gh"), S_IFREG);
	assert_private(USER "/config");
	assert_link(USER "/installs/node/20.1.0", TO_SYSTEM "node/20.1.0");
	assert_int_equal(unlink(USER "/cache"), 0);
	assert_int_equal(unlink(USER "/installs/gh"), 0);
	prepare(0);
	assert_link(USER "/installs/gh/2.0", TO_SYSTEM "gh/2.0");
}

static void a_link_above_the_tree_but_below_home_is_refused(void **state)
{
	(void)state;
	make_dir("home/users");
	make_link("../../outside", "home/users/u1");
	prepare(-ELOOP);
	assert_int_equal(type_of("outside/.mise-tools"), 0);
	assert_int_equal(unlink("home/users/u1"), 0);
	prepare(0);
}

static void a_tool_of_the_user_that_is_a_link_is_not_looked_through(void **state)
{
	(void)state;
	make_link("/nonexistent", "outside/node/dead");
	make_dir(USER "/installs");
	make_link("../../../../../outside/node", USER "/installs/own");
	prepare(0);
	assert_link("outside/node/dead", "/nonexistent");
	assert_link(USER "/installs/own", "../../../../../outside/node");
	assert_int_equal(unlink("outside/node/dead"), 0);
}

static void shims_of_both_trees_are_relinked(void **state)
{
	struct stat before, after;

	(void)state;
	make_dir(USER "/shims/dir");
	make_link("/usr/local/bin/mise", USER "/shims/node");
	make_link("../../../../../outside/file", USER "/shims/npm");
	make_link("dir", USER "/shims/to-dir");
	make_file(USER "/shims/script", "#!/bin/sh\n");
	make_link("/abs/mise", "home/.mise-tools/shims/gh");
	make_link("../../bin/mise", "home/.mise-tools/shims/right");
	make_file("home/.mise-tools/shims/script", "x");
	assert_int_equal(lstat("home/.mise-tools/shims/right", &before), 0);
	assert_int_equal(ensure_mise_shims(home, user), 0);
	assert_link(USER "/shims/node", TO_PROGRAM);
	assert_link(USER "/shims/npm", TO_PROGRAM);
	assert_link(USER "/shims/to-dir", TO_PROGRAM);
	assert_int_equal(type_of(USER "/shims/script"), S_IFREG);
	assert_int_equal(type_of(USER "/shims/dir"), S_IFDIR);
	assert_int_equal(access(USER "/shims/node", F_OK), 0);
	assert_link("home/.mise-tools/shims/gh", "../../bin/mise");
	assert_int_equal(type_of("home/.mise-tools/shims/script"), S_IFREG);
	assert_int_equal(lstat("home/.mise-tools/shims/right", &after), 0);
	assert_int_equal(before.st_ino, after.st_ino); /* a right one is not replaced */
	{
		g_autofree char *text = NULL;

		assert_true(g_file_get_contents("outside/file", &text, NULL, NULL));
		assert_string_equal(text, "untouched");
	}
}

static void shims_stay_without_the_program(void **state)
{
	(void)state;
	make_link("/abs/mise", "home/.mise-tools/shims/gh");
	make_dir(USER "/shims");
	make_link("/abs/mise", USER "/shims/gh");
	assert_int_equal(unlink("home/bin/mise"), 0);
	assert_int_equal(ensure_mise_shims(home, user), 0);
	assert_link("home/.mise-tools/shims/gh", "/abs/mise");
	assert_link(USER "/shims/gh", "/abs/mise");
	assert_int_equal(rmdir("home/bin"), 0);
	assert_int_equal(relink_system_mise_shims(home), 0);
	assert_link("home/.mise-tools/shims/gh", "/abs/mise");
	make_dir("home/bin");
	make_file("home/bin/mise", "x");
	assert_int_equal(relink_system_mise_shims(home), 0);
	assert_link("home/.mise-tools/shims/gh", "../../bin/mise");
}

static void a_home_without_tools_is_no_error(void **state)
{
	g_autofree char *absent = g_build_filename(top, "absent", NULL);

	(void)state;
	assert_int_equal(relink_system_mise_shims(""), 0);
	assert_int_equal(relink_system_mise_shims(absent), 0);
	assert_int_equal(relink_system_mise_shims("relative"), -EINVAL);
	assert_int_equal(io_remove_tree(AT_FDCWD, "home/.mise-tools"), 0);
	assert_int_equal(ensure_mise_shims(home, user), 0);
	assert_private(USER "/installs");
	assert_int_equal(ensure_mise_shims("", ""), 0);
}

static void a_link_in_the_systems_tree_is_not_followed(void **state)
{
	(void)state;
	assert_int_equal(rmdir("home/.mise-tools/shims"), 0);
	make_link("../../outside/node", "home/.mise-tools/shims");
	make_link("x", "outside/node/gh");
	assert_int_equal(relink_system_mise_shims(home), -ELOOP);
	assert_link("outside/node/gh", "x");
	assert_int_equal(unlink("outside/node/gh"), 0);
	/* and the user's tree is prepared all the same */
	assert_int_equal(ensure_mise_shims(home, user), -ELOOP);
	assert_link(USER "/installs/node/20.1.0", TO_SYSTEM "node/20.1.0");
}

static void temporary_links_of_a_killed_call_are_removed_once_old(void **state)
{
	static const struct timespec old[2] = { { .tv_sec = 1000000 }, { .tv_sec = 1000000 } };

	(void)state;
	make_link("x", "home/.mise-tools/shims/.stella-link-0123456789abcdef");
	make_link("x", "home/.mise-tools/shims/.stella-link-fedcba9876543210");
	assert_int_equal(utimensat(AT_FDCWD, "home/.mise-tools/shims/.stella-link-0123456789abcdef",
				   old, AT_SYMLINK_NOFOLLOW),
			 0);
	assert_int_equal(relink_system_mise_shims(home), 0);
	assert_int_equal(type_of("home/.mise-tools/shims/.stella-link-0123456789abcdef"), 0);
	assert_link("home/.mise-tools/shims/.stella-link-fedcba9876543210", "x");
}

static void a_tree_outside_its_home_is_linked_by_real_paths(void **state)
{
	g_autofree char *apart = g_build_filename(top, "link-to-apart/u1", NULL);

	(void)state;
	make_dir("a/b/c");
	make_link("a/b/c", "link-to-apart");
	assert_int_equal(ensure_user_mise_home(home, apart), 0);
	assert_link("a/b/c/u1/installs/gh/2.0",
		    "../../../../../../home/.mise-tools/installs/gh/2.0");
	assert_int_equal(access("a/b/c/u1/installs/gh/2.0", F_OK), 0);
}

static void a_tree_keeps_its_owner(void **state)
{
	struct stat st;

	(void)state;
	if (geteuid() != 0)
		return; /* nobody else can give a tree away */
	make_dir(USER);
	assert_int_equal(chown(USER, 1234, 4321), 0);
	prepare(0);
	assert_int_equal(lstat(USER "/installs", &st), 0);
	assert_int_equal(st.st_uid, 1234);
	assert_int_equal(st.st_gid, 4321);
	assert_int_equal(lstat(USER "/installs/node", &st), 0);
	assert_int_equal(st.st_uid, 1234);
	assert_int_equal(chown(USER "/state", 1235, 4321), 0);
	prepare(-EPERM);
}

static void a_tree_beyond_the_cap_is_said_and_still_seeded(void **state)
{
	(void)state;
	make_dir(USER "/shims");
	for (int i = 0; i < MISE_TREE_ENTRIES_MAX + 1; i++) {
		char name[64];

		g_snprintf(name, sizeof name, USER "/shims/%d", i);
		assert_int_equal(link("outside/file", name), 0); /* no new file each: faster */
	}
	prepare(-E2BIG);
	assert_link(USER "/installs/node/20.1.0", TO_SYSTEM "node/20.1.0");
}

/* Links that lead over thirty-nine others, each at the end of a path of five hundred names. */
static void make_long_ways(int count)
{
	g_autoptr(GString) target = g_string_new("../deep");
	int at;

	make_dir(USER "/installs/ways");
	make_dir(USER "/installs/deep");
	at = open(USER "/installs/deep", O_PATH | O_CLOEXEC);
	for (int i = 0; i < 500; i++) {
		int next;

		assert_int_equal(mkdirat(at, "d", 0700), 0);
		next = openat(at, "d", O_PATH | O_CLOEXEC);
		assert_true(next >= 0);
		close(at);
		at = next;
		g_string_append(target, "/d");
	}
	for (int i = 1; i < 39; i++) {
		char name[16], to[16];

		g_snprintf(name, sizeof name, "L%d", i);
		g_snprintf(to, sizeof to, "L%d", i + 1);
		assert_int_equal(symlinkat(to, at, name), 0);
	}
	assert_int_equal(mkdirat(at, "L39", 0700), 0);
	close(at);
	g_string_append(target, "/L1");
	for (int i = 0; i < count; i++) {
		g_autofree char *path = g_strdup_printf(USER "/installs/ways/%d", i);

		make_link(target->str, path);
	}
}

static void long_ways_are_not_all_gone(void **state)
{
	(void)state;
	make_long_ways(1);
	make_link("absent", USER "/installs/ways/dead");
	prepare(0);
	assert_int_equal(type_of(USER "/installs/ways/0"), S_IFLNK); /* it leads to a directory */
	assert_int_equal(type_of(USER "/installs/ways/dead"), 0);
	for (int i = 1; i < 30; i++) {
		g_autofree char *path = g_strdup_printf(USER "/installs/ways/%d", i);

		assert_int_equal(link(USER "/installs/ways/0", path), 0);
	}
	make_link("/abs/mise", USER "/shims/gh");
	make_dir("home/.mise-tools/installs/node/24.0.0");
	prepare(-E2BIG);
	assert_int_equal(count_entries(USER "/installs/ways"), 30);
	/* the rest is done */
	assert_link(USER "/installs/node/24.0.0", TO_SYSTEM "node/24.0.0");
	assert_link(USER "/shims/gh", TO_PROGRAM);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TREE_TEST(a_new_tree_has_the_structure_and_the_systems_installs),
		TREE_TEST(a_second_call_changes_nothing),
		TREE_TEST(an_empty_dir_or_home_is_no_tree),
		TREE_TEST(paths_that_cannot_be_a_tree_are_refused),
		TREE_TEST(the_users_own_installs_are_never_touched),
		TREE_TEST(links_that_lead_nowhere_are_removed_and_others_stay),
		TREE_TEST(aliases_are_moved_by_their_owner_and_other_links_are_installs),
		TREE_TEST(a_version_that_the_system_dropped_goes_and_a_new_one_comes),
		TREE_TEST(links_in_the_place_of_directories_are_replaced),
		TREE_TEST(a_file_in_the_place_of_a_directory_is_an_error_but_not_the_end),
		TREE_TEST(a_link_above_the_tree_but_below_home_is_refused),
		TREE_TEST(a_tool_of_the_user_that_is_a_link_is_not_looked_through),
		TREE_TEST(shims_of_both_trees_are_relinked),
		TREE_TEST(shims_stay_without_the_program),
		TREE_TEST(a_home_without_tools_is_no_error),
		TREE_TEST(a_link_in_the_systems_tree_is_not_followed),
		TREE_TEST(temporary_links_of_a_killed_call_are_removed_once_old),
		TREE_TEST(a_tree_outside_its_home_is_linked_by_real_paths),
		TREE_TEST(a_tree_keeps_its_owner),
		TREE_TEST(a_tree_beyond_the_cap_is_said_and_still_seeded),
		TREE_TEST(long_ways_are_not_all_gone),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
