/* json-strict: what is no JSON, with its place, and beside it the nearest text that is.
 *
 * In the tables ' stands for a double quote and ` for a single one, for the sake of the reader. The texts
 * look like policies, but only their syntax counts here. */
#include "common/json-strict.h"

#include <errno.h>
#include <glib.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#define MAX_DEPTH 16

#define TOP(members) "{'version':1,'filesystem':{'working_dir':'/workspace'}," members "}"
#define FS(members)  "{'version':1,'filesystem':{'working_dir':'/workspace'," members "}}"
#define ROWS(rows)   FS("'mounts':[" rows "]")

static char *requote(const char *text)
{
	char *quoted = g_strdup(text);

	for (char *p = quoted; *p; p++)
		*p = *p == '\'' ? '"' : *p == '`' ? '\'' : *p;
	return quoted;
}

typedef struct {
	const char *bad, *message, *good;
} Refusal;

static void each_is_refused_and_its_twin_is_not(const Refusal *rows, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		g_autofree char *bad = requote(rows[i].bad);
		g_autofree char *good = requote(rows[i].good);
		g_autofree char *message = NULL;
		g_autofree char *good_message = NULL;
		g_autoptr(JsonNode) root = NULL;

		if (json_strict_parse(bad, strlen(bad), MAX_DEPTH, &root, &message) != -EINVAL)
			fail_msg("accepted: %s", bad);
		assert_null(root);
		assert_string_equal(message, rows[i].message);
		if (json_strict_parse(good, strlen(good), MAX_DEPTH, &root, &good_message) != 0)
			fail_msg("%s\n refused: %s", good, good_message);
		assert_true(JSON_NODE_HOLDS_OBJECT(root));
	}
}

static void bad_syntax_is_refused_with_its_place(void **state)
{
	static const Refusal rows[] = {
		{ "", "line 1, column 1: expected an object, got the end of the text",
		  TOP("'env':{}") },
		{ "[]", "line 1, column 1: expected an object, got '['", TOP("'env':{}") },
		{ "\xef\xbb\xbf{}", "line 1, column 1: expected an object, got '\xef\xbb\xbf'",
		  " \t\r\n" TOP("'env':{}") },
		{ "{\n'version'\n:1,}",
		  "line 3, column 4: expected a key in double quotes, got '}'",
		  TOP("\n'env'\n:{}") },
		{ "{'\xc3\xa4' 1}", "line 1, column 6: expected ':', got '1'",
		  TOP("'env':{'\xc3\xa4' : '1'}") },
		{ TOP("'env':{}") "x", "line 1, column 65: expected the end of the text, got 'x'",
		  TOP("'env':{}") "\n \t" },
		{ TOP("'env':{}") "{}", "line 1, column 65: expected the end of the text, got '{'",
		  TOP("'env':{}") },
		{ "var x = " TOP("'env':{}"), "line 1, column 1: expected an object, got 'v'",
		  TOP("'env':{}") },
		{ "{/* */'version':1}",
		  "line 1, column 2: expected a key in double quotes, got '/'",
		  TOP("'env':{'/*':'*/'}") },
		{ "{// x\n'version':1}",
		  "line 1, column 2: expected a key in double quotes, got '/'",
		  TOP("'env':{'//':'# x'}") },
		{ "{`version`:1}", "line 1, column 2: expected a key in double quotes, got '''",
		  TOP("'env':{'`':'`'}") },
		{ "{version:1}", "line 1, column 2: expected a key in double quotes, got 'v'",
		  TOP("'env':{'version':'1'}") },
		{ "{'version':1", "line 1, column 13: expected ',' or '}', got the end of the text",
		  TOP("'env':{}") },
		{ "{'version':1;}", "line 1, column 13: expected ',' or '}', got ';'",
		  TOP("'env':{}") },
		{ TOP("'env':[1,]"), "line 1, column 65: expected a value, got ']'",
		  FS("'hide':[]") },
		{ TOP("'env':[1 2]"), "line 1, column 65: expected ',' or ']', got '2'",
		  FS("'hide':['1' , '2']") },
		{ TOP("'timeout_ms':0x10"), "line 1, column 70: expected ',' or '}', got 'x'",
		  TOP("'timeout_ms':16") },
		{ TOP("'timeout_ms':010"), "line 1, column 69: a number that begins with 0",
		  TOP("'timeout_ms':10") },
		{ TOP("'timeout_ms':+1"), "line 1, column 69: expected a value, got '+'",
		  TOP("'timeout_ms':1") },
		{ TOP("'timeout_ms':.5"), "line 1, column 69: expected a value, got '.'",
		  TOP("'timeout_ms':5") },
		{ TOP("'timeout_ms':1."), "line 1, column 71: expected a digit, got '}'",
		  TOP("'timeout_ms':1") },
		{ TOP("'timeout_ms':1e"), "line 1, column 71: expected a digit, got '}'",
		  TOP("'timeout_ms':1") },
		{ TOP("'timeout_ms':-"), "line 1, column 70: expected a digit, got '}'",
		  TOP("'timeout_ms':-0") },
		{ TOP("'timeout_ms':9223372036854775808"),
		  "line 1, column 69: the number 9223372036854775808 is out of range",
		  FS("'mounts':[{'host_path':'/a','view_path':'/a','access':'rw',"
		     "'quota_bytes':9223372036854775807}]") },
		{ TOP("'timeout_ms':NaN"), "line 1, column 69: expected a value, got 'N'",
		  TOP("'timeout_ms':1") },
		{ TOP("'inherit_env':True"), "line 1, column 70: expected a value, got 'T'",
		  TOP("'inherit_env':true") },
		{ TOP("'inherit_env':falsey"), "line 1, column 75: expected ',' or '}', got 'y'",
		  TOP("'inherit_env':false") },
		{ TOP("'env':{'A':'x\ny'}"),
		  "line 1, column 69: a control character in a string, write it as \\u000a",
		  TOP("'env':{'A':'x\\ny'}") },
		{ TOP("'env':{'A':'\\x41'}"), "line 1, column 68: unknown escape in a string",
		  TOP("'env':{'A':'\\u0041\\\"\\\\\\/\\b\\f\\n\\r\\t'}") },
		{ TOP("'env':{'A':'\\u12g4'}"),
		  "line 1, column 68: \\u needs four hexadecimal digits",
		  TOP("'env':{'A':'\\u12a4'}") },
		{ TOP("'env':{'A':'\\u0000'}"), "line 1, column 68: \\u0000 is not allowed",
		  TOP("'env':{'A':'\\u0001'}") },
		{ TOP("'env':{'A':'\\ud83d'}"),
		  "line 1, column 68: a high surrogate without a low one",
		  TOP("'env':{'A':'\\ud83d\\ude00'}") },
		{ TOP("'env':{'A':'\\ud83d\\u0041'}"),
		  "line 1, column 68: a high surrogate without a low one",
		  TOP("'env':{'A':'\\ud83d\\ude00'}") },
		{ TOP("'env':{'A':'\\ude00'}"),
		  "line 1, column 68: a low surrogate without a high one",
		  TOP("'env':{'A':'\\ud83d\\ude00'}") },
		{ TOP("'env':{'A':'x"), "line 1, column 67: a string that does not end",
		  TOP("'env':{'A':'x'}") },
		{ TOP("'env':{'A':'\xff'}"), "line 1, column 68: not valid UTF-8",
		  TOP("'env':{'A':'\xc3\xbf'}") },
		{ TOP("'env':{'A':'\xed\xa0\x80'}"), "line 1, column 68: not valid UTF-8",
		  TOP("'env':{'A':'\xed\x9f\xbf'}") },
	};

	(void)state;
	each_is_refused_and_its_twin_is_not(rows, G_N_ELEMENTS(rows));
}

