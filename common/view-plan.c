/* Building a view plan from a policy: the declared mounts, what they imply, and the checks that need
 * all rows together.
 *
 * The policy is trusted, so host paths are opened with links followed; what is found then (device,
 * inode) goes into the plan, for the gateway to notice a host path that was exchanged afterwards.
 * Nothing is created on the host but temp_dir_host. */
#include "common/view-plan-internal.h"

#include "common/errno-util.h"
#include "common/fd-util.h"
#include "common/mise.h"
#include "common/path-util.h"
#include "common/private-dir.h"

#include <fcntl.h>
#include <linux/magic.h>
#include <string.h>
#include <sys/vfs.h>

static void entry_free(gpointer data)
{
	ViewEntry *entry = data;

	g_free(entry->view_path);
	g_free(entry->host_path);
	g_free(entry->content);
	g_free(entry->target);
	g_free(entry);
}

static void dropped_free(gpointer data)
{
	ViewDropped *dropped = data;

	g_free(dropped->host_path);
	g_free(dropped->view_path);
	g_free(dropped);
}

void view_plan_free(ViewPlan *plan)
{
	if (!plan)
		return;
	stella_policy_unref(plan->policy);
	g_ptr_array_unref(plan->entries);
	g_ptr_array_unref(plan->dropped);
	g_free(plan->working_dir);
	g_free(plan->home);
	g_free(plan->workspace_view);
	g_free(plan->user_dir);
	g_free(plan->temp_dir);
	g_free(plan);
}

ViewEntry *view_plan_add(ViewPlan *plan, ViewEntryKind kind, ViewOrigin origin,
			 const char *view_path, const char *host_path)
{
	ViewEntry *entry = g_new0(ViewEntry, 1);

	entry->kind = kind;
	entry->origin = origin;
	entry->view_path = g_strdup(view_path);
	entry->host_path = g_strdup(host_path);
	g_ptr_array_add(plan->entries, entry);
	return entry;
}

bool view_plan_covers(const ViewPlan *plan, const char *view_path)
{
	for (unsigned int i = 0; i < plan->entries->len; i++) {
		const ViewEntry *entry = plan->entries->pdata[i];

		if (entry->kind == VIEW_ENTRY_MOUNT && entry->origin != VIEW_ORIGIN_RUNTIME &&
		    path_is_below(view_path, entry->view_path))
			return true;
	}
	return false;
}

int view_plan_refuse(int r, char **reterr_message, const char *subject, const char *path,
		     const char *what)
{
	g_autofree char *shown = path_escape(path);

	*reterr_message = g_strdup_printf("%s \"%s\": %s", subject, shown, what);
	return r;
}

int view_plan_look(ViewEntry *entry, const char *subject, bool from_kernel, bool *ret_opened,
		   char **reterr_message)
{
	FD_AUTO fd = open(entry->host_path, O_PATH | O_CLOEXEC);
	struct statfs fs;
	struct stat st;

	*ret_opened = fd >= 0;
	if (fd < 0)
		return -errno;
	if (fstat(fd, &st) != 0 || fstatfs(fd, &fs) != 0) {
		int errnum = errno;

		return view_plan_refuse(-errnum, reterr_message, subject, entry->host_path,
					errno_text(errnum));
	}
	if (!S_ISDIR(st.st_mode) && !S_ISREG(st.st_mode))
		return view_plan_refuse(-EINVAL, reterr_message, subject, entry->host_path,
					"is neither a directory nor a regular file");
	if (!from_kernel && (fs.f_type == PROC_SUPER_MAGIC || fs.f_type == SYSFS_MAGIC))
		return view_plan_refuse(-EINVAL, reterr_message, subject, entry->host_path,
					"is on a proc or sys file system, which no mount may show");
	entry->is_dir = S_ISDIR(st.st_mode);
	entry->dev = st.st_dev;
	entry->ino = st.st_ino;
	entry->owner_uid = st.st_uid;
	entry->owner_gid = st.st_gid;
	return 0;
}

/* Adds a mount whose host path must be there. */
static int add_mount(ViewPlan *plan, ViewOrigin origin, const char *subject, const char *view_path,
		     const char *host_path, StellaMountAccess access, char **reterr_message)
{
	ViewEntry *entry = view_plan_add(plan, VIEW_ENTRY_MOUNT, origin, view_path, host_path);
	bool opened;
	int r = view_plan_look(entry, subject, false, &opened, reterr_message);

	entry->access = access;
	if (r < 0 && !opened)
		return view_plan_refuse(r, reterr_message, subject, host_path, errno_text(-r));
	return r;
}

/* Being short of something is no property of the host path. */
static bool says_absent(int r)
{
	return r != -EMFILE && r != -ENFILE && r != -ENOMEM && r != -EINTR;
}

