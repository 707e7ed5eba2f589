/* `stella-exec shell`: which program it is, and what it is told. */
#pragma once

#include "executor/env-list.h"

/* The command: the view's bash, else its sh; found inside, for only there it is known what the view has.
 * Neither reads a start-up file: what an agent has left in HOME does not decide what a person sees. */
char **exr_shell_argv(void);

/* A prompt that says where one is, and no history file: PS1 and HISTFILE, unless the list has them. */
void exr_shell_add_env(ExrEnvList *list);
