/* Host objects by fd; see native-source.h. */
#include "executor/native-source.h"

#include "common/fd-util.h"
#include "common/limits.h"
#include "common/path-util.h"
#include "common/syscall-wrap.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

static void clear(void *data)
{
	ExrSource *source = data;

	fd_close(&source->fd);
	g_free(source->real);
	g_free(source->in_fs);
}

GArray *exr_sources_new(void)
{
	GArray *sources = g_array_new(FALSE, FALSE, sizeof(ExrSource));

	g_array_set_clear_func(sources, clear);
	return sources;
}

static char *path_of(int fd)
{
	char link[FD_PROC_PATH_SIZE], path[LIMIT_PATH_BYTES];
	ssize_t length;

	fd_proc_path(fd, link);
	length = readlink(link, path, sizeof path - 1);
	if (length <= 0 || path[0] != '/')
		return NULL;
	return g_strndup(path, (gsize)length);
}

int exr_sources_add(GArray *sources, const char *path, bool read_only, unsigned int *ret_index)
{
	ExrSource source = { .fd = -1, .read_only = read_only };
	FD_AUTO fd = open(path, O_PATH | O_CLOEXEC);

	if (fd < 0 || fstat(fd, &source.st) != 0)
		return -errno;
	source.real = path_of(fd);
	if (!source.real)
		return -ENAMETOOLONG;
	source.in_fs = exr_path_in_fs(source.real);
	source.fd = fd_steal(&fd);
	*ret_index = sources->len;
	g_array_append_val(sources, source);
	return 0;
}

const ExrSource *exr_source(const GArray *sources, unsigned int index)
{
	return &g_array_index(sources, ExrSource, index);
}

int exr_source_open_below(const ExrSource *source, const char *below)
{
	return sys_openat2(source->fd, below, O_PATH | O_NOFOLLOW | O_CLOEXEC, 0,
			   RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS);
}

static int compare(const void *a, const void *b)
{
	const char *const *left = a;
	const char *const *right = b;

	return strcmp(*left, *right);
}

/* Calls for each mount with the words of its line: blanks and backslashes in paths are octal. */
static void each_mount(void (*visit)(char **words, void *data), void *data)
{
	g_autofree char *text = NULL;
	g_auto(GStrv) lines = NULL;

	if (g_file_get_contents("/proc/self/mountinfo", &text, NULL, NULL))
		lines = g_strsplit(text, "\n", -1);
	for (char **line = lines; line && *line; line++) {
		g_auto(GStrv) words = g_strsplit(*line, " ", 6);

		if (g_strv_length(words) == 6)
			visit(words, data);
	}
}

typedef struct {
	const char *real;
	size_t point_length; /* of the deepest mount point so far */
	char *found;
} Search;

/* Of several at one point the last one is on top. */
static void look_at(char **words, void *data)
{
	g_autofree char *root = g_strcompress(words[3]);
	g_autofree char *point = g_strcompress(words[4]);
	g_autofree char *path = NULL;
	Search *search = data;

	if (strlen(point) < search->point_length || !path_is_below(search->real, point))
		return;
	search->point_length = strlen(point);
	path = path_join(root, path_below(search->real, point));
	g_free(search->found);
	search->found = g_strdup_printf("%s:%s", words[2], path);
}

char *exr_path_in_fs(const char *real)
{
	Search search = { .real = real };

	each_mount(look_at, &search);
	return search.found;
}

static void add_point(char **words, void *points)
{
	g_ptr_array_add(points, g_strcompress(words[4]));
}

char **exr_mount_points(void)
{
	GPtrArray *points = g_ptr_array_new();

	each_mount(add_point, points);
	g_ptr_array_sort(points, compare);
	g_ptr_array_add(points, NULL);
	return (char **)g_ptr_array_free(points, FALSE);
}