static int add_declared(ViewPlan *plan, char **reterr_message)
{
	const GPtrArray *mounts = plan->policy->mounts;

	for (unsigned int i = 0; i < mounts->len; i++) {
		const PolicyMount *mount = mounts->pdata[i];
		g_autofree char *subject = g_strdup_printf("filesystem.mounts[%u].host_path", i);
		ViewEntry *entry = view_plan_add(plan, VIEW_ENTRY_MOUNT, VIEW_ORIGIN_DECLARED,
						 mount->view_path, mount->host_path);
		bool opened;
		int r = view_plan_look(entry, subject, false, &opened, reterr_message);

		entry->access = mount->access;
		entry->untold = mount->untold;
		if (r < 0 && !opened && mount->optional && says_absent(r)) {
			ViewDropped *dropped = g_new0(ViewDropped, 1);

			dropped->host_path = g_strdup(mount->host_path);
			dropped->view_path = g_strdup(mount->view_path);
			g_ptr_array_add(plan->dropped, dropped);
			g_ptr_array_set_size(plan->entries, (int)plan->entries->len - 1);
			continue;
		}
		if (r < 0 && !opened)
			return view_plan_refuse(r, reterr_message, subject, mount->host_path,
						errno_text(-r));
		if (r < 0)
			return r;
	}
	return 0;
}

/* The entry that shows the workspace: at the well-known place if there is a choice, else the one with
 * the shortest view path, then the first in byte order. */
static const ViewEntry *find_workspace(const ViewPlan *plan)
{
	const ViewEntry *best = NULL;

	for (unsigned int i = 0; i < plan->entries->len; i++) {
		const ViewEntry *entry = plan->entries->pdata[i];
		size_t length = strlen(entry->view_path);

		if (strcmp(entry->host_path, plan->policy->workspace_root) != 0)
			continue;
		if (strcmp(entry->view_path, STELLA_MOUNT_WORKSPACE) == 0)
			return entry;
		if (!best || length < strlen(best->view_path) ||
		    (length == strlen(best->view_path) &&
		     strcmp(entry->view_path, best->view_path) < 0))
			best = entry;
	}
	return best;
}

const char *view_plan_workspace_key(const StellaPolicy *policy)
{
	return strcmp(policy->workspace_root, policy->working_dir) == 0
		       ? "filesystem.working_dir"
		       : "filesystem.workspace_root";
}

/* A workspace_root that is only the default (working_dir) may be a view path. It must not be taken for
 * a host path then: that would show, writable, a host directory that nobody named. */
static bool root_is_view_path(const ViewPlan *plan)
{
	const StellaPolicy *policy = plan->policy;

	return strcmp(policy->workspace_root, policy->working_dir) == 0 &&
	       !view_plan_find_by_host_path(plan, policy->working_dir) &&
	       view_plan_covers(plan, policy->working_dir);
}

static bool has_entry_at(const ViewPlan *plan, const char *view_path)
{
	for (unsigned int i = 0; i < plan->entries->len; i++) {
		if (strcmp(((const ViewEntry *)plan->entries->pdata[i])->view_path, view_path) == 0)
			return true;
	}
	return false;
}

/* Where the policy does not say. A host path can be what no view path may be, and another mount can have its place. */
static int place_workspace(ViewPlan *plan, char **reterr_message)
{
	static const char *const kernel_trees[] = { "/proc", "/dev", "/sys" };
	const char *root = plan->policy->workspace_root;
	bool fits = strcmp(root, "/") != 0;

	if (plan->presentation != VIEW_FOR_TOOLS) {
		plan->workspace_view = g_strdup(STELLA_MOUNT_WORKSPACE);
		return 0;
	}
	for (size_t i = 0; i < G_N_ELEMENTS(kernel_trees); i++)
		fits = fits && !path_is_below(root, kernel_trees[i]);
	if (!fits || has_entry_at(plan, root))
		return view_plan_refuse(
			-EINVAL, reterr_message, view_plan_workspace_key(plan->policy), root,
			"cannot be mounted at its own path; declare a mount for it");
	plan->workspace_view = g_strdup(root);
	return 0;
}

static int add_workspace(ViewPlan *plan, char **reterr_message)
{
	const ViewEntry *shown = find_workspace(plan);
	int r;

	if (shown)
		plan->workspace_view = g_strdup(shown->view_path);
	else if (view_plan_covers(plan, STELLA_MOUNT_WORKSPACE))
		plan->workspace_view = g_strdup(STELLA_MOUNT_WORKSPACE);
	else if (root_is_view_path(plan))
		plan->workspace_view = g_strdup(plan->policy->working_dir);
	if (plan->workspace_view)
		return 0;
	if ((r = place_workspace(plan, reterr_message)) < 0)
		return r;
	return add_mount(plan, VIEW_ORIGIN_WORKSPACE, view_plan_workspace_key(plan->policy),
			 plan->workspace_view, plan->policy->workspace_root,
			 STELLA_MOUNT_READ_WRITE, reterr_message);
}

