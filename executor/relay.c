/* The loop that runs while a command runs; see relay.h.
 *
 * Deadlines are points of the monotonic clock, compared after every poll; the nearest one is poll's own
 * timeout. The command's end is looked at before they are, so that a command which ended in time is
 * never said to have timed out. */
#include "executor/relay.h"

#include "executor/relay-input.h"
#include "executor/relay-output.h"

#include <errno.h>
#include <glib.h>
#include <poll.h>
#include <signal.h>
#include <sys/signalfd.h>
#include <time.h>
#include <unistd.h>

/* Microseconds: for processes to die, and for a consumer that takes nothing, once we want to end. */
#define PATIENCE (2 * G_USEC_PER_SEC)
#define NEVER	 INT64_MAX

typedef struct {
	ExrExec *exec;
	const ExrRelayConfig *config;
	ExrRelayEnd *end;
	ExrRelayInput in;
	ExrRelayStream out, err;
	bool ended;	     /* no process of the command is left */
	bool told;	     /* the command itself has ended */
	bool killed;	     /* we killed it */
	bool gave_up;	     /* whatever is not passed on by now is lost */
	bool stopping;	     /* a deadline has passed, or we were canceled */
	int signal;	     /* the first one that was passed on, or 0 */
	int64_t timeout_at;  /* NEVER when past or none */
	int64_t cancel_at;   /* kill_after_ms after the first signal */
	int64_t grace_at;    /* kill_grace_ms after we were stopping */
	int64_t dead_at;     /* the end of patience after a kill */
	int64_t progress_at; /* when output last moved */
} Relay;

static int64_t later(int64_t now, int64_t ms)
{
	return ms > (NEVER - now) / 1000 ? NEVER : now + ms * 1000;
}

/* When a consumer's silence ends the relay: only once the command is gone and we want to end. */
static int64_t stalled_at(const Relay *relay)
{
	if (relay->ended && (relay->killed || relay->stopping || relay->signal != 0))
		return relay->progress_at + PATIENCE;
	return NEVER;
}

static void kill_exec(Relay *relay, int64_t now)
{
	relay->killed = true;
	relay->timeout_at = relay->cancel_at = relay->grace_at = NEVER;
	relay->dead_at = relay->progress_at = now;
	relay->dead_at += PATIENCE;
	if (!relay->ended)
		exr_exec_kill(relay->exec);
}

/* Its time is over: a last chance to end by itself, or none. */
static void stop_exec(Relay *relay, int64_t now)
{
	relay->stopping = true;
	relay->timeout_at = NEVER;
	if (relay->config->kill_grace_ms <= 0 || relay->ended) {
		kill_exec(relay, now);
		return;
	}
	relay->grace_at = later(now, relay->config->kill_grace_ms);
	(void)exr_exec_signal(relay->exec, SIGTERM);
}

static void on_signal(Relay *relay, int sig, int64_t now)
{
	if (relay->ended) {
		relay->gave_up = true;
	} else if (relay->signal == 0) {
		relay->signal = sig;
		relay->cancel_at = later(now, relay->config->kill_after_ms);
		/* The command may end at this very moment, which poll will tell. */
		(void)exr_exec_signal(relay->exec, sig);
	} else if (!relay->killed) {
		relay->end->canceled_by = sig;
		kill_exec(relay, now);
	}
}

static void read_signals(Relay *relay, int64_t now)
{
	struct signalfd_siginfo info;

	while (read(relay->config->signal_fd, &info, sizeof(info)) == sizeof(info))
		on_signal(relay, (int)info.ssi_signo, now);
}

