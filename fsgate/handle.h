/* Handles: open files and directories, and the bound on how many there may be.
 *
 * FUSE's `fh` is the pointer. A handle belongs to the kernel from a successful open until RELEASE; requests that
 * use it never overlap with its release. */
#pragma once

#include "fsgate/boundary.h"
#include "fsgate/inode.h"

#include <dirent.h>
#include <glib.h>
#include <pthread.h>
#include <stdint.h>

typedef struct FsgHandleBudget FsgHandleBudget;

FsgHandleBudget *fsg_handle_budget_new(size_t most);
void fsg_handle_budget_free(FsgHandleBudget *budget); /* NULL is allowed */
size_t fsg_handle_budget_used(FsgHandleBudget *budget);
size_t fsg_handle_budget_most(const FsgHandleBudget *budget);

/* What a file was when it was opened for writing (change.h). */
typedef struct FsgExec FsgExec;
typedef struct FsgWriter FsgWriter;
struct FsgWriter {
	FsgInode *inode; /* the handle's; NULL: its close need not be told */
	int fd;		 /* likewise */
	pid_t pid;	 /* who opened it */
	uint64_t pid_namespace;
	FsgExec *
		exec; /* whose it is; NULL: not known, or there are none. This and what follows: under the lock of changes */
	FsgWriter *prev, *next; /* of the same exec */
	bool may_be_mapped; /* the kernel may write the host's file through a mapping that outlives the handle */
	uint64_t size;
	struct statx_timestamp mtime, ctime;
};

struct FsgFile {
	FsgInode *inode;    /* a reference */
	int fd;		    /* -1 for an empty stand-in */
	int32_t backing_id; /* > 0: the kernel reads and writes the host's file itself */
	bool writes;	    /* opened for writing */
	/* Closing it is not told by a FLUSH: only the RELEASE comes, after the last close. */
	bool closes_silently;
	FsgOpened opened;
	FsgWriter writer;
	FsgFile *prev, *next; /* of the same inode; under the table's lock */
};

/* Reading a directory: the tree's own children first, then the host's entries. */
typedef struct {
	FsgInode *inode;      /* a reference */
	FsgNode *node;	      /* the overlay at the time of opening, or NULL */
	pthread_mutex_t lock; /* for what follows: READDIR requests of one handle may overlap */
	DIR *dir;	      /* NULL for a synthetic directory or a stand-in */
	bool is_odd;	      /* some of its names lead to other objects than the host says */
	struct dirent *held;  /* read from the host, and not given yet for want of room; or NULL */
	off_t held_at;	      /* the position before it */
} FsgDir;

/* Counts one more open fd, -ENFILE past the bound. */
int fsg_handle_budget_take(FsgHandleBudget *budget);
void fsg_handle_budget_return(FsgHandleBudget *budget);

FsgFile *fsg_file_new(FsgInode *take_inode_ref, int take_fd);
FsgDir *fsg_dir_new(FsgInode *take_inode_ref, FsgNode *node, DIR *take_dir);

/* The pointers of FUSE's fh. */
static inline FsgFile *fsg_file_from_fh(uint64_t fh)
{
	return (FsgFile *)(uintptr_t)fh;
}

static inline FsgDir *fsg_dir_from_fh(uint64_t fh)
{
	return (FsgDir *)(uintptr_t)fh;
}
