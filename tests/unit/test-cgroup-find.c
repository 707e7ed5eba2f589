/* cgroup-find: where our own cgroup is, by the texts of machines of both versions, mixed ones, and
 * containers in all their nestings. */
#include "executor/cgroup-find.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#define HEAD                                                                                       \
	"22 1 254:0 / / rw,relatime shared:1 - ext4 /dev/vda rw\n"                                 \
	"30 22 0:27 / /sys/fs/cgroup rw,relatime - tmpfs tmpfs rw,mode=755\n"
#define V1_MEMORY                                                                                  \
	"34 30 0:31 / /sys/fs/cgroup/memory rw,relatime shared:7 master:2 - cgroup cgroup "        \
	"rw,memory\n"
#define V1_PIDS	   "38 30 0:35 / /sys/fs/cgroup/pids rw,relatime - cgroup cgroup rw,pids\n"
#define V2_UNIFIED "40 30 0:37 / /sys/fs/cgroup/unified rw,relatime - cgroup2 cgroup2 rw\n"
#define V2	   "30 23 0:26 / /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw,nsdelegate\n"

typedef struct {
	const char *cgroup;
	const char *mountinfo;
	const char *controller;
	int version;
	const char *dirs; /* joined by blanks */
} Row;

static void check(const Row *row)
{
	ExrCgroupPlace place;
	g_autofree char *dirs = NULL;

	exr_cgroup_find(row->cgroup, row->mountinfo, row->controller, &place);
	dirs = g_strjoinv(" ", place.dirs);
	assert_int_equal(place.version, row->version);
	assert_string_equal(dirs, row->dirs);
	exr_cgroup_place_clear(&place);
	assert_null(place.dirs);
}

static void check_all(const Row *rows, size_t count)
{
	for (size_t i = 0; i < count; i++)
		check(&rows[i]);
}

static void version_1_has_a_hierarchy_for_each_controller(void **state)
{
	static const char own[] = "8:pids:/user.slice\n4:memory:/a/b:c d\n0::/\n";
	static const Row rows[] = {
		{ own, HEAD V1_MEMORY V1_PIDS V2_UNIFIED, "memory", 1,
		  "/sys/fs/cgroup/memory/a/b:c d" },
		{ own, HEAD V1_MEMORY V1_PIDS V2_UNIFIED, "pids", 1,
		  "/sys/fs/cgroup/pids/user.slice" },
		/* mounted together */
		{ "3:pids,memory:/x\n",
		  HEAD "41 30 0:40 / /cg/both rw - cgroup none rw,memory,pids\n", "pids", 1,
		  "/cg/both/x" },
		/* another's name is not the controller's */
		{ "3:memory_x:/x\n1:name=memory:/\n0::/y\n", HEAD V2, "memory", 2,
		  "/sys/fs/cgroup/y" },
		{ "3:memory:/x\n", HEAD "41 30 0:40 / /cg rw - cgroup none rw,name=memory\n",
		  "memory", 1, "" },
	};

	check_all(rows, G_N_ELEMENTS(rows));
	(void)state;
}

static void version_2_has_one_for_all(void **state)
{
	static const Row rows[] = {
		{ "0::/user.slice/user-1000.slice/user@1000.service/app.slice/run-1.scope\n",
		  HEAD V2, "memory", 2,
		  "/sys/fs/cgroup/user.slice/user-1000.slice/user@1000.service/app.slice/"
		  "run-1.scope" },
		{ "0::/\n", HEAD V2, "pids", 2, "/sys/fs/cgroup" },
		{ "0::/a", HEAD "9 1 0:9 / / rw - cgroup2 none rw\n", "pids", 2, "/a" },
		/* ours has gone meanwhile: the name is the kernel's, and opening it will fail */
		{ "0::/x (deleted)\n", HEAD V2, "pids", 2, "/sys/fs/cgroup/x (deleted)" },
	};

	check_all(rows, G_N_ELEMENTS(rows));
	(void)state;
}

