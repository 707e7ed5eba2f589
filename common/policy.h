/* The policy: what a session may see and do. An immutable value with a reference count (stella/policy.h).
 *
 * Made by policy_json_parse() (policy-json.h) or policy_options_finish() (policy-options.h), and at the edge by
 * stella_policy_new(); afterwards every field is only read, from any thread. A policy is judged by its
 * structure alone: host paths are looked at when a view plan is made (view-plan.h). */
#pragma once

#include "stella/policy.h"

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
	bool untold; /* no text has it: a session's own, which lists of writable places leave out */
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

struct StellaPolicy {
	int refs;	    /* atomic */
	bool is_unreadable; /* a host agent's struct says more than this version knows: never valid */
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
};

/* A policy that the makers above fill in and then give out: every default of the specification is
 * set, and arrays are empty. */
StellaPolicy *policy_new_defaults(void);

/* A copy that may be changed until it is given out: for a session that adds a mount of its own. */
StellaPolicy *policy_copy(const StellaPolicy *policy);

/* Adds a row or a variable to a policy that has not been given out yet. The texts are copied; paths
 * are cleaned, a relative one is kept as it is for policy_validate() to refuse. The row is the policy's. */
PolicyMount *policy_add_mount(StellaPolicy *policy, const char *host_path, const char *view_path,
			      StellaMountAccess access);
void policy_add_env(StellaPolicy *policy, const char *name, const char *value);

/* Replaces a string field of such a policy, a path being cleaned ("" stays ""). */
void policy_set_path(char **field, const char *path);

/* Judges structure: working_dir given, mount paths, duplicates, reserved and always-read-only view
 * paths, ranges, environment names. On failure -EINVAL, and *reterr_message is one line without a
 * newline that begins with the key ("filesystem.mounts[2].view_path: ..."). */
int policy_validate(const StellaPolicy *policy, char **reterr_message);

/* The key that a message about a policy begins with, of this function, the reader's or a plan's ("filesystem.cache: ...",
 * "filesystem.stella_home \"/x\": ..."); NULL when it begins with something else. The caller frees. */
char *policy_message_key(const char *message);

/* The first key of the policy whose effect this build does not have yet, with its row where there are rows, e.g.
 * "filesystem.mounts[0].quota_bytes", or NULL. A program refuses such a policy instead of ignoring the key. The caller
 * frees. */
char *policy_find_unimplemented(const StellaPolicy *policy);

/* The words of the format for an enum value ("ro", "allow_all", "contained"). Static storage. */
const char *policy_access_name(StellaMountAccess access);
const char *policy_network_name(StellaNetworkMode mode);
const char *policy_runtime_name(PolicyRuntime runtime); /* NULL for DEFAULT */
const char *policy_symlinks_name(PolicySymlinks symlinks);
const char *policy_cache_name(PolicyCache cache);
const char *policy_ownership_name(PolicyOwnership ownership);

/* process.user: the id that a name of the format stands for, and back (NULL: the id has no name). */
bool policy_find_user(const char *name, uid_t *ret_uid);
const char *policy_user_name(uid_t uid);

/* The words of one enum in the order of its values; where a value has no word the entry is NULL. The
 * first `told` of them that are not NULL are named in a message about another word. */
typedef struct {
	const char *const *words;
	int count;
	int told;
} PolicyWords;

extern const PolicyWords policy_access_words, policy_network_words, policy_runtime_words,
	policy_symlinks_words, policy_cache_words, policy_ownership_words;

/* The value that word stands for, or -1. */
int policy_words_find(const PolicyWords *words, const char *word);
/* `"ro" or "rw"`, in quotes or without. The caller frees. */
char *policy_words_expected(const PolicyWords *words, bool quoted);

/* The integers of the limits object: name in the format, place in PolicyLimits, range, and whether
 * it is a size in bytes. Ends with a row whose name is NULL. */
typedef struct {
	const char *name;
	size_t offset;
	uint64_t min, max;
	bool is_size;
} PolicyLimit;

extern const PolicyLimit policy_limits[];

/* The field of limits that row describes. */
uint64_t *policy_limit_field(PolicyLimits *limits, const PolicyLimit *row);

/* The most that timeout_ms can be: what fits in 31 bits of seconds. */
#define POLICY_TIMEOUT_MS_MAX (INT64_C(2147483647) * 1000)
