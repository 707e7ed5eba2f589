/* Watching the host's directories, so that the kernel may believe what it knows of them for long: what changes
 * there is told to it, within some hundredths of a second.
 *
 * A directory is marked (fanotify, by inode, which needs no privilege) before the first look at it whose result is
 * to be believed; what changed before that look is in its result, what changes later raises an event. Marks
 * are on directories and not on file systems, although root could: then each change anywhere on the machine
 * would be an event for every view.
 *
 * What is not told: changes made on another machine of a network file system, or below an overlay: so only local
 * file systems are watched. Stores through a shared mapping, until it is unmapped; and changes of a file
 * through a hard link that was made later in a directory that is not watched: so attributes of files are
 * believed for FSG_WATCH_FILE_S only.
 *
 * Nothing rests on events being complete. When the queue overflows, everything that is believed is taken back; a
 * directory that cannot be watched is believed for a short time. Events are read by a thread of their own,
 * which requests never wait for; one that hangs delays what it would have told, no more. */
#pragma once

#include "fsgate/view.h"

#include <stdbool.h>
#include <stdint.h>

struct fuse_session;
typedef struct FsgWatch FsgWatch;

#define FSG_WATCH_FILE_S 60.0

/* Whether all changes of the file system are made by this kernel, through the inode that an fd of ours has. */
bool fsg_watch_is_local(int fd);

/* NULL when this kernel has no such events (before 5.17) or the user has too many groups already. */
FsgWatch *fsg_watch_new(FsgView *view);
void fsg_watch_free(FsgWatch *watch); /* NULL is allowed */

/* Of events, for poll; borrowed. */
int fsg_watch_queue_fd(const FsgWatch *watch);

/* The thread. 0 or -errno. */
int fsg_watch_start(FsgWatch *watch, struct fuse_session *fuse);
/* Waits at most timeout_ms; false: the thread is held up in the kernel, and only the end of the process is left. */
bool fsg_watch_stop(FsgWatch *watch, int timeout_ms);

/* Makes sure that the directory, whose O_PATH fd is dirfd, is watched. Its answer is good for what is looked at
 * afterwards: 0 when it is not watched, else a number to be compared with fsg_watch_generation() when the result is
 * given out, for marks may be given up meanwhile. */
unsigned int fsg_watch_dir(FsgWatch *watch, FsgInode *dir, int dirfd);
unsigned int fsg_watch_generation(const FsgWatch *watch);
/* Whether the thread has been held up for so long that nothing may be believed because of it. */
bool fsg_watch_is_late(const FsgWatch *watch);
/* The same for what is asked of an object that the kernel knows already; marks nothing. */
unsigned int fsg_watch_object(FsgWatch *watch, FsgInode *inode);
/* What events call the object (fd, name), a link itself, or that of fd when the name is ""; 0 when it cannot be said. */
uint64_t fsg_watch_id(int fd, const char *name);

/* Returns when all that the host had changed before the call has been told to the kernel: 0; -ETIMEDOUT. */
int fsg_watch_drain(FsgWatch *watch, int64_t deadline_us);

/* Beliefs that the table does not know have filled their list: they are to be taken back some time. */
void fsg_watch_want_room(FsgWatch *watch);

typedef struct {
	unsigned int dirs; /* marked */
	uint64_t events, own_events, notified, overflows;
} FsgWatchStats;
void fsg_watch_stats(FsgWatch *watch, FsgWatchStats *ret_stats);
