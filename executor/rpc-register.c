/* What one client has: its sessions and its processes, by name; see rpc.h. A name that is found gives a reference, so that
 * whoever works with a session may go on while another call closes it. */
#include "executor/rpc-peer-internal.h"

#include "common/limits.h"

void rpc_session_unref(RpcSession *session)
{
	if (!session || !g_atomic_int_dec_and_test(&session->refs))
		return;
	exr_session_free(session->session);
	g_free(session);
}

bool rpc_peer_add_session(RpcPeer *peer, RpcSession *session)
{
	bool adds;

	pthread_mutex_lock(&peer->lock);
	adds = !peer->going && g_hash_table_size(peer->sessions) < LIMIT_RPC_SESSIONS;
	if (adds) {
		g_atomic_int_inc(&session->refs);
		g_hash_table_insert(peer->sessions, g_strdup(exr_session_id(session->session)),
				    session);
		rpc_peer_wake(peer); /* its end is to be watched */
	}
	pthread_mutex_unlock(&peer->lock);
	return adds;
}

RpcSession *rpc_peer_find_session(RpcPeer *peer, const char *id)
{
	RpcSession *session;

	pthread_mutex_lock(&peer->lock);
	session = g_hash_table_lookup(peer->sessions, id);
	if (session)
		g_atomic_int_inc(&session->refs);
	pthread_mutex_unlock(&peer->lock);
	return session;
}

/* The registry's reference goes to the caller. */
static void *take(RpcPeer *peer, GHashTable *table, const char *id)
{
	gpointer key = NULL, value = NULL;

	pthread_mutex_lock(&peer->lock);
	if (g_hash_table_steal_extended(table, id, &key, &value))
		g_free(key);
	pthread_mutex_unlock(&peer->lock);
	return value;
}

RpcSession *rpc_peer_take_session(RpcPeer *peer, const char *id)
{
	return take(peer, peer->sessions, id);
}

RpcProcess *rpc_peer_take_process(RpcPeer *peer, const char *id)
{
	return take(peer, peer->processes, id);
}

GPtrArray *rpc_peer_sessions(RpcPeer *peer)
{
	GPtrArray *ids = g_ptr_array_new_with_free_func(g_free);
	GHashTableIter iter;
	gpointer id;

	pthread_mutex_lock(&peer->lock);
	g_hash_table_iter_init(&iter, peer->sessions);
	while (g_hash_table_iter_next(&iter, &id, NULL))
		g_ptr_array_add(ids, g_strdup(id));
	pthread_mutex_unlock(&peer->lock);
	return ids;
}

bool rpc_peer_add_process(RpcPeer *peer, RpcProcess *process)
{
	bool adds;

	pthread_mutex_lock(&peer->lock);
	adds = !peer->going && g_hash_table_size(peer->processes) < LIMIT_RPC_PROCESSES;
	if (adds) {
		process->id = g_strdup_printf("process-%u", ++peer->last_process);
		g_hash_table_insert(peer->processes, g_strdup(process->id),
				    rpc_process_ref(process));
	}
	pthread_mutex_unlock(&peer->lock);
	return adds;
}

RpcProcess *rpc_peer_find_process(RpcPeer *peer, const char *id)
{
	RpcProcess *process;

	pthread_mutex_lock(&peer->lock);
	process = g_hash_table_lookup(peer->processes, id);
	if (process)
		rpc_process_ref(process);
	pthread_mutex_unlock(&peer->lock);
	return process;
}
