/* What the gateway tells of an exec, in words, and the steps that execs of the tests take. */
#pragma once

#include "mini-session.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* In an exec: a step that has to work. */
#define MUST(step)                                                                                 \
	do {                                                                                       \
		if (!(step)) {                                                                     \
			fprintf(stderr, "%d: %s: %s\n", __LINE__, #step, strerror(errno));         \
			_exit(1);                                                                  \
		}                                                                                  \
	} while (0)

/* A session with /workspace, /ro, /user (again at /again) and /workspace/in/ner, and some files. For cmocka. */
int told_start(void **state);
int told_stop(void **state);

/* Parts of an answer: "created /workspace/a, renamed /workspace/c from /workspace/b" and "open /ro/f
 * read-only-mount EROFS /ro 1"; the caller frees the lists. */
const char *told_text(JsonObject *row, const char *name);
bool told_flag(JsonObject *object, const char *name);
char *told_changes(JsonObject *answer);
char *told_denials(JsonObject *answer);

/* All of it, and nothing dropped; of an exec that is run to its end. */
void told_expect(JsonObject *answer, const char *changes, const char *denials);
void told_expect_exec(MiniSession *session, MiniBody body, const char *changes,
		      const char *denials);

/* In an exec. */
void step_put(const char *path, int flags, const char *text);
void step_make(const char *path);
void step_refused(int r, int errnum);
