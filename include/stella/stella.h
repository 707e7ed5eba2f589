/* The umbrella header: everything that a host agent needs, and the version. */
#ifndef STELLA_STELLA_H
#define STELLA_STELLA_H

#include <stella/types.h>

/* The version of these headers, as numbers. */
#define STELLA_VERSION_MAJOR 0
#define STELLA_VERSION_MINOR 1
#define STELLA_VERSION_PATCH 0

#endif
