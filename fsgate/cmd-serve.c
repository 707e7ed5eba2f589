/* stella-fsgate serve --control-fd N: the gateway of one sandbox, started by the executor, which speaks
 * first (common/control.h). Its death is seen as the end of the control socket, and ends the gateway. */
#include "fsgate/boundary.h"
#include "fsgate/cli.h"
#include "fsgate/invalidate.h"
#include "fsgate/mountpoint.h"
#include "fsgate/serve-until.h"
#include "fsgate/task.h"

#include "common/control.h"
#include "common/errno-util.h"
#include "common/fd-util.h"
#include "common/policy-json.h"
#include "common/sanitizers.h"

#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

/* How long the executor may take between its messages: it makes namespaces meanwhile. */
#define PEER_MS 30000

static void send_error(ControlSocket *control, const char *message)
{
	JsonObject *inner = json_object_new(), *outer = json_object_new();

	json_object_set_string_member(inner, "message", message);
	json_object_set_object_member(outer, "error", inner);
	(void)control_socket_send(control, outer, -1); /* an executor that left needs no answer */
}

/* fd (borrowed; -1: none) goes with it. */
static int send_flag(ControlSocket *control, const char *name, int fd)
{
	JsonObject *object = json_object_new();

	json_object_set_boolean_member(object, name, TRUE);
	return control_socket_send(control, object, fd);
}

static const char *get_string(JsonObject *object, const char *name)
{
	JsonNode *node = json_object_get_member(object, name);

	return json_node_holds(node, JSON_NODE_STRING) ? json_node_get_string(node) : NULL;
}

static bool get_id(JsonObject *object, const char *name, uint32_t *ret_id)
{
	JsonNode *node = json_object_get_member(object, name);
	gint64 id;

	if (!json_node_holds(node, JSON_NODE_INT))
		return false;
	id = json_node_get_int(node);
	if (id < 0 || id >= UINT32_MAX)
		return false;
	*ret_id = (uint32_t)id;
	return true;
}

static JsonObject *get_object(JsonObject *object, const char *name)
{
	JsonNode *node = json_object_get_member(object, name);

	return JSON_NODE_HOLDS_OBJECT(node) ? json_node_get_object(node) : NULL;
}

static int parse_policy(JsonObject *start, StellaPolicy **ret_policy, char **reterr_message)
{
	JsonNode *node = json_object_get_member(start, "policy");

	if (!node) {
		*reterr_message = g_strdup("the executor sent no policy");
		return -EBADMSG;
	}
	return policy_json_read(node, ret_policy, reterr_message);
}

/* For as long as the process. */
static int share_board(FsgView *view, int fd, char **reterr_message)
{
	ExecBoard *board;
	int r = exec_board_map(fd, &board);

	if (r < 0)
		*reterr_message = g_strdup_printf("the executor's board: %s", errno_text(-r));
	else
		fsg_boundary_share(view->boundary, board);
	return r;
}

static int start_view(ControlSocket *control, FsgView **ret_view, char **reterr_message)
{
	g_autoptr(JsonObject) message = NULL;
	g_autoptr(StellaPolicy) policy = NULL;
	g_autoptr(ViewPlan) plan = NULL;
	FsgViewConfig config = { .maps_one_id = true };
	JsonObject *start;
	FD_AUTO board = -1;
	int r = control_socket_receive(control, PEER_MS, &message, &board);

	if (r < 0)
		return r;
	start = get_object(message, "start");
	if (!start || !get_id(start, "uid", &config.shown_uid) ||
	    !get_id(start, "gid", &config.shown_gid)) {
		*reterr_message = g_strdup("the executor's first message is not understood");
		return -EBADMSG;
	}
	if (g_strcmp0(get_string(start, "version"), STELLA_VERSION) != 0) {
		*reterr_message = g_strdup_printf(
			"the executor is version %s, the gateway " STELLA_VERSION
			"; install both from one build",
			get_string(start, "version") ? get_string(start, "version") : "unknown");
		return -EPROTO;
	}
	config.private_dir = get_string(start, "state_dir");
	config.is_for_one_exec = json_node_get_boolean(json_object_get_member(start, "one_exec"));
	if ((r = parse_policy(start, &policy, reterr_message)) < 0 ||
	    (r = fsg_cli_prepare_process(reterr_message)) < 0 ||
	    (r = view_plan_new(policy, VIEW_FOR_SANDBOX, &plan, reterr_message)) < 0)
		return r;
	if ((r = fsg_view_new(g_steal_pointer(&plan), &config, ret_view, reterr_message)) < 0)
		return r;
	return board >= 0 ? share_board(*ret_view, board, reterr_message) : 0;
}

