/* Mounts and roots by the old and the new calls, file handles, keys: what is called is what a program would call that
 * knows its way, with valid arguments. */
#include "probe.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/syscall.h>
#include <unistd.h>

#define OPEN_TREE_ATTR 467
#define ATTR_SIZE      32

typedef struct {
	char text[65536];
} Text;

static void read_mounts(Text *text)
{
	int fd = open("/proc/self/mountinfo", O_RDONLY | O_CLOEXEC);
	ssize_t got, size = 0;

	while (fd >= 0 && size < (ssize_t)sizeof text->text - 1 &&
	       (got = read(fd, text->text + size, sizeof text->text - 1 - (size_t)size)) > 0)
		size += got;
	text->text[size] = '\0';
	close(fd);
}

static int mount_tmpfs(void *data)
{
	return PROBE_CALL(mount("none", data, "tmpfs", 0, NULL));
}

static int mount_proc(void *data)
{
	return PROBE_CALL(mount("none", data, "proc", 0, NULL));
}

static int bind(void *data)
{
	return PROBE_CALL(mount("/usr", data, NULL, MS_BIND, NULL));
}

static int remount(void *data)
{
	(void)data;
	return PROBE_CALL(mount(NULL, "/proc", NULL, MS_REMOUNT | MS_BIND, NULL));
}

static int make_shared(void *data)
{
	(void)data;
	return PROBE_CALL(mount(NULL, "/", NULL, MS_SHARED | MS_REC, NULL));
}

static int unmount(void *data)
{
	(void)data;
	return PROBE_CALL(umount2("/proc", MNT_DETACH));
}

static int change_root(void *data)
{
	return PROBE_CALL(chroot(data));
}

static int pivot(void *data)
{
	(void)data;
	if (chdir("/") != 0)
		return errno;
	return PROBE_CALL(syscall(SYS_pivot_root, ".", "."));
}

static int copy_tree(void *data)
{
	(void)data;
	return PROBE_CALL(syscall(SYS_open_tree, AT_FDCWD, "/usr", OPEN_TREE_CLONE));
}

static int copy_tree_with(void *data)
{
	uint64_t attr[ATTR_SIZE / sizeof(uint64_t)] = { 0, MOUNT_ATTR_RDONLY };

	(void)data;
	return PROBE_CALL(
		syscall(OPEN_TREE_ATTR, AT_FDCWD, "/usr", OPEN_TREE_CLONE, attr, sizeof attr));
}

static int move(void *data)
{
	(void)data;
	return PROBE_CALL(syscall(SYS_move_mount, AT_FDCWD, "/proc", AT_FDCWD, "/tmp", 0));
}

static int new_file_system(void *data)
{
	(void)data;
	return PROBE_CALL(syscall(SYS_fsopen, "tmpfs", 0));
}

static int configure(void *data)
{
	int fd = (int)syscall(SYS_fsopen, "tmpfs", 0);

	(void)data;
	/* what the call says of a wrong fd, when the one before has failed */
	return PROBE_CALL(syscall(SYS_fsconfig, fd < 0 ? 0 : fd, 6, NULL, NULL, 0));
}

static int make_mount(void *data)
{
	int fd = (int)syscall(SYS_fsopen, "tmpfs", 0);

	(void)data;
	if (fd >= 0)
		(void)syscall(SYS_fsconfig, fd, 6, NULL, NULL, 0);
	return PROBE_CALL(syscall(SYS_fsmount, fd < 0 ? 0 : fd, 0, 0));
}

static int pick(void *data)
{
	return PROBE_CALL(syscall(SYS_fspick, AT_FDCWD, data, 0));
}

static int make_writable(void *data)
{
	uint64_t attr[ATTR_SIZE / sizeof(uint64_t)] = { 0, MOUNT_ATTR_NOEXEC };

	(void)data;
	return PROBE_CALL(syscall(SYS_mount_setattr, AT_FDCWD, "/proc", 0, attr, sizeof attr));
}

static int ask_mount(void *data)
{
	uint64_t request[4] = { 24, 0, 0, 0 }, answer[64];

	(void)data;
	/* of mount 0, which is none: ENOENT from a kernel that has the call */
	return PROBE_CALL(syscall(457, request, answer, sizeof answer, 0));
}

static int list_mounts(void *data)
{
	uint64_t request[3] = { 24, UINT64_MAX /* all */, 0 }, answer[64];

	(void)data;
	return PROBE_CALL(syscall(458, request, answer, 64, 0));
}

static struct {
	struct file_handle head;
	unsigned char bytes[MAX_HANDLE_SZ];
} handle;

static int make_handle(void *data)
{
	int id;

	handle.head.handle_bytes = MAX_HANDLE_SZ;
	return PROBE_CALL(name_to_handle_at(AT_FDCWD, data, &handle.head, &id, 0));
}

