/* The table of backends, and the choice among them; see backend.h. */
#include "executor/backend.h"

#include "executor/session-internal.h"
#include "executor/session-log.h"

#include <errno.h>
#include <string.h>

const ExrBackend *const exr_backends[] = { &exr_backend_fsgate, &exr_backend_bwrap,
					   &exr_backend_none, &exr_backend_nop, NULL };

/* In this order, each of which isolates. */
static const ExrBackend *const by_default[] = { &exr_backend_fsgate, &exr_backend_bwrap };

const ExrBackend *exr_backend_find(const char *name)
{
	for (const ExrBackend *const *backend = exr_backends; *backend; backend++)
		if (strcmp((*backend)->name, name) == 0)
			return *backend;
	return NULL;
}

int exr_backend_refuse(const ExrBackend *backend, const char *key, const char *what,
		       ExrError *reterr_error)
{
	int r = exr_error_set(reterr_error, "policy-incompatible", "policy", ENOTSUP,
			      "backend \"%s\" cannot %s: %s", backend->name, what, key);

	if (!reterr_error->key)
		reterr_error->key = g_strdup(key);
	return r;
}

static bool denies_links(const StellaPolicy *policy)
{
	return policy->symlinks == POLICY_SYMLINKS_DENY;
}

static bool hides(const StellaPolicy *policy)
{
	return policy->hide->len > 0;
}

static bool protects(const StellaPolicy *policy)
{
	return policy->protect->len > 0;
}

static bool gives_ids(const StellaPolicy *policy)
{
	return policy->ownership != POLICY_OWNERSHIP_OWNER;
}

static bool has_network_timeout(const StellaPolicy *policy)
{
	return policy->network_timeout_ms != 0;
}

static const struct {
	const char *key;
	const char *what;
	bool (*is_used)(const StellaPolicy *policy);
} gateway_keys[] = {
	{ "filesystem.symlinks", "refuse all links", denies_links },
	{ "filesystem.hide", "hide names", hides },
	{ "filesystem.protect", "protect names", protects },
	{ "filesystem.ownership", "pass ids through", gives_ids },
	{ "network.timeout_ms", "end connections", has_network_timeout },
};

static const struct {
	const char *name;
	const char *what;
} mount_keys[] = {
	{ "access", "collect writes apart" },
	{ "quota_bytes", "enforce a quota" },
	{ "quota_files", "enforce a quota" },
};

static int refuse_mount_keys(const ExrBackend *backend, const StellaPolicy *policy, ExrError *error)
{
	for (unsigned int i = 0; i < policy->mounts->len; i++) {
		const PolicyMount *mount = policy->mounts->pdata[i];
		const bool used[] = { mount->access == STELLA_MOUNT_COW, mount->quota_bytes != 0,
				      mount->quota_files != 0 };

		for (size_t k = 0; k < G_N_ELEMENTS(used); k++) {
			g_autofree char *key =
				g_strdup_printf("filesystem.mounts[%u].%s", i, mount_keys[k].name);

			if (used[k])
				return exr_backend_refuse(backend, key, mount_keys[k].what, error);
		}
	}
	return 0;
}

int exr_backend_refuse_gateway_keys(const ExrBackend *backend, const StellaPolicy *policy,
				    ExrError *reterr_error)
{
	for (size_t i = 0; i < G_N_ELEMENTS(gateway_keys); i++)
		if (gateway_keys[i].is_used(policy))
			return exr_backend_refuse(backend, gateway_keys[i].key,
						  gateway_keys[i].what, reterr_error);
	return refuse_mount_keys(backend, policy, reterr_error);
}

/* One that is not there, or does not start for want of something of the host. false: that is no reason to go on. */
static bool try_one(const ExrBackend *backend, const ExrSessionConfig *config,
		    ExrSession **ret_session, ExrError *error)
{
	ExrSessionConfig chosen = *config;
	g_autofree char *reason = NULL;

	chosen.backend = backend;
	if (!backend->available(&reason)) {
		(void)exr_error_set(error, "host-unsupported", backend->name, ENOENT, "%s", reason);
		exr_error_set_known_hint(error);
		return true;
	}
	if (backend->supported(config->policy, error) < 0)
		return true;
	if (exr_session_start_new(&chosen, ret_session, error) == 0)
		return false;
	return strcmp(error->code, "host-unsupported") == 0;
}

static void skip(const ExrBackend *backend, const StellaPolicy *policy, const ExrError *error,
		 GString *skipped)
{
	exr_log_skipped(policy, backend->name, error->message);
	g_string_append_printf(skipped, "%s%s: %s", skipped->len > 0 ? "; " : "", backend->name,
			       error->message);
}

/* What a start by default is about. */
typedef struct {
	const ExrSessionConfig *config;
	GString *tried, *skipped;
	ExrSession *session;
	ExrError *error;
} Choice;

/* false: there is nothing more to be tried. */
static bool go_on_with(Choice *choice, const ExrBackend *backend)
{
	ExrError error = { 0 };
	bool goes_on = try_one(backend, choice->config, &choice->session, &error);

	g_string_append_printf(choice->tried, "%s%s", choice->tried->len > 0 ? ", " : "",
			       backend->name);
	if (choice->session)
		return false;
	if (goes_on)
		skip(backend, choice->config->policy, &error, choice->skipped);
	else if (choice->skipped->len > 0)
		exr_error_set_hint(&error, "backend %s was taken because of %s", backend->name,
				   choice->skipped->str);
	/* The first is what one would want to have, so that its error is the one to tell; but when a later one was taken and
	 * failed for a reason of its own, that reason. */
	if (!choice->error->code || !goes_on) {
		exr_error_clear(choice->error);
		*choice->error = error;
	} else {
		exr_error_clear(&error);
	}
	return goes_on;
}

int exr_session_new_by_default(const ExrSessionConfig *config, ExrSession **ret_session,
			       char **ret_skipped, ExrError *reterr_error)
{
	g_autoptr(GString) skipped = g_string_new(NULL);
	g_autoptr(GString) tried = g_string_new(NULL);
	Choice choice = {
		.config = config, .tried = tried, .skipped = skipped, .error = reterr_error
	};

	*ret_skipped = NULL;
	for (size_t i = 0; i < G_N_ELEMENTS(by_default); i++)
		if (!go_on_with(&choice, by_default[i]))
			break;
	if (!choice.session) {
		exr_log_unsupported(config->policy, tried->str, reterr_error);
		return reterr_error->errnum > 0 ? -reterr_error->errnum : -EINVAL;
	}
	exr_error_clear(reterr_error);
	if (skipped->len > 0)
		*ret_skipped = g_string_free(g_steal_pointer(&skipped), FALSE);
	*ret_session = choice.session;
	return 0;
}
