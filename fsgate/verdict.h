/* Where a path leads, for `stella-fsgate resolve`: the verdict of each form of the path resolver, with nothing made, truncated or
 * written to find out. */
#pragma once

#include "common/json.h"
#include "common/path-resolver.h"

typedef struct {
	bool allowed;
	char *view_path;    /* clean and free of links; or NULL */
	char *host_path;    /* or NULL: the view's own */
	char *mount;	    /* view path; or NULL */
	const char *access; /* "ro" or "rw": what the place is, not only its mount */
	const char *
		type; /* "file", "directory", "fifo", "socket", "device" or "absent"; NULL: not looked at */
	PathProblem problem; /* when not allowed */
} FsgVerdict;

void fsg_verdict_clear(FsgVerdict *verdict);

/* The strict verdict (path_resolver_resolve), and the open one: whether an open of it in the view would work,
 * for writing also one that makes it. */
void fsg_verdict_strict(PathResolver *resolver, const char *path, bool for_write,
			FsgVerdict *ret_verdict);
void fsg_verdict_open(PathResolver *resolver, const char *path, bool for_write,
		      FsgVerdict *ret_verdict);

/* One line for people, and an object as stella-fsgate(1) documents it. The caller owns them. */
char *fsg_verdict_text(const FsgVerdict *verdict);
JsonObject *fsg_verdict_json(const FsgVerdict *verdict);
