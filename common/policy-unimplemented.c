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

static bool uses_network_timeout(const StellaPolicy *policy)
{
	return policy->network_timeout_ms != 0;
}

static bool is_cow(const PolicyMount *mount)
{
	return mount->access == STELLA_MOUNT_COW;
}

static bool has_quota_bytes(const PolicyMount *mount)
{
	return mount->quota_bytes != 0;
}

static bool has_quota_files(const PolicyMount *mount)
{
	return mount->quota_files != 0;
}

/* One row a key; the row goes when the feature comes. */
static const struct {
	const char *key;
	bool (*is_used)(const StellaPolicy *policy);
} unimplemented[] = {
	{ "filesystem.hide", uses_hide },
	{ "filesystem.protect", uses_protect },
	{ "network.timeout_ms", uses_network_timeout },
};

/* The same of a mount. */
static const struct {
	const char *name;
	bool (*is_used)(const PolicyMount *mount);
} unimplemented_of_mount[] = {
	{ "access", is_cow },
	{ "quota_bytes", has_quota_bytes },
	{ "quota_files", has_quota_files },
};

static char *find_in_mounts(const GPtrArray *mounts)
{
	for (unsigned int i = 0; i < mounts->len; i++)
		for (size_t k = 0; k < G_N_ELEMENTS(unimplemented_of_mount); k++)
			if (unimplemented_of_mount[k].is_used(mounts->pdata[i]))
				return g_strdup_printf("filesystem.mounts[%u].%s", i,
						       unimplemented_of_mount[k].name);
	return NULL;
}

char *policy_find_unimplemented(const StellaPolicy *policy)
{
	for (size_t i = 0; i < G_N_ELEMENTS(unimplemented); i++)
		if (unimplemented[i].is_used(policy))
			return g_strdup(unimplemented[i].key);
	return find_in_mounts(policy->mounts);
}
