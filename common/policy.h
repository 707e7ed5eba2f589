/* The policy: what a session may see and do. An immutable value with a reference count.
 *
 * Made by policy_json_parse() (policy-json.h) or policy_options_finish() (policy-options.h) and by
 * nobody else; afterwards every field is only read, from any thread. A policy is judged by its
 * structure alone: host paths are looked at when a view plan is made (view-plan.h). */
#pragma once

#include "stella/types.h"

#include <glib.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* The format that this build reads and writes. */
#define POLICY_VERSION 1

typedef enum {
	POLICY_RUNTIME_DEFAULT, /* not given: "host" to run commands, "none" for a view to look into */
	POLICY_RUNTIME_NONE,
	POLICY_RUNTIME_HOST,
} PolicyRuntime;

typedef enum {
	POLICY_SYMLINKS_CONTAINED,
	POLICY_SYMLINKS_DENY,
} PolicySymlinks;

typedef enum {
	POLICY_CACHE_AUTO,
	POLICY_CACHE_STRICT,
	POLICY_CACHE_EXCLUSIVE,
} PolicyCache;

typedef enum {
	POLICY_OWNERSHIP_OWNER,
	POLICY_OWNERSHIP_HOST,
} PolicyOwnership;

/* One row of the declared mount table, paths lexically cleaned. */
typedef struct {
	char *host_path; /* absolute */
	char *view_path; /* absolute, never "/" */
	StellaMountAccess access;
	bool optional;	      /* dropped when the host path is absent */
	uint64_t quota_bytes; /* 0: none */
	uint64_t quota_files; /* 0: none */
} PolicyMount;

/* One NAME=value of the policy's environment, in the order of the text. */
typedef struct {
	char *name;
	char *value;
} PolicyEnv;

/* A limit of 0 is "none"; where the key's absence means a default, the parser has put it in. */
typedef struct {
	uint64_t output_bytes;
	uint64_t tail_bytes;
	bool spill;
	uint64_t file_size_bytes;
	uint64_t open_files;
	uint64_t cpu_seconds;
	uint64_t memory_bytes;
	uint64_t processes;
	bool required;
} PolicyLimits;

typedef struct {
	int refs; /* atomic */
	/* filesystem; strings are never NULL, "" is "not given" */
	char *workspace_root; /* host path; the default, working_dir, has been put in */
	char *working_dir;    /* as given, cleaned: a view path or a host path inside a mount */
	char *stella_home;
	char *user_tools_dir;
	char *temp_dir_host;
	GPtrArray *mounts; /* PolicyMount */
	PolicyRuntime runtime;
	PolicySymlinks symlinks;
	PolicyCache cache;
	PolicyOwnership ownership;
	GPtrArray *hide;    /* char * globs */
	GPtrArray *protect; /* char * globs */
	/* network */
	StellaNetworkMode network_mode;
	int64_t network_timeout_ms;
	/* environment */
	GPtrArray *env; /* PolicyEnv, names unique */
	bool inherit_env;
	bool env_override;
	/* processes */
	int64_t timeout_ms; /* 0: none */
	uid_t process_uid;  /* inside the sandbox: 1000 for "agent", 0 for "root" */
	PolicyLimits limits;
} StellaPolicy;

StellaPolicy *policy_ref(const StellaPolicy *policy);
void policy_unref(StellaPolicy *policy); /* NULL is allowed */
G_DEFINE_AUTOPTR_CLEANUP_FUNC(StellaPolicy, policy_unref)

/* A policy that the makers above fill in and then give out: every default of the specification is
 * set, and arrays are empty. */
StellaPolicy *policy_new_defaults(void);

/* Judges structure: working_dir given, mount paths, duplicates, reserved and always-read-only view
 * paths, ranges, environment names. On failure -EINVAL, and *reterr_message is one line without a
 * newline that begins with the key ("filesystem.mounts[2].view_path: ..."). */
int policy_validate(const StellaPolicy *policy, char **reterr_message);

/* The first key of the policy whose effect this build does not have yet, e.g.
 * "filesystem.ownership", or NULL. A program refuses such a policy instead of ignoring the key. */
const char *policy_find_unimplemented(const StellaPolicy *policy);

/* The words of the format for an enum value ("ro", "allow_all", "contained"). Static storage. */
const char *policy_access_name(StellaMountAccess access);
const char *policy_network_name(StellaNetworkMode mode);
