/* The two directions of a view plan: view path to host path and back, and what a caller's path means.
 *
 * These are statements about names, made by strings alone. Nothing is opened, so none of them says that
 * a file exists or that its path holds no links; the walk that opens decides that. */
#include "common/view-plan.h"

#include "common/path-util.h"

#include <string.h>

static bool serves_files(const ViewEntry *entry)
{
	return entry->kind == VIEW_ENTRY_MOUNT || entry->kind == VIEW_ENTRY_GENERATED;
}

const ViewEntry *view_plan_find_by_view_path(const ViewPlan *plan, const char *path)
{
	const ViewEntry *best = NULL;

	for (unsigned int i = 0; i < plan->entries->len; i++) {
		const ViewEntry *entry = plan->entries->pdata[i];

		if (serves_files(entry) && path_is_below(path, entry->view_path) &&
		    (!best || strlen(entry->view_path) > strlen(best->view_path)))
			best = entry;
	}
	return best;
}

/* Whether a comes before b as the answer for a host path that both cover: deeper host directory, then
 * shorter view path, then byte order. */
static bool is_better_host_match(const ViewEntry *a, const ViewEntry *b)
{
	size_t a_host = strlen(a->host_path), b_host = strlen(b->host_path);
	size_t a_view = strlen(a->view_path), b_view = strlen(b->view_path);

	if (a_host != b_host)
		return a_host > b_host;
	if (a_view != b_view)
		return a_view < b_view;
	return strcmp(a->view_path, b->view_path) < 0;
}

static bool covers_host_path(const ViewEntry *entry, const char *host_path)
{
	return entry->kind == VIEW_ENTRY_MOUNT && path_is_below(host_path, entry->host_path);
}

const ViewEntry *view_plan_find_by_host_path(const ViewPlan *plan, const char *host_path)
{
	const ViewEntry *best = NULL;

	for (unsigned int i = 0; i < plan->entries->len; i++) {
		const ViewEntry *entry = plan->entries->pdata[i];

		if (covers_host_path(entry, host_path) &&
		    (!best || is_better_host_match(entry, best)))
			best = entry;
	}
	return best;
}

static char *host_path_in(const ViewEntry *entry, const char *view_path)
{
	return path_join(entry->host_path, path_below(view_path, entry->view_path));
}

static char *view_path_in(const ViewEntry *entry, const char *host_path)
{
	return path_join(entry->view_path, path_below(host_path, entry->host_path));
}

char *view_plan_to_host_path(const ViewPlan *plan, const char *view_path)
{
	g_autofree char *clean = path_clean(view_path);
	const ViewEntry *entry = clean ? view_plan_find_by_view_path(plan, clean) : NULL;

	return entry && entry->kind == VIEW_ENTRY_MOUNT ? host_path_in(entry, clean) : NULL;
}

/* The best entry is no answer where another mount of the view hides that part of it; a host path that
 * shows nowhere has no view path. */
char *view_plan_to_view_path(const ViewPlan *plan, const char *host_path)
{
	g_autofree char *clean = path_clean(host_path);
	g_autofree char *best_path = NULL;
	const ViewEntry *best = NULL;

	if (!clean)
		return NULL;
	for (unsigned int i = 0; i < plan->entries->len; i++) {
		const ViewEntry *entry = plan->entries->pdata[i];
		char *view_path;

		if (!covers_host_path(entry, clean) || (best && !is_better_host_match(entry, best)))
			continue;
		view_path = view_path_in(entry, clean);
		if (view_plan_find_by_view_path(plan, view_path) != entry) {
			g_free(view_path);
			continue;
		}
		best = entry;
		g_free(best_path);
		best_path = view_path;
	}
	return g_steal_pointer(&best_path);
}

/* Whether a process in the view can find something at path without any mount's content: the root,
 * directories that lead to an entry, and what the sandbox puts on a point or behind a link. */
static bool is_in_frame(const ViewPlan *plan, const char *path)
{
	/* On the host such a place is a directory like any other. */
	if (plan->presentation == VIEW_AS_HOST)
		return false;
	if (strcmp(path, "/") == 0)
		return true;
	for (unsigned int i = 0; i < plan->entries->len; i++) {
		const ViewEntry *entry = plan->entries->pdata[i];

		if (path_is_below(entry->view_path, path))
			return true;
		if (!serves_files(entry) && path_is_below(path, entry->view_path))
			return true;
	}
	return false;
}

/* Whether the view names the path more closely than the host mount that it could be meant by. */
static bool is_deeper_in_view(const ViewPlan *plan, const ViewEntry *entry, const char *path)
{
	const ViewEntry *by_host = view_plan_find_by_host_path(plan, path);

	return by_host && strlen(entry->view_path) > strlen(by_host->host_path);
}

bool view_plan_names(const ViewPlan *plan, const char *path)
{
	return view_plan_find_by_view_path(plan, path) || is_in_frame(plan, path);
}

char *view_plan_locate(const ViewPlan *plan, const char *path)
{
	g_autofree char *clean = path_clean_from(plan->working_dir ? plan->working_dir : "/", path);
	const ViewEntry *entry = view_plan_find_by_view_path(plan, clean);
	char *view_path;

	if (path[0] == '/') {
		/* A mount at its own host path means itself, whichever other names it has. Runtime
		 * directories give way: a workspace below /usr is the workspace. */
		if (entry && entry->kind == VIEW_ENTRY_MOUNT &&
		    entry->origin != VIEW_ORIGIN_RUNTIME) {
			g_autofree char *host_path = host_path_in(entry, clean);

			if (strcmp(host_path, clean) == 0)
				return g_steal_pointer(&clean);
			/* A host directory far above (even "/") must not take /workspace away. */
			if (is_deeper_in_view(plan, entry, clean))
				return g_steal_pointer(&clean);
		}
		if ((view_path = view_plan_to_view_path(plan, clean)))
			return view_path;
	}
	return entry || is_in_frame(plan, clean) ? g_steal_pointer(&clean) : NULL;
}

bool view_entry_is_writable(const ViewEntry *entry)
{
	return entry->kind == VIEW_ENTRY_MOUNT && entry->access == STELLA_MOUNT_READ_WRITE;
}

/* The workspace first and /tmp last: the order in which an agent should think of them. */
char **view_plan_writable(const ViewPlan *plan)
{
	g_autoptr(GStrvBuilder) paths = g_strv_builder_new();
	const ViewEntry *workspace = view_plan_find_by_view_path(plan, plan->workspace_view);
	bool has_tmp = false;

	if (workspace && view_entry_is_writable(workspace))
		g_strv_builder_add(paths, workspace->view_path);
	for (unsigned int i = 0; i < plan->entries->len; i++) {
		const ViewEntry *entry = plan->entries->pdata[i];
		bool own_point = entry->kind == VIEW_ENTRY_POINT && !entry->host_path;

		if (strcmp(entry->view_path, "/tmp") == 0)
			has_tmp = own_point || view_entry_is_writable(entry);
		else if (entry != workspace && !entry->untold && view_entry_is_writable(entry))
			g_strv_builder_add(paths, entry->view_path);
	}
	if (has_tmp && !(workspace && strcmp(workspace->view_path, "/tmp") == 0))
		g_strv_builder_add(paths, "/tmp");
	return g_strv_builder_end(paths);
}
