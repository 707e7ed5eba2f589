/* Sessions that run nothing: for the api-*.c files only. */
#pragma once

#include "stella/session.h"

/* One under that policy, but for its network, which nothing is kept from. Never NULL. */
StellaSession *api_nop_session_new(const StellaPolicy *policy);
