/* From view plan to mounts of the kernel; see sandbox-plan-native.h.
 *
 * Each mount of the policy, each runtime directory and each private directory is a source, bound at its view path. What
 * a gateway makes up is made here of mounts, too: directories that only lead somewhere are made in the root, which is
 * ours, and in nothing else. A mount whose place lies in another mount needs a directory there, for none is ever made
 * in what is the host's: without it the policy needs a gateway. */
#include "executor/sandbox-plan-native-internal.h"

#include "common/errno-util.h"
#include "common/fd-util.h"
#include "common/limits.h"
#include "common/path-util.h"
#include "executor/backend.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

WireRow *exr_native_add(ExrNative *native, WireRowKind kind, uint32_t flags, const char *target,
			const struct stat *st)
{
	WireRow row = { .kind = kind, .flags = flags };

	if (native->plan.rows->len >= WIRE_MAX_ROWS)
		return NULL;
	row.target = exr_plan_add_text(&native->plan, target + 1);
	if (st) {
		row.dev = st->st_dev;
		row.ino = st->st_ino;
		row.flags |= S_ISDIR(st->st_mode) ? WIRE_ROW_IS_DIR : 0;
	}
	g_array_append_val(native->plan.rows, row);
	return &g_array_index(native->plan.rows, WireRow, native->plan.rows->len - 1);
}

bool exr_native_is_ours(const ExrNative *native, const ViewEntry *entry)
{
	if (entry->kind == VIEW_ENTRY_POINT)
		return !entry->host_path;
	return entry->kind == VIEW_ENTRY_MOUNT &&
	       path_is_below(entry->host_path, exr_state_dir_path(native->plan.state));
}

/* The name in the policy that a mount's place has. */
static char *key_of(const ExrNative *native, const ViewEntry *entry)
{
	const GPtrArray *mounts = native->view->policy->mounts;

	for (unsigned int i = 0; i < mounts->len; i++)
		if (strcmp(((const PolicyMount *)mounts->pdata[i])->view_path, entry->view_path) ==
		    0)
			return g_strdup_printf("filesystem.mounts[%u].view_path", i);
	return g_strdup(entry->origin == VIEW_ORIGIN_TOOLS
				? "filesystem.stella_home"
				: view_plan_workspace_key(native->view->policy));
}

/* A directory of the host that a mount lies in has to have a place for it. */
static int check_point(const ExrNative *native, const ViewEntry *above, int above_source,
		       const ViewEntry *entry, bool is_dir, ExrError *error)
{
	const ExrSource *source = exr_source(native->sources, (unsigned int)above_source);
	FD_AUTO fd = exr_source_open_below(source, path_below(entry->view_path, above->view_path));
	g_autofree char *key = NULL;
	g_autofree char *what = NULL;
	struct stat st;

	if (fd >= 0 && fstat(fd, &st) == 0 && !S_ISDIR(st.st_mode) == !is_dir)
		return 0;
	key = key_of(native, entry);
	what = g_strdup_printf("show %s, for which %s has no %s on the host", entry->view_path,
			       above->view_path, is_dir ? "directory" : "file");
	return exr_backend_refuse(&exr_backend_bwrap, key, what, error);
}

/* Opens the entry's source, if it has one. */
static int open_source(ExrNative *native, unsigned int i)
{
	const ViewEntry *entry = native->view->entries->pdata[i];
	const char *name = exr_sandbox_private_name(entry->view_path);
	g_autofree char *own = NULL;
	const char *path = entry->host_path;
	ExrSource *source;
	unsigned int index;
	bool read_only;
	int r;

	native->source_of[i] = -1;
	if (entry->kind != VIEW_ENTRY_MOUNT && entry->kind != VIEW_ENTRY_POINT)
		return 0;
	if (!path && name)
		path = own = exr_state_dir_join(native->plan.state, name);
	if (!path)
		return 0;
	read_only = entry->host_path && entry->access != STELLA_MOUNT_READ_WRITE;
	if ((r = exr_sources_add(native->sources, path, read_only, &index)) < 0)
		return r;
	source = &g_array_index(native->sources, ExrSource, index);
	source->is_given = entry->kind == VIEW_ENTRY_MOUNT && entry->origin != VIEW_ORIGIN_RUNTIME;
	if (entry->kind == VIEW_ENTRY_MOUNT &&
	    (source->st.st_dev != entry->dev || source->st.st_ino != entry->ino))
		return -ESTALE;
	native->source_of[i] = (int)index;
	return 0;
}

