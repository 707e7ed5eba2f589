/* A view plan for commands that run on the host: every view path becomes the host path that it stands for. What only a
 * view can have (files of its own, links, runtime directories) is left out, for there the host's own are found. */
#include "common/view-plan-internal.h"

#include "common/path-util.h"

#include <string.h>

/* NULL stays, and so does what no mount covers. */
static void to_host(const ViewPlan *plan, char **path)
{
	char *host_path = *path ? view_plan_to_host_path(plan, *path) : NULL;

	if (!host_path)
		return;
	g_free(*path);
	*path = host_path;
}

static bool is_kept(const ViewEntry *entry)
{
	return entry->kind == VIEW_ENTRY_MOUNT && entry->origin != VIEW_ORIGIN_RUNTIME;
}

/* By path; of one directory that is mounted twice the writable row comes first. */
static gint compare(gconstpointer a, gconstpointer b)
{
	const ViewEntry *const *one = a, *const *two = b;
	int order = strcmp((*one)->view_path, (*two)->view_path);

	return order != 0 ? order
			  : (int)view_entry_is_writable(*two) - (int)view_entry_is_writable(*one);
}

static bool repeats(const GPtrArray *entries, unsigned int i)
{
	return i > 0 && strcmp(((const ViewEntry *)entries->pdata[i - 1])->view_path,
			       ((const ViewEntry *)entries->pdata[i])->view_path) == 0;
}

void view_plan_use_host_paths(ViewPlan *plan)
{
	plan->user_dir = view_plan_to_host_path(plan, STELLA_MOUNT_USER_DATA);
	plan->temp_dir = view_plan_to_host_path(plan, "/tmp");
	to_host(plan, &plan->working_dir);
	to_host(plan, &plan->home);
	to_host(plan, &plan->workspace_view);
	for (unsigned int i = plan->entries->len; i-- > 0;)
		if (!is_kept(plan->entries->pdata[i]))
			g_ptr_array_remove_index(plan->entries, i);
	for (unsigned int i = 0; i < plan->entries->len; i++) {
		ViewEntry *entry = plan->entries->pdata[i];

		g_free(entry->view_path);
		entry->view_path = g_strdup(entry->host_path);
	}
	g_ptr_array_sort(plan->entries, compare);
	for (unsigned int i = plan->entries->len; i-- > 0;)
		if (repeats(plan->entries, i))
			g_ptr_array_remove_index(plan->entries, i);
}
