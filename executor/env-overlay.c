/* See env-overlay.h. A request takes names away before it sets its own; so what it takes away of a layer that is handed on
 * within the request has to be gone from there already. */
#include "executor/env-overlay.h"

#include <glib.h>
#include <stdbool.h>
#include <string.h>

/* Whether entry is of that name, which ends with "=" or with its text. */
static bool has_name(const char *entry, const char *name)
{
	size_t length = strcspn(name, "=");

	return strcspn(entry, "=") == length && strncmp(entry, name, length) == 0;
}

static bool names(const char *const *list, const char *entry)
{
	for (; list && *list; list++)
		if (has_name(entry, *list))
			return true;
	return false;
}

static void add_but(GPtrArray *merged, const char *const *list, const char *const *not_these)
{
	for (; list && *list; list++)
		if (!names(not_these, *list))
			g_ptr_array_add(merged, g_strdup(*list));
}

static char **finish(GPtrArray *merged)
{
	g_ptr_array_add(merged, NULL);
	return (char **)g_ptr_array_free(merged, FALSE);
}

char **exr_env_overlay(const char *const *under, const char *const *over)
{
	GPtrArray *merged = g_ptr_array_new();

	add_but(merged, under, over);
	for (; over && *over; over++)
		if (!names(over + 1, *over))
			g_ptr_array_add(merged, g_strdup(*over));
	return finish(merged);
}

char **exr_env_overlay_request(const char *const *under, const char *const *unset,
			       const char *const *set)
{
	g_auto(GStrv) left = NULL;
	GPtrArray *merged = g_ptr_array_new();

	add_but(merged, under, unset);
	left = finish(merged);
	return exr_env_overlay((const char *const *)left, set);
}
