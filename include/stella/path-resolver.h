/* The path resolver: where a path of an agent leads on the host, and whether it may be used there. The file boundary for tools
 * that run in the host agent's own process.
 *
 * The string form (resolve, resolve_write) answers with a host path for the caller to open. It is strict: no symbolic link
 * below a mount's root may be on the way, dangling ones and the last part included; the mount's own root may be
 * reached through links. Between the answer and the caller's open there is a race all the same.
 *
 * The open form (stella_path_resolver_open()) has none: it gives a descriptor of the object itself, reached one
 * component at a time, links followed in view space as the policy's `symlinks` says. Its verdict is that of the same open(2) in the
 * mounted view, from the same code. New code uses this, or StellaFiles (files.h).
 *
 * A resolver is immutable, with a reference count. Any thread at once, and any process that is forked. The mounts' directories are opened when it is made, and
 * held: what the host puts in their place later is not seen. */
#ifndef STELLA_PATH_RESOLVER_H
#define STELLA_PATH_RESOLVER_H

#include <glib-object.h>
#include <stella/policy.h>
#include <sys/types.h>

G_BEGIN_DECLS

#define STELLA_TYPE_PATH_RESOLVER (stella_path_resolver_get_type())
typedef struct StellaPathResolver StellaPathResolver;

/* The view of a resolver that belongs to no session. Pointers are borrowed for the call; use the init function and keep
 * `size` as it is. */
typedef struct {
	gsize size;
	const char *workspace_root; /* host path; not given: working_dir */
	const char *working_dir;    /* required: a view path, or a host path inside a mount */
	const StellaMount *mounts;
	gsize n_mounts;
	const char *temp_dir_host; /* host path, shown at /tmp; not given: no /tmp */
	StellaSymlinks symlinks;   /* of the open form */
} StellaPathResolverConfig;

/* A path that was resolved. All texts are owned by it. */
typedef struct {
	char *host_path;   /* absolute, clean */
	char *view_path;   /* absolute, clean */
	StellaMount mount; /* the one that it lies in */
} StellaResolvedPath;

STELLA_API void stella_resolved_path_free(StellaResolvedPath *resolved); /* NULL is allowed */
G_DEFINE_AUTOPTR_CLEANUP_FUNC(StellaResolvedPath, stella_resolved_path_free)

/* Fills in the defaults. */
STELLA_API void stella_path_resolver_config_init(StellaPathResolverConfig *config);

/* A resolver over these mounts. When none of them has the workspace as its host path, or covers /workspace, the workspace is
 * added, read-write, at its own host path: for hosts that do not show agents other paths than their own. With temp_dir_host, which is
 * made if it is missing (0700), and no mount at /tmp, that is added too.
 * NULL with STELLA_ERROR_INVALID_ARGUMENT for a struct that says more than this version knows; POLICY_INVALID for a table that cannot be (key and row in the message); NOT_FOUND or IO, with the
 * host path, for a mount that is not there and not optional. Blocks on file I/O. The caller owns a reference. */
STELLA_API StellaPathResolver *stella_path_resolver_new(const StellaPathResolverConfig *config,
							GError **error);
/* One over the view that a policy gives commands, but for what a session adds of its own. Errors as above. */
STELLA_API StellaPathResolver *stella_path_resolver_new_for_policy(const StellaPolicy *policy,
								   GError **error);
STELLA_API StellaPathResolver *stella_path_resolver_ref(StellaPathResolver *resolver);
STELLA_API void stella_path_resolver_unref(StellaPathResolver *resolver); /* NULL is allowed */
G_DEFINE_AUTOPTR_CLEANUP_FUNC(StellaPathResolver, stella_path_resolver_unref)
STELLA_API GType stella_path_resolver_get_type(void);

/* The string form. path: a view path, a path relative to the working directory, or a host path inside a mount; cleaned lexically
 * first. A path whose last parts do not exist resolves if what exists of it does. An absolute path inside a mount's host path is
 * host-space input, even if a view mount has that name too, unless the view's mount is the deeper one.
 * NULL with: STELLA_ERROR_INVALID_ARGUMENT (empty, longer than 4095 bytes, a name longer than 255), NO_MOUNTS, OUTSIDE_MOUNTS,
 * SYMLINK (the message names the component), READ_ONLY (resolve_write only; judged by the deepest mount whose host directory
 * contains the result, so that an alias of a read-only mount is read-only), IO. Blocks on file I/O. */
STELLA_API StellaResolvedPath *stella_path_resolver_resolve(StellaPathResolver *resolver,
							    const char *path, GError **error);
STELLA_API StellaResolvedPath *stella_path_resolver_resolve_write(StellaPathResolver *resolver,
								  const char *path, GError **error);

/* Names alone, by the deepest mount; nothing is looked at. NULL: no mount covers it. Of several view paths of one host
 * path the shortest is given, then the first in byte order. Does not block. */
STELLA_API char *stella_path_resolver_to_host_path(StellaPathResolver *resolver,
						   const char *view_path);
STELLA_API char *stella_path_resolver_to_view_path(StellaPathResolver *resolver,
						   const char *host_path);

/* The normalized mount table, implied mounts included, sorted by view path. Row i, from 0, borrowed as long as the resolver.
 * Does not block. */
STELLA_API gsize stella_path_resolver_get_n_mounts(StellaPathResolver *resolver);
STELLA_API gboolean stella_path_resolver_get_mount(StellaPathResolver *resolver, gsize i,
						   StellaMount *ret_mount);

/* Opens a file or directory as open(2) does in the view. path: as above, but walked as the kernel walks, ".." from where one is.
 * flags: O_RDONLY, O_WRONLY or O_RDWR, with O_CREAT, O_EXCL, O_TRUNC, O_APPEND, O_DIRECTORY, O_NOFOLLOW, O_NONBLOCK, O_SYNC,
 * O_DSYNC, O_PATH, O_CLOEXEC; others are an error. mode: permissions of a new file, which the umask does not change; set-id bits
 * have no effect. When the process is root, the permissions of the owner of the mount's directory decide, and new files are
 * his, as in the view.
 * A descriptor, close-on-exec, which the caller closes; or -1 with: INVALID_ARGUMENT; NO_MOUNTS, OUTSIDE_MOUNTS; READ_ONLY; SYMLINK
 * (one that leaves the view, 41 of them, or any with symlinks `deny` or O_NOFOLLOW); NOT_FOUND; EXISTS; IO with errno (ENXIO: a
 * device, FIFO or socket, which is never opened; EISDIR, ENOTDIR, EACCES, ...). Blocks on file I/O, never on a FIFO. */
STELLA_API int stella_path_resolver_open(StellaPathResolver *resolver, const char *path, int flags,
					 mode_t mode, GError **error);

G_END_DECLS

#endif
