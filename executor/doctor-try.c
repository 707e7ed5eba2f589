/* One probe in a child; see doctor.h. What it found comes back over a pipe as five strings, read to the end or
 * to the deadline, and the child is killed if it is still there: what it cloned dies of that, and what it
 * mounted is in namespaces that go with it. */
#include "executor/doctor.h"

#include "common/errno-util.h"
#include "common/fd-util.h"
#include "common/io-util.h"
#include "executor/hints.h"
#include "executor/spawn.h"

#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#define KILL_MS	   2000
#define ANSWER_MAX 16384
#define SAID_MAX   1000

void exr_finding_clear(ExrFinding *finding)
{
	g_free(finding->found);
	g_free(finding->remedy);
	g_free(finding->cost);
	memset(finding, 0, sizeof *finding);
}

void exr_finding_set(ExrFinding *finding, ExrDoctorState state, int errnum, const char *remedy,
		     const char *format, ...)
{
	va_list args;

	va_start(args, format);
	finding->found = g_strdup_vprintf(format, args);
	va_end(args);
	finding->state = state;
	finding->errnum = errnum;
	finding->remedy = g_strdup(remedy);
}

void exr_finding_set_failed(ExrFinding *finding, ExrDoctorState state, const char *stage,
			    int errnum, const char *what)
{
	exr_finding_set(finding, state, errnum, exr_hint(stage, errnum), "%s: %s (%s)", what,
			errno_text(errnum), errno_name(errnum));
}

char *exr_doctor_take_stderr(void)
{
	char text[SAID_MAX];
	ssize_t size = pread(STDERR_FILENO, text, sizeof text - 1, 0);

	if (ftruncate(STDERR_FILENO, 0) != 0 || lseek(STDERR_FILENO, 0, SEEK_SET) < 0 || size < 0)
		size = 0;
	text[size] = '\0';
	text[strcspn(text, "\n")] = '\0';
	for (char *c = text; *c; c++)
		if ((unsigned char)*c < 0x20 || (unsigned char)*c >= 0x7f)
			*c = '?';
	return g_strdup(text);
}

/* stdin is empty, and what programs print goes to a file: nothing that a probe starts has anything to say to
 * whoever reads our output. */
static int own_streams(void)
{
	int null = open("/dev/null", O_RDONLY | O_CLOEXEC);
	int file = memfd_create("doctor", MFD_CLOEXEC);

	if (file < 0 || dup2(file, STDOUT_FILENO) < 0 || dup2(file, STDERR_FILENO) < 0)
		return -errno;
	return null >= 0 && dup2(null, STDIN_FILENO) < 0 ? -errno : 0;
}

static _Noreturn void child(const ExrProbe *probe, int answer_fd)
{
	ExrFinding finding = { 0 };
	GString *answer = g_string_new(NULL);
	int r;

	(void)prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
	if (own_streams() < 0)
		_exit(1);
	probe->probe(&finding);
	if (finding.found)
		g_strdelimit(finding.found, "\n", ' ');
	g_string_printf(answer, "%d\n%d\n%s\n%s\n%s", (int)finding.state, finding.errnum,
			finding.found ? finding.found : "", finding.cost ? finding.cost : "",
			finding.remedy ? finding.remedy : "");
	r = io_write_all(answer_fd, answer->str, answer->len);
	_exit(r < 0 ? 1 : 0);
}

/* Until the child has ended and closed its end: nobody else has that. */
static bool read_answer(int fd, int timeout_ms, GString *ret_answer)
{
	gint64 deadline = g_get_monotonic_time() + (gint64)timeout_ms * 1000;

	while (ret_answer->len < ANSWER_MAX) {
		gint64 left_ms = (deadline - g_get_monotonic_time()) / 1000;
		char part[1024];
		ssize_t size;

		if (exr_wait_readable(fd, (int)MAX(left_ms, 0)) < 0)
			return false;
		size = read(fd, part, sizeof part);
		if (size <= 0)
			return size == 0;
		g_string_append_len(ret_answer, part, size);
	}
	return false;
}

static bool parse_answer(const char *answer, ExrFinding *ret_finding)
{
	g_auto(GStrv) parts = g_strsplit(answer, "\n", 5);
	int state;

	if (g_strv_length(parts) != 5)
		return false;
	state = atoi(parts[0]);
	if (state < 0 || state >= _N_EXR_DOCTOR)
		return false;
	ret_finding->state = (ExrDoctorState)state;
	ret_finding->errnum = atoi(parts[1]);
	ret_finding->found = *parts[2] ? g_strdup(parts[2]) : NULL;
	ret_finding->cost = *parts[3] ? g_strdup(parts[3]) : NULL;
	ret_finding->remedy = *parts[4] ? g_strdup(parts[4]) : NULL;
	return true;
}

/* Without a pidfd, which is one of the things that a host may lack; nobody else waits for our child. */
static void end_child(pid_t pid, bool at_once)
{
	gint64 deadline = g_get_monotonic_time() + KILL_MS * 1000;

	if (at_once)
		(void)kill(pid, SIGKILL);
	while (waitpid(pid, NULL, WNOHANG) == 0) {
		if (g_get_monotonic_time() > deadline) {
			(void)kill(pid, SIGKILL);
			if (at_once)
				return; /* waits in the kernel, and dies when that lets it */
			at_once = true;
			deadline += KILL_MS * 1000;
		}
		g_usleep(500);
	}
}

bool exr_doctor_try(const ExrProbe *probe, int timeout_ms, ExrFinding *ret_finding)
{
	g_autoptr(GString) answer = g_string_new(NULL);
	FD_AUTO read_end = -1;
	bool in_time;
	int ends[2];
	pid_t pid;

	if (pipe2(ends, O_CLOEXEC) != 0) {
		exr_finding_set_failed(ret_finding, EXR_DOCTOR_UNKNOWN, "", errno, "pipe");
		return false;
	}
	read_end = ends[0];
	pid = fork();
	if (pid == 0)
		child(probe, ends[1]);
	fd_close(&ends[1]);
	if (pid < 0) {
		exr_finding_set_failed(ret_finding, EXR_DOCTOR_UNKNOWN, "", errno, "fork");
		return false;
	}
	in_time = read_answer(read_end, timeout_ms, answer);
	end_child(pid, !in_time);
	if (in_time && parse_answer(answer->str, ret_finding))
		return true;
	if (in_time)
		exr_finding_set(ret_finding, EXR_DOCTOR_MISSING, 0, NULL,
				"what tried it ended unexpectedly");
	else
		exr_finding_set(ret_finding, EXR_DOCTOR_MISSING, ETIMEDOUT, NULL,
				"what tried it did not come to an end within %d s",
				timeout_ms / 1000);
	return false;
}
