/* Where we keep what is nobody else's: directories that only their owner can enter, and that no view shows. */
#pragma once

/* Of the control sockets of mounted views' gateways: STELLA_STATE_DIR/views when that is set; for root /run/stella/views; else XDG_RUNTIME_DIR/stella/views, or
 * without one XDG_STATE_HOME/stella/views (~/.local/state/stella/views). Absolute; nothing is made. NULL when
 * STELLA_STATE_DIR is relative. The caller frees. */
char *runtime_dir_views(void);

/* Of the private files of all sessions: STELLA_STATE_DIR, as it is given, relative or not; for root /var/lib/stella; else
 * XDG_STATE_HOME/stella (~/.local/state/stella). Nothing is made. The caller frees. */
char *runtime_dir_state(void);
