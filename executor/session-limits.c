/* A session's limits of memory and processes; see session-limits.h. */
#include "executor/session-limits.h"

#include "common/errno-util.h"
#include "executor/cgroup.h"
#include "executor/nproc.h"

#include <errno.h>
#include <pthread.h>
#include <string.h>
#include <unistd.h>

#define CODE  "limit-unenforceable"
#define STAGE "limits"

struct ExrSessionLimits {
	ExrCgroup memory; /* fd is -1 when it limits nothing */
	ExrCgroup pids;	  /* may be the same directory */
	bool nproc;	  /* RLIMIT_NPROC in place of pids */
	uint64_t processes;
	unsigned int own_processes; /* each exec has one more */
	unsigned int unenforced;
	pthread_mutex_t lock;
	unsigned int execs; /* whose init exists; under lock, and so is what pids is told of it */
};

static int write_memory_v1(const ExrCgroup *cgroup, uint64_t bytes)
{
	int r = exr_cgroup_write(cgroup, "memory.limit_in_bytes", bytes);

	if (r < 0)
		return r;
	/* With swap together; where the kernel does not count swap, none of this cgroup's memory goes there. */
	r = exr_cgroup_write(cgroup, "memory.memsw.limit_in_bytes", bytes);
	return r == -ENOENT ? exr_cgroup_write(cgroup, "memory.swappiness", 0) : r;
}

/* The host has swap that memory can be moved to. The first line is the table's head. */
static bool host_swaps(void)
{
	g_autofree char *text = NULL;
	const char *second;

	if (!g_file_get_contents("/proc/swaps", &text, NULL, NULL))
		return false;
	second = strchr(text, '\n');
	return second && second[1] != '\0';
}

/* memory.oom.group stays off: init is in the cgroup, too, and only the process that takes most is to die. */
static int write_memory_v2(const ExrCgroup *cgroup, uint64_t bytes)
{
	int r = exr_cgroup_write(cgroup, "memory.max", bytes);

	if (r < 0)
		return r;
	r = exr_cgroup_write(cgroup, "memory.swap.max", 0);
	return r == -ENOENT && !host_swaps() ? 0 : r;
}

static int write_memory(const ExrCgroup *cgroup, uint64_t bytes)
{
	/* Some kernels take nothing near 2^63 for a number of pages. */
	bytes = MIN(bytes, (uint64_t)INT64_MAX / 2);
	return cgroup->version == 1 ? write_memory_v1(cgroup, bytes)
				    : write_memory_v2(cgroup, bytes);
}

static int write_pids(const ExrSessionLimits *limits)
{
	return exr_cgroup_write(&limits->pids, "pids.max",
				limits->processes + limits->own_processes + limits->execs);
}

static int make_cgroup(const ExrSessionLimitsConfig *config, const char *controller,
		       ExrCgroup *ret_cgroup, char **reterr_reason)
{
	CGROUP_AUTO parent = EXR_NO_CGROUP;
	int r = exr_cgroup_find_parent(controller, &parent, reterr_reason);

	if (r < 0)
		return r;
	r = exr_cgroup_make(&parent, config->session_id, config->record, ret_cgroup);
	if (r < 0)
		*reterr_reason = g_strdup_printf("cannot make a cgroup in \"%s\": %s", parent.path,
						 errno_text(-r));
	return r;
}

static int cannot_write(const ExrCgroup *cgroup, int r, char **reterr_reason)
{
	if (r < 0)
		*reterr_reason = g_strdup_printf("cannot set a limit in \"%s\": %s", cgroup->path,
						 errno_text(-r));
	return r;
}

static int limit_memory(ExrSessionLimits *limits, const ExrSessionLimitsConfig *config,
			char **reterr_reason)
{
	int r = make_cgroup(config, "memory", &limits->memory, reterr_reason);

	if (r == 0)
		r = cannot_write(&limits->memory,
				 write_memory(&limits->memory, config->policy->memory_bytes),
				 reterr_reason);
	if (r < 0)
		exr_cgroup_clear(&limits->memory);
	return r;
}

static int limit_processes(ExrSessionLimits *limits, const ExrSessionLimitsConfig *config,
			   char **reterr_reason)
{
	int r = make_cgroup(config, "pids", &limits->pids, reterr_reason);

	limits->processes = config->policy->processes;
	if (r == 0)
		r = cannot_write(&limits->pids, write_pids(limits), reterr_reason);
	if (r == 0)
		return 0;
	exr_cgroup_clear(&limits->pids);
	limits->nproc = !config->no_rlimit && exr_nproc_works(config->identity);
	if (!limits->nproc)
		return r;
	g_clear_pointer(reterr_reason, g_free);
	return 0;
}

/* Of version 1 only root can make cgroups. */
static const char *hint(void)
{
	if (geteuid() == 0)
		return "run it in a scope of its own: systemd-run --scope -p Delegate=yes "
		       "stella-exec "
		       "...";
	return "it takes root, or cgroups of version 2 and a scope of its own: systemd-run --user "
	       "--scope -p Delegate=yes stella-exec ...";
}

/* Of an optional one every result tells; a required one stops the start. */
static int cannot_enforce(ExrSessionLimits *limits, const ExrSessionLimitsConfig *config,
			  unsigned int limit, int r, const char *reason, ExrError *error)
{
	const char *key = limit == EXR_LIMIT_MEMORY ? "limits.memory_bytes" : "limits.processes";

	if (!config->policy->required) {
		g_info("%s is not enforced: %s", key, reason);
		limits->unenforced |= limit;
		return 0;
	}
	r = exr_error_set(error, CODE, STAGE, -r,
			  "%s cannot be enforced, which limits.required asks for: %s", key, reason);
	error->key = g_strdup(key);
	exr_error_set_hint(error, "%s", hint());
	return r;
}

