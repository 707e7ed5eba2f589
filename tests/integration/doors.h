/* The three doors to one boundary, as it-doors.c tries them. Each is opened over a ground, answers for one path at a time
 * (what _new gave is the `door` of _try), and ends the test when it does not work at all. */
#pragma once

#include "integration/doors-ground.h"

typedef struct ResolverDoor ResolverDoor;
ResolverDoor *resolver_door_new(const Ground *ground);
void resolver_door_free(ResolverDoor *door);
/* The open form. */
void resolver_door_try(void *door, const Vector *vector, DoorAnswer *ret_answer);
/* What is wrong about the walk and the string form of the same path; NULL: nothing. The caller frees. */
char *resolver_door_check(ResolverDoor *door, const Ground *ground, const Vector *vector);

/* Mounted at the ground's mountpoint; we are a host process. */
typedef struct ViewDoor ViewDoor;
ViewDoor *view_door_new(const Ground *ground);
void view_door_free(ViewDoor *door);
void view_door_try(void *door, const Vector *vector, DoorAnswer *ret_answer);

/* A session with one command, the probe. */
typedef struct SandboxDoor SandboxDoor;
SandboxDoor *sandbox_door_new(const Ground *ground);
void sandbox_door_free(SandboxDoor *door);
void sandbox_door_try(void *door, const Vector *vector, DoorAnswer *ret_answer);
