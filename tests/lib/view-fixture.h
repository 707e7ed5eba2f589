/* A mounted view for tests in C: host directories in a temporary directory, a gateway in the foreground as our
 * child, so that its end and exit status are seen. */
#pragma once

#include <glib.h>
#include <sys/types.h>

typedef struct {
	char *dir;	  /* temporary */
	char *mountpoint; /* dir/mnt */
	pid_t gateway;
} ViewFixture;

/* The temporary directory with an empty mountpoint in it. For root, the test's own mount namespace first. All
 * of these end the test when something does not work. */
ViewFixture *view_fixture_new(void);

/* dir/name, to be freed. */
char *view_fixture_path(const ViewFixture *fixture, const char *name);
/* A directory, or a file with this text, below dir. */
void view_fixture_mkdir(const ViewFixture *fixture, const char *name);
void view_fixture_write(const ViewFixture *fixture, const char *name, const char *text);

/* Mounts with these arguments (before the mountpoint), NULL at the end; returns when the view answers. */
void view_fixture_mount(ViewFixture *fixture, const char *const *arguments);
/* Unmounts; the gateway has to end with status 0 within some seconds. */
void view_fixture_unmount(ViewFixture *fixture);
void view_fixture_free(ViewFixture *fixture);

/* A text that stays the same as long as nothing below path changes: names, types, modes, owners, sizes,
 * link counts, mtime and ctime, link texts, content, user xattrs. To be freed. */
char *tree_snapshot(const char *path);
