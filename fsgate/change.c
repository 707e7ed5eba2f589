/* See change.h. */
#include "fsgate/change.h"

#include "common/cond-util.h"
#include "common/fd-util.h"
#include "common/limits.h"
#include "fsgate/boundary.h"
#include "fsgate/client.h"

#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

/* A file as it is looked at when its handle may have gone: what that said, with an inode and an fd that stay. */
typedef struct {
	FsgWriter writer;
	int fd;
} Look;

/* An exec that has changed something, or has something open to do so. All of it under the lock. */
struct FsgExec {
	uint64_t pid_namespace;
	uint64_t epoch;	    /* execs that had begun when it was first seen */
	FsgFold *fold;	    /* NULL: it has ended, and its list was given away */
	FsgWriter *writers; /* open ones, each a reference */
	GArray *looks;	    /* Look: closed as they were, but may be mapped. NULL: none */
	bool incomplete;    /* there was no room for one more */
};

struct FsgChanges {
	FsgView *view; /* borrowed */
	pthread_mutex_t lock;
	pthread_cond_t closed;
	GHashTable *running; /* by pid namespace, FsgExec that have not ended; owned */
	GHashTable *ended;   /* FsgExec that have, with files open still; owned */
	uint64_t
		unknown_epoch; /* execs that had begun when the last change came of which nobody knows whose it was; 0: none */
	unsigned int looks;   /* of all execs */
	unsigned int waiting; /* nobody is woken for nothing */
};

static void look_clear(FsgView *view, Look *look)
{
	fsg_inode_unref(view->inodes, look->writer.inode);
	fd_close(&look->fd);
}

static void exec_free(FsgChanges *changes, FsgExec *exec)
{
	for (guint i = 0; exec->looks && i < exec->looks->len; i++, changes->looks--)
		look_clear(changes->view, &g_array_index(exec->looks, Look, i));
	g_clear_pointer(&exec->looks, g_array_unref);
	fsg_fold_free(exec->fold);
	g_free(exec);
}

FsgChanges *fsg_changes_new(FsgView *view)
{
	FsgChanges *changes = g_new0(FsgChanges, 1);

	changes->view = view;
	pthread_mutex_init(&changes->lock, NULL);
	cond_init(&changes->closed);
	changes->running = g_hash_table_new(g_int64_hash, g_int64_equal);
	changes->ended = g_hash_table_new(NULL, NULL);
	return changes;
}

static void free_execs(FsgChanges *changes, GHashTable *take_execs)
{
	GHashTableIter iter;
	gpointer exec;

	g_hash_table_iter_init(&iter, take_execs);
	while (g_hash_table_iter_next(&iter, NULL, &exec))
		exec_free(changes, exec);
	g_hash_table_unref(take_execs);
}

void fsg_changes_free(FsgChanges *changes)
{
	if (!changes)
		return;
	free_execs(changes, changes->running);
	free_execs(changes, changes->ended);
	pthread_mutex_destroy(&changes->lock);
	pthread_cond_destroy(&changes->closed);
	g_free(changes);
}

/* --- whose --- */

/* Who changes something or may do so, found out without the lock. */
typedef struct {
	pid_t pid;
	uint64_t pid_namespace;
	uint64_t epoch;
} Client;

static Client client_of_request(const FsgView *view)
{
	Client client = { .pid = fsg_identity_noted().pid };

	fsg_boundary_note(view->boundary);
	client.epoch = fsg_boundary_epoch(view->boundary);
	client.pid_namespace = fsg_client_pid_namespace(view->clients, client.pid);
	return client;
}

