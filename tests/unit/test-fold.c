/* fold: what steps come to, as a table. */
#include "fsgate/fold.h"

#include "common/limits.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

/* One step: "+a" made, "~a" modified, "-a" deleted, "a>b" renamed, "a/>b" a directory, "a<>b" exchanged. */
static void step(FsgFold *fold, const char *text)
{
	g_auto(GStrv) two = g_strsplit(text, ">", 2);
	size_t length = strlen(two[0]);
	bool exchange = two[1] && two[0][length - 1] == '<';
	bool is_dir;

	if (!two[1]) {
		switch (text[0]) {
		case '+':
			fsg_fold_created(fold, text + 1);
			return;
		case '~':
			fsg_fold_modified(fold, text + 1);
			return;
		case '-':
			fsg_fold_deleted(fold, text + 1);
			return;
		default:
			fail_msg("%s", text);
		}
	}
	if (exchange)
		two[0][--length] = '\0';
	is_dir = two[0][length - 1] == '/';
	if (is_dir)
		two[0][length - 1] = '\0';
	if (exchange)
		fsg_fold_exchanged(fold, two[0], two[1], is_dir);
	else
		fsg_fold_renamed(fold, two[0], two[1], is_dir);
}

static void steps(FsgFold *fold, const char *text)
{
	g_auto(GStrv) words = g_strsplit(text, " ", -1);

	for (char **word = words; *word; word++)
		step(fold, *word);
}

/* In the same signs; of a rename "from>to". */
static char *list(const FsgFold *fold)
{
	static const char signs[] = { '+', '~', '-' };
	g_autoptr(GPtrArray) changes = fsg_fold_list(fold);
	GString *text = g_string_new(NULL);

	for (guint i = 0; i < changes->len; i++) {
		const FsgChange *change = g_ptr_array_index(changes, i);

		assert_int_equal(change->from != NULL, change->kind == FSG_CHANGE_RENAMED);
		if (i > 0)
			g_string_append_c(text, ' ');
		if (change->kind == FSG_CHANGE_RENAMED)
			g_string_append_printf(text, "%s>%s", change->from, change->path);
		else
			g_string_append_printf(text, "%c%s", signs[change->kind], change->path);
	}
	return g_string_free(text, FALSE);
}

