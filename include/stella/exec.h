/* One command: what is asked for, and what became of it. */
#ifndef STELLA_EXEC_H
#define STELLA_EXEC_H

#include <glib-object.h>
#include <stella/error.h>
#include <stella/types.h>

G_BEGIN_DECLS

#define STELLA_TYPE_EXEC_RESULT (stella_exec_result_get_type())

/* The most that is kept of each output stream where a policy says nothing: 10 MiB. */
#define STELLA_MAX_EXEC_OUTPUT_BYTES (10ull * 1024 * 1024)

/* For timeout_ms: none, whatever the policy says. */
#define STELLA_NO_TIMEOUT (-1)

/* How a command ended. */
typedef enum {
	STELLA_ENDED_EXITED = 0,    /* by itself: exit_code */
	STELLA_ENDED_SIGNALED = 1,  /* killed by a signal that was not ours: signal */
	STELLA_ENDED_TIMED_OUT = 2, /* killed when its time was over */
	STELLA_ENDED_CANCELED =
		3, /* killed for the caller's GCancellable, or because its session was closed */
	STELLA_ENDED_START_FAILED =
		4, /* nothing was run, or its sandbox died under it: the error says why */
} StellaEnded;

/* Called with every piece of an output stream, in order, from the thread that runs the command; data lives until it
 * returns. While it runs nothing else of that command moves, its timeout included: it should not take long. */
typedef void (*StellaOutputFunc)(const void *data, gsize size, gpointer user_data);

/* How to run a command. All pointers are borrowed until it has ended (of an asynchronous call: copied, but for what
 * user data leads to). Use stella_exec_options_init(), set what is to differ, keep `size` as it is. */
typedef struct {
	gsize size; /* of the struct the caller was compiled with; set by the init function */

	/* A view path, one relative to the working directory, or a host path inside a mount; NULL or "": the session's
	 * working directory. */
	const char *cwd;
	const char *const *env;	      /* NAME=value; wins over every other layer; NULL: none */
	const char *const *unset_env; /* names that are taken away before env is set; NULL: none */
	gint64 timeout_ms;	      /* 0: the policy's; STELLA_NO_TIMEOUT: none */
	gint64 kill_grace_ms; /* SIGTERM so long before SIGKILL, at a timeout or cancel; 0: SIGKILL at once */
	gboolean merge_stderr;	 /* both streams in stdout, in the program's order */
	gboolean wait_left_over; /* the end is that of the last process it started, not its own */

	const void *input; /* what the command reads; NULL: nothing, its stdin is empty */
	gsize input_size;  /* bytes */

	StellaOutputFunc
		stdout_func; /* given the stream as it comes, beside what is kept; NULL: none */
	gpointer stdout_data;
	StellaOutputFunc stderr_func;
	gpointer stderr_data;

	gboolean
		tty; /* stdin, stdout and stderr are a terminal of its own; stdout has it all then */
	guint16 rows; /* its size; 0: not known */
	guint16 columns;
} StellaExecOptions;

/* Fills in the defaults. Any thread at once; does not block. */
STELLA_API void stella_exec_options_init(StellaExecOptions *options);

/* An operation that the view refused, or recorded. */
typedef struct {
	const char *op;		/* "open", "rename", ... */
	const char *path;	/* view path, any bytes */
	const char *mount;	/* view path of its mount; NULL: none */
	const char *reason;	/* "read-only-mount", ...: the closed list of stella-fsgate(1) */
	const char *errno_name; /* "EROFS"; NULL: recorded, not refused */
	guint64 count;		/* how many times */
} StellaDenial;

/* A file that the command changed. */
typedef struct {
	const char *path;   /* view path, any bytes */
	const char *from;   /* the old path when renamed; else NULL */
	const char *change; /* "created", "modified", "deleted", "renamed" */
} StellaChange;

/* The result of a command: immutable, with a reference count. Any thread at once, for all functions of it; none blocks.
 * What they give is borrowed as long as the result. */
typedef struct StellaExecResult StellaExecResult;

STELLA_API StellaExecResult *stella_exec_result_ref(StellaExecResult *result);
STELLA_API void stella_exec_result_unref(StellaExecResult *result); /* NULL is allowed */
G_DEFINE_AUTOPTR_CLEANUP_FUNC(StellaExecResult, stella_exec_result_unref)
STELLA_API GType stella_exec_result_get_type(void);

STELLA_API StellaEnded stella_exec_result_get_ended(const StellaExecResult *result);
/* Its exit code; 128 + the signal when one ended it; -1 when it timed out, was canceled, or was not run. */
STELLA_API int stella_exec_result_get_exit_code(const StellaExecResult *result);
/* The signal that ended it, or 0. */
STELLA_API int stella_exec_result_get_signal(const StellaExecResult *result);
/* Why nothing was run (domain STELLA_ERROR, with stage, errno and hint); NULL unless STELLA_ENDED_START_FAILED. */
STELLA_API const GError *stella_exec_result_get_error(const StellaExecResult *result);
/* TRUE if it exited with 0. Else FALSE with one line in *error: what ended it, or why it was not run. STELLA_ERROR_FAILED for
 * another exit code or a signal, TIMED_OUT, CANCELED, or the error of stella_exec_result_get_error(). */
