/* The path resolver of the edge is that of the inside, under its public name: for the api-*.c files only. */
#pragma once

#include "common/path-resolver.h"
#include "stella/path-resolver.h"

static inline PathResolver *api_path_resolver_inner(StellaPathResolver *resolver)
{
	return (PathResolver *)resolver;
}

/* Takes the reference. */
static inline StellaPathResolver *api_path_resolver_from_inner(PathResolver *take_resolver)
{
	return (StellaPathResolver *)take_resolver;
}
