/* A view's state as JSON: what its gateway answers to {"status"} and {"denials"}. stella-fsgate(1) documents every
 * key; keys are only ever added. Numbers are numbers, what is not known is null, no key is missing. A path that is
 * not UTF-8 is {"b64": "..."}. */
#pragma once

#include "fsgate/view.h"

#include "common/json.h"

/* All of it. The caller owns it. */
JsonObject *fsg_status_json(FsgView *view);

/* The denials after `since`. The caller owns it. */
JsonObject *fsg_denials_json(FsgView *view, uint64_t since);

/* Sets a member to a path, or to null. */
void fsg_json_set_path(JsonObject *object, const char *name, const char *path);
