/* Where the gateways of mounted views have their control sockets: a directory that only its owner can enter. */
#pragma once

/* STELLA_STATE_DIR/views when that is set; for root /run/stella/views; else XDG_RUNTIME_DIR/stella/views, or
 * without one XDG_STATE_HOME/stella/views (~/.local/state/stella/views). Absolute; nothing is made. NULL when
 * STELLA_STATE_DIR is relative. The caller frees. */
char *runtime_dir_views(void);
