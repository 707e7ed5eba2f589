/* What a plain bind of a directory would show or allow too much: further rows of a mount's own; see
 * sandbox-plan-native.h.
 *
 *   pins   a directory that is some other mount's root is read-only by this path, too, if that mount is; and neither it
 *          nor a directory on the way to it can be renamed or removed, for a mount point cannot. The same holds for the
 *          way to a mount whose place lies in this one
 *   masks  what is mounted on the host below the directory, the state directory, and names that the view hides
 *
 * Whether one directory lies in another is told when the session starts by their paths in their file system, which are the
 * same for all paths by which the host shows it. */
#include "executor/sandbox-plan-native-internal.h"

#include "common/fd-util.h"
#include "common/path-util.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <string.h>

/* The end of the path of a mount point that another mount namespace has removed; it is nowhere. */
#define REMOVED "//deleted"

typedef struct {
	ExrNative *native;
	const ViewEntry *entry;
	const ExrSource *source;
	GTree *pins; /* path below the mount -> flags: in order, those above first */
} Cover;

static const ExrSource *source_of(const ExrNative *native, unsigned int i)
{
	return native->source_of[i] < 0
		       ? NULL
		       : exr_source(native->sources, (unsigned int)native->source_of[i]);
}

/* Whether what is at path comes from this mount, and nothing else of the plan lies on it. */
static bool shows(const Cover *cover, const char *path)
{
	const GPtrArray *entries = cover->native->view->entries;
	size_t own = strlen(cover->entry->view_path);

	for (unsigned int i = 0; i < entries->len; i++) {
		const ViewEntry *other = entries->pdata[i];

		if (strlen(other->view_path) > own && path_is_below(path, other->view_path))
			return false;
	}
	return true;
}

/* A row for what is there. That there is nothing (any more) is an error when it is known to have been: an agent of
 * another session may have moved it, and it would then show as it must not. */
static int add_row(const Cover *cover, WireRowKind kind, uint32_t flags, const char *below,
		   bool is_known)
{
	g_autofree char *target = path_join(cover->entry->view_path, below);
	FD_AUTO fd = -1;
	struct stat st;

	if (!shows(cover, target))
		return 0;
	if (flags & WIRE_ROW_MAKE)
		return exr_native_add(cover->native, kind, flags | WIRE_ROW_IS_DIR, target, NULL)
			       ? 0
			       : -E2BIG;
	fd = exr_source_open_below(cover->source, below);
	if (fd == -ENOENT || fd == -ENOTDIR || fd == -ELOOP)
		return is_known ? -ESTALE : 0;
	if (fd < 0)
		return fd;
	if (fstat(fd, &st) != 0)
		return -errno;
	/* A link shows what it names, which is masked by its own name if it is to be. */
	if (S_ISLNK(st.st_mode))
		return is_known ? -ESTALE : 0;
	return exr_native_add(cover->native, kind, flags, target, &st) ? 0 : -E2BIG;
}

static void note_pin(Cover *cover, char *take_below, uint32_t flags)
{
	guint known = GPOINTER_TO_UINT(g_tree_lookup(cover->pins, take_below));

	g_tree_replace(cover->pins, take_below, GUINT_TO_POINTER(known | flags | WIRE_ROW_IS_DIR));
}

/* Every directory on the way, and with its own flags the last one. */
static void pin_way(Cover *cover, const char *below, bool with_last, uint32_t flags)
{
	for (const char *end = strchr(below, '/'); end; end = strchr(end + 1, '/'))
		note_pin(cover, g_strndup(below, (gsize)(end - below)), 0);
	if (with_last)
		note_pin(cover, g_strdup(below), flags);
}

/* "FILE SYSTEM:/" ends in the slash that path_is_below() looks for behind it. */
static bool is_below_in_fs(const char *path, const char *dir)
{
	return g_str_has_suffix(dir, ":/") ? g_str_has_prefix(path, dir) : path_is_below(path, dir);
}

/* Where in this mount another directory is; NULL: it is not, or is the mount's own, or something is mounted over it. */
static const char *find_below(const Cover *cover, const char *real, const char *in_fs)
{
	const ExrSource *own = cover->source;
	const char *below;
	FD_AUTO fd = -1;

	if (path_is_below(real, own->real)) {
		below = path_below(real, own->real);
		return *below ? below : NULL;
	}
	if (!in_fs || !own->in_fs || !is_below_in_fs(in_fs, own->in_fs))
		return NULL;
	below = path_below(in_fs, own->in_fs);
	fd = *below ? exr_source_open_below(own, below) : -1;
	return fd >= 0 ? below : NULL;
}