/* Of the tool home only these directories are shown; both must be directories where they exist. */
static int add_tools(ViewPlan *plan, char **reterr_message)
{
	const StellaPolicy *policy = plan->policy;
	const char *home = policy->stella_home;
	struct stat st;
	int r = 0;

	if (home[0] == '\0')
		return 0;
	r = stat(home, &st) != 0 ? -errno : S_ISDIR(st.st_mode) ? 0 : -ENOTDIR;
	if (r < 0)
		return view_plan_refuse(r, reterr_message, "filesystem.stella_home", home,
					errno_text(-r));
	for (const char *const *shown = mise_home_dirs(); r == 0 && *shown; shown++) {
		g_autofree char *host_path = path_join(home, *shown);
		g_autofree char *view_path = path_join(STELLA_MOUNT_STELLA_HOME, *shown);

		if (has_entry_at(plan, view_path) ||
		    (stat(host_path, &st) != 0 && (errno == ENOENT || errno == ENOTDIR)))
			continue;
		r = add_mount(plan, VIEW_ORIGIN_TOOLS, "filesystem.stella_home", view_path,
			      host_path, STELLA_MOUNT_READ_ONLY, reterr_message);
	}
	if (r == 0 && policy->user_tools_dir[0] != '\0') {
		g_autofree char *view_path = path_join(STELLA_MOUNT_STELLA_HOME,
						       path_below(policy->user_tools_dir, home));

		if (!has_entry_at(plan, view_path))
			r = add_mount(plan, VIEW_ORIGIN_TOOLS, "filesystem.user_tools_dir",
				      view_path, policy->user_tools_dir, STELLA_MOUNT_READ_WRITE,
				      reterr_message);
	}
	return r;
}

static int add_temp(ViewPlan *plan, char **reterr_message)
{
	const char *host_path = plan->policy->temp_dir_host;
	int r;

	if (host_path[0] == '\0' || view_plan_covers(plan, "/tmp"))
		return 0;
	if ((r = private_dir_ensure(host_path)) < 0)
		return view_plan_refuse(r, reterr_message, "filesystem.temp_dir_host", host_path,
					errno_text(-r));
	return add_mount(plan, VIEW_ORIGIN_TEMP, "filesystem.temp_dir_host", "/tmp", host_path,
			 STELLA_MOUNT_READ_WRITE, reterr_message);
}

/* The name that a person finds a row by: its key in the policy. */
static char *subject_of(const ViewPlan *plan, const ViewEntry *entry)
{
	const GPtrArray *mounts = plan->policy->mounts;

	for (unsigned int i = 0; i < mounts->len; i++) {
		if (strcmp(((const PolicyMount *)mounts->pdata[i])->view_path, entry->view_path) ==
		    0)
			return g_strdup_printf("filesystem.mounts[%u].view_path", i);
	}
	return g_strdup("view path");
}

/* Why nothing can be mounted below an entry, or NULL when it can. */
static char *why_no_mount_below(const ViewEntry *entry)
{
	switch (entry->kind) {
	case VIEW_ENTRY_LINK:
		return g_strdup_printf("lies below %s, which is a link to %s", entry->view_path,
				       entry->target);
	case VIEW_ENTRY_GENERATED:
		return g_strdup_printf("lies below %s, which is a file", entry->view_path);
	case VIEW_ENTRY_POINT:
		if (entry->host_path)
			return g_strdup_printf("lies below %s, which a sandbox takes from the host "
					       "as it is; choose another place, or runtime none",
					       entry->view_path);
		if (strcmp(entry->view_path, "/tmp") == 0)
			return g_strdup("lies below /tmp, which is private to a sandbox; choose "
					"another place, or set filesystem.temp_dir_host");
		return g_strdup_printf(
			"lies below %s, which is private to a sandbox; choose another "
			"place",
			entry->view_path);
	case VIEW_ENTRY_MOUNT:
		break;
	}
	return entry->is_dir ? NULL
			     : g_strdup_printf("lies below %s, which is a file", entry->view_path);
}

/* A mount that something else would hide, or that has no directory to be in, is an error: it must not
 * go missing in silence. Runtime rows are left out where they do not fit. */
