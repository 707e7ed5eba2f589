/* seccomp-filter: what the program answers, by a small interpreter of the kernel's BPF subset.
 *
 * Every number, and the values of arguments at their edges and at random, against a model that is
 * written another way. Nothing is called, so that reboot and the like can be among them; that the
 * kernel understands it as the interpreter does is for test-seccomp-filter.c. */
#include "executor/seccomp-filter.h"
#include "executor/seccomp-table.h"

#include <errno.h>
#include <glib.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/netlink.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <seccomp.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/personality.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>

#include <cmocka.h>

#ifndef CLONE_NEWTIME
#define CLONE_NEWTIME 0x80
#endif

#ifdef __x86_64__
#define NATIVE_ARCH AUDIT_ARCH_X86_64
#else
#define NATIVE_ARCH AUDIT_ARCH_AARCH64
#endif

#define REFUSED(errnum) (SECCOMP_RET_ERRNO | (errnum))
#define ALLOWED		SECCOMP_RET_ALLOW
#define KILLED		SECCOMP_RET_KILL_PROCESS

/* no call of the kernel comes near */
#define NUMBERS 1024

static ExrSeccomp filter;

static int build_filter(void **state)
{
	(void)state;
	return exr_seccomp_build(&filter);
}

static int clear_filter(void **state)
{
	(void)state;
	exr_seccomp_clear(&filter);
	return 0;
}

/* What one program answers, as the kernel would run it. */
static uint32_t run_program(const struct sock_filter *code, size_t length,
			    const struct seccomp_data *data)
{
	uint32_t a = 0;

	for (size_t pc = 0; pc < length; pc++) {
		const struct sock_filter *insn = &code[pc];
		bool taken = false;

		switch (insn->code) {
		case BPF_LD | BPF_W | BPF_ABS:
			assert_true(insn->k + sizeof a <= sizeof *data);
			memcpy(&a, (const char *)data + insn->k, sizeof a);
			continue;
		case BPF_ALU | BPF_AND | BPF_K:
			a &= insn->k;
			continue;
		case BPF_RET | BPF_K:
			return insn->k;
		case BPF_JMP | BPF_JEQ | BPF_K:
			taken = a == insn->k;
			break;
		case BPF_JMP | BPF_JSET | BPF_K:
			taken = a & insn->k;
			break;
		case BPF_JMP | BPF_JGE | BPF_K:
			taken = a >= insn->k;
			break;
		default:
			fail_msg("instruction 0x%x", insn->code);
		}
		pc += taken ? insn->jt : insn->jf;
	}
	fail_msg("the program has no end");
	return KILLED;
}

static uint32_t answer(uint32_t arch, int number, uint64_t arg0, uint64_t arg1, uint64_t arg2)
{
	struct seccomp_data data = { .nr = number, .arch = arch, .args = { arg0, arg1, arg2 } };

	return run_program(filter.code, filter.size / sizeof(struct sock_filter), &data);
}

static uint32_t native(int number, uint64_t arg0, uint64_t arg1, uint64_t arg2)
{
	return answer(NATIVE_ARCH, number, arg0, arg1, arg2);
}

/* In how many classes a name stands, and which is the last. */
static int find_name(const char *name, ExrSeccompClass *ret_class)
{
	int found = 0;

	for (int kind = 0; kind < EXR_SECCOMP_N_CLASSES; kind++)
		for (const char *const *row = exr_seccomp_names[kind]; *row; row++)
			if (strcmp(*row, name) == 0) {
				found++;
				*ret_class = (ExrSeccompClass)kind;
			}
	return found;
}

static void every_call_of_both_architectures_stands_in_one_class(void **state)
{
	static const uint32_t architectures[] = { SCMP_ARCH_X86_64, SCMP_ARCH_AARCH64 };
	ExrSeccompClass kind;
	int missing = 0;
	int names = 0;

	(void)state;
	for (size_t i = 0; i < G_N_ELEMENTS(architectures); i++) {
		for (int number = 0; number < NUMBERS; number++) {
			char *name = seccomp_syscall_resolve_num_arch(architectures[i], number);

			if (!name)
				continue;
			names++;
			if (find_name(name, &kind) != 1) {
				print_message("%s is in no class, or in several\n", name);
				missing++;
			}
			free(name);
		}
	}
	assert_true(names > 600);
	assert_int_equal(missing, 0);
}

