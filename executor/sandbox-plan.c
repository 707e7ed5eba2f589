/* From view plan to the sandbox's mounts; see sandbox-plan.h.
 *
 * The gateway serves a view that has empty directories (POINT) where the sandbox mounts something of its
 * own. What such a mount would cover is put on top of it again: a mount of the policy below /tmp is a
 * clone of that part of the view. Its mount point can be made only in what is new and ours (/run, /tmp);
 * inside a runtime directory of the host it has to exist, for nothing is ever made on the host. */
#include "executor/sandbox-plan-internal.h"

#include "common/errno-util.h"
#include "common/io-util.h"
#include "common/path-util.h"
#include "config.h"
#include "executor/scope.h"
#include "executor/wire.h"

#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

/* Files in memory outlive the command that wrote them. They must not fill what the session may have, or every later
 * command would be killed, also the one that would remove them. There are two such file systems. */
#define TMPFS_PART 4
#define TMPFS_MIN  UINT64_C(65536)

void exr_plan_begin(ExrPlanBuilder *builder, const ExrStateDir *state, size_t max_rows)
{
	_Static_assert(sizeof(WirePlan) % 8 == 0 && sizeof(WireRow) % 8 == 0, "rows are aligned");
	*builder = (ExrPlanBuilder){
		.state = state,
		.text_base = sizeof(WirePlan) + max_rows * sizeof(WireRow),
		.rows = g_array_new(FALSE, FALSE, sizeof(WireRow)),
		.text = g_byte_array_new(),
	};
}

void exr_plan_clear(ExrPlanBuilder *builder)
{
	g_array_unref(builder->rows);
	g_byte_array_unref(builder->text);
}

uint32_t exr_plan_add_bytes(ExrPlanBuilder *builder, const void *data, size_t size)
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

uint32_t exr_plan_add_text(ExrPlanBuilder *builder, const char *text)
{
	return exr_plan_add_bytes(builder, text, strlen(text) + 1);
}

static bool covers(const ViewEntry *above, const ViewEntry *entry)
{
	return above != entry && path_is_below(entry->view_path, above->view_path) &&
	       (above->kind == VIEW_ENTRY_MOUNT || above->kind == VIEW_ENTRY_POINT);
}

/* Entries are sorted, so those above come before, the deepest last. */
const ViewEntry *exr_plan_find_above(const ViewPlan *view, unsigned int i)
{
	const ViewEntry *entry = view->entries->pdata[i];

	for (unsigned int j = i; j-- > 0;)
		if (covers(view->entries->pdata[j], entry))
			return view->entries->pdata[j];
	return NULL;
}

const char *exr_sandbox_private_name(const char *view_path)
{
	if (strcmp(view_path, "/tmp") == 0)
		return "tmp";
	return strcmp(view_path, "/var/tmp") == 0 ? "var-tmp" : NULL;
}

static int add_private(ExrPlanBuilder *builder, WireRow *row, const char *name)
{
	g_autofree char *path = exr_state_dir_join(builder->state, name);
	struct stat st;

	if (lstat(path, &st) != 0)
		return -errno;
	row->kind = WIRE_ROW_PRIVATE;
	row->source = exr_plan_add_text(builder, path);
	row->dev = st.st_dev;
	row->ino = st.st_ino;
	return 0;
}