int exr_session_limits_new(const ExrSessionLimitsConfig *config, ExrSessionLimits **ret_limits,
			   ExrError *reterr_error)
{
	const struct {
		uint64_t value;
		unsigned int limit;
		int (*apply)(ExrSessionLimits *limits, const ExrSessionLimitsConfig *config,
			     char **reterr_reason);
	} rows[] = {
		{ config->policy->memory_bytes, EXR_LIMIT_MEMORY, limit_memory },
		{ config->policy->processes, EXR_LIMIT_PROCESSES, limit_processes },
	};
	g_autoptr(ExrSessionLimits) limits = NULL;

	if (config->policy->memory_bytes == 0 && config->policy->processes == 0)
		return 0;
	limits = g_new0(ExrSessionLimits, 1);
	limits->own_processes = config->own_processes;
	limits->memory.fd = limits->pids.fd = -1;
	pthread_mutex_init(&limits->lock, NULL);
	for (size_t i = 0; i < G_N_ELEMENTS(rows); i++) {
		g_autofree char *reason = NULL;
		int r = rows[i].value == 0 ? 0 : rows[i].apply(limits, config, &reason);

		if (r < 0 && (r = cannot_enforce(limits, config, rows[i].limit, r, reason,
						 reterr_error)) < 0)
			return r;
	}
	*ret_limits = g_steal_pointer(&limits);
	return 0;
}

void exr_session_limits_free(ExrSessionLimits *limits)
{
	if (!limits)
		return;
	exr_cgroup_clear(&limits->memory);
	exr_cgroup_clear(&limits->pids);
	pthread_mutex_destroy(&limits->lock);
	g_free(limits);
}

int exr_session_limits_clone_fd(const ExrSessionLimits *limits)
{
	if (limits && limits->memory.version == 2)
		return limits->memory.fd;
	return limits && limits->pids.version == 2 ? limits->pids.fd : -1;
}

int exr_session_limits_add(const ExrSessionLimits *limits, pid_t pid)
{
	int r = 0;

	if (limits && limits->memory.version == 1)
		r = exr_cgroup_write(&limits->memory, "cgroup.procs", (uint64_t)pid);
	if (r == 0 && limits && limits->pids.version == 1)
		r = exr_cgroup_write(&limits->pids, "cgroup.procs", (uint64_t)pid);
	return r;
}

int exr_session_limits_move(const ExrSessionLimits *limits, pid_t pid)
{
	int r = 0;

	if (limits && limits->memory.version)
		r = exr_cgroup_write(&limits->memory, "cgroup.procs", (uint64_t)pid);
	if (r == 0 && limits && limits->pids.version)
		r = exr_cgroup_write(&limits->pids, "cgroup.procs", (uint64_t)pid);
	return r;
}

unsigned int exr_session_limits_unenforced(const ExrSessionLimits *limits)
{
	return limits ? limits->unenforced : 0;
}

static void read_counts(const ExrSessionLimits *limits, ExrLimitCounts *ret)
{
	*ret = (ExrLimitCounts){ 0 };
	if (limits->memory.version == 1)
		ret->killed = exr_cgroup_read(&limits->memory, "memory.oom_control", "oom_kill");
	else if (limits->memory.version == 2)
		ret->killed = exr_cgroup_read(&limits->memory, "memory.events", "oom_kill");
	if (limits->pids.version)
		ret->refused = exr_cgroup_read(&limits->pids, "pids.events", "max");
}

static unsigned int hit_since(const ExrSessionLimits *limits, const ExrLimitCounts *before)
{
	ExrLimitCounts now;

	read_counts(limits, &now);
	return (now.killed > before->killed ? EXR_LIMIT_MEMORY : 0) |
	       (now.refused > before->refused ? EXR_LIMIT_PROCESSES : 0);
}

static void change_execs(ExrSessionLimits *limits, int change)
{
	pthread_mutex_lock(&limits->lock);
	limits->execs += (unsigned int)change;
	/* That it worked before says that it works; if not, the limit is one too low or too high. */
	if (limits->pids.version)
		(void)write_pids(limits);
	pthread_mutex_unlock(&limits->lock);
}

void exr_session_limits_hold(ExrSessionLimits *limits)
{
	if (limits)
		change_execs(limits, 1);
}

void exr_session_limits_release(ExrSessionLimits *limits)
{
	if (limits)
		change_execs(limits, -1);
}

bool exr_session_limits_count_processes(const ExrSessionLimits *limits)
{
	return limits && (limits->pids.version != 0 || limits->nproc);
}

bool exr_session_limits_by_rlimit(const ExrSessionLimits *limits)
{
	return limits && limits->nproc;
}

void exr_session_limits_exec_starts(ExrSessionLimits *limits, ExrLimitCounts *ret_before,
				    uint64_t *ret_nproc)
{
	*ret_nproc = 0;
	if (!limits)
		return;
	read_counts(limits, ret_before);
	if (limits->nproc) {
		pthread_mutex_lock(&limits->lock);
		*ret_nproc = limits->processes + limits->own_processes + limits->execs;
		pthread_mutex_unlock(&limits->lock);
	}
}

unsigned int exr_session_limits_hit_since(const ExrSessionLimits *limits,
					  const ExrLimitCounts *before)
{
	return limits ? hit_since(limits, before) : 0;
}

unsigned int exr_session_limits_hit(const ExrSessionLimits *limits)
{
	static const ExrLimitCounts zero;

	return limits ? hit_since(limits, &zero) : 0;
}
