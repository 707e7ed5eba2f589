/* What the makers of a sandbox's plan share: rows, texts, and the frame around them. For them only. */
#pragma once

#include "executor/sandbox-plan.h"
#include "executor/wire.h"

typedef struct {
	const ExrStateDir *state;
	GArray *rows;	  /* WireRow */
	GByteArray *text; /* what comes behind the frame and the rows */
	size_t text_base;
} ExrPlanBuilder;

/* There is room for that many rows. */
void exr_plan_begin(ExrPlanBuilder *builder, const ExrStateDir *state, size_t max_rows);
void exr_plan_clear(ExrPlanBuilder *builder);

/* The offset in the plan. */
uint32_t exr_plan_add_bytes(ExrPlanBuilder *builder, const void *data, size_t size);
uint32_t exr_plan_add_text(ExrPlanBuilder *builder, const char *text);

/* The deepest entry above the i-th that covers its place with a mount, or NULL. */
const ViewEntry *exr_plan_find_above(const ViewPlan *view, unsigned int i);

typedef struct {
	uint32_t flags;	  /* WIRE_PLAN_*, added to what policy and identity ask for */
	uint32_t without; /* of those, not to be set */
	const char *view_path, *session_dir;
	const ExrSeccomp *seccomp; /* NULL: no filter */
} ExrPlanFrame;

/* The sealed memfd, or -errno with *error. */
int exr_plan_finish(ExrPlanBuilder *builder, const ViewPlan *view, const ExrIdentity *identity,
		    const ExrPlanFrame *given, ExrError *error);
