/* The StellaProcess of this library's own sessions; see stella/process.h and live-process.h, which does the work.
 *
 * The handle may outlive its session object, whose end ends the process: what the handle needs of the session it holds
 * by a reference of its own. */
#include "executor/api-live.h"

#include "common/api-error.h"
#include "common/errno-util.h"
#include "executor/api-exec.h"

#include <errno.h>
#include <pthread.h>

#define API_TYPE_LIVE (api_live_get_type())
G_DECLARE_FINAL_TYPE(ApiLive, api_live, API, LIVE, GObject)

struct _ApiLive {
	GObject parent;
	ExrLive *live;
	pthread_mutex_t lock;
	StellaExecResult *result; /* once somebody has waited for it */
};

static void process_init(StellaProcessInterface *iface);

G_DEFINE_FINAL_TYPE_WITH_CODE(ApiLive, api_live, G_TYPE_OBJECT,
			      G_IMPLEMENT_INTERFACE(STELLA_TYPE_PROCESS, process_init))

static ExrLive *live_of(StellaProcess *process)
{
	return API_LIVE(process)->live;
}

static pid_t get_pid(StellaProcess *process)
{
	return exr_live_pid(live_of(process));
}

static int dup_pidfd(StellaProcess *process, GError **error)
{
	/* A pidfd of what has ended is of no use to anybody. */
	int fd = exr_live_pid(live_of(process)) < 0 ? -ESRCH : exr_live_dup_pidfd(live_of(process));

	if (fd >= 0)
		return fd;
	api_error_set_errno(error, STELLA_ERROR_FAILED, fd, "pidfd of the process");
	return -1;
}

static int get_stdin_fd(StellaProcess *process)
{
	return exr_live_stdin(live_of(process));
}

static int get_stdout_fd(StellaProcess *process)
{
	return exr_live_stdout(live_of(process));
}

static int get_stderr_fd(StellaProcess *process)
{
	return exr_live_stderr(live_of(process));
}

static void close_stdin(StellaProcess *process)
{
	exr_live_close_stdin(live_of(process));
}

static gboolean send_signal(StellaProcess *process, int signum, GError **error)
{
	int r = exr_live_signal(live_of(process), signum);

	if (r < 0)
		api_error_set_errno(error, STELLA_ERROR_FAILED, r,
				    "cannot send signal %d to the process", signum);
	return r >= 0;
}

static gboolean resize(StellaProcess *process, guint16 rows, guint16 columns, GError **error)
{
	int r = exr_live_resize(live_of(process), rows, columns);

	if (r < 0)
		api_error_set_errno(error, STELLA_ERROR_FAILED, r,
				    "cannot resize the terminal of the process");
	return r >= 0;
}

static int get_end_fd(StellaProcess *process)
{
	return exr_live_end_fd(live_of(process));
}

static StellaExecResult *wait_for_end(StellaProcess *process, gint64 timeout_ms,
				      GCancellable *cancellable, GError **error)
{
	ApiLive *self = API_LIVE(process);
	const ExrOutcome *outcome = exr_live_wait(self->live, timeout_ms, cancellable);
	StellaExecResult *result;

	(void)error;
	pthread_mutex_lock(&self->lock);
	if (!self->result)
		self->result = api_exec_result_new(exr_outcome_ref(outcome));
	result = stella_exec_result_ref(self->result);
	pthread_mutex_unlock(&self->lock);
	return result;
}

static void kill_process(StellaProcess *process)
{
	exr_live_kill(live_of(process));
}

static gboolean close_process(StellaProcess *process, GError **error)
{
	int r = exr_live_close(live_of(process));

	if (r < 0)
		api_error_set_errno(error, STELLA_ERROR_FAILED, r,
				    "not all that the process started could be ended");
	return r >= 0;
}

static void process_init(StellaProcessInterface *iface)
{
	iface->get_pid = get_pid;
	iface->dup_pidfd = dup_pidfd;
	iface->get_stdin_fd = get_stdin_fd;
	iface->get_stdout_fd = get_stdout_fd;
	iface->get_stderr_fd = get_stderr_fd;
	iface->close_stdin = close_stdin;
	iface->send_signal = send_signal;
	iface->resize = resize;
	iface->get_end_fd = get_end_fd;
	iface->wait = wait_for_end;
	iface->kill = kill_process;
	iface->close = close_process;
}

static void finalize(GObject *object)
{
	ApiLive *self = API_LIVE(object);

	if (self->live)
		(void)exr_live_close(self->live); /* nobody is left to be told */
	exr_live_unref(self->live);
	stella_exec_result_unref(self->result);
	pthread_mutex_destroy(&self->lock);
	G_OBJECT_CLASS(api_live_parent_class)->finalize(object);
}

static void api_live_class_init(ApiLiveClass *class)
{
	G_OBJECT_CLASS(class)->finalize = finalize;
}

static void api_live_init(ApiLive *self)
{
	pthread_mutex_init(&self->lock, NULL);
}

StellaProcess *api_live_new(ExrLive *take_live)
{
	ApiLive *self = g_object_new(API_TYPE_LIVE, NULL);

	self->live = take_live;
	return STELLA_PROCESS(self);
}
