/* See api-inner.h.
 *
 * The one lock is held for a look at these fields and for a wait on the condition, never while anything of a host's is
 * called: its sessions, its creator, the end of its objects. So nothing that hangs there holds up who only asks.
 *
 * An attempt begins when a session is found dead and none is under way. Who finds it dead meanwhile takes part in
 * that attempt, whatever comes of it; so does who had found it dead before it began, and comes to the lock when it has
 * failed already: that is the same death, and one call of the creator. The next call tries anew. A session that was made
 * is given to them without asking it once more: so one call makes one at most, also where all that is made is dead.
 *
 * Variables that are put over a session while the next is being made stay over that one: its creator may have looked
 * at the host's state before. Those before are forgotten with the session they were put over. */
#include "executor/api-inner.h"

#include "common/api-error.h"
#include "common/cond-util.h"
#include "common/fd-util.h"
#include "executor/api-attempt.h"
#include "executor/api-task.h"
#include "executor/env-overlay.h"

#include <sys/epoll.h>
#include <sys/eventfd.h>

struct ApiInner {
	StellaSessionCreator creator;
	gpointer user_data;
	GDestroyNotify destroy; /* or NULL */
	int done_fd;		/* an epoll of closed_fd and of the present session's */
	int closed_fd;		/* an eventfd */

	pthread_mutex_t lock;	/* of all that follows */
	pthread_cond_t changed; /* an attempt is done; it was closed; who waits has cancelled */
	StellaSession *session;
	int watched_fd; /* the session's, in done_fd; -1: it has none that can be */
	bool closed;
	ApiAttempt *attempt; /* the one under way, or the last if it failed; or NULL */
	char **overlay;	     /* NAME=value; or NULL */
	char **newer;	     /* of it, what came since the attempt under way began; or NULL */
};

/* fd is the next session's; the present one is still referenced. Under the lock. */
static void watch(ApiInner *inner, int fd)
{
	struct epoll_event event = { .events = EPOLLIN };

	if (inner->watched_fd >= 0)
		(void)epoll_ctl(inner->done_fd, EPOLL_CTL_DEL, inner->watched_fd, NULL);
	inner->watched_fd = -1;
	if (fd >= 0 && epoll_ctl(inner->done_fd, EPOLL_CTL_ADD, fd, &event) == 0)
		inner->watched_fd = fd;
}

ApiInner *api_inner_new(StellaSession *session, StellaSessionCreator creator, gpointer user_data,
			GDestroyNotify destroy)
{
	ApiInner *inner = g_new0(ApiInner, 1);
	struct epoll_event event = { .events = EPOLLIN };

	pthread_mutex_init(&inner->lock, NULL);
	cond_init(&inner->changed);
	inner->creator = creator;
	inner->user_data = user_data;
	inner->destroy = destroy;
	inner->session = g_object_ref(session);
	inner->watched_fd = -1;
	inner->done_fd = epoll_create1(EPOLL_CLOEXEC);
	inner->closed_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (epoll_ctl(inner->done_fd, EPOLL_CTL_ADD, inner->closed_fd, &event) == 0)
		watch(inner, stella_session_get_done_fd(session));
	return inner;
}

void api_inner_free(ApiInner *inner)
{
	(void)api_inner_close(inner, API_INNER_PATIENCE_MS, NULL);
	fd_close(&inner->done_fd);
	fd_close(&inner->closed_fd);
	g_clear_object(&inner->session);
	api_attempt_unref(inner->attempt);
	g_strfreev(inner->overlay);
	g_strfreev(inner->newer);
	pthread_cond_destroy(&inner->changed);
	pthread_mutex_destroy(&inner->lock);
	if (inner->destroy)
		inner->destroy(inner->user_data);
	g_free(inner);
}

void api_present_clear(ApiPresent *present)
{
	g_clear_object(&present->session);
	g_clear_pointer(&present->overlay, g_strfreev);
}

/* Under the lock. */
static void get_present(const ApiInner *inner, ApiPresent *ret_present)
{
	*ret_present = (ApiPresent){
		.session = g_object_ref(inner->session),
		.overlay = g_strdupv(inner->overlay),
	};
}

void api_inner_get(ApiInner *inner, ApiPresent *ret_present)
{
	pthread_mutex_lock(&inner->lock);
	get_present(inner, ret_present);
	pthread_mutex_unlock(&inner->lock);
}

static void set_closed(GError **error)
{
	api_error_set(error, STELLA_ERROR_SESSION_CLOSED, "the session is closed");
}

