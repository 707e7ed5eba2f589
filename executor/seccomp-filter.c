/* The program of the seccomp filter; see seccomp-filter.h and, for what is decided, seccomp-table.c.
 *
 * It looks at the architecture, then at the number, by halves: for most calls that is all, and the kernel, which tries
 * that out beforehand, does not run it for them at all. Behind the numbers of a few calls it looks at their arguments,
 * and what no rule refuses is allowed.
 *
 * libseccomp knows the numbers. The program is put together here, for libseccomp has neither ranges nor "any
 * of these bits": in its words it was 1,021 instructions in two programs, which each command's process
 * loads and frees again (0.3 ms of it). This runs when we are built, for seccomp-build.c; loading is for
 * seccomp-load.c, which runs where no library does. What the instructions do for every number and for the values
 * that matter of every argument is compared with the rules, written once more, by test-seccomp-rules.c.
 *
 * A comparison looks at exactly the bits of an argument that the kernel will look at: a set bit above them would make
 * the value another one for us and the same for the kernel (TIOCSTI went through filters so). Memory behind a pointer
 * is never judged: it can change between our look and the kernel's. */
#include "executor/seccomp-filter.h"

#include "executor/seccomp-table.h"

#include <errno.h>
#include <glib.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/ioprio.h>
#include <linux/netlink.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <seccomp.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/ioctl.h>
#include <sys/personality.h>
#include <sys/resource.h>
#include <sys/socket.h>

#ifndef CLONE_NEWTIME
#define CLONE_NEWTIME 0x80
#endif

#ifdef __x86_64__
#define NATIVE_ARCH AUDIT_ARCH_X86_64
/* From here on the numbers are those of x32, a foreign ABI with the same architecture; but for -1, which is what a tracer
 * writes to have a call left out. */
#define X32_FIRST 0x40000000u
#define X32_LAST  0xfffffffeu
#elif defined(__aarch64__)
#define NATIVE_ARCH AUDIT_ARCH_AARCH64
#else
#error "which architecture is native?"
#endif

#define REFUSED(errnum) (SECCOMP_RET_ERRNO | (uint32_t)(errnum))

/* Above any number that a call has. */
#define NUMBERS 1024
/* Of a table's run of numbers with one outcome, and of instructions: far more than there are. */
#define RUNS_MAX    512
#define PROGRAM_MAX 1024

typedef struct {
	struct sock_filter code[PROGRAM_MAX];
	size_t length;
	bool overflows; /* it has no room, or a jump is too far: it is no program */
} Program;

static void emit(Program *program, uint16_t code, uint32_t k, size_t if_true, size_t if_false)
{
	program->overflows |= program->length == PROGRAM_MAX || if_true > 255 || if_false > 255;
	if (!program->overflows)
		program->code[program->length++] =
			(struct sock_filter){ code, (uint8_t)if_true, (uint8_t)if_false, k };
}

static void load(Program *program, size_t offset)
{
	emit(program, BPF_LD | BPF_W | BPF_ABS, (uint32_t)offset, 0, 0);
}

/* The lower half of an argument: both architectures are little-endian. */
static void load_low(Program *program, unsigned int argument)
{
	load(program, offsetof(struct seccomp_data, args) + argument * sizeof(uint64_t));
}

static void load_high(Program *program, unsigned int argument)
{
	load(program,
	     offsetof(struct seccomp_data, args) + argument * sizeof(uint64_t) + sizeof(uint32_t));
}

static void answer(Program *program, uint32_t action)
{
	emit(program, BPF_RET | BPF_K, action, 0, 0);
}

/* What was loaded, if it is value, ends in that answer. */
static void answer_if_equal(Program *program, uint32_t value, uint32_t action)
{
	emit(program, BPF_JMP | BPF_JEQ | BPF_K, value, 0, 1);
	answer(program, action);
}

static void answer_if_any_bit(Program *program, uint32_t bits, uint32_t action)
{
	emit(program, BPF_JMP | BPF_JSET | BPF_K, bits, 0, 1);
	answer(program, action);
}

/* --- what is looked at behind the number; each ends in an answer --- */

static void judge_clone(Program *program)
{
	/* CLONE_NEWTIME is a bit of the exit signal here; clone3, which has it, is absent */
	load_low(program, 0);
	answer_if_any_bit(program,
			  CLONE_NEWNS | CLONE_NEWCGROUP | CLONE_NEWUTS | CLONE_NEWIPC |
				  CLONE_NEWUSER | CLONE_NEWPID | CLONE_NEWNET,
			  REFUSED(EPERM));
	answer(program, SECCOMP_RET_ALLOW);
}

