/* What the policy-options*.c files share: what has been given on a command line so far. */
#pragma once

#include "common/policy-options.h"

typedef struct {
	StellaMountAccess access;
	char *text; /* as given, HOST[:VIEW] */
} MountOption;

typedef struct {
	const PolicyLimit *row;
	uint64_t value;
} LimitOption;

struct PolicyOptions {
	PolicyPurpose purpose;
	GHashTable *given; /* names of options that came */
	char *policy_file;
	char *workspace;
	char *user_dir;
	char *stella_home;
	char *backend;
	GPtrArray *mounts; /* MountOption */
	GArray *limits;	   /* LimitOption */
	int spill;	   /* -1: not given */
	int required;	   /* -1: not given */
	bool same_path;
	bool no_network;
	bool user_is_temporary; /* known when the policy has been made */
	int runtime;
	int symlinks;
	int cache;
};
