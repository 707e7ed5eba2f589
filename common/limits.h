/* Every cap of the project: its unit and its reason. A value that arrives from outside is compared
 * with one of these before memory is taken for it. */
#pragma once

/* Bytes of one policy text. The largest real ones are a few KiB. */
#define LIMIT_POLICY_BYTES (1024 * 1024)
/* Levels of { and [ in a policy text: the format needs 5, and the parser recurses. */
#define LIMIT_POLICY_DEPTH 16
/* Rows of a mount table; the view's root directory and `check` stay readable. */
#define LIMIT_MOUNTS 1024
/* Bytes of one name, without the NUL (NAME_MAX). */
#define LIMIT_NAME_BYTES 255
/* Bytes of one path with its NUL (PATH_MAX). */
#define LIMIT_PATH_BYTES 4096
/* Links followed in one path, as the kernel counts them. */
#define LIMIT_LINKS 40
/* Times that openat2 is tried again after EAGAIN (a rename elsewhere made its check uncertain). */
#define LIMIT_OPENAT2_TRIES 64
/* Bytes of one line of the control socket between executor and gateway: a policy and its frame. */
#define LIMIT_CONTROL_LINE_BYTES (2 * LIMIT_POLICY_BYTES)
/* Bytes of one request to a gateway that serves a view; the longest is some dozen bytes, and the parser recurses. */
#define LIMIT_DOOR_REQUEST_BYTES 4096
/* Programs that may ask one gateway at a time; the next waits until one has gone. */
#define LIMIT_DOOR_CLIENTS 8
/* Of them, those that may wait for events; the others find room to ask. */
#define LIMIT_DOOR_FOLLOWERS 4
/* Bytes of the rows of denials in one answer, so that it fits a line of the control socket whatever the names. */
#define LIMIT_DENIALS_JSON_BYTES (LIMIT_CONTROL_LINE_BYTES / 2)
/* Bytes of arguments and environment of one command, the kernel's own limit for both together being
 * at most 6 MiB (three quarters of _STK_LIM). */
#define LIMIT_EXEC_PAYLOAD_BYTES (8 * 1024 * 1024)
/* Captured bytes of one stream: least, most, default. */
#define LIMIT_OUTPUT_BYTES_MIN	   1
#define LIMIT_OUTPUT_BYTES_MAX	   (1024ull * 1024 * 1024)
#define LIMIT_OUTPUT_BYTES_DEFAULT (10ull * 1024 * 1024)
/* Bytes of one request to `stella-exec serve`: a policy, or what is written to a process. */
#define LIMIT_RPC_LINE_BYTES (32 * 1024 * 1024)
/* Queued for one client that does not read: past this nothing is read of it, and output is not told. */
#define LIMIT_RPC_QUEUE_BYTES (16 * 1024 * 1024)
/* Of one client, at a time; each call and process has threads of its own. */
#define LIMIT_RPC_CALLS	    256
#define LIMIT_RPC_SESSIONS  256
#define LIMIT_RPC_PROCESSES 256
/* At a time, of one socket. */
#define LIMIT_RPC_CLIENTS 32
/* Bytes of the file that holds the whole of one output: disk of the host, which no quota of the session's
 * guards. */
#define LIMIT_SPILL_BYTES (1024ull * 1024 * 1024)
/* Requests of one view that wait for a lock; each costs less than 1 KiB here, and some in the kernel. */
#define LIMIT_LOCK_WAITS 1024
/* Locked byte ranges of one view. The kernel goes through all of a file for each lock: 0.2 ms for as many. */
#define LIMIT_LOCK_RANGES 16384
/* Bytes of a generated or copied small file of the view (passwd, resolv.conf). */
#define LIMIT_SMALL_FILE_BYTES (256 * 1024)
/* Threads of a gateway that may wait for one mount's host directory at once; further requests queue. */
#define LIMIT_THREADS_PER_MOUNT 16
/* Besides, of those whose length the client decides (copying, allocating, fsync). */
#define LIMIT_LONG_THREADS_PER_MOUNT 8
/* Bytes that one request copies at the most; who wants more asks again, as after any copy_file_range. */
#define LIMIT_COPY_BYTES (64 * 1024 * 1024)
/* Bytes of the queued requests of one mount; further ones fail. */
#define LIMIT_QUEUED_REQUEST_BYTES (64 * 1024 * 1024)
/* Rows of the gateway's record of denials. Equal ones share a row; past this the row that was touched least
 * recently goes, and is counted as dropped. */
#define LIMIT_DENIALS 256
/* Denials of one command that the log tells one by one; the rest is one number. */
#define LIMIT_DENIALS_LOGGED 16
/* Bytes kept of a denial's path or link text, with the NUL: a path of the view has no bound of its own. */
#define LIMIT_DENIAL_PATH_BYTES LIMIT_PATH_BYTES
/* Bytes of what an exec's end tells of its denials, and again of its changes; both together fit a line of the control socket. */
#define LIMIT_REPORT_BYTES (LIMIT_CONTROL_LINE_BYTES / 3)
/* Execs whose changes are kept although nobody has said yet that they have ended. */
#define LIMIT_EXECS 1024
/* Files that are looked at once more when an exec ends, each an fd until then: of all execs together. */
#define LIMIT_LOOKS 64
/* Denials and changes that are kept for listeners; who is slower than these come loses some, and is told. */
#define LIMIT_EVENTS 1024
/* Changes that are kept of one exec for its result; what is beyond is counted: a path each, as long as there is room
 * for it among that many, else as often as it changes. */
#define LIMIT_CHANGES	      1000
#define LIMIT_CHANGES_COUNTED 65536
/* Bytes of the paths kept of one exec's changes. */
#define LIMIT_CHANGES_BYTES (512 * 1024)
