/* stella-fsgate mount: serves a view that people and programs of the host look into.
 *
 * In the background the parent stays until the view answers, so that whoever called it can use the view at
 * once, and gets every error of the start as one line and an exit status. */
#include "fsgate/cli.h"
#include "fsgate/door-socket.h"
#include "fsgate/mountpoint.h"
#include "fsgate/serve-until.h"
#include "fsgate/task.h"

#include "common/errno-util.h"
#include "common/fd-util.h"
#include "common/io-util.h"
#include "common/path-util.h"
#include "common/policy-options.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>

typedef struct {
	PolicyOptions *policy;
	const char *mountpoint;
	bool read_only;
	bool foreground;
	bool allow_other;
	bool original_links;
} MountOptions;

static int take_links(MountOptions *options, const char *mode, char **reterr_message)
{
	if (mode && strcmp(mode, "original") == 0)
		options->original_links = true;
	else if (!mode || strcmp(mode, "rewritten") != 0) {
		*reterr_message = g_strdup("--links: expected rewritten or original");
		return -EINVAL;
	}
	return 0;
}

static int take_argument(MountOptions *options, int argc, char **argv, int *index,
			 char **reterr_message)
{
	const char *argument = argv[*index];

	if (strcmp(argument, "-r") == 0)
		options->read_only = true;
	else if (strcmp(argument, "-f") == 0)
		options->foreground = true;
	else if (strcmp(argument, "--allow-other") == 0)
		options->allow_other = true;
	else if (g_str_has_prefix(argument, "--links="))
		return take_links(options, argument + strlen("--links="), reterr_message);
	else if (strcmp(argument, "--links") == 0)
		return take_links(options, *index + 1 < argc ? argv[++*index] : NULL,
				  reterr_message);
	else if (argument[0] == '-' && argument[1] != '\0') {
		*reterr_message = g_strdup_printf("mount: unknown option '%s'", argument);
		return -EINVAL;
	} else if (options->mountpoint) {
		*reterr_message =
			g_strdup_printf("mount: one MOUNTPOINT only, not also '%s'", argument);
		return -EINVAL;
	} else
		options->mountpoint = argument;
	return 0;
}

static int parse(MountOptions *options, int argc, char **argv, char **reterr_message)
{
	for (int i = 1; i < argc; i++) {
		int r = policy_options_take(options->policy, argc, argv, &i, reterr_message);

		if (r == 0)
			r = take_argument(options, argc, argv, &i, reterr_message);
		if (r < 0)
			return r;
	}
	if (!options->mountpoint) {
		*reterr_message = g_strdup("mount: which MOUNTPOINT?");
		return -EINVAL;
	}
	return 0;
}

static int check_ownership(const ViewPlan *plan, char **reterr_message)
{
	const char *missing;

	if (plan->policy->ownership != POLICY_OWNERSHIP_HOST ||
	    !(missing = fsg_identity_missing_capability()))
		return 0;
	*reterr_message = g_strdup_printf("filesystem.ownership: \"host\" needs %s", missing);
	return -EPERM;
}

/* Everything up to the running threads. */
static int start(const MountOptions *options, ViewPlan *take_plan, int mountpoint_fd,
		 const char *path, const char *door_dir, FsgView **ret_view,
		 FsgSession **ret_session, char **reterr_message)
{
	FsgViewConfig config = {
		.original_links = options->original_links,
		.kernel_decides = options->allow_other ||
				  take_plan->policy->ownership == POLICY_OWNERSHIP_HOST,
		.mountpoint = path,
		.shown_uid = getuid(),
		.shown_gid = getgid(),
		.private_dir = door_dir,
	};
	FsgSession *session = NULL;
	FsgView *view = NULL;
	int r;

	if ((r = check_ownership(take_plan, reterr_message)) < 0 ||
	    (r = fsg_cli_prepare_process(reterr_message)) < 0) {
		view_plan_free(take_plan);
		return r;
	}
	if ((r = fsg_view_new(take_plan, &config, &view, reterr_message)) < 0)
		return r;
	r = fsg_session_mount(view, mountpoint_fd, options->allow_other, &session, reterr_message);
	if (r == 0 && (r = fsg_session_start(session, fsg_tasks_open())) < 0)
		*reterr_message = g_strdup_printf("cannot start threads: %s", errno_text(-r));
	if (r < 0) {
		fsg_serve_finish(session, NULL, view);
		return r;
	}
	*ret_view = view;
	*ret_session = session;
	return 0;
}

/* A failed start travels to the waiting parent as text; an empty text is success. */
static void report(int *report_fd, const char *text)
{
	if (*report_fd >= 0)
		(void)io_write_all(*report_fd, text,
				   strlen(text) + 1); /* a parent that left: no one */
	else if (*text)
		fsg_cli_complain("%s", text);
	fd_close(report_fd);
}

static void detach_from_terminal(void)
{
	FD_AUTO null = open("/dev/null", O_RDWR | O_CLOEXEC);

	if (null < 0 || chdir("/") != 0)
		return; /* harmless: it only keeps what the caller gave us */
	for (int fd = 0; fd <= STDERR_FILENO; fd++)
		(void)dup2(null, fd);
}

