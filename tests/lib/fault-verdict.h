/* What may become of a run one of whose system calls has failed. */
#pragma once

#include <glib.h>
#include <stdbool.h>

/* What fail-nth reported and what the run gave. */
typedef struct {
	int status; /* of stella-exec run --json */
	char *out;
	char *err;
	bool reached;  /* the call that was to fail was made */
	bool started;  /* the command's process has executed it */
	bool too_late; /* it had, before the call failed */
	bool hung;
	char *left; /* roles of ours that outlived the run, or NULL */
	int nth;    /* of the call that failed */
	char role[32];
	char call[32];
	bool interrupted; /* it failed with EINTR */
	bool marker;	  /* the command has done what it does */
} FaultOutcome;

typedef enum {
	FAULT_HARMLESS,	 /* the run is as it is without */
	FAULT_NAMED,	 /* nothing was run, and the error names a stage that is published */
	FAULT_LOADER,	 /* the dynamic loader could not start the program, and said so */
	FAULT_NO_MEMORY, /* GLib or libc has ended the program, as they do when there is no memory */
	FAULT_IN_COMMAND, /* it ran, and got an error from the view or lost its end; told by its status or a line */
	FAULT_NOT_REACHED,
	_FAULT_N,
} FaultKind;

extern const char *const fault_kind_names[_FAULT_N];

/* stages: the published ones. The kind, or -1 with *ret_why, which is static. */
int fault_judge(const FaultOutcome *outcome, const char *const *stages, const char **ret_why);

/* The words of executor/README.md's table of codes: codes and stages. NULL when there is no such table. */
char **fault_read_stages(const char *readme);
