/* What a world of the table stands on: its host tree, made in a temporary directory, and what has become of it after a
 * door was tried. Every object has a time of change of its own, by which it is known through any view. All of these
 * end the test when something does not work. */
#pragma once

#include "common/policy.h"
#include "integration/doors-table.h"
#include "integration/doors-try.h"
#include "lib/view-fixture.h"

#include <sys/stat.h>

typedef struct {
	World *world;
	ViewFixture *view;
	char *host; /* the tree: view->dir/h */
	int64_t first_mtime, end_mtime;
	GPtrArray *binds; /* char *: what is mounted in the tree */
	char *snapshot;	  /* of the tree, as it should be */
	/* of the vector that is being tried: */
	bool existed;
	struct stat st;
	char *content; /* or NULL */
} Ground;

/* Makes the tree of the world of that name. */
Ground *ground_new(const char *table, const char *name);
void ground_free(Ground *ground);

/* The policy of the world's mounts, and one more, read-only: the probe at /doors-probe. The caller owns it. */
StellaPolicy *ground_policy(const Ground *ground, PolicyRuntime runtime);

/* A path of the tree, absolute. The caller frees. */
char *ground_path(const Ground *ground, const char *name);

/* To be called before a door is tried: what is there that the verdict is about. */
void ground_remember(Ground *ground, const Want *want);
/* What is wrong about an answer, and about the host after it; NULL: nothing. What was changed rightly is as before
 * afterwards. The caller frees. */
char *ground_judge(Ground *ground, const Vector *vector, Door door, const DoorAnswer *answer);
