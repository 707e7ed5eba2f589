/* What the commands share; see cli.h. */
#include "fsgate/cli.h"

#include "common/errno-util.h"
#include "common/path-util.h"

#include <errno.h>
#include <grp.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

void fsg_cli_complain(const char *format, ...)
{
	va_list args;
	g_autofree char *text = NULL;

	va_start(args, format);
	text = g_strdup_vprintf(format, args);
	va_end(args);
	fprintf(stderr, "stella-fsgate: %s\n", text);
}

int fsg_cli_check_supported(const StellaPolicy *policy)
{
	g_autofree char *key = policy_find_unimplemented(policy);

	if (!key)
		return 0;
	fsg_cli_complain("%s: not implemented yet", key);
	return FSG_EXIT_UNSUPPORTED;
}

int fsg_cli_prepare_process(char **reterr_message)
{
	/* Ours is nobody's: what is made for a caller is made with the caller's. */
	umask(0);
	/* Root acts as the owners of the mounts: with their ids, and none of root's groups. */
	if (geteuid() == 0 && setgroups(0, NULL) != 0 && errno != EPERM) {
		*reterr_message =
			g_strdup_printf("cannot drop supplementary groups: %s", errno_text(errno));
		return -errno;
	}
	return 0;
}

char *fsg_cli_find_mountpoint(const char *path)
{
	g_autofree char *current = g_get_current_dir();
	g_autofree char *clean = path_clean_from(current, path);
	g_autofree char *dir = g_path_get_dirname(clean);
	g_autofree char *name = g_path_get_basename(clean);
	char *real = realpath(dir, NULL);
	char *where = path_join(real ? real : dir, name);

	free(real);
	return where;
}
