/* Sets of host objects by their identity: what may not be moved or removed through a view, for it is mounted there or
 * leads to what is; and what no view enters. A name would say nothing: any of them may be met by another one. */
#pragma once

#include <glib.h>
#include <stdbool.h>
#include <sys/stat.h>

/* Filled by one thread, then only read. To be freed with g_hash_table_unref. */
GHashTable *view_host_ids_new(void);
void view_host_ids_add(GHashTable *ids, dev_t dev, ino_t ino);
bool view_host_ids_have(GHashTable *ids, dev_t dev, ino_t ino);

/* The object at a host path (links are followed), and every directory above it. More than the ancestors inside other mounts,
 * but what lies outside all mounts is never met, and this way no two sets have to be compared. *ret_st is of the
 * object. 0 or -errno. */
int view_host_ids_add_with_ancestors(GHashTable *ids, const char *host_path, struct stat *ret_st);
