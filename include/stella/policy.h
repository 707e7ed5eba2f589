/* The policy: what a session may see and do. An immutable value with a reference count.
 *
 * A policy is made from an options struct or from JSON (stella-policy(5) describes every key and its default), and is never
 * changed afterwards; a session keeps a reference of its own, so that the caller may drop its one at any time. Making one
 * looks at no file: host paths are looked at when a session, a view or a resolver is made.
 *
 * All functions here: any thread at once; none blocks. */
#ifndef STELLA_POLICY_H
#define STELLA_POLICY_H

#include <glib-object.h>
#include <stella/error.h>
#include <stella/types.h>
#include <sys/types.h>

G_BEGIN_DECLS

#define STELLA_TYPE_POLICY (stella_policy_get_type())

/* Which host directories a view repeats at their own paths, read-only, so that programs run. */
typedef enum {
	STELLA_RUNTIME_DEFAULT =
		0, /* host for sessions, none for a bare resolver and a mounted view */
	STELLA_RUNTIME_NONE = 1, /* none */
	STELLA_RUNTIME_HOST =
		2, /* /usr, /bin, /lib*, /etc without its secrets, ... where they exist */
} StellaRuntime;

/* What becomes of symbolic links below a mount. */
typedef enum {
	STELLA_SYMLINKS_CONTAINED = 0, /* followed where they stay inside the view */
	STELLA_SYMLINKS_DENY = 1,      /* never read or followed */
} StellaSymlinks;

/* When a change that is made on the host, beside the view, is seen in it. */
typedef enum {
	STELLA_CACHE_AUTO = 0,	    /* within a second, and at the start of every command */
	STELLA_CACHE_STRICT = 1,    /* at once */
	STELLA_CACHE_EXCLUSIVE = 2, /* not promised: nobody else writes; fastest */
} StellaCache;

/* As whom the view acts on the host. */
typedef enum {
	STELLA_OWNERSHIP_OWNER = 0, /* in each mount as the owner of its directory */
	STELLA_OWNERSHIP_HOST = 1,  /* ids pass through; for root, and for mounted views only */
} StellaOwnership;

/* One row of the mount table. */
typedef struct {
	const char *host_path; /* absolute; cleaned lexically when the policy is made */
	const char
		*view_path; /* absolute, not "/", nor at or below /proc, /dev or /sys; likewise */
	StellaMountAccess access; /* default read-only */
	gboolean optional;	  /* left out where the host path is absent, instead of an error */
	guint64 quota_bytes;	  /* by how much a writable mount may grow; 0: no limit */
	guint64 quota_files;	  /* likewise, in files */
} StellaMount;

/* Limits of the commands of a session; 0 is "none" unless said otherwise. stella_limits_init() gives the defaults. */
typedef struct {
	guint64 output_bytes; /* kept of each output stream; 1 to 1 GiB, default 10 MiB */
	guint64 tail_bytes;   /* of these, how many for the end of a longer stream; default 0 */
	gboolean spill; /* the whole of a longer stream goes to a file below /tmp; default FALSE */
	guint64 file_size_bytes; /* of a file that a process writes; default 512 MiB */
	guint64 open_files;	 /* of a process; default 1024 */
	guint64 cpu_seconds;	 /* of a process; default 300 */
	guint64 memory_bytes;	 /* of all commands of the session together; default none */
	guint64 processes;	 /* likewise; default none */
	gboolean
		required; /* a limit that the host cannot enforce is an error, instead of being listed */
} StellaLimits;

/* Everything of a policy, for stella_policy_new(). All pointers are borrowed for that call. NULL and "" are "not given".
 * Use stella_policy_options_init(), set what is to differ, and keep `size` as it is. */
typedef struct {
	gsize size; /* of the struct the caller was compiled with; set by the init function */

	const char *workspace_root; /* host path, absolute; not given: working_dir */
	const char *working_dir;    /* required: a view path, or a host path inside a mount */
	const char *
		stella_home; /* host path of the installed tools; shown at /opt/stella, read-only */
	const char *
		user_tools_dir; /* host path below stella_home: users/ID/.mise-tools; shown writable */
	const StellaMount *mounts;
	gsize n_mounts;		   /* at most 1024 */
	const char *temp_dir_host; /* host path for /tmp; not given: a private one of the session */
	StellaRuntime runtime;
	StellaSymlinks symlinks;
	StellaCache cache;
	StellaOwnership ownership;

	StellaNetworkMode network_mode; /* default allow_all */
	gint64 network_timeout_ms; /* no backend can enforce one yet: others than 0 are incompatible */

	const char *const *env; /* NAME=value; names are unique */
	gboolean
		inherit_env; /* commands get the host's variables, less those that may hold secrets */
	gboolean
		env_override; /* env's own HOME, PATH and the like stay; else HOME is the workspace */

	gint64 timeout_ms; /* of a command; 0: none */
	const char
		*process_user; /* "agent" (1000), "root" (0 inside), or a number; default agent */
	StellaLimits limits;
} StellaPolicyOptions;

