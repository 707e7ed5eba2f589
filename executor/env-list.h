/* What the command line changes in a command's environment: --setenv, --unsetenv and --env-file, in
 * the order they are given; a later one of the same name wins. */
#pragma once

#include <glib.h>

typedef struct {
	GPtrArray *set;	  /* NAME=value, names unique */
	GPtrArray *unset; /* names, none of them in set */
} ExrEnvList;

ExrEnvList *exr_env_list_new(void);
ExrEnvList *exr_env_list_copy(const ExrEnvList *list);
void exr_env_list_free(ExrEnvList *list); /* NULL is allowed */
G_DEFINE_AUTOPTR_CLEANUP_FUNC(ExrEnvList, exr_env_list_free)

/* "NAME=value", or "NAME" for the value that the caller's environment (host_env, NAME=value,
 * NULL-terminated) has. -EINVAL with *reterr_message for an empty name or one the caller has not. */
int exr_env_list_set(ExrEnvList *list, const char *text, char **host_env, char **reterr_message);

/* -EINVAL with *reterr_message for what is no name. */
int exr_env_list_unset(ExrEnvList *list, const char *name, char **reterr_message);

/* Lines NAME=value: the value is everything behind the first "=", without quoting or expansion.
 * Empty lines and lines that begin with # are skipped. All or nothing. -EINVAL, or what
 * reading gave, with *reterr_message naming file and line. */
int exr_env_list_add_file(ExrEnvList *list, const char *path, char **reterr_message);
