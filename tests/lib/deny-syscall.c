/* deny-syscall NAME[:ARG=VALUE][,NAME...] ERRNO -- PROGRAM [ARG...]
 *
 * Runs a program for which these system calls fail with that errno ("ENOSYS", or a number), as on a
 * kernel or in a container that does not have them. A call may be named by its number too, and be denied
 * only when one of its arguments, counted from 0, has a value ("fsconfig:1=0").
 *
 * With CAP_SYS_ADMIN the filter is loaded without no_new_privs, so that set-user-ID programs
 * further down work as they do without it; otherwise the kernel insists on no_new_privs. Exit
 * status: the program's; 125 when the filter could not be made, 126 or 127 when the program could
 * not be run. */
#include "common/errno-util.h"
#include "common/syscall-wrap.h"

#include <errno.h>
#include <glib.h>
#include <seccomp.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define STATUS_FAILED 125

static int fail(const char *what, const char *why)
{
	fprintf(stderr, "deny-syscall: %s: %s\n", what, why);
	return STATUS_FAILED;
}

/* A whole decimal number in [0, limit], or -1. */
static int parse_number(const char *text, guint64 limit)
{
	guint64 number;

	if (!g_ascii_string_to_unsigned(text, 10, 0, limit, &number, NULL))
		return -1;
	return (int)number;
}

static int parse_errno(const char *text)
{
	for (int errnum = 1; errnum < 200; errnum++)
		if (strcmp(errno_name(errnum), text) == 0)
			return errnum;
	return parse_number(text, 4095);
}

static bool is_privileged(void)
{
	uint64_t effective, permitted, inheritable;

	if (sys_capget(&effective, &permitted, &inheritable) < 0)
		return false;
	return effective & UINT64_C(1) << CAP_SYS_ADMIN;
}

/* Splits "NAME:ARG=VALUE" in place. 0 conditions or 1 in *ret_condition; -1 for a mistake. */
static int parse_condition(char *text, struct scmp_arg_cmp *ret_condition)
{
	char *colon = strchr(text, ':'), *equals = colon ? strchr(colon, '=') : NULL;
	int argument;
	guint64 value;

	if (!colon)
		return 0;
	if (!equals)
		return -1;
	*colon = *equals = '\0';
	argument = parse_number(colon + 1, 5);
	if (argument < 0 ||
	    !g_ascii_string_to_unsigned(equals + 1, 10, 0, G_MAXUINT64, &value, NULL))
		return -1;
	*ret_condition = SCMP_CMP64((unsigned int)argument, SCMP_CMP_EQ, value, 0);
	return 1;
}

static int load_filter(char *const *names, int errnum)
{
	scmp_filter_ctx context = seccomp_init(SCMP_ACT_ALLOW);
	int r;

	if (!context)
		return fail("seccomp_init", errno_text(ENOMEM));
	for (; *names; names++) {
		struct scmp_arg_cmp condition = { .arg = 0 };
		int conditions = parse_condition(*names, &condition);
		int number = seccomp_syscall_resolve_name(*names);

		if (number < 0)
			number = parse_number(*names, 65535);
		if (number < 0 || conditions < 0) {
			seccomp_release(context);
			return fail(*names, "no such system call here");
		}
		r = seccomp_rule_add_array(context, SCMP_ACT_ERRNO((uint32_t)errnum), number,
					   (unsigned int)conditions, &condition);
		if (r < 0)
			break;
	}
	if (!*names) {
		/* programs of another architecture are not what is tested: they run as they are */
		r = seccomp_attr_set(context, SCMP_FLTATR_ACT_BADARCH, SCMP_ACT_ALLOW);
		if (r >= 0)
			r = seccomp_attr_set(context, SCMP_FLTATR_CTL_NNP, !is_privileged());
		if (r >= 0)
			r = seccomp_load(context);
	}
	seccomp_release(context);
	return r < 0 ? fail("load the filter", errno_text(-r)) : 0;
}

int main(int argc, char **argv)
{
	g_auto(GStrv) names = NULL;
	int errnum;
	int status;

	if (argc < 5 || strcmp(argv[3], "--") != 0) {
		fprintf(stderr, "usage: deny-syscall NAME[,NAME...] ERRNO -- PROGRAM [ARG...]\n");
		return STATUS_FAILED;
	}
	names = g_strsplit(argv[1], ",", -1);
	errnum = parse_errno(argv[2]);
	if (errnum <= 0)
		return fail(argv[2], "no such errno");
	status = load_filter(names, errnum);
	if (status != 0)
		return status;
	execvp(argv[4], argv + 4);
	status = errno == ENOENT ? 127 : 126;
	fprintf(stderr, "deny-syscall: %s: %s\n", argv[4], errno_text(errno));
	return status;
}
