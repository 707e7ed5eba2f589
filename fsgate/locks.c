/* Locks that the view's owners hold; see locks.h. */
#include "fsgate/locks-internal.h"

#include "common/fd-util.h"
#include "common/limits.h"
#include "fsgate/lookup.h"

#include <errno.h>

static guint file_hash(gconstpointer data)
{
	const FsgLockFile *file = data;

	return (guint)(file->key.ino * 2654435761u ^ file->key.dev);
}

static gboolean file_equal(gconstpointer a, gconstpointer b)
{
	const FsgLockFile *x = a, *y = b;

	return x->key.ino == y->key.ino && x->key.dev == y->key.dev;
}

FsgLocks *fsg_locks_new(void)
{
	FsgLocks *locks = g_new0(FsgLocks, 1);

	pthread_mutex_init(&locks->mutex, NULL);
	locks->files = g_hash_table_new(file_hash, file_equal);
	fsg_lock_queues_init(locks);
	return locks;
}

FsgLockFile *fsg_lock_file_get(FsgLocks *locks, const FsgLockKey *key, bool make)
{
	const FsgLockFile wanted = { .key = *key };
	FsgLockFile *file;

	pthread_mutex_lock(&locks->mutex);
	file = g_hash_table_lookup(locks->files, &wanted);
	if (!file && make) {
		file = g_new0(FsgLockFile, 1);
		file->key = *key;
		file->owners = g_ptr_array_new();
		pthread_mutex_init(&file->op, NULL);
		g_hash_table_add(locks->files, file);
	}
	if (file)
		file->refs++;
	pthread_mutex_unlock(&locks->mutex);
	return file;
}

static void file_free(FsgLockFile *file)
{
	g_ptr_array_unref(file->owners);
	pthread_mutex_destroy(&file->op);
	g_free(file);
}

void fsg_lock_file_put(FsgLocks *locks, FsgLockFile *file)
{
	bool last;

	pthread_mutex_lock(&locks->mutex);
	last = --file->refs == 0;
	if (last)
		g_hash_table_remove(locks->files, file);
	pthread_mutex_unlock(&locks->mutex);
	if (last)
		file_free(file);
}

static FsgLockOwner *find_owner(const FsgLockFile *file, bool flock, uint64_t id)
{
	for (guint i = 0; i < file->owners->len; i++) {
		FsgLockOwner *owner = g_ptr_array_index(file->owners, i);

		if (owner->flock == flock && owner->id == id)
			return owner;
	}
	return NULL;
}

FsgLockOwner *fsg_lock_file_find_conflict(const FsgLockFile *file, const FsgLockRequest *request,
					  guint *from)
{
	while (*from < file->owners->len) {
		FsgLockOwner *owner = g_ptr_array_index(file->owners, (*from)++);

		if (owner->flock == request->flock && owner->id != fsg_lock_owner_id(request) &&
		    fsg_lock_ranges_conflict(owner->ranges, &request->range))
			return owner;
	}
	return NULL;
}

static const FsgLockRange whole_file = { .end = FSG_LOCK_END, .type = F_UNLCK };

/* --- locking --- */

/* Writes down what was done on the host. Owners are in the file's list as long as they hold something. Under op. */
static void note(FsgLocks *locks, FsgLockFile *file, FsgLockOwner *owner, const FsgLockRange *range)
{
	bool listed = owner->ranges->len > 0;

	pthread_mutex_lock(&locks->mutex);
	locks->ranges -= owner->ranges->len;
	fsg_lock_ranges_set(owner->ranges, range);
	locks->ranges += owner->ranges->len;
	if (!listed && owner->ranges->len > 0) {
		g_ptr_array_add(file->owners, owner);
		__atomic_add_fetch(&locks->owners, 1, __ATOMIC_SEQ_CST);
		file->refs++;
	} else if (listed && owner->ranges->len == 0) {
		g_ptr_array_remove_fast(file->owners, owner);
		__atomic_sub_fetch(&locks->owners, 1, __ATOMIC_SEQ_CST);
		file->refs--; /* the caller has one more */
	}
	if (range->type != F_WRLCK)
		fsg_lock_waits_wake(locks, file);
	pthread_mutex_unlock(&locks->mutex);
}

static bool is_room(FsgLocks *locks, const FsgLockOwner *owner, const FsgLockRange *range)
{
	bool room;

	pthread_mutex_lock(&locks->mutex);
	room = locks->ranges + fsg_lock_ranges_growth(owner->ranges, range) <= LIMIT_LOCK_RANGES ||
	       fsg_lock_ranges_growth(owner->ranges, range) == 0;
	pthread_mutex_unlock(&locks->mutex);
	return room;
}

static int set_record(FsgView *view, FsgLockFile *file, FsgLockOwner *owner,
		      const FsgLockRequest *request)
{
	int r;

	if (!is_room(view->locks, owner, &request->range))
		return -ENOLCK;
	r = fsg_lock_owner_prepare(view, file, owner, request->file, request->range.type);
	if (r == 0)
		r = fsg_lock_host_record(owner->fd, &request->range);
	if (r == 0)
		note(view->locks, file, owner, &request->range);
	return r;
}

