/* What a gateway answers, read leniently (it may be of another version than this program) and made fit for a terminal. */
#pragma once

#include "common/json.h"

/* Borrowed; NULL for what is not there or of another kind. */
JsonObject *fsg_json_get_object(JsonObject *object, const char *name);
JsonArray *fsg_json_get_array(JsonObject *object, const char *name);
/* 0 for what is no number. */
gint64 fsg_json_get_number(JsonObject *object, const char *name);
/* A text or a path, printable; NULL when there is none. To be freed. */
char *fsg_json_dup_text(JsonObject *object, const char *name);
char *fsg_json_dup_text_of(JsonNode *node);

/* One line on stdout, with nothing in it that a terminal obeys. */
void fsg_json_print(JsonNode *node);
