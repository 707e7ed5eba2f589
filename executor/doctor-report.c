/* The report of `doctor`; see doctor.h. The keys of the object are published in stella-exec(1). */
#include "executor/doctor.h"

#include "common/errno-util.h"
#include "common/json-string.h"
#include "config.h"

#define REPORT_VERSION 1

static const char *const state_names[_N_EXR_DOCTOR] = {
	[EXR_DOCTOR_OK] = "ok",
	[EXR_DOCTOR_DEGRADED] = "degraded",
	[EXR_DOCTOR_MISSING] = "missing",
	[EXR_DOCTOR_UNKNOWN] = "unknown",
};

static void add_part(GString *text, const char *separator, const char *part)
{
	if (part)
		g_string_append_printf(text, "%s%s", separator, part);
}

static const char *cost(const ExrProbe *probe, const ExrFinding *finding)
{
	return finding->cost ? finding->cost : probe->cost;
}

static void add_line(GString *text, const ExrProbe *probe, const ExrFinding *finding)
{
	g_string_append_printf(text, "%-8s %s", state_names[finding->state], probe->title);
	add_part(text, ": ", finding->found);
	if (finding->state == EXR_DOCTOR_DEGRADED || finding->state == EXR_DOCTOR_MISSING) {
		add_part(text, "; ", cost(probe, finding));
		add_part(text, "; ", finding->remedy);
	}
	g_string_append_c(text, '\n');
}

GString *exr_doctor_text(const ExrProbe *probes, const ExrFinding *findings, size_t count,
			 const ExrFinding *verdict)
{
	GString *text = g_string_new(NULL);

	for (size_t i = 0; i < count; i++)
		add_line(text, &probes[i], &findings[i]);
	if (verdict->state == EXR_DOCTOR_OK) {
		g_string_append(text, "run works\n");
	} else if (verdict->state == EXR_DOCTOR_DEGRADED) {
		g_string_append_printf(text, "run works %s\n", verdict->found);
	} else {
		g_string_append_printf(text, "run does not work: %s", verdict->found);
		if (verdict->remedy)
			g_string_append_printf(text, " (%s)", verdict->remedy);
		g_string_append_c(text, '\n');
	}
	/* What a host calls its groups and files may hold anything. */
	for (char *c = text->str; *c; c++)
		if (((unsigned char)*c < 0x20 && *c != '\n') || *c == 0x7f)
			*c = '?';
	return text;
}

static void add_member(GString *json, const char *name, const char *value)
{
	g_string_append_printf(json, "%s\"%s\": ", json->str[json->len - 1] == '{' ? "" : ", ",
			       name);
	json_string_add(json, value);
}

static void add_finding(GString *json, const ExrProbe *probe, const ExrFinding *finding)
{
	bool lacks = finding->state == EXR_DOCTOR_DEGRADED || finding->state == EXR_DOCTOR_MISSING;

	g_string_append_c(json, '{');
	add_member(json, "name", probe->name);
	add_member(json, "state", state_names[finding->state]);
	add_member(json, "found", finding->found);
	add_member(json, "errno", finding->errnum ? errno_name(finding->errnum) : NULL);
	add_member(json, "cost", lacks ? cost(probe, finding) : NULL);
	add_member(json, "remedy", lacks ? finding->remedy : NULL);
	g_string_append_c(json, '}');
}

GString *exr_doctor_json(const ExrProbe *probes, const ExrFinding *findings, size_t count,
			 const ExrFinding *verdict)
{
	GString *json = g_string_new(NULL);
	bool well = verdict->state == EXR_DOCTOR_OK;

	g_string_printf(json, "{\"version\": %d, \"run_works\": %s", REPORT_VERSION,
			well || verdict->state == EXR_DOCTOR_DEGRADED ? "true" : "false");
	add_member(json, "reason", well ? NULL : verdict->found);
	add_member(json, "remedy", well ? NULL : verdict->remedy);
	add_member(json, "program_version", STELLA_VERSION);
	g_string_append(json, ", \"capabilities\": [");
	for (size_t i = 0; i < count; i++) {
		if (i > 0)
			g_string_append(json, ", ");
		add_finding(json, &probes[i], &findings[i]);
	}
	g_string_append(json, "]}\n");
	return json;
}
