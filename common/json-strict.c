/* A checker for JSON texts; see json-strict.h. It makes no values: one pass over the bytes by the
 * grammar, with the recursion bounded. Each check_x() stands at the first byte of an x and moves behind
 * it. */
#include "common/json-strict.h"

#include "common/path-util.h"
#include "common/quote.h"

#include <errno.h>
#include <glib.h>
#include <stdlib.h>
#include <string.h>

typedef struct {
	const char *start;
	const char *at;
	const char *end;
	int depth_left;
	char **reterr_message;
} Scan;

/* The place is that of `at`. */
static int refuse(const Scan *scan, const char *at, const char *format, ...) G_GNUC_PRINTF(3, 4);

static int refuse(const Scan *scan, const char *at, const char *format, ...)
{
	g_autofree char *what = NULL;
	const char *line = scan->start;
	size_t lines = 1;
	va_list args;

	va_start(args, format);
	what = g_strdup_vprintf(format, args);
	va_end(args);
	for (const char *p = scan->start; p < at; p++) {
		if (*p == '\n') {
			line = p + 1;
			lines++;
		}
	}
	*scan->reterr_message = g_strdup_printf("line %zu, column %ld: %s", lines,
						g_utf8_strlen(line, at - line) + 1, what);
	return -EINVAL;
}

/* "got x", for a byte that does not belong at the present place. */
static int refuse_here(const Scan *scan, const char *expected)
{
	g_autofree char *shown = NULL;
	char character[8];

	if (scan->at == scan->end)
		return refuse(scan, scan->at, "expected %s, got the end of the text", expected);
	/* The text is valid UTF-8 by now, so a whole character is there. */
	g_utf8_strncpy(character, scan->at, 1);
	shown = path_escape(character);
	return refuse(scan, scan->at, "expected %s, got '%s'", expected, shown);
}

static bool is_at(const Scan *scan, char c)
{
	return scan->at < scan->end && *scan->at == c;
}

static bool is_at_digit(const Scan *scan)
{
	return scan->at < scan->end && g_ascii_isdigit(*scan->at);
}

static void skip_space(Scan *scan)
{
	while (is_at(scan, ' ') || is_at(scan, '\t') || is_at(scan, '\n') || is_at(scan, '\r'))
		scan->at++;
}

/* The four digits of \uXXXX; the code unit, or -1. */
static int take_hex4(Scan *scan)
{
	int unit = 0;

	for (int i = 0; i < 4; i++, scan->at++) {
		if (scan->at == scan->end || !g_ascii_isxdigit(*scan->at))
			return -1;
		unit = unit * 16 + g_ascii_xdigit_value(*scan->at);
	}
	return unit;
}

static bool is_in(int unit, int first, int last)
{
	return unit >= first && unit <= last;
}

/* Behind the backslash and the u, which begin at `escape`. */
static int check_unicode_escape(Scan *scan, const char *escape)
{
	int unit = take_hex4(scan);

	if (unit < 0)
		return refuse(scan, escape, "\\u needs four hexadecimal digits");
	if (unit == 0)
		return refuse(scan, escape, "\\u0000 is not allowed");
	if (is_in(unit, 0xdc00, 0xdfff))
		return refuse(scan, escape, "a low surrogate without a high one");
	if (is_in(unit, 0xd800, 0xdbff)) {
		bool second =
			scan->end - scan->at >= 6 && scan->at[0] == '\\' && scan->at[1] == 'u';

		scan->at += second ? 2 : 0;
		if (!second || !is_in(take_hex4(scan), 0xdc00, 0xdfff))
			return refuse(scan, escape, "a high surrogate without a low one");
	}
	return 0;
}

static int check_string(Scan *scan)
{
	const char *opening = scan->at;

	for (scan->at++; scan->at < scan->end; scan->at++) {
		const char *escape = scan->at;

		if (*scan->at == '"') {
			scan->at++;
			return 0;
		}
		if ((unsigned char)*scan->at < 0x20)
			return refuse(scan, scan->at,
				      "a control character in a string, write it as \\u%04x",
				      (unsigned int)*scan->at);
		if (*scan->at != '\\')
			continue;
		scan->at++;
		if (is_at(scan, 'u')) {
			int r;

			scan->at++;
			if ((r = check_unicode_escape(scan, escape)) < 0)
				return r;
			scan->at--; /* to the last byte of the escape, as below */
		} else if (scan->at < scan->end && !memchr("\"\\/bfnrt", *scan->at, 8)) {
			return refuse(scan, escape, "unknown escape in a string");
		}
	}
	return refuse(scan, opening, "a string that does not end");
}