/* systemd's hybrid: version 2 exists beside, without the controllers that version 1 has. */
static void a_controller_of_version_1_is_not_looked_for_in_version_2(void **state)
{
	static const Row rows[] = {
		{ "4:memory:/m\n0::/u\n", HEAD V1_MEMORY V2_UNIFIED, "memory", 1,
		  "/sys/fs/cgroup/memory/m" },
		{ "4:memory:/m\n0::/u\n", HEAD V1_MEMORY V2_UNIFIED, "pids", 2,
		  "/sys/fs/cgroup/unified/u" },
		/* of version 1, and not mounted */
		{ "4:memory:/m\n0::/u\n", HEAD V2_UNIFIED, "memory", 1, "" },
	};

	check_all(rows, G_N_ELEMENTS(rows));
	(void)state;
}

static void a_container_sees_a_part(void **state)
{
	static const char bind[] = "50 40 0:31 /docker/x /sys/fs/cgroup/memory ro - cgroup c "
				   "rw,memory\n";
	static const Row rows[] = {
		/* without a cgroup namespace: the mount's root is our own cgroup, or one above */
		{ "4:memory:/docker/x\n", bind, "memory", 1, "/sys/fs/cgroup/memory" },
		{ "4:memory:/docker/x/y/z\n", bind, "memory", 1, "/sys/fs/cgroup/memory/y/z" },
		/* another container's, and a name that only begins like it */
		{ "4:memory:/docker/w\n", bind, "memory", 1, "" },
		{ "4:memory:/docker/xy\n", bind, "memory", 1, "" },
		{ "4:memory:/docker\n", bind, "memory", 1, "" },
		/* with one, mounted inside of it */
		{ "0::/\n", V2, "memory", 2, "/sys/fs/cgroup" },
		/* with one, and the outer mount: what we are called there is not to be known */
		{ "0::/\n", "50 40 0:31 /../.. /sys/fs/cgroup rw - cgroup2 c rw\n", "memory", 2,
		  "" },
		/* moved out of the namespace's root: not by climbing, but a mount may show it */
		{ "0::/../other\n", V2, "memory", 2, "" },
		{ "0::/../other/x\n", "50 40 0:31 /../other /mnt rw - cgroup2 c rw\n", "memory", 2,
		  "/mnt/x" },
	};

	check_all(rows, G_N_ELEMENTS(rows));
	(void)state;
}

static void mounts_that_can_be_written_to_come_first(void **state)
{
	static const Row rows[] = {
		{ "0::/x\n",
		  "50 1 0:31 / /a ro - cgroup2 c rw\n51 1 0:31 / /b rw - cgroup2 c ro\n"
		  "52 1 0:31 / /c rw - cgroup2 c rw\n53 1 0:31 /x /d rw - cgroup2 c rw\n",
		  "memory", 2, "/c/x /d /a/x /b/x" },
		{ "0::/\n",
		  "50 1 0:31 / /with\\040blank\\134and\\011tab rw shared:1 - cgroup2 c rw\n",
		  "memory", 2, "/with blank\\and\ttab" },
	};

	check_all(rows, G_N_ELEMENTS(rows));
	(void)state;
}

static void without_a_hierarchy_there_is_none(void **state)
{
	static const Row rows[] = {
		{ "", "", "memory", 0, "" },
		{ "", HEAD V2, "memory", 0, "" },
		{ "0::/x\n", "", "memory", 2, "" },
		{ "0::/x\n", HEAD, "memory", 2, "" },
		/* no such lines */
		{ "0::\n0:/x\n::\n4:memory\n4:memory:x\n", HEAD V2 V1_MEMORY, "memory", 0, "" },
		{ "0::/x\n",
		  "\n1 2\n50 1 0:31 / /c rw cgroup2 c rw\n50 1 0:31 / /c rw - cgroup2 c\n"
		  "50 - cgroup2 c rw\n - cgroup2 c rw\n",
		  "memory", 2, "" },
	};

	check_all(rows, G_N_ELEMENTS(rows));
	(void)state;
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(version_1_has_a_hierarchy_for_each_controller),
		cmocka_unit_test(version_2_has_one_for_all),
		cmocka_unit_test(a_controller_of_version_1_is_not_looked_for_in_version_2),
		cmocka_unit_test(a_container_sees_a_part),
		cmocka_unit_test(mounts_that_can_be_written_to_come_first),
		cmocka_unit_test(without_a_hierarchy_there_is_none),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
