/* A kernel of the test's own: a gateway that is served over a socket in the place of /dev/fuse, so that it can be asked
 * what no kernel would ask. The requests are those of <linux/fuse.h>. */
#pragma once

#include <glib.h>
#include <stdint.h>
#include <sys/types.h>

typedef struct RawClient RawClient;

/* Starts a gateway for a policy (JSON). Ends the test when it does not start. */
RawClient *raw_client_new(const char *policy);
/* The gateway has to end with status 0. */
void raw_client_free(RawClient *client);

/* Sends one request, whose body is what was put together in `body` (emptied by this), and waits for its answer: 0 or
 * -errno as the gateway says. What comes behind the answer's header goes to reply, up to size bytes. */
int raw_client_call(RawClient *client, uint32_t opcode, uint64_t node, GByteArray *body,
		    void *reply, size_t size);

/* Looks a path up from the root, one name at a time: its node, or 0. */
uint64_t raw_client_walk(RawClient *client, const char *path);

/* Adds a string and its NUL. */
void raw_add_text(GByteArray *body, const char *text);
