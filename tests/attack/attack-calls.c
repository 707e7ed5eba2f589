/* Every system call of the table (`NUMBER ANSWER NAME` a line; argument: its file), by its number: by the native
 * entry, by int 0x80 and by the x32 numbers, from the main and from a second thread.
 *
 * All arguments are -1: no such fd, address, size or flag exists, so that without the filter nothing comes of the
 * calls either. Outside, as root of namespaces of its own, most of them fail for another reason then; how many is
 * what shows that a refusal inside is the filter's. */
#include "probe.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#define MAX_CALLS 600

typedef struct {
	int number;
	char answer[16];
	char name[40];
} Row;

typedef struct {
	const Row *row;
	bool in_thread;
	long (*enter)(long number);
} Try;

/* Their success is the end, or a pause, of the caller, or leaves its thread without a way to be waited for; uprobe and
 * uretprobe end who is not traced. */
static const char *const not_made[] = {
	"exit",	  "exit_group", "fork", "vfork",	"clone",	   "pause",
	"uprobe", "uretprobe",	"sync", "rt_sigreturn", "set_tid_address",
};

static long enter_natively(long number)
{
	return syscall((int)number, -1L, -1L, -1L, -1L, -1L, -1L) < 0 ? -errno : 0;
}

#ifdef __x86_64__
static long enter_by_int80(long number)
{
	long result = number;

	__asm__ volatile("int $0x80"
			 : "+a"(result)
			 : "b"(-1L), "c"(-1L), "d"(-1L), "S"(-1L), "D"(-1L)
			 : "r8", "r9", "r10", "r11", "memory");
	return result;
}

static long enter_x32(long number)
{
	return enter_natively(0x40000000 | number);
}
#endif

static int enter(void *data)
{
	const Try *try = data;
	long result = try->enter(try->row->number);

	return result < 0 ? (int)-result : 0;
}

static void *enter_and_forget(void *data)
{
	enter(data);
	return NULL;
}

/* When a call kills only the thread that makes it, the process ends by itself. */
static int enter_in_thread(void *data)
{
	pthread_t thread;

	if (pthread_create(&thread, NULL, enter_and_forget, data) != 0)
		return EAGAIN;
	for (int i = 0; i < 100 && pthread_tryjoin_np(thread, NULL) != 0; i++)
		poll(NULL, 0, 10);
	return 0;
}

static int enter_in_this_thread(void *data)
{
	setsid();
	return enter(data);
}

static int enter_by_second_thread(void *data)
{
	setsid();
	return probe_in_thread(enter, data);
}

static bool is_made(const Row *row)
{
	for (size_t i = 0; i < sizeof not_made / sizeof not_made[0]; i++)
		if (strcmp(row->name, not_made[i]) == 0)
			return false;
	return true;
}

static int read_rows(const char *path, Row *rows)
{
	FILE *file = fopen(path, "re");
	int count = 0;

	while (file && count < MAX_CALLS &&
	       fscanf(file, "%d %15s %39s", &rows[count].number, rows[count].answer,
		      rows[count].name) == 3)
		count++;
	if (file)
		fclose(file);
	return count;
}

/* What each call answers natively. A call that is allowed is one that the kernel answers, with whatever: neither
 * refusal but for the few that say so for such arguments themselves. */
static void try_natively(Probe *probe, const Row *rows, int count, bool in_thread)
{
	int (*const body)(void *) = in_thread ? enter_by_second_thread : enter_in_this_thread;
	int refused_outside = 0, others = 0, allowed = 0;

	for (int i = 0; i < count; i++) {
		Try try = { .row = &rows[i], .enter = enter_natively };
		bool allows = strcmp(rows[i].answer, "allowed") == 0;
		char name[96];
		int got;

		if (!is_made(&rows[i]))
			continue;
		got = probe_in_child(body, &try);
		snprintf(name, sizeof name, "%s, %s thread", rows[i].name,
			 in_thread ? "second" : "main");
		if (allows) {
			allowed += got != EPERM && got != ENOSYS;
			others += got == EPERM || got == ENOSYS;
			if (got == EPERM || got == ENOSYS)
				probe_check(probe, name, (Expected){ "*", "*" }, got);
		} else {
			refused_outside += got != EPERM && got != ENOSYS;
			probe_check(probe, name, (Expected){ rows[i].answer, "*" }, got);
		}
	}
	printf("allowed calls: %d answered, %d say EPERM or ENOSYS themselves\n", allowed, others);
	probe_that(probe, "allowed calls are answered by the kernel", allowed > 250 && others < 20);
	probe_check(probe, "refused calls that the kernel would answer",
		    (Expected){ "0", "EINPROGRESS" },
		    refused_outside > 45 ? EINPROGRESS : refused_outside);
}

