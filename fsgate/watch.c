/* Marks, and the thread that reads events; see watch.h. */
#include "fsgate/watch-internal.h"

#include "common/cond-util.h"
#include "common/fd-util.h"
#include "fsgate/invalidate.h"
#include "fsgate/notify.h"
#include "fsgate/told.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <poll.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/vfs.h>
#include <unistd.h>

#define EVENTS                                                                                     \
	(FAN_CREATE | FAN_DELETE | FAN_MOVED_FROM | FAN_MOVED_TO | FAN_MODIFY | FAN_ATTRIB |       \
	 FAN_CLOSE_WRITE | FAN_ONDIR | FAN_EVENT_ON_CHILD)

/* Marks that one view may have, where the user may have more: each keeps an inode of the host in memory. */
#define MARKS_MOST 65536

/* Events come in bursts, and equal ones are merged while they wait. */
#define NAP_MS 10

/* A directory's watch state: the generation that was asked, and whether it is watched. */
#define STATE(generation, watched) ((generation) << 1 | (unsigned int)(watched))

#ifndef XFS_SUPER_MAGIC
#define XFS_SUPER_MAGIC 0x58465342
#endif
#ifndef BCACHEFS_SUPER_MAGIC
#define BCACHEFS_SUPER_MAGIC 0xca451a4e
#endif

/* Where every change is made by this kernel, through the same inode that we hold. Not overlayfs: a file gets
 * another handle when it is changed for the first time. */
bool fsg_watch_is_local(int fd)
{
	struct statfs fs;

	if (fstatfs(fd, &fs) != 0)
		return false;
	switch ((unsigned long)fs.f_type) {
	case EXT4_SUPER_MAGIC: /* and ext2, ext3 */
	case XFS_SUPER_MAGIC:
	case BTRFS_SUPER_MAGIC:
	case F2FS_SUPER_MAGIC:
	case TMPFS_MAGIC:
	case BCACHEFS_SUPER_MAGIC:
		return true;
	default:
		return false;
	}
}

static unsigned int read_marks_most(void)
{
	g_autofree char *text = NULL;
	guint64 most = 8192; /* the kernel's least */

	if (g_file_get_contents("/proc/sys/fs/fanotify/max_user_marks", &text, NULL, NULL))
		most = g_ascii_strtoull(text, NULL, 10);
	return (unsigned int)MIN(most / 4, MARKS_MOST);
}

FsgWatch *fsg_watch_new(FsgView *view)
{
	int group = fanotify_init(FAN_CLASS_NOTIF | FAN_CLOEXEC | FAN_NONBLOCK |
					  FAN_REPORT_DFID_NAME_TARGET,
				  O_RDONLY | O_CLOEXEC);
	FsgWatch *watch;

	if (group < 0)
		return NULL;
	watch = g_new0(FsgWatch, 1);
	watch->view = view;
	watch->group_fd = group;
	watch->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	watch->pid = getpid();
	watch->generation = 1;
	watch->marks_most = read_marks_most();
	pthread_mutex_init(&watch->lock, NULL);
	cond_init(&watch->drained);
	if (watch->wake_fd < 0) {
		fsg_watch_free(watch);
		return NULL;
	}
	return watch;
}

void fsg_watch_free(FsgWatch *watch)
{
	if (!watch)
		return;
	fd_close(&watch->group_fd);
	fd_close(&watch->wake_fd);
	if (watch->again)
		g_ptr_array_unref(watch->again);
	pthread_mutex_destroy(&watch->lock);
	pthread_cond_destroy(&watch->drained);
	g_free(watch);
}

int fsg_watch_queue_fd(const FsgWatch *watch)
{
	return watch->group_fd;
}

/* --- marks --- */

uint64_t fsg_watch_id(int fd, const char *name)
{
	union {
		struct file_handle handle;
		char room[sizeof(struct file_handle) + MAX_HANDLE_SZ];
	} u = { .handle.handle_bytes = MAX_HANDLE_SZ };
	int mount_id;

	if (name_to_handle_at(fd, name, &u.handle, &mount_id, *name ? 0 : AT_EMPTY_PATH) != 0)
		return 0;
	return fsg_watch_hash_handle(&u.handle);
}

