/* Fuzz target: any bytes as a policy. What is accepted has to survive being written and read again, for
 * the executor hands it to the gateway so. */
#include "common/policy-json.h"

#include <stddef.h>
#include <stdint.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	g_autoptr(StellaPolicy) policy = NULL;
	g_autofree char *message = NULL;
	int r = policy_json_parse((const char *)data, size, &policy, &message);

	g_assert_cmpint(r, <=, 0);
	if (r < 0) {
		g_assert_true(policy == NULL && message != NULL);
		g_assert_true(message[0] != '\0' && !strchr(message, '\n'));
		g_assert_true(g_utf8_validate(message, -1, NULL));
		return 0;
	}
	g_assert_true(policy != NULL && message == NULL);
	g_free(policy_find_unimplemented(policy));
	for (int pretty = 0; pretty < 2; pretty++) {
		g_autofree char *text = policy_json_write(policy, pretty);
		g_autofree char *text_again = NULL;
		g_autoptr(StellaPolicy) again = NULL;

		r = policy_json_parse(text, strlen(text), &again, &message);
		if (r < 0)
			g_error("%s: %s", message, text);
		text_again = policy_json_write(again, pretty);
		g_assert_cmpstr(text, ==, text_again);
	}
	return 0;
}
