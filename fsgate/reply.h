/* Replies: the one way out of every handler. Only reply.c calls fuse_reply_*.
 *
 * A request gets exactly one reply. A reply can fail, because the request was interrupted meanwhile; then
 * whatever it would have given to the kernel (a lookup, a handle) is taken back here or, where said, by
 * the caller. */
#pragma once

#include "fsgate/fuse-api.h"
#include "fsgate/gate.h"
#include "fsgate/view.h"

/* r is 0 or -errno. Codes that are not in the table of README.md become EIO. */
void fsg_reply_result(fuse_req_t req, FsgOp op, int r);

/* The same for a lock, which may have been waited for: from any thread, once, whatever that thread serves
 * meanwhile. false: the kernel did not get it, and a lock is given back by the caller. */
bool fsg_reply_late(fuse_req_t req, FsgOp op, int r);

/* Before the reply to a lock that is held now: what the kernel believes about the file is asked for again. Whoever
 * locked it before, beside the view, may have changed it, and a program that locks a file looks at it then. */
void fsg_reply_expire(const FsgView *view, fuse_ino_t ino);

void fsg_reply_attr(fuse_req_t req, const struct stat *st, double timeout_s);
void fsg_reply_text(fuse_req_t req, const char *text);
void fsg_reply_bytes(fuse_req_t req, const void *data, size_t size);
/* Of READDIRPLUS: the lookups in it are taken back if it did not arrive. */
void fsg_reply_listing(fuse_req_t req, FsgView *view, const char *listing, size_t size);
void fsg_reply_data_from_fd(fuse_req_t req, int fd, off_t offset, size_t size);
void fsg_reply_lock(fuse_req_t req, const struct flock *lock);
void fsg_reply_count(fuse_req_t req, size_t count);
void fsg_reply_xattr_size(fuse_req_t req, size_t size);
void fsg_reply_offset(fuse_req_t req, off_t offset);
void fsg_reply_ioctl(fuse_req_t req, const void *data, size_t size);
void fsg_reply_statfs(fuse_req_t req, const struct statvfs *st);
void fsg_reply_none(fuse_req_t req);

/* An entry whose lookup has been counted: returned to the table if the kernel did not get it. */
void fsg_reply_entry(fuse_req_t req, FsgView *view, const struct fuse_entry_param *entry);
/* No such name, which the kernel may remember for so long. */
void fsg_reply_no_entry(fuse_req_t req, double timeout_s);

/* false: the kernel did not get the handle, and the caller releases it. backing_id > 0 hands reads and writes
 * over to the kernel (passthrough.h). */
bool fsg_reply_open(fuse_req_t req, const struct fuse_file_info *fi, int32_t backing_id);
/* The same; the entry's lookup is returned here. */
bool fsg_reply_create(fuse_req_t req, FsgView *view, const struct fuse_entry_param *entry,
		      const struct fuse_file_info *fi, int32_t backing_id);