/* Who runs execs and never says that they have ended is not to cost more than this. */
static void make_room(FsgChanges *changes)
{
	FsgExec *oldest = NULL, *exec;
	GHashTableIter iter;
	gpointer value;

	if (g_hash_table_size(changes->running) < LIMIT_EXECS)
		return;
	g_hash_table_iter_init(&iter, changes->running);
	while (g_hash_table_iter_next(&iter, NULL, &value)) {
		exec = value;
		if (!exec->writers && (!oldest || exec->epoch < oldest->epoch))
			oldest = exec;
	}
	if (!oldest)
		return;
	g_hash_table_remove(changes->running, &oldest->pid_namespace);
	exec_free(changes, oldest);
}

/* NULL: not known, or there are no execs here. One without a pid is outside the sandbox, and so none of its execs. */
static FsgExec *ensure_exec(FsgChanges *changes, const Client *client)
{
	FsgExec *exec;

	if (client->pid_namespace == 0) {
		if (client->pid != 0)
			changes->unknown_epoch = client->epoch;
		return NULL;
	}
	exec = g_hash_table_lookup(changes->running, &client->pid_namespace);
	if (!exec) {
		make_room(changes);
		exec = g_new0(FsgExec, 1);
		exec->pid_namespace = client->pid_namespace;
		exec->epoch = client->epoch;
		exec->fold = fsg_fold_new(LIMIT_CHANGES);
		g_hash_table_insert(changes->running, &exec->pid_namespace, exec);
	}
	return exec;
}

/* --- what handlers have done --- */

static void tell(FsgView *view, const Client *client, FsgChangeKind kind, const char *path,
		 const char *from)
{
	fsg_events_add_change(view->events, kind, path, from, client->pid, client->pid_namespace);
}

static void record(FsgView *view, FsgChangeKind kind, FsgInode *inode, const char *name,
		   void (*fold)(FsgFold *, const char *))
{
	FsgChanges *changes = view->changes;
	Client client = client_of_request(view);
	g_autofree char *path = NULL;
	FsgExec *exec;

	pthread_mutex_lock(&changes->lock);
	path = fsg_inode_dup_entry_path(view->inodes, inode, name);
	exec = ensure_exec(changes, &client);
	if (exec)
		fold(exec->fold, path);
	tell(view, &client, kind, path, NULL);
	pthread_mutex_unlock(&changes->lock);
}

void fsg_change_created(FsgView *view, FsgInode *dir, const char *name)
{
	record(view, FSG_CHANGE_CREATED, dir, name, fsg_fold_created);
}

void fsg_change_deleted(FsgView *view, FsgInode *dir, const char *name)
{
	record(view, FSG_CHANGE_DELETED, dir, name, fsg_fold_deleted);
}

void fsg_change_modified(FsgView *view, FsgInode *inode, nlink_t nlink)
{
	if (nlink > 0)
		record(view, FSG_CHANGE_MODIFIED, inode, NULL, fsg_fold_modified);
}

static void fold_rename(FsgFold *fold, const FsgRename *moved, const char *from, const char *to)
{
	if (moved->exchange) {
		fsg_fold_exchanged(fold, from, to, moved->is_dir);
		return;
	}
	if (moved->replaces)
		fsg_fold_deleted(fold, to);
	fsg_fold_renamed(fold, from, to, moved->is_dir);
}

void fsg_change_renamed(FsgView *view, const FsgRename *moved)
{
	FsgChanges *changes = view->changes;
	Client client = client_of_request(view);
	g_autofree char *from = NULL;
	g_autofree char *to = NULL;
	FsgExec *exec;

	pthread_mutex_lock(&changes->lock);
	from = fsg_inode_dup_entry_path(view->inodes, moved->from_dir, moved->from);
	to = fsg_inode_dup_entry_path(view->inodes, moved->to_dir, moved->to);
	exec = ensure_exec(changes, &client);
	if (exec)
		fold_rename(exec->fold, moved, from, to);
	tell(view, &client, FSG_CHANGE_RENAMED, to, from);
	if (moved->exchange)
		tell(view, &client, FSG_CHANGE_RENAMED, from, to);
	pthread_mutex_unlock(&changes->lock);
}

/* --- files open for writing --- */

