/* Whole reads and writes, small files, and removing a tree that an agent has written. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/* Writes all of it, across EINTR and short writes. 0 or -errno. May be called after fork. */
int io_write_all(int fd, const void *data, size_t size);

/* One write(2) that raises no SIGPIPE in a program that has not ignored it: the error alone tells. Bytes written or
 * -errno. Any thread. */
ssize_t io_write_without_sigpipe(int fd, const void *data, size_t size);

/* Reads until size bytes or the end. Bytes read, or -errno. May be called after fork. */
ssize_t io_read_all(int fd, void *data, size_t size);

/* Reads fd from its present place to its end. -EFBIG when there is more than limit bytes. The text
 * has a NUL behind its ret_size bytes; the caller frees it with g_free. */
int io_read_to_end(int fd, size_t limit, char **ret_data, size_t *ret_size);

/* A sealed, read-only memfd with that content. fd or -errno. */
int io_memfd_new(const char *name, const void *data, size_t size);

/* Removes everything below dirfd/name, and name itself. Follows no link, leaves mount points alone
 * (-EBUSY for them), needs no permission bits on the way (the owner gives them to himself first), and uses a
 * few fds and no more stack however deep the tree is. While it works, what is left is partly in
 * "<name>.removing" beside it; a removal that was interrupted is finished by the next one of that name. An
 * absent name is no error. Goes on after a failure and returns the first one, -errno. */
int io_remove_tree(int dirfd, const char *name);
