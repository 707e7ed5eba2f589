/* Changes to the environment; see env-list.h. */
#include "executor/env-list.h"

#include "common/errno-util.h"
#include "common/fd-util.h"
#include "common/io-util.h"
#include "common/limits.h"
#include "common/path-util.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <string.h>

ExrEnvList *exr_env_list_new(void)
{
	ExrEnvList *list = g_new0(ExrEnvList, 1);

	list->set = g_ptr_array_new_with_free_func(g_free);
	list->unset = g_ptr_array_new_with_free_func(g_free);
	return list;
}

static void *dup_text(const void *text, void *data)
{
	(void)data;
	return g_strdup(text);
}

ExrEnvList *exr_env_list_copy(const ExrEnvList *list)
{
	ExrEnvList *copy = exr_env_list_new();

	g_ptr_array_extend(copy->set, list->set, dup_text, NULL);
	g_ptr_array_extend(copy->unset, list->unset, dup_text, NULL);
	return copy;
}

void exr_env_list_free(ExrEnvList *list)
{
	if (!list)
		return;
	g_ptr_array_unref(list->set);
	g_ptr_array_unref(list->unset);
	g_free(list);
}

/* Forgets the name, which ends at a NUL or an "=", in one of the arrays. */
static void forget(GPtrArray *array, const char *name, size_t length)
{
	for (guint i = 0; i < array->len; i++) {
		const char *entry = array->pdata[i];

		if (strncmp(entry, name, length) == 0 &&
		    (entry[length] == '=' || entry[length] == '\0')) {
			g_ptr_array_remove_index(array, i);
			return;
		}
	}
}

static void add(ExrEnvList *list, GPtrArray *to, const char *text, size_t name_length)
{
	forget(list->set, text, name_length);
	forget(list->unset, text, name_length);
	g_ptr_array_add(to, g_strdup(text));
}

static const char *find_in_host_env(char **host_env, const char *name)
{
	size_t length = strlen(name);

	for (char **entry = host_env; entry && *entry; entry++)
		if (strncmp(*entry, name, length) == 0 && (*entry)[length] == '=')
			return *entry;
	return NULL;
}

int exr_env_list_set(ExrEnvList *list, const char *text, char **host_env, char **reterr_message)
{
	size_t name_length = strcspn(text, "=");

	if (name_length == 0) {
		g_autofree char *shown = path_escape(text);

		*reterr_message = g_strdup_printf("expected NAME=value, got '%s'", shown);
		return -EINVAL;
	}
	if (text[name_length] == '\0') {
		const char *from_host = find_in_host_env(host_env, text);

		if (!from_host) {
			g_autofree char *shown = path_escape(text);

			*reterr_message = g_strdup_printf(
				"%s is not in the caller's environment; give NAME=value", shown);
			return -EINVAL;
		}
		text = from_host;
	}
	add(list, list->set, text, name_length);
	return 0;
}

int exr_env_list_unset(ExrEnvList *list, const char *name, char **reterr_message)
{
	if (!*name || strchr(name, '=')) {
		g_autofree char *shown = path_escape(name);

		*reterr_message = g_strdup_printf("expected a variable's name, got '%s'", shown);
		return -EINVAL;
	}
	add(list, list->unset, name, strlen(name));
	return 0;
}

/* A name as a file may have it: no white space, so that "export NAME=value" is an error and not a
 * variable of that name. */
static bool is_file_name_part(const char *line, size_t length)
{
	if (length == 0)
		return false;
	for (size_t i = 0; i < length; i++)
		if (g_ascii_isspace(line[i]) || line[i] == '"' || line[i] == '\'')
			return false;
	return true;
}

static int add_line(GPtrArray *lines, const char *line, size_t number, const char *shown_path,
		    char **reterr_message)
{
	size_t name_length = strcspn(line, "=");

	if (!*line || *line == '#')
		return 0;
	if (line[name_length] != '=' || !is_file_name_part(line, name_length)) {
		/* Not the line itself: it may be a secret that is only misspelt. */
		*reterr_message = g_strdup_printf("\"%s\": line %zu: expected NAME=value",
						  shown_path, number);
		return -EINVAL;
	}
	g_ptr_array_add(lines, g_strdup(line));
	return 0;
}

int exr_env_list_add_file(ExrEnvList *list, const char *path, char **reterr_message)
{
	g_autofree char *text = NULL, *shown = path_escape(path);
	g_autoptr(GPtrArray) lines = g_ptr_array_new_with_free_func(g_free);
	FD_AUTO fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
	size_t size = 0, number = 1;
	int r = fd < 0 ? -errno : io_read_to_end(fd, LIMIT_EXEC_PAYLOAD_BYTES, &text, &size);

	if (r < 0) {
		*reterr_message = g_strdup_printf("\"%s\": %s", shown, errno_text(-r));
		return r;
	}
	if (memchr(text, '\0', size)) {
		*reterr_message = g_strdup_printf("\"%s\": holds a NUL byte", shown);
		return -EINVAL;
	}
	for (char *line = text, *end; line; line = end, number++) {
		end = strchr(line, '\n');
		if (end)
			*end++ = '\0';
		r = add_line(lines, line, number, shown, reterr_message);
		if (r < 0)
			return r;
	}
	for (guint i = 0; i < lines->len; i++)
		add(list, list->set, lines->pdata[i], strcspn(lines->pdata[i], "="));
	return 0;
}