static const struct {
	const char *steps, *expected;
} cases[] = {
	{ "+/a", "+/a" },
	{ "~/a", "~/a" },
	{ "-/a", "-/a" },
	{ "/a>/b", "/a>/b" },
	{ "~/b ~/a ~/b", "~/a ~/b" },
	/* made, then ... */
	{ "+/a ~/a", "+/a" },
	{ "+/a -/a", "" },
	{ "+/a /a>/b", "+/b" },
	{ "+/a /a>/b ~/b /b>/c", "+/c" },
	{ "+/a /a>/b -/b", "" },
	{ "+/a -/a +/a", "+/a" },
	/* changed, then ... */
	{ "~/a -/a", "-/a" },
	{ "~/a /a>/b", "/a>/b ~/b" },
	{ "/a>/b ~/b", "/a>/b ~/b" },
	{ "~/a /a>/b /b>/a", "~/a" },
	/* deleted, then ... */
	{ "-/a +/a", "~/a" },
	{ "-/a +/a ~/a", "~/a" },
	{ "-/a +/a -/a", "-/a" },
	{ "-/a +/b", "-/a +/b" },
	{ "-/a ~/a", "-/a" },
	/* renamed, then ... */
	{ "/a>/b /b>/c", "/a>/c" },
	{ "/a>/b /b>/a", "" },
	{ "/a>/b -/b", "-/a" },
	{ "/a>/b +/a", "+/a /a>/b" },
	{ "/a>/b -/b +/a", "~/a" },
	{ "/a>/b -/b +/b", "-/a +/b" },
	{ "/a>/b +/a -/a", "/a>/b" },
	/* over another: an editor saves, a file takes another's place */
	{ "+/t -/a /t>/a", "~/a" },
	{ "-/b /a>/b", "/a>/b" },
	{ "-/b /a>/b -/b", "-/a -/b" },
	{ "-/b /a>/b /b>/c", "-/b /a>/c" },
	/* exchanged, by the call and by hand */
	{ "/a<>/b", "/b>/a /a>/b" },
	{ "/a<>/b /a<>/b", "" },
	{ "/a>/t /b>/a /t>/b", "/b>/a /a>/b" },
	{ "+/a /a<>/b", "/b>/a +/b" },
	{ "~/a /a<>/b", "/b>/a /a>/b ~/b" },
	/* a directory takes along what is in it */
	{ "+/d +/d/f", "+/d +/d/f" },
	{ "+/d/f /d/>/e", "/d>/e +/e/f" },
	{ "+/d +/d/f /d/>/e", "+/e +/e/f" },
	{ "+/d +/d/f /d/>/e -/e/f -/e", "" },
	{ "~/d/f /d/>/e", "/d>/e ~/e/f" },
	{ "/d/>/e ~/e/f", "/d>/e ~/e/f" },
	{ "/d/>/e ~/e/f /e/>/d", "~/d/f" },
	{ "/d/>/e -/e/f", "-/d/f /d>/e" },
	{ "-/d/f /d/>/e", "-/d/f /d>/e" },
	{ "/d/>/e -/e/f +/e/f", "/d>/e ~/e/f" },
	{ "/d/>/e /e/f>/g", "/d>/e /d/f>/g" },
	{ "/d/>/e /e/f>/e/g", "/d>/e /d/f>/e/g" },
	{ "/d/>/e /e/f>/e/g /e/g>/e/f", "/d>/e" },
	{ "/d/f>/g /d/>/e", "/d>/e /d/f>/g" },
	{ "/d/>/e /e/>/f ~/f/x", "/d>/f ~/f/x" },
	{ "/d/e/>/d/g /d/>/h ~/h/g/x", "/d>/h /d/e>/h/g ~/h/g/x" },
	{ "/d/>/e -/e", "-/d" },
	{ "+/c /d/>/c/d ~/c/d/f", "+/c /d>/c/d ~/c/d/f" },
	{ "+/d/f +/e/g /d/<>/e", "/e>/d +/d/g /d>/e +/e/f" },
	{ "~/d/f /d/<>/e", "/e>/d /d>/e ~/e/f" },
	/* a name that only begins like it is another */
	{ "+/d/f +/dd/f /d/>/e", "+/dd/f /d>/e +/e/f" },
	{ "+/dd /d>/e", "+/dd /d>/e" },
	/* a file in a directory's place */
	{ "-/d/f -/d +/d", "~/d -/d/f" },
	{ "-/a +/a +/a/f", "~/a +/a/f" },
	/* what has happened elsewhere in between */
	{ "+/a +/a", "+/a" },
	{ "~/a +/a", "~/a" },
	{ "-/a -/a", "-/a" },
	{ "+/a +/b /a>/b", "+/b" },
};

static void steps_are_folded(void **state)
{
	(void)state;
	for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
		FsgFold *fold = fsg_fold_new(LIMIT_CHANGES);
		g_autofree char *got = NULL;

		steps(fold, cases[i].steps);
		got = list(fold);
		if (strcmp(got, cases[i].expected) != 0)
			fail_msg("%s: \"%s\" instead of \"%s\"", cases[i].steps, got,
				 cases[i].expected);
		assert_int_equal(fsg_fold_dropped(fold), 0);
		fsg_fold_free(fold);
	}
}

/* With room for two. */
static const struct {
	const char *steps, *expected;
	unsigned int dropped;
} full[] = {
	{ "+/a +/b", "+/a +/b", 0 },
	{ "+/a +/b +/c", "+/a +/b", 1 },
	{ "+/a +/b +/c ~/c ~/c", "+/a +/b", 1 },
	{ "+/a +/b +/c -/c", "+/a +/b", 0 },
	{ "+/a +/b -/c", "+/a +/b", 1 },
	{ "+/a +/b ~/c /c>/d", "+/a +/b", 1 },
	{ "+/a +/b +/c /c>/d -/d", "+/a +/b", 0 },
	{ "+/a +/b /c>/d /d>/e", "+/a +/b", 1 },
	{ "+/a +/b /c<>/d", "+/a +/b", 2 },
	/* what is held goes on being folded */
	{ "+/a +/b +/c /a>/d ~/b", "+/b +/d", 1 },
	{ "~/a +/b +/c -/a", "-/a +/b", 1 },
	/* room that comes too late does not help: nothing false is said of what is not known */
	{ "+/a +/b +/c -/a -/c", "+/b", 0 },
	{ "+/a +/b +/c +/d -/a -/c ~/d -/d", "+/b", 0 },
	{ "+/a +/b +/c -/a ~/c +/e", "+/b", 2 },
	{ "+/a +/b +/c -/c -/a +/e", "+/b +/e", 0 },
};