static int fill_point(ExrPlanBuilder *builder, const ViewEntry *entry, WireRow *row)
{
	const char *name = exr_sandbox_private_name(entry->view_path);

	if (entry->host_path) {
		row->kind = WIRE_ROW_HOST;
		row->source = exr_plan_add_text(builder, entry->host_path);
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

static int add_entry(ExrPlanBuilder *builder, const ViewPlan *view, unsigned int i)
{
	const ViewEntry *entry = view->entries->pdata[i];
	const ViewEntry *above = exr_plan_find_above(view, i);
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
	row.target = exr_plan_add_text(builder, entry->view_path + 1);
	switch (entry->kind) {
	case VIEW_ENTRY_POINT:
		r = fill_point(builder, entry, &row);
		break;
	case VIEW_ENTRY_LINK:
		row.kind = WIRE_ROW_LINK;
		row.source = exr_plan_add_text(builder, entry->target);
		break;
	case VIEW_ENTRY_MOUNT:
	case VIEW_ENTRY_GENERATED:
		row.kind = WIRE_ROW_VIEW;
		break;
	}
	g_array_append_val(builder->rows, row);
	return r;
}

static GByteArray *assemble(const ExrPlanBuilder *builder, const WirePlan *frame)
{
	GByteArray *all = g_byte_array_new();
	guint rows_end;

	g_byte_array_append(all, (const guint8 *)frame, sizeof *frame);
	g_byte_array_append(all, (const guint8 *)builder->rows->data,
			    builder->rows->len * (guint)sizeof(WireRow));
	/* The strings' offsets were given out for the largest number of rows. */
	rows_end = all->len;
	g_byte_array_set_size(all, (guint)builder->text_base);
	memset(all->data + rows_end, 0, all->len - rows_end);
	g_byte_array_append(all, builder->text->data, builder->text->len);
	return all;
}

static uint32_t flags_of(const ViewPlan *view, const ExrIdentity *identity)
{
	uint32_t flags = identity->lent ? WIRE_PLAN_CLEAR_GROUPS : 0;

	if (view->policy->network_mode == STELLA_NETWORK_DISABLED)
		flags |= WIRE_PLAN_LOOPBACK;
	else if (exr_scope_available())
		flags |= WIRE_PLAN_SCOPE;
	return flags;
}

static bool is_mounted_dir(const ViewPlan *view, const char *path)
{
	const ViewEntry *entry = path ? view_plan_find_by_view_path(view, path) : NULL;

	return entry && entry->kind == VIEW_ENTRY_MOUNT && entry->is_dir &&
	       strcmp(entry->view_path, path) == 0;
}

int exr_plan_finish(ExrPlanBuilder *builder, const ViewPlan *view, const ExrIdentity *identity,
		    const ExrPlanFrame *given, ExrError *error)
{
	WirePlan frame = { .magic = WIRE_MAGIC,
			   .version = STELLA_VERSION,
			   .uid = identity->inside };
	g_autoptr(GByteArray) all = NULL;
	int r;

	frame.flags = (flags_of(view, identity) & ~given->without) | given->flags;
	if (given->view_path)
		frame.view_path = exr_plan_add_text(builder, given->view_path);
	if (view->policy->limits.memory_bytes)
		frame.tmpfs_bytes = MAX(view->policy->limits.memory_bytes / TMPFS_PART, TMPFS_MIN);
	frame.session_dir = exr_plan_add_text(builder, given->session_dir);
	if (!(frame.flags & (WIRE_PLAN_NATIVE | WIRE_PLAN_PLAIN)) &&
	    is_mounted_dir(view, view->working_dir))
		frame.waiting_dir = exr_plan_add_text(builder, view->working_dir);
	frame.rows = sizeof frame;
	frame.row_count = builder->rows->len;
	if (given->seccomp) {
		frame.seccomp_code =
			exr_plan_add_bytes(builder, given->seccomp->code, given->seccomp->size);
		frame.seccomp_size = (uint32_t)given->seccomp->size;
	}
	frame.size = (uint32_t)(builder->text_base + builder->text->len);
	all = assemble(builder, &frame);
	r = io_memfd_new("stella-plan", all->data, all->len);
	if (r < 0)
		return exr_error_set(error, "internal", "plan", -r, "cannot make the plan: %s",
				     errno_text(-r));
	return r;
}

static int add_entries(ExrPlanBuilder *builder, const ViewPlan *view, ExrError *error)
{
	for (unsigned int i = 0; i < view->entries->len; i++) {
		const ViewEntry *entry = view->entries->pdata[i];
		int r = add_entry(builder, view, i);

		if (r < 0)
			return exr_error_set(error, "rootfs-failed", "plan", -r,
					     "cannot prepare \"%s\": %s", entry->view_path,
					     errno_text(-r));
	}
	return 0;
}

int exr_sandbox_plan_new(const ViewPlan *view, const ExrIdentity *identity,
			 const ExrStateDir *state, const char *view_path, const ExrSeccomp *seccomp,
			 ExrError *reterr_error)
{
	const ExrPlanFrame frame = {
		.flags = view_path ? WIRE_PLAN_VIEW_AT_PATH : 0,
		.view_path = view_path,
		.session_dir = exr_state_dir_path(state),
		.seccomp = seccomp,
	};
	ExrPlanBuilder builder;
	int r;

	if (view->entries->len > WIRE_MAX_ROWS)
		return exr_error_set(reterr_error, "rootfs-failed", "plan", E2BIG,
				     "the view has more than %d entries", WIRE_MAX_ROWS);
	exr_plan_begin(&builder, state, view->entries->len);
	r = add_entries(&builder, view, reterr_error);
	if (r == 0)
		r = exr_plan_finish(&builder, view, identity, &frame, reterr_error);
	exr_plan_clear(&builder);
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
