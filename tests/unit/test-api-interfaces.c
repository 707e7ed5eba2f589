/* Sessions and processes that a host implements itself: what it gives works with the asynchronous twins too, what it does
 * not give is answered, and what callers give it has been judged. */
#include "common/api-error.h"

#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stella/stella.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <cmocka.h>

/* ---- a process that has only what blocks ---- */

#define HOST_TYPE_PROCESS (host_process_get_type())
G_DECLARE_FINAL_TYPE(HostProcess, host_process, HOST, PROCESS, GObject)

struct _HostProcess {
	GObject parent;
	gint64 waited_ms;
	bool closed;
	GThread *waited_in;
};

static StellaExecResult *host_wait(StellaProcess *process, gint64 timeout_ms,
				   GCancellable *cancellable, GError **error)
{
	HostProcess *self = HOST_PROCESS(process);
	StellaExecResultFields fields;

	(void)cancellable;
	if (self->closed) {
		api_error_set(error, STELLA_ERROR_FAILED, "closed");
		return NULL;
	}
	self->waited_ms = timeout_ms;
	self->waited_in = g_thread_self();
	stella_exec_result_fields_init(&fields);
	fields.exit_code = 5;
	return stella_exec_result_new(&fields);
}

static gboolean host_close_process(StellaProcess *process, GError **error)
{
	(void)error;
	HOST_PROCESS(process)->closed = true;
	return TRUE;
}

static void host_process_iface(StellaProcessInterface *iface)
{
	iface->wait = host_wait;
	iface->close = host_close_process;
}

G_DEFINE_FINAL_TYPE_WITH_CODE(HostProcess, host_process, G_TYPE_OBJECT,
			      G_IMPLEMENT_INTERFACE(STELLA_TYPE_PROCESS, host_process_iface))

static void host_process_class_init(HostProcessClass *class)
{
	(void)class;
}

static void host_process_init(HostProcess *self)
{
	(void)self;
}

/* ---- a session likewise ---- */

#define HOST_TYPE_SESSION (host_session_get_type())
G_DECLARE_FINAL_TYPE(HostSession, host_session, HOST, SESSION, GObject)

struct _HostSession {
	GObject parent;
	int done_fd;
	bool closed;
	GThread *ran_in;
	gsize size;	   /* of the options that it was given */
	char *environment; /* and their first variable */
};

static gboolean host_is_alive(StellaSession *session)
{
	return !HOST_SESSION(session)->closed;
}

static int host_done_fd(StellaSession *session)
{
	return HOST_SESSION(session)->done_fd;
}

static gboolean host_close(StellaSession *session, GCancellable *cancellable, GError **error)
{
	HostSession *self = HOST_SESSION(session);

	(void)cancellable;
	(void)error;
	self->closed = true;
	(void)eventfd_write(self->done_fd, 1);
	return TRUE;
}

static StellaExecResult *host_exec(StellaSession *session, const char *command,
				   const StellaExecOptions *options, GCancellable *cancellable,
				   GError **error)
{
	HostSession *self = HOST_SESSION(session);
	StellaExecResultFields fields;

	if (g_cancellable_is_cancelled(cancellable)) {
		api_error_set(error, STELLA_ERROR_CANCELED, "never mind");
		return NULL;
	}
	self->ran_in = g_thread_self();
	self->size = options->size;
	g_free(self->environment);
	self->environment = g_strdup(options->env ? options->env[0] : NULL);
	stella_exec_result_fields_init(&fields);
	fields.stdout_data = command;
	fields.stdout_size = strlen(command);
	return stella_exec_result_new(&fields);
}

static StellaProcess *host_start(StellaSession *session, const StellaProcessRequest *request,
				 GCancellable *cancellable, GError **error)
{
	(void)session;
	(void)cancellable;
	if (strcmp(request->path, "none") != 0)
		return g_object_new(HOST_TYPE_PROCESS, NULL);
	api_error_set(error, STELLA_ERROR_PROGRAM_NOT_FOUND, "none");
	return NULL;
}

static char *host_resolve(StellaSession *session, const char *path, GError **error)
{
	(void)session;
	(void)error;
	return g_strconcat("/host", path, NULL);
}

static void host_session_iface(StellaSessionInterface *iface)
{
	iface->is_alive = host_is_alive;
	iface->get_done_fd = host_done_fd;
	iface->close = host_close;
	iface->exec = host_exec;
	iface->start_process = host_start;
	iface->resolve = host_resolve;
}

G_DEFINE_FINAL_TYPE_WITH_CODE(HostSession, host_session, G_TYPE_OBJECT,
			      G_IMPLEMENT_INTERFACE(STELLA_TYPE_SESSION, host_session_iface))

