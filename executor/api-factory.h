/* What a factory of anybody's is asked, apart: for the api-*.c files only. The registry asks once and starts later. */
#pragma once

#include "stella/factory.h"

/* Whether it can do what a policy asks for that was found valid; as stella_factory_check_policy(). */
gboolean api_factory_accepts(StellaFactory *factory, const StellaPolicy *policy, GError **error);

/* Starts a session of a policy that it has accepted; as stella_factory_create_session(). */
StellaSession *api_factory_start(StellaFactory *factory, const StellaPolicy *policy,
				 GCancellable *cancellable, GError **error);
