/* The handlers of FUSE's requests, by file: lookup and attributes, files, directories, changes of names, locks,
 * extended attributes. Each is gate, work, one reply. */
#pragma once

#include "fsgate/fuse-api.h"
#include "fsgate/reply.h"
#include "fsgate/view.h"

extern const struct fuse_lowlevel_ops fsg_ops;
/* The same, each with its request known to refusal.h: what libfuse is given. */
struct fuse_lowlevel_ops fsg_observed_ops(void);

/* ops-lookup.c */
void fsg_op_init(void *userdata, struct fuse_conn_info *conn);
void fsg_op_lookup(fuse_req_t req, fuse_ino_t parent, const char *name);
void fsg_op_forget(fuse_req_t req, fuse_ino_t ino, uint64_t n);
void fsg_op_forget_multi(fuse_req_t req, size_t count, struct fuse_forget_data *forgets);
void fsg_op_getattr(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi);
void fsg_op_setattr(fuse_req_t req, fuse_ino_t ino, struct stat *attr, int to_set,
		    struct fuse_file_info *fi);
void fsg_op_readlink(fuse_req_t req, fuse_ino_t ino);
void fsg_op_statfs(fuse_req_t req, fuse_ino_t ino);
void fsg_op_access(fuse_req_t req, fuse_ino_t ino, int mask);
/* ops-file.c */
void fsg_op_open(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi);
void fsg_op_create(fuse_req_t req, fuse_ino_t parent, const char *name, mode_t mode,
		   struct fuse_file_info *fi);
void fsg_op_read(fuse_req_t req, fuse_ino_t ino, size_t size, off_t offset,
		 struct fuse_file_info *fi);
void fsg_op_write_buf(fuse_req_t req, fuse_ino_t ino, struct fuse_bufvec *in, off_t offset,
		      struct fuse_file_info *fi);
void fsg_op_flush(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi);
void fsg_op_fsync(fuse_req_t req, fuse_ino_t ino, int datasync, struct fuse_file_info *fi);
void fsg_op_release(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi);
void fsg_op_lseek(fuse_req_t req, fuse_ino_t ino, off_t offset, int whence,
		  struct fuse_file_info *fi);
void fsg_op_fallocate(fuse_req_t req, fuse_ino_t ino, int mode, off_t offset, off_t length,
		      struct fuse_file_info *fi);
void fsg_op_copy_file_range(fuse_req_t req, fuse_ino_t ino_in, off_t offset_in,
			    struct fuse_file_info *fi_in, fuse_ino_t ino_out, off_t offset_out,
			    struct fuse_file_info *fi_out, size_t length, int flags);
/* ops-ioctl.c */
FsgOp fsg_ioctl_op(unsigned int command);
void fsg_op_ioctl(fuse_req_t req, fuse_ino_t ino, unsigned int command, void *arg,
		  struct fuse_file_info *fi, unsigned int flags, const void *in, size_t in_size,
		  size_t out_size);
/* ops-dir.c */
void fsg_op_opendir(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi);
void fsg_op_readdir(fuse_req_t req, fuse_ino_t ino, size_t size, off_t offset,
		    struct fuse_file_info *fi);
void fsg_op_readdirplus(fuse_req_t req, fuse_ino_t ino, size_t size, off_t offset,
			struct fuse_file_info *fi);
void fsg_op_releasedir(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi);
void fsg_op_fsyncdir(fuse_req_t req, fuse_ino_t ino, int datasync, struct fuse_file_info *fi);
/* ops-modify.c */
void fsg_op_mkdir(fuse_req_t req, fuse_ino_t parent, const char *name, mode_t mode);
void fsg_op_mknod(fuse_req_t req, fuse_ino_t parent, const char *name, mode_t mode, dev_t rdev);
void fsg_op_symlink(fuse_req_t req, const char *text, fuse_ino_t parent, const char *name);
void fsg_op_unlink(fuse_req_t req, fuse_ino_t parent, const char *name);
void fsg_op_rmdir(fuse_req_t req, fuse_ino_t parent, const char *name);
void fsg_op_rename(fuse_req_t req, fuse_ino_t from, const char *name, fuse_ino_t to,
		   const char *new_name, unsigned int flags);
void fsg_op_link(fuse_req_t req, fuse_ino_t ino, fuse_ino_t parent, const char *name);
/* ops-lock.c */
void fsg_op_getlk(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi, struct flock *lock);
void fsg_op_setlk(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi, struct flock *lock,
		  int sleep);
void fsg_op_flock(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi, int how);
/* ops-xattr.c */
void fsg_op_getxattr(fuse_req_t req, fuse_ino_t ino, const char *name, size_t size);
void fsg_op_listxattr(fuse_req_t req, fuse_ino_t ino, size_t size);
void fsg_op_setxattr(fuse_req_t req, fuse_ino_t ino, const char *name, const char *value,
		     size_t size, int flags);
void fsg_op_removexattr(fuse_req_t req, fuse_ino_t ino, const char *name);

/* The first thing that each handler asks for: so the thread knows from here for whom it works. */
static inline FsgView *fsg_req_view(fuse_req_t req)
{
	fsg_identity_note(fuse_req_ctx(req));
	return fuse_req_userdata(req);
}

static inline FsgInode *fsg_req_inode(fuse_req_t req, fuse_ino_t ino)
{
	return fsg_inode_from_id(fsg_req_view(req)->inodes, ino);
}
