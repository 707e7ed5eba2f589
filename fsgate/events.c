/* See events.h. One ring for all listeners: what a listener has not seen yet is a range of numbers. */
#include "fsgate/events.h"

#include "common/fd-util.h"
#include "common/limits.h"

#include <pthread.h>
#include <string.h>
#include <sys/eventfd.h>

struct FsgEvents {
	pthread_mutex_t lock;
	FsgEvent *ring[LIMIT_EVENTS]; /* owned; by number */
	uint64_t last;		      /* number of the newest; the first is 1 */
	bool is_awaited;
	int wake_fd; /* constant */
};

static void event_free(FsgEvent *event)
{
	if (!event)
		return;
	g_free(event->denial.path);
	g_free(event->denial.mount);
	g_free(event->denial.target);
	g_free(event->from);
	g_free(event);
}

FsgEvents *fsg_events_new(void)
{
	FsgEvents *events = g_new0(FsgEvents, 1);

	pthread_mutex_init(&events->lock, NULL);
	events->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	return events;
}

void fsg_events_free(FsgEvents *events)
{
	if (!events)
		return;
	for (size_t i = 0; i < LIMIT_EVENTS; i++)
		event_free(events->ring[i]);
	fd_close(&events->wake_fd);
	pthread_mutex_destroy(&events->lock);
	g_free(events);
}

int fsg_events_wake_fd(const FsgEvents *events)
{
	return events->wake_fd;
}

static char *keep(const char *text, bool *cut)
{
	if (!text)
		return NULL;
	if (strnlen(text, LIMIT_DENIAL_PATH_BYTES) < LIMIT_DENIAL_PATH_BYTES)
		return g_strdup(text);
	*cut = true;
	return g_strndup(text, LIMIT_DENIAL_PATH_BYTES - 1);
}

/* The one whose place it takes is freed without the lock. */
static void add(FsgEvents *events, FsgEvent *take_event)
{
	FsgEvent **place, *old;
	bool wake;

	take_event->denial.time_us = g_get_real_time();
	pthread_mutex_lock(&events->lock);
	take_event->denial.seq = ++events->last;
	place = &events->ring[events->last % LIMIT_EVENTS];
	old = *place;
	*place = take_event;
	wake = events->is_awaited;
	events->is_awaited = false;
	pthread_mutex_unlock(&events->lock);
	event_free(old);
	if (wake)
		(void)eventfd_write(events->wake_fd, 1);
}

void fsg_events_add_denial(FsgEvents *events, const FsgDenial *denial)
{
	FsgEvent *event = g_new0(FsgEvent, 1);

	event->is_denial = true;
	event->denial = *denial;
	event->denial.count = 0;
	event->denial.cut = false;
	event->denial.path = keep(denial->path, &event->denial.cut);
	event->denial.mount = keep(denial->mount, &event->denial.cut);
	event->denial.target = keep(denial->target, &event->denial.cut);
	add(events, event);
}

void fsg_events_add_change(FsgEvents *events, FsgChangeKind change, const char *path,
			   const char *from, pid_t pid, uint64_t pid_namespace)
{
	FsgEvent *event = g_new0(FsgEvent, 1);

	event->change = change;
	event->denial.pid = pid;
	event->denial.pid_namespace = pid_namespace;
	event->denial.path = keep(path, &event->denial.cut);
	event->from = keep(from, &event->denial.cut);
	add(events, event);
}

static void event_free_data(gpointer data)
{
	event_free(data);
}

static FsgEvent *event_dup(const FsgEvent *event)
{
	FsgEvent *copy = g_memdup2(event, sizeof *event);

	copy->denial.path = g_strdup(event->denial.path);
	copy->denial.mount = g_strdup(event->denial.mount);
	copy->denial.target = g_strdup(event->denial.target);
	copy->from = g_strdup(event->from);
	return copy;
}

static size_t event_bytes(const FsgEvent *event)
{
	const char *const texts[] = { event->denial.path, event->denial.mount, event->denial.target,
				      event->from };
	size_t bytes = 64; /* the rest of a row */

	for (size_t i = 0; i < G_N_ELEMENTS(texts); i++)
		bytes += texts[i] ? strlen(texts[i]) : 0;
	return bytes;
}

void fsg_events_list(FsgEvents *events, uint64_t since, size_t most_bytes, bool wait,
		     FsgEventList *ret_list)
{
	uint64_t oldest, at;
	size_t bytes = 0;

	*ret_list = (FsgEventList){ .rows = g_ptr_array_new_with_free_func(event_free_data) };
	pthread_mutex_lock(&events->lock);
	/* A number of the future is of another view, which had this place before. */
	since = since > events->last ? 0 : since;
	oldest = events->last > LIMIT_EVENTS ? events->last - LIMIT_EVENTS : 0;
	at = MAX(since, oldest);
	ret_list->lost = at - since;
	for (; at < events->last; at++) {
		const FsgEvent *event = events->ring[(at + 1) % LIMIT_EVENTS];

		bytes += event_bytes(event);
		if (bytes > most_bytes && ret_list->rows->len > 0)
			break;
		g_ptr_array_add(ret_list->rows, event_dup(event));
	}
	ret_list->last = at;
	if (wait && ret_list->rows->len == 0)
		events->is_awaited = true;
	pthread_mutex_unlock(&events->lock);
}

void fsg_event_list_clear(FsgEventList *list)
{
	if (list->rows)
		g_ptr_array_unref(list->rows);
	memset(list, 0, sizeof *list);
}
