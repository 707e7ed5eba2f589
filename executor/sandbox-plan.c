/* From view plan to the sandbox's mounts; see sandbox-plan.h.
 *
 * The gateway serves a view that has empty directories (POINT) where the sandbox mounts something of its
 * own. What such a mount would cover is put on top of it again: a mount of the policy below /tmp is a
 * clone of that part of the view. Its mount point can be made only in what is new and ours (/run, /tmp);
 * inside a runtime directory of the host it has to exist, for nothing is ever made on the host. */
#include "executor/sandbox-plan.h"

#include "common/errno-util.h"
#include "common/io-util.h"
#include "common/path-util.h"
#include "executor/scope.h"
#include "executor/wire.h"

#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

typedef struct {
	const ExrStateDir *state;
	GArray *rows;	  /* WireRow */
	GByteArray *text; /* what comes behind the frame and the rows */
	size_t text_base;
} Builder;

static uint32_t add_bytes(Builder *builder, const void *data, size_t size)
{
	static const guint8 zeros[8];
	uint32_t at;

	/* Programs of struct sock_filter are read in place. */
	while ((builder->text_base + builder->text->len) % 8 != 0)
		g_byte_array_append(builder->text, zeros, 1);
	at = (uint32_t)(builder->text_base + builder->text->len);
	g_byte_array_append(builder->text, data, (guint)size);
	return at;
}

static uint32_t add_text(Builder *builder, const char *text)
{
	return add_bytes(builder, text, strlen(text) + 1);
}

static bool covers(const ViewEntry *above, const ViewEntry *entry)
{
	return above != entry && path_is_below(entry->view_path, above->view_path) &&
	       (above->kind == VIEW_ENTRY_MOUNT || above->kind == VIEW_ENTRY_POINT);
}

/* Entries are sorted, so those above come before, the deepest last. */
static const ViewEntry *find_above(const ViewPlan *view, unsigned int i)
{
	const ViewEntry *entry = view->entries->pdata[i];

	for (unsigned int j = i; j-- > 0;)
		if (covers(view->entries->pdata[j], entry))
			return view->entries->pdata[j];
	return NULL;
}

static const char *private_name(const char *view_path)
{
	if (strcmp(view_path, "/tmp") == 0)
		return "tmp";
	return strcmp(view_path, "/var/tmp") == 0 ? "var-tmp" : NULL;
}

static int add_private(Builder *builder, WireRow *row, const char *name)
{
	g_autofree char *path = exr_state_dir_join(builder->state, name);
	struct stat st;

	if (lstat(path, &st) != 0)
		return -errno;
	row->kind = WIRE_ROW_PRIVATE;
	row->source = add_text(builder, path);
	row->dev = st.st_dev;
	row->ino = st.st_ino;
	return 0;
}

static int fill_point(Builder *builder, const ViewEntry *entry, WireRow *row)
{
	const char *name = private_name(entry->view_path);

	if (entry->host_path) {
		row->kind = WIRE_ROW_HOST;
		row->source = add_text(builder, entry->host_path);
		return 0;
	}
	if (name)
		return add_private(builder, row, name);
	if (strcmp(entry->view_path, "/proc") == 0)
		row->kind = WIRE_ROW_PROC;
	else if (strcmp(entry->view_path, "/dev") == 0)
		row->kind = WIRE_ROW_DEV;
	else if (strcmp(entry->view_path, "/run") == 0)
		row->kind = WIRE_ROW_RUN;
	else
		return -EINVAL;
	return 0;
}

static int add_entry(Builder *builder, const ViewPlan *view, unsigned int i)
{
	const ViewEntry *entry = view->entries->pdata[i];
	const ViewEntry *above = find_above(view, i);
	bool covered = above && above->kind == VIEW_ENTRY_POINT;
	WireRow row = { 0 };
	int r = 0;

	/* Served by the gateway, and visible. */
	if (entry->kind != VIEW_ENTRY_POINT && !covered)
		return 0;
	if (entry->is_dir)
		row.flags |= WIRE_ROW_IS_DIR;
	if (covered && !above->host_path)
		row.flags |= WIRE_ROW_MAKE;
	if (view->policy->symlinks == POLICY_SYMLINKS_DENY)
		row.flags |= WIRE_ROW_NO_FOLLOW;
	row.target = add_text(builder, entry->view_path + 1);
	switch (entry->kind) {
	case VIEW_ENTRY_POINT:
		r = fill_point(builder, entry, &row);
		break;
	case VIEW_ENTRY_LINK:
		row.kind = WIRE_ROW_LINK;
		row.source = add_text(builder, entry->target);
		break;
	case VIEW_ENTRY_MOUNT:
	case VIEW_ENTRY_GENERATED:
		row.kind = WIRE_ROW_VIEW;
		break;
	}
	g_array_append_val(builder->rows, row);
	return r;
}