/* Bits without a meaning today may unshare something tomorrow, so that all but the harmless ones are refused. */
static void judge_unshare(Program *program)
{
	static const uint32_t harmless =
		CLONE_FS | CLONE_FILES | CLONE_SYSVSEM | CLONE_SIGHAND | CLONE_THREAD | CLONE_VM;

	load_low(program, 0);
	answer_if_any_bit(program, ~harmless, REFUSED(EPERM));
	load_high(program, 0);
	answer_if_any_bit(program, UINT32_MAX, REFUSED(EPERM));
	answer(program, SECCOMP_RET_ALLOW);
}

static void judge_ioctl(Program *program)
{
	static const uint32_t requests[] = {
		TIOCSTI,   /* types into the terminal */
		TIOCLINUX, /* pastes into the console */
		TIOCSETD,  /* loads a line discipline, and with it a kernel module */
	};

	load_low(program, 1);
	for (size_t i = 0; i < G_N_ELEMENTS(requests); i++)
		answer_if_equal(program, requests[i], REFUSED(EPERM));
	answer(program, SECCOMP_RET_ALLOW);
}

/* Families and protocols that are refused, with the errno of what the kernel does not have. */
static void judge_socket(Program *program)
{
	load_low(program, 0);
	answer_if_equal(program, AF_UNIX, SECCOMP_RET_ALLOW);
	answer_if_equal(program, AF_INET6, SECCOMP_RET_ALLOW);
	/* over the four instructions about it */
	emit(program, BPF_JMP | BPF_JEQ | BPF_K, AF_NETLINK, 0, 4);
	load_low(program, 2);
	answer_if_equal(program, NETLINK_ROUTE, SECCOMP_RET_ALLOW);
	answer(program, REFUSED(EPROTONOSUPPORT));
	emit(program, BPF_JMP | BPF_JEQ | BPF_K, AF_INET, 1, 0);
	answer(program, REFUSED(EAFNOSUPPORT));
	/* The kernel takes this old spelling for AF_PACKET; the type has flags above its four bits. */
	load_low(program, 1);
	emit(program, BPF_ALU | BPF_AND | BPF_K, 0xf, 0, 0);
	answer_if_equal(program, SOCK_PACKET, REFUSED(EAFNOSUPPORT));
	answer(program, SECCOMP_RET_ALLOW);
}

/* Other personalities switch protections off (ADDR_NO_RANDOMIZE, READ_IMPLIES_EXEC, MMAP_PAGE_ZERO). PER_LINUX32 and
 * UNAME26 change what uname says; all bits set asks for the present value. */
static void judge_personality(Program *program)
{
	load_low(program, 0);
	answer_if_equal(program, UINT32_MAX, SECCOMP_RET_ALLOW);
	answer_if_any_bit(program, ~(uint32_t)(PER_LINUX32 | UNAME26), REFUSED(EPERM));
	answer(program, SECCOMP_RET_ALLOW);
}

/* Each exec's init is process 1 of what a command can see, with the ids of the command: what the command could
 * do to its limits and its share of the processor would change how the end is reported. "All processes of
 * the user" are such a way to it as well. */
static void judge_limits_of_process(Program *program)
{
	load_low(program, 0);
	answer_if_equal(program, 1, REFUSED(EPERM));
	answer(program, SECCOMP_RET_ALLOW);
}

static void judge_priority_of(Program *program, uint32_t whole_user)
{
	load_low(program, 0);
	answer_if_equal(program, whole_user, REFUSED(EPERM));
	load_low(program, 1);
	answer_if_equal(program, 1, REFUSED(EPERM));
	answer(program, SECCOMP_RET_ALLOW);
}

static void judge_setpriority(Program *program)
{
	judge_priority_of(program, PRIO_USER);
}

static void judge_ioprio_set(Program *program)
{
	judge_priority_of(program, IOPRIO_WHO_USER);
}

typedef void Judge(Program *program);

/* All of them are in the allowed part of the table. */
static const struct {
	const char *name;
	Judge *judge;
} judged[] = {
	{ "clone", judge_clone },
	{ "ioctl", judge_ioctl },
	{ "ioprio_set", judge_ioprio_set },
	{ "personality", judge_personality },
	{ "prlimit64", judge_limits_of_process },
	{ "sched_setaffinity", judge_limits_of_process },
	{ "sched_setattr", judge_limits_of_process },
	{ "sched_setparam", judge_limits_of_process },
	{ "sched_setscheduler", judge_limits_of_process },
	{ "setpriority", judge_setpriority },
	{ "socket", judge_socket },
	{ "socketpair", judge_socket },
	{ "unshare", judge_unshare },
};