static void print_plan(const MountOptions *options, const ViewPlan *plan, const char *path)
{
	g_autofree char *table = view_plan_format(plan);
	g_autofree char *shown = path_escape(path);
	g_auto(GStrv) writable = view_plan_writable(plan);
	g_autofree char *list = g_strjoinv(" ", writable);

	printf("%s\n%s", shown, table);
	printf("writable: %s\n", list[0] ? list : "nothing");
	if (!options->original_links)
		printf("links: texts that are absolute or hold \"..\" are shown rewritten\n");
	(void)fflush(stdout);
}

/* A view without a door is a view all the same: it only cannot tell its state. */
static FsgViewDoor *open_door(FsgView *view, FsgSession *session, int take_dirfd, const char *path)
{
	FsgViewDoor *door = NULL;
	int r = take_dirfd < 0 ? take_dirfd
			       : fsg_view_door_open(view, session, take_dirfd, path, &door);

	if (r < 0)
		fsg_cli_complain("no status will be given: the socket for it: %s", errno_text(-r));
	return door;
}

static int serve_here(const MountOptions *options, ViewPlan *take_plan, int take_mountpoint_fd,
		      const char *path, int report_fd)
{
	FD_AUTO mountpoint_fd = take_mountpoint_fd;
	g_autofree char *message = NULL;
	FsgView *view;
	FsgSession *session;
	FsgViewDoor *door;
	g_autofree char *door_dir = NULL;
	FD_AUTO door_fd = fsg_door_dir_open(&door_dir);
	FD_AUTO signals = fsg_signals_open();

	if (start(options, take_plan, mountpoint_fd, path, door_dir, &view, &session, &message) <
	    0) {
		report(&report_fd, message ? message : "cannot start");
		return FSG_EXIT_FAILED;
	}
	door = open_door(view, session, fd_steal(&door_fd), path);
	fd_close(&mountpoint_fd); /* it would look like a user of the view */
	if (report_fd >= 0) {
		report(&report_fd, "");
		detach_from_terminal();
	} else {
		print_plan(options, view->plan, path);
	}
	fsg_serve_until_end(session, signals, -1, path);
	fsg_serve_finish(session, door, view);
	return 0;
}

/* The view answers when its root does: the mounting user's own look, in a process that serves nothing. */
static int wait_for_view(int pipe_fd, const char *path, pid_t child)
{
	char message[4096];
	ssize_t got = io_read_all(pipe_fd, message, sizeof message - 1);
	struct stat st;

	if (got > 0 && message[0] == '\0')
		return stat(path, &st) == 0 ? 0 : -errno;
	message[got > 0 ? got : 0] = '\0';
	fsg_cli_complain("%s", got > 0 ? message : "the gateway ended before it served");
	(void)waitpid(child, NULL, 0);
	return -EIO;
}

static int serve_in_background(const MountOptions *options, ViewPlan *take_plan,
			       int take_mountpoint_fd, const char *path)
{
	FD_AUTO mountpoint_fd = take_mountpoint_fd;
	g_autoptr(ViewPlan) plan = take_plan;
	int pipe_fds[2];
	pid_t child;
	int r;

	if (pipe2(pipe_fds, O_CLOEXEC) != 0 || (child = fork()) < 0) {
		fsg_cli_complain("cannot go into the background: %s", errno_text(errno));
		return FSG_EXIT_FAILED;
	}
	if (child == 0) {
		close(pipe_fds[0]);
		(void)setsid(); /* fails only for a group leader, which a fork is not */
		_exit(serve_here(options, g_steal_pointer(&plan), fd_steal(&mountpoint_fd), path,
				 pipe_fds[1]));
	}
	close(pipe_fds[1]);
	r = wait_for_view(pipe_fds[0], path, child);
	close(pipe_fds[0]);
	if (r < 0)
		return FSG_EXIT_FAILED;
	print_plan(options, plan, path);
	return 0;
}

static int mount_view(const MountOptions *options, const StellaPolicy *policy)
{
	g_autoptr(ViewPlan) plan = NULL;
	g_autofree char *message = NULL;
	g_autofree char *path = NULL;

	if (view_plan_new(policy, VIEW_FOR_HOST, &plan, &message) < 0) {
		g_autofree char *explained = policy_options_explain(options->policy, message);

		fsg_cli_complain("%s", explained);
		return FSG_EXIT_USAGE;
	}
	for (guint i = 0; options->read_only && i < plan->entries->len; i++)
		((ViewEntry *)g_ptr_array_index(plan->entries, i))->access = STELLA_MOUNT_READ_ONLY;
	FD_AUTO mountpoint = fsg_mountpoint_open(options->mountpoint, plan, &path, &message);
	if (mountpoint < 0) {
		fsg_cli_complain("%s", message);
		return FSG_EXIT_FAILED;
	}
	if (options->foreground)
		return serve_here(options, g_steal_pointer(&plan), fd_steal(&mountpoint), path, -1);
	return serve_in_background(options, g_steal_pointer(&plan), fd_steal(&mountpoint), path);
}

int fsg_cmd_mount(int argc, char **argv)
{
	g_autoptr(PolicyOptions) policy_options = policy_options_new(POLICY_FOR_LOOKING);
	MountOptions options = { .policy = policy_options };
	g_autoptr(StellaPolicy) policy = NULL;
	g_autofree char *message = NULL;
	int r = parse(&options, argc, argv, &message);

	if (r == 0)
		r = policy_options_finish(policy_options, &policy, &message);
	if (r < 0) {
		fsg_cli_complain("%s", message);
		return FSG_EXIT_USAGE;
	}
	if ((r = fsg_cli_check_supported(policy)) != 0)
		return r;
	return mount_view(&options, policy);
}
