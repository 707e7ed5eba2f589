/* A view plan as the table that a person reads, one row an entry. Names are escaped: a host path may
 * hold anything, and the table goes to a terminal. */
#include "common/view-plan.h"

#include "common/path-util.h"

#include <string.h>

enum { VIEW_PATH, ACCESS, HOST_PATH, NOTE, N_COLUMNS };

typedef struct {
	char *cell[N_COLUMNS];
} Row;

static void row_free(gpointer data)
{
	Row *row = data;

	for (int i = 0; i < N_COLUMNS; i++)
		g_free(row->cell[i]);
	g_free(row);
}

static void add_row(GPtrArray *rows, const char *view_path, const char *access,
		    const char *host_path, const char *note)
{
	Row *row = g_new0(Row, 1);

	row->cell[VIEW_PATH] = path_escape(view_path);
	row->cell[ACCESS] = g_strdup(access);
	row->cell[HOST_PATH] = host_path ? path_escape(host_path) : g_strdup("-");
	row->cell[NOTE] = path_escape(note);
	g_ptr_array_add(rows, row);
}

static const char *origin_note(ViewOrigin origin)
{
	switch (origin) {
	case VIEW_ORIGIN_DECLARED:
		return "";
	case VIEW_ORIGIN_WORKSPACE:
	case VIEW_ORIGIN_TEMP:
		return "implied";
	case VIEW_ORIGIN_TOOLS:
		return "tools";
	case VIEW_ORIGIN_RUNTIME:
		return "runtime";
	}
	return "";
}

static void add_entry(GPtrArray *rows, const ViewEntry *entry)
{
	switch (entry->kind) {
	case VIEW_ENTRY_MOUNT:
		add_row(rows, entry->view_path, policy_access_name(entry->access), entry->host_path,
			origin_note(entry->origin));
		break;
	case VIEW_ENTRY_GENERATED:
		add_row(rows, entry->view_path, "ro", NULL, "generated");
		break;
	case VIEW_ENTRY_LINK: {
		g_autofree char *note = g_strdup_printf("link to %s", entry->target);

		add_row(rows, entry->view_path, "-", NULL, note);
		break;
	}
	case VIEW_ENTRY_POINT:
		if (entry->host_path)
			add_row(rows, entry->view_path, "ro", entry->host_path, "runtime");
		else
			add_row(rows, entry->view_path, policy_access_name(entry->access), NULL,
				"sandbox's own");
		break;
	}
}

/* In characters: a name of many bytes a character would push the columns out of line otherwise. */
static size_t width_of(const char *text)
{
	return (size_t)g_utf8_strlen(text, -1);
}

static void append_row(GString *text, const Row *row, const size_t width[N_COLUMNS])
{
	int last = N_COLUMNS - 1;

	while (last > 0 && row->cell[last][0] == '\0')
		last--;
	for (int i = 0; i <= last; i++) {
		g_string_append(text, row->cell[i]);
		for (size_t n = width_of(row->cell[i]); i < last && n < width[i] + 2; n++)
			g_string_append_c(text, ' ');
	}
	g_string_append_c(text, '\n');
}

char *view_plan_format(const ViewPlan *plan)
{
	g_autoptr(GPtrArray) rows = g_ptr_array_new_with_free_func(row_free);
	GString *text = g_string_new(NULL);
	size_t width[N_COLUMNS] = { 0 };

	add_row(rows, "VIEW PATH", "ACCESS", "HOST PATH", "NOTE");
	for (unsigned int i = 0; i < plan->entries->len; i++)
		add_entry(rows, plan->entries->pdata[i]);
	for (unsigned int i = 0; i < plan->dropped->len; i++) {
		const ViewDropped *dropped = plan->dropped->pdata[i];

		add_row(rows, dropped->view_path, "-", dropped->host_path,
			"optional, absent: dropped");
	}
	for (unsigned int i = 0; i < rows->len; i++) {
		for (int k = 0; k < N_COLUMNS; k++)
			width[k] = MAX(width[k], width_of(((Row *)rows->pdata[i])->cell[k]));
	}
	for (unsigned int i = 0; i < rows->len; i++)
		append_row(text, rows->pdata[i], width);
	return g_string_free(text, FALSE);
}
