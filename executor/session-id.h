/* Names of sessions. */
#pragma once

/* "sandbox-" and 16 hexadecimal digits from the kernel's random source; NULL when it gives none. The caller frees. */
char *exr_session_id_new(void);
