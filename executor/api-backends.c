/* The library's own factories: each is a name of the table in backend.h, as stella/factory.h shows it. fsgate, bwrap and
 * none start a session of the executor's; nop makes an object of its own (api-nop.c), which needs neither a process nor
 * a descriptor of anything.
 *
 * A start that fails is told to nobody here: what it means is known to who has asked, and the registry goes on. */
#include "executor/api-factory.h"

#include "common/api-error.h"
#include "common/errno-util.h"
#include "common/fd-util.h"
#include "common/mise.h"
#include "common/policy.h"
#include "executor/api-exr-error.h"
#include "executor/api-nop.h"
#include "executor/api-session.h"
#include "executor/backend.h"
#include "executor/hints.h"
#include "executor/session-internal.h"

#include <errno.h>
#include <fcntl.h>

#define API_TYPE_BACKEND (api_backend_get_type())
G_DECLARE_FINAL_TYPE(ApiBackend, api_backend, API, BACKEND, GObject)

struct _ApiBackend {
	GObject parent;
	const ExrBackend *backend;
};

static void factory_init(StellaFactoryInterface *iface);

G_DEFINE_FINAL_TYPE_WITH_CODE(ApiBackend, api_backend, G_TYPE_OBJECT,
			      G_IMPLEMENT_INTERFACE(STELLA_TYPE_FACTORY, factory_init))

static const ExrBackend *inner(StellaFactory *factory)
{
	return API_BACKEND(factory)->backend;
}

static const char *get_name(StellaFactory *factory)
{
	return inner(factory)->name;
}

/* Opening it is all that can be found out beforehand; a start says the rest. */
static gboolean has_fuse(char **ret_reason)
{
	FD_AUTO device = open("/dev/fuse", O_RDWR | O_CLOEXEC);
	int errnum = errno;
	const char *hint;

	if (device >= 0)
		return TRUE;
	hint = exr_hint("fuse-device", errnum);
	*ret_reason = g_strdup_printf("cannot open /dev/fuse: %s%s%s%s", errno_text(errnum),
				      hint ? " (" : "", hint ? hint : "", hint ? ")" : "");
	return FALSE;
}

static gboolean is_available(StellaFactory *factory, char **ret_reason)
{
	const ExrBackend *backend = inner(factory);

	return backend->available(ret_reason) &&
	       (backend != &exr_backend_fsgate || has_fuse(ret_reason));
}

static gboolean check_policy(StellaFactory *factory, const StellaPolicy *policy, GError **error)
{
	const ExrBackend *backend = inner(factory);
	ExrError refused = { 0 };
	int r;

	/* Also of nop, which breaks no rule: a host is not to learn elsewhere that this key is not to be had. */
	if (policy->network_timeout_ms != 0)
		r = exr_backend_refuse(backend, "network.timeout_ms", "end connections", &refused);
	else
		r = backend->supported(policy, &refused);
	if (r < 0)
		api_exr_error_take(error, &refused);
	return r == 0;
}

/* As a session of the executor's does by itself. */
static StellaSession *create_nop(const StellaPolicy *policy)
{
	int r = ensure_mise_shims(policy->stella_home, policy->user_tools_dir);

	if (r < 0)
		g_info("the tool trees of \"%s\" could not be prepared: %s", policy->stella_home,
		       errno_text(-r));
	return api_nop_session_new(policy);
}

static StellaSession *create_session(StellaFactory *factory, const StellaPolicy *policy,
				     GCancellable *cancellable, GError **error)
{
	const ExrBackend *backend = inner(factory);
	const ExrSessionConfig config = { .policy = policy, .backend = backend };
	g_autofree char *reason = NULL;
	ExrSession *session = NULL;
	ExrError failed = { 0 };

	(void)cancellable; /* looked at before and after: every wait of a start is short */
	if (backend->is_pretense)
		return create_nop(policy);
	if (!backend->available(&reason)) {
		(void)exr_error_set(&failed, "host-unsupported", backend->name, ENOENT, "%s",
				    reason);
		exr_error_set_known_hint(&failed);
	} else if (exr_session_start_new(&config, &session, &failed) == 0) {
		return api_session_new(session);
	}
	api_exr_error_take(error, &failed);
	return NULL;
}

static void factory_init(StellaFactoryInterface *iface)
{
	iface->get_name = get_name;
	iface->is_available = is_available;
	iface->check_policy = check_policy;
	iface->create_session = create_session;
}

static void api_backend_class_init(ApiBackendClass *class)
{
	(void)class;
}

static void api_backend_init(ApiBackend *self)
{
	(void)self;
}

static StellaFactory *factory_of(const ExrBackend *backend)
{
	ApiBackend *self = g_object_new(API_TYPE_BACKEND, NULL);

	self->backend = backend;
	return STELLA_FACTORY(self);
}

StellaFactory *stella_factory_new_fsgate(void)
{
	return factory_of(&exr_backend_fsgate);
}

StellaFactory *stella_factory_new_bwrap(void)
{
	return factory_of(&exr_backend_bwrap);
}

StellaFactory *stella_factory_new_none(void)
{
	return factory_of(&exr_backend_none);
}

StellaFactory *stella_factory_new_nop(void)
{
	return factory_of(&exr_backend_nop);
}