/* fusermount3 mounts at a directory that only the executor's user can enter. */
static int attach_by_fusermount(FsgView *view, const char *path, FsgSession **ret_session,
				char **reterr_message)
{
	FD_AUTO dir = open(path, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	int r;

	if (dir < 0) {
		*reterr_message = g_strdup_printf("%s: %s", path, errno_text(errno));
		return -errno;
	}
	view->mountpoint = g_strdup(path);
	view->original_links = true; /* only the sandbox, whose root it becomes, reads them */
	r = fsg_session_mount(view, dir, false, ret_session, reterr_message);
	return r;
}

static int receive_attach(ControlSocket *control, JsonObject **ret_message, const char **ret_how,
			  int *ret_fd)
{
	int r = control_socket_receive(control, PEER_MS, ret_message, ret_fd);

	if (r == 0)
		*ret_how = get_string(*ret_message, "attach");
	return r;
}

static int attach(ControlSocket *control, FsgView *view, FsgSession **ret_session,
		  char **reterr_message)
{
	g_autoptr(JsonObject) message = NULL;
	FD_AUTO device = -1, tasks = -1;
	const char *how = NULL;
	int r = receive_attach(control, &message, &how, &device);

	if (r == 0 && g_strcmp0(how, "tasks") == 0 && device >= 0) {
		tasks = fd_steal(&device);
		json_object_unref(g_steal_pointer(&message));
		r = receive_attach(control, &message, &how, &device);
	}
	if (r < 0)
		return r;
	if (g_strcmp0(how, "device") == 0 && device >= 0)
		r = fsg_session_adopt(view, fd_steal(&device), ret_session, reterr_message);
	else if (g_strcmp0(how, "fusermount") == 0 && get_string(message, "path"))
		r = attach_by_fusermount(view, get_string(message, "path"), ret_session,
					 reterr_message);
	else {
		*reterr_message = g_strdup("the executor's second message is not understood");
		r = -EBADMSG;
	}
	/* fusermount3 mounts in our namespace of pids. */
	if (r == 0 && tasks < 0 && strcmp(how, "fusermount") == 0)
		tasks = fsg_tasks_open();
	if (r == 0 && (r = fsg_session_start(*ret_session, fd_steal(&tasks))) < 0)
		*reterr_message = g_strdup_printf("cannot start threads: %s", errno_text(-r));
	return r;
}

static int serve(ControlSocket *control)
{
	g_autofree char *message = NULL;
	FsgView *view = NULL;
	FsgSession *session = NULL;
	FsgViewDoor *door = NULL;
	FD_AUTO signals = fsg_signals_open();
	int r = start_view(control, &view, &message);

	if (r == 0)
		r = send_flag(control, "ready", -1);
	if (r == 0)
		r = attach(control, view, &session, &message);
	if (r == 0)
		r = send_flag(control, "serving", fsg_invalidate_queue_fd(view));
	if (r == 0)
		r = fsg_view_door_serve(view, session, control_socket_fd(control), &door);
	if (r < 0) {
		send_error(control, message ? message : errno_text(-r));
		fsg_serve_finish(session, NULL, view);
		return FSG_EXIT_FAILED;
	}
	fsg_serve_until_end(session, signals, control_socket_fd(control), NULL);
	/* Nobody is in a sandbox's view any more, and it is mounted nowhere else: what there is goes with the process, sooner
	 * than by our hands. Sanitizers look for what was not freed or joined. */
	if (!view->mountpoint && !WITH_SANITIZER)
		_exit(0);
	fsg_serve_finish(session, door, view);
	return 0;
}

int fsg_cmd_serve(int argc, char **argv)
{
	g_autoptr(ControlSocket) control = NULL;
	char *end;
	long fd;

	if (argc != 3 || strcmp(argv[1], "--control-fd") != 0 ||
	    (fd = strtol(argv[2], &end, 10)) < 0 || *end || fd > 1 << 20 ||
	    fd_set_cloexec((int)fd, true) < 0) {
		fsg_cli_complain("serve: is started by stella-exec; see stella-exec run");
		return FSG_EXIT_USAGE;
	}
	control = control_socket_new((int)fd);
	return serve(control);
}
