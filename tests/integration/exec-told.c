/* See exec-told.h. */
#include "exec-told.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#define MOUNT(host, view, access)                                                                  \
	"{\"host_path\": \"%s/" host "\", \"view_path\": \"" view "\", \"access\": \"" access "\"" \
	"}"

static const char *const names[] = { "ws", "ro", "user", "inner", NULL };

int told_start(void **state)
{
	MiniSession *session = mini_session_new(
		names,
		MOUNT("ws", "/workspace", "rw") ", " MOUNT("ro", "/ro", "ro") ", " MOUNT(
			"user", "/user", "rw") ", " MOUNT("inner", "/workspace/in/ner",
							  "rw") ", " MOUNT("user", "/again", "rw"));

	mini_session_write(session, "ws/old", "old\n");
	mini_session_write(session, "ws/other", "other\n");
	mini_session_write(session, "ws/third", "third\n");
	mini_session_write(session, "ro/f", "f\n");
	*state = session;
	return 0;
}

int told_stop(void **state)
{
	mini_session_free(*state);
	return 0;
}

/* --- what is told --- */

const char *told_text(JsonObject *row, const char *name)
{
	JsonNode *node = json_object_get_member(row, name);

	assert_non_null(node);
	if (JSON_NODE_HOLDS_OBJECT(node))
		return json_object_get_string_member(json_node_get_object(node), "b64");
	return json_node_holds(node, JSON_NODE_NULL) ? "null" : json_node_get_string(node);
}

bool told_flag(JsonObject *object, const char *name)
{
	JsonNode *node = json_object_get_member(object, name);

	assert_true(json_node_holds(node, JSON_NODE_BOOLEAN));
	return json_node_get_boolean(node);
}

/* "created /workspace/a, renamed /workspace/c from /workspace/b" */
char *told_changes(JsonObject *answer)
{
	JsonArray *rows = json_object_get_array_member(answer, "changes");
	GString *text = g_string_new(NULL);

	assert_non_null(rows);
	for (guint i = 0; i < json_array_get_length(rows); i++) {
		JsonObject *row = json_array_get_object_element(rows, i);

		g_string_append_printf(text, "%s%s %s", i > 0 ? ", " : "", told_text(row, "change"),
				       told_text(row, "path"));
		if (json_object_has_member(row, "from"))
			g_string_append_printf(text, " from %s", told_text(row, "from"));
	}
	return g_string_free(text, FALSE);
}

/* "open /ro/f read-only-mount EROFS /ro 1" */
char *told_denials(JsonObject *answer)
{
	JsonArray *rows = json_object_get_array_member(answer, "denials");
	GString *text = g_string_new(NULL);

	assert_non_null(rows);
	for (guint i = 0; i < json_array_get_length(rows); i++) {
		JsonObject *row = json_array_get_object_element(rows, i);

		g_string_append_printf(
			text, "%s%s %s %s %s %s %d", i > 0 ? ", " : "", told_text(row, "op"),
			told_text(row, "path"), told_text(row, "reason"), told_text(row, "errno"),
			told_text(row, "mount"), (int)json_object_get_int_member(row, "count"));
	}
	return g_string_free(text, FALSE);
}

void told_expect(JsonObject *answer, const char *changes, const char *denials)
{
	g_autofree char *changed = told_changes(answer);
	g_autofree char *denied = told_denials(answer);

	assert_string_equal(changed, changes);
	assert_string_equal(denied, denials);
	assert_int_equal(json_object_get_int_member(answer, "changes_dropped"), 0);
	assert_int_equal(json_object_get_int_member(answer, "denials_dropped"), 0);
	assert_false(told_flag(answer, "changes_incomplete"));
	assert_true(told_flag(answer, "caught_up"));
}

/* Runs it to its end. */
void told_expect_exec(MiniSession *session, MiniBody body, const char *changes, const char *denials)
{
	g_autoptr(JsonObject) answer = mini_exec_end(mini_exec_start(session, body), TRUE);

	told_expect(answer, changes, denials);
}

/* --- steps of execs --- */

void step_put(const char *path, int flags, const char *text)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC | flags, 0644);

	MUST(fd >= 0);
	MUST(write(fd, text, strlen(text)) == (ssize_t)strlen(text));
	MUST(close(fd) == 0);
}

void step_make(const char *path)
{
	step_put(path, O_CREAT | O_EXCL, "new\n");
}

void step_refused(int r, int errnum)
{
	MUST(r < 0 && errno == errnum);
}
