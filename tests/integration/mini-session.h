/* A session as its gateway sees it, without the executor: a real gateway on a control socket that the test itself talks on, the view
 * mounted in a user and mount namespace, and execs that are functions of the test, each in a pid namespace
 * of its own, several at a time. */
#pragma once

#include "common/json.h"

#include <glib.h>
#include <sys/types.h>

typedef struct MiniSession MiniSession;
typedef struct MiniExec MiniExec;

/* Runs in the exec's first process, whose working directory is the root of the view ("workspace/f"). peer is connected with
 * mini_exec_peer(). Its end is the exec's; what asserts fails the exec, and with that the test. */
typedef void (*MiniBody)(int peer);

/* A temporary directory with `names` as directories in it, NULL at the end; "%s" in the mounts (a JSON array's inside) is that
 * directory. Every step that does not work ends the test. */
MiniSession *mini_session_new(const char *const *names, const char *mounts);
/* Ends it: the gateway has to end with status 0, and everything goes. */
void mini_session_free(MiniSession *session);

/* dir/name on the host, to be freed. */
char *mini_session_path(const MiniSession *session, const char *name);
void mini_session_write(const MiniSession *session, const char *name, const char *text);
gboolean mini_session_has(const MiniSession *session, const char *name);

/* Tells the gateway, and starts it. */
MiniExec *mini_exec_start(MiniSession *session, MiniBody body);
int mini_exec_peer(const MiniExec *exec);
void mini_exec_kill(MiniExec *exec);
/* Waits until no process of it is left. Fails the test if one of its asserts did, unless it was killed. */
void mini_exec_wait(MiniExec *exec);
/* Waits, and asks the gateway: {"boundary": "end", ...}, which the caller owns. Frees the exec. with_namespace: says which
 * pid namespace was its. */
JsonObject *mini_exec_end(MiniExec *exec, gboolean with_namespace);
