/* Waiting with a deadline of the monotonic clock. Mutexes and conditions are pthread's throughout: glib's are made of
 * futexes that ThreadSanitizer does not know. */
#pragma once

#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <time.h>

static inline void cond_init(pthread_cond_t *cond)
{
	pthread_condattr_t attr;

	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(cond, &attr);
	pthread_condattr_destroy(&attr);
}

/* until_us as of g_get_monotonic_time(). false: the time is up. May return early. */
static inline bool cond_wait_until(pthread_cond_t *cond, pthread_mutex_t *mutex, int64_t until_us)
{
	const struct timespec until = { .tv_sec = until_us / 1000000,
					.tv_nsec = until_us % 1000000 * 1000 };

	return pthread_cond_timedwait(cond, mutex, &until) != ETIMEDOUT;
}

/* Waits for at most so long. */
static inline bool cond_wait_ms(pthread_cond_t *cond, pthread_mutex_t *mutex, int64_t ms)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return cond_wait_until(cond, mutex,
			       (int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000 + ms * 1000);
}
