/* A session as its users see it; see session.h. How it is started and stopped is in session-start.c. */
#include "executor/session-internal.h"

#include "common/environment.h"
#include "common/errno-util.h"
#include "common/fd-util.h"
#include "common/mise.h"
#include "common/path-util.h"
#include "executor/env-overlay.h"
#include "executor/prepared.h"
#include "executor/scope.h"
#include "executor/session-log.h"

#include <errno.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/stat.h>

bool exr_session_leaves_untold(const char *view_path)
{
	return strcmp(view_path, "/var/tmp") == 0;
}

/* A directory of the session, through the gateway. */
static void add_own_mount(ExrSession *session, const char *name, const char *view_path)
{
	g_autofree char *path = exr_state_dir_join(session->state, name);

	policy_add_mount(session->policy, path, view_path, STELLA_MOUNT_READ_WRITE)->untold =
		exr_session_leaves_untold(view_path);
}

/* A temporary directory is bound natively, which is faster; but a command may rename the directories on
 * the way to a mount in it, and so put something else in the mount's place. With a mount below, the gateway
 * serves it, which pins them. */
static void serve_temp_with_mounts(ExrSession *session, const char *name, const char *view_path)
{
	const GPtrArray *mounts = session->policy->mounts;
	bool below = false;

	if (strcmp(view_path, "/tmp") == 0 && session->policy->temp_dir_host[0])
		return; /* served by the gateway anyway */
	for (unsigned int i = 0; i < mounts->len; i++) {
		const PolicyMount *mount = mounts->pdata[i];

		if (strcmp(mount->view_path, view_path) == 0)
			return;
		below |= path_is_below(mount->view_path, view_path);
	}
	if (below)
		add_own_mount(session, name, view_path);
}

/* The tools that its commands find. Trees that cannot be written stay as they are: told, and no reason not to run
 * anything. */
static void prepare_tools(const ExrSession *session)
{
	const StellaPolicy *policy = session->policy;
	int r = ensure_mise_shims(policy->stella_home, policy->user_tools_dir);

	if (r < 0)
		exr_log_tools_unprepared(session, -r);
}

static bool has_mount_at(const StellaPolicy *policy, const char *view_path)
{
	for (unsigned int i = 0; i < policy->mounts->len; i++)
		if (strcmp(((const PolicyMount *)policy->mounts->pdata[i])->view_path, view_path) ==
		    0)
			return true;
	return false;
}

/* A directory of the host's /tmp that the policy names by its host path is no place in the session's own /tmp. The plan
 * would call a missing one by our row, which the caller does not have. */
static int keep_workspace_in_tmp(StellaPolicy *policy, ExrError *error)
{
	const char *dir = policy->working_dir;
	struct stat st;

	if (!path_is_below(dir, "/tmp") || strcmp(dir, "/tmp") == 0 ||
	    strcmp(policy->workspace_root, dir) != 0)
		return 0;
	for (unsigned int i = 0; i < policy->mounts->len; i++)
		if (path_is_below(dir, ((const PolicyMount *)policy->mounts->pdata[i])->view_path))
			return 0;
	if (stat(dir, &st) != 0) {
		int r = -errno;
		g_autofree char *shown = path_escape(dir);
		g_autofree char *message = g_strdup_printf(
			"%s \"%s\": %s", view_plan_workspace_key(policy), shown, errno_text(-r));

		return exr_error_set_policy(error, r, message);
	}
	(void)policy_add_mount(policy, dir, dir, STELLA_MOUNT_READ_WRITE);
	return 0;
}

static ViewPresentation presentation(const ExrBackend *backend)
{
	if (backend->is_plain)
		return VIEW_AS_HOST;
	return backend->isolates ? VIEW_FOR_SANDBOX : VIEW_FOR_HOST;
}

