/* Reading the arguments; see run-options.h. One row of a table is one option: its name, whether it has
 * a value, whether it may come twice. */
#include "executor/run-options.h"

#include "common/path-util.h"
#include "executor/duration.h"

#include <errno.h>
#include <string.h>

typedef enum {
	OPTION_HELP,
	OPTION_JSON,
	OPTION_LOSSY_TEXT,
	OPTION_RESULT,
	OPTION_STDIN,
	OPTION_TIMEOUT,
	OPTION_KILL_AFTER,
	OPTION_CWD,
	OPTION_SETENV,
	OPTION_UNSETENV,
	OPTION_ENV_FILE,
	OPTION_TTY,
	OPTION_QUIET,
	OPTION_LOG_FORMAT,
	_N_OPTION,
} Option;

static const struct {
	const char *name;
	bool has_value, repeats;
} options_table[_N_OPTION] = {
	[OPTION_HELP] = { "--help", false, true },
	[OPTION_JSON] = { "--json", false, true },
	[OPTION_LOSSY_TEXT] = { "--lossy-text", false, true },
	[OPTION_RESULT] = { "--result", true, false },
	[OPTION_STDIN] = { "--stdin", true, false },
	[OPTION_TIMEOUT] = { "--timeout", true, false },
	[OPTION_KILL_AFTER] = { "--kill-after", true, false },
	[OPTION_CWD] = { "--cwd", true, false },
	[OPTION_SETENV] = { "--setenv", true, true },
	[OPTION_UNSETENV] = { "--unsetenv", true, true },
	[OPTION_ENV_FILE] = { "--env-file", true, true },
	[OPTION_TTY] = { "--tty", false, true },
	[OPTION_QUIET] = { "--quiet", false, true },
	[OPTION_LOG_FORMAT] = { "--log-format", true, false },
};

typedef struct {
	ExrRunOptions *options;
	char **host_env;
	bool given[_N_OPTION];
} Parser;

/* The option that arg names, or _N_OPTION; *ret_value is what follows its "=", or NULL. */
static Option find_option(const char *arg, const char **ret_value)
{
	size_t length = strcspn(arg, "=");

	*ret_value = arg[length] == '=' ? arg + length + 1 : NULL;
	if (strcmp(arg, "-h") == 0)
		return OPTION_HELP;
	for (Option option = 0; option < _N_OPTION; option++)
		if (strncmp(arg, options_table[option].name, length) == 0 &&
		    options_table[option].name[length] == '\0')
			return option;
	return _N_OPTION;
}

static int parse_duration(const char *text, int64_t *ret_ms, char **reterr_message)
{
	int r = exr_duration_parse(text, ret_ms);

	if (r < 0) {
		g_autofree char *shown = path_escape(text);

		*reterr_message =
			r == -ERANGE ? g_strdup_printf("'%s' is too long", shown)
				     : g_strdup_printf(
					       "expected a duration such as 500ms, 10s, 5m or 1h, "
					       "got '%s'",
					       shown);
	}
	return r;
}

static int parse_log_format(const char *text, LogFormat *ret_format, char **reterr_message)
{
	int format = log_format_find(text);

	if (format < 0) {
		g_autofree char *shown = path_escape(text);

		*reterr_message = g_strdup_printf("expected text or json, got '%s'", shown);
		return format;
	}
	*ret_format = (LogFormat)format;
	return 0;
}

/* A path or the like that cannot be empty. */
static int take_text(const char *value, const char **ret_text, char **reterr_message)
{
	if (!*value) {
		*reterr_message = g_strdup("is empty");
		return -EINVAL;
	}
	*ret_text = value;
	return 0;
}

