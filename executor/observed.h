/* What the gateway knows of one command: what it was refused, and what it has changed. */
#pragma once

#include "common/json.h"

#include <stdbool.h>
#include <stdint.h>

typedef struct {
	char *op;	   /* "open", "rename", ... */
	char *path;	   /* in the view, any bytes */
	char *mount;	   /* the view path of its mount, or NULL */
	char *reason;	   /* common/denial-reason.h */
	char *errnum_name; /* "EROFS"; NULL: it was recorded only */
	uint64_t count;
} ExrDenial;

typedef struct {
	char *path;   /* in the view, any bytes */
	char *from;   /* renamed: the old one; else NULL */
	char *change; /* "created", "modified", "deleted", "renamed" */
} ExrChange;

/* An array that is NULL is not known, which an empty one is. */
typedef struct {
	GPtrArray *denials; /* ExrDenial */
	uint64_t denials_dropped;
	GPtrArray *changes; /* ExrChange */
	uint64_t changes_dropped;
	bool changes_incomplete;
} ExrObserved;

/* Reads a gateway's answer (common/control.h, {"boundary": "end"}); NULL: none came. A part that makes no sense is not
 * known. */
void exr_observed_read(JsonObject *answer, ExrObserved *ret_observed);
void exr_observed_clear(ExrObserved *observed);

/* For a person, without a newline: "write /opt/stella/x: read-only mount /opt/stella". The caller frees. */
char *exr_denial_describe(const ExrDenial *denial);