/* A flock that is changed into the other kind is given up first: when the new one cannot be had, the old one is
 * gone, as on Linux. */
static int set_flock(FsgView *view, FsgLockFile *file, FsgLockOwner *owner,
		     const FsgLockRequest *request)
{
	const FsgLockRange *held =
		owner->ranges->len > 0 ? &g_array_index(owner->ranges, FsgLockRange, 0) : NULL;
	int r = fsg_lock_host_flock(owner->fd, request->range.type);

	if (r == 0)
		note(view->locks, file, owner, &request->range);
	else if (held && held->type != request->range.type)
		note(view->locks, file, owner, &whole_file);
	return r;
}

/* Whether somebody who is in the way may have been closed. Once, where closing is told: who is still there after that
 * time is in use elsewhere. Under op. */
static bool is_closing(const FsgLockFile *file, const FsgLockRequest *request)
{
	FsgLockOwner *owner;
	bool closing = false;
	guint from = 0;

	while ((owner = fsg_lock_file_find_conflict(file, request, &from))) {
		closing = closing || owner->may_close || owner->handle->closes_silently;
		owner->may_close = false;
	}
	return closing;
}

static int set_work(FsgView *view, FsgLockFile *file, const FsgLockRequest *request,
		    FsgLockDetails *ret_details)
{
	FsgLockOwner *owner = find_owner(file, request->flock, fsg_lock_owner_id(request));
	int r = 0;

	if (!owner) {
		if (request->range.type == F_UNLCK)
			return 0;
		if ((r = fsg_lock_owner_new(view, file, request, &owner)) < 0)
			return r;
	}
	if (owner->ranges->len > 0)
		ret_details->before = fsg_lock_ranges_cut(owner->ranges, request->range.start,
							  request->range.end);
	r = request->flock ? set_flock(view, file, owner, request)
			   : set_record(view, file, owner, request);
	if (r == 0 && request->range.type != F_UNLCK) {
		owner->handle = request->file;
		owner->pid = request->pid;
		owner->may_close = false;
	}
	if (r == -EAGAIN)
		ret_details->is_closing = is_closing(file, request);
	if (owner->ranges->len == 0)
		fsg_lock_owner_free(view, owner);
	return r;
}

int fsg_locks_set(FsgView *view, const FsgLockRequest *request, FsgLockDetails *ret_details)
{
	bool unlock = request->range.type == F_UNLCK;
	FsgLockDetails details = { .before = NULL };
	FsgLockFile *file;
	int r;

	if (ret_details)
		*ret_details = details;
	if (request->file->fd < 0)
		return unlock ? 0 : -ENOLCK;
	file = fsg_lock_file_get(view->locks, &request->key, !unlock);
	if (!file)
		return 0;
	pthread_mutex_lock(&file->op);
	r = set_work(view, file, request, &details);
	pthread_mutex_unlock(&file->op);
	fsg_lock_file_put(view->locks, file);
	if (ret_details)
		*ret_details = details;
	else
		g_clear_pointer(&details.before, g_array_unref);
	return r;
}

/* What was read-locked becomes so again and what was free is freed: that always works. Where a write lock was made
 * into a read lock and somebody else reads meanwhile, the read lock stays. */
static void give_back_work(FsgView *view, FsgLockFile *file, const FsgLockRequest *request,
			   const GArray *before)
{
	FsgLockOwner *owner = find_owner(file, request->flock, fsg_lock_owner_id(request));
	FsgLockRequest back = *request;

	if (!owner) /* closed meanwhile */
		return;
	back.range.type = F_UNLCK;
	for (guint i = 0; i < (before ? before->len : 1); i++) {
		if (before)
			back.range = g_array_index(before, FsgLockRange, i);
		(void)(request->flock ? set_flock(view, file, owner, &back)
				      : set_record(view, file, owner, &back));
	}
	if (owner->ranges->len == 0)
		fsg_lock_owner_free(view, owner);
}

void fsg_locks_give_back(FsgView *view, const FsgLockRequest *request, GArray *take_before)
{
	FsgLockFile *file = fsg_lock_file_get(view->locks, &request->key, false);

	if (file) {
		pthread_mutex_lock(&file->op);
		give_back_work(view, file, request, take_before);
		pthread_mutex_unlock(&file->op);
		fsg_lock_file_put(view->locks, file);
	}
	if (take_before)
		g_array_unref(take_before);
}

/* --- asking --- */

/* The nearest of the view's own. */
static bool test_view(const FsgLockFile *file, const FsgLockRequest *request,
		      FsgLockRange *ret_range, pid_t *ret_pid)
{
	const FsgLockOwner *owner;
	bool found = false;
	guint from = 0;

	while ((owner = fsg_lock_file_find_conflict(file, request, &from))) {
		const FsgLockRange *range =
			fsg_lock_ranges_conflict(owner->ranges, &request->range);

		if (!found || range->start < ret_range->start) {
			*ret_range = *range;
			*ret_pid = owner->pid;
		}
		found = true;
	}
	return found;
}