static int unknown_number(void *data)
{
	return PROBE_CALL(syscall(*(int *)data, -1L, -1L, -1L, -1L, -1L, -1L));
}

static void try_unknown(Probe *probe, const Row *rows, int count)
{
	int largest = 0;

	for (int i = 0; i < count; i++)
		largest = rows[i].number > largest ? rows[i].number : largest;
	for (int number = largest + 1; number < largest + 40; number++) {
		char name[64];

		snprintf(name, sizeof name, "call %d, of a later kernel", number);
		probe_check(probe, name, (Expected){ "ENOSYS", "*" },
			    probe_in_child(unknown_number, &number));
	}
}

#ifdef __x86_64__
/* One line for all of an entry: hundreds are killed in the same way. */
static void try_foreign(Probe *probe, const Row *rows, int count, const char *what,
			long (*entry)(long number), bool in_thread)
{
	int killed = 0, made = 0;
	char name[96];

	for (int i = 0; i < count; i++) {
		Try try = { .row = &rows[i], .enter = entry };
		int got = probe_in_child(in_thread ? enter_in_thread : enter, &try);

		made++;
		killed += got == 1000 + SIGSYS;
		if (got != 1000 + SIGSYS) {
			snprintf(name, sizeof name, "%s %s", what, rows[i].name);
			probe_check(probe, name, (Expected){ "SIGSYS", "*" }, got);
		}
	}
	snprintf(name, sizeof name, "%s, %s thread, %d calls kill the process", what,
		 in_thread ? "second" : "main", made);
	probe_that(probe, name, killed == made && made > 300);
}

/* A kernel without that entry faults at it, or has no such number, filter or not. */
static void try_entries(Probe *probe, const Row *rows, int count)
{
	Row getpid_i386 = { .number = 20, .name = "getpid" };
	Row getpid_x32 = { .number = SYS_getpid, .name = "getpid" };
	Try i386 = { .row = &getpid_i386, .enter = enter_by_int80 };
	Try x32 = { .row = &getpid_x32, .enter = enter_x32 };

	if (probe->outside) {
		probe_check(probe, "int 0x80", (Expected){ "*", "0|SIGSEGV" },
			    probe_in_child(enter, &i386));
		probe_check(probe, "x32", (Expected){ "*", "0|ENOSYS" },
			    probe_in_child(enter, &x32));
		return;
	}
	for (int in_thread = 0; in_thread < 2; in_thread++) {
		if (probe_in_child(enter, &i386) == 1000 + SIGSEGV)
			printf("this kernel has no int 0x80\n");
		else
			try_foreign(probe, rows, count, "int 0x80", enter_by_int80, in_thread);
		try_foreign(probe, rows, count, "x32", enter_x32, in_thread);
	}
}
#endif

int main(int argc, char **argv)
{
	static Row rows[MAX_CALLS];
	Probe probe = probe_begin(argc, argv);
	int count = probe.argc == 1 ? read_rows(probe.argv[0], rows) : 0;

	probe_that(&probe, "the table is there", count > 300);
	try_natively(&probe, rows, count, false);
	try_natively(&probe, rows, count, true);
	try_unknown(&probe, rows, count);
#ifdef __x86_64__
	try_entries(&probe, rows, count);
#endif
	return probe_end(&probe);
}
