/* Which host file systems answer by themselves; see local-fs.h. */
#include "fsgate/local-fs.h"

#include <linux/magic.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/vfs.h>

/* Of file systems whose numbers are in no header of Debian 12's. */
#define BCACHEFS_MAGIC 0xca451a4eu
#define NTFS3_MAGIC    0x7366746eu
#define ZFS_MAGIC      0x2fc12fc1u

bool fsg_is_local_fs(int fd)
{
	static const uint32_t local[] = {
		EXT4_SUPER_MAGIC,      XFS_SUPER_MAGIC,	     BTRFS_SUPER_MAGIC,
		TMPFS_MAGIC,	       RAMFS_MAGIC,	     F2FS_SUPER_MAGIC,
		OVERLAYFS_SUPER_MAGIC, EROFS_SUPER_MAGIC_V1, SQUASHFS_MAGIC,
		ISOFS_SUPER_MAGIC,     MSDOS_SUPER_MAGIC,    EXFAT_SUPER_MAGIC,
		BCACHEFS_MAGIC,	       NTFS3_MAGIC,	     ZFS_MAGIC,
	};
	struct statfs fs;

	if (fstatfs(fd, &fs) != 0)
		return false;
	for (size_t i = 0; i < sizeof local / sizeof *local; i++)
		if ((uint32_t)fs.f_type == local[i])
			return true;
	return false;
}
