/* Telling the kernel that what it believes does not hold. Each of these may wait for a lock of the kernel's that a
 * program holds during its request: so they are called by threads of their own, never by one that serves
 * requests. What the kernel does not know is nothing. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct fuse_session;

/* The name may be another object now, or none. Waits until look-ups and listings of that directory that are under
 * way have been taken in, so nothing older than this call is believed after it. */
void fsg_notify_name(struct fuse_session *fuse, uint64_t dir, const char *name);

/* Only that wait. */
void fsg_notify_wait_for_dir(struct fuse_session *fuse, uint64_t dir);

/* The name has to be asked for again, but stays what it is meanwhile: a working directory keeps its path, and what
 * is mounted there stays. false: the kernel (before 6.2) cannot do that. */
bool fsg_notify_expire(struct fuse_session *fuse, uint64_t dir, const char *name);

/* The object's attributes, with `content` also its pages or its listing. */
void fsg_notify_object(struct fuse_session *fuse, uint64_t object, bool content);
