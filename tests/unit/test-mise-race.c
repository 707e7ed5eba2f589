/* mise: a tree is prepared while its agents change it, and by several callers at once. */
#include "unit/mise-fixture.h"

#include <pthread.h>
#include <stdatomic.h>

typedef struct {
	atomic_bool stop;
	int swaps, lost;
} Swapper;

/* What an agent can do while the host prepares its tree: directories become links to outside. */
static void *swap_for_links(void *data)
{
	static const char *const names[] = { "installs", "installs/node", "shims" };
	Swapper *swapper = data;
	g_autofree char *outside = g_build_filename(top, "outside", NULL);
	g_autofree char *aside = g_build_filename(top, USER, "aside", NULL);

	while (!atomic_load(&swapper->stop)) {
		for (size_t i = 0; i < G_N_ELEMENTS(names); i++) {
			g_autofree char *path = g_build_filename(user, names[i], NULL);

			if (rename(path, aside) == 0) {
				if (symlink(outside, path) == 0)
					swapper->swaps++;
				(void)unlink(path);
				(void)rename(aside, path);
			}
			(void)io_remove_tree(AT_FDCWD, aside);
		}
	}
	return NULL;
}

static void directories_swapped_for_links_meanwhile_lead_nowhere(void **state)
{
	Swapper swapper = { 0 };
	pthread_t thread;
	struct stat st;
	gint64 end = g_get_monotonic_time() + 400 * 1000;

	(void)state;
	assert_int_equal(chmod("outside", 0755), 0);
	make_link("/not/mise", "outside/shim");
	make_link("/nonexistent", "outside/node/dead");
	prepare(0);
	assert_int_equal(pthread_create(&thread, NULL, swap_for_links, &swapper), 0);
	while (g_get_monotonic_time() < end)
		(void)ensure_user_mise_home(home, user); /* may fail: that is not the question */
	atomic_store(&swapper.stop, true);
	pthread_join(thread, NULL);
	assert_true(swapper.swaps > 0);
	assert_link("outside/shim", "/not/mise");
	assert_link("outside/node/dead", "/nonexistent");
	assert_int_equal(stat("outside", &st), 0);
	assert_int_equal(st.st_mode & 07777, 0755);
	assert_int_equal(count_entries("outside"), 3); /* file, node, shim */
	assert_int_equal(type_of("outside/node/20.1.0"), 0);
	assert_int_equal(type_of("outside/gh"), 0);
	prepare(0);
	assert_link(USER "/installs/node/20.1.0", TO_SYSTEM "node/20.1.0");
}

static void *prepare_often(void *data)
{
	int *failed = data;

	for (int i = 0; i < 50; i++) {
		if (ensure_mise_shims(home, user) != 0)
			(*failed)++;
	}
	return NULL;
}

static void several_at_once_make_one_complete_tree(void **state)
{
	pthread_t threads[4];
	int failed[4] = { 0 };

	(void)state;
	for (int i = 0; i < 50; i++) {
		char version[64], shim[64];

		g_snprintf(version, sizeof version, "home/.mise-tools/installs/go/1.%d", i);
		g_snprintf(shim, sizeof shim, "home/.mise-tools/shims/go%d", i);
		make_dir(version);
		make_link("/abs/mise", shim);
	}
	for (int i = 0; i < 4; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, prepare_often, &failed[i]), 0);
	for (int i = 0; i < 4; i++)
		pthread_join(threads[i], NULL);
	for (int i = 0; i < 4; i++)
		assert_int_equal(failed[i], 0);
	for (int i = 0; i < 50; i++) {
		char version[64], target[64], shim[64];

		g_snprintf(version, sizeof version, USER "/installs/go/1.%d", i);
		g_snprintf(target, sizeof target, TO_SYSTEM "go/1.%d", i);
		g_snprintf(shim, sizeof shim, "home/.mise-tools/shims/go%d", i);
		assert_link(version, target);
		assert_link(shim, "../../bin/mise");
	}
	/* no temporary link is left */
	assert_int_equal(count_entries("home/.mise-tools/shims"), 50);
}