/* The token is made of characters that a number may have; a parser that saturates would turn a large
 * one into another one. */
static int check_integer_range(const Scan *scan, const char *first)
{
	g_autofree char *token = g_strndup(first, (gsize)(scan->at - first));
	g_autofree char *shown = quote_key(token);

	errno = 0;
	(void)strtoll(token, NULL, 10);
	if (errno == 0)
		return 0;
	return refuse(scan, first, "the number %s is out of range", shown);
}

static int check_digits(Scan *scan)
{
	if (!is_at_digit(scan))
		return refuse_here(scan, "a digit");
	while (is_at_digit(scan))
		scan->at++;
	return 0;
}

static int check_number(Scan *scan)
{
	const char *first = scan->at;
	bool integer = true;
	int r;

	if (is_at(scan, '-'))
		scan->at++;
	if (is_at(scan, '0')) {
		scan->at++;
		if (is_at_digit(scan))
			return refuse(scan, first, "a number that begins with 0");
	} else if ((r = check_digits(scan)) < 0) {
		return r;
	}
	if (is_at(scan, '.')) {
		integer = false;
		scan->at++;
		if ((r = check_digits(scan)) < 0)
			return r;
	}
	if (is_at(scan, 'e') || is_at(scan, 'E')) {
		integer = false;
		scan->at++;
		if (is_at(scan, '+') || is_at(scan, '-'))
			scan->at++;
		if ((r = check_digits(scan)) < 0)
			return r;
	}
	return integer ? check_integer_range(scan, first) : 0;
}

static int check_word(Scan *scan)
{
	static const char *const words[] = { "true", "false", "null" };

	for (size_t i = 0; i < G_N_ELEMENTS(words); i++) {
		size_t length = strlen(words[i]);

		if ((size_t)(scan->end - scan->at) >= length &&
		    memcmp(scan->at, words[i], length) == 0) {
			scan->at += length;
			return 0;
		}
	}
	return refuse_here(scan, "a value");
}

static int check_value(Scan *scan);

static int check_member(Scan *scan)
{
	int r;

	if (!is_at(scan, '"'))
		return refuse_here(scan, "a key in double quotes");
	if ((r = check_string(scan)) < 0)
		return r;
	skip_space(scan);
	if (!is_at(scan, ':'))
		return refuse_here(scan, "':'");
	scan->at++;
	skip_space(scan);
	return check_value(scan);
}

/* An object or an array, which differ in their brackets and in what is between them. */
static int check_container(Scan *scan, char closing, const char *expected,
			   int (*check_item)(Scan *))
{
	int r;

	if (scan->depth_left-- == 0)
		return refuse(scan, scan->at, "nested too deep");
	scan->at++;
	skip_space(scan);
	if (!is_at(scan, closing)) {
		for (;;) {
			if ((r = check_item(scan)) < 0)
				return r;
			skip_space(scan);
			if (is_at(scan, closing))
				break;
			if (!is_at(scan, ','))
				return refuse_here(scan, expected);
			scan->at++;
			skip_space(scan);
		}
	}
	scan->at++;
	scan->depth_left++;
	return 0;
}

static int check_value(Scan *scan)
{
	if (is_at(scan, '{'))
		return check_container(scan, '}', "',' or '}'", check_member);
	if (is_at(scan, '['))
		return check_container(scan, ']', "',' or ']'", check_value);
	if (is_at(scan, '"'))
		return check_string(scan);
	if (is_at(scan, '-') || is_at_digit(scan))
		return check_number(scan);
	return check_word(scan);
}

int json_strict_check(const char *text, size_t size, int max_depth, char **reterr_message)
{
	Scan scan = {
		.start = text,
		.at = text,
		.end = text + size,
		.depth_left = max_depth,
		.reterr_message = reterr_message,
	};
	const char *bad;
	int r;

	/* With a length, a NUL is not valid for it either. */
	if (!g_utf8_validate_len(text, size, &bad))
		return refuse(&scan, bad, *bad == '\0' ? "a NUL" : "not valid UTF-8");
	skip_space(&scan);
	if (!is_at(&scan, '{'))
		return refuse_here(&scan, "an object");
	if ((r = check_value(&scan)) < 0)
		return r;
	skip_space(&scan);
	if (scan.at != scan.end)
		return refuse_here(&scan, "the end of the text");
	return 0;
}