/* Directories of the host that are other mounts' roots. */
static void find_roots(Cover *cover)
{
	const GPtrArray *entries = cover->native->view->entries;

	for (unsigned int i = 0; i < entries->len; i++) {
		const ViewEntry *other = entries->pdata[i];
		const ExrSource *source = source_of(cover->native, i);

		const char *below;

		if (!source || other->kind != VIEW_ENTRY_MOUNT ||
		    !(below = find_below(cover, source->real, source->in_fs)))
			continue;
		pin_way(cover, below, true, source->read_only ? WIRE_ROW_READ_ONLY : 0);
	}
}

/* Places of other mounts in this one. */
static void find_places(Cover *cover)
{
	const GPtrArray *entries = cover->native->view->entries;

	for (unsigned int i = 0; i < entries->len; i++) {
		const ViewEntry *other = entries->pdata[i];

		if (exr_plan_find_above(cover->native->view, i) == cover->entry)
			pin_way(cover, path_below(other->view_path, cover->entry->view_path), false,
				0);
	}
}

typedef struct {
	const Cover *cover;
	uint32_t more; /* flags of all */
	int r;
} Adding;

static gboolean add_pin(gpointer path, gpointer flags, gpointer data)
{
	Adding *adding = data;
	uint32_t own = GPOINTER_TO_UINT(flags) & ~WIRE_ROW_IS_DIR;

	adding->r = add_row(adding->cover, WIRE_ROW_PIN, own | adding->more, path, true);
	return adding->r < 0;
}

static gint compare(gconstpointer a, gconstpointer b, gpointer unused)
{
	(void)unused;
	return strcmp(a, b);
}

static int pin(Cover *cover)
{
	Adding adding = { .cover = cover };

	/* Nothing of a read-only one can be renamed. */
	if (cover->source->read_only)
		return 0;
	if (exr_native_is_ours(cover->native, cover->entry))
		adding.more = WIRE_ROW_MAKE;
	cover->pins = g_tree_new_full(compare, NULL, g_free, NULL);
	find_roots(cover);
	find_places(cover);
	g_tree_foreach(cover->pins, add_pin, &adding);
	g_tree_unref(cover->pins);
	return adding.r;
}

/* The host's own directories (/etc) show what is mounted in them. */
static int mask_mounts(const Cover *cover)
{
	const char *real = cover->source->real, *last = NULL;

	if (cover->entry->cross_submounts)
		return 0;
	for (char **point = cover->native->mount_points; *point; point++) {
		int r;

		if (strcmp(*point, real) == 0 || !path_is_below(*point, real) ||
		    (last && path_is_below(*point, last)) || g_str_has_suffix(*point, REMOVED))
			continue;
		if ((r = add_row(cover, WIRE_ROW_MASK, 0, path_below(*point, real), true)) < 0)
			return r;
		last = *point;
	}
	return 0;
}

static int mask_state(const Cover *cover)
{
	const char *root = cover->native->state_root;
	g_autofree char *in_fs = root ? exr_path_in_fs(root) : NULL;
	const char *below = root ? find_below(cover, root, in_fs) : NULL;

	return below ? add_row(cover, WIRE_ROW_MASK, 0, below, true) : 0;
}

/* What of the names in dir a glob's first component matches, and what below those the rest does. */
static int mask_glob(const Cover *cover, int dir_fd, const char *dir, const char *glob)
{
	const char *rest = strchr(glob, '/');
	g_autofree char *first = rest ? g_strndup(glob, (gsize)(rest - glob)) : g_strdup(glob);
	FD_AUTO fd = openat(dir_fd, dir[0] ? dir : ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *list = fd < 0 ? NULL : fdopendir(fd);
	struct dirent *entry;
	int r = 0;

	if (!list)
		return 0; /* nobody of the sandbox can look into it, either */
	fd = -1;
	while (r == 0 && (entry = readdir(list))) {
		g_autofree char *path =
			dir[0] ? path_join(dir, entry->d_name) : g_strdup(entry->d_name);

		if (entry->d_name[0] == '.' || fnmatch(first, entry->d_name, FNM_PERIOD) != 0)
			continue;
		r = rest ? mask_glob(cover, dir_fd, path, rest + 1)
			 : add_row(cover, WIRE_ROW_MASK, 0, path, false);
	}
	closedir(list);
	return r;
}

static int mask_hidden(const Cover *cover)
{
	int r = 0;

	for (const char *const *glob = cover->entry->hide; r == 0 && glob && *glob; glob++)
		r = mask_glob(cover, cover->source->fd, "", *glob);
	return r;
}

int exr_native_cover(ExrNative *native, unsigned int i)
{
	Cover cover = {
		.native = native,
		.entry = native->view->entries->pdata[i],
		.source = source_of(native, i),
	};
	int r;

	if (!cover.source || !S_ISDIR(cover.source->st.st_mode))
		return 0;
	if ((r = pin(&cover)) < 0 || (r = mask_mounts(&cover)) < 0 || (r = mask_state(&cover)) < 0)
		return r;
	return mask_hidden(&cover);
}