unsigned int fsg_watch_generation(const FsgWatch *watch)
{
	return __atomic_load_n(&watch->generation, __ATOMIC_ACQUIRE);
}

/* How long telling the kernel may take. */
#define LATE_US 500000

bool fsg_watch_is_late(const FsgWatch *watch)
{
	int64_t since_us = __atomic_load_n(&watch->working_us, __ATOMIC_RELAXED);

	return since_us != 0 && g_get_monotonic_time() - since_us > LATE_US;
}

static void wake(FsgWatch *watch)
{
	(void)eventfd_write(watch->wake_fd, 1); /* full: it is awake */
}

/* Whether there is room; the thread makes some when there is not. */
static bool take_mark(FsgWatch *watch)
{
	if (__atomic_add_fetch(&watch->marks, 1, __ATOMIC_RELAXED) <= watch->marks_most)
		return true;
	__atomic_sub_fetch(&watch->marks, 1, __ATOMIC_RELAXED);
	return false;
}

/* A tree with more directories than marks must not be taken back all the time. */
#define FLUSH_EVERY_US (60 * G_USEC_PER_SEC)

static void want_flush(FsgWatch *watch)
{
	if (!__atomic_exchange_n(&watch->wants_flush, true, __ATOMIC_RELAXED))
		wake(watch);
}

static bool mark_dir(FsgWatch *watch, FsgInode *dir, int dirfd)
{
	uint64_t id;
	int r;

	if (!fsg_watch_is_local(dirfd) || (id = fsg_watch_id(dirfd, "")) == 0)
		return false;
	if (!take_mark(watch)) {
		want_flush(watch);
		return false;
	}
	fsg_inode_set_watch_id(watch->view->inodes, dir, id);
	r = fanotify_mark(watch->group_fd, FAN_MARK_ADD | FAN_MARK_ONLYDIR, EVENTS, dirfd, ".");
	if (r == 0)
		return true;
	if (errno == ENOSPC)
		want_flush(watch);
	__atomic_sub_fetch(&watch->marks, 1, __ATOMIC_RELAXED);
	return false;
}

unsigned int fsg_watch_dir(FsgWatch *watch, FsgInode *dir, int dirfd)
{
	unsigned int generation = fsg_watch_generation(watch);
	unsigned int state = fsg_inode_watch_state(watch->view->inodes, dir);

	if (state >> 1 != generation) {
		state = STATE(generation, mark_dir(watch, dir, dirfd));
		fsg_inode_set_watch_state(watch->view->inodes, dir, state);
	}
	return state & 1 ? generation : 0;
}

unsigned int fsg_watch_object(FsgWatch *watch, FsgInode *inode)
{
	unsigned int generation = fsg_watch_generation(watch);
	unsigned int state = fsg_inode_watch_state(watch->view->inodes, inode);

	return state == STATE(generation, true) ? generation : 0;
}

/* --- taking everything back --- */

static void take_back_name(FsgWatch *watch, uint64_t dir, const char *name)
{
	if (!fsg_notify_expire(watch->fuse, dir, name))
		fsg_notify_name(watch->fuse, dir, name);
}

static void take_back_lasting(FsgWatch *watch, GPtrArray *items)
{
	for (guint i = 0; i < items->len; i++) {
		const FsgToldItem *item = g_ptr_array_index(items, i);

		take_back_name(watch, item->dir, item->name);
	}
}

static void take_back_nodes(FsgWatch *watch, const FsgNode *node)
{
	FsgInodeTable *table = watch->view->inodes;

	if (node->inode)
		fsg_notify_object(watch->fuse, fsg_inode_id(table, node->inode), true);
	for (guint i = 0; i < node->children->len; i++)
		take_back_nodes(watch, g_ptr_array_index(node->children, i));
}

static void take_back_all(FsgWatch *watch)
{
	FsgInodeTable *table = watch->view->inodes;
	GPtrArray *all = fsg_inode_table_ref_all(table);

	take_back_nodes(watch, watch->view->root);
	for (guint i = 0; i < all->len; i++) {
		FsgInode *inode = g_ptr_array_index(all, i), *parent;
		g_autofree char *name = NULL;

		if (fsg_inode_dup_hint(table, inode, &parent, &name)) {
			take_back_name(watch, fsg_inode_id(table, parent), name);
			fsg_inode_unref(table, parent);
		}
		fsg_notify_object(watch->fuse, fsg_inode_id(table, inode), true);
		fsg_inode_unref(table, inode);
	}
	g_ptr_array_unref(all);
}