static int test_host(const FsgView *view, int fd, const FsgLockRequest *request,
		     FsgLockRange *ret_range, pid_t *ret_pid)
{
	const FsgLockRange *range = &request->range;
	struct flock lock = {
		.l_type = range->type,
		.l_whence = SEEK_SET,
		.l_start = (off_t)range->start,
		.l_len = range->end == FSG_LOCK_END ? 0 : (off_t)(range->end - range->start + 1),
	};

	if (fcntl(fd, F_OFD_GETLK, &lock) != 0)
		return -errno;
	*ret_range = (FsgLockRange){ .type = lock.l_type };
	if (lock.l_type == F_UNLCK)
		return 0;
	ret_range->start = (uint64_t)lock.l_start;
	ret_range->end =
		lock.l_len == 0 ? FSG_LOCK_END : (uint64_t)lock.l_start + (uint64_t)lock.l_len - 1;
	/* A number of our pid namespace, which is the view's unless somebody else mounted it; there, and for an OFD
	 * lock (-1), the kernel cannot be told more than that there is somebody. */
	*ret_pid = view->mountpoint && lock.l_pid > 0 ? lock.l_pid : 0;
	return 0;
}

int fsg_locks_test(FsgView *view, const FsgLockRequest *request, FsgLockRange *ret_range,
		   pid_t *ret_pid)
{
	const FsgLockOwner *owner;
	FsgLockFile *file;
	int r = 0;

	*ret_range = (FsgLockRange){ .type = F_UNLCK };
	*ret_pid = 0;
	if (request->file->fd < 0)
		return 0;
	file = fsg_lock_file_get(view->locks, &request->key, true);
	pthread_mutex_lock(&file->op);
	/* When nobody of the view is in the way, what the host names is not ours. The description has to be the
	 * owner's if it has one, or its own locks would be named. */
	if (!test_view(file, request, ret_range, ret_pid)) {
		owner = find_owner(file, false, request->owner);
		r = test_host(view, owner ? owner->fd : request->file->fd, request, ret_range,
			      ret_pid);
	}
	pthread_mutex_unlock(&file->op);
	fsg_lock_file_put(view->locks, file);
	return r;
}

/* --- closing --- */

static bool ends_with(const FsgLockOwner *owner, const FsgFile *handle)
{
	return owner->handle == handle || owner->fd_of == handle;
}

/* Ends what the owner holds. */
static void drop(FsgView *view, FsgLockFile *file, FsgLockOwner *owner)
{
	fsg_lock_owner_end(view, owner);
	note(view->locks, file, owner, &whole_file);
	fsg_lock_owner_free(view, owner);
}

/* Nearly always NULL, and without taking a lock: nobody has locked anything. */
static FsgLockFile *locked_file(FsgLocks *locks, const FsgLockKey *key)
{
	return __atomic_load_n(&locks->owners, __ATOMIC_SEQ_CST) == 0
		       ? NULL
		       : fsg_lock_file_get(locks, key, false);
}

void fsg_locks_flush(FsgView *view, const FsgLockKey *key, const FsgFile *handle, uint64_t id)
{
	FsgLockFile *file = locked_file(view->locks, key);
	FsgLockOwner *owner;

	if (!file)
		return;
	pthread_mutex_lock(&file->op);
	if ((owner = find_owner(file, false, id)))
		drop(view, file, owner);
	pthread_mutex_lock(&view->locks->mutex);
	for (guint i = 0; i < file->owners->len; i++) {
		owner = g_ptr_array_index(file->owners, i);
		if (owner->handle == handle)
			owner->may_close = true;
	}
	pthread_mutex_unlock(&view->locks->mutex);
	pthread_mutex_unlock(&file->op);
	fsg_lock_file_put(view->locks, file);
}

void fsg_locks_release(FsgView *view, const FsgFile *handle)
{
	const FsgLockKey key = fsg_lock_key(handle);
	FsgLockFile *file = locked_file(view->locks, &key);

	if (!file)
		return;
	pthread_mutex_lock(&file->op);
	for (guint i = file->owners->len; i-- > 0;) {
		FsgLockOwner *owner = g_ptr_array_index(file->owners, i);

		if (ends_with(owner, handle))
			drop(view, file, owner);
	}
	pthread_mutex_unlock(&file->op);
	fsg_lock_file_put(view->locks, file);
}

/* What is left when the connection ended without the releases. */
void fsg_locks_free(FsgLocks *locks)
{
	GHashTableIter iter;
	gpointer file;

	if (!locks)
		return;
	g_hash_table_iter_init(&iter, locks->files);
	while (g_hash_table_iter_next(&iter, &file, NULL)) {
		GPtrArray *owners = ((FsgLockFile *)file)->owners;

		for (guint i = 0; i < owners->len; i++) {
			FsgLockOwner *owner = g_ptr_array_index(owners, i);

			if (!owner->fd_of)
				fd_close(&owner->fd);
			g_array_unref(owner->ranges);
			g_free(owner);
		}
		file_free(file);
	}
	g_hash_table_unref(locks->files);
	fsg_lock_queues_clear(locks);
	pthread_mutex_destroy(&locks->mutex);
	g_free(locks);
}