void fsg_change_opened(FsgView *view, FsgFile *file, const struct statx *stx, bool may_be_mapped)
{
	FsgChanges *changes = view->changes;
	Client client = client_of_request(view);
	FsgWriter *writer = &file->writer;

	*writer = (FsgWriter){
		.inode = file->inode,
		.fd = file->fd,
		.pid = client.pid,
		.pid_namespace = client.pid_namespace,
		.may_be_mapped = may_be_mapped,
		.size = stx->stx_size,
		.mtime = stx->stx_mtime,
		.ctime = stx->stx_ctime,
	};
	pthread_mutex_lock(&changes->lock);
	writer->exec = ensure_exec(changes, &client);
	if (writer->exec) {
		writer->next = writer->exec->writers;
		if (writer->next)
			writer->next->prev = writer;
		writer->exec->writers = writer;
	}
	pthread_mutex_unlock(&changes->lock);
}

static bool is_same_time(const struct statx_timestamp *a, const struct statx_timestamp *b)
{
	return a->tv_sec == b->tv_sec && a->tv_nsec == b->tv_nsec;
}

static bool is_modified(const FsgWriter *writer, const struct statx *stx)
{
	if (!stx)
		return true;
	return stx->stx_nlink > 0 &&
	       (stx->stx_size != writer->size || !is_same_time(&stx->stx_mtime, &writer->mtime) ||
		!is_same_time(&stx->stx_ctime, &writer->ctime));
}

/* Under the lock: its exec has one file less to wait for, and may be freed. */
static void leave_exec(FsgChanges *changes, FsgWriter *writer)
{
	FsgExec *exec = writer->exec;

	if (!exec)
		return;
	if (writer->next)
		writer->next->prev = writer->prev;
	if (writer->prev)
		writer->prev->next = writer->next;
	else
		exec->writers = writer->next;
	writer->exec = NULL;
	if (changes->waiting > 0)
		pthread_cond_broadcast(&changes->closed);
	if (!exec->fold && !exec->writers) {
		g_hash_table_remove(changes->ended, exec);
		exec_free(changes, exec);
	}
}

/* Under the lock: whether its exec's end has to look at it once more. Once is enough for all who open it. */
static bool wants_look(const FsgWriter *writer)
{
	const FsgExec *exec = writer->exec;

	if (!writer->may_be_mapped || !exec || !exec->fold)
		return false;
	for (guint i = 0; exec->looks && i < exec->looks->len; i++)
		if (g_array_index(exec->looks, Look, i).writer.inode == writer->inode)
			return false;
	return true;
}

/* By an fd that keeps nobody from running the file. */
static void add_look(FsgChanges *changes, const FsgWriter *writer)
{
	Look look = { .writer = *writer, .fd = -1 };

	/* it is the same object, whatever is at its place: nothing is looked up */
	if (changes->looks < LIMIT_LOOKS)
		look.fd = fd_reopen(changes->view->proc_fd, writer->fd, O_PATH);
	if (look.fd < 0) {
		writer->exec->incomplete = true;
		return;
	}
	if (!writer->exec->looks)
		writer->exec->looks = g_array_new(FALSE, FALSE, sizeof(Look));
	(void)fsg_inode_ref(changes->view->inodes, writer->inode);
	g_array_append_val(writer->exec->looks, look);
	changes->looks++;
}

void fsg_change_closed(FsgView *view, FsgWriter *writer, const struct statx *stx)
{
	FsgChanges *changes = view->changes;
	const Client client = { .pid = writer->pid, .pid_namespace = writer->pid_namespace };
	g_autofree char *path = NULL;

	pthread_mutex_lock(&changes->lock);
	if (is_modified(writer, stx)) {
		path = fsg_inode_dup_entry_path(view->inodes, writer->inode, NULL);
		if (writer->exec && writer->exec->fold)
			fsg_fold_modified(writer->exec->fold, path);
		tell(view, &client, FSG_CHANGE_MODIFIED, path, NULL);
	} else if (stx->stx_nlink > 0 && wants_look(writer))
		add_look(changes, writer);
	leave_exec(changes, writer);
	writer->inode = NULL;
	pthread_mutex_unlock(&changes->lock);
}

