/* The version of the library that runs, which need not be that of the headers a caller was compiled with; see
 * stella/stella.h. It is the build's own, so that a test can hold the headers' numbers against it. */
#include "config.h"
#include "stella/stella.h"

const char *stella_version(void)
{
	return STELLA_VERSION;
}
