/* The keys of a policy that are read and validated, but have no effect yet. A program refuses a policy
 * that uses one of them: a boundary that is asked for and not there must never be ignored. */
#include "common/policy.h"

static bool uses_hide(const StellaPolicy *policy)
{
	return policy->hide->len > 0;
}

static bool uses_protect(const StellaPolicy *policy)
{
	return policy->protect->len > 0;
}

static bool uses_cow(const StellaPolicy *policy)
{
	for (unsigned int i = 0; i < policy->mounts->len; i++) {
		if (((const PolicyMount *)policy->mounts->pdata[i])->access == STELLA_MOUNT_COW)
			return true;
	}
	return false;
}

static bool uses_quota_bytes(const StellaPolicy *policy)
{
	for (unsigned int i = 0; i < policy->mounts->len; i++) {
		if (((const PolicyMount *)policy->mounts->pdata[i])->quota_bytes != 0)
			return true;
	}
	return false;
}

static bool uses_quota_files(const StellaPolicy *policy)
{
	for (unsigned int i = 0; i < policy->mounts->len; i++) {
		if (((const PolicyMount *)policy->mounts->pdata[i])->quota_files != 0)
			return true;
	}
	return false;
}

static bool uses_network_timeout(const StellaPolicy *policy)
{
	return policy->network_timeout_ms != 0;
}

static bool uses_tail(const StellaPolicy *policy)
{
	return policy->limits.tail_bytes != 0;
}

static bool uses_spill(const StellaPolicy *policy)
{
	return policy->limits.spill;
}

static bool uses_memory(const StellaPolicy *policy)
{
	return policy->limits.memory_bytes != 0;
}

static bool uses_processes(const StellaPolicy *policy)
{
	return policy->limits.processes != 0;
}

/* One row a key; the row goes when the feature comes. */
static const struct {
	const char *key;
	bool (*is_used)(const StellaPolicy *policy);
} unimplemented[] = {
	{ "filesystem.hide", uses_hide },
	{ "filesystem.protect", uses_protect },
	{ "filesystem.mounts.access", uses_cow },
	{ "filesystem.mounts.quota_bytes", uses_quota_bytes },
	{ "filesystem.mounts.quota_files", uses_quota_files },
	{ "network.timeout_ms", uses_network_timeout },
	{ "limits.tail_bytes", uses_tail },
	{ "limits.spill", uses_spill },
	{ "limits.memory_bytes", uses_memory },
	{ "limits.processes", uses_processes },
};

const char *policy_find_unimplemented(const StellaPolicy *policy)
{
	for (size_t i = 0; i < G_N_ELEMENTS(unimplemented); i++) {
		if (unimplemented[i].is_used(policy))
			return unimplemented[i].key;
	}
	return NULL;
}