/* --- the numbers --- */

typedef struct {
	uint32_t action; /* when there is nothing to judge */
	Judge *judge;	 /* or NULL */
} Outcome;

/* From this number on, to the next run's. */
typedef struct {
	uint32_t first;
	Outcome outcome;
} Run;

typedef struct {
	Run runs[RUNS_MAX];
	size_t count;
	bool overflows;
} Runs;

static void add_run(Runs *runs, uint32_t first, Outcome outcome)
{
	const Run *last = runs->count > 0 ? &runs->runs[runs->count - 1] : NULL;

	if (last && last->outcome.action == outcome.action && last->outcome.judge == outcome.judge)
		return;
	runs->overflows |= runs->count == RUNS_MAX;
	if (!runs->overflows)
		runs->runs[runs->count++] = (Run){ first, outcome };
}

static int fill_outcomes(Outcome outcomes[static NUMBERS])
{
	static const uint32_t actions[EXR_SECCOMP_N_CLASSES] = {
		[EXR_SECCOMP_ALLOW] = SECCOMP_RET_ALLOW,
		[EXR_SECCOMP_REFUSE] = REFUSED(EPERM),
		[EXR_SECCOMP_ABSENT] = REFUSED(ENOSYS),
	};

	/* what no name has */
	for (size_t i = 0; i < NUMBERS; i++)
		outcomes[i] = (Outcome){ .action = actions[EXR_SECCOMP_ABSENT] };
	for (size_t kind = 0; kind < EXR_SECCOMP_N_CLASSES; kind++)
		for (const char *const *name = exr_seccomp_names[kind]; *name; name++) {
			int number = exr_seccomp_number(*name);

			if (number >= NUMBERS)
				return -ERANGE;
			if (number >= 0)
				outcomes[number].action = actions[kind];
		}
	for (size_t i = 0; i < G_N_ELEMENTS(judged); i++) {
		int number = exr_seccomp_number(judged[i].name);

		if (number < 0 || number >= NUMBERS || outcomes[number].action != SECCOMP_RET_ALLOW)
			return -ERANGE;
		outcomes[number].judge = judged[i].judge;
	}
	return 0;
}

static int find_runs(Runs *runs)
{
	static Outcome outcomes[NUMBERS];
	static const Outcome absent = { .action = REFUSED(ENOSYS) };
	int r = fill_outcomes(outcomes);

	if (r < 0)
		return r;
	for (uint32_t number = 0; number < NUMBERS; number++)
		add_run(runs, number, outcomes[number]);
	add_run(runs, NUMBERS, absent);
#ifdef X32_FIRST
	add_run(runs, X32_FIRST, (Outcome){ .action = SECCOMP_RET_KILL_PROCESS });
	add_run(runs, X32_LAST + 1, absent);
#endif
	return runs->overflows ? -E2BIG : 0;
}

static void conclude(Program *program, const Outcome *outcome)
{
	if (outcome->judge)
		outcome->judge(program);
	else
		answer(program, outcome->action);
}

/* The number is loaded, and in one of these runs: the lower half of them comes first, and is jumped over. */
static void search(Program *program, const Run *runs, size_t count)
{
	size_t half = count / 2, jump = program->length;

	if (count == 1) {
		conclude(program, &runs->outcome);
		return;
	}
	emit(program, BPF_JMP | BPF_JGE | BPF_K, runs[half].first, 0, 0);
	search(program, runs, half);
	program->overflows |= program->length - jump - 1 > 255;
	if (program->overflows)
		return;
	program->code[jump].jt = (uint8_t)(program->length - jump - 1);
	search(program, runs + half, count - half);
}

int exr_seccomp_compile(ExrSeccomp *ret_seccomp)
{
	g_autofree Program *program = g_new0(Program, 1);
	g_autofree Runs *runs = g_new0(Runs, 1);
	int r = find_runs(runs);

	if (r < 0)
		return r;
	load(program, offsetof(struct seccomp_data, arch));
	emit(program, BPF_JMP | BPF_JEQ | BPF_K, NATIVE_ARCH, 1, 0);
	answer(program, SECCOMP_RET_KILL_PROCESS);
	load(program, offsetof(struct seccomp_data, nr));
	search(program, runs->runs, runs->count);
	if (program->overflows)
		return -E2BIG;
	ret_seccomp->size = program->length * sizeof program->code[0];
	ret_seccomp->code = g_memdup2(program->code, ret_seccomp->size);
	return 0;
}
