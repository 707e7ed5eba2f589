/* Names of reasons; see denial-reason.h. */
#include "common/denial-reason.h"

#include <errno.h>
#include <string.h>

static const char *const names[_DENIAL_N] = {
#define DENIAL_REASON_NAME(id, text, meaning) [DENIAL_##id] = (text),
	DENIAL_REASONS(DENIAL_REASON_NAME)
#undef DENIAL_REASON_NAME
};

static const char *const meanings[_DENIAL_N] = {
#define DENIAL_REASON_MEANING(id, text, meaning) [DENIAL_##id] = (meaning),
	DENIAL_REASONS(DENIAL_REASON_MEANING)
#undef DENIAL_REASON_MEANING
};

const char *denial_reason_name(DenialReason reason)
{
	return (unsigned int)reason < _DENIAL_N ? names[reason] : "unknown";
}

const char *denial_reason_meaning(DenialReason reason)
{
	return (unsigned int)reason < _DENIAL_N ? meanings[reason] : "unknown";
}

int denial_reason_from_name(const char *name)
{
	for (int i = 0; i < _DENIAL_N; i++)
		if (strcmp(names[i], name) == 0)
			return i;
	return -EINVAL;
}