/* Inside there is no handle to begin with: one is made up, as an attacker would who knows inode numbers. */
static int open_handle(void *data)
{
	int dir = open(data, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	if (handle.head.handle_type == 0) {
		handle.head.handle_bytes = 8;
		handle.head.handle_type = 1;
		handle.bytes[0] = 2; /* the root of ext4 and others */
	}
	return PROBE_CALL(open_by_handle_at(dir, &handle.head, O_RDONLY));
}

static int add_key(void *data)
{
	(void)data;
	return PROBE_CALL(
		syscall(SYS_add_key, "user", "stella-attack", "x", 1, -2 /* the process's */));
}

static int request_key(void *data)
{
	(void)data;
	return PROBE_CALL(syscall(SYS_request_key, "user", "stella-attack", NULL, 0));
}

static int session_keyring(void *data)
{
	(void)data;
	return PROBE_CALL(syscall(SYS_keyctl, 1 /* JOIN_SESSION_KEYRING */, NULL));
}

static int write_usr(void *data)
{
	(void)data;
	return PROBE_CALL(open("/usr/stella-attack", O_WRONLY | O_CREAT | O_EXCL, 0600));
}

static int write_tmp(void *data)
{
	(void)data;
	return PROBE_CALL(open("/tmp", O_WRONLY | O_TMPFILE | O_CLOEXEC, 0600));
}

/* A handle for a name on each mount there is. */
static void try_handles(Probe *probe, const Text *mounts)
{
	static const char *const skipped = "/proc";

	for (const char *line = mounts->text; *line; line = strchr(line, '\n') + 1) {
		char path[256], name[300];

		if (sscanf(line, "%*d %*d %*s %*s %255s", path) != 1 || !strchr(line, '\n'))
			break;
		snprintf(name, sizeof name, "name_to_handle_at %s", path);
		/* not every file system has handles */
		probe_check(probe, name,
			    (Expected){ "EPERM", strncmp(path, skipped, 5) == 0 ? "*" : "!EPERM" },
			    make_handle(path));
	}
}

int main(int argc, char **argv)
{
	Probe probe = probe_begin(argc, argv);
	Text *before = malloc(sizeof *before), *after = malloc(sizeof *after);
	char tmp[] = "/tmp", root[] = "/";
	const struct {
		const char *name;
		int (*body)(void *data);
		void *data;
		Expected expected;
	} tries[] = {
		{ "write below /tmp", write_tmp, NULL, ALLOWED },
		{ "mount tmpfs", mount_tmpfs, tmp, REFUSED("EPERM") },
		{ "mount proc", mount_proc, tmp, REFUSED("EPERM") },
		{ "bind", bind, tmp, REFUSED("EPERM") },
		{ "remount", remount, NULL, REFUSED("EPERM") },
		{ "make shared", make_shared, NULL, REFUSED("EPERM") },
		{ "open_tree", copy_tree, NULL, REFUSED("EPERM") },
		{ "open_tree_attr", copy_tree_with, NULL, { "EPERM", "0|ENOSYS" } },
		{ "fsopen", new_file_system, NULL, REFUSED("EPERM") },
		{ "fsconfig", configure, NULL, REFUSED("EPERM") },
		{ "fsmount", make_mount, NULL, REFUSED("EPERM") },
		{ "fspick", pick, tmp, REFUSED("EPERM") },
		{ "mount_setattr", make_writable, NULL, REFUSED("EPERM") },
		{ "move_mount", move, NULL, { "EPERM", "0|EINVAL" } },
		{ "umount2", unmount, NULL, REFUSED("EPERM") },
		{ "statmount", ask_mount, NULL, { "ENOSYS", "ENOENT|EINVAL|ENOSYS" } },
		{ "listmount", list_mounts, NULL, { "ENOSYS", "0|ENOSYS" } },
		{ "chroot", change_root, root, REFUSED("EPERM") },
		{ "pivot_root", pivot, NULL, { "EPERM", "!EPERM" } },
		{ "open_by_handle_at", open_handle, root, { "EPERM", "!EPERM" } },
		{ "add_key", add_key, NULL, { "EPERM", "0|ENOSYS" } },
		{ "request_key", request_key, NULL, { "EPERM", "ENOKEY|ENOSYS" } },
		{ "keyctl", session_keyring, NULL, { "EPERM", "0|ENOSYS" } },
		{ "write below /usr", write_usr, NULL, { "EROFS", "*" } },
	};

	if (!before || !after)
		return 2;
	read_mounts(before);
	try_handles(&probe, before);
	for (size_t i = 0; i < sizeof tries / sizeof tries[0]; i++) {
		/* that it would have worked is for outside, on nothing that is kept */
		if (probe.outside && tries[i].body == write_usr)
			continue;
		probe_check(&probe, tries[i].name, tries[i].expected,
			    probe_in_child(tries[i].body, tries[i].data));
	}
	read_mounts(after);
	probe_check(&probe, "mounts are as before", (Expected){ "0", "EINVAL" },
		    strcmp(before->text, after->text) == 0 ? 0 : EINVAL);
	return probe_end(&probe);
}
