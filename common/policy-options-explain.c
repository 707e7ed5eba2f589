/* A policy's error in the words of the options that made it; see policy-options.h. */
#include "common/policy-options-internal.h"

#include "common/quote.h"

#include <string.h>
#include <sys/stat.h>

/* The option that made the n-th mount, in the order of make_policy(); *ret_mount is what it was given as, or NULL. */
static const char *option_of_mount(const PolicyOptions *options, guint64 n,
				   const MountOption **ret_mount)
{
	guint64 workspaces = options->same_path ? 2 : 1;

	*ret_mount = NULL;
	if (n < workspaces)
		return "--workspace";
	n -= workspaces;
	if (options->user_dir && n-- == 0)
		return "--user-dir";
	if (n >= options->mounts->len)
		return NULL;
	*ret_mount = options->mounts->pdata[n];
	return (*ret_mount)->access == STELLA_MOUNT_READ_ONLY ? "--ro" : "--rw";
}

/* What was meant for HOST:VIEW and is none, for only ":/" parts them: all of it is a HOST that is not there, and what is
 * before its last colon is. NULL when that is not so. */
static char *explain_colon(const MountOption *mount)
{
	const char *colon = strrchr(mount->text, ':');
	g_autofree char *host = NULL;
	g_autofree char *view = NULL;
	struct stat st;

	if (!colon || strstr(mount->text, ":/") || lstat(mount->text, &st) == 0)
		return NULL;
	host = g_strndup(mount->text, (gsize)(colon - mount->text));
	if (lstat(host, &st) != 0)
		return NULL;
	if (colon[1] == '\0')
		return g_strdup("; in HOST:VIEW the VIEW is missing");
	view = quote_text(colon + 1);
	return g_strdup_printf("; in HOST:VIEW the VIEW has to be an absolute path, not %s", view);
}

char *policy_options_explain(const PolicyOptions *options, const char *message)
{
	static const char mounts[] = "filesystem.mounts[", path[] = "].host_path",
			  home[] = "filesystem.stella_home";
	const char *option = NULL, *rest = NULL;
	const MountOption *mount = NULL;
	g_autofree char *more = NULL;

	if (!options->policy_file && g_str_has_prefix(message, mounts)) {
		char *end;
		guint64 n = g_ascii_strtoull(message + strlen(mounts), &end, 10);

		if (g_str_has_prefix(end, path)) {
			option = option_of_mount(options, n, &mount);
			rest = end + strlen(path);
		}
	} else if (!options->policy_file && g_str_has_prefix(message, home)) {
		option = "--stella-home";
		rest = message + strlen(home);
	}
	if (mount)
		more = explain_colon(mount);
	return option ? g_strconcat(option, rest, more, NULL) : g_strdup(message);
}
