/* Handles; see handle.h. Freeing one needs the inode table, so ops-file.c and ops-dir.c do it. */
#include "fsgate/handle.h"

#include "fsgate/refusal.h"

#include <errno.h>
#include <pthread.h>

struct FsgHandleBudget {
	size_t most;
	size_t used; /* atomic */
};

FsgHandleBudget *fsg_handle_budget_new(size_t most)
{
	FsgHandleBudget *budget = g_new0(FsgHandleBudget, 1);

	budget->most = most;
	return budget;
}

void fsg_handle_budget_free(FsgHandleBudget *budget)
{
	g_free(budget);
}

size_t fsg_handle_budget_used(FsgHandleBudget *budget)
{
	return __atomic_load_n(&budget->used, __ATOMIC_RELAXED);
}

size_t fsg_handle_budget_most(const FsgHandleBudget *budget)
{
	return budget->most;
}

int fsg_handle_budget_take(FsgHandleBudget *budget)
{
	if (__atomic_add_fetch(&budget->used, 1, __ATOMIC_RELAXED) <= budget->most)
		return 0;
	fsg_handle_budget_return(budget);
	return fsg_refuse(DENIAL_FD_BUDGET, -ENFILE);
}

void fsg_handle_budget_return(FsgHandleBudget *budget)
{
	__atomic_sub_fetch(&budget->used, 1, __ATOMIC_RELAXED);
}

FsgFile *fsg_file_new(FsgInode *take_inode_ref, int take_fd)
{
	FsgFile *file = g_new0(FsgFile, 1);

	file->inode = take_inode_ref;
	file->fd = take_fd;
	return file;
}

FsgDir *fsg_dir_new(FsgInode *take_inode_ref, FsgNode *node, DIR *take_dir)
{
	FsgDir *handle = g_new0(FsgDir, 1);

	handle->inode = take_inode_ref;
	handle->node = node;
	handle->dir = take_dir;
	pthread_mutex_init(&handle->lock, NULL);
	return handle;
}