static int check_nesting(const ViewPlan *plan, char **reterr_message)
{
	for (unsigned int i = 0; i < plan->entries->len; i++) {
		const ViewEntry *entry = plan->entries->pdata[i];

		if (entry->origin == VIEW_ORIGIN_RUNTIME)
			continue;
		for (unsigned int k = 0; k < i; k++) { /* sorted: what is above comes before */
			const ViewEntry *above = plan->entries->pdata[k];
			g_autofree char *why = NULL;

			if (!path_is_below(entry->view_path, above->view_path) ||
			    !(why = why_no_mount_below(above)))
				continue;
			g_autofree char *subject = subject_of(plan, entry);

			return view_plan_refuse(-EINVAL, reterr_message, subject, entry->view_path,
						why);
		}
	}
	return 0;
}

static int set_working_dir(ViewPlan *plan, char **reterr_message)
{
	const char *given = plan->policy->working_dir;
	char *view_path = view_plan_locate(plan, given);
	const ViewEntry *entry = view_path ? view_plan_find_by_view_path(plan, view_path) : NULL;

	if (!entry || entry->kind != VIEW_ENTRY_MOUNT || entry->origin == VIEW_ORIGIN_RUNTIME) {
		g_free(view_path);
		return view_plan_refuse(-EINVAL, reterr_message, "filesystem.working_dir", given,
					"no mount covers it");
	}
	plan->working_dir = view_path;
	return 0;
}

/* The workspace, unless the policy insists on a HOME of its own. */
static char *choose_home(const ViewPlan *plan)
{
	const GPtrArray *env = plan->policy->env;

	for (unsigned int i = 0; plan->policy->env_override && i < env->len; i++) {
		const PolicyEnv *variable = env->pdata[i];
		char *clean =
			strcmp(variable->name, "HOME") == 0 ? path_clean(variable->value) : NULL;

		if (clean)
			return clean;
	}
	return g_strdup(plan->workspace_view);
}

static gint compare_entries(gconstpointer a, gconstpointer b)
{
	const ViewEntry *const *one = a, *const *two = b;

	return strcmp((*one)->view_path, (*two)->view_path);
}

static PolicyRuntime choose_runtime(PolicyRuntime asked, ViewPresentation presentation)
{
	if (presentation == VIEW_FOR_TOOLS) /* there are no commands */
		return POLICY_RUNTIME_NONE;
	if (asked != POLICY_RUNTIME_DEFAULT)
		return asked;
	return presentation == VIEW_FOR_SANDBOX ? POLICY_RUNTIME_HOST : POLICY_RUNTIME_NONE;
}

/* A sandbox's user namespace maps one id: no others could be passed through. */
static int check_ownership(const ViewPlan *plan, char **reterr_message)
{
	if (plan->policy->ownership == POLICY_OWNERSHIP_OWNER)
		return 0;
	if (plan->presentation == VIEW_FOR_SANDBOX) {
		*reterr_message =
			g_strdup("filesystem.ownership: \"host\" is for a mounted view; in a "
				 "sandbox there is one user");
		return -EINVAL;
	}
	if (geteuid() != 0) {
		*reterr_message = g_strdup("filesystem.ownership: \"host\" is for root only");
		return -EPERM;
	}
	return 0;
}

int view_plan_new(const StellaPolicy *policy, ViewPresentation presentation, ViewPlan **ret_plan,
		  char **reterr_message)
{
	g_autoptr(ViewPlan) plan = g_new0(ViewPlan, 1);
	int r;

	plan->policy = stella_policy_ref(policy);
	plan->presentation = presentation;
	plan->runtime = choose_runtime(policy->runtime, presentation);
	plan->entries = g_ptr_array_new_with_free_func(entry_free);
	plan->dropped = g_ptr_array_new_with_free_func(dropped_free);
	if ((r = check_ownership(plan, reterr_message)) < 0)
		return r;
	if ((r = add_declared(plan, reterr_message)) < 0)
		return r;
	if ((r = add_workspace(plan, reterr_message)) < 0)
		return r;
	if ((r = add_tools(plan, reterr_message)) < 0)
		return r;
	if ((r = add_temp(plan, reterr_message)) < 0)
		return r;
	plan->home = choose_home(plan);
	if (presentation == VIEW_FOR_SANDBOX)
		view_plan_add_sandbox_points(plan);
	if (plan->runtime == POLICY_RUNTIME_HOST) {
		if ((r = view_plan_add_runtime(plan, reterr_message)) < 0)
			return r;
		if ((r = view_plan_add_etc(plan, reterr_message)) < 0)
			return r;
	}
	g_ptr_array_sort(plan->entries, compare_entries);
	if ((r = check_nesting(plan, reterr_message)) < 0)
		return r;
	if ((r = set_working_dir(plan, reterr_message)) < 0)
		return r;
	if (presentation == VIEW_AS_HOST)
		view_plan_use_host_paths(plan);
	*ret_plan = g_steal_pointer(&plan);
	return 0;
}
