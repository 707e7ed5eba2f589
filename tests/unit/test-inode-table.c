/* inode-table: the kernel's lookups and our references, the bound on fds, and opening again by the hint. The
 * anchors here are plain directories; clones are the integration tests'. */
#include "fsgate/handle.h"
#include "fsgate/inode-table.h"

#include "common/fd-util.h"
#include "common/io-util.h"
#include "common/resolve.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#define BUDGET 8

typedef struct {
	char *path;
	FsgAnchor anchor;
	FsgNode root;
	FsgInodeTable *table;
} Fixture;

static int set_up(void **state)
{
	Fixture *f = g_new0(Fixture, 1);
	struct stat st;

	f->path = g_dir_make_tmp("stella-inodes-XXXXXX", NULL);
	assert_non_null(f->path);
	f->anchor.id = 1;
	f->anchor.is_dir = f->anchor.writable = true;
	f->anchor.fd = open(f->path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	assert_int_equal(fstat(f->anchor.fd, &st), 0);
	f->anchor.dev = st.st_dev;
	f->anchor.ino = st.st_ino;
	f->anchor.node = &f->root;
	f->root.kind = FSG_NODE_MOUNT;
	f->root.name = (char *)(uintptr_t) "";
	f->root.anchor = &f->anchor;
	f->root.children = g_ptr_array_new();
	f->table = fsg_inode_table_new(&f->root, BUDGET);
	*state = f;
	return 0;
}

static int tear_down(void **state)
{
	Fixture *f = *state;

	fsg_inode_table_free(f->table);
	g_ptr_array_unref(f->root.children);
	fd_close(&f->anchor.fd);
	assert_int_equal(io_remove_tree(AT_FDCWD, f->path), 0);
	g_free(f->path);
	g_free(f);
	return 0;
}

/* A lookup of the kernel's, as lookup.c does it. */
static FsgInode *look_up(Fixture *f, FsgInode *dir, const char *name)
{
	int dirfd = fsg_inode_get_fd(f->table, dir);
	int fd = resolve_child(dirfd, name, false);
	struct statx stx;

	fsg_inode_put_fd(f->table, dir);
	assert_true(fd >= 0);
	assert_int_equal(statx(fd, "", AT_EMPTY_PATH, FSG_STATX_MASK, &stx), 0);
	return fsg_inode_ensure(f->table, FSG_INODE_HOST, &f->anchor, &stx, dir, name, NULL, fd);
}

static void make_dir(const Fixture *f, const char *name)
{
	assert_int_equal(mkdirat(f->anchor.fd, name, 0755), 0);
}

static size_t inodes(Fixture *f)
{
	FsgInodeStats stats;

	fsg_inode_table_stats(f->table, &stats);
	return stats.inodes;
}

static void the_root_answers_to_its_fixed_id(void **state)
{
	Fixture *f = *state;

	assert_ptr_equal(fsg_inode_from_id(f->table, 1), f->root.inode);
	assert_int_equal(fsg_inode_id(f->table, f->root.inode), 1);
	assert_int_equal(fsg_inode_get_fd(f->table, f->root.inode), f->anchor.fd);
	fsg_inode_put_fd(f->table, f->root.inode);
}

static void hard_links_are_one_inode_and_lookups_add_up(void **state)
{
	Fixture *f = *state;
	FsgInode *a, *b;

	assert_int_equal(mknodat(f->anchor.fd, "a", S_IFREG | 0644, 0), 0);
	assert_int_equal(linkat(f->anchor.fd, "a", f->anchor.fd, "b", 0), 0);
	a = look_up(f, f->root.inode, "a");
	b = look_up(f, f->root.inode, "b");
	assert_ptr_equal(a, b);
	assert_int_equal(inodes(f), 1);
	fsg_inode_forget(f->table, a, 1);
	assert_int_equal(inodes(f), 1);
	fsg_inode_forget(f->table, a, 1);
	assert_int_equal(inodes(f), 0);
}

static void a_reference_of_ours_keeps_a_forgotten_inode(void **state)
{
	Fixture *f = *state;
	FsgInode *a;

	make_dir(f, "a");
	a = fsg_inode_ref(f->table, look_up(f, f->root.inode, "a"));
	fsg_inode_forget(f->table, a, 1);
	assert_int_equal(inodes(f), 1);
	fsg_inode_unref(f->table, a);
	assert_int_equal(inodes(f), 0);
}

static void forgetting_a_child_lets_its_parents_go(void **state)
{
	Fixture *f = *state;
	FsgInode *a, *b, *c;

	make_dir(f, "a");
	make_dir(f, "a/b");
	make_dir(f, "a/b/c");
	a = look_up(f, f->root.inode, "a");
	b = look_up(f, a, "b");
	c = look_up(f, b, "c");
	fsg_inode_forget(f->table, a, 1);
	fsg_inode_forget(f->table, b, 1);
	assert_int_equal(inodes(f), 3); /* c's hint needs them */
	fsg_inode_forget(f->table, c, 1);
	assert_int_equal(inodes(f), 0);
}

static void fds_stay_within_the_budget_and_come_back(void **state)
{
	Fixture *f = *state;
	FsgInode *dirs[4 * BUDGET];
	FsgInodeStats stats;
	char name[16];

	for (size_t i = 0; i < G_N_ELEMENTS(dirs); i++) {
		snprintf(name, sizeof name, "d%zu", i);
		make_dir(f, name);
		dirs[i] = look_up(f, f->root.inode, name);
		fsg_inode_table_stats(f->table, &stats);
		assert_true(stats.fds <= BUDGET);
	}
	for (size_t i = 0; i < G_N_ELEMENTS(dirs); i++) {
		struct stat st;
		int fd = fsg_inode_get_fd(f->table, dirs[i]);

		assert_true(fd >= 0);
		assert_int_equal(fstat(fd, &st), 0);
		assert_int_equal(st.st_ino, dirs[i]->key.ino);
		fsg_inode_put_fd(f->table, dirs[i]);
		fsg_inode_table_stats(f->table, &stats);
		assert_true(stats.fds <= BUDGET);
	}
	for (size_t i = 0; i < G_N_ELEMENTS(dirs); i++)
		fsg_inode_forget(f->table, dirs[i], 1);
	assert_int_equal(inodes(f), 0);
}

/* Pushes every fd that may go out of the cache. */
static void evict_all(Fixture *f)
{
	char name[16];

	for (int i = 0; i <= BUDGET; i++) {
		snprintf(name, sizeof name, "fill%d", i);
		make_dir(f, name);
		fsg_inode_ref(f->table, look_up(f, f->root.inode, name));
	}
}

static void a_deep_inode_is_opened_again_through_its_parents(void **state)
{
	Fixture *f = *state;
	FsgInode *inode = f->root.inode;
	FsgInode *chain[64];

	for (size_t i = 0; i < G_N_ELEMENTS(chain); i++) {
		int dirfd = fsg_inode_get_fd(f->table, inode);

		assert_int_equal(mkdirat(dirfd, "d", 0755), 0);
		fsg_inode_put_fd(f->table, inode);
		inode = chain[i] = look_up(f, inode, "d");
	}
	evict_all(f);
	assert_true(fsg_inode_get_fd(f->table, inode) >= 0);
	fsg_inode_put_fd(f->table, inode);
}

static void what_is_not_there_any_more_is_stale(void **state)
{
	Fixture *f = *state;
	FsgInode *moved, *replaced, *kept;

	make_dir(f, "moved");
	make_dir(f, "replaced");
	make_dir(f, "kept");
	moved = look_up(f, f->root.inode, "moved");
	replaced = look_up(f, f->root.inode, "replaced");
	kept = look_up(f, f->root.inode, "kept");
	evict_all(f);
	assert_int_equal(renameat(f->anchor.fd, "moved", f->anchor.fd, "elsewhere"), 0);
	assert_int_equal(renameat(f->anchor.fd, "replaced", f->anchor.fd, "aside"), 0);
	make_dir(f, "replaced");
	assert_int_equal(fsg_inode_get_fd(f->table, moved), -ESTALE);
	assert_int_equal(fsg_inode_get_fd(f->table, replaced), -ESTALE);
	assert_true(fsg_inode_get_fd(f->table, kept) >= 0);
	fsg_inode_put_fd(f->table, kept);
	/* A lookup by the new name, or news of the rename, sets it right. */
	fsg_inode_renamed(f->table, &moved->key, f->root.inode, "elsewhere");
	assert_true(fsg_inode_get_fd(f->table, moved) >= 0);
	fsg_inode_put_fd(f->table, moved);
}

static void a_link_in_the_place_of_a_directory_is_stale(void **state)
{
	Fixture *f = *state;
	FsgInode *dir;

	make_dir(f, "dir");
	dir = look_up(f, f->root.inode, "dir");
	evict_all(f);
	assert_int_equal(unlinkat(f->anchor.fd, "dir", AT_REMOVEDIR), 0);
	assert_int_equal(symlinkat("/etc", f->anchor.fd, "dir"), 0);
	assert_int_equal(fsg_inode_get_fd(f->table, dir), -ESTALE);
}

static void an_unlinked_inode_keeps_its_fd(void **state)
{
	Fixture *f = *state;
	FsgInode *file;
	int fd;

	assert_int_equal(mknodat(f->anchor.fd, "file", S_IFREG | 0644, 0), 0);
	file = look_up(f, f->root.inode, "file");
	fd = fsg_inode_get_fd(f->table, file);
	assert_int_equal(unlinkat(f->anchor.fd, "file", 0), 0);
	fsg_inode_unlinked(f->table, &file->key, fd_dup(fd));
	fsg_inode_put_fd(f->table, file);
	evict_all(f);
	assert_true(fsg_inode_get_fd(f->table, file) >= 0);
	fsg_inode_put_fd(f->table, file);
	fsg_inode_forget(f->table, file, 1);
}

/* What a file has open is another way to it. */
static void open_files_are_known_until_they_are_removed(void **state)
{
	Fixture *f = *state;
	FsgFile a = { .fd = open("/dev/null", O_RDONLY | O_CLOEXEC) };
	FsgFile b = { .fd = dup(a.fd) }, c = { .fd = dup(a.fd) };
	FsgFile *const order[] = { &b, &c, &a };
	FsgInode *file;

	assert_int_equal(mknodat(f->anchor.fd, "file", S_IFREG | 0644, 0), 0);
	file = look_up(f, f->root.inode, "file");
	assert_int_equal(fsg_inode_dup_file_fd(f->table, file), -1);
	fsg_inode_add_file(f->table, file, &a);
	fsg_inode_add_file(f->table, file, &b);
	fsg_inode_add_file(f->table, file, &c);
	for (size_t i = 0; i < G_N_ELEMENTS(order); i++) {
		FD_AUTO copy = fsg_inode_dup_file_fd(f->table, file);

		assert_true(copy >= 0);
		assert_true(fsg_inode_has_handles(f->table, file));
		fsg_inode_remove_file(f->table, file, order[i]);
		fd_close(&order[i]->fd);
	}
	assert_false(fsg_inode_has_handles(f->table, file));
	assert_int_equal(fsg_inode_dup_file_fd(f->table, file), -1);
	fsg_inode_forget(f->table, file, 1);
}

static void a_move_above_its_own_parent_makes_no_ring(void **state)
{
	Fixture *f = *state;
	FsgInode *a, *b;
	g_autofree char *path = NULL;

	make_dir(f, "a");
	make_dir(f, "a/b");
	a = look_up(f, f->root.inode, "a");
	b = look_up(f, a, "b");
	/* On the host: b comes up, and a goes below it. */
	assert_int_equal(renameat(f->anchor.fd, "a/b", f->anchor.fd, "b"), 0);
	assert_int_equal(renameat(f->anchor.fd, "a", f->anchor.fd, "b/a"), 0);
	assert_ptr_equal(look_up(f, b, "a"), a);
	path = fsg_inode_dup_path(f->table, a); /* ends */
	assert_non_null(path);
	assert_ptr_equal(look_up(f, f->root.inode, "b"), b);
	assert_ptr_equal(look_up(f, b, "a"), a);
}

static unsigned int count_watched(Fixture *f, uint64_t id)
{
	uint64_t ids[4];

	return fsg_inode_find_watched(f->table, id, false, ids, 4);
}

/* More than the index has buckets at first; two of them share an id. */
static void events_lead_to_each_inode_that_has_the_id(void **state)
{
	Fixture *f = *state;
	FsgInode *inodes[600];
	uint64_t ids[4];
	char name[16];

	for (unsigned int i = 0; i < 600; i++) {
		snprintf(name, sizeof name, "d%u", i);
		make_dir(f, name);
		inodes[i] = look_up(f, f->root.inode, name);
		fsg_inode_set_watch_id(f->table, inodes[i], i == 599 ? 1 : i + 1);
	}
	for (unsigned int i = 1; i < 599; i++) {
		assert_int_equal(fsg_inode_find_watched(f->table, i + 1, false, ids, 4), 1);
		assert_int_equal(ids[0], fsg_inode_id(f->table, inodes[i]));
	}
	assert_int_equal(count_watched(f, 1), 2);
	assert_int_equal(count_watched(f, 700), 0);
	assert_int_equal(count_watched(f, 0), 0);
	/* Who is forgotten by the kernel is found no more; nor who has another id. */
	fsg_inode_forget(f->table, inodes[0], 1);
	assert_int_equal(count_watched(f, 1), 1);
	fsg_inode_set_watch_id(f->table, inodes[599], 9000);
	assert_int_equal(count_watched(f, 1), 0);
	assert_int_equal(count_watched(f, 9000), 1);
	/* A directory is still watched where it has gone. */
	assert_int_equal(fsg_inode_find_watched(f->table, 9000, true, ids, 4), 1);
	assert_int_equal(count_watched(f, 9000), 1);
	for (unsigned int i = 1; i < 600; i++)
		fsg_inode_forget(f->table, inodes[i], 1);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		TEST(the_root_answers_to_its_fixed_id),
		TEST(hard_links_are_one_inode_and_lookups_add_up),
		TEST(a_reference_of_ours_keeps_a_forgotten_inode),
		TEST(forgetting_a_child_lets_its_parents_go),
		TEST(fds_stay_within_the_budget_and_come_back),
		TEST(a_deep_inode_is_opened_again_through_its_parents),
		TEST(what_is_not_there_any_more_is_stale),
		TEST(a_link_in_the_place_of_a_directory_is_stale),
		TEST(an_unlinked_inode_keeps_its_fd),
		TEST(open_files_are_known_until_they_are_removed),
		TEST(a_move_above_its_own_parent_makes_no_ring),
		cmocka_unit_test_setup_teardown(events_lead_to_each_inode_that_has_the_id, set_up,
						tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
