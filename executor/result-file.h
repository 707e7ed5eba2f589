/* The file of --result: made ready before the command runs, so that a place that cannot be written is
 * an error at once, and put in its place whole, so that a reader never finds half an object.
 *
 * The directory may be one that the command can write to. So it is held open from before the start,
 * and a link that lies in the file's place is neither followed nor accepted: it could lead the
 * caller's own rights to any file. */
#pragma once

#include <glib.h>

typedef struct ExrResultFile ExrResultFile;

/* -errno with *reterr_message ("\"FILE\": why"). An existing pipe, socket or device is written to as it
 * is; a regular file is replaced when the result is written, and stays untouched until then. */
int exr_result_file_open(const char *path, ExrResultFile **ret_file, char **reterr_message);

/* Writes it and puts it in place, once. 0 or -errno. */
int exr_result_file_write(ExrResultFile *file, const char *text, gsize size);

/* Nothing is left behind of one that was not written. NULL is allowed. */
void exr_result_file_free(ExrResultFile *file);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(ExrResultFile, exr_result_file_free)
