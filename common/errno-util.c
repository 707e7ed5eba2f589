/* Names of error numbers; see errno-util.h. */
#include "common/errno-util.h"

#include <string.h>

const char *errno_name(int errnum)
{
	const char *name = strerrorname_np(errnum);

	return name ? name : "EUNKNOWN";
}

const char *errno_text(int errnum)
{
	const char *text = strerrordesc_np(errnum);

	return text ? text : "Unknown error";
}
