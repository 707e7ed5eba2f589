/* See fake-session.h. */
#include "fake-session.h"

#include "common/cond-util.h"
#include "common/fd-util.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <sys/eventfd.h>

#include <cmocka.h>

#define PATIENCE_MS 20000

Gate *gate_new(void)
{
	Gate *gate = g_new0(Gate, 1);

	pthread_mutex_init(&gate->lock, NULL);
	cond_init(&gate->changed);
	return gate;
}

void gate_free(Gate *gate)
{
	pthread_cond_destroy(&gate->changed);
	pthread_mutex_destroy(&gate->lock);
	g_free(gate);
}

static void wake(GCancellable *cancellable, gpointer data)
{
	Gate *gate = data;

	(void)cancellable;
	pthread_mutex_lock(&gate->lock);
	pthread_cond_broadcast(&gate->changed);
	pthread_mutex_unlock(&gate->lock);
}

void gate_pass(Gate *gate, GCancellable *cancellable)
{
	gulong handler = 0;

	if (cancellable)
		handler = g_cancellable_connect(cancellable, G_CALLBACK(wake), gate, NULL);
	pthread_mutex_lock(&gate->lock);
	gate->waiting++;
	pthread_cond_broadcast(&gate->changed);
	while (!gate->open && !g_cancellable_is_cancelled(cancellable))
		pthread_cond_wait(&gate->changed, &gate->lock);
	pthread_mutex_unlock(&gate->lock);
	if (handler)
		g_cancellable_disconnect(cancellable, handler);
}

void gate_await(Gate *gate, int count)
{
	int64_t until = g_get_monotonic_time() + PATIENCE_MS * G_TIME_SPAN_MILLISECOND;
	bool in_time = true;

	pthread_mutex_lock(&gate->lock);
	while (gate->waiting < count && in_time)
		in_time = cond_wait_until(&gate->changed, &gate->lock, until);
	in_time = gate->waiting >= count;
	pthread_mutex_unlock(&gate->lock);
	assert_true(in_time);
}

void gate_open(Gate *gate)
{
	pthread_mutex_lock(&gate->lock);
	gate->open = true;
	pthread_cond_broadcast(&gate->changed);
	pthread_mutex_unlock(&gate->lock);
}

static void session_init(StellaSessionInterface *iface);

G_DEFINE_FINAL_TYPE_WITH_CODE(FakeSession, fake_session, G_TYPE_OBJECT,
			      G_IMPLEMENT_INTERFACE(STELLA_TYPE_SESSION, session_init))

static const char *get_id(StellaSession *session)
{
	return FAKE_SESSION(session)->id;
}

static const char *get_backend(StellaSession *session)
{
	(void)session;
	return "fake";
}

static StellaPolicy *dup_policy(StellaSession *session)
{
	return stella_policy_ref(FAKE_SESSION(session)->policy);
}

static char *dup_working_dir(StellaSession *session)
{
	return g_strdup_printf("/workspace/%s", FAKE_SESSION(session)->id);
}

static gboolean is_alive(StellaSession *session)
{
	FakeSession *fake = FAKE_SESSION(session);

	if (!atomic_load(&fake->dead))
		return TRUE;
	if (fake->alive_gate)
		gate_pass(fake->alive_gate, NULL);
	return FALSE;
}

static int get_done_fd(StellaSession *session)
{
	return FAKE_SESSION(session)->done_fd;
}

void fake_session_die(FakeSession *fake)
{
	if (!atomic_exchange(&fake->dead, true))
		(void)eventfd_write(fake->done_fd, 1);
}

static gboolean close_session(StellaSession *session, GCancellable *cancellable, GError **error)
{
	FakeSession *fake = FAKE_SESSION(session);

	(void)cancellable;
	(void)error;
	atomic_fetch_add(&fake->closes, 1);
	fake_session_die(fake);
	return TRUE;
}

static char *seen(FakeSession *fake, const char *const *env, const char *const *unset)
{
	GString *text = g_string_new(fake->id);

	for (; env && *env; env++)
		g_string_append_printf(text, "\n%s", *env);
	for (; unset && *unset; unset++)
		g_string_append_printf(text, "\n-%s", *unset);
	return g_string_free(text, FALSE);
}

static gboolean check_alive(FakeSession *fake, GError **error)
{
	if (fake->dies_at_exec)
		fake_session_die(fake);
	if (!atomic_load(&fake->dead) && !fake->refuses_execs)
		return TRUE;
	g_set_error(error, STELLA_ERROR, STELLA_ERROR_SESSION_CLOSED, "%s is closed", fake->id);
	return FALSE;
}

static StellaExecResult *exec(StellaSession *session, const char *command,
			      const StellaExecOptions *options, GCancellable *cancellable,
			      GError **error)
{
	FakeSession *fake = FAKE_SESSION(session);
	g_autofree char *text = seen(fake, options->env, options->unset_env);
	StellaExecResultFields fields;

	(void)command;
	if (!check_alive(fake, error))
		return NULL;
	atomic_fetch_add(&fake->execs, 1);
	if (fake->exec_gate)
		gate_pass(fake->exec_gate, cancellable);
	stella_exec_result_fields_init(&fields);
	fields.stdout_data = text;
	fields.stdout_size = strlen(text);
	if (g_cancellable_is_cancelled(cancellable))
		fields.ended = STELLA_ENDED_CANCELED;
	return stella_exec_result_new(&fields);
}

static StellaProcess *start_process(StellaSession *session, const StellaProcessRequest *request,
				    GCancellable *cancellable, GError **error)
{
	FakeSession *fake = FAKE_SESSION(session);
	g_autofree char *text = seen(fake, request->env, request->unset_env);

	(void)cancellable;
	if (check_alive(fake, error))
		g_set_error_literal(error, STELLA_ERROR, STELLA_ERROR_NOT_SUPPORTED, text);
	return NULL;
}

static char *resolve(StellaSession *session, const char *path, GError **error)
{
	(void)error;
	return g_strdup_printf("%s:%s", FAKE_SESSION(session)->id, path);
}

static void session_init(StellaSessionInterface *iface)
{
	iface->get_id = get_id;
	iface->get_backend = get_backend;
	iface->dup_policy = dup_policy;
	iface->dup_working_dir = dup_working_dir;
	iface->is_alive = is_alive;
	iface->get_done_fd = get_done_fd;
	iface->close = close_session;
	iface->exec = exec;
	iface->start_process = start_process;
	iface->resolve = resolve;
	iface->resolve_write = resolve;
}

static void finalize(GObject *object)
{
	FakeSession *fake = FAKE_SESSION(object);

	fd_close(&fake->done_fd);
	stella_policy_unref(fake->policy);
	g_free(fake->id);
	G_OBJECT_CLASS(fake_session_parent_class)->finalize(object);
}

static void fake_session_class_init(FakeSessionClass *class)
{
	G_OBJECT_CLASS(class)->finalize = finalize;
}

static void fake_session_init(FakeSession *fake)
{
	fake->done_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
}

FakeSession *fake_session_new(const char *name)
{
	FakeSession *fake = g_object_new(FAKE_TYPE_SESSION, NULL);
	g_autofree char *own = g_strdup_printf("%s=policy", name);
	const char *const env[] = { own, "SHARED=policy", NULL };
	StellaPolicyOptions options;

	stella_policy_options_init(&options);
	options.working_dir = "/workspace";
	options.env = env;
	fake->id = g_strdup_printf("sandbox-%s", name);
	fake->policy = stella_policy_new(&options);
	return fake;
}
