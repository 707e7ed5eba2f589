/* stella-fsgate resolve [--write] [--json] [policy options] PATH...: where a path leads in the view of a policy, by both forms
 * of the path resolver. For who writes a policy, or wonders why a tool was refused. */
#include "fsgate/answer-text.h"
#include "fsgate/cli.h"
#include "fsgate/status-json.h"
#include "fsgate/verdict.h"

#include "common/path-util.h"
#include "common/policy-options.h"
#include "common/runtime-dir.h"

#include <stdio.h>
#include <string.h>

typedef struct {
	PolicyOptions *policy;
	GPtrArray *paths; /* of argv */
	bool for_write, json;
} ResolveOptions;

static int parse(ResolveOptions *options, int argc, char **argv, char **reterr_message)
{
	bool only_paths = false;

	for (int i = 1; i < argc; i++) {
		int r = only_paths ? 0
				   : policy_options_take(options->policy, argc, argv, &i,
							 reterr_message);

		if (r < 0)
			return r;
		if (r > 0)
			continue;
		if (only_paths || argv[i][0] != '-') {
			g_ptr_array_add(options->paths, argv[i]);
		} else if (strcmp(argv[i], "--") == 0) {
			only_paths = true;
		} else if (strcmp(argv[i], "--write") == 0) {
			options->for_write = true;
		} else if (strcmp(argv[i], "--json") == 0) {
			options->json = true;
		} else {
			*reterr_message = g_strdup_printf("resolve: unknown option '%s'", argv[i]);
			return -EINVAL;
		}
	}
	if (options->paths->len == 0) {
		*reterr_message = g_strdup("resolve: no PATH given");
		return -EINVAL;
	}
	return 0;
}

static void print_text(const char *path, const FsgVerdict *strict, const FsgVerdict *open)
{
	g_autofree char *shown = path_escape(path);
	g_autofree char *strict_text = fsg_verdict_text(strict);
	g_autofree char *open_text = fsg_verdict_text(open);

	printf("%s\n  strict  %s\n  open    %s\n", shown, strict_text, open_text);
}

static JsonObject *path_json(const char *path, const FsgVerdict *strict, const FsgVerdict *open)
{
	JsonObject *object = json_object_new();

	fsg_json_set_path(object, "path", path);
	json_object_set_object_member(object, "strict", fsg_verdict_json(strict));
	json_object_set_object_member(object, "open", fsg_verdict_json(open));
	return object;
}

static void print_json(const ResolveOptions *options, JsonArray *take_paths)
{
	JsonObject *object = json_object_new();
	g_autoptr(JsonNode) node = json_node_new(JSON_NODE_OBJECT);

	json_object_set_int_member(object, "version", 1);
	json_object_set_boolean_member(object, "write", options->for_write);
	json_object_set_array_member(object, "paths", take_paths);
	json_node_take_object(node, object);
	fsg_json_print(node);
}

static int resolve_all(const ResolveOptions *options, PathResolver *resolver)
{
	JsonArray *paths = json_array_new();
	bool all_allowed = true;

	for (guint i = 0; i < options->paths->len; i++) {
		const char *path = g_ptr_array_index(options->paths, i);
		FsgVerdict strict, open;

		fsg_verdict_strict(resolver, path, options->for_write, &strict);
		fsg_verdict_open(resolver, path, options->for_write, &open);
		all_allowed = all_allowed && strict.allowed && open.allowed;
		if (options->json)
			json_array_add_object_element(paths, path_json(path, &strict, &open));
		else
			print_text(path, &strict, &open);
		fsg_verdict_clear(&strict);
		fsg_verdict_clear(&open);
	}
	if (options->json)
		print_json(options, paths);
	else
		json_array_unref(paths);
	return fflush(stdout) == 0 && all_allowed ? 0 : FSG_EXIT_FAILED;
}

static int make_resolver(const ResolveOptions *options, const StellaPolicy *policy,
			 PathResolver **ret_resolver)
{
	/* As for a view that is mounted: the directory of the gateways' sockets shows empty. */
	g_autofree char *views = runtime_dir_views();
	bool has_views = views && g_file_test(views, G_FILE_TEST_IS_DIR);
	g_autoptr(ViewPlan) plan = NULL;
	g_autofree char *message = NULL;

	if (view_plan_new(policy, VIEW_FOR_HOST, &plan, &message) < 0 ||
	    path_resolver_new(g_steal_pointer(&plan), has_views ? views : NULL, NULL, ret_resolver,
			      &message) < 0) {
		g_autofree char *explained = policy_options_explain(options->policy, message);

		fsg_cli_complain("%s", explained);
		return FSG_EXIT_USAGE;
	}
	return 0;
}

int fsg_cmd_resolve(int argc, char **argv)
{
	g_autoptr(PolicyOptions) policy_options = policy_options_new(POLICY_FOR_LOOKING);
	g_autoptr(GPtrArray) paths = g_ptr_array_new();
	ResolveOptions options = { .policy = policy_options, .paths = paths };
	g_autoptr(StellaPolicy) policy = NULL;
	g_autoptr(PathResolver) resolver = NULL;
	g_autofree char *message = NULL;
	int r = parse(&options, argc, argv, &message);

	if (r == 0)
		r = policy_options_finish(policy_options, &policy, &message);
	if (r < 0) {
		fsg_cli_complain("%s", message);
		return FSG_EXIT_USAGE;
	}
	if ((r = fsg_cli_check_supported(policy)) != 0 ||
	    (r = make_resolver(&options, policy, &resolver)) != 0)
		return r;
	return resolve_all(&options, resolver);
}
