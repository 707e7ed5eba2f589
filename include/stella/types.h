/* The words that every part of the system shares: access modes, network modes, well-known paths.
 *
 * Plain values only; nothing here blocks or allocates. */
#ifndef STELLA_TYPES_H
#define STELLA_TYPES_H

#ifdef __cplusplus
extern "C" {
#endif

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