/* Twice, a second apart: a name that was being asked for again meanwhile, which the kernel does without a
 * lock, may have been believed anew with the old answer. */
static void take_back_twice(FsgWatch *watch)
{
	if (watch->again)
		g_ptr_array_unref(watch->again);
	watch->again = fsg_told_take_lasting(watch->view->invalidate->told);
	take_back_lasting(watch, watch->again);
	take_back_all(watch);
	watch->again_us = g_get_monotonic_time() + G_USEC_PER_SEC;
}

static void take_back_again(FsgWatch *watch)
{
	take_back_lasting(watch, watch->again);
	g_clear_pointer(&watch->again, g_ptr_array_unref);
	take_back_all(watch);
	watch->again_us = 0;
}

/* Marks of directories that the kernel has long forgotten are in the way of others: all go, and those in use
 * come again. */
static void flush_marks(FsgWatch *watch)
{
	(void)__atomic_add_fetch(&watch->generation, 1, __ATOMIC_ACQ_REL);
	(void)fanotify_mark(watch->group_fd, FAN_MARK_FLUSH, 0, AT_FDCWD, NULL);
	__atomic_store_n(&watch->marks, 0, __ATOMIC_RELAXED);
	watch->lost = true;
}

/* --- the thread --- */

/* So many at a time, for who waits for what was before: as many as the queue holds, and some. */
#define READ_MOST 32768

/* Events follow each other at multiples of four bytes: their heads are copied to be read. */
static void take_events(FsgWatch *watch, const char *at, size_t left)
{
	struct fanotify_event_metadata head;

	for (; left >= sizeof head; at += head.event_len, left -= head.event_len) {
		memcpy(&head, at, sizeof head);
		if (head.event_len < sizeof head || head.event_len > left)
			return; /* never, but for a kernel that is broken */
		watch->stats.events++;
		if (head.mask & FAN_Q_OVERFLOW) {
			watch->lost = true;
			watch->stats.overflows++;
		} else if (head.pid == watch->pid && !watch->view->has_near) {
			watch->stats.own_events++;
		} else {
			fsg_watch_take_event(watch, &head, at + head.metadata_len,
					     head.event_len - head.metadata_len);
		}
	}
}

static void drain(FsgWatch *watch)
{
	char buffer[16384] __attribute__((aligned(8)));
	uint64_t end = watch->stats.events + READ_MOST;
	ssize_t got;

	while (watch->stats.events < end &&
	       (got = read(watch->group_fd, buffer, sizeof buffer)) > 0)
		take_events(watch, buffer, (size_t)got);
}

static void make_room(FsgWatch *watch)
{
	g_autoptr(GPtrArray) items = fsg_told_take_lasting(watch->view->invalidate->told);

	take_back_lasting(watch, items);
}

static void work(FsgWatch *watch)
{
	int64_t now_us = g_get_monotonic_time();

	if (__atomic_load_n(&watch->wants_flush, __ATOMIC_RELAXED) && watch->again_us == 0 &&
	    now_us >= watch->flush_us) {
		watch->flush_us = now_us + FLUSH_EVERY_US;
		flush_marks(watch);
		__atomic_store_n(&watch->wants_flush, false, __ATOMIC_RELAXED);
	}
	drain(watch);
	if (watch->lost) {
		watch->lost = false;
		take_back_twice(watch);
	} else if (watch->again_us != 0 && g_get_monotonic_time() >= watch->again_us) {
		take_back_again(watch);
	}
	if (__atomic_exchange_n(&watch->wants_room, false, __ATOMIC_RELAXED))
		make_room(watch);
}

