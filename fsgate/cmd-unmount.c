/* stella-fsgate unmount [--lazy] MOUNTPOINT. The view itself is never touched: its gateway may hang. */
#include "fsgate/cli.h"
#include "fsgate/holders.h"
#include "fsgate/mountpoint.h"

#include "common/errno-util.h"
#include "common/path-util.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

static int explain(const char *where, int r)
{
	g_autofree char *shown = path_escape(where);
	g_autofree char *ours = NULL;
	g_autofree char *holders = NULL;
	g_autoptr(FsgViewMount) mount = fsg_view_mount_find(where);

	if (r == -EINVAL || !mount) {
		fsg_cli_complain("unmount: \"%s\": no view is mounted there", shown);
		return FSG_EXIT_FAILED;
	}
	if (r != -EBUSY) {
		fsg_cli_complain("unmount: \"%s\": %s", shown, errno_text(-r));
		return FSG_EXIT_FAILED;
	}
	/* Whoever started us there holds the same, and is not to be ended for it. */
	ours = fsg_view_held_by_self(mount);
	if (ours) {
		fsg_cli_complain(
			"unmount: \"%s\": you are in the view (%s); leave it first, or use "
			"--lazy",
			shown, ours);
		return FSG_EXIT_FAILED;
	}
	holders = fsg_view_holders(mount);
	fsg_cli_complain("unmount: \"%s\": the view is in use by %s; end %s, or use --lazy", shown,
			 holders[0] ? holders : "a process that you may not look at",
			 strchr(holders, ')') == strrchr(holders, ')') ? "it" : "them");
	return FSG_EXIT_FAILED;
}

int fsg_cmd_unmount(int argc, char **argv)
{
	const char *path = NULL;
	bool lazy = false;
	g_autofree char *where = NULL;
	int r;

	for (int i = 1; i < argc; i++) {
		if (strcmp(argv[i], "--lazy") == 0 || strcmp(argv[i], "-z") == 0) {
			lazy = true;
		} else if (argv[i][0] == '-') {
			fsg_cli_complain("unmount: unknown option '%s'", argv[i]);
			return FSG_EXIT_USAGE;
		} else if (path) {
			fsg_cli_complain("unmount: one MOUNTPOINT only, not also '%s'", argv[i]);
			return FSG_EXIT_USAGE;
		} else {
			path = argv[i];
		}
	}
	if (!path) {
		fsg_cli_complain("unmount: which MOUNTPOINT?");
		return FSG_EXIT_USAGE;
	}
	where = fsg_cli_find_mountpoint(path);
	r = fsg_mountpoint_unmount(where, lazy);
	return r == 0 ? 0 : explain(where, r);
}
