/* The path resolver at the edge; see stella/path-resolver.h. Makes policies of its settings, and GErrors of problems. */
#include "common/api-path-resolver.h"

#include "common/api-error.h"
#include "common/api-struct.h"
#include "common/path-util.h"
#include "common/policy.h"
#include "common/runtime-dir.h"

#include <errno.h>
#include <string.h>

G_DEFINE_BOXED_TYPE(StellaPathResolver, stella_path_resolver, stella_path_resolver_ref,
		    stella_path_resolver_unref)

StellaPathResolver *stella_path_resolver_ref(StellaPathResolver *resolver)
{
	g_return_val_if_fail(resolver != NULL, NULL);
	(void)path_resolver_ref(api_path_resolver_inner(resolver));
	return resolver;
}

void stella_path_resolver_unref(StellaPathResolver *resolver)
{
	path_resolver_unref(api_path_resolver_inner(resolver));
}

void stella_resolved_path_free(StellaResolvedPath *resolved)
{
	if (!resolved)
		return;
	g_free(resolved->host_path);
	g_free(resolved->view_path);
	g_free((char *)(uintptr_t)resolved->mount.host_path);
	g_free((char *)(uintptr_t)resolved->mount.view_path);
	g_free(resolved);
}

void stella_path_resolver_config_init(StellaPathResolverConfig *config)
{
	memset(config, 0, sizeof *config);
	config->size = sizeof *config;
}

/* A message begins with the key that it is about. Of what is there, and of what only the host can say, the code tells;
 * all else is the table's. */
static void set_plan_error(GError **error, int r, const char *message)
{
	StellaError code = api_error_code_from_errno(-r);

	if (r == -EINVAL)
		code = STELLA_ERROR_POLICY_INVALID;
	else if (code != STELLA_ERROR_NOT_FOUND)
		code = STELLA_ERROR_IO;
	api_error_set(error, code, "%s", message);
	if (!error)
		return;
	api_error_details(*error)->errnum = -r;
	api_error_details(*error)->key = policy_message_key(message);
}

/* The private files of all sessions, which no door leads to; NULL where there are none yet. */
static char *find_private_dir(void)
{
	g_autofree char *path = runtime_dir_state();

	return g_path_is_absolute(path) && g_file_test(path, G_FILE_TEST_IS_DIR)
		       ? g_steal_pointer(&path)
		       : NULL;
}

static StellaPathResolver *new_for(const StellaPolicy *policy, ViewPresentation presentation,
				   GError **error)
{
	g_autofree char *message = NULL;
	g_autofree char *private_dir = find_private_dir();
	PathResolver *resolver = NULL;
	ViewPlan *plan = NULL;
	int r;

	if (!stella_policy_validate(policy, error))
		return NULL;
	r = view_plan_new(policy, presentation, &plan, &message);
	if (r == 0)
		r = path_resolver_new(plan, private_dir, NULL, &resolver, &message);
	if (r < 0) {
		set_plan_error(error, r, message);
		return NULL;
	}
	return api_path_resolver_from_inner(resolver);
}

StellaPathResolver *stella_path_resolver_new(const StellaPathResolverConfig *config, GError **error)
{
	StellaPathResolverConfig given;
	StellaPolicyOptions options;
	g_autoptr(StellaPolicy) policy = NULL;

	g_return_val_if_fail(config != NULL, NULL);
	stella_path_resolver_config_init(&given);
	if (!api_struct_read(config, config->size, &given, sizeof given, sizeof config->size)) {
		(void)api_struct_refuse(config->size, "StellaPathResolverConfig", error);
		return NULL;
	}
	stella_policy_options_init(&options);
	options.workspace_root = given.workspace_root;
	options.working_dir = given.working_dir;
	options.mounts = given.mounts;
	options.n_mounts = given.n_mounts;
	options.temp_dir_host = given.temp_dir_host;
	options.symlinks = given.symlinks;
	policy = stella_policy_new(&options);
	return new_for(policy, VIEW_FOR_TOOLS, error);
}

StellaPathResolver *stella_path_resolver_new_for_policy(const StellaPolicy *policy, GError **error)
{
	g_autoptr(StellaPolicy) own = NULL;

	g_return_val_if_fail(policy != NULL, NULL);
	own = policy_copy(policy);
	/* A session's view has the directories of programs unless it is told otherwise. */
	if (own->runtime == POLICY_RUNTIME_DEFAULT)
		own->runtime = POLICY_RUNTIME_HOST;
	return new_for(own, VIEW_FOR_HOST, error);
}

static void mount_of_entry(const ViewPlan *plan, const ViewEntry *entry, StellaMount *ret_mount)
{
	const GPtrArray *declared = plan->policy->mounts;

	*ret_mount = (StellaMount){
		.host_path = entry->host_path,
		.view_path = entry->view_path,
		.access = entry->access,
	};
	for (guint i = 0; i < declared->len && entry->origin == VIEW_ORIGIN_DECLARED; i++) {
		const PolicyMount *mount = declared->pdata[i];

		if (strcmp(mount->view_path, entry->view_path) != 0)
			continue;
		ret_mount->optional = mount->optional;
		ret_mount->quota_bytes = mount->quota_bytes;
		ret_mount->quota_files = mount->quota_files;
	}
}

