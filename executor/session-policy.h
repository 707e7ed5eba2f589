/* What a session's policy has come to. */
#pragma once

#include "executor/session.h"

/* The policy with everything that it implies said: mounts (not those of the host's runtime), and the working directory as
 * a view path. It makes the same view again. The caller owns a reference. */
StellaPolicy *exr_session_effective_policy_new(const ExrSession *session);
