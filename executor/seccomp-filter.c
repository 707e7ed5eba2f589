/* The two programs of the seccomp filter; see seccomp-filter.h and, for what is decided,
 * seccomp-table.c.
 *
 * The first program is the table: it looks at the number only, so that the kernel can tell
 * beforehand which calls it allows whatever the arguments and not run it for them at all. The
 * second looks at the arguments of the few calls where they matter, and lets all else pass. The
 * kernel runs both, and the strictest answer counts. Loading them is for seccomp-load.c, which runs
 * where libseccomp does not.
 *
 * Arguments are 64 bits wide here, whatever the C type: a comparison looks at exactly the bits that
 * the kernel will look at, or a set bit above them would make the value another one for us and the
 * same for the kernel (TIOCSTI went through filters so). Memory behind a pointer is never judged:
 * it can change between our look and the kernel's. */
#include "executor/seccomp-filter.h"

#include "common/fd-util.h"
#include "common/io-util.h"
#include "executor/seccomp-table.h"

#include <errno.h>
#include <glib.h>
#include <linux/filter.h>
#include <linux/netlink.h>
#include <sched.h>
#include <seccomp.h>
#include <stdint.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/personality.h>
#include <sys/socket.h>
#include <unistd.h>

#ifndef CLONE_NEWTIME
#define CLONE_NEWTIME 0x80
#endif

/* The bits of an int, of which the kernel takes so many from the argument. */
#define LOW32 UINT64_C(0xffffffff)

/* Above these the kernel itself refuses, with the same errno. */
#define FAMILIES	  64
#define NETLINK_PROTOCOLS 32

static void release(scmp_filter_ctx *context)
{
	if (*context)
		seccomp_release(*context);
}

#define CONTEXT_AUTO __attribute__((cleanup(release))) scmp_filter_ctx

static int new_context(uint32_t default_action, scmp_filter_ctx *ret_context)
{
	CONTEXT_AUTO context = seccomp_init(default_action);
	int r;

	if (!context)
		return -ENOMEM;
	/* libseccomp's own default ends the thread only, and leaves a process that is half dead */
	r = seccomp_attr_set(context, SCMP_FLTATR_ACT_BADARCH, SCMP_ACT_KILL_PROCESS);
	if (r < 0)
		return r;
	*ret_context = g_steal_pointer(&context);
	return 0;
}

static int add_table(scmp_filter_ctx context)
{
	static const struct {
		ExrSeccompClass kind;
		uint32_t action;
	} actions[] = {
		{ EXR_SECCOMP_ALLOW, SCMP_ACT_ALLOW },
		{ EXR_SECCOMP_REFUSE, SCMP_ACT_ERRNO(EPERM) },
		/* EXR_SECCOMP_ABSENT is what the program answers to every other number */
	};

	for (size_t i = 0; i < G_N_ELEMENTS(actions); i++) {
		for (const char *const *name = exr_seccomp_names[actions[i].kind]; *name; name++) {
			int number = exr_seccomp_number(*name);
			int r = number < 0
					? 0
					: seccomp_rule_add(context, actions[i].action, number, 0);

			if (r < 0)
				return r;
		}
	}
	return 0;
}

/* Refuses the call with errnum when (argument & mask) == value. */
static int refuse(scmp_filter_ctx context, int errnum, int number, unsigned int argument,
		  uint64_t mask, uint64_t value)
{
	return seccomp_rule_add(context, SCMP_ACT_ERRNO((uint32_t)errnum), number, 1,
				SCMP_CMP64(argument, SCMP_CMP_MASKED_EQ, mask, value));
}