static int apply(const Parser *parser, Option option, const char *value, char **reterr_message)
{
	ExrRunOptions *options = parser->options;

	switch (option) {
	case OPTION_HELP:
		options->wants_help = true;
		return 0;
	case OPTION_JSON:
		options->json = true;
		return 0;
	case OPTION_LOSSY_TEXT:
		options->lossy_text = true;
		return 0;
	case OPTION_TTY:
		options->tty = true;
		return 0;
	case OPTION_QUIET:
		options->quiet = true;
		return 0;
	case OPTION_LOG_FORMAT:
		return parse_log_format(value, &options->log_format, reterr_message);
	case OPTION_RESULT:
		return take_text(value, &options->result_path, reterr_message);
	case OPTION_STDIN:
		return take_text(value, &options->stdin_path, reterr_message);
	case OPTION_CWD:
		return take_text(value, &options->cwd, reterr_message);
	case OPTION_TIMEOUT:
		return parse_duration(value, &options->timeout_ms, reterr_message);
	case OPTION_KILL_AFTER:
		return parse_duration(value, &options->kill_after_ms, reterr_message);
	case OPTION_SETENV:
		return exr_env_list_set(options->env, value, parser->host_env, reterr_message);
	case OPTION_UNSETENV:
		return exr_env_list_unset(options->env, value, reterr_message);
	case OPTION_ENV_FILE:
		return exr_env_list_add_file(options->env, value, reterr_message);
	case _N_OPTION:
		break;
	}
	g_assert_not_reached();
}

/* Handles argv[*index], which begins with "-"; *index is moved to its value when that is an argument
 * of its own. */
static int take_option(Parser *parser, int argc, char **argv, int *index, char **reterr_message)
{
	const char *arg = argv[*index], *value;
	Option option = find_option(arg, &value);
	g_autofree char *why = NULL;

	if (option == _N_OPTION) {
		g_autofree char *shown = path_escape(arg);

		*reterr_message = g_strdup_printf("%s: unknown option", shown);
		return -EINVAL;
	}
	if (options_table[option].has_value && !value && *index + 1 < argc)
		value = argv[++*index];
	if (options_table[option].has_value != !!value)
		why = g_strdup(value ? "takes no value" : "needs a value");
	else if (parser->given[option] && !options_table[option].repeats)
		why = g_strdup("given twice");
	else if (apply(parser, option, value, &why) == 0)
		parser->given[option] = true;
	if (!why)
		return 0;
	*reterr_message = g_strdup_printf("%s: %s", options_table[option].name, why);
	return -EINVAL;
}

/* Whether the arguments that were not looked at ask for JSON. */
static bool asks_for_json(char **argv)
{
	for (; *argv && strcmp(*argv, "--") != 0; argv++)
		if (strcmp(*argv, options_table[OPTION_JSON].name) == 0)
			return true;
	return false;
}

static int take_argument(Parser *parser, int argc, char **argv, int *index, char **reterr_message)
{
	int r = policy_options_take(parser->options->policy, argc, argv, index, reterr_message);

	if (r != 0)
		return r;
	return take_option(parser, argc, argv, index, reterr_message);
}

int exr_run_options_parse(int argc, char **argv, char **host_env, ExrRunOptions *ret_options,
			  char **reterr_message)
{
	Parser parser = { .options = ret_options, .host_env = host_env };
	int i, r;

	*ret_options = (ExrRunOptions){
		.policy = policy_options_new(POLICY_FOR_COMMANDS),
		.kill_after_ms = EXR_KILL_AFTER_DEFAULT_MS,
		.env = exr_env_list_new(),
		.rest = argv + argc,
	};
	for (i = 1; i < argc && argv[i][0] == '-' && argv[i][1] != '\0'; i++) {
		const char *arg = argv[i];

		if (strcmp(arg, "--") == 0) {
			i++;
			break;
		}
		r = take_argument(&parser, argc, argv, &i, reterr_message);
		if (r < 0) {
			ret_options->json |= asks_for_json(argv + MIN(i, argc));
			return r;
		}
		if (strcmp(arg, "--policy") == 0 || g_str_has_prefix(arg, "--policy="))
			ret_options->has_policy_file = true;
	}
	ret_options->rest = argv + i;
	if (ret_options->lossy_text && !ret_options->json && !ret_options->result_path) {
		*reterr_message = g_strdup("--lossy-text: needs --json or --result");
		return -EINVAL;
	}
	if (ret_options->json && ret_options->result_path) {
		*reterr_message = g_strdup("--result: cannot be used with --json");
		return -EINVAL;
	}
	return 0;
}

void exr_run_options_clear(ExrRunOptions *options)
{
	policy_options_free(g_steal_pointer(&options->policy));
	exr_env_list_free(g_steal_pointer(&options->env));
}
