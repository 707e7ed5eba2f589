/* `stella-exec serve`. */
#pragma once

/* argv[0] is the command's word. host_env is the caller's environment. Returns the exit status. */
int exr_cmd_serve(int argc, char **argv, char **host_env);