static int add_namespaces(scmp_filter_ctx context)
{
	static const uint64_t clone_flags[] = {
		CLONE_NEWNS,   CLONE_NEWCGROUP, CLONE_NEWUTS, CLONE_NEWIPC,
		CLONE_NEWUSER, CLONE_NEWPID,	CLONE_NEWNET,
		/* CLONE_NEWTIME is the exit signal's bit here */
	};
	static const uint64_t unshare_allowed =
		CLONE_FS | CLONE_FILES | CLONE_SYSVSEM | CLONE_SIGHAND | CLONE_THREAD | CLONE_VM;

	for (size_t i = 0; i < G_N_ELEMENTS(clone_flags); i++) {
		int r = refuse(context, EPERM, SCMP_SYS(clone), 0, clone_flags[i], clone_flags[i]);

		if (r < 0)
			return r;
	}
	/* Bits without a meaning today may unshare something tomorrow, so that all but the harmless
	 * ones are refused. */
	for (unsigned int bit = 0; bit < 64; bit++) {
		uint64_t flag = UINT64_C(1) << bit;
		int r = flag & unshare_allowed
				? 0
				: refuse(context, EPERM, SCMP_SYS(unshare), 0, flag, flag);

		if (r < 0)
			return r;
	}
	return 0;
}

static int add_ioctls(scmp_filter_ctx context)
{
	static const uint64_t requests[] = {
		TIOCSTI,   /* types into the terminal */
		TIOCLINUX, /* pastes into the console */
		TIOCSETD,  /* loads a line discipline, and with it a kernel module */
	};

	for (size_t i = 0; i < G_N_ELEMENTS(requests); i++) {
		int r = refuse(context, EPERM, SCMP_SYS(ioctl), 1, LOW32, requests[i]);

		if (r < 0)
			return r;
	}
	return 0;
}

static int add_sockets_of(scmp_filter_ctx context, int number)
{
	int r;

	for (uint64_t family = 0; family < FAMILIES; family++) {
		if (family == AF_UNIX || family == AF_INET || family == AF_INET6 ||
		    family == AF_NETLINK)
			continue;
		r = refuse(context, EAFNOSUPPORT, number, 0, LOW32, family);
		if (r < 0)
			return r;
	}
	for (uint64_t protocol = 0; protocol < NETLINK_PROTOCOLS; protocol++) {
		if (protocol == NETLINK_ROUTE)
			continue;
		r = seccomp_rule_add(context, SCMP_ACT_ERRNO(EPROTONOSUPPORT), number, 2,
				     SCMP_A0_64(SCMP_CMP_MASKED_EQ, LOW32, (uint64_t)AF_NETLINK),
				     SCMP_A2_64(SCMP_CMP_MASKED_EQ, LOW32, protocol));
		if (r < 0)
			return r;
	}
	/* The kernel takes this old spelling for AF_PACKET; the type has flags above its four
	 * bits. */
	return seccomp_rule_add(
		context, SCMP_ACT_ERRNO(EAFNOSUPPORT), number, 2,
		SCMP_A0_64(SCMP_CMP_MASKED_EQ, LOW32, (uint64_t)AF_INET),
		SCMP_A1_64(SCMP_CMP_MASKED_EQ, UINT64_C(0xf), (uint64_t)SOCK_PACKET));
}

static int add_sockets(scmp_filter_ctx context)
{
	int r = add_sockets_of(context, SCMP_SYS(socket));

	return r < 0 ? r : add_sockets_of(context, SCMP_SYS(socketpair));
}

/* Other personalities switch protections off (ADDR_NO_RANDOMIZE, READ_IMPLIES_EXEC,
 * MMAP_PAGE_ZERO). PER_LINUX32 and UNAME26 change what uname says; all bits set asks for the
 * present value. */
static int add_personality(scmp_filter_ctx context)
{
	static const uint64_t harmless[] = { PER_LINUX32, UNAME26 };
	uint64_t harmful = LOW32 & ~(harmless[0] | harmless[1]);
	int r;

	/* Some harmful bits are set, not all: going round the harmful bits, a set one is followed
	 * by a clear one somewhere. */
	for (uint64_t bit = 1; bit <= harmful; bit <<= 1) {
		uint64_t next = bit;

		if (!(bit & harmful))
			continue;
		do
			next = next << 1 & LOW32 ? next << 1 : 1;
		while (!(next & harmful));
		r = refuse(context, EPERM, SCMP_SYS(personality), 0, bit | next, bit);
		if (r < 0)
			return r;
	}
	/* All harmful bits are set, and yet it is not the question. */
	for (size_t i = 0; i < G_N_ELEMENTS(harmless); i++) {
		r = refuse(context, EPERM, SCMP_SYS(personality), 0, harmful | harmless[i],
			   harmful);
		if (r < 0)
			return r;
	}
	return 0;
}

