/* What to do about a host that lacks something: one table for `run`, which then refuses, and `doctor`, which
 * says so beforehand, so that both use the same words. */
#pragma once

/* The hint for a step that failed with errnum (positive): stage is its published name ("fuse-device", "clone",
 * "gateway", ...; README.md). NULL when there is nothing that the host could change. Static storage. Reads
 * sysctls: neither between fork and exec nor in a loop. */
const char *exr_hint(const char *stage, int errnum);

/* The sysctl that takes user namespaces away from this user, as a hint; NULL when none is known to. */
const char *exr_hint_userns_sysctl(void);