static void host_session_finalize(GObject *object)
{
	HostSession *self = HOST_SESSION(object);

	close(self->done_fd);
	g_free(self->environment);
	G_OBJECT_CLASS(host_session_parent_class)->finalize(object);
}

static void host_session_class_init(HostSessionClass *class)
{
	G_OBJECT_CLASS(class)->finalize = host_session_finalize;
}

static void host_session_init(HostSession *self)
{
	self->done_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
}

/* ---- and those that have nothing at all ---- */

#define BARE_TYPE_PROCESS (bare_process_get_type())
#define BARE_TYPE_SESSION (bare_session_get_type())
G_DECLARE_FINAL_TYPE(BareProcess, bare_process, BARE, PROCESS, GObject)
G_DECLARE_FINAL_TYPE(BareSession, bare_session, BARE, SESSION, GObject)

struct _BareProcess {
	GObject parent;
};

struct _BareSession {
	GObject parent;
};

G_DEFINE_FINAL_TYPE_WITH_CODE(BareProcess, bare_process, G_TYPE_OBJECT,
			      G_IMPLEMENT_INTERFACE(STELLA_TYPE_PROCESS, NULL))
G_DEFINE_FINAL_TYPE_WITH_CODE(BareSession, bare_session, G_TYPE_OBJECT,
			      G_IMPLEMENT_INTERFACE(STELLA_TYPE_SESSION, NULL))

static void bare_process_class_init(BareProcessClass *class)
{
	(void)class;
}

static void bare_process_init(BareProcess *self)
{
	(void)self;
}

static void bare_session_class_init(BareSessionClass *class)
{
	(void)class;
}

static void bare_session_init(BareSession *self)
{
	(void)self;
}

/* ---- */

static void assert_code(GError **error, StellaError code)
{
	assert_true(g_error_matches(*error, STELLA_ERROR, (int)code));
	g_clear_error(error);
}

static void keep(GObject *source, GAsyncResult *result, gpointer data)
{
	GAsyncResult **kept = data;

	(void)source;
	*kept = g_object_ref(result);
}

static GAsyncResult *await(GAsyncResult **kept)
{
	while (!*kept)
		g_main_context_iteration(NULL, TRUE);
	return *kept;
}

static void what_a_process_has_not_is_answered(void **state)
{
	g_autoptr(StellaProcess) process = g_object_new(BARE_TYPE_PROCESS, NULL);
	g_autoptr(GAsyncResult) waited = NULL, closed = NULL;
	GError *error = NULL;

	(void)state;
	assert_int_equal(stella_process_get_pid(process), -1);
	assert_int_equal(stella_process_get_stdin_fd(process), -1);
	assert_int_equal(stella_process_get_stdout_fd(process), -1);
	assert_int_equal(stella_process_get_stderr_fd(process), -1);
	assert_int_equal(stella_process_get_end_fd(process), -1);
	stella_process_close_stdin(process);
	stella_process_kill(process);
	assert_int_equal(stella_process_dup_pidfd(process, &error), -1);
	assert_code(&error, STELLA_ERROR_NOT_SUPPORTED);
	assert_false(stella_process_send_signal(process, SIGTERM, &error));
	assert_code(&error, STELLA_ERROR_NOT_SUPPORTED);
	assert_false(stella_process_resize(process, 1, 1, &error));
	assert_code(&error, STELLA_ERROR_NOT_SUPPORTED);
	assert_null(stella_process_wait(process, 0, NULL, &error));
	assert_code(&error, STELLA_ERROR_NOT_SUPPORTED);
	assert_false(stella_process_close(process, &error));
	assert_code(&error, STELLA_ERROR_NOT_SUPPORTED);
	stella_process_wait_async(process, 0, NULL, keep, &waited);
	assert_null(stella_process_wait_finish(process, await(&waited), &error));
	assert_code(&error, STELLA_ERROR_NOT_SUPPORTED);
	stella_process_close_async(process, NULL, keep, &closed);
	assert_false(stella_process_close_finish(process, await(&closed), &error));
	assert_code(&error, STELLA_ERROR_NOT_SUPPORTED);
	/* Nobody wants to know. */
	assert_null(stella_process_wait(process, 0, NULL, NULL));
}

