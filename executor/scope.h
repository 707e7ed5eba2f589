/* Keeping a command that shares the host's network from the host's abstract unix sockets, which have no
 * file and so no place in a view: Landlock's scoping, Linux 6.12 and newer. With a network of its own a
 * sandbox has abstract sockets of its own. */
#pragma once

#include <stdbool.h>

/* Whether the kernel has it. */
bool exr_scope_available(void);

/* From now on this process and its children connect only to abstract sockets that one of them made. Needs
 * no_new_privs. Only system calls. 0 or -errno. */
int exr_scope_enter(void);