static void a_key_given_twice_is_named_with_its_path(void **state)
{
	static const Refusal rows[] = {
		{ TOP("'env':{},'env':{}"), "env: given twice", TOP("'env':{}") },
		{ TOP("'env':{'A':'1','B':'2','A':'1'}"), "env.A: given twice",
		  TOP("'env':{'A':'1','B':'2','a':'1'}") },
		{ TOP("'env':{'AB':'1','A\\u0042':'2'}"), "env.AB: given twice",
		  TOP("'env':{'AB':'1','A\\\\u0042':'2'}") },
		{ ROWS("{'host_path':'/a','view_path':'/a','access':'ro'},"
		       "{'host_path':'/b','view_path':'/b','access':'ro'},"
		       "{'host_path':'/c','access':'ro','view_path':'/c','access':'rw'}"),
		  "filesystem.mounts[2].access: given twice",
		  ROWS("{'host_path':'/a','view_path':'/a','access':'ro'},"
		       "{'host_path':'/c','access':'ro','view_path':'/c'}") },
		/* The first of several. */
		{ TOP("'env':{'A':'1','A':'2'},'limits':{'spill':true,'spill':true},'env':{}"),
		  "env.A: given twice", TOP("'env':{'A':'1'},'limits':{'spill':true}") },
		{ "{'version':1,'version':1,'unknown':1}", "version: given twice",
		  TOP("'env':{}") },
	};

	(void)state;
	each_is_refused_and_its_twin_is_not(rows, G_N_ELEMENTS(rows));
}

/* The size given is the size read: the byte behind it would make another text. */
static void the_text_ends_where_its_size_says(void **state)
{
	static const char text[] = "{}x";
	g_autofree char *message = NULL;

	(void)state;
	assert_int_equal(json_strict_check(text, 2, MAX_DEPTH, &message), 0);
	assert_int_equal(json_strict_check(text, 3, MAX_DEPTH, &message), -EINVAL);
	assert_string_equal(message, "line 1, column 3: expected the end of the text, got 'x'");
}

static void every_prefix_of_a_text_is_refused(void **state)
{
	g_autofree char *text = requote(
		"{'a':[1,-2.5e+3,true,false,null,{'\\u00e9\\ud83d\\ude00':'\\n\xc3\xa9'}]}");
	size_t size = strlen(text);
	g_autofree char *message = NULL;

	(void)state;
	assert_int_equal(json_strict_check(text, size, MAX_DEPTH, &message), 0);
	for (size_t i = 0; i < size; i++) {
		g_autofree char *prefix =
			g_memdup2(text, i); /* for the sanitizer to guard its end */
		g_autofree char *why = NULL;

		assert_int_equal(json_strict_check(prefix ? prefix : "", i, MAX_DEPTH, &why),
				 -EINVAL);
		assert_non_null(why);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(bad_syntax_is_refused_with_its_place),
		cmocka_unit_test(a_key_given_twice_is_named_with_its_path),
		cmocka_unit_test(the_text_ends_where_its_size_says),
		cmocka_unit_test(every_prefix_of_a_text_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
