/* Sessions at the edge: for the api-*.c files only. */
#pragma once

#include "executor/session.h"
#include "stella/session.h"

/* A StellaSession of a session of any backend, which it owns from now on: its end closes it, whoever else still holds a
 * reference. Never NULL. */
StellaSession *api_session_new(ExrSession *take_session);