static void what_a_session_has_not_is_answered(void **state)
{
	g_autoptr(StellaSession) session = g_object_new(BARE_TYPE_SESSION, NULL);
	g_autoptr(GAsyncResult) done = NULL, executed = NULL, started = NULL, closed = NULL;
	const char *const updates[] = { "A=1", NULL };
	StellaProcessRequest request;
	GError *error = NULL;

	(void)state;
	stella_process_request_init(&request);
	request.path = "true";
	assert_null(stella_session_get_id(session));
	assert_null(stella_session_get_backend(session));
	assert_null(stella_session_dup_policy(session));
	assert_null(stella_session_dup_working_dir(session));
	assert_false(stella_session_is_alive(session));
	assert_int_equal(stella_session_get_done_fd(session), -1);
	assert_true(stella_session_wait_done(session, NULL, NULL)); /* it is not alive */
	assert_false(stella_session_close(session, NULL, &error));
	assert_code(&error, STELLA_ERROR_NOT_SUPPORTED);
	assert_null(stella_session_exec(session, "true", NULL, NULL, &error));
	assert_code(&error, STELLA_ERROR_NOT_SUPPORTED);
	assert_null(stella_session_start_process(session, &request, NULL, &error));
	assert_code(&error, STELLA_ERROR_NOT_SUPPORTED);
	assert_null(stella_session_resolve(session, "/x", &error));
	assert_code(&error, STELLA_ERROR_NOT_SUPPORTED);
	assert_null(stella_session_resolve_write(session, "/x", &error));
	assert_code(&error, STELLA_ERROR_NOT_SUPPORTED);
	assert_int_equal(stella_session_open(session, "/x", 0, 0, &error), -1);
	assert_code(&error, STELLA_ERROR_NOT_SUPPORTED);
	assert_null(stella_session_dup_resolver(session, &error));
	assert_code(&error, STELLA_ERROR_NOT_SUPPORTED);
	assert_null(stella_session_dup_files(session, &error));
	assert_code(&error, STELLA_ERROR_NOT_SUPPORTED);
	assert_false(stella_session_refresh_env(session, updates, &error));
	assert_code(&error, STELLA_ERROR_ENV_REFRESH_UNSUPPORTED);
	stella_session_wait_done_async(session, NULL, keep, &done);
	assert_true(stella_session_wait_done_finish(session, await(&done), NULL));
	stella_session_exec_async(session, "true", NULL, NULL, keep, &executed);
	assert_null(stella_session_exec_finish(session, await(&executed), &error));
	assert_code(&error, STELLA_ERROR_NOT_SUPPORTED);
	stella_session_start_process_async(session, &request, NULL, keep, &started);
	assert_null(stella_session_start_process_finish(session, await(&started), &error));
	assert_code(&error, STELLA_ERROR_NOT_SUPPORTED);
	stella_session_close_async(session, NULL, keep, &closed);
	assert_false(stella_session_close_finish(session, await(&closed), &error));
	assert_code(&error, STELLA_ERROR_NOT_SUPPORTED);
}

static void an_implementation_is_given_what_was_judged(void **state)
{
	g_autoptr(HostSession) host = g_object_new(HOST_TYPE_SESSION, NULL);
	StellaSession *session = STELLA_SESSION(host);
	gsize shorter = offsetof(StellaExecOptions, timeout_ms);
	const char *const wrong[] = { "no variable", NULL };
	g_autofree StellaExecOptions *older = g_malloc0(sizeof *older);
	g_autoptr(StellaExecResult) plain = NULL, given = NULL;
	g_autofree char *path = NULL;
	StellaProcessRequest request;
	GError *error = NULL;

	(void)state;
	plain = stella_session_exec(session, "text", NULL, NULL, NULL);
	assert_string_equal(stella_exec_result_get_stdout(plain, NULL), "text");
	assert_int_equal(host->size, sizeof(StellaExecOptions)); /* never none at all */
	older->size = shorter;
	older->timeout_ms = -77; /* not there, for a caller of that version */
	given = stella_session_exec(session, "x", older, NULL, NULL);
	assert_non_null(given);
	assert_int_equal(host->size, sizeof(StellaExecOptions));
	host->ran_in = NULL;
	older->env = wrong;
	assert_null(stella_session_exec(session, "x", older, NULL, &error));
	assert_code(&error, STELLA_ERROR_INVALID_ARGUMENT);
	assert_null(host->ran_in);
	assert_false(stella_session_refresh_env(session, wrong, &error));
	assert_code(&error, STELLA_ERROR_INVALID_ARGUMENT);
	stella_process_request_init(&request);
	assert_null(stella_session_start_process(session, &request, NULL, &error));
	assert_code(&error, STELLA_ERROR_INVALID_ARGUMENT);
	path = stella_session_resolve(session, "/x", NULL);
	assert_string_equal(path, "/host/x");
	assert_null(stella_session_resolve_write(session, "/x", &error));
	assert_code(&error, STELLA_ERROR_NOT_SUPPORTED);
}