static GByteArray *assemble(const Builder *builder, const WirePlan *frame)
{
	GByteArray *all = g_byte_array_new();
	static const guint8 nothing;

	g_byte_array_append(all, (const guint8 *)frame, sizeof *frame);
	g_byte_array_append(all, (const guint8 *)builder->rows->data,
			    builder->rows->len * (guint)sizeof(WireRow));
	/* The strings' offsets were given out for the largest number of rows. */
	while (all->len < builder->text_base)
		g_byte_array_append(all, &nothing, 1);
	g_byte_array_append(all, builder->text->data, builder->text->len);
	return all;
}

static int build(Builder *builder, const ViewPlan *view, const ExrIdentity *identity,
		 const char *view_path, const ExrSeccomp *seccomp, ExrError *error)
{
	WirePlan frame = { .magic = WIRE_MAGIC, .uid = identity->inside };
	g_autoptr(GByteArray) all = NULL;
	int r;

	for (unsigned int i = 0; i < view->entries->len; i++) {
		if ((r = add_entry(builder, view, i)) < 0) {
			const ViewEntry *entry = view->entries->pdata[i];

			return exr_error_set(error, "rootfs-failed", "plan", -r,
					     "cannot prepare \"%s\": %s", entry->view_path,
					     errno_text(-r));
		}
	}
	if (identity->lent)
		frame.flags |= WIRE_PLAN_CLEAR_GROUPS;
	if (view->policy->network_mode == STELLA_NETWORK_DISABLED)
		frame.flags |= WIRE_PLAN_LOOPBACK;
	else if (exr_scope_available())
		frame.flags |= WIRE_PLAN_SCOPE;
	if (view_path) {
		frame.flags |= WIRE_PLAN_VIEW_AT_PATH;
		frame.view_path = add_text(builder, view_path);
	}
	frame.session_dir = add_text(builder, exr_state_dir_path(builder->state));
	frame.rows = sizeof frame;
	frame.row_count = builder->rows->len;
	frame.seccomp_code = add_bytes(builder, seccomp->code, seccomp->size);
	frame.seccomp_size = (uint32_t)seccomp->size;
	frame.size = (uint32_t)(builder->text_base + builder->text->len);
	all = assemble(builder, &frame);
	r = io_memfd_new("stella-plan", all->data, all->len);
	if (r < 0)
		return exr_error_set(error, "internal", "plan", -r, "cannot make the plan: %s",
				     errno_text(-r));
	return r;
}

int exr_sandbox_plan_new(const ViewPlan *view, const ExrIdentity *identity,
			 const ExrStateDir *state, const char *view_path, const ExrSeccomp *seccomp,
			 ExrError *reterr_error)
{
	Builder builder = { .state = state };
	int r;

	_Static_assert(sizeof(WirePlan) % 8 == 0 && sizeof(WireRow) % 8 == 0, "rows are aligned");
	if (view->entries->len > WIRE_MAX_ROWS)
		return exr_error_set(reterr_error, "rootfs-failed", "plan", E2BIG,
				     "the view has more than %d entries", WIRE_MAX_ROWS);
	builder.text_base = sizeof(WirePlan) + view->entries->len * sizeof(WireRow);
	builder.rows = g_array_new(FALSE, FALSE, sizeof(WireRow));
	builder.text = g_byte_array_new();
	r = build(&builder, view, identity, view_path, seccomp, reterr_error);
	g_array_unref(builder.rows);
	g_byte_array_unref(builder.text);
	return r;
}

char *exr_sandbox_plan_row_path(int plan_fd, int row)
{
	struct stat st;
	WirePlan *plan;
	char *path = NULL;

	if (row < 0 || fstat(plan_fd, &st) != 0)
		return NULL;
	plan = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, plan_fd, 0);
	if (plan == MAP_FAILED)
		return NULL;
	if ((uint32_t)row < plan->row_count) {
		const WireRow *rows =
			(const WireRow *)(const void *)((const char *)plan + plan->rows);

		path = g_strconcat("/", (const char *)plan + rows[row].target, NULL);
	}
	munmap(plan, (size_t)st.st_size);
	return path;
}
