/* Links: which texts are given out.
 *
 * In a view that only a sandbox sees, whose root is that view, texts are given unchanged: the namespace
 * contains them, for what is not in the view does not exist there. In a view that host processes
 * can see, the kernel would resolve an absolute text, or one with "..", from the host's tree; so no such
 * text is given out. It is resolved here, in view space, following the links on the way, and given back
 * as an absolute path below the mountpoint that is free of ".." (so that a concurrent rename cannot make
 * it climb out) or refused when it leaves the view. A relative text without ".." stays below its own
 * directory whatever happens and is given unchanged. A chain is judged link by link.
 *
 * With symlinks `deny` no link below a declared mount's root (those of the tool tree and of temp_dir_host are such, too)
 * is read or followed, whoever sees the view and whatever --links says: ELOOP. It is still an object: lstat, unlink,
 * rename and link of it work, and so does making one, for archives are unpacked with what they hold. The links of
 * runtime directories, without which no program runs, and those of the view's own tree work. */
#pragma once

#include "fsgate/view.h"

/* The text to give out for a link. The caller frees. *ret_once: it has to be asked for each time, for what it says is
 * noted, or another link may get its number. -EACCES: it leaves the view. -ELOOP: more than 40
 * links on the way, or the mount denies links. */
int fsg_link_text(FsgView *view, FsgInode *link, char **ret_text, bool *ret_once);

/* Makes st_size of a link that of the text given out, where that is another one. */
void fsg_link_adjust_size(FsgView *view, FsgInode *link, struct stat *st);