static void a_blocking_exec_has_an_asynchronous_twin(void **state)
{
	g_autoptr(HostSession) host = g_object_new(HOST_TYPE_SESSION, NULL);
	StellaSession *session = STELLA_SESSION(host);
	g_autoptr(GCancellable) cancelled = g_cancellable_new();
	g_autoptr(GAsyncResult) ran = NULL, canceled = NULL;
	g_autoptr(StellaExecResult) result = NULL;
	char variable[] = "A=1";
	const char *env[] = { variable, NULL };
	StellaExecOptions options;
	GError *error = NULL;

	(void)state;
	stella_exec_options_init(&options);
	options.env = env;
	stella_session_exec_async(session, "text", &options, NULL, keep, &ran);
	variable[0] = 'z';
	env[0] = NULL;
	result = stella_session_exec_finish(session, await(&ran), &error);
	assert_string_equal(stella_exec_result_get_stdout(result, NULL), "text");
	assert_string_equal(host->environment, "A=1");
	assert_ptr_not_equal(host->ran_in, g_thread_self());
	/* Its answer counts, also when the caller has cancelled meanwhile. */
	g_cancellable_cancel(cancelled);
	stella_session_exec_async(session, "text", NULL, cancelled, keep, &canceled);
	assert_null(stella_session_exec_finish(session, await(&canceled), &error));
	assert_code(&error, STELLA_ERROR_CANCELED);
}

static void its_processes_and_its_end_have_them_too(void **state)
{
	g_autoptr(HostSession) host = g_object_new(HOST_TYPE_SESSION, NULL);
	StellaSession *session = STELLA_SESSION(host);
	g_autoptr(GAsyncResult) started = NULL, failed = NULL, waited = NULL, closed = NULL;
	g_autoptr(GAsyncResult) done = NULL, ended = NULL;
	g_autoptr(StellaProcess) process = NULL;
	g_autoptr(StellaExecResult) result = NULL;
	StellaProcessRequest request;
	GError *error = NULL;

	(void)state;
	stella_process_request_init(&request);
	request.path = "true";
	stella_session_start_process_async(session, &request, NULL, keep, &started);
	request.path = "none";
	stella_session_start_process_async(session, &request, NULL, keep, &failed);
	process = stella_session_start_process_finish(session, await(&started), NULL);
	assert_non_null(process);
	assert_null(stella_session_start_process_finish(session, await(&failed), &error));
	assert_code(&error, STELLA_ERROR_PROGRAM_NOT_FOUND);
	stella_process_wait_async(process, 77, NULL, keep, &waited);
	result = stella_process_wait_finish(process, await(&waited), NULL);
	assert_int_equal(stella_exec_result_get_exit_code(result), 5);
	assert_int_equal(HOST_PROCESS(process)->waited_ms, 77);
	assert_ptr_not_equal(HOST_PROCESS(process)->waited_in, g_thread_self());
	stella_process_close_async(process, NULL, keep, &closed);
	assert_true(stella_process_close_finish(process, await(&closed), NULL));
	assert_null(stella_process_wait(process, 0, NULL, &error));
	assert_code(&error, STELLA_ERROR_FAILED);

	stella_session_wait_done_async(session, NULL, keep, &done);
	stella_session_close_async(session, NULL, keep, &ended);
	assert_true(stella_session_close_finish(session, await(&ended), NULL));
	assert_true(stella_session_wait_done_finish(session, await(&done), NULL));
	assert_true(stella_session_wait_done(session, NULL, NULL));
}

/* A result that nobody fetches is freed with the call: a sanitizer sees it. */
static void a_result_that_nobody_fetches_is_freed(void **state)
{
	g_autoptr(HostSession) host = g_object_new(HOST_TYPE_SESSION, NULL);
	g_autoptr(GAsyncResult) ran = NULL;

	(void)state;
	stella_session_exec_async(STELLA_SESSION(host), "text", NULL, NULL, keep, &ran);
	await(&ran);
	assert_non_null(host->ran_in);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_a_process_has_not_is_answered),
		cmocka_unit_test(what_a_session_has_not_is_answered),
		cmocka_unit_test(an_implementation_is_given_what_was_judged),
		cmocka_unit_test(a_blocking_exec_has_an_asynchronous_twin),
		cmocka_unit_test(its_processes_and_its_end_have_them_too),
		cmocka_unit_test(a_result_that_nobody_fetches_is_freed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
