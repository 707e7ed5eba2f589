/* Signals as events; see signals.h. */
#include "executor/signals.h"

#include "common/fd-util.h"

#include <glib.h>
#include <sys/signalfd.h>

static const int passed_on[] = { SIGINT, SIGTERM, SIGHUP, SIGQUIT };
static const int ignored[] = { SIGPIPE, SIGXFSZ, SIGTTIN };

int exr_signals_init(ExrSignals *ret_signals)
{
	ExrSignals signals = { .fd = -1 };
	sigset_t mask;

	sigemptyset(&mask);
	for (size_t i = 0; i < G_N_ELEMENTS(passed_on); i++) {
		struct sigaction action;

		/* Blocked, an ignored signal would be queued after all. */
		if (sigaction(passed_on[i], NULL, &action) == 0 && action.sa_handler != SIG_IGN)
			sigaddset(&mask, passed_on[i]);
	}
	for (size_t i = 0; i < G_N_ELEMENTS(ignored); i++)
		(void)signal(ignored[i], SIG_IGN); /* cannot fail for these */
	if (sigprocmask(SIG_BLOCK, &mask, &signals.old_mask) < 0)
		return -errno;
	signals.fd = signalfd(-1, &mask, SFD_CLOEXEC | SFD_NONBLOCK);
	if (signals.fd < 0) {
		int r = -errno;

		(void)sigprocmask(SIG_SETMASK, &signals.old_mask, NULL);
		return r;
	}
	*ret_signals = signals;
	return 0;
}

int exr_signals_take(const ExrSignals *signals)
{
	struct signalfd_siginfo info;

	return read(signals->fd, &info, sizeof(info)) == sizeof(info) ? (int)info.ssi_signo : 0;
}

void exr_signals_clear(ExrSignals *signals)
{
	while (exr_signals_take(signals) != 0)
		;
	fd_close(&signals->fd);
	(void)sigprocmask(SIG_SETMASK, &signals->old_mask, NULL); /* cannot fail */
}
