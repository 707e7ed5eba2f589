/* A shell command of any length as the arguments of `sh`.
 *
 * The kernel takes at most 128 KiB in one argument, and an agent's command with a here-document in it
 * is soon longer. Such a text goes in several arguments, which the shell puts together again: the
 * command keeps its standard input, and no file has to be made for it. */
#pragma once

/* Bytes of one argument; the kernel's limit is 128 KiB with the NUL (MAX_ARG_STRLEN). */
#define EXR_SCRIPT_PART_BYTES (120 * 1024)

/* The arguments, `sh -c TEXT` for all but long ones. Either way TEXT runs as $0 = sh, without
 * positional parameters or a variable of ours. NULL-terminated; the caller frees with g_strfreev. */
char **exr_script_argv(const char *text);
