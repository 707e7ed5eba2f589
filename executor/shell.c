/* An interactive shell; see shell.h. */
#include "executor/shell.h"

#include <stdbool.h>
#include <string.h>

/* The prompt is for every shell alike: bash's own \w is not known to others. */
static const char *const defaults[] = { "PS1=sandbox:$PWD\\$ ", "HISTFILE=" };

char **exr_shell_argv(void)
{
	char **argv = g_new0(char *, 4);

	argv[0] = g_strdup("sh");
	argv[1] = g_strdup("-c");
	argv[2] = g_strdup(
		"command -v bash >/dev/null 2>&1 && exec bash --noprofile --norc; exec sh");
	return argv;
}

/* As it stands in the list, or nothing. */
static bool has(const GPtrArray *texts, const char *name, size_t length)
{
	for (guint i = 0; i < texts->len; i++) {
		const char *text = texts->pdata[i];

		if (strncmp(text, name, length) == 0 &&
		    (text[length] == '=' || text[length] == '\0'))
			return true;
	}
	return false;
}

void exr_shell_add_env(ExrEnvList *list)
{
	for (size_t i = 0; i < G_N_ELEMENTS(defaults); i++) {
		size_t length = strcspn(defaults[i], "=");

		if (!has(list->set, defaults[i], length) && !has(list->unset, defaults[i], length))
			g_ptr_array_add(list->set, g_strdup(defaults[i]));
	}
}
