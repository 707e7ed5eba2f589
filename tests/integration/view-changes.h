/* Changes of a small tree, one of each kind, and all that can be seen of it as a text: for tests of what the view
 * shows of a change, made on the host or in the view, there or elsewhere. */
#pragma once

#include <glib.h>

/* Below root, an empty directory. */
void view_changes_make_tree(const char *root);

/* Everything that a change may touch: kinds, modes, sizes, link counts, contents, link texts, what is absent, and
 * the listings. To be freed. */
char *view_changes_look(const char *root);

/* Each is for a tree as it was made. */
typedef struct {
	const char *name;
	void (*make)(const char *root);
} ViewChange;

extern const ViewChange view_changes[];
extern const size_t view_changes_count;

/* What they are made of. flags: of open(2), beside O_CREAT. */
void view_changes_write(const char *root, const char *name, const char *text, int flags);
void view_changes_mkdir(const char *root, const char *name);