/* Puts a file in the place of a shim, as a user's own program, and takes it away again. */
static void *put_files_in_the_place_of_shims(void *data)
{
	Swapper *swapper = data;
	g_autofree char *path = g_build_filename(user, "shims/tool", NULL);
	g_autofree char *new = g_build_filename(user, "state/new", NULL);

	while (!atomic_load(&swapper->stop)) {
		struct stat st;
		int fd = open(new, O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0700);

		if (fd < 0 || rename(new, path) != 0)
			break;
		g_usleep(20);
		if (fstat(fd, &st) != 0 || st.st_nlink == 0)
			swapper->lost++;
		close(fd);
		swapper->swaps++;
		if (symlink("/abs/mise", new) != 0 || rename(new, path) != 0)
			break;
	}
	return NULL;
}

static void a_file_in_the_place_of_a_shim_is_not_lost(void **state)
{
	Swapper swapper = { 0 };
	gint64 end = g_get_monotonic_time() + 400 * 1000;
	pthread_t thread;

	(void)state;
	prepare(0);
	assert_int_equal(pthread_create(&thread, NULL, put_files_in_the_place_of_shims, &swapper),
			 0);
	while (g_get_monotonic_time() < end)
		(void)ensure_user_mise_home(home, user);
	atomic_store(&swapper.stop, true);
	pthread_join(thread, NULL);
	assert_true(swapper.swaps > 0);
	assert_int_equal(swapper.lost, 0);
	prepare(0);
	assert_link(USER "/shims/tool", TO_PROGRAM); /* it ended as a link */
}

/* What an administrator does meanwhile: tools and versions come and go, a version is exchanged for another. */
static void *change_the_system(void *data)
{
	Swapper *swapper = data;

	while (!atomic_load(&swapper->stop)) {
		if (g_mkdir_with_parents("home/.mise-tools/installs/new/1.0/bin", 0755) != 0)
			break;
		/* a shim may be there still, or again */
		if (symlink("./1.0", "home/.mise-tools/installs/new/latest") != 0 ||
		    (symlink("/abs/mise", "home/.mise-tools/shims/new") != 0 && errno != EEXIST))
			break;
		(void)g_rename("home/.mise-tools/installs/node/20.1.0",
			       "home/.mise-tools/installs/node/20.2.0");
		(void)g_rename("home/.mise-tools/installs/node/20.2.0",
			       "home/.mise-tools/installs/node/20.1.0");
		(void)io_remove_tree(AT_FDCWD, "home/.mise-tools/installs/new");
		(void)unlink("home/.mise-tools/shims/new");
		swapper->swaps++;
	}
	return NULL;
}

static void a_system_that_changes_meanwhile_is_no_error(void **state)
{
	Swapper swapper = { 0 };
	gint64 end = g_get_monotonic_time() + 400 * 1000;
	pthread_t thread;
	int calls = 0;

	(void)state;
	assert_int_equal(pthread_create(&thread, NULL, change_the_system, &swapper), 0);
	while (g_get_monotonic_time() < end || calls < 10) {
		int r = ensure_mise_shims(home, user);

		if (r != 0) {
			atomic_store(&swapper.stop, true);
			pthread_join(thread, NULL);
			fail_msg("call %d: %s", calls, g_strerror(-r));
		}
		calls++;
	}
	atomic_store(&swapper.stop, true);
	pthread_join(thread, NULL);
	assert_true(swapper.swaps > 0);
	prepare(0);
	assert_link(USER "/installs/node/20.1.0", TO_SYSTEM "node/20.1.0");
	assert_int_equal(type_of(USER "/installs/node/20.2.0"), 0);
	assert_int_equal(type_of(USER "/installs/new/1.0"), 0);
	assert_int_equal(type_of(USER "/installs/new/latest"), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TREE_TEST(directories_swapped_for_links_meanwhile_lead_nowhere),
		TREE_TEST(several_at_once_make_one_complete_tree),
		TREE_TEST(a_system_that_changes_meanwhile_is_no_error),
		TREE_TEST(a_file_in_the_place_of_a_shim_is_not_lost),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
