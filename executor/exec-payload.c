/* The payload of one exec; see exec-payload.h.
 *
 * A memfd and not a message: arguments and environment may be megabytes. Offsets are 64-bit because exec
 * init turns them into the pointers that execve takes, in place. */
#include "executor/exec-payload.h"

#include "common/io-util.h"
#include "common/limits.h"
#include "executor/wire.h"

#include <errno.h>
#include <string.h>
#include <sys/resource.h>

static size_t count_texts(const char *const *texts)
{
	size_t count = 0;

	while (texts[count])
		count++;
	return count;
}

static void add_limit(WireExec *frame, int resource, uint64_t soft, uint64_t hard)
{
	uint32_t i = frame->limit_count++;

	g_assert(i < WIRE_MAX_LIMITS);
	frame->limits[i].resource = (uint32_t)resource;
	frame->limits[i].soft = soft;
	frame->limits[i].hard = hard;
}

/* None is "as the supervisor has it", but for core files: a crash writes no image of a command's memory
 * into the workspace, nor hands it to a handler of the host. */
static void add_limits(WireExec *frame, const PolicyLimits *limits)
{
	add_limit(frame, RLIMIT_CORE, 0, 0);
	if (limits->file_size_bytes)
		add_limit(frame, RLIMIT_FSIZE, limits->file_size_bytes, limits->file_size_bytes);
	if (limits->open_files)
		add_limit(frame, RLIMIT_NOFILE, limits->open_files, limits->open_files);
	/* SIGXCPU first, which says what happened; SIGKILL a second later. */
	if (limits->cpu_seconds)
		add_limit(frame, RLIMIT_CPU, limits->cpu_seconds, limits->cpu_seconds + 1);
}

static bool is_variable(const char *text)
{
	return text[0] != '=' && strchr(text, '=');
}

/* The texts of one vector, their offsets into vector. false: too large. */
static bool add_texts(GByteArray *data, const char *const *texts, size_t count, uint64_t *vector)
{
	for (size_t i = 0; i < count; i++) {
		size_t size = strlen(texts[i]) + 1;

		if (data->len + size > LIMIT_EXEC_PAYLOAD_BYTES)
			return false;
		vector[i] = data->len;
		g_byte_array_append(data, (const guint8 *)texts[i], (guint)size);
	}
	vector[count] = 0;
	return true;
}

int exr_exec_payload_new(const ExrRequest *request, const PolicyLimits *limits, uint64_t nproc)
{
	size_t argc = count_texts(request->argv), envc = count_texts(request->env);
	size_t vectors = (argc + envc + 2) * sizeof(uint64_t);
	g_autoptr(GByteArray) data = g_byte_array_new();
	g_autofree uint64_t *vector = NULL;
	WireExec frame = { .magic = WIRE_MAGIC };

	_Static_assert(sizeof(WireExec) % sizeof(uint64_t) == 0, "vectors are aligned");
	if (argc == 0)
		return -EINVAL;
	for (size_t i = 0; i < envc; i++)
		if (!is_variable(request->env[i]))
			return -EINVAL;
	if (sizeof frame + vectors > LIMIT_EXEC_PAYLOAD_BYTES)
		return -E2BIG;
	vector = g_new(uint64_t, argc + envc + 2);
	g_byte_array_set_size(data, (guint)(sizeof frame + vectors));
	if (!add_texts(data, request->argv, argc, vector) ||
	    !add_texts(data, request->env, envc, vector + argc + 1))
		return -E2BIG;
	frame.cwd = data->len;
	g_byte_array_append(data, (const guint8 *)request->cwd, (guint)strlen(request->cwd) + 1);
	frame.argc = (uint32_t)argc;
	frame.envc = (uint32_t)envc;
	frame.vectors = sizeof frame;
	frame.flags = (request->stdin_null ? WIRE_EXEC_STDIN_NULL : 0) |
		      (request->wait_left_over ? WIRE_EXEC_WAIT_ALL : 0) |
		      (request->is_live ? WIRE_EXEC_LIVE : 0) |
		      (request->tty ? WIRE_EXEC_TERMINAL : 0);
	frame.rows = request->rows;
	frame.columns = request->columns;
	frame.size = data->len;
	add_limits(&frame, limits);
	if (nproc)
		add_limit(&frame, RLIMIT_NPROC, nproc, nproc);
	memcpy(data->data, &frame, sizeof frame);
	memcpy(data->data + sizeof frame, vector, vectors);
	return io_memfd_new("stella-exec", data->data, data->len);
}
