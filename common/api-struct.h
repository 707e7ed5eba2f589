/* Options structs of callers: for the api-*.c files only.
 *
 * A caller may have been compiled with an older header, whose struct is shorter: only as many bytes as it says are read,
 * and the rest has its defaults. One of a newer header is taken as long as it says nothing in what we do not know: what a
 * caller asks for is never left out in silence. The size is the only thing that keeps us inside the caller's memory, so
 * one that no struct can have is refused. */
#pragma once

#include "stella/error.h"

/* Reads a struct that begins with its size into *to, which has the defaults, and has our_size bytes. FALSE, and *to as it
 * was: it is shorter than least, is no size of one, or more is set than we know. */
gboolean api_struct_read(const void *from, gsize size, void *to, gsize our_size, gsize least);

/* The error for that; type is the struct's name. FALSE. */
gboolean api_struct_refuse(gsize size, const char *type, GError **error);
