/* The request that the calling thread is answering: what it is about, and who has refused it and why.
 *
 * Handlers reply from one function, which knows the operation and the errno but not the path; and the places
 * that refuse know the reason but not whether their refusal is the answer in the end. Both meet here. A place
 * that refuses says so with fsg_refuse() and passes the errno on; when the reply carries that errno, the
 * refusal is recorded (denial.h). What nobody has claimed is the host's answer: EACCES and EPERM are its
 * permissions, the rest is no denial.
 *
 * Without a request (unit tests, other threads) nothing is recorded. Costs an ordinary request two
 * assignments. */
#pragma once

#include "common/denial-reason.h"
#include "fsgate/gate.h"
#include "fsgate/view.h"

typedef struct FsgAsked FsgAsked;

struct FsgAsked {
	FsgView *view;
	FsgOp op;
	pid_t pid;
	/* The object, or with a name that entry of the directory; `to`: of a rename, where to. Borrowed. */
	FsgInode *inode, *to_inode;
	const char *name, *to_name;
	/* set by fsg_refuse */
	int refused; /* -errno; 0: nobody has */
	DenialReason reason;
	FsgInode *refused_inode; /* NULL: the request's own */
	const char *refused_name;
	char *target; /* owned */
};

/* Counts the request and makes it the thread's; and its end. */
void fsg_asked_begin(FsgAsked *request);
void fsg_asked_end(FsgAsked *request);

/* This place refuses, for this reason: gives r (-errno) back. The last one to say so counts. */
int fsg_refuse(DenialReason reason, int r);
/* The same, about an entry of a directory that need not be the request's first. Both live as long as the request. */
int fsg_refuse_entry(DenialReason reason, int r, FsgInode *dir, const char *name);
/* A change of an inode that is not writable: the reason follows from what it is. */
int fsg_refuse_change(const FsgInode *inode, int r);
/* The text of the link that was refused. */
void fsg_refuse_target(const char *text);

/* The reply is r (-errno): records it if it is a denial. To be called before replying. */
void fsg_asked_replies(int r);

/* Records that a link's text leads out of the view, though it was given. */
void fsg_asked_note_escape(FsgView *view, FsgInode *link, const char *target);