static void what_has_no_room_is_counted(void **state)
{
	(void)state;
	for (size_t i = 0; i < G_N_ELEMENTS(full); i++) {
		FsgFold *fold = fsg_fold_new(2);
		g_autofree char *got = NULL;

		steps(fold, full[i].steps);
		got = list(fold);
		if (strcmp(got, full[i].expected) != 0 || fsg_fold_dropped(fold) != full[i].dropped)
			fail_msg("%s: \"%s\" and %u instead of \"%s\" and %u", full[i].steps, got,
				 (unsigned int)fsg_fold_dropped(fold), full[i].expected,
				 full[i].dropped);
		fsg_fold_free(fold);
	}
}

static void paths_are_bounded_in_bytes_too(void **state)
{
	FsgFold *fold = fsg_fold_new(LIMIT_CHANGES);
	g_autofree char *long_name = g_strnfill(4000, 'n');
	g_autoptr(GPtrArray) changes = NULL;
	size_t bytes = 0;

	(void)state;
	for (int i = 0; i < 900; i++) {
		g_autofree char *path = g_strdup_printf("/%d%s", i, long_name);

		fsg_fold_created(fold, path);
	}
	changes = fsg_fold_list(fold);
	for (guint i = 0; i < changes->len; i++)
		bytes += strlen(((FsgChange *)g_ptr_array_index(changes, i))->path);
	assert_true(bytes > LIMIT_CHANGES_BYTES / 2 && bytes <= LIMIT_CHANGES_BYTES);
	assert_int_equal(changes->len + fsg_fold_dropped(fold), 900);
	fsg_fold_free(fold);
}

/* A directory with all that is known of is renamed into a deep one: each of its paths becomes as long as that. */
static void one_rename_cannot_make_it_grow(void **state)
{
	static const size_t lengths[] = { 900, LIMIT_PATH_BYTES - 10, 600000 };

	(void)state;
	for (size_t k = 0; k < G_N_ELEMENTS(lengths); k++) {
		FsgFold *fold = fsg_fold_new(LIMIT_CHANGES);
		g_autofree char *deep = g_strnfill(lengths[k], 'd');
		g_autoptr(GPtrArray) list = NULL;
		size_t bytes = 0;

		deep[0] = '/';
		for (int i = 0; i < 900; i++) {
			g_autofree char *path = g_strdup_printf("/d/%d", i);

			fsg_fold_created(fold, path);
		}
		fsg_fold_renamed(fold, "/d", deep, true);
		list = fsg_fold_list(fold);
		for (guint i = 0; i < list->len; i++)
			bytes += strlen(((const FsgChange *)list->pdata[i])->path);
		assert_true(bytes <= LIMIT_CHANGES_BYTES);
		/* What went is counted, each once; the directory itself was not known of. */
		assert_true(list->len + fsg_fold_dropped(fold) >= 900);
		assert_true(fsg_fold_dropped(fold) > 0);
		fsg_fold_free(fold);
	}
}

static void more_than_can_be_counted_apart_is_counted(void **state)
{
	FsgFold *fold = fsg_fold_new(1);
	const uint64_t most = 2 * LIMIT_CHANGES_COUNTED;

	(void)state;
	for (uint64_t i = 0; i < most; i++) {
		char path[32];

		(void)snprintf(path, sizeof path, "/f%u", (unsigned int)i);
		fsg_fold_created(fold, path);
	}
	assert_int_equal(fsg_fold_dropped(fold), most - 1);
	fsg_fold_free(fold);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(steps_are_folded),
		cmocka_unit_test(what_has_no_room_is_counted),
		cmocka_unit_test(paths_are_bounded_in_bytes_too),
		cmocka_unit_test(one_rename_cannot_make_it_grow),
		cmocka_unit_test(more_than_can_be_counted_apart_is_counted),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
