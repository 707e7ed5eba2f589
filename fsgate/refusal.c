/* The thread's request; see refusal.h. */
#include "fsgate/refusal.h"

#include "fsgate/boundary.h"
#include "fsgate/client.h"
#include "fsgate/events.h"

#include <errno.h>
#include <glib.h>

static __thread FsgAsked *current;

void fsg_asked_begin(FsgAsked *request)
{
	fsg_stats_count(&request->view->stats, request->op);
	current = request;
}

void fsg_asked_end(FsgAsked *request)
{
	current = NULL;
	g_free(request->target);
}

int fsg_refuse(DenialReason reason, int r)
{
	return fsg_refuse_entry(reason, r, NULL, NULL);
}

int fsg_refuse_entry(DenialReason reason, int r, FsgInode *dir, const char *name)
{
	if (current) {
		current->refused = r;
		current->reason = reason;
		current->refused_inode = dir;
		current->refused_name = name;
	}
	return r;
}

int fsg_refuse_change(const FsgInode *inode, int r)
{
	DenialReason reason = DENIAL_READ_ONLY_MOUNT;

	if (inode->kind == FSG_INODE_SYNTHETIC)
		reason = DENIAL_VIEW_DIRECTORY;
	else if (inode->kind == FSG_INODE_BLOCKED)
		reason = inode->key.ino & FSG_INO_PRIVATE ? DENIAL_PRIVATE_DIRECTORY
							  : DENIAL_STAND_IN;
	/* The record only looks at it, while the request holds it. */
	return fsg_refuse_entry(reason, r, (FsgInode *)(uintptr_t)inode, NULL);
}

void fsg_refuse_target(const char *text)
{
	if (!current)
		return;
	g_free(current->target);
	current->target = g_strdup(text);
}

static void record(FsgView *view, const FsgAsked *request, FsgInode *inode, const char *name,
		   DenialReason reason, int errnum, const char *target)
{
	g_autofree char *path = fsg_inode_dup_entry_path(view->inodes, inode, name);
	const FsgDenial denial = {
		.op = fsg_op_name(request->op),
		.path = path,
		.mount = (char *)(uintptr_t)(inode->anchor ? inode->anchor->view_path : NULL),
		.target = (char *)(uintptr_t)target,
		.reason = reason,
		.errnum = errnum,
		.pid = request->pid,
		.pid_namespace = fsg_client_pid_namespace(view->clients, request->pid),
		.epoch = fsg_boundary_epoch(view->boundary),
		.time_us = g_get_real_time(),
	};

	fsg_boundary_note(view->boundary);
	fsg_denials_add(view->denials, &denial);
	fsg_events_add_denial(view->events, &denial);
}

void fsg_asked_replies(int r)
{
	FsgAsked *request = current;
	DenialReason reason;
	FsgInode *inode;
	const char *name = NULL;

	if (r >= 0 || !request || !request->inode)
		return;
	if (request->refused == r)
		reason = request->reason;
	else if (r == -EACCES || r == -EPERM)
		reason = DENIAL_HOST_PERMISSION;
	else if (r == -EROFS)
		reason = DENIAL_HOST_READ_ONLY;
	else
		return;
	inode = request->inode;
	if (request->refused == r && request->refused_inode) {
		inode = request->refused_inode;
		name = request->refused_name;
	}
	if (!name && inode == request->inode)
		name = request->name;
	else if (!name && inode == request->to_inode)
		name = request->to_name;
	record(request->view, request, inode, name, reason, -r, request->target);
}

void fsg_asked_note_escape(FsgView *view, FsgInode *link, const char *target)
{
	if (current)
		record(view, current, link, NULL, DENIAL_SYMLINK_ESCAPE, 0, target);
}
