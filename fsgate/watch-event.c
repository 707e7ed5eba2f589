/* What an event of the host means for what the kernel believes.
 *
 * An event names the directory and the entry, and the object. First the name: telling the kernel of it waits for
 * look-ups and listings of that directory which are under way, with results that may be older than the change.
 * Only then the object is searched among those that are known, for such a look-up may just have made it
 * known; its attributes and pages follow. Requests that are under way without that lock (GETATTR, a name
 * asked for again) are made worthless by the kernel's own versions of attributes. */
#include "fsgate/watch-internal.h"

#include "fsgate/notify.h"

#include <fcntl.h>
#include <string.h>

#define NAME_EVENTS   (FAN_CREATE | FAN_DELETE | FAN_MOVED_FROM | FAN_MOVED_TO)
#define OBJECT_EVENTS (FAN_MODIFY | FAN_ATTRIB | FAN_CLOSE_WRITE)

/* One object is met in so many mounts of a view, at the most, that are told of it. */
#define TWINS_MOST 16

typedef struct {
	uint64_t dir;	  /* 0: none */
	const char *name; /* "." for the directory itself */
	uint64_t object;  /* 0: none */
} Names;

typedef struct {
	uint64_t ids[TWINS_MOST];
	unsigned int count;
} Known;

uint64_t fsg_watch_hash_handle(const struct file_handle *handle)
{
	uint64_t hash = 0xcbf29ce484222325u ^ (uint64_t)(unsigned int)handle->handle_type;

	for (unsigned int i = 0; i < handle->handle_bytes; i++)
		hash = (hash ^ handle->f_handle[i]) * 0x100000001b3u;
	return hash ? hash : 1;
}

/* The kernel's own records: their sizes are trusted. */
static Names parse(const char *at, size_t size)
{
	const char *end = at + size;
	Names names = { .name = "." };

	while (at < end) {
		const struct fanotify_event_info_fid *info = (const void *)at;
		const struct file_handle *handle = (const void *)info->handle;

		switch (info->hdr.info_type) {
		case FAN_EVENT_INFO_TYPE_DFID_NAME:
			names.dir = fsg_watch_hash_handle(handle);
			names.name = (const char *)handle->f_handle + handle->handle_bytes;
			break;
		case FAN_EVENT_INFO_TYPE_FID:
			names.object = fsg_watch_hash_handle(handle);
			break;
		default:
			break;
		}
		at += info->hdr.len;
	}
	return names;
}

static Known find(FsgWatch *watch, uint64_t id, bool forget)
{
	Known known;

	known.count =
		fsg_inode_find_watched(watch->view->inodes, id, forget, known.ids, TWINS_MOST);
	if (known.count > TWINS_MOST) {
		watch->lost = true; /* more than there is room for: everything, then */
		known.count = TWINS_MOST;
	}
	return known;
}

/* A name is to be asked for again, not dropped: who has its object open would see it as deleted, and who works in it
 * would lose the path. */
static void take_names(FsgWatch *watch, const Known *dirs, const char *name)
{
	for (unsigned int i = 0; i < dirs->count; i++) {
		if (!fsg_notify_expire(watch->fuse, dirs->ids[i], name))
			fsg_notify_name(watch->fuse, dirs->ids[i], name);
		fsg_notify_object(watch->fuse, dirs->ids[i], true);
	}
	watch->stats.notified += dirs->count * 2;
}

static void take_object(FsgWatch *watch, const Known *objects, bool content)
{
	for (unsigned int i = 0; i < objects->count; i++)
		fsg_notify_object(watch->fuse, objects->ids[i], content);
	watch->stats.notified += objects->count;
}

void fsg_watch_take_event(FsgWatch *watch, const struct fanotify_event_metadata *event,
			  const char *records, size_t size)
{
	uint64_t mask = event->mask;
	Names names = parse(records, size);
	Known dirs = find(watch, names.dir, false), objects;
	bool content = mask & (FAN_MODIFY | FAN_CLOSE_WRITE);

	/* What we did ourselves the kernel knows, but for the other places where one directory is mounted. */
	if (event->pid == watch->pid) {
		objects = find(watch, names.object, false);
		if (dirs.count < 2 && objects.count < 2)
			return;
	}
	if (strcmp(names.name, ".") == 0) {
		take_object(watch, &dirs, false);
		return;
	}
	if (mask & NAME_EVENTS)
		take_names(watch, &dirs, names.name);
	else
		for (unsigned int i = 0; i < dirs.count; i++)
			fsg_notify_wait_for_dir(watch->fuse, dirs.ids[i]);
	/* A file that went elsewhere is not told of any more. */
	objects = find(watch, names.object,
		       event->pid != watch->pid && (mask & (FAN_DELETE | FAN_MOVED_FROM)));
	if (objects.count > 0)
		take_object(watch, &objects, content && !(mask & FAN_ONDIR));
}