/* Each exec's init is process 1 of what a command can see, with the ids of the command: what the command could
 * do to its limits and its share of the processor would change how the end is reported. */
static int add_init_controls(scmp_filter_ctx context)
{
	static const struct {
		int number;
		unsigned int argument; /* which one is the process */
	} controls[] = {
		{ SCMP_SYS(prlimit64), 0 },	     { SCMP_SYS(sched_setaffinity), 0 },
		{ SCMP_SYS(sched_setscheduler), 0 }, { SCMP_SYS(sched_setparam), 0 },
		{ SCMP_SYS(sched_setattr), 0 },	     { SCMP_SYS(setpriority), 1 },
		{ SCMP_SYS(ioprio_set), 1 },
	};

	for (size_t i = 0; i < G_N_ELEMENTS(controls); i++) {
		int r = refuse(context, EPERM, controls[i].number, controls[i].argument, LOW32, 1);

		if (r < 0)
			return r;
	}
	return 0;
}

static int add_arguments(scmp_filter_ctx context)
{
	static int (*const parts[])(scmp_filter_ctx context) = {
		add_namespaces, add_ioctls, add_sockets, add_personality, add_init_controls,
	};

	for (size_t i = 0; i < G_N_ELEMENTS(parts); i++) {
		int r = parts[i](context);

		if (r < 0)
			return r;
	}
	return 0;
}

/* The program of a context. libseccomp 2.5 can only write it to an fd. */
static int export(scmp_filter_ctx context, void **ret_code, size_t *ret_size)
{
	g_autofree char *code = NULL;
	size_t size;
	FD_AUTO fd = memfd_create("stella-seccomp", MFD_CLOEXEC);
	int r;

	if (fd < 0)
		return -errno;
	r = seccomp_export_bpf(context, fd);
	if (r < 0)
		return r;
	if (lseek(fd, 0, SEEK_SET) != 0)
		return -errno;
	r = io_read_to_end(fd, BPF_MAXINSNS * sizeof(struct sock_filter), &code, &size);
	if (r < 0)
		return r;
	if (size == 0 || size % sizeof(struct sock_filter) != 0)
		return -EIO;
	*ret_code = g_steal_pointer(&code);
	*ret_size = size;
	return 0;
}

int exr_seccomp_build(ExrSeccomp *ret_seccomp)
{
	ExrSeccomp built = { 0 };
	CONTEXT_AUTO table = NULL;
	CONTEXT_AUTO arguments = NULL;
	int r;

	r = new_context(SCMP_ACT_ERRNO(ENOSYS), &table);
	if (r < 0)
		return r;
	/* hundreds of numbers: a binary tree instead of a chain */
	r = seccomp_attr_set(table, SCMP_FLTATR_CTL_OPTIMIZE, 2);
	if (r < 0)
		return r;
	r = add_table(table);
	if (r < 0)
		return r;
	r = new_context(SCMP_ACT_ALLOW, &arguments);
	if (r < 0)
		return r;
	r = add_arguments(arguments);
	if (r < 0)
		return r;
	r = export(table, &built.code[0], &built.size[0]);
	if (r >= 0)
		r = export(arguments, &built.code[1], &built.size[1]);
	if (r < 0) {
		exr_seccomp_clear(&built);
		return r;
	}
	*ret_seccomp = built;
	return 0;
}

void exr_seccomp_clear(ExrSeccomp *seccomp)
{
	for (size_t i = 0; i < EXR_SECCOMP_PROGRAMS; i++)
		g_clear_pointer(&seccomp->code[i], g_free);
	memset(seccomp->size, 0, sizeof seccomp->size);
}
