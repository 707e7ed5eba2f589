/* See session-id.h. Random, so that nobody can guess the next one and be there first; long enough that two never meet. */
#include "executor/session-id.h"

#include <glib.h>
#include <stdint.h>
#include <sys/random.h>

char *exr_session_id_new(void)
{
	uint64_t random;

	if (getrandom(&random, sizeof random, 0) != sizeof random)
		return NULL;
	return g_strdup_printf("sandbox-%016" G_GINT64_MODIFIER "x", (guint64)random);
}