/* Ends an attempt with what was made, or why not. */
static void attempt_end(ApiInner *inner, ApiAttempt *attempt, StellaSession *take_made,
			GError *take_error)
{
	g_autoptr(StellaSession) old = NULL;
	g_autoptr(StellaSession) made = take_made;
	int done_fd = made ? stella_session_get_done_fd(made) : -1;

	pthread_mutex_lock(&inner->lock);
	if (made && inner->closed) {
		/* Before anybody is told that the attempt is done: who closes waits for that. */
		pthread_mutex_unlock(&inner->lock);
		(void)stella_session_close(made, NULL, NULL);
		g_clear_object(&made);
		set_closed(&take_error);
		pthread_mutex_lock(&inner->lock);
	}
	if (made) {
		old = inner->session;
		watch(inner, done_fd);
		inner->session = g_object_ref(made);
		attempt->made = g_steal_pointer(&made);
		g_strfreev(inner->overlay);
		inner->overlay = g_steal_pointer(&inner->newer);
		g_clear_pointer(&inner->attempt, api_attempt_unref);
	}
	g_clear_pointer(&inner->newer, g_strfreev);
	attempt->error = take_error;
	attempt->done = true;
	pthread_cond_broadcast(&inner->changed);
	pthread_mutex_unlock(&inner->lock);
}

/* Makes the attempt, in this thread, that was put in its place. */
static void attempt_run(ApiInner *inner, ApiAttempt *attempt, StellaSession *dead,
			GCancellable *cancellable)
{
	GError *error = NULL;
	StellaSession *made;

	/* What is left of it goes before the next one comes. */
	(void)stella_session_close(dead, NULL, NULL);
	made = api_attempt_make(attempt, inner->creator, inner->user_data, cancellable, &error);
	attempt->abandoned = !made && g_cancellable_is_cancelled(cancellable);
	attempt_end(inner, attempt, made, error);
}

static void wake(GCancellable *cancellable, gpointer data)
{
	ApiInner *inner = data;

	(void)cancellable;
	pthread_mutex_lock(&inner->lock);
	pthread_cond_broadcast(&inner->changed);
	pthread_mutex_unlock(&inner->lock);
}

/* Waits until the attempt is done, and tells what came of it: a session; or an error; or neither, when it failed for a
 * reason of another caller's. */
static void attempt_join(ApiInner *inner, ApiAttempt *attempt, GCancellable *cancellable,
			 ApiPresent *ret_present, GError **error)
{
	gulong handler = 0;

	if (cancellable)
		handler = g_cancellable_connect(cancellable, G_CALLBACK(wake), inner, NULL);
	pthread_mutex_lock(&inner->lock);
	while (!attempt->done && !inner->closed && !g_cancellable_is_cancelled(cancellable))
		pthread_cond_wait(&inner->changed, &inner->lock);
	if (inner->closed) {
		set_closed(error);
	} else if (attempt->made) {
		get_present(inner, ret_present);
		ret_present->is_new = TRUE;
	} else if (!api_task_canceled(cancellable, error) && !attempt->abandoned) {
		g_propagate_error(error, g_error_copy(attempt->error));
	}
	pthread_mutex_unlock(&inner->lock);
	if (handler)
		g_cancellable_disconnect(cancellable, handler);
}

/* Who is asked by the creator itself, in its thread, would wait for itself. */
static gboolean check_not_maker(const ApiAttempt *attempt, GError **error)
{
	if (!pthread_equal(attempt->maker, pthread_self()))
		return TRUE;
	api_error_set(error, STELLA_ERROR_FAILED,
		      "the session is being made by this very call of its creator");
	return FALSE;
}

/* What is there when a caller comes. */
typedef struct {
	ApiPresent present;  /* no session: an attempt is under way */
	ApiAttempt *attempt; /* that one; or the last, if it failed; or NULL */
} Seen;