static int add_source(ExrNative *native, unsigned int i, uint32_t flags)
{
	const ViewEntry *entry = native->view->entries->pdata[i];
	unsigned int index = (unsigned int)native->source_of[i];
	const ExrSource *source = exr_source(native->sources, index);
	g_autofree char *staged = g_strdup_printf(EXR_NATIVE_SOURCES "/%u", index);
	uint32_t staged_at = exr_plan_add_text(&native->plan, staged);
	WireRow *row = exr_native_add(native, WIRE_ROW_SOURCE,
				      flags | (source->read_only ? WIRE_ROW_READ_ONLY : 0),
				      entry->view_path, &source->st);

	if (!row)
		return -E2BIG;
	row->source = staged_at;
	return entry->kind == VIEW_ENTRY_MOUNT ? exr_native_cover(native, i) : 0;
}

static int add_file(ExrNative *native, const ViewEntry *entry, const char *target, uint32_t flags)
{
	uint32_t content = exr_plan_add_bytes(&native->plan, entry->content, entry->content_size);
	WireRow *row = exr_native_add(native, WIRE_ROW_FILE, flags, target, NULL);

	if (!row)
		return -E2BIG;
	row->source = content;
	row->ino = entry->content_size;
	return 0;
}

/* Where links of the host lead from path, by their texts; NULL: to nothing, or round in circles. */
static char *follow(const char *path)
{
	char *at = g_strdup(path);

	for (int i = 0; i < LIMIT_LINKS; i++) {
		char text[LIMIT_PATH_BYTES];
		g_autofree char *dir = g_path_get_dirname(at);
		ssize_t length = readlink(at, text, sizeof text - 1);

		if (length < 0 && errno == EINVAL)
			return at;
		if (length < 0)
			break;
		text[length] = '\0';
		g_free(at);
		at = path_clean_from(dir, text);
	}
	g_free(at);
	return NULL;
}

/* A file of the view's own in the host's /etc lies on the host's file, or where a link there leads: what a link leads to
 * in /run is not the host's but ours. A link to nowhere that there is stays one. */
static int add_file_in_etc(ExrNative *native, const ViewEntry *entry, GPtrArray *in_run)
{
	g_autofree char *target = follow(entry->view_path);
	g_autofree char *link = NULL;
	bool missing = !target && readlink(entry->view_path, (char[1]){ 0 }, 1) < 0;

	if (missing)
		return -ENOENT;
	if (target && path_is_below(target, "/etc"))
		return add_file(native, entry, target, 0);
	/* The end of the chain need not exist on the host, as when a service is down: its content is known all the same. */
	link = g_file_read_link(entry->view_path, NULL);
	if (!target && link)
		target = path_clean_from("/etc", link);
	if (target && path_is_below(target, "/run"))
		g_ptr_array_add(in_run, g_strdup(target));
	return 0;
}

static int add_generated(ExrNative *native, unsigned int i, GPtrArray *in_run,
			 GPtrArray *in_run_entries)
{
	const ViewEntry *entry = native->view->entries->pdata[i];
	const ViewEntry *above = exr_plan_find_above(native->view, i);
	unsigned int before = in_run->len;
	int r;

	if (!above || exr_native_is_ours(native, above))
		return add_file(native, entry, entry->view_path, WIRE_ROW_MAKE);
	r = add_file_in_etc(native, entry, in_run);
	if (in_run->len > before)
		g_ptr_array_add(in_run_entries, (void *)(uintptr_t)entry);
	return r;
}

static int add_special(ExrNative *native, const ViewEntry *entry, uint32_t flags)
{
	WireRowKind kind = strcmp(entry->view_path, "/proc") == 0  ? WIRE_ROW_PROC
			   : strcmp(entry->view_path, "/dev") == 0 ? WIRE_ROW_DEV
								   : WIRE_ROW_RUN;

	return exr_native_add(native, kind, flags | WIRE_ROW_IS_DIR, entry->view_path, NULL)
		       ? 0
		       : -E2BIG;
}

static int add_link(ExrNative *native, const ViewEntry *entry, uint32_t flags)
{
	uint32_t text = exr_plan_add_text(&native->plan, entry->target);
	WireRow *row = exr_native_add(native, WIRE_ROW_LINK, flags, entry->view_path, NULL);

	if (!row)
		return -E2BIG;
	row->source = text;
	return 0;
}

