/* Runtime "host": the directories that programs need to run, at their own paths, read-only; and the
 * places that a sandbox makes for itself.
 *
 * In a sandbox the executor binds them from the host (native speed for every library), so they are
 * points here; in a view to be looked into the gateway serves them. Directories that hold sockets
 * (/run) are never among them: a read-only mount does not stop a connect. */
#include "common/view-plan-internal.h"

#include "common/errno-util.h"
#include "common/limits.h"
#include "common/path-util.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

/* Where a distribution may have a link to the same place below /usr instead of a directory. */
static const char *const linkable[] = { "/bin", "/sbin", "/lib", "/lib32", "/lib64" };

static const char *const directories[] = {
	"/usr",
	"/nix/store",
	"/nix/var/nix/profiles",
	"/run/current-system/sw",
	"/sys/devices/system",
};

/* Whether a link text in the root directory means the same in every view: relative, and at no step
 * above the root. */
static bool stays_in_root(const char *text)
{
	const char *name;
	size_t length;
	int depth = 0;

	if (text[0] == '/' || text[0] == '\0')
		return false;
	while ((name = path_next(&text, &length))) {
		if (length == 2 && memcmp(name, "..", 2) == 0)
			depth--;
		else if (!(length == 1 && name[0] == '.'))
			depth++;
		if (depth < 0)
			return false;
	}
	return depth > 0;
}

/* Adds the row unless the host lacks the directory or a mount of the policy has its place. */
static int add_directory(ViewPlan *plan, const char *path, char **reterr_message)
{
	bool sandbox = plan->presentation == VIEW_FOR_SANDBOX;
	bool opened;
	ViewEntry *entry;
	int r;

	if (view_plan_covers(plan, path))
		return 0;
	entry = view_plan_add(plan, sandbox ? VIEW_ENTRY_POINT : VIEW_ENTRY_MOUNT,
			      VIEW_ORIGIN_RUNTIME, path, path);
	entry->cross_submounts = true;
	r = view_plan_look(entry, "runtime directory", true, &opened, reterr_message);
	if (r == -ENOENT || r == -ENOTDIR) {
		g_ptr_array_set_size(plan->entries, (int)plan->entries->len - 1);
		return 0;
	}
	if (r < 0 && !opened)
		return view_plan_refuse(r, reterr_message, "runtime directory", path,
					errno_text(-r));
	if (r == 0 && !entry->is_dir)
		return view_plan_refuse(-ENOTDIR, reterr_message, "runtime directory", path,
					errno_text(ENOTDIR));
	return r;
}

static int add_linkable(ViewPlan *plan, const char *path, char **reterr_message)
{
	char text[LIMIT_PATH_BYTES];
	ssize_t length = readlink(path, text, sizeof text - 1);

	if (length <= 0)
		return add_directory(plan, path, reterr_message);
	text[length] = '\0';
	if (!stays_in_root(text))
		return add_directory(plan, path, reterr_message);
	if (!view_plan_covers(plan, path)) {
		ViewEntry *entry =
			view_plan_add(plan, VIEW_ENTRY_LINK, VIEW_ORIGIN_RUNTIME, path, NULL);

		entry->target = g_strdup(text);
	}
	return 0;
}

int view_plan_add_runtime(ViewPlan *plan, char **reterr_message)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < G_N_ELEMENTS(linkable); i++)
		r = add_linkable(plan, linkable[i], reterr_message);
	for (size_t i = 0; r == 0 && i < G_N_ELEMENTS(directories); i++)
		r = add_directory(plan, directories[i], reterr_message);
	return r;
}

void view_plan_add_sandbox_points(ViewPlan *plan)
{
	static const struct {
		const char *path;
		StellaMountAccess access;
	} points[] = {
		{ "/proc", STELLA_MOUNT_READ_ONLY },	 { "/dev", STELLA_MOUNT_READ_ONLY },
		{ "/run", STELLA_MOUNT_READ_WRITE },	 { "/tmp", STELLA_MOUNT_READ_WRITE },
		{ "/var/tmp", STELLA_MOUNT_READ_WRITE },
	};

	for (size_t i = 0; i < G_N_ELEMENTS(points); i++) {
		ViewEntry *entry;

		if (view_plan_covers(plan, points[i].path))
			continue;
		entry = view_plan_add(plan, VIEW_ENTRY_POINT, VIEW_ORIGIN_RUNTIME, points[i].path,
				      NULL);
		entry->is_dir = true;
		entry->access = points[i].access;
	}
}