/* The session's own mounts, and what this backend cannot do. */
static int prepare_policy(ExrSession *session, const ExrSessionConfig *config, ExrError *error)
{
	g_autofree char *message = NULL;
	int r;

	if ((r = session->backend->supported(config->policy, error)) < 0)
		return r;
	exr_session_start_ahead(session);
	if ((r = exr_state_dir_new(&session->identity, config->temporary_user, &session->state,
				   error)) < 0)
		return r;
	session->id = g_strdup(exr_state_dir_id(session->state));
	session->policy = policy_copy(config->policy);
	if (session->backend->is_pretense)
		session->policy->network_mode =
			STELLA_NETWORK_ALLOW_ALL; /* nothing is kept from it */
	if (config->temporary_user)
		add_own_mount(session, "user", STELLA_MOUNT_USER_DATA);
	if (session->backend->isolates) {
		serve_temp_with_mounts(session, "tmp", "/tmp");
		serve_temp_with_mounts(session, "var-tmp", "/var/tmp");
	} else if (!session->policy->temp_dir_host[0] && !has_mount_at(session->policy, "/tmp")) {
		if ((r = keep_workspace_in_tmp(session->policy, error)) < 0)
			return r;
		add_own_mount(session, "tmp", "/tmp");
	}
	if ((r = policy_validate(session->policy, &message)) < 0)
		return exr_error_set_policy(error, r, message);
	/* Not before: what is no tool tree must not be made one. */
	prepare_tools(session);
	if ((r = view_plan_new(session->policy, presentation(session->backend), &session->plan,
			       &message)) < 0)
		return exr_error_set_policy(error, r, message);
	/* Without a view it is no path. */
	if (session->plan->user_dir && g_strcmp0(session->home, STELLA_MOUNT_USER_DATA) == 0) {
		g_free(session->home);
		session->home = g_strdup(session->plan->user_dir);
	}
	/* Where it cannot be, results say that there is no file. */
	if (session->policy->limits.spill && session->backend->isolates)
		(void)exr_spill_dir_open(session->plan, session->state, &session->identity,
					 &session->spill_dir);
	return 0;
}

/* The cgroups that what is started next goes into. */
static int limit(ExrSession *session, ExrError *error)
{
	g_autofree char *record = exr_state_dir_join(session->state, EXR_STATE_DIR_CGROUPS);
	ExrSessionLimitsConfig config = {
		.policy = &session->policy->limits,
		.session_id = session->id,
		.record = record,
		.identity = &session->identity,
		.own_processes = session->backend->own_processes,
		.no_rlimit = session->backend->is_plain,
	};
	GPtrArray *names = g_ptr_array_new();
	int r = exr_session_limits_new(&config, &session->limits, error);
	unsigned int missing = exr_session_limits_unenforced(session->limits);

	if (missing & EXR_LIMIT_MEMORY)
		g_ptr_array_add(names, g_strdup("memory_bytes"));
	if (missing & EXR_LIMIT_PROCESSES)
		g_ptr_array_add(names, g_strdup("processes"));
	if (session->policy->network_mode != STELLA_NETWORK_DISABLED &&
	    (!session->backend->isolates || !exr_scope_available()))
		g_ptr_array_add(names, g_strdup("network.abstract_sockets"));
	/* Only a gateway tells sockets of one side from those of the other. */
	if (!session->backend->is_pretense && session->backend != &exr_backend_fsgate) {
		g_ptr_array_add(names, g_strdup("filesystem.sockets"));
		/* And only one hides a name whenever the host makes it anew. */
		if (session->plan->runtime == POLICY_RUNTIME_HOST)
			g_ptr_array_add(names, g_strdup("filesystem.hidden"));
	}
	g_ptr_array_add(names, NULL);
	session->unenforced = (char **)g_ptr_array_free(names, FALSE);
	return r;
}