static void no_number_has_two_names(void **state)
{
	bool seen[NUMBERS] = { false };
	int misspelt = 0;

	(void)state;
	for (int kind = 0; kind < EXR_SECCOMP_N_CLASSES; kind++) {
		for (const char *const *row = exr_seccomp_names[kind]; *row; row++) {
			int number = exr_seccomp_number(*row);

			assert_true(number < NUMBERS);
			/* a name that libseccomp does not know at all and that has no number of
			 * ours */
			if (number < 0 && seccomp_syscall_resolve_name(*row) == __NR_SCMP_ERROR &&
			    strcmp(*row, "uprobe") != 0 && strcmp(*row, "uretprobe") != 0) {
				print_message("no such call: %s\n", *row);
				misspelt++;
			}
			if (number < 0)
				continue;
			assert_false(seen[number]);
			seen[number] = true;
		}
	}
	assert_int_equal(misspelt, 0);
	assert_int_equal(exr_seccomp_number("no_such_call"), -1);
	assert_int_equal(exr_seccomp_number("statmount"), 457);
	assert_int_equal(exr_seccomp_number("openat"), SYS_openat);
}

static void every_number_gets_the_answer_of_its_class(void **state)
{
	uint32_t expected[NUMBERS];
	size_t counts[EXR_SECCOMP_N_CLASSES] = { 0 };

	(void)state;
	for (int number = 0; number < NUMBERS; number++)
		expected[number] = REFUSED(ENOSYS);
	for (int kind = 0; kind < EXR_SECCOMP_N_CLASSES; kind++) {
		static const uint32_t answers[] = { ALLOWED, REFUSED(EPERM), REFUSED(ENOSYS) };

		for (const char *const *row = exr_seccomp_names[kind]; *row; row++) {
			int number = exr_seccomp_number(*row);

			counts[kind]++;
			if (number >= 0)
				expected[number] = answers[kind];
		}
	}
	assert_true(counts[EXR_SECCOMP_ALLOW] > 250);
	assert_true(counts[EXR_SECCOMP_REFUSE] > 45);
	assert_true(counts[EXR_SECCOMP_ABSENT] > 20);
	for (int number = 0; number < NUMBERS; number++) {
		/* arguments that are harmless for the calls that are looked into:
		 * socket(AF_UNIX) */
		uint64_t arg0 = number == SYS_socket || number == SYS_socketpair ? AF_UNIX : 0;

		if (native(number, arg0, 0, 0) != expected[number])
			fail_msg("call %d: 0x%x, expected 0x%x", number, native(number, arg0, 0, 0),
				 expected[number]);
	}
	assert_int_equal(native(9999, 0, 0, 0), REFUSED(ENOSYS));
}

static void a_foreign_architecture_is_killed_whatever_the_call(void **state)
{
	static const uint32_t foreign[] = { AUDIT_ARCH_I386, AUDIT_ARCH_ARM, AUDIT_ARCH_X86_64,
					    AUDIT_ARCH_AARCH64, 0 };

	(void)state;
	for (size_t i = 0; i < G_N_ELEMENTS(foreign); i++)
		for (int number = 0; number < NUMBERS && foreign[i] != NATIVE_ARCH; number++)
			assert_int_equal(answer(foreign[i], number, 0, 0, 0), KILLED);
#ifdef __x86_64__
	/* x32 is the native architecture with a bit in the number */
	for (int number = 0; number < NUMBERS; number++)
		assert_int_equal(native(0x40000000 | number, 0, 0, 0), KILLED);
#endif
	assert_int_equal(native(SYS_getpid, 0, 0, 0), ALLOWED);
}

