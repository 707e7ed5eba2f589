/* stella-fsgate events [--json] [--follow] MOUNTPOINT: denials and changes as they happen. Only the gateway is asked,
 * the view never touched. */
#include "fsgate/answer-text.h"
#include "fsgate/cli.h"
#include "fsgate/door-socket.h"

#include "common/control.h"
#include "common/errno-util.h"
#include "common/path-util.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#define ANSWER_MS 3000

typedef struct {
	const char *path;
	bool json, follow;
} Options;

/* --- printing --- */

static void print_time(gint64 time_ms)
{
	time_t seconds = (time_t)(time_ms / 1000);
	struct tm local;
	char text[32] = "?";

	if (localtime_r(&seconds, &local))
		(void)strftime(text, sizeof text, "%H:%M:%S", &local);
	printf("%s.%03d ", text, (int)(time_ms % 1000));
}

static void print_denial(JsonObject *row, const char *path)
{
	g_autofree char *op = fsg_json_dup_text(row, "op");
	g_autofree char *reason = fsg_json_dup_text(row, "reason");
	g_autofree char *errnum = fsg_json_dup_text(row, "errno");
	g_autofree char *target = fsg_json_dup_text(row, "target");

	printf("denied %s %s%s%s: %s", op ? op : "?", path, target ? " -> " : "",
	       target ? target : "", reason ? reason : "?");
	if (errnum)
		printf(" (%s)", errnum);
}

static void print_change(JsonObject *row, const char *path)
{
	g_autofree char *change = fsg_json_dup_text(row, "change");
	g_autofree char *from = fsg_json_dup_text(row, "from");

	printf("%s %s%s%s", change ? change : "?", path, from ? " from " : "", from ? from : "");
}

static void print_row(JsonObject *row)
{
	g_autofree char *event = fsg_json_dup_text(row, "event");
	g_autofree char *path = fsg_json_dup_text(row, "path");

	print_time(fsg_json_get_number(row, "time_ms"));
	if (g_strcmp0(event, "denial") == 0)
		print_denial(row, path ? path : "?");
	else
		print_change(row, path ? path : "?");
	(void)putchar('\n');
}

static void print_lost(gint64 lost, bool json)
{
	if (json)
		printf("{\"event\":\"lost\",\"count\":%lld}\n", (long long)lost);
	else
		printf("(%lld earlier ones are gone)\n", (long long)lost);
}

static void print_rows(JsonObject *events, bool json)
{
	JsonArray *rows = fsg_json_get_array(events, "rows");
	gint64 lost = fsg_json_get_number(events, "lost");

	if (lost > 0)
		print_lost(lost, json);
	for (guint i = 0; rows && i < json_array_get_length(rows); i++) {
		JsonNode *row = json_array_get_element(rows, i);

		if (json)
			fsg_json_print(row);
		else if (JSON_NODE_HOLDS_OBJECT(row))
			print_row(json_node_get_object(row));
	}
}

/* --- asking --- */

static int ask(ControlSocket *control, gint64 since, bool wait, JsonObject **ret_answer)
{
	JsonObject *request = json_object_new(), *wanted = json_object_new();
	int r;

	json_object_set_int_member(wanted, "since", since);
	json_object_set_boolean_member(wanted, "wait", wait);
	json_object_set_object_member(request, "events", wanted);
	if ((r = control_socket_send(control, request, -1)) < 0)
		return r;
	return control_socket_receive(control, wait ? -1 : ANSWER_MS, ret_answer, NULL);
}

static int complain(const Options *options, const char *why)
{
	g_autofree char *shown = path_escape(options->path);

	fsg_cli_complain("events: \"%s\": %s", shown, why);
	return FSG_EXIT_FAILED;
}

/* What there is, in as many answers as it takes; then, with --follow, what comes, until the view ends. */
static int run(const Options *options, ControlSocket *control)
{
	gint64 since = 0;
	bool wait = false;

	for (;;) {
		g_autoptr(JsonObject) answer = NULL;
		int r = ask(control, since, wait, &answer);
		JsonObject *events = r == 0 ? fsg_json_get_object(answer, "events") : NULL;
		JsonArray *rows = events ? fsg_json_get_array(events, "rows") : NULL;

		if (wait && (r == -EPIPE || r == -ECONNRESET))
			return 0;
		if (r < 0)
			return complain(options, errno_text(-r));
		if (!events) {
			JsonObject *error = fsg_json_get_object(answer, "error");
			g_autofree char *text = error ? fsg_json_dup_text(error, "message") : NULL;

			return complain(options, text ? text : "its gateway is another version");
		}
		print_rows(events, options->json);
		if (fflush(stdout) != 0)
			return FSG_EXIT_FAILED;
		since = fsg_json_get_number(events, "last");
		wait = !rows || json_array_get_length(rows) == 0 || wait;
		if (wait && !options->follow)
			return 0;
	}
}

static int parse(int argc, char **argv, Options *ret_options)
{
	*ret_options = (Options){ .path = NULL };
	for (int i = 1; i < argc; i++) {
		if (strcmp(argv[i], "--json") == 0) {
			ret_options->json = true;
		} else if (strcmp(argv[i], "--follow") == 0) {
			ret_options->follow = true;
		} else if (argv[i][0] == '-') {
			fsg_cli_complain("events: unknown option '%s'", argv[i]);
			return FSG_EXIT_USAGE;
		} else if (ret_options->path) {
			fsg_cli_complain("events: one MOUNTPOINT only, not also '%s'", argv[i]);
			return FSG_EXIT_USAGE;
		} else {
			ret_options->path = argv[i];
		}
	}
	if (ret_options->path)
		return 0;
	fsg_cli_complain("events: no MOUNTPOINT given");
	return FSG_EXIT_USAGE;
}

int fsg_cmd_events(int argc, char **argv)
{
	g_autoptr(ControlSocket) control = NULL;
	g_autoptr(FsgViewMount) mount = NULL;
	g_autofree char *where = NULL;
	Options options;
	int r = parse(argc, argv, &options);

	if (r != 0)
		return r;
	where = fsg_cli_find_mountpoint(options.path);
	mount = fsg_view_mount_find(where);
	if (!mount)
		return complain(&options, "no view is mounted there");
	r = fsg_door_connect(mount);
	if (r < 0)
		return complain(&options, r == -ENOENT || r == -ECONNREFUSED
						  ? "its gateway has no socket here"
						  : errno_text(-r));
	control = control_socket_new(r);
	return run(&options, control);
}