static void seen_clear(Seen *seen)
{
	api_present_clear(&seen->present);
	g_clear_pointer(&seen->attempt, api_attempt_unref);
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(Seen, seen_clear)

static gboolean look(ApiInner *inner, Seen *ret_seen, GError **error)
{
	gboolean is_open;

	pthread_mutex_lock(&inner->lock);
	is_open = !inner->closed;
	if (inner->attempt)
		ret_seen->attempt = api_attempt_ref(inner->attempt);
	if (!inner->attempt || inner->attempt->done)
		get_present(inner, &ret_seen->present);
	pthread_mutex_unlock(&inner->lock);
	if (!is_open)
		set_closed(error);
	return is_open;
}

/* The session that was seen is dead. Gives the one that is there instead by now; or an attempt, to be joined, or to be made by
 * this caller; or neither, with an error, for all of it is closed. */
static void get_next(ApiInner *inner, const Seen *seen, ApiPresent *ret_present,
		     ApiAttempt **ret_attempt, bool *ret_is_maker, GError **error)
{
	pthread_mutex_lock(&inner->lock);
	if (inner->closed) {
		set_closed(error);
	} else if (inner->session != seen->present.session) {
		get_present(inner, ret_present);
		ret_present->is_new = TRUE;
	} else {
		*ret_is_maker = inner->attempt == seen->attempt;
		if (*ret_is_maker) {
			api_attempt_unref(inner->attempt);
			inner->attempt = api_attempt_new();
		}
		*ret_attempt = api_attempt_ref(inner->attempt);
	}
	pthread_mutex_unlock(&inner->lock);
}

/* One round: a session, or an error, or neither: another round is due. */
static void try_live(ApiInner *inner, GCancellable *cancellable, ApiPresent *ret_present,
		     GError **error)
{
	g_auto(Seen) seen = { API_NO_PRESENT, NULL };
	g_autoptr(ApiAttempt) attempt = NULL;
	bool is_maker = false;

	if (!look(inner, &seen, error))
		return;
	if (!seen.present.session) {
		if (check_not_maker(seen.attempt, error))
			attempt_join(inner, seen.attempt, cancellable, ret_present, error);
		return;
	}
	if (stella_session_is_alive(seen.present.session)) {
		*ret_present = seen.present;
		seen.present = (ApiPresent)API_NO_PRESENT;
		return;
	}
	if (api_task_canceled(cancellable, error))
		return;
	get_next(inner, &seen, ret_present, &attempt, &is_maker, error);
	if (!attempt)
		return;
	if (is_maker)
		attempt_run(inner, attempt, seen.present.session, cancellable);
	attempt_join(inner, attempt, cancellable, ret_present, error);
}

gboolean api_inner_get_live(ApiInner *inner, GCancellable *cancellable, ApiPresent *ret_present,
			    GError **error)
{
	ApiPresent present = API_NO_PRESENT;
	GError *why = NULL;

	while (!present.session && !why)
		try_live(inner, cancellable, &present, &why);
	if (why) {
		g_propagate_error(error, why);
		return FALSE;
	}
	*ret_present = present;
	return TRUE;
}

static void put_over(char ***list, const char *const *updates)
{
	char **old = *list;

	*list = exr_env_overlay((const char *const *)old, updates);
	g_strfreev(old);
}

gboolean api_inner_overlay(ApiInner *inner, const char *const *updates, GError **error)
{
	gboolean is_open;

	pthread_mutex_lock(&inner->lock);
	is_open = !inner->closed;
	if (is_open) {
		put_over(&inner->overlay, updates);
		if (inner->attempt && !inner->attempt->done)
			put_over(&inner->newer, updates);
	}
	pthread_mutex_unlock(&inner->lock);
	if (!is_open)
		set_closed(error);
	return is_open;
}

/* Waits for an attempt under way, whose creator has been told. */
static gboolean await_attempt(ApiInner *inner, ApiAttempt *attempt, gint64 patience_ms,
			      GError **error)
{
	int64_t until = g_get_monotonic_time() + patience_ms * G_TIME_SPAN_MILLISECOND;
	bool in_time = true;

	pthread_mutex_lock(&inner->lock);
	while (!attempt->done && in_time)
		in_time = cond_wait_until(&inner->changed, &inner->lock, until);
	in_time = attempt->done;
	pthread_mutex_unlock(&inner->lock);
	if (!in_time)
		api_error_set(error, STELLA_ERROR_TIMED_OUT,
			      "a new session is still being made: it is closed when it is there");
	return in_time;
}

gboolean api_inner_close(ApiInner *inner, gint64 patience_ms, GError **error)
{
	g_autoptr(StellaSession) session = NULL;
	g_autoptr(ApiAttempt) attempt = NULL;

	pthread_mutex_lock(&inner->lock);
	inner->closed = true;
	session = g_object_ref(inner->session);
	if (inner->attempt && !inner->attempt->done)
		attempt = api_attempt_ref(inner->attempt);
	pthread_cond_broadcast(&inner->changed);
	pthread_mutex_unlock(&inner->lock);
	(void)eventfd_write(inner->closed_fd, 1);
	if (attempt)
		g_cancellable_cancel(attempt->cancellable);
	if (!stella_session_close(session, NULL, error))
		return FALSE;
	/* A creator that closes does not wait for itself. */
	if (attempt && !pthread_equal(attempt->maker, pthread_self()))
		return await_attempt(inner, attempt, patience_ms, error);
	return TRUE;
}

gboolean api_inner_is_closed(ApiInner *inner)
{
	bool closed;

	pthread_mutex_lock(&inner->lock);
	closed = inner->closed;
	pthread_mutex_unlock(&inner->lock);
	return closed;
}

int api_inner_done_fd(ApiInner *inner)
{
	bool seen;

	pthread_mutex_lock(&inner->lock);
	seen = inner->watched_fd >= 0;
	pthread_mutex_unlock(&inner->lock);
	return seen ? inner->done_fd : -1;
}
