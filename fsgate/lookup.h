/* From a directory and a name to an inode, and from an inode to its attributes: what several operations
 * share. Nothing here replies. */
#pragma once

#include "fsgate/fuse-api.h"
#include "fsgate/view.h"

/* The entry `name` of a directory, with one lookup counted for the kernel: the reply gives it, or the
 * caller returns it with fsg_inode_forget. -ENOENT, -ESTALE for a directory that is not where it was, or what
 * the host says. */
int fsg_lookup(FsgView *view, FsgInode *dir, const char *name, struct fuse_entry_param *ret_entry);

/* Attributes as the view shows them. file_fd >= 0: of that open file of the inode's. */
int fsg_stat(FsgView *view, FsgInode *inode, int file_fd, struct stat *ret_st);

/* The inode number that the view shows. */
uint64_t fsg_shown_ino(const FsgView *view, const FsgInode *inode);

/* An O_PATH fd of a directory to look up or change something in, the thread acting for its mount, the
 * directory known to be still inside it. Given back with fsg_inode_put_fd. -EBADF for what has no host
 * directory. */
int fsg_get_dir_fd(FsgView *view, FsgInode *dir);
