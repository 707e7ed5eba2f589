/* A view's state for people. */
#pragma once

#include "common/json.h"

/* The lines of one view, from its object of `status --json`: what a gateway of another version leaves out is left
 * out. Names of the agent's are made printable. The caller frees. */
char *fsg_status_text(JsonObject *view);