/* Values that an argument is tried with beside random ones: single bits and their complements. */
static uint64_t edge_value(unsigned int i, GRand *random)
{
	static const uint64_t some[] = { 0,	     8,		 0x20000,    0x20008,	 0xffffffff,
					 0xfffdffff, 0xfffffff7, 0xfffdfff7, 0x100000000 };

	if (i < 64)
		return UINT64_C(1) << i;
	if (i < 96)
		return 0xffffffff ^ UINT64_C(1) << (i - 64);
	if (i - 96 < G_N_ELEMENTS(some))
		return some[i - 96];
	return (uint64_t)g_rand_int(random) << 32 | g_rand_int(random);
}

static void arguments_are_judged_by_the_bits_that_the_kernel_uses(void **state)
{
	static const uint64_t new_flags = CLONE_NEWNS | CLONE_NEWCGROUP | CLONE_NEWUTS |
					  CLONE_NEWIPC | CLONE_NEWUSER | CLONE_NEWPID |
					  CLONE_NEWNET;
	static const uint64_t harmless = PER_LINUX32 | UNAME26;
	static const uint64_t unshared =
		CLONE_FS | CLONE_FILES | CLONE_SYSVSEM | CLONE_SIGHAND | CLONE_THREAD | CLONE_VM;
	GRand *random = g_rand_new_with_seed(1);
	unsigned int allowed = 0;
	unsigned int refused = 0;

	(void)state;
	for (unsigned int i = 0; i < 20000; i++) {
		uint64_t value = edge_value(i, random);
		uint32_t low = (uint32_t)value;
		bool same = !(low & ~harmless) || low == 0xffffffff;

		assert_int_equal(native(SYS_clone, value, 0, 0),
				 value & new_flags ? REFUSED(EPERM) : ALLOWED);
		assert_int_equal(native(SYS_unshare, value, 0, 0),
				 value & ~unshared ? REFUSED(EPERM) : ALLOWED);
		assert_int_equal(native(SYS_personality, value, 0, 0),
				 same ? ALLOWED : REFUSED(EPERM));
		allowed += same;
		refused += !same;
	}
	assert_true(allowed > 5 && refused > 5);
	assert_int_equal(native(SYS_unshare, CLONE_NEWTIME, 0, 0), REFUSED(EPERM));
	assert_int_equal(native(SYS_unshare, CLONE_FS | CLONE_FILES, 0, 0), ALLOWED);
	g_rand_free(random);
}

/* Process 1 is the exec's own init; every other one is the command's. */
static void the_limits_of_init_are_out_of_reach(void **state)
{
	static const int by_first[] = { SYS_prlimit64, SYS_sched_setaffinity,
					SYS_sched_setscheduler, SYS_sched_setparam,
					SYS_sched_setattr };
	static const int by_second[] = { SYS_setpriority, SYS_ioprio_set };

	(void)state;
	for (uint64_t pid = 0; pid < 1000; pid++) {
		uint32_t expected = pid == 1 ? REFUSED(EPERM) : ALLOWED;
		uint64_t high = pid | UINT64_C(1) << 40; /* the kernel does not look there */

		for (size_t i = 0; i < G_N_ELEMENTS(by_first); i++) {
			assert_int_equal(native(by_first[i], pid, 1, 0), expected);
			assert_int_equal(native(by_first[i], high, 1, 0), expected);
		}
		for (size_t i = 0; i < G_N_ELEMENTS(by_second); i++) {
			assert_int_equal(native(by_second[i], 1, pid, 0), expected);
			assert_int_equal(native(by_second[i], 1, high, 0), expected);
		}
	}
}