static void check_deadlines(Relay *relay, int64_t now)
{
	if (now >= relay->timeout_at) {
		/* One that ended in time and only waits for its consumer has not timed out; but from
		 * now on that consumer is not waited for without bound. */
		relay->end->timed_out = !relay->ended;
		stop_exec(relay, now);
	} else if (now >= relay->grace_at) {
		kill_exec(relay, now);
	} else if (now >= relay->cancel_at) {
		if (!relay->ended) {
			relay->end->canceled_by = relay->signal;
			kill_exec(relay, now);
		}
		relay->cancel_at = NEVER;
	}
	if (now >= stalled_at(relay) || (!relay->ended && now >= relay->dead_at))
		relay->gave_up = true;
}

static int64_t next_deadline(const Relay *relay, int64_t now)
{
	int64_t next = MIN(MIN(relay->timeout_at, relay->cancel_at), relay->grace_at);

	next = MIN(next, stalled_at(relay));
	if (!relay->ended)
		next = MIN(next, relay->dead_at);
	if (!relay->in.done && relay->in.retry_at > now)
		next = MIN(next, relay->in.retry_at);
	return next;
}

static void pump_output(Relay *relay, ExrRelayStream *stream, int64_t now)
{
	if (exr_relay_stream_pump(stream, relay->ended) > 0)
		relay->progress_at = now;
}

/* Closes our end of what is done. */
static void close_done(Relay *relay)
{
	/* Both of our ends, so that a terminal whose output nobody wants is hung up, as a pipe would be broken. */
	if (relay->out.done && relay->in.is_terminal)
		relay->in.done = true;
	if (relay->in.done && exr_exec_stdin_fd(relay->exec) >= 0) {
		exr_relay_input_clear(&relay->in);
		exr_exec_close_stdin(relay->exec);
	}
	if (relay->out.done && exr_exec_stdout_fd(relay->exec) >= 0)
		exr_exec_close_stdout(relay->exec);
	if (relay->err.done && exr_exec_stderr_fd(relay->exec) >= 0)
		exr_exec_close_stderr(relay->exec);
}

static struct pollfd output_poll_fd(const ExrRelayStream *stream, bool source_ended)
{
	if (stream->done)
		return (struct pollfd){ .fd = -1 };
	if (stream->waits_for_sink)
		return (struct pollfd){ exr_caller_fd_get(&stream->sink), POLLOUT, 0 };
	return (struct pollfd){ source_ended ? -1 : stream->source, POLLIN, 0 };
}

/* Of a command that ended nobody announces anything: what is in its pipes is there already. */
static bool can_go_on(const Relay *relay)
{
	return relay->ended && ((!relay->out.done && !relay->out.waits_for_sink) ||
				(!relay->err.done && !relay->err.waits_for_sink));
}

