/* The raw request that the calling thread works on: what libfuse 3.14 does not hand on.
 *
 * O_TMPFILE is a request of its own (51, since Linux 6.2) of CREATE's form, which libfuse does not know. It is
 * given to libfuse as a CREATE, and the handler asks here which one it is. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* Around the processing of a request by libfuse; request is the whole of it, and may be changed. */
void fsg_request_enter(void *request);
void fsg_request_leave(void);

/* Whether the CREATE that is being handled asks for a file without a name. */
bool fsg_request_is_tmpfile(void);

/* The reply to OPEN or CREATE that this thread makes next carries a backing id (passthrough.h), for which libfuse has
 * no room; 0 afterwards. */
void fsg_request_set_backing_id(int32_t id);
int32_t fsg_request_backing_id(void);