/* Waits for something to do. */
static void wait_for_work(FsgWatch *watch)
{
	struct pollfd fds[] = {
		{ .fd = watch->wake_fd, .events = POLLIN },
		{ .fd = watch->group_fd, .events = POLLIN },
	};
	int64_t left_ms = -1;
	eventfd_t value;

	if (watch->again_us != 0)
		left_ms = MAX(watch->again_us - g_get_monotonic_time(), 0) / 1000 + 1;
	(void)poll(fds, G_N_ELEMENTS(fds), (int)left_ms);
	if (!fds[0].revents && fds[1].revents)
		(void)poll(fds, 1, NAP_MS);
	(void)eventfd_read(watch->wake_fd, &value);
}

/* Since when it works, or 0. */
static void show_work(FsgWatch *watch, int64_t since_us)
{
	ExecBoard *board = watch->view->invalidate->board;

	__atomic_store_n(&watch->working_us, since_us, __ATOMIC_SEQ_CST);
	if (board)
		atomic_store(&board->at_events, since_us != 0);
}

static gpointer run(gpointer data)
{
	FsgWatch *watch = data;
	bool stopping = false;

	while (!stopping) {
		uint64_t asked;

		wait_for_work(watch);
		pthread_mutex_lock(&watch->lock);
		asked = watch->asked;
		stopping = watch->stopping;
		pthread_mutex_unlock(&watch->lock);
		if (stopping)
			break;
		show_work(watch, g_get_monotonic_time());
		work(watch);
		show_work(watch, 0);
		pthread_mutex_lock(&watch->lock);
		watch->shown = watch->stats;
		watch->done = asked;
		pthread_cond_broadcast(&watch->drained);
		pthread_mutex_unlock(&watch->lock);
	}
	pthread_mutex_lock(&watch->lock);
	watch->ended = true;
	pthread_cond_broadcast(&watch->drained);
	pthread_mutex_unlock(&watch->lock);
	return NULL;
}

int fsg_watch_start(FsgWatch *watch, struct fuse_session *fuse)
{
	watch->fuse = fuse;
	watch->thread = g_thread_try_new("fsgate-watch", run, watch, NULL);
	return watch->thread ? 0 : -EAGAIN;
}

bool fsg_watch_stop(FsgWatch *watch, int timeout_ms)
{
	int64_t until_us = g_get_monotonic_time() + (int64_t)timeout_ms * 1000;
	bool in_time = true, ended;

	if (!watch->thread)
		return true;
	pthread_mutex_lock(&watch->lock);
	watch->stopping = true;
	wake(watch);
	while (!watch->ended && in_time)
		in_time = cond_wait_until(&watch->drained, &watch->lock, until_us);
	ended = watch->ended;
	pthread_mutex_unlock(&watch->lock);
	if (ended)
		g_thread_join(g_steal_pointer(&watch->thread));
	return ended;
}

/* Nothing has happened that was not dealt with. Events are there as soon as what they are about is; and whoever takes
 * one away has said before that it works. */
static bool is_drained(FsgWatch *watch)
{
	struct pollfd group = { .fd = watch->group_fd, .events = POLLIN };

	return poll(&group, 1, 0) == 0 &&
	       __atomic_load_n(&watch->working_us, __ATOMIC_SEQ_CST) == 0;
}

int fsg_watch_drain(FsgWatch *watch, int64_t deadline_us)
{
	uint64_t mine;
	bool in_time = true;

	if (is_drained(watch))
		return 0;
	pthread_mutex_lock(&watch->lock);
	mine = ++watch->asked;
	wake(watch);
	while (watch->done < mine && in_time)
		in_time = cond_wait_until(&watch->drained, &watch->lock, deadline_us);
	in_time = watch->done >= mine;
	pthread_mutex_unlock(&watch->lock);
	return in_time ? 0 : -ETIMEDOUT;
}

void fsg_watch_want_room(FsgWatch *watch)
{
	if (!__atomic_exchange_n(&watch->wants_room, true, __ATOMIC_RELAXED))
		wake(watch);
}

void fsg_watch_stats(FsgWatch *watch, FsgWatchStats *ret_stats)
{
	pthread_mutex_lock(&watch->lock);
	*ret_stats = watch->shown;
	pthread_mutex_unlock(&watch->lock);
	ret_stats->dirs = __atomic_load_n(&watch->marks, __ATOMIC_RELAXED);
}