static void wait_and_handle(Relay *relay)
{
	enum { SIGNAL, EVENT, CANCEL, KILL, SESSION, END, STATUS, IN, IN_SINK, OUT, ERR, N };
	struct pollfd fds[N] = { [0 ... N - 1] = { .fd = -1 } };
	int64_t now = g_get_monotonic_time(), until = next_deadline(relay, now);
	struct timespec timeout = { 0 };
	bool is_gone = false;

	fds[SIGNAL] = (struct pollfd){ relay->config->signal_fd, POLLIN, 0 };
	if (!relay->stopping && !relay->ended)
		fds[CANCEL] = (struct pollfd){ relay->config->cancel_fd, POLLIN, 0 };
	if (!relay->killed && !relay->ended)
		fds[KILL] = (struct pollfd){ relay->config->kill_fd, POLLIN, 0 };
	if (relay->config->on_event)
		fds[EVENT] = (struct pollfd){ relay->config->event_fd, POLLIN, 0 };
	if (!relay->killed && !relay->ended && !relay->told)
		fds[SESSION] = (struct pollfd){ relay->config->ended_fd, POLLIN, 0 };
	fds[END] = (struct pollfd){ relay->ended ? -1 : exr_exec_end_fd(relay->exec), POLLIN, 0 };
	if (!relay->ended && !relay->told)
		fds[STATUS] = (struct pollfd){ exr_exec_status_fd(relay->exec), POLLIN, 0 };
	if (!relay->in.done) {
		exr_relay_input_wants(&relay->in, now, &fds[IN].fd, &fds[IN_SINK].events);
		fds[IN].events = POLLIN;
		fds[IN_SINK].fd = relay->in.sink;
	}
	fds[OUT] = output_poll_fd(&relay->out, relay->ended);
	fds[ERR] = output_poll_fd(&relay->err, relay->ended);
	if (!can_go_on(relay) && until > now) {
		timeout.tv_sec = (time_t)((until - now) / G_USEC_PER_SEC);
		timeout.tv_nsec = (long)((until - now) % G_USEC_PER_SEC * 1000);
	}
	if (ppoll(fds, N, until == NEVER && !can_go_on(relay) ? NULL : &timeout, NULL) < 0)
		return; /* EINTR: a signal that is not ours; nothing was reported */
	now = g_get_monotonic_time();

	if (fds[STATUS].revents) {
		/* What it has left running dies now; a process that cannot is not waited for. */
		relay->told = true;
		relay->dead_at = now + PATIENCE;
		is_gone = exr_exec_take_told(relay->exec);
	}
	if (fds[END].revents || is_gone) {
		relay->ended = true;
		relay->progress_at = now;
		relay->in.done = true;
	}
	if (fds[EVENT].revents)
		relay->config->on_event(relay->exec, relay->config->event_data);
	if (fds[SIGNAL].revents)
		read_signals(relay, now);
	if (fds[CANCEL].revents && !relay->ended && !relay->killed) {
		relay->end->canceled = true;
		stop_exec(relay, now);
	}
	if (fds[KILL].revents && !relay->ended && !relay->killed) {
		/* Whose time was over before stays so. */
		relay->end->canceled |= !relay->stopping;
		relay->stopping = true;
		kill_exec(relay, now);
	}
	/* A command without a view has nothing to go on with. */
	if (fds[SESSION].revents && !relay->ended && !relay->told && !relay->killed) {
		relay->end->session_ended = true;
		kill_exec(relay, now);
	}
	check_deadlines(relay, now);
	exr_relay_input_pump(&relay->in, now, fds[IN].revents != 0, fds[IN_SINK].revents);
	if (fds[OUT].revents || relay->ended)
		pump_output(relay, &relay->out, now);
	if (fds[ERR].revents || relay->ended)
		pump_output(relay, &relay->err, now);
	close_done(relay);
}

void exr_relay_run(ExrExec *exec, const ExrRelayConfig *config, ExrRelayEnd *ret_end)
{
	int64_t now = g_get_monotonic_time();
	Relay relay = {
		.exec = exec,
		.config = config,
		.end = ret_end,
		.timeout_at = config->timeout_ms > 0 ? later(now, config->timeout_ms) : NEVER,
		.cancel_at = NEVER,
		.grace_at = NEVER,
		.dead_at = NEVER,
		.progress_at = now,
	};

	*ret_end = (ExrRelayEnd){ 0 };
	exr_relay_input_init(&relay.in, config, exr_exec_stdin_fd(exec));
	exr_relay_stream_init(&relay.out, exr_exec_stdout_fd(exec), &config->out);
	exr_relay_stream_init(&relay.err, exr_exec_stderr_fd(exec), &config->err);
	close_done(&relay);
	if (config->on_event)
		config->on_event(exec, config->event_data);
	while (!relay.gave_up && !(relay.ended && relay.out.done && relay.err.done))
		wait_and_handle(&relay);
	ret_end->out_errno = relay.out.errnum == EPIPE ? 0 : relay.out.errnum;
	ret_end->err_errno = relay.err.errnum == EPIPE ? 0 : relay.err.errnum;
	exr_relay_input_clear(&relay.in);
	exr_relay_stream_clear(&relay.out);
	exr_relay_stream_clear(&relay.err);
}