/* What its users wait for: the end of either process, or that it was closed. */
static int watch_end(ExrSession *session)
{
	const int fds[] = {
		session->closed_fd,
		session->init.pidfd,
		session->monitor.pidfd,
		session->gateway ? exr_gateway_pidfd(session->gateway) : -1,
	};

	for (size_t i = 0; i < G_N_ELEMENTS(fds); i++) {
		struct epoll_event event = { .events = EPOLLIN };

		if (fds[i] < 0)
			continue;

		if (epoll_ctl(session->done_fd, EPOLL_CTL_ADD, fds[i], &event) != 0)
			return -errno;
	}
	return 0;
}

static int start(ExrSession *session, ExrError *error)
{
	int r;

	session->done_fd = epoll_create1(EPOLL_CLOEXEC);
	session->closed_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (session->done_fd < 0 || session->closed_fd < 0)
		return exr_error_set(error, "internal", "init", errno,
				     "descriptors of the session: %s", errno_text(errno));
	if ((r = limit(session, error)) < 0)
		return r;
	if ((r = session->backend->start(session, error)) < 0) {
		if (exr_session_limits_hit(session->limits) & EXR_LIMIT_MEMORY)
			exr_error_set_hint(error, "limits.memory_bytes is too little for the "
						  "sandbox itself");
		return r;
	}
	if ((r = watch_end(session)) < 0)
		return exr_error_set(error, "internal", "init", -r,
				     "the session cannot be watched: %s", errno_text(-r));
	return 0;
}

int exr_session_start_new(const ExrSessionConfig *config, ExrSession **ret_session,
			  ExrError *reterr_error)
{
	g_autoptr(ExrSession) session = g_new0(ExrSession, 1);
	int r;

	session->refs = 1;
	session->backend = config->backend ? config->backend : &exr_backend_fsgate;
	session->spill_dir = EXR_NO_SPILL_DIR;
	session->done_fd = session->closed_fd = session->init_socket = session->init.pidfd =
		session->monitor.pidfd = session->spare = -1;
	pthread_mutex_init(&session->lock, NULL);
	pthread_mutex_init(&session->env_lock, NULL);
	session->host_env = config->host_env ? g_strdupv((char **)(uintptr_t)config->host_env)
					     : g_get_environ();
	session->home = g_strdup(config->home);
	session->one_exec = config->one_exec;
	session->identity = session->backend->isolates
				    ? exr_identity_choose(config->policy->process_uid)
				    : exr_identity_own();
	if ((r = prepare_policy(session, config, reterr_error)) < 0 ||
	    (r = start(session, reterr_error)) < 0)
		return r; /* the last reference stops what was started */
	session->created = true;
	exr_log_session_created(session);
	*ret_session = g_steal_pointer(&session);
	return 0;
}

int exr_session_new(const ExrSessionConfig *config, ExrSession **ret_session,
		    ExrError *reterr_error)
{
	const ExrBackend *backend = config->backend ? config->backend : &exr_backend_fsgate;
	int r = exr_session_start_new(config, ret_session, reterr_error);

	if (r < 0)
		exr_log_unsupported(config->policy, backend->name, reterr_error);
	return r;
}

/* Why it ends: asked by its first closer, before anything is stopped. */
static const char *reason_to_end(const ExrSession *session)
{
	if (atomic_load(&session->dead))
		return "failed";
	return exr_wait_readable(session->done_fd, 0) == 0 ? "ended" : "closed";
}

void exr_session_close(ExrSession *session)
{
	const char *reason = NULL;

	/* Who waits for init's answer is told at once, and lets go of the lock. */
	if (!atomic_exchange(&session->closed, true)) {
		reason = reason_to_end(session);
		if (session->closed_fd >= 0)
			(void)eventfd_write(session->closed_fd, 1);
		if (session->init_socket >= 0)
			(void)shutdown(session->init_socket, SHUT_RDWR);
	}
	pthread_mutex_lock(&session->lock);
	if (!session->ended)
		exr_session_stop(session);
	session->ended = true;
	exr_prepared_end_spare(session);
	g_clear_pointer(&session->state, exr_state_dir_free);
	pthread_mutex_unlock(&session->lock);
	if (reason && session->created)
		exr_log_session_closed(session, reason);
}

