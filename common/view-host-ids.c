/* Sets of host objects; see view-host-ids.h. */
#include "common/view-host-ids.h"

#include "common/fd-util.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>

typedef struct {
	dev_t dev;
	ino_t ino;
} HostId;

static guint host_id_hash(gconstpointer data)
{
	const HostId *id = data;

	return (guint)(id->ino * 2654435761u ^ id->dev);
}

static gboolean host_id_equal(gconstpointer a, gconstpointer b)
{
	const HostId *x = a, *y = b;

	return x->dev == y->dev && x->ino == y->ino;
}

GHashTable *view_host_ids_new(void)
{
	return g_hash_table_new_full(host_id_hash, host_id_equal, g_free, NULL);
}

void view_host_ids_add(GHashTable *ids, dev_t dev, ino_t ino)
{
	HostId *id = g_new(HostId, 1);

	*id = (HostId){ .dev = dev, .ino = ino };
	g_hash_table_add(ids, id);
}

bool view_host_ids_have(GHashTable *ids, dev_t dev, ino_t ino)
{
	const HostId id = { .dev = dev, .ino = ino };

	return g_hash_table_contains(ids, &id);
}

int view_host_ids_add_with_ancestors(GHashTable *ids, const char *host_path, struct stat *ret_st)
{
	struct stat st, above;
	FD_AUTO fd = open(host_path, O_PATH | O_CLOEXEC);

	if (fd < 0 || fstat(fd, &st) != 0)
		return -errno;
	*ret_st = st;
	view_host_ids_add(ids, st.st_dev, st.st_ino);
	if (!S_ISDIR(st.st_mode)) {
		g_autofree char *real = NULL;
		g_autofree char *dir = NULL;
		char link[FD_PROC_PATH_SIZE];

		fd_proc_path(fd, link);
		real = g_file_read_link(link, NULL);
		if (!real)
			return -EIO;
		dir = g_path_get_dirname(real);
		fd_close(&fd);
		fd = open(dir, O_PATH | O_DIRECTORY | O_CLOEXEC);
		if (fd < 0 || fstat(fd, &st) != 0)
			return -errno;
		view_host_ids_add(ids, st.st_dev, st.st_ino);
	}
	for (;;) {
		int up = openat(fd, "..", O_PATH | O_DIRECTORY | O_CLOEXEC);

		/* A directory that we may not search: no mount of this user's lies above it either. */
		if (up < 0)
			return errno == EACCES ? 0 : -errno;
		fd_close(&fd);
		fd = up;
		if (fstat(fd, &above) != 0)
			return -errno;
		if (above.st_dev == st.st_dev && above.st_ino == st.st_ino)
			return 0;
		st = above;
		view_host_ids_add(ids, st.st_dev, st.st_ino);
	}
}
