/* Backends: what makes sessions, and the registry that picks one.
 *
 *   fsgate   everything: a FUSE view, denials, changes, symlink rules. The first choice
 *   bwrap    the same policy by bubblewrap's bind mounts, where there is no FUSE: no denials, no changes
 *   none     on the host itself, with a filtered environment: it enforces nothing. For tests and trusted use
 *   nop      nothing is run. For tests
 *
 * Factories are an interface, which a host may implement and register. Any thread at once for all functions. */
#ifndef STELLA_FACTORY_H
#define STELLA_FACTORY_H

#include <gio/gio.h>
#include <stella/policy.h>
#include <stella/session.h>

G_BEGIN_DECLS

#define STELLA_TYPE_FACTORY (stella_factory_get_type())
STELLA_API G_DECLARE_INTERFACE(StellaFactory, stella_factory, STELLA, FACTORY, GObject)

/* What an implementation fills in; all but is_available are required. */
struct _StellaFactoryInterface {
	GTypeInterface parent;

	const char *(*get_name)(StellaFactory *factory);
	gboolean (*is_available)(StellaFactory *factory, char **ret_reason); /* NULL: always */
	gboolean (*check_policy)(StellaFactory *factory, const StellaPolicy *policy,
				 GError **error);
	StellaSession *(*create_session)(StellaFactory *factory, const StellaPolicy *policy,
					 GCancellable *cancellable, GError **error);
	gpointer reserved[8];
};

/* The factories of this library. Never NULL; the caller owns a reference. They hold nothing: making one is cheap. */
STELLA_API StellaFactory *stella_factory_new_fsgate(void);
STELLA_API StellaFactory *stella_factory_new_bwrap(void);
STELLA_API StellaFactory *stella_factory_new_none(void);
STELLA_API StellaFactory *stella_factory_new_nop(void);

/* Its name ("fsgate"); borrowed. Does not block. */
STELLA_API const char *stella_factory_get_name(StellaFactory *factory);
/* Whether this host can run it at all. Else *ret_reason (may be NULL), which the caller frees, is one line that says why.
 * May look at files. */
STELLA_API gboolean stella_factory_is_available(StellaFactory *factory, char **ret_reason);
/* Whether it can do what this policy asks for. FALSE with STELLA_ERROR_POLICY_INVALID, or STELLA_ERROR_POLICY_INCOMPATIBLE with
 * backend, policy, reason and key (error.h). Does not block. */
STELLA_API gboolean stella_factory_check_policy(StellaFactory *factory, const StellaPolicy *policy,
						GError **error);

/* Starts a session; blocks some milliseconds to, on a host in trouble, some seconds. Prepares the tool trees first
 * (mise.h). Nothing is left behind on failure. NULL with the two errors above; HOST_UNSUPPORTED with a hint; START_FAILED with
 * stage and errno; CANCELED. The caller owns a reference. */
STELLA_API StellaSession *stella_factory_create_session(StellaFactory *factory,
							const StellaPolicy *policy,
							GCancellable *cancellable, GError **error);
STELLA_API void stella_factory_create_session_async(StellaFactory *factory,
						    const StellaPolicy *policy,
						    GCancellable *cancellable,
						    GAsyncReadyCallback callback,
						    gpointer user_data);
STELLA_API StellaSession *stella_factory_create_session_finish(StellaFactory *factory,
							       GAsyncResult *async_result,
							       GError **error);

#define STELLA_TYPE_FACTORY_REGISTRY (stella_factory_registry_get_type())
STELLA_API G_DECLARE_FINAL_TYPE(StellaFactoryRegistry, stella_factory_registry, STELLA,
				FACTORY_REGISTRY, GObject)

/* An empty registry; and one with fsgate and bwrap, in this order. none and nop are in neither: what enforces nothing
 * is only used by who names it. Never NULL; the caller owns a reference. */
STELLA_API StellaFactoryRegistry *stella_factory_registry_new(void);
STELLA_API StellaFactoryRegistry *stella_factory_registry_new_default(void);

/* Adds a factory as the last one; the registry takes a reference of its own. FALSE with STELLA_ERROR_EXISTS when one of that
 * name is there. */
STELLA_API gboolean stella_factory_registry_register(StellaFactoryRegistry *registry,
						     StellaFactory *factory, GError **error);
/* Takes the one of that name out; FALSE when there is none. Its sessions live on. */
STELLA_API gboolean stella_factory_registry_unregister(StellaFactoryRegistry *registry,
						       const char *name);
/* The one of that name, of which the caller owns a reference; or NULL. */
STELLA_API StellaFactory *stella_factory_registry_get(StellaFactoryRegistry *registry,
						      const char *name);
/* All, and those that this host can run, in order: of StellaFactory, with references; g_ptr_array_unref(). */
STELLA_API GPtrArray *stella_factory_registry_list(StellaFactoryRegistry *registry);
STELLA_API GPtrArray *stella_factory_registry_list_available(StellaFactoryRegistry *registry);

/* The first that is available and can do what the policy asks for; the caller owns a reference. One that is not available
 * is skipped, which is logged with its reason. NULL with STELLA_ERROR_POLICY_INVALID; with STELLA_ERROR_HOST_UNSUPPORTED
 * when the host is why each was skipped; else with STELLA_ERROR_POLICY_INCOMPATIBLE, also of an empty registry. The last
 * two have backends, policy and reasons, and "sandbox.unsupported_backend" is logged. */
STELLA_API StellaFactory *stella_factory_registry_pick(StellaFactoryRegistry *registry,
						       const StellaPolicy *policy, GError **error);

/* A session of the first that can: like pick, but one whose start says STELLA_ERROR_HOST_UNSUPPORTED is skipped too. Blocks
 * and ownership as stella_factory_create_session(). NULL with the errors of pick, which have hint, stage and errno of the
 * first that was skipped and has them; or with the error of a start that failed otherwise. */
STELLA_API StellaSession *stella_factory_registry_create_session(StellaFactoryRegistry *registry,
								 const StellaPolicy *policy,
								 GCancellable *cancellable,
								 GError **error);
STELLA_API void stella_factory_registry_create_session_async(StellaFactoryRegistry *registry,
							     const StellaPolicy *policy,
							     GCancellable *cancellable,
							     GAsyncReadyCallback callback,
							     gpointer user_data);
STELLA_API StellaSession *
stella_factory_registry_create_session_finish(StellaFactoryRegistry *registry,
					      GAsyncResult *async_result, GError **error);

G_END_DECLS

#endif