/* --- at the end of an exec --- */

/* Under the lock: the files to look at without it. Not where looking could mean waiting for a server. */
static GArray *take_looks(FsgChanges *changes, FsgExec *exec)
{
	GArray *looks = exec->looks ? g_steal_pointer(&exec->looks)
				    : g_array_new(FALSE, FALSE, sizeof(Look));

	changes->looks -= looks->len;
	for (const FsgWriter *writer = exec->writers; writer && looks->len < LIMIT_LOOKS;
	     writer = writer->next) {
		Look look = { .writer = *writer };

		if (!fsg_inode_is_local(writer->inode) || (look.fd = fd_dup(writer->fd)) < 0)
			continue;
		(void)fsg_inode_ref(changes->view->inodes, writer->inode);
		g_array_append_val(looks, look);
	}
	return looks;
}

static void look_at(FsgView *view, FsgFold *fold, GArray *take_looks)
{
	for (guint i = 0; i < take_looks->len; i++) {
		Look *look = &g_array_index(take_looks, Look, i);
		struct statx stx;

		if (statx(look->fd, "", AT_EMPTY_PATH | AT_NO_AUTOMOUNT, STATX_BASIC_STATS, &stx) ==
			    0 &&
		    is_modified(&look->writer, &stx)) {
			g_autofree char *path =
				fsg_inode_dup_entry_path(view->inodes, look->writer.inode, NULL);

			fsg_fold_modified(fold, path);
		}
		look_clear(view, look);
	}
	g_array_unref(take_looks);
}

/* Under the lock: what is changed from here on is not the exec's any more. */
static void end_exec(FsgChanges *changes, FsgExec *exec)
{
	(void)g_hash_table_remove(changes->running, &exec->pid_namespace);
	exec->fold = NULL; /* the caller has it */
	if (exec->writers)
		(void)g_hash_table_add(changes->ended, exec);
	else
		exec_free(changes, exec);
}

void fsg_changes_take(FsgView *view, uint64_t pid_namespace, uint64_t exec_epoch, int64_t until_us,
		      FsgChangeList *ret_list)
{
	FsgChanges *changes = view->changes;
	FsgFold *fold = NULL;
	GArray *looks = NULL;
	bool is_stale = false, in_time = true;
	FsgExec *exec;

	*ret_list = (FsgChangeList){ .rows = NULL };
	pthread_mutex_lock(&changes->lock);
	changes->waiting++;
	while ((exec = g_hash_table_lookup(changes->running, &pid_namespace)) && exec->writers &&
	       in_time)
		in_time = cond_wait_until(&changes->closed, &changes->lock, until_us);
	changes->waiting--;
	ret_list->incomplete = changes->unknown_epoch >= exec_epoch;
	if (exec) {
		/* Seen before that exec began: one that had the number before it, and was never said to have ended. What
		 * is whose cannot be told. */
		is_stale = exec->epoch < exec_epoch;
		ret_list->incomplete |= is_stale || exec->writers || exec->incomplete;
		looks = take_looks(changes, exec);
		fold = exec->fold;
		end_exec(changes, exec);
	}
	pthread_mutex_unlock(&changes->lock);
	if (looks)
		look_at(view, fold, looks);
	if (fold && !is_stale) {
		ret_list->rows = fsg_fold_list(fold);
		ret_list->dropped = fsg_fold_dropped(fold);
	} else {
		ret_list->rows = g_ptr_array_new();
	}
	fsg_fold_free(fold);
}

void fsg_change_list_clear(FsgChangeList *list)
{
	if (list->rows)
		g_ptr_array_unref(list->rows);
	memset(list, 0, sizeof *list);
}
