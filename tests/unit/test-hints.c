/* hints: what is said about a host that lacks something. */
#include "executor/error.h"
#include "executor/hints.h"
#include "executor/stage.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

static void causes_with_a_remedy_have_their_own(void **state)
{
	static const struct {
		const char *stage;
		int errnum;
		const char *part;
	} cases[] = {
		{ "fuse-device", ENOENT, "modprobe fuse" },
		{ "fuse-device", EACCES, "chmod 0666" },
		{ "fuse-device", EPERM, "--device /dev/fuse" },
		{ "fuse-device", ENODEV, "10:229" },
		{ "fuse-mount", EPERM, "user namespaces" },
		{ "fusermount3", ENOENT, "install fusermount3" },
		{ "fusermount3", EPERM, "set-user-ID" },
		{ "mount-proc", EPERM, "systempaths=unconfined" },
		{ "mount-proc", ENOSYS, "Linux 5.12" },
		{ "bind-source", ENOSYS, "Linux 5.12" },
		{ "bind-source", EPERM, "seccomp=unconfined" },
		{ "start-init", ENOENT, "installed" },
		{ "start-init", ENOSYS, "Linux 5.12" },
		{ "start-init", EPERM, "seccomp=unconfined" },
		{ "pivot-root", EINVAL, "switch_root" },
		{ "pivot-root", EPERM, "pivot_root" },
		{ "clone", EINVAL, "CONFIG_USER_NS" },
		{ "gateway", ENOSYS, "clone3" },
		{ "gateway", ENOSYS, "valgrind" },
		{ "clone", ENOSYS, "clone3" },
		{ "clone", ENOSYS, "valgrind" },
		{ "gateway", ENOENT, "installed" },
		{ "init-version", EPROTO, "one build" },
		{ "seccomp", EINVAL, "CONFIG_SECCOMP_FILTER" },
		{ "state-dir", EINVAL, "absolute" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		const char *hint = exr_hint(cases[i].stage, cases[i].errnum);

		assert_non_null(hint);
		assert_non_null(strstr(hint, cases[i].part));
		assert_null(strchr(hint, '\n'));
	}
}

/* A call that is refused is known. */
static void a_tool_without_a_call_is_no_cause_of_a_refusal(void **state)
{
	(void)state;
	assert_null(strstr(exr_hint("gateway", EPERM), "valgrind"));
	assert_null(strstr(exr_hint("clone", EPERM), "valgrind"));
}

static void what_the_host_cannot_change_has_none(void **state)
{
	(void)state;
	assert_null(exr_hint("exec", ENOENT));
	assert_null(exr_hint("cwd", ENOENT));
	assert_null(exr_hint("bind-source", ENOENT));
	assert_null(exr_hint("gateway", EIO));
	assert_null(exr_hint("", EPERM));
}

static void an_error_keeps_the_hint_it_has(void **state)
{
	ExrError error = { 0 };

	(void)state;
	exr_error_set_known_hint(&error);
	assert_null(error.hint);
	(void)exr_error_set(&error, "host-unsupported", "fuse-device", ENOENT, "x");
	exr_error_set_hint(&error, "mine");
	exr_error_set_known_hint(&error);
	assert_string_equal(error.hint, "mine");
	exr_error_clear(&error);
	(void)exr_error_set(&error, "host-unsupported", "fuse-device", ENOENT, "x");
	exr_error_set_known_hint(&error);
	assert_string_equal(error.hint, exr_hint("fuse-device", ENOENT));
	exr_error_clear(&error);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(causes_with_a_remedy_have_their_own),
		cmocka_unit_test(a_tool_without_a_call_is_no_cause_of_a_refusal),
		cmocka_unit_test(what_the_host_cannot_change_has_none),
		cmocka_unit_test(an_error_keeps_the_hint_it_has),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
