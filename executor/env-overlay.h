/* Lists of variables (NAME=value, ending with NULL) of which one lies over the other. Any thread at once; the caller frees
 * with g_strfreev. An entry without "=" is one whose name is all of it. */
#pragma once

/* Both, of the same name the one of over, and of two in over the last. Either may be NULL. Never NULL. */
char **exr_env_overlay(const char *const *under, const char *const *over);

/* What a request with its own variables, and with names that it takes away, adds to and leaves of under: under, less what
 * the request takes away or sets itself, then what it sets. All may be NULL. Never NULL. */
char **exr_env_overlay_request(const char *const *under, const char *const *unset,
			       const char *const *set);
