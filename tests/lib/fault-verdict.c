/* See fault-verdict.h. */
#include "lib/fault-verdict.h"

#include <string.h>

const char *const fault_kind_names[_FAULT_N] = {
	[FAULT_HARMLESS] = "harmless",	   [FAULT_NAMED] = "named",
	[FAULT_LOADER] = "loader",	   [FAULT_NO_MEMORY] = "no-memory",
	[FAULT_IN_COMMAND] = "in-command", [FAULT_NOT_REACHED] = "not-reached",
};

/* The loader's calls until it has memory. */
#define FIRST_MEMORY 3

/* Calls of the programs in the namespaces after whose failure all may go on as if nothing had been: memory that
 * is asked for otherwise, libc's own beginnings, what is closed again at execve or at the end, what waits and is
 * tried again, what makes an end quicker, and, in exec init, what counts the left over. Every other one is a step of the
 * set-up. */
static const char *const spare[] = {
	"brk",
	"mmap",
	"munmap",
	"close",
	"rseq",
	"set_robust_list",
	"readlink",
	"getrandom",
	"prlimit64",
	"wait4",
	"read",
	"set_tid_address",
	"poll",
	"getrusage",
	"getdents64",
	"restart_syscall",
	"madvise",
	"getpriority",
	"ioctl-namespace",
	NULL,
};
static const char *const in_namespaces[] = { "init-start", "init", "exec-init", "child", NULL };

/* Of the programs outside: what makes sandbox and gateway what they are. */
static const char *const steps[] = { "clone3",	"setsid",	"fchown",      "fchmod",
				     "flock",	"capset",	"socketpair",  "setresuid",
				     "mkdirat", "memfd_create", "close_range", "dup2",
				     NULL };

static bool is_step(const FaultOutcome *outcome)
{
	/* Which is tried again. */
	if (outcome->interrupted &&
	    (g_str_has_suffix(outcome->call, "msg") || strcmp(outcome->call, "flock") == 0))
		return false;
	if (g_strv_contains(in_namespaces, outcome->role))
		return !g_strv_contains(spare, outcome->call);
	/* With a thread less the gateway is slower. */
	if (strcmp(outcome->role, "gateway") == 0 && strcmp(outcome->call, "clone3") == 0)
		return false;
	return g_strv_contains(steps, outcome->call);
}

char **fault_read_stages(const char *readme)
{
	g_autofree char *text = NULL;
	const char *at, *end;
	g_autofree char *table = NULL;
	char **words;
	unsigned int kept = 0;

	if (!g_file_get_contents(readme, &text, NULL, NULL) ||
	    !(at = strstr(text, "| code | meaning | stages |")))
		return NULL;
	end = strstr(at, "\n\n");
	table = end ? g_strndup(at, (size_t)(end - at)) : g_strdup(at);
	words = g_strsplit_set(table, "|, `\n", -1);
	for (char **word = words; *word; word++) {
		if (**word)
			words[kept++] = *word;
		else
			g_free(*word);
	}
	words[kept] = NULL;
	return words;
}

/* A string member of the result, whose command prints nothing that could be taken for one; or NULL. */
static char *text_of(const char *result, const char *name)
{
	g_autofree char *key = g_strdup_printf("\"%s\": \"", name);
	const char *at = result ? strstr(result, key) : NULL;

	return at ? g_strndup(at + strlen(key), strcspn(at + strlen(key), "\"")) : NULL;
}

static unsigned int count_lines(const char *text)
{
	unsigned int lines = 0;

	for (const char *at = text; *at; at++)
		lines += *at == '\n';
	return lines;
}

static int judge_success(const FaultOutcome *outcome, const char *ended, const char **ret_why)
{
	if (!outcome->marker)
		*ret_why = "it says that the command ran, which it did not";
	else if (g_strcmp0(ended, "exited") != 0)
		*ret_why = "no result, and success";
	else if (!outcome->too_late && is_step(outcome))
		*ret_why = "a step of the set-up failed, and the command was run";
	else
		return FAULT_HARMLESS;
	return -1;
}

