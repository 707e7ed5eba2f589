/* Which exec a request is from: the pid namespace of the process that asks, by the number of its inode, which no other
 * namespace has as long as this one lives. Every exec has one of its own, which no process of it can leave
 * (executor/README.md), and the kernel keeps its numbers; so it says the same whatever the process has made of itself.
 *
 * Asked for refusals and changes only, while the process waits for its answer. What was found is kept for a moment, so
 * that a number that another process gets later is not mistaken for the first one's: the kernel goes through all the
 * others before it gives one again.
 *
 * Any thread at once; the lock is a leaf. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

typedef struct FsgClients FsgClients;

FsgClients *fsg_clients_new(void);
void fsg_clients_free(FsgClients *clients); /* NULL is allowed, here and below */

/* The procfs in which the kernel's pids are found; taken. Before any other thread exists. */
void fsg_clients_set_tasks(FsgClients *clients, int take_tasks_fd);
/* Whether there is one, so that clients can be told apart. */
bool fsg_clients_are_known(const FsgClients *clients);

/* The pid namespace of the task with that number, or 0: not known. */
uint64_t fsg_client_pid_namespace(FsgClients *clients, pid_t tid);

/* An exec has ended: nothing that was found before holds. */
void fsg_clients_forget(FsgClients *clients);
