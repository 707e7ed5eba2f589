/* The texts of --help and --version. */
#pragma once

/* Each prints to stdout. 0 or -errno. */
int exr_help_print(void);
int exr_help_print_run(void);
int exr_help_print_sh(void);
int exr_help_print_shell(void);
int exr_help_print_serve(void);
int exr_help_print_doctor(void);
int exr_help_print_version(void);