/* From the first line that stella-exec has printed; the loader's begins with its path. */
static const char *find_ours(const char *err)
{
	static const char name[] = "\nstella-exec: ";
	const char *at;

	if (g_str_has_prefix(err, name + 1))
		return err;
	at = strstr(err, name);
	return at ? at + 1 : NULL;
}

/* The loader's and GLib's own words; what is ours comes after those of a gateway or an init. */
static bool loader_failed(const FaultOutcome *outcome)
{
	static const char *const words[] = { "error while loading shared libraries",
					     "cannot allocate TLS data structures",
					     "cannot set up thread-local storage" };

	/* Without its first memory it cannot even say so. */
	if (outcome->status == 139 && outcome->nth <= FIRST_MEMORY && !*outcome->err)
		return true;
	for (size_t i = 0; i < G_N_ELEMENTS(words); i++)
		if (strstr(outcome->err, words[i]))
			return true;
	return false;
}

/* GLib says so; glibc's malloc does not survive that the heap cannot be moved to where it wants it. */
static bool died_of_memory(const FaultOutcome *outcome)
{
	if (outcome->status == 139)
		return strcmp(outcome->call, "brk") == 0 && !*outcome->err;
	return outcome->status > 128 && strstr(outcome->err, "failed to allocate");
}

static int judge_failure(const FaultOutcome *outcome, const char *result, const char *ended,
			 const char *const *stages, const char **ret_why)
{
	g_autofree char *stage = text_of(result, "stage");
	const char *ours = find_ours(outcome->err);

	if (!ours && loader_failed(outcome))
		return outcome->status >= 127 && !outcome->started ? FAULT_LOADER : -1;
	if (died_of_memory(outcome))
		return FAULT_NO_MEMORY;
	/* The command met what has failed: its own status, its own words. */
	if (outcome->started &&
	    (g_strcmp0(ended, "exited") == 0 || g_strcmp0(ended, "signaled") == 0)) {
		if (outcome->too_late || strcmp(outcome->role, "gateway") == 0)
			return FAULT_IN_COMMAND;
		*ret_why = "the command was run after a step had failed";
		return -1;
	}
	/* An answer that the kernel does not take never comes: the command, or its start, has its deadline. */
	if (outcome->status == 124 && g_strcmp0(ended, "timed_out") == 0 &&
	    (outcome->started || !outcome->marker) && strcmp(outcome->role, "gateway") == 0)
		return FAULT_IN_COMMAND;
	if (outcome->status < 125 || outcome->status > 127) {
		*ret_why = "neither the command's status nor one of ours";
		return -1;
	}
	if (!ours || (count_lines(ours) != 1 && !strstr(outcome->err, "standard output"))) {
		*ret_why = "not one line that says why";
		return -1;
	}
	/* The object could not be written, and that was said. */
	if (!result && strstr(ours, "standard output: "))
		return FAULT_IN_COMMAND;
	if (!stage || !g_strv_contains(stages, stage)) {
		*ret_why = "the error names no stage that is published";
		return -1;
	}
	/* Which says itself that it ran. */
	if (strcmp(stage, "finish") == 0)
		return FAULT_IN_COMMAND;
	if (outcome->marker && !outcome->too_late) {
		*ret_why = "it says that nothing was run, and the command did";
		return -1;
	}
	return outcome->too_late ? FAULT_IN_COMMAND : FAULT_NAMED;
}

int fault_judge(const FaultOutcome *outcome, const char *const *stages, const char **ret_why)
{
	const char *result = g_str_has_prefix(outcome->out, "{\"version\": 1, ") &&
					     g_str_has_suffix(outcome->out, "}\n")
				     ? outcome->out
				     : NULL;
	g_autofree char *ended = text_of(result, "ended");
	int kind;

	*ret_why = "the loader's failure has the wrong status";
	if (outcome->hung) {
		*ret_why = "it did not end";
		return -1;
	}
	if (outcome->left) {
		*ret_why = "a process outlived the run";
		return -1;
	}
	kind = outcome->status == 0 ? judge_success(outcome, ended, ret_why)
				    : judge_failure(outcome, result, ended, stages, ret_why);
	return kind == FAULT_HARMLESS && !outcome->reached ? FAULT_NOT_REACHED : kind;
}
