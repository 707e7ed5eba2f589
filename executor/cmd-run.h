/* `stella-exec run`, `stella-exec sh` and `stella-exec shell`. */
#pragma once

/* argv[0] is the command's word. host_env is the caller's environment. Returns the exit status. */
int exr_cmd_run(int argc, char **argv, char **host_env);
int exr_cmd_sh(int argc, char **argv, char **host_env);
int exr_cmd_shell(int argc, char **argv, char **host_env);