STELLA_API gboolean stella_exec_result_check(const StellaExecResult *result, GError **error);

/* An output as text for a reader: what was kept of it and, when that is not all, a marker that says so. *ret_size (may
 * be NULL) is its length in bytes; a NUL follows. Binary-safe. Never NULL. */
STELLA_API const char *stella_exec_result_get_stdout(const StellaExecResult *result,
						     gsize *ret_size);
STELLA_API const char *stella_exec_result_get_stderr(const StellaExecResult *result,
						     gsize *ret_size);
/* How many bytes the command wrote in all. */
STELLA_API guint64 stella_exec_result_get_stdout_bytes(const StellaExecResult *result);
STELLA_API guint64 stella_exec_result_get_stderr_bytes(const StellaExecResult *result);
/* Whether some of them were not kept. */
STELLA_API gboolean stella_exec_result_get_stdout_truncated(const StellaExecResult *result);
STELLA_API gboolean stella_exec_result_get_stderr_truncated(const StellaExecResult *result);
/* View path of the file with the whole of an output that was cut; NULL: there is none. */
STELLA_API const char *stella_exec_result_get_stdout_spill(const StellaExecResult *result);
STELLA_API const char *stella_exec_result_get_stderr_spill(const StellaExecResult *result);

/* Wall clock time in milliseconds. */
STELLA_API gint64 stella_exec_result_get_duration_ms(const StellaExecResult *result);
/* User and system time of all its processes in milliseconds; -1: not known. */
STELLA_API gint64 stella_exec_result_get_cpu_ms(const StellaExecResult *result);
/* Peak memory of its largest process in bytes; -1: not known. */
STELLA_API gint64 stella_exec_result_get_max_rss_bytes(const StellaExecResult *result);
/* Processes that were still there when the command ended, and were killed; -1: not known. */
STELLA_API int stella_exec_result_get_left_over_killed(const StellaExecResult *result);
/* Limits that were hit, and limits of the policy that could not be enforced: names of the policy's keys. This list and the
 * next are never NULL, and empty where nothing is known. */
STELLA_API const char *const *stella_exec_result_get_limits_hit(const StellaExecResult *result);
STELLA_API const char *const *
stella_exec_result_get_limits_unenforced(const StellaExecResult *result);
/* View paths where writing is allowed, as errors of the session's files list them. Its own /var/tmp, which is writable too, is not
 * among them: of two places for temporary files /tmp is told. */
STELLA_API const char *const *stella_exec_result_get_writable(const StellaExecResult *result);

/* What was refused. The number of rows, or -1: not known on this backend. */
STELLA_API gssize stella_exec_result_get_n_denials(const StellaExecResult *result);
/* Row i, from 0. FALSE, and *ret_denial untouched, for i out of range. */
STELLA_API gboolean stella_exec_result_get_denial(const StellaExecResult *result, gsize i,
						  StellaDenial *ret_denial);
/* How many more there were than are listed. */
STELLA_API guint64 stella_exec_result_get_denials_dropped(const StellaExecResult *result);
/* What was changed; likewise. */
STELLA_API gssize stella_exec_result_get_n_changes(const StellaExecResult *result);
STELLA_API gboolean stella_exec_result_get_change(const StellaExecResult *result, gsize i,
						  StellaChange *ret_change);
STELLA_API guint64 stella_exec_result_get_changes_dropped(const StellaExecResult *result);
/* Whether the last changes may be missing from the list. */
STELLA_API gboolean stella_exec_result_get_changes_incomplete(const StellaExecResult *result);

/* The whole as one line of JSON, the object of `stella-exec run --json` (result.schema.json). Output that is not valid
 * UTF-8 is given in base64. */
STELLA_API char *stella_exec_result_to_json(const StellaExecResult *result);

/* For sessions that a host implements itself: a result of what it knows. Everything else is "not known". */
typedef struct {
	gsize size; /* set by the init function */
	StellaEnded ended;
	int exit_code;		 /* EXITED */
	int signal;		 /* SIGNALED */
	const void *stdout_data; /* copied */
	gsize stdout_size;
	const void *stderr_data;
	gsize stderr_size;
	gint64 duration_ms;
	const GError *error; /* START_FAILED; copied */
} StellaExecResultFields;

STELLA_API void stella_exec_result_fields_init(StellaExecResultFields *fields);
/* Never NULL; the caller owns a reference. */
STELLA_API StellaExecResult *stella_exec_result_new(const StellaExecResultFields *fields);

G_END_DECLS

#endif
