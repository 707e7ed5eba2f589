/* A session's paths and files; see stella/session.h. Sessions that give a resolver need nothing else: what has to do with
 * paths goes through it, unless an implementation has a way of its own. */
#include "stella/session.h"

#include "common/api-error.h"

StellaPathResolver *stella_session_dup_resolver(StellaSession *session, GError **error)
{
	StellaSessionInterface *iface;

	g_return_val_if_fail(STELLA_IS_SESSION(session), NULL);
	g_return_val_if_fail(!error || !*error, NULL);
	iface = STELLA_SESSION_GET_IFACE(session);
	if (iface->dup_resolver)
		return iface->dup_resolver(session, error);
	api_error_set(error, STELLA_ERROR_NOT_SUPPORTED,
		      "sessions of this kind have no path resolver");
	return NULL;
}

StellaFiles *stella_session_dup_files(StellaSession *session, GError **error)
{
	g_autoptr(StellaPathResolver) resolver = NULL;

	g_return_val_if_fail(STELLA_IS_SESSION(session), NULL);
	g_return_val_if_fail(!error || !*error, NULL);
	resolver = stella_session_dup_resolver(session, error);
	return resolver ? stella_files_new(resolver) : NULL;
}

static char *resolve_by_resolver(StellaSession *session, const char *path, gboolean for_write,
				 GError **error)
{
	g_autoptr(StellaPathResolver) resolver = stella_session_dup_resolver(session, error);
	g_autoptr(StellaResolvedPath) resolved = NULL;

	if (!resolver)
		return NULL;
	resolved = for_write ? stella_path_resolver_resolve_write(resolver, path, error)
			     : stella_path_resolver_resolve(resolver, path, error);
	return resolved ? g_steal_pointer(&resolved->host_path) : NULL;
}

char *stella_session_resolve(StellaSession *session, const char *path, GError **error)
{
	StellaSessionInterface *iface;

	g_return_val_if_fail(STELLA_IS_SESSION(session), NULL);
	g_return_val_if_fail(path != NULL, NULL);
	g_return_val_if_fail(!error || !*error, NULL);
	iface = STELLA_SESSION_GET_IFACE(session);
	return iface->resolve ? iface->resolve(session, path, error)
			      : resolve_by_resolver(session, path, FALSE, error);
}

char *stella_session_resolve_write(StellaSession *session, const char *path, GError **error)
{
	StellaSessionInterface *iface;

	g_return_val_if_fail(STELLA_IS_SESSION(session), NULL);
	g_return_val_if_fail(path != NULL, NULL);
	g_return_val_if_fail(!error || !*error, NULL);
	iface = STELLA_SESSION_GET_IFACE(session);
	return iface->resolve_write ? iface->resolve_write(session, path, error)
				    : resolve_by_resolver(session, path, TRUE, error);
}

int stella_session_open(StellaSession *session, const char *path, int flags, mode_t mode,
			GError **error)
{
	g_autoptr(StellaPathResolver) resolver = NULL;
	StellaSessionInterface *iface;

	g_return_val_if_fail(STELLA_IS_SESSION(session), -1);
	g_return_val_if_fail(path != NULL, -1);
	g_return_val_if_fail(!error || !*error, -1);
	iface = STELLA_SESSION_GET_IFACE(session);
	if (iface->open)
		return iface->open(session, path, flags, mode, error);
	resolver = stella_session_dup_resolver(session, error);
	return resolver ? stella_path_resolver_open(resolver, path, flags, mode, error) : -1;
}
