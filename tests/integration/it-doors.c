/* One boundary, three doors: the table of paths (tests/data/paths.json) against the path resolver, a mounted view and a
 * command in a session. Each verdict is the table's at every door; what is allowed is the very object of the host that
 * the table names, read and written through; what is refused leaves the host tree as it was, to the last time and mode.
 *
 * The suite runs it as root, as an ordinary user, and with openat2 missing or filtered: no verdict changes. */
#include "integration/doors.h"
#include "lib/preflight.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

static char *table;

typedef void (*Try)(void *door, const Vector *vector, DoorAnswer *ret_answer);

static int report(const Ground *ground, const Vector *vector, const char *door, const char *wrong)
{
	g_autofree char *path = g_strescape(vector->path, NULL);

	if (!wrong)
		return 0;
	print_message("%s, %s: \"%s\" (%.200s) at the %s: %s\n", ground->world->name, vector->group,
		      vector->name, path, door, wrong);
	return 1;
}

static int try_one(Ground *ground, const Vector *vector, Door which, void *door, Try try)
{
	g_autofree char *wrong = NULL;
	DoorAnswer answer;

	if (vector->want[which].kind == WANT_SKIP)
		return 0;
	ground_remember(ground, &vector->want[which]);
	try(door, vector, &answer);
	wrong = ground_judge(ground, vector, which, &answer);
	return report(ground, vector, door_names[which], wrong);
}

static int try_resolver(Ground *ground)
{
	ResolverDoor *door = resolver_door_new(ground);
	int wrong = 0;

	for (guint i = 0; i < ground->world->vectors->len; i++) {
		const Vector *vector = g_ptr_array_index(ground->world->vectors, i);
		g_autofree char *other = NULL;

		wrong += try_one(ground, vector, DOOR_RESOLVER, door, resolver_door_try);
		ground_remember(ground, &vector->want[DOOR_RESOLVER]);
		other = resolver_door_check(door, ground, vector);
		wrong += report(ground, vector, "resolver", other);
	}
	resolver_door_free(door);
	return wrong;
}

static int try_view(Ground *ground)
{
	ViewDoor *door = view_door_new(ground);
	int wrong = 0;

	for (guint i = 0; i < ground->world->vectors->len; i++)
		wrong += try_one(ground, g_ptr_array_index(ground->world->vectors, i), DOOR_VIEW,
				 door, view_door_try);
	view_door_free(door);
	return wrong;
}

static int try_sandbox(Ground *ground)
{
	SandboxDoor *door = sandbox_door_new(ground);
	int wrong = 0;

	for (guint i = 0; i < ground->world->vectors->len; i++)
		wrong += try_one(ground, g_ptr_array_index(ground->world->vectors, i), DOOR_SANDBOX,
				 door, sandbox_door_try);
	sandbox_door_free(door);
	return wrong;
}

static void every_door_says_what_the_table_says(void **state)
{
	Ground *ground = ground_new(table, *state);
	int wrong = 0;

	if (ground->snapshot) {
		wrong = try_resolver(ground) + try_view(ground) + try_sandbox(ground);
		print_message("%s: %u paths\n", ground->world->name, ground->world->vectors->len);
	} else {
		print_message("%s: for root only\n", ground->world->name);
	}
	ground_free(ground);
	assert_int_equal(wrong, 0);
}

int main(void)
{
	const char *lib = g_getenv("STELLA_TEST_LIB");
	g_auto(GStrv) worlds = NULL;
	struct CMUnitTest tests[64];
	size_t n = 0;
	int r;

	r = preflight_require((const char *const[]){ "fuse", "userns", NULL });
	if (r)
		return r;
	table = g_build_filename(lib ? lib : "", "../data/paths.json", NULL);
	worlds = doors_table_worlds(table);
	for (char **world = worlds; *world && n < G_N_ELEMENTS(tests); world++)
		tests[n++] = (struct CMUnitTest){
			.name = *world,
			.test_func = every_door_says_what_the_table_says,
			.initial_state = *world,
		};
	r = _cmocka_run_group_tests("doors", tests, n, NULL, NULL);
	g_free(table);
	return r;
}
