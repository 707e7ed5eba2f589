/* The gate: what each operation needs, in one list, asked first by every handler.
 *
 * The list is the only place where operations are named, so an operation without a row does not
 * compile: its handler has no FSG_OP_ value to ask with. */
#pragma once

#include "fsgate/inode.h"

/* X(id, text, needs). READ: the view path has to exist, no more. WRITE: changes content, names, times
 * or attributes below the inode, so that its mount must be writable. FLAGS: decided by the open flags
 * or access mask (fsg_gate_open, fsg_gate_access). */
#define FSG_OPS(X)                                                                                 \
	X(LOOKUP, "lookup", READ)                                                                  \
	X(GETATTR, "getattr", READ)                                                                \
	X(READLINK, "readlink", READ)                                                              \
	X(OPEN, "open", FLAGS)                                                                     \
	X(READ, "read", READ)                                                                      \
	X(LSEEK, "lseek", READ)                                                                    \
	X(FLUSH, "flush", READ)                                                                    \
	X(GETLK, "getlk", READ)                                                                    \
	X(SETLK, "setlk", READ)                                                                    \
	X(FLOCK, "flock", READ)                                                                    \
	X(FSYNC, "fsync", READ)                                                                    \
	X(RELEASE, "release", READ)                                                                \
	X(OPENDIR, "opendir", READ)                                                                \
	X(READDIR, "readdir", READ)                                                                \
	X(RELEASEDIR, "releasedir", READ)                                                          \
	X(FSYNCDIR, "fsyncdir", READ)                                                              \
	X(STATFS, "statfs", READ)                                                                  \
	X(ACCESS, "access", FLAGS)                                                                 \
	X(GETXATTR, "getxattr", READ)                                                              \
	X(LISTXATTR, "listxattr", READ)                                                            \
	X(GETFLAGS, "getflags", READ)                                                              \
	X(SETFLAGS, "setflags", WRITE)                                                             \
	X(CREATE, "create", FLAGS)                                                                 \
	X(WRITE, "write", WRITE)                                                                   \
	X(SETATTR, "setattr", WRITE)                                                               \
	X(SYMLINK, "symlink", WRITE)                                                               \
	X(MKDIR, "mkdir", WRITE)                                                                   \
	X(MKNOD, "mknod", WRITE)                                                                   \
	X(UNLINK, "unlink", WRITE)                                                                 \
	X(RMDIR, "rmdir", WRITE)                                                                   \
	X(RENAME, "rename", WRITE)                                                                 \
	X(LINK, "link", WRITE)                                                                     \
	X(SETXATTR, "setxattr", WRITE)                                                             \
	X(REMOVEXATTR, "removexattr", WRITE)                                                       \
	X(FALLOCATE, "fallocate", WRITE)                                                           \
	X(COPY_FILE_RANGE, "copy_file_range", WRITE)

typedef enum {
#define FSG_OP_ID(id, text, needs) FSG_OP_##id,
	FSG_OPS(FSG_OP_ID)
#undef FSG_OP_ID
		_FSG_OP_N
} FsgOp;

/* The operation's name, for messages. Static storage. */
const char *fsg_op_name(FsgOp op);

/* Whether op changes something whatever its flags say. */
bool fsg_op_changes(FsgOp op);

/* Whether op may be done to (a directory operation: in) this inode: 0 or -EROFS. */
int fsg_gate(FsgOp op, const FsgInode *inode);

/* An open with these flags. Writing is O_WRONLY, O_RDWR, and O_TRUNC whatever the access mode: Linux
 * truncates on O_RDONLY|O_TRUNC. 0, -EROFS, or -EINVAL for an access mode of 3. */
int fsg_gate_open(const FsgInode *inode, int flags);

/* access(2) with this mask. */
int fsg_gate_access(const FsgInode *inode, int mask);

/* Creating a name in this directory. */
int fsg_gate_create(const FsgInode *dir);
