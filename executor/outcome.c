/* What became of a command, put together from what its exec, the relay and the gateway know; see session-exec.h. */
#include "executor/outcome-internal.h"

#include "common/errno-util.h"
#include "executor/session-internal.h"
#include "executor/session-log.h"

#include <signal.h>

/* What an init that dies takes to be gone. */
#define INIT_END_MS 200

ExrOutcome *exr_outcome_new(const ExrSession *session)
{
	ExrOwnedOutcome *owned = g_new0(ExrOwnedOutcome, 1);
	ExrResult *result = &owned->outcome.result;

	owned->refs = 1;
	result->cpu_ms = result->max_rss_bytes = result->left_over_killed = -1;
	if (!session)
		return &owned->outcome;
	owned->session_id = g_strdup(exr_session_id(session));
	owned->writable = view_plan_writable(exr_session_plan(session));
	owned->limits = exr_session_policy(session)->limits;
	result->session_id = owned->session_id;
	result->writable = (const char *const *)owned->writable;
	owned->unenforced = g_strdupv((char **)(uintptr_t)exr_session_unenforced(session));
	result->limits_unenforced = (const char *const *)owned->unenforced;
	result->limits = &owned->limits;
	return &owned->outcome;
}

ExrOutcome *exr_outcome_ref(const ExrOutcome *outcome)
{
	ExrOwnedOutcome *owned = (ExrOwnedOutcome *)(uintptr_t)outcome;

	g_atomic_int_inc(&owned->refs);
	return &owned->outcome;
}

void exr_outcome_free(ExrOutcome *outcome)
{
	ExrOwnedOutcome *owned = (ExrOwnedOutcome *)outcome;

	if (!owned || !g_atomic_int_dec_and_test(&owned->refs))
		return;
	output_buffer_free(owned->out);
	output_buffer_free(owned->err);
	exr_spill_free(owned->out_spill);
	exr_spill_free(owned->err_spill);
	exr_observed_clear(&owned->observed);
	exr_error_clear(&owned->error);
	g_strfreev(owned->writable);
	g_strfreev(owned->unenforced);
	g_free(owned->session_id);
	g_free(owned);
}

void exr_outcome_fail(ExrOutcome *outcome, ExrError *error)
{
	ExrOwnedOutcome *owned = (ExrOwnedOutcome *)outcome;

	exr_error_clear(&owned->error);
	owned->error = *error;
	*error = (ExrError){ 0 };
	outcome->result.ended = EXR_ENDED_START_FAILED;
	outcome->result.error = &owned->error;
}

ExrError *exr_outcome_error(ExrOutcome *outcome)
{
	ExrOwnedOutcome *owned = (ExrOwnedOutcome *)outcome;

	return owned->error.code ? &owned->error : NULL;
}

/* The command may have done anything until then, and what it saw of a dead view were errors: its own status, if
 * there is one, is no result. */
static void fail_ended(ExrOutcome *outcome, ExrSession *session)
{
	ExrError error = { 0 };
	bool view;

	/* The gateway follows its view, which goes with init, before that one's end can be seen: not the other way
	 * round. */
	pthread_mutex_lock(&session->lock);
	view = session->gateway && !exr_gateway_alive(session->gateway) &&
	       exr_wait_readable(session->init.pidfd, INIT_END_MS) == -ETIMEDOUT;
	pthread_mutex_unlock(&session->lock);

	(void)exr_error_set(
		&error, "session-closed", "finish", ESHUTDOWN,
		view ? "the gateway has ended while the command ran, and its view with it"
		     : "the sandbox has ended while the command ran");
	exr_outcome_fail(outcome, &error);
}

/* The command's own init was killed, and the session not. The kernel does so for lack of memory, and then the command was
 * what took it; nobody else should. */
static void take_lost_init(ExrOutcome *outcome, const ExrEnd *end)
{
	ExrError error = { 0 };

	if (end->limits_hit & EXR_LIMIT_MEMORY) {
		outcome->result.ended = EXR_ENDED_SIGNALED;
		outcome->result.signal = SIGKILL;
		return;
	}
	(void)exr_error_set(&error, "internal", "finish", EIO,
			    "the command's init has ended while it ran, and all of it with it");
	exr_outcome_fail(outcome, &error);
}

/* A gateway that dies lets go of its view before its end can be seen, and a command that has met only errors since may
 * have ended in between: the gateway is then the one that did not say what it knows. */
static bool has_ended(const ExrSession *session, const ExrEnd *end)
{
	int wait_ms = session->gateway && !end->observed ? INIT_END_MS : 0;

	return exr_wait_readable(exr_session_done_fd(session), wait_ms) == 0 ||
	       !exr_session_alive(session);
}

static void take_ended(ExrOutcome *outcome, ExrSession *session, const ExrRelayEnd *relay_end,
		       int finish_result, ExrEnd *end)
{
	ExrResult *result = &outcome->result;

	if (relay_end->timed_out) {
		result->ended = EXR_ENDED_TIMED_OUT;
	} else if (relay_end->canceled || relay_end->canceled_by) {
		result->ended = EXR_ENDED_CANCELED;
		result->signal = relay_end->canceled_by;
	} else if (finish_result < 0) {
		ExrError error = { 0 };

		(void)exr_error_set(&error, "internal", "finish", -finish_result,
				    "the command has ended, but not all of its processes: %s",
				    errno_text(-finish_result));
		exr_outcome_fail(outcome, &error);
	} else if (end->start_failed &&
		   (exr_session_alive(session) || exr_session_closed(session))) {
		exr_outcome_fail(outcome, &end->error);
	} else if (!end->told && exr_session_closed(session)) {
		result->ended = EXR_ENDED_CANCELED;
	} else if (!end->told &&
		   exr_wait_readable(exr_session_done_fd(session), INIT_END_MS) == -ETIMEDOUT) {
		take_lost_init(outcome, end);
	} else if (!end->told || (!exr_session_closed(session) && has_ended(session, end))) {
		fail_ended(outcome, session);
	} else if (end->signal) {
		result->ended = EXR_ENDED_SIGNALED;
		result->signal = end->signal;
	} else {
		result->ended = EXR_ENDED_EXITED;
		result->exit_code = end->exit_code;
	}
}

void exr_outcome_take_end(ExrOutcome *outcome, ExrSession *session, const ExrRelayEnd *relay_end,
			  int finish_result, ExrEnd *end)
{
	ExrOwnedOutcome *owned = (ExrOwnedOutcome *)outcome;
	ExrResult *result = &outcome->result;

	result->exec_id = end->exec_id;
	result->cpu_ms = end->cpu_ms;
	result->max_rss_bytes = end->max_rss_bytes;
	result->left_over_killed = end->left_over_killed;
	result->limits_hit = end->limits_hit;
	outcome->out_errno = relay_end->out_errno;
	outcome->err_errno = relay_end->err_errno;
	take_ended(outcome, session, relay_end, finish_result, end);
	exr_observed_read(end->observed, &owned->observed);
	result->observed = &owned->observed;
	exr_log_denials(exr_session_id(session), &owned->observed);
	exr_end_clear(end);
}
