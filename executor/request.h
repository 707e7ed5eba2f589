/* A command as it will be run: arguments, environment and directory, all of it decided before anything
 * is started, and not changed any more. */
#pragma once

#include "common/view-plan.h"
#include "executor/env-list.h"
#include "executor/session.h"

/* What it is made of; all borrowed. */
typedef struct {
	const ViewPlan *plan;
	char **argv;	       /* at least one */
	char **host_env;       /* the caller's environment */
	const ExrEnvList *env; /* changes by the command line */
	const char *cwd;       /* as the caller names it; NULL: the policy's working directory */
	const char *home;      /* HOME in the view; NULL: that of the workspace */
	bool stdin_null;
} ExrRequestSource;

typedef struct {
	ExrRequest request; /* points into the rest */
	char **argv;
	char **env;
	char *cwd;
} ExrFrozenRequest;

/* -errno with *reterr_error: a directory that the view does not cover ("cwd-invalid"), an environment
 * that cannot be ("request-invalid"). Whether the directory exists is told by the start itself. */
int exr_request_freeze(const ExrRequestSource *source, ExrFrozenRequest **ret_request,
		       ExrError *reterr_error);

void exr_request_free(ExrFrozenRequest *request); /* NULL is allowed */
G_DEFINE_AUTOPTR_CLEANUP_FUNC(ExrFrozenRequest, exr_request_free)
