/* Keeping processes together without a pid namespace: what a command has left is found and killed at its end.
 *
 * Whoever loses its parent below a subreaper becomes the subreaper's child: of exec init, which is one for its command,
 * or of init, when that one is gone. So everything of an exec comes to be a child of ours sooner or later, and killing
 * the children, as often as there are any, kills everything. Only children are killed, and groups that one of them is in:
 * their numbers cannot have become another's, for they are ours to reap. A group is killed in one step, which also ends
 * those that make processes faster than we look. No command is in our group, and none can get there from
 * the session that it was started in.
 *
 * A command has our user here. It can kill or stop us, and what it does to others is not held up: this keeps order, and
 * is no boundary. */
#include "executor/init.h"

#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>

/* Processes of the host that are looked through to count ours; more are not counted. */
#define MAX_PROCESSES 32768

int init_plain_begin(void)
{
	return prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) != 0 ? -errno : 0;
}

static int look(InitVisit *visit, void *data)
{
	FD_AUTO proc = open("/proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	return proc < 0 ? -errno : init_stat_each(proc, visit, data);
}

typedef struct {
	InitStat known[MAX_PROCESSES];
	bool ours[MAX_PROCESSES];
	size_t count;
	bool too_many;
} Table;

static void note(const InitStat *process, void *data)
{
	Table *table = data;

	if (table->count == MAX_PROCESSES)
		table->too_many = true;
	else
		table->known[table->count++] = *process;
}

static int compare(const void *a, const void *b)
{
	const InitStat *one = a, *two = b;

	return (one->pid > two->pid) - (one->pid < two->pid);
}

/* Marks those whose parent is marked. false: there was none that was not. */
static bool mark(Table *table)
{
	bool marked = false;

	for (size_t i = 0; i < table->count; i++) {
		const InitStat key = { .pid = table->known[i].parent };
		const InitStat *parent;

		if (table->ours[i])
			continue;
		parent = bsearch(&key, table->known, table->count, sizeof key, compare);
		table->ours[i] =
			key.pid == getpid() || (parent && table->ours[parent - table->known]);
		marked |= table->ours[i];
	}
	return marked;
}

int init_plain_count(void)
{
	static Table table;
	int count = 0;

	if (waitpid(-1, NULL, WNOHANG) < 0)
		return 0; /* no children */
	table.count = 0;
	memset(table.ours, 0, sizeof table.ours);
	if (look(note, &table) < 0 || table.too_many)
		return -1;
	while (mark(&table))
		;
	for (size_t i = 0; i < table.count; i++)
		count += table.ours[i] && table.known[i].lives;
	return count;
}

typedef struct {
	bool their_orphans;
	int found;
} Hunt;

static void kill_child(const InitStat *process, void *data)
{
	Hunt *hunt = data;

	/* Exec inits are in our own group, and what commands leave is not. */
	if (process->parent != getpid() || !process->lives ||
	    (hunt->their_orphans && process->group == getpgrp()))
		return;
	hunt->found++;
	if (process->group > 1 && process->group != getpgrp())
		(void)kill(-process->group, SIGKILL);
	(void)kill(process->pid, SIGKILL);
}

/* Those that have ended; and whether there were any. false in *ret_has_more: there are no children any more. */
static bool reap_ended(bool *ret_has_more)
{
	bool reaped = false;
	pid_t pid;

	while ((pid = waitpid(-1, NULL, WNOHANG)) > 0)
		reaped = true;
	*ret_has_more = pid == 0;
	return reaped;
}

/* One that ends while we look hands its children to us behind our back: only a look during which none did is the last. */
void init_plain_kill(bool their_orphans)
{
	for (;;) {
		Hunt hunt = { .their_orphans = their_orphans };
		bool has_more, reaped = reap_ended(&has_more);

		if (!has_more || look(kill_child, &hunt) < 0)
			return;
		if (hunt.found == 0 && their_orphans) {
			if (!reaped)
				return;
			continue;
		}
		(void)waitpid(-1, NULL, 0);
	}
}
