/* See client.h. */
#include "fsgate/client.h"

#include "common/fd-util.h"

#include <fcntl.h>
#include <glib.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

/* How long an answer may be used. A machine would have to start all processes that it has numbers for, some
 * ten thousand at the least, in less. */
#define KEPT_MS 50

#define SLOTS 64

typedef struct {
	pid_t tid; /* 0: empty */
	uint64_t pid_namespace;
	int64_t found_ms;
} Slot;

struct FsgClients {
	int tasks_fd; /* constant once threads run; owned */
	pthread_mutex_t lock;
	Slot slots[SLOTS]; /* by tid */
	uint64_t round;	   /* of fsg_clients_forget() */
};

FsgClients *fsg_clients_new(void)
{
	FsgClients *clients = g_new0(FsgClients, 1);

	clients->tasks_fd = -1;
	pthread_mutex_init(&clients->lock, NULL);
	return clients;
}

void fsg_clients_free(FsgClients *clients)
{
	if (!clients)
		return;
	fd_close(&clients->tasks_fd);
	pthread_mutex_destroy(&clients->lock);
	g_free(clients);
}

void fsg_clients_set_tasks(FsgClients *clients, int take_tasks_fd)
{
	if (clients)
		clients->tasks_fd = fd_steal(&take_tasks_fd);
	fd_close(&take_tasks_fd);
}

bool fsg_clients_are_known(const FsgClients *clients)
{
	return clients && clients->tasks_fd >= 0;
}

/* The coarse clock is the cheapest, and off by some milliseconds at the most. */
static int64_t now_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
	return now.tv_sec * 1000ll + now.tv_nsec / 1000000;
}

/* Follows the link to the namespace on purpose: it is the kernel's own, and leads to no file. Needs what ptrace needs, which
 * the owner of the session's user namespace has over all that runs in it, whatever a serving thread acts as. */
static uint64_t look_up(const FsgClients *clients, pid_t tid)
{
	char path[32];
	struct stat st;

	snprintf(path, sizeof path, "%d/ns/pid", (int)tid);
	return fstatat(clients->tasks_fd, path, &st, 0) == 0 ? st.st_ino : 0;
}

uint64_t fsg_client_pid_namespace(FsgClients *clients, pid_t tid)
{
	uint64_t found = 0, round;
	int64_t now;
	Slot *slot;

	if (!fsg_clients_are_known(clients) || tid <= 0)
		return 0;
	now = now_ms();
	slot = &clients->slots[(unsigned int)tid % SLOTS];
	pthread_mutex_lock(&clients->lock);
	if (slot->tid == tid && now - slot->found_ms <= KEPT_MS)
		found = slot->pid_namespace;
	round = clients->round;
	pthread_mutex_unlock(&clients->lock);
	if (found != 0 || (found = look_up(clients, tid)) == 0)
		return found;
	pthread_mutex_lock(&clients->lock);
	if (round == clients->round)
		*slot = (Slot){ .tid = tid, .pid_namespace = found, .found_ms = now };
	pthread_mutex_unlock(&clients->lock);
	return found;
}

void fsg_clients_forget(FsgClients *clients)
{
	if (!clients)
		return;
	pthread_mutex_lock(&clients->lock);
	memset(clients->slots, 0, sizeof clients->slots);
	clients->round++;
	pthread_mutex_unlock(&clients->lock);
}