static StellaResolvedPath *resolve(StellaPathResolver *resolver, const char *path, bool for_write,
				   GError **error)
{
	PathResolver *inner = api_path_resolver_inner(resolver);
	PathProblem problem = { .reason = -1 };
	StellaResolvedPath *result;
	PathResolved resolved;

	if (path_resolver_resolve(inner, path, for_write, &resolved, &problem) < 0) {
		api_error_take_problem(error, &problem);
		return NULL;
	}
	result = g_new0(StellaResolvedPath, 1);
	mount_of_entry(path_resolver_plan(inner), resolved.mount, &result->mount);
	result->mount.host_path = g_strdup(result->mount.host_path);
	result->mount.view_path = g_strdup(result->mount.view_path);
	result->host_path = g_steal_pointer(&resolved.host_path);
	result->view_path = g_steal_pointer(&resolved.view_path);
	path_resolved_clear(&resolved);
	return result;
}

StellaResolvedPath *stella_path_resolver_resolve(StellaPathResolver *resolver, const char *path,
						 GError **error)
{
	g_return_val_if_fail(resolver != NULL && path != NULL, NULL);
	return resolve(resolver, path, false, error);
}

StellaResolvedPath *stella_path_resolver_resolve_write(StellaPathResolver *resolver,
						       const char *path, GError **error)
{
	g_return_val_if_fail(resolver != NULL && path != NULL, NULL);
	return resolve(resolver, path, true, error);
}

char *stella_path_resolver_to_host_path(StellaPathResolver *resolver, const char *view_path)
{
	g_return_val_if_fail(resolver != NULL && view_path != NULL, NULL);
	return view_plan_to_host_path(path_resolver_plan(api_path_resolver_inner(resolver)),
				      view_path);
}

char *stella_path_resolver_to_view_path(StellaPathResolver *resolver, const char *host_path)
{
	g_return_val_if_fail(resolver != NULL && host_path != NULL, NULL);
	return view_plan_to_view_path(path_resolver_plan(api_path_resolver_inner(resolver)),
				      host_path);
}

/* The i-th entry that is a mount; NULL behind the last one, and *ret_count is then their number. */
static const ViewEntry *find_mount(const ViewPlan *plan, gsize i, gsize *ret_count)
{
	gsize count = 0;

	for (guint k = 0; k < plan->entries->len; k++) {
		const ViewEntry *entry = plan->entries->pdata[k];

		if (entry->kind == VIEW_ENTRY_MOUNT && count++ == i)
			return entry;
	}
	*ret_count = count;
	return NULL;
}

gsize stella_path_resolver_get_n_mounts(StellaPathResolver *resolver)
{
	gsize count = 0;

	g_return_val_if_fail(resolver != NULL, 0);
	(void)find_mount(path_resolver_plan(api_path_resolver_inner(resolver)), G_MAXSIZE, &count);
	return count;
}

gboolean stella_path_resolver_get_mount(StellaPathResolver *resolver, gsize i,
					StellaMount *ret_mount)
{
	const ViewEntry *entry;
	const ViewPlan *plan;
	gsize count;

	g_return_val_if_fail(resolver != NULL && ret_mount != NULL, FALSE);
	plan = path_resolver_plan(api_path_resolver_inner(resolver));
	entry = find_mount(plan, i, &count);
	if (!entry)
		return FALSE;
	mount_of_entry(plan, entry, ret_mount);
	return TRUE;
}

/* A host path inside a mount is a statement about names, as for the string form, and is turned into a view path by names;
 * any other path is walked as it is. */
static char *in_view(const ViewPlan *plan, const char *path)
{
	g_autofree char *clean = path[0] == '/' ? path_clean(path) : NULL;
	g_autofree char *located = clean ? view_plan_locate(plan, path) : NULL;

	if (!located || strcmp(located, clean) == 0)
		return g_strdup(path);
	return g_str_has_suffix(path, "/") ? g_strconcat(located, "/", NULL)
					   : g_steal_pointer(&located);
}

int stella_path_resolver_open(StellaPathResolver *resolver, const char *path, int flags,
			      mode_t mode, GError **error)
{
	PathResolver *inner = api_path_resolver_inner(resolver);
	PathProblem problem = { .reason = -1 };
	g_autofree char *walked = NULL;
	int fd;

	g_return_val_if_fail(resolver != NULL && path != NULL, -1);
	walked = in_view(path_resolver_plan(inner), path);
	fd = path_resolver_open(inner, walked, flags, mode, &problem);
	if (fd >= 0)
		return fd;
	api_error_take_problem(error, &problem);
	return -1;
}
