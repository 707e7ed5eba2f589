/* Renaming within one mount. Both names are judged as the gateway does (fsgate's ops-modify.c), and the host renames in one
 * step: without FILES_REPLACE it is the kernel that sees to it that nothing is replaced. */
#include "common/files-internal.h"

#include "common/syscall-wrap.h"

#include <errno.h>
#include <stdio.h>

static int rename_places(const PathPlace *from, const PathPlace *to, unsigned int rename_flags)
{
	ACTING_AUTO acting = { 0 };
	int r = path_resolver_act_begin(from, &acting);

	if (r < 0)
		return r;
	return sys_renameat2(from->parent_fd, from->name, to->parent_fd, to->name, rename_flags);
}

int files_rename(FilesCall *call, const char *from, const char *to, unsigned int flags)
{
	PLACE_AUTO source = PLACE_NONE;
	PLACE_AUTO target = PLACE_NONE;
	bool replace = flags & FILES_REPLACE;
	int r;

	files_begin(call, "rename", NULL, from, to);
	if ((r = files_walk_to_name(call, from, false, &source)) < 0)
		return r;
	if (source.type == 0)
		return files_fail_absent(call, &source);
	if ((r = files_check_movable(call, &source)) < 0 ||
	    (r = files_check_writable(call, &source)) < 0 ||
	    (r = files_walk_to_name(call, to, flags & FILES_PARENTS, &target)) < 0)
		return r;
	if (target.type == 0 && !S_ISDIR(source.type) && g_str_has_suffix(to, "/"))
		return files_fail(call, -ENOTDIR, &target, NULL);
	if (target.type != 0 && !replace)
		return files_fail(call, -EEXIST, &target, NULL);
	if (target.type != 0 && (r = files_check_movable(call, &target)) < 0)
		return r;
	if ((r = files_check_writable(call, &target)) < 0)
		return r;
	if (source.anchor != target.anchor)
		return files_refuse(call, -EXDEV, DENIAL_CROSS_MOUNT, &target, NULL);
	if ((r = files_check_canceled(call)) < 0)
		return r;
	r = rename_places(&source, &target, replace ? 0 : RENAME_NOREPLACE);
	return r < 0 ? files_fail(call, r, &source, NULL) : 0;
}
