/* Paths as strings; see path-util.h. */
#include "common/path-util.h"

#include "common/limits.h"

#include <errno.h>
#include <glib.h>
#include <string.h>

const char *path_next(const char **path, size_t *ret_length)
{
	const char *start = *path;

	while (*start == '/')
		start++;
	*ret_length = strcspn(start, "/");
	*path = start + *ret_length;
	return *ret_length > 0 ? start : NULL;
}

static void push_components(GString *clean, const char *path)
{
	const char *name;
	size_t length;

	while ((name = path_next(&path, &length))) {
		if (length == 1 && name[0] == '.')
			continue;
		if (length == 2 && name[0] == '.' && name[1] == '.') {
			const char *slash = strrchr(clean->str, '/');

			if (slash)
				g_string_truncate(clean, (gsize)(slash - clean->str));
			continue;
		}
		g_string_append_c(clean, '/');
		g_string_append_len(clean, name, (gssize)length);
	}
}

char *path_clean_from(const char *base, const char *path)
{
	GString *clean = g_string_new(NULL);

	if (path[0] != '/')
		push_components(clean, base);
	push_components(clean, path);
	if (clean->len == 0)
		g_string_append_c(clean, '/');
	return g_string_free(clean, FALSE);
}

char *path_clean(const char *path)
{
	return path[0] == '/' ? path_clean_from("/", path) : NULL;
}

bool path_is_below(const char *path, const char *dir)
{
	size_t length = strlen(dir);

	if (length == 1) /* "/" */
		return true;
	return strncmp(path, dir, length) == 0 && (path[length] == '\0' || path[length] == '/');
}

const char *path_below(const char *path, const char *dir)
{
	path += strlen(dir);
	while (*path == '/')
		path++;
	return path;
}

char *path_join(const char *dir, const char *name)
{
	if (name[0] == '\0')
		return g_strdup(dir);
	return g_strconcat(dir, g_str_has_suffix(dir, "/") ? "" : "/", name, NULL);
}

int path_check_name(const char *name)
{
	size_t length = strlen(name);

	if (length > LIMIT_NAME_BYTES)
		return -ENAMETOOLONG;
	if (length == 0 || strchr(name, '/') || strcmp(name, ".") == 0 || strcmp(name, "..") == 0)
		return -EINVAL;
	return 0;
}

char *path_escape(const char *text)
{
	GString *escaped = g_string_new(NULL);

	while (*text) {
		gunichar c = g_utf8_get_char_validated(text, -1);
		bool valid = c != (gunichar)-1 && c != (gunichar)-2;

		if (!valid || g_unichar_iscntrl(c) || c == '\\' || c == 0x2028 || c == 0x2029) {
			size_t bytes = valid ? (size_t)g_unichar_to_utf8(c, NULL) : 1;

			for (size_t i = 0; i < bytes; i++)
				g_string_append_printf(escaped, "\\x%02x", (unsigned char)text[i]);
			text += bytes;
			continue;
		}
		g_string_append_unichar(escaped, c);
		text += g_unichar_to_utf8(c, NULL);
	}
	return g_string_free(escaped, FALSE);
}
