/* A session as a host agent has it, over the directories of session-fixture.h; and a main loop with an end. All of it fails
 * the test when something does not work. */
#pragma once

#include "session-fixture.h"

#include <stella/stella.h>

typedef struct {
	Fixture *dirs;
	StellaSession *session;
} ApiFixture;

/* Directories only, and with a session of fixture_policy(more). */
ApiFixture *api_fixture_new(void);
void api_fixture_start(ApiFixture *fixture, const char *more);
/* A session of any policy, the caller's reference to which may go at once. */
StellaSession *api_fixture_session(const StellaPolicy *policy);
StellaSession *api_fixture_session_by(const char *backend, const StellaPolicy *policy);
/* Drops the session, which has to be the last reference to it. */
void api_fixture_stop(ApiFixture *fixture);
void api_fixture_free(ApiFixture *fixture);

/* For cmocka: *state is an ApiFixture with a session. */
int api_fixture_set_up(void **state);
int api_fixture_tear_down(void **state);

/* A command that has to give a result. */
StellaExecResult *api_exec(StellaSession *session, const char *command,
			   const StellaExecOptions *options);
/* And the output of one that has to exit with 0, as long as the result. */
void api_assert_out(StellaSession *session, const char *command, const StellaExecOptions *options,
		    const char *expected);
/* Two commands that do nothing: from then on a session keeps what it does between commands. */
void api_warm_up(StellaSession *session);

/* What the host sees of a file of the workspace: its text, or NULL when there is none. The caller frees. */
char *api_host_text(const ApiFixture *fixture, const char *name);

void api_assert_error(const GError *error, StellaError code);

/* Where a GAsyncReadyCallback leaves what it got; api_await() runs the thread's default context until it was called. */
typedef struct {
	GAsyncResult *result; /* owned */
	GThread *thread;      /* that called */
} ApiAsync;

void api_async_ready(GObject *source, GAsyncResult *result, gpointer async);
GAsyncResult *api_await(ApiAsync *async);
void api_async_clear(ApiAsync *async);
#define API_ASYNC_AUTO __attribute__((cleanup(api_async_clear))) ApiAsync
