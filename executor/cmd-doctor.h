/* stella-exec doctor [--json]: what this host can do, and how to get what is missing. */
#pragma once

/* The exit status: 0 only when `run` works; 1 when it does not; 125 for wrong arguments or when the report
 * could not be written. argv[0] is the command's name. */
int exr_cmd_doctor(int argc, char **argv, char **host_env);