/* Fills in the defaults. */
STELLA_API void stella_policy_options_init(StellaPolicyOptions *options);
STELLA_API void stella_limits_init(StellaLimits *limits);

/* A policy of these options, copied; paths are cleaned lexically ("//", "/./", "/../", a trailing "/"). Nothing is judged:
 * that is stella_policy_validate()'s, which everything that uses a policy calls first, and which refuses a struct that says more
 * than this version of the library knows. Never NULL; the caller owns a
 * reference. */
STELLA_API StellaPolicy *stella_policy_new(const StellaPolicyOptions *options);

/* A policy from its JSON text. length: bytes, or -1 for a NUL-terminated text; text need not end with NUL, and a NUL in it is
 * an error as any other. At most 1 MiB. A policy that comes back is valid.
 * NULL with STELLA_ERROR_POLICY_INVALID: the message begins with the key or the line that is wrong; unknown and duplicate
 * keys, wrong types and trailing data are errors. */
STELLA_API StellaPolicy *stella_policy_new_from_json(const char *text, gssize length,
						     GError **error);

/* A reference, and its end (NULL is allowed). */
STELLA_API StellaPolicy *stella_policy_ref(const StellaPolicy *policy);
STELLA_API void stella_policy_unref(StellaPolicy *policy);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(StellaPolicy, stella_policy_unref)
STELLA_API GType stella_policy_get_type(void);

/* Judges the structure alone: a working directory, paths that are absolute, no two mounts at one view path, no reserved
 * view path, numbers in range, names of variables. TRUE, or FALSE with STELLA_ERROR_POLICY_INVALID, whose message begins
 * with the key, as stella_error_get_key() gives it. */
STELLA_API gboolean stella_policy_validate(const StellaPolicy *policy, GError **error);

/* Its JSON text, which makes an equal policy again, on one line or indented, without a newline at the end. */
STELLA_API char *stella_policy_to_json(const StellaPolicy *policy, gboolean pretty);

/* What it says. Texts are borrowed as long as the policy; "" where nothing was given. */
/* The host path of the workspace: workspace_root, or by default working_dir. */
STELLA_API const char *stella_policy_get_workspace_root(const StellaPolicy *policy);
STELLA_API const char *stella_policy_get_working_dir(const StellaPolicy *policy);
STELLA_API const char *stella_policy_get_stella_home(const StellaPolicy *policy);
STELLA_API const char *stella_policy_get_user_tools_dir(const StellaPolicy *policy);
STELLA_API const char *stella_policy_get_temp_dir_host(const StellaPolicy *policy);
STELLA_API gsize stella_policy_get_n_mounts(const StellaPolicy *policy);
/* Row i, from 0; its texts are borrowed as long as the policy. FALSE, and *ret_mount untouched, for i out of range. */
STELLA_API gboolean stella_policy_get_mount(const StellaPolicy *policy, gsize i,
					    StellaMount *ret_mount);
STELLA_API StellaRuntime stella_policy_get_runtime(const StellaPolicy *policy);
STELLA_API StellaSymlinks stella_policy_get_symlinks(const StellaPolicy *policy);
STELLA_API StellaCache stella_policy_get_cache(const StellaPolicy *policy);
STELLA_API StellaOwnership stella_policy_get_ownership(const StellaPolicy *policy);
/* The network mode; allow_all where none was given. */
STELLA_API StellaNetworkMode stella_policy_get_network_mode(const StellaPolicy *policy);
STELLA_API gint64 stella_policy_get_network_timeout_ms(const StellaPolicy *policy);
/* Its variables, NAME=value, in the order given. */
STELLA_API char **stella_policy_dup_env(const StellaPolicy *policy);
STELLA_API gboolean stella_policy_get_inherit_env(const StellaPolicy *policy);
STELLA_API gboolean stella_policy_get_env_override(const StellaPolicy *policy);
STELLA_API gint64 stella_policy_get_timeout_ms(const StellaPolicy *policy);
/* The user id that commands have inside the sandbox. */
STELLA_API uid_t stella_policy_get_process_uid(const StellaPolicy *policy);
STELLA_API void stella_policy_get_limits(const StellaPolicy *policy, StellaLimits *ret_limits);

/* The words of the JSON format for a value ("ro", "allow_all"), static storage; NULL for what is none. */
STELLA_API const char *stella_mount_access_name(StellaMountAccess access);
STELLA_API const char *stella_network_mode_name(StellaNetworkMode mode);

G_END_DECLS

#endif