/* Process 1 is one of the user's. */
static void the_whole_user_is_not_slowed_down(void **state)
{
	static const struct {
		int call;
		uint64_t which, user;
	} calls[] = {
		{ SYS_setpriority, 3, PRIO_USER },
		{ SYS_ioprio_set, 4, 3 /* IOPRIO_WHO_USER */ },
	};

	(void)state;
	for (size_t i = 0; i < G_N_ELEMENTS(calls); i++)
		for (uint64_t which = 0; which < calls[i].which; which++) {
			uint32_t expected = which == calls[i].user ? REFUSED(EPERM) : ALLOWED;
			uint64_t high = which | UINT64_C(1) << 40;

			assert_int_equal(native(calls[i].call, which, 0, 0), expected);
			assert_int_equal(native(calls[i].call, high, 1000, 0), expected);
		}
}

static void only_three_terminal_ioctls_are_refused(void **state)
{
	(void)state;
	for (uint64_t request = 0; request < 0x10000; request++) {
		bool refused = request == TIOCSTI || request == TIOCLINUX || request == TIOCSETD;
		uint32_t expected = refused ? REFUSED(EPERM) : ALLOWED;

		assert_int_equal(native(SYS_ioctl, 0, request, 0), expected);
		assert_int_equal(native(SYS_ioctl, 0, request | UINT64_C(1) << 32, 0), expected);
		assert_int_equal(native(SYS_ioctl, 0, request | UINT64_C(1) << 63, 0), expected);
		assert_int_equal(native(SYS_ioctl, 0, request | 0x10000, 0), ALLOWED);
	}
}

static uint32_t socket_model(uint32_t family, uint32_t type, uint32_t protocol)
{
	switch (family) {
	case AF_UNIX:
	case AF_INET6:
		return ALLOWED;
	case AF_INET:
		return (type & 0xf) == SOCK_PACKET ? REFUSED(EAFNOSUPPORT) : ALLOWED;
	case AF_NETLINK:
		return protocol == NETLINK_ROUTE ? ALLOWED : REFUSED(EPROTONOSUPPORT);
	default:
		return REFUSED(EAFNOSUPPORT);
	}
}

static void what_was_compiled_beforehand_is_what_would_be_now(void **state)
{
	ExrSeccomp now = { 0 };

	(void)state;
	assert_int_equal(exr_seccomp_compile(&now), 0);
	assert_int_equal(filter.size, now.size);
	assert_memory_equal(filter.code, now.code, now.size);
	exr_seccomp_clear(&now);
}

static void sockets_are_judged_by_family_and_protocol(void **state)
{
	static const int calls[] = { SYS_socket, SYS_socketpair };

	(void)state;
	for (size_t i = 0; i < G_N_ELEMENTS(calls); i++)
		for (uint32_t family = 0; family < 70; family++)
			for (uint32_t type = 0; type < 32; type++)
				for (uint32_t protocol = 0; protocol < 40; protocol++) {
					uint32_t expected = socket_model(family, type, protocol);
					uint64_t high = UINT64_C(0xdead) << 32;

					assert_int_equal(native(calls[i], family, type, protocol),
							 expected);
					assert_int_equal(native(calls[i], family | high,
								type | high, protocol | high),
							 expected);
				}
	/* the flags of the type hide nothing */
	assert_int_equal(native(SYS_socket, AF_INET, SOCK_PACKET | SOCK_CLOEXEC, 0),
			 REFUSED(EAFNOSUPPORT));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_call_of_both_architectures_stands_in_one_class),
		cmocka_unit_test(no_number_has_two_names),
		cmocka_unit_test(every_number_gets_the_answer_of_its_class),
		cmocka_unit_test(a_foreign_architecture_is_killed_whatever_the_call),
		cmocka_unit_test(arguments_are_judged_by_the_bits_that_the_kernel_uses),
		cmocka_unit_test(the_limits_of_init_are_out_of_reach),
		cmocka_unit_test(the_whole_user_is_not_slowed_down),
		cmocka_unit_test(only_three_terminal_ioctls_are_refused),
		cmocka_unit_test(what_was_compiled_beforehand_is_what_would_be_now),
		cmocka_unit_test(sockets_are_judged_by_family_and_protocol),
	};

	return cmocka_run_group_tests(tests, build_filter, clear_filter);
}
