/* What gateway.c and gateway-talk.c share: for them only. */
#pragma once

#include "common/cond-util.h"
#include "common/control.h"
#include "common/exec-board.h"
#include "executor/gateway.h"

typedef struct ExrQuestion ExrQuestion;

/* Once it serves, any thread asks. The socket is written under send_lock and read by one of those who wait, who
 * hands the others their answers; it is closed with the last reference, and only shut down before. */
struct ExrGateway {
	int refs; /* atomic */
	ExrProcess process;
	ControlSocket *control;
	ExecBoard *board;	   /* constant */
	int leash_fd;		   /* our end of the gateway's stdin: see exr_spawn() */
	pthread_mutex_t send_lock; /* around a whole line; taken before lock */
	pthread_mutex_t lock;	   /* the process, and what follows */
	pthread_cond_t answered;   /* an answer was given out, or nobody reads any more */
	int queue_fd; /* of what the host changes (common/exec-board.h), or -1; closed when it ends */
	ExrQuestion *questions; /* those that are waited for */
	int64_t last_id;
	unsigned int
		late; /* questions that nobody waits for any more, and that are not answered yet */
	bool reading; /* somebody waits at the socket */
	bool gone;    /* nothing comes from it any more */
};

/* Whether an answer's member is true. */
bool exr_gateway_says(JsonObject *object, const char *word);
/* No more questions; who waits for an answer is told that none comes. The end of file tells the gateway to end. */
void exr_gateway_hang_up(ExrGateway *gateway);
