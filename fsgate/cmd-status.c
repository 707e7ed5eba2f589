/* stella-fsgate status [--json] [MOUNTPOINT]: what views there are and how they do. The views themselves are never
 * touched, for a gateway may hang: they are found in mountinfo, and their gateways asked at their doors. */
#include "fsgate/answer-text.h"
#include "fsgate/cli.h"
#include "fsgate/door-socket.h"
#include "fsgate/mountpoint.h"
#include "fsgate/status-json.h"
#include "fsgate/status-text.h"

#include "common/control.h"
#include "common/errno-util.h"
#include "common/path-util.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define ANSWER_MS 3000

/* Every key of a view that answers, for one that does not: null. */
static const char *const keys[] = {
	"version",     "pid",	 "up_ms", "mounts",  "writable", "links",   "cache",
	"passthrough", "inodes", "fds",	  "threads", "requests", "denials",
};

/* {"status": ...} of the gateway, which the caller owns, or NULL with the reason. */
static JsonObject *ask(const FsgViewMount *mount, int *ret_r)
{
	g_autoptr(ControlSocket) control = NULL;
	g_autoptr(JsonObject) answer = NULL;
	JsonObject *request;
	JsonNode *status;

	if ((*ret_r = fsg_door_connect(mount)) < 0)
		return NULL;
	control = control_socket_new(*ret_r);
	request = json_object_new();
	json_object_set_boolean_member(request, "status", TRUE);
	if ((*ret_r = control_socket_send(control, request, -1)) < 0 ||
	    (*ret_r = control_socket_receive(control, ANSWER_MS, &answer, NULL)) < 0)
		return NULL;
	status = json_object_get_member(answer, "status");
	if (!status || !JSON_NODE_HOLDS_OBJECT(status)) {
		*ret_r = -EBADMSG;
		return NULL;
	}
	return json_object_ref(json_node_get_object(status));
}

static char *explain_silence(const FsgViewMount *mount, int r)
{
	if (r == -ENOENT || r == -ECONNREFUSED || r == -EACCES)
		return mount->uid == geteuid()
			       ? g_strdup("its gateway has no socket here")
			       : g_strdup_printf("it belongs to user %u, who can ask it",
						 mount->uid);
	return g_strdup_printf("its gateway does not answer: %s", errno_text(-r));
}

/* The whole object of one view, whatever its state. */
static JsonObject *view_json(const FsgViewMount *mount)
{
	JsonObject *view = json_object_new(), *status;
	g_autofree char *reason = NULL;
	const char *state = "serving";
	int r;

	status = ask(mount, &r);
	if (!status && fsg_mountpoint_is_dead(mount->path)) {
		state = "dead";
		reason = g_strdup("its gateway is gone; the next mount takes the place over, "
				  "unmount clears it");
	} else if (!status) {
		state = "silent";
		reason = explain_silence(mount, r);
	}
	fsg_json_set_path(view, "mountpoint", mount->path);
	json_object_set_int_member(view, "uid", mount->uid);
	json_object_set_string_member(view, "state", state);
	if (reason)
		json_object_set_string_member(view, "reason", reason);
	else
		json_object_set_null_member(view, "reason");
	for (size_t i = 0; i < G_N_ELEMENTS(keys); i++) {
		JsonNode *node = status ? json_object_dup_member(status, keys[i]) : NULL;

		if (node)
			json_object_set_member(view, keys[i], node);
		else
			json_object_set_null_member(view, keys[i]);
	}
	if (status)
		json_object_unref(status);
	return view;
}

static int print_json(JsonArray *take_views)
{
	JsonObject *root = json_object_new();
	g_autoptr(JsonNode) node = json_node_new(JSON_NODE_OBJECT);

	json_object_set_int_member(root, "version", 1);
	json_object_set_array_member(root, "views", take_views);
	json_node_take_object(node, root);
	fsg_json_print(node);
	return fflush(stdout) == 0 ? 0 : FSG_EXIT_FAILED;
}

static int print_text(JsonArray *take_views)
{
	g_autoptr(JsonArray) views = take_views;

	for (guint i = 0; i < json_array_get_length(views); i++) {
		g_autofree char *text = fsg_status_text(json_array_get_object_element(views, i));

		printf("%s%s", i > 0 ? "\n" : "", text);
	}
	return fflush(stdout) == 0 ? 0 : FSG_EXIT_FAILED;
}

static int print(JsonArray *take_views, bool json)
{
	return json ? print_json(take_views) : print_text(take_views);
}

static int status_of_one(const char *path, bool json)
{
	g_autofree char *where = fsg_cli_find_mountpoint(path);
	g_autoptr(FsgViewMount) mount = fsg_view_mount_find(where);
	JsonArray *views;
	JsonObject *view;
	bool serving;
	int r;

	if (!mount) {
		g_autofree char *shown = path_escape(where);

		fsg_cli_complain("status: \"%s\": no view is mounted there", shown);
		return FSG_EXIT_FAILED;
	}
	views = json_array_new();
	view = view_json(mount);
	serving = strcmp(json_object_get_string_member(view, "state"), "serving") == 0;
	json_array_add_object_element(views, view);
	r = print(views, json);
	return r == 0 && !serving ? FSG_EXIT_FAILED : r;
}

static int status_of_all(bool json)
{
	g_autoptr(GPtrArray) mounts = fsg_view_mounts();
	JsonArray *views = json_array_new();

	for (guint i = 0; i < mounts->len; i++) {
		const FsgViewMount *mount = g_ptr_array_index(mounts, i);

		if (mount->uid == geteuid())
			json_array_add_object_element(views, view_json(mount));
	}
	return print(views, json);
}

int fsg_cmd_status(int argc, char **argv)
{
	const char *path = NULL;
	bool json = false;

	for (int i = 1; i < argc; i++) {
		if (strcmp(argv[i], "--json") == 0) {
			json = true;
		} else if (argv[i][0] == '-') {
			fsg_cli_complain("status: unknown option '%s'", argv[i]);
			return FSG_EXIT_USAGE;
		} else if (path) {
			fsg_cli_complain("status: one MOUNTPOINT only, not also '%s'", argv[i]);
			return FSG_EXIT_USAGE;
		} else {
			path = argv[i];
		}
	}
	return path ? status_of_one(path, json) : status_of_all(json);
}
