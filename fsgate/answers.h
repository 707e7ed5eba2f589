/* What a gateway answers at its door: see common/control.h for the words. */
#pragma once

#include "fsgate/fuse-session.h"

#include "common/json.h"

typedef struct {
	FsgView *view;
	FsgSession *session;
} FsgAnswers;

/* data is FsgAnswers. Any request gets an object; one that is not understood, {"error": {"message": ...}}. */
JsonObject *fsg_answer(void *data, JsonObject *request);
