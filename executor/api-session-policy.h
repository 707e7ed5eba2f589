/* A session's policy as the host's side has to see it: for the api-*.c files only. */
#pragma once

#include "executor/session.h"

/* The effective policy (session-policy.h) for who looks into the view from the host's side: with the runtime that commands have, and with the session's
 * private directories as mounts, which may be gone by then. Before the session can be closed by anybody. */
StellaPolicy *api_session_resolver_policy_new(const ExrSession *session);
/* Who is to see that one: commands without a sandbox know the host's paths only. */
ViewPresentation api_session_resolver_presentation(const ExrSession *session);
