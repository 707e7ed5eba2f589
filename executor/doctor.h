/* What this host can do for `run`: capabilities that are each tried, in a child that takes everything it made
 * with it, and the verdict, for which a command is really run.
 *
 *   doctor-try.c           one probe in its child, with a deadline
 *   doctor-sandbox.c       a step in namespaces as a session has them
 *   doctor-probes-*.c      the probes
 *   doctor-report.c        the lines, and the object of --json
 *   cmd-doctor.c           which probes there are, and the exit status
 *
 * A probe may change its process as it likes: it is the process of that probe alone. No version is compared
 * and no file believed where the thing itself can be tried. */
#pragma once

#include "executor/error.h"

#include <glib.h>
#include <stdbool.h>
#include <stdint.h>

typedef enum {
	EXR_DOCTOR_OK,
	EXR_DOCTOR_DEGRADED, /* run works without, at a cost */
	EXR_DOCTOR_MISSING,
	EXR_DOCTOR_UNKNOWN, /* what is needed to try it is itself missing */
	_N_EXR_DOCTOR,
} ExrDoctorState;

/* The strings are owned, one line each, and may be NULL. */
typedef struct {
	ExrDoctorState state;
	int errnum;   /* positive, or 0 */
	char *found;  /* what there is, or what failed */
	char *remedy; /* how to get it */
	char *cost;   /* in place of the probe's, where that depends on what else there is */
} ExrFinding;

typedef struct {
	const char *name;  /* "user-namespaces": published, never changed */
	const char *title; /* "user namespaces" */
	const char *cost;  /* of not having it */
	void (*probe)(ExrFinding *ret_finding);
} ExrProbe;

void exr_finding_clear(ExrFinding *finding);

/* Fills an empty finding. remedy may be NULL. */
void exr_finding_set(ExrFinding *finding, ExrDoctorState state, int errnum, const char *remedy,
		     const char *format, ...) G_GNUC_PRINTF(5, 6);

/* That what (a sentence) failed with errnum; the remedy is the hint for that stage (hints.h). */
void exr_finding_set_failed(ExrFinding *finding, ExrDoctorState state, const char *stage,
			    int errnum, const char *what);

/* Runs a probe in a child of its own, whose stderr is a file of its own, for at most timeout_ms. Always
 * fills *ret_finding, also when the child crashes or hangs; false then. */
bool exr_doctor_try(const ExrProbe *probe, int timeout_ms, ExrFinding *ret_finding);

/* What programs have written to the stderr of a probe's process so far, which it is emptied of; their stdout
 * goes there too (spawn.h). The first line, printable, without the newline. The caller frees. */
char *exr_doctor_take_stderr(void);

/* Runs step, which makes only system calls, as the first process of namespaces like a session's (more are added
 * to them), its id maps written. What step returned, 0 or -errno, with reterr_error left empty; -errno with
 * *reterr_error when there are no such namespaces. */
int exr_doctor_in_sandbox(uint64_t more_flags, int (*step)(void), ExrError *reterr_error);

/* The probes; doctor-probes-*.c. */
void exr_probe_kernel(ExrFinding *ret_finding);
void exr_probe_programs(ExrFinding *ret_finding);
void exr_probe_state_dir(ExrFinding *ret_finding);
void exr_probe_own_user(ExrFinding *ret_finding);
void exr_probe_groups(ExrFinding *ret_finding);
void exr_probe_seccomp(ExrFinding *ret_finding);
void exr_probe_scope(ExrFinding *ret_finding);
void exr_probe_openat2(ExrFinding *ret_finding);
void exr_probe_user_namespaces(ExrFinding *ret_finding);
void exr_probe_network_namespaces(ExrFinding *ret_finding);
void exr_probe_mount_calls(ExrFinding *ret_finding);
void exr_probe_proc(ExrFinding *ret_finding);
void exr_probe_pivot_root(ExrFinding *ret_finding);
void exr_probe_fuse_device(ExrFinding *ret_finding);
void exr_probe_fuse_mount(ExrFinding *ret_finding);
void exr_probe_fusermount(ExrFinding *ret_finding);
void exr_probe_passthrough(ExrFinding *ret_finding);
void exr_probe_bwrap(ExrFinding *ret_finding);
void exr_probe_memory_cgroup(ExrFinding *ret_finding);
void exr_probe_pids_cgroup(ExrFinding *ret_finding);
/* Runs `true` as `run` does; OK, DEGRADED when it is not by fsgate, or MISSING, with what `run` says then. */
void exr_probe_run(ExrFinding *ret_finding);

/* The report. The finding of exr_probe_run() is the verdict. */
GString *exr_doctor_text(const ExrProbe *probes, const ExrFinding *findings, size_t count,
			 const ExrFinding *verdict);
GString *exr_doctor_json(const ExrProbe *probes, const ExrFinding *findings, size_t count,
			 const ExrFinding *verdict);
