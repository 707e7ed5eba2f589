/* The words that every part of the system shares: access modes, network modes, well-known paths.
 *
 * Plain values only; nothing here blocks or allocates. The thread rules of the other headers are one of three:
 *
 *   "Any thread at once."           no lock of the caller's is needed
 *   "One thread per object."        an object may move between threads, and is used by one at a time
 *   "Before any other call only."   nothing else of the library may be running
 *
 * Where a header says nothing else, a text is NUL-terminated, a `const char *const *` ends with NULL, what a function
 * gives back as `char *` is freed with g_free(), and as `char **` with g_strfreev(). Paths are bytes, in no encoding.
 *
 * A GError **, a GCancellable * and a GAsyncReadyCallback may always be NULL, another pointer only where it is said. One that
 * may not is a programming error, as everywhere in GLib: a critical warning is logged, nothing is done, and what comes back is
 * that of a failure (NULL, FALSE, 0 or -1) without a GError. So what a model was to give and has left out is looked at before
 * a call. */
#ifndef STELLA_TYPES_H
#define STELLA_TYPES_H

#ifdef __cplusplus
extern "C" {
#endif

/* Marks what the shared library exports. */
#define STELLA_API __attribute__((visibility("default")))

/* Well-known view paths. */
/* The agent's own directory, writable; HOME and the working directory of its commands. */
#define STELLA_MOUNT_WORKSPACE "/workspace"
/* Its user's data, writable. */
#define STELLA_MOUNT_USER_DATA "/user"
/* The installed tools, read-only. */
#define STELLA_MOUNT_STELLA_HOME "/opt/stella"
/* Skills bound to the agent by an administrator; always read-only. */
#define STELLA_MOUNT_AGENT_SKILLS "/opt/stella/agent-skills"
/* Skills installed from the database; always read-only. */
#define STELLA_MOUNT_SYSTEM_DB_SKILLS "/opt/stella/db-skills"

/* What a mount grants inside the view. */
typedef enum {
	STELLA_MOUNT_READ_ONLY = 0,  /* "ro": reading only */
	STELLA_MOUNT_READ_WRITE = 1, /* "rw": reading and writing */
	STELLA_MOUNT_COW = 2, /* "cow": writes are collected apart, to be committed or dropped */
} StellaMountAccess;

/* Which network commands see. */
typedef enum {
	STELLA_NETWORK_ALLOW_ALL = 0, /* "allow_all": the host's network */
	STELLA_NETWORK_DISABLED = 1,  /* "disabled": a loopback of their own and nothing else */
} StellaNetworkMode;

#ifdef __cplusplus
}
#endif

#endif
