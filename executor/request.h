/* A command as it will be run: arguments, environment and directory, all of it decided before anything
 * is started, and not changed any more. */
#pragma once

#include "executor/session-exec.h"

typedef struct {
	ExrRequest request; /* points into the rest */
	char **argv;
	char **env;
	char *cwd;
} ExrFrozenRequest;

/* -errno with *reterr_error: a directory that the view does not cover ("cwd-invalid"), an environment
 * that cannot be ("request-invalid"). Whether the directory exists is told by the start itself. */
int exr_request_freeze(ExrSession *session, const ExrExecOptions *options,
		       ExrFrozenRequest **ret_request, ExrError *reterr_error);

void exr_request_free(ExrFrozenRequest *request); /* NULL is allowed */
G_DEFINE_AUTOPTR_CLEANUP_FUNC(ExrFrozenRequest, exr_request_free)
