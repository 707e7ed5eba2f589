/* Where the project's programs are: the compiled libexec directory, or, for a program that runs from
 * the build directory, there. PATH and the environment are never asked. */
#pragma once

/* The absolute path of "stella-fsgate", "stella-exec" or "stella-sandbox-init". The caller frees. */
char *program_path(const char *name);
