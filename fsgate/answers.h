/* What a gateway answers at its door: see common/control.h for the words. */
#pragma once

#include "fsgate/fuse-session.h"

#include "common/json.h"

typedef struct {
	FsgView *view;
	FsgSession *session;
} FsgAnswers;

/* data is FsgAnswers. Any request gets an object; one that is not understood, {"error": {"message": ...}}.
 * NULL: later, when fsg_events_wake_fd() was readable. */
JsonObject *fsg_answer(void *data, JsonObject *request);