ExrSession *exr_session_ref(ExrSession *session)
{
	g_atomic_int_inc(&session->refs);
	return session;
}

void exr_session_unref(ExrSession *session)
{
	if (!session || !g_atomic_int_dec_and_test(&session->refs))
		return;
	exr_session_close(session);
	fd_close(&session->init_socket);
	fd_close(&session->done_fd);
	fd_close(&session->closed_fd);
	exr_gateway_unref(session->gateway);
	exr_error_clear(&session->ahead_error);
	exr_spill_dir_close(&session->spill_dir);
	exr_session_limits_free(session->limits);
	g_strfreev(session->unenforced);
	exr_seccomp_clear(&session->seccomp);
	view_plan_free(session->plan);
	stella_policy_unref(session->policy);
	g_strfreev(session->host_env);
	g_strfreev(session->refresh);
	g_free(session->home);
	g_free(session->id);
	pthread_mutex_destroy(&session->lock);
	pthread_mutex_destroy(&session->env_lock);
	g_free(session);
}

void exr_session_free(ExrSession *session)
{
	if (!session)
		return;
	exr_session_close(session);
	exr_session_unref(session);
}

const char *exr_session_id(const ExrSession *session)
{
	return session->id;
}

const ExrBackend *exr_session_backend(const ExrSession *session)
{
	return session->backend;
}

const StellaPolicy *exr_session_policy(const ExrSession *session)
{
	return session->policy;
}

const ViewPlan *exr_session_plan(const ExrSession *session)
{
	return session->plan;
}

const ExrStateDir *exr_session_state_dir(const ExrSession *session)
{
	return session->state;
}

const ExrSpillDir *exr_session_spill_dir(const ExrSession *session)
{
	return session->spill_dir.fd >= 0 ? &session->spill_dir : NULL;
}

const char *const *exr_session_unenforced(const ExrSession *session)
{
	return (const char *const *)session->unenforced;
}

bool exr_session_alive(const ExrSession *session)
{
	return !atomic_load(&session->closed) && !atomic_load(&session->dead) &&
	       exr_wait_readable(session->done_fd, 0) == -ETIMEDOUT;
}

bool exr_session_closed(const ExrSession *session)
{
	return atomic_load(&session->closed);
}

int exr_session_done_fd(const ExrSession *session)
{
	return session->done_fd;
}

void exr_session_set_dead(ExrSession *session)
{
	atomic_store(&session->dead, true);
	(void)eventfd_write(session->closed_fd, 1);
}

int exr_session_refresh_env(ExrSession *session, const char *const *updates, ExrError *reterr_error)
{
	g_autofree char *message = NULL;
	g_auto(GStrv) merged = NULL;
	g_auto(GStrv) tried = NULL;
	EnvironmentOptions options = {
		.plan = session->plan,
		.host = (const char *const *)session->host_env,
		.refresh = updates,
	};
	int r;

	if (exr_session_closed(session))
		return exr_error_set(reterr_error, "session-closed", "request", ESHUTDOWN,
				     "the session is closed");
	/* What no environment can be made of is refused now, and nothing of it taken. */
	if ((r = environment_new(&options, &tried, &message)) < 0)
		return exr_error_set(reterr_error, "request-invalid", "environment", -r,
				     "environment: %s", message);
	pthread_mutex_lock(&session->env_lock);
	merged = exr_env_overlay((const char *const *)session->refresh, updates);
	{
		char **old = session->refresh;

		session->refresh = g_steal_pointer(&merged);
		merged = old;
	}
	pthread_mutex_unlock(&session->env_lock);
	return 0;
}

char **exr_session_refreshed(ExrSession *session)
{
	char **copy;

	pthread_mutex_lock(&session->env_lock);
	copy = session->refresh ? g_strdupv(session->refresh) : NULL;
	pthread_mutex_unlock(&session->env_lock);
	return copy;
}
