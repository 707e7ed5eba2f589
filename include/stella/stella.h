/* The umbrella header: everything that a host agent needs, and the version. */
#ifndef STELLA_STELLA_H
#define STELLA_STELLA_H

#include <stella/error.h>
#include <stella/exec.h>
#include <stella/factory.h>
#include <stella/files.h>
#include <stella/host-env.h>
#include <stella/log.h>
#include <stella/mise.h>
#include <stella/output-buffer.h>
#include <stella/path-resolver.h>
#include <stella/policy.h>
#include <stella/process.h>
#include <stella/resilient-session.h>
#include <stella/session.h>
#include <stella/types.h>

/* The version of these headers, as numbers. */
#define STELLA_VERSION_MAJOR 0
#define STELLA_VERSION_MINOR 1
#define STELLA_VERSION_PATCH 0

#ifdef __cplusplus
extern "C" {
#endif

/* The version of the library that runs, "MAJOR.MINOR.PATCH": with a shared library it can be another one than that of the
 * headers above. Static storage; never NULL. Any thread at once. Does not block. */
STELLA_API const char *stella_version(void);

#ifdef __cplusplus
}
#endif

#endif
