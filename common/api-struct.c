/* See api-struct.h. */
#include "common/api-struct.h"

#include "common/api-error.h"

#include <string.h>

/* Bytes: no struct will be longer, and no mistake is read further. */
#define MAX_SIZE 4096

/* All of these structs begin with their size and are aligned alike, so a real one never ends inside a field. */
gboolean api_struct_read(const void *from, gsize size, void *to, gsize our_size, gsize least)
{
	const char *bytes = from;

	if (size < least || size > MAX_SIZE || size % sizeof(gint64) != 0)
		return FALSE;
	for (gsize i = our_size; i < size; i++)
		if (bytes[i] != 0)
			return FALSE;
	memcpy(to, from, MIN(size, our_size));
	memcpy(to, &our_size, sizeof our_size);
	return TRUE;
}

gboolean api_struct_refuse(gsize size, const char *type, GError **error)
{
	api_error_set(error, STELLA_ERROR_INVALID_ARGUMENT,
		      "%s: %" G_GSIZE_FORMAT
		      " is no size of it, or more is set than this version knows; "
		      "use its init function",
		      type, size);
	return FALSE;
}