static int find_entry(const ViewPlan *view, const ViewEntry *entry)
{
	for (unsigned int i = 0; i < view->entries->len; i++)
		if (view->entries->pdata[i] == entry)
			return (int)i;
	return -1;
}

static bool needs_point(const ExrNative *native, const ViewEntry *above)
{
	return above && !exr_native_is_ours(native, above);
}

/* Of all mounts, before any row is made: one that is missing is the policy's concern, and not that of a row which needs the
 * way to it. */
static int check_points(const ExrNative *native, ExrError *error)
{
	for (unsigned int i = 0; i < native->view->entries->len; i++) {
		const ViewEntry *above = exr_plan_find_above(native->view, i);
		int source = native->source_of[i], r;

		if (source < 0 || !needs_point(native, above))
			continue;
		r = check_point(
			native, above, native->source_of[find_entry(native->view, above)],
			native->view->entries->pdata[i],
			S_ISDIR(exr_source(native->sources, (unsigned int)source)->st.st_mode),
			error);
		if (r < 0)
			return r;
	}
	return 0;
}

static int add_entry(ExrNative *native, unsigned int i)
{
	const ViewEntry *entry = native->view->entries->pdata[i];
	const ViewEntry *above = exr_plan_find_above(native->view, i);
	uint32_t flags = needs_point(native, above) ? 0 : WIRE_ROW_MAKE;

	if (native->source_of[i] >= 0)
		return add_source(native, i, flags);
	return entry->kind == VIEW_ENTRY_LINK ? add_link(native, entry, flags)
					      : add_special(native, entry, flags);
}

static int cannot_prepare(const char *path, int r, ExrError *error)
{
	if (r == -E2BIG)
		return exr_error_set(error, "rootfs-failed", "plan", E2BIG,
				     "the view takes more than %d mounts", WIRE_MAX_ROWS);
	return exr_error_set(error, "rootfs-failed", "plan", -r, "cannot prepare \"%s\": %s", path,
			     errno_text(-r));
}

static int add_entries(ExrNative *native, ExrError *error)
{
	g_autoptr(GPtrArray) in_run = g_ptr_array_new_with_free_func(g_free);
	g_autoptr(GPtrArray) in_run_entries = g_ptr_array_new();
	const GPtrArray *entries = native->view->entries;
	int r;

	for (unsigned int i = 0; i < entries->len; i++)
		if ((r = open_source(native, i)) < 0)
			return cannot_prepare(((const ViewEntry *)entries->pdata[i])->view_path, r,
					      error);
	if ((r = check_points(native, error)) < 0)
		return r;
	for (unsigned int i = 0; i < entries->len; i++) {
		const ViewEntry *entry = entries->pdata[i];

		if (entry->kind == VIEW_ENTRY_GENERATED)
			r = add_generated(native, i, in_run, in_run_entries);
		else
			r = add_entry(native, i);
		if (r < 0)
			return cannot_prepare(entry->view_path, r, error);
	}
	/* /run has its place by now. */
	for (unsigned int i = 0; i < in_run->len; i++)
		if ((r = add_file(native, in_run_entries->pdata[i], in_run->pdata[i],
				  WIRE_ROW_MAKE)) < 0)
			return cannot_prepare(in_run->pdata[i], r, error);
	return 0;
}

int exr_native_plan_new(const ViewPlan *view, const ExrIdentity *identity, const ExrStateDir *state,
			const ExrSeccomp *seccomp, GArray *sources, ExrError *reterr_error)
{
	const ExrPlanFrame frame = {
		.flags = WIRE_PLAN_NATIVE,
		.without = WIRE_PLAN_CLEAR_GROUPS, /* they were, before bubblewrap was started */
		.view_path = EXR_NATIVE_FILES,
		.session_dir = EXR_NATIVE_ROOT,
		.seccomp = seccomp,
	};
	ExrNative native = {
		.view = view,
		.sources = sources,
		.source_of = g_new0(int, view->entries->len + 1),
		.mount_points = exr_mount_points(),
		.state_root = realpath(exr_state_dir_root(state), NULL),
	};
	int r;

	exr_plan_begin(&native.plan, state, WIRE_MAX_ROWS);
	r = add_entries(&native, reterr_error);
	if (r == 0)
		r = exr_plan_finish(&native.plan, view, identity, &frame, reterr_error);
	exr_plan_clear(&native.plan);
	g_free(native.source_of);
	g_strfreev(native.mount_points);
	free(native.state_root);
	return r;
}
