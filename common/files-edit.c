/* Replacing text in a file. The file is read whole, and put back by a new one only if it has not changed meanwhile: what
 * another program has written between is not lost, the edit is done again on it. What is left of that race is the moment
 * between the last look and the renaming. */
#include "common/files-internal.h"

#include "common/fd-util.h"
#include "common/files-replace.h"
#include "common/io-util.h"

#include <errno.h>
#include <string.h>

typedef struct {
	const char *old_text, *new_text;
	size_t old_size, new_size;
	bool all;
} Edit;

static const char *find(const Edit *edit, const char *from, const char *end)
{
	return memmem(from, (size_t)(end - from), edit->old_text, edit->old_size);
}

/* Matches do not overlap; a second one is enough to know when only one is wanted, but the number is told. */
static size_t count_matches(const Edit *edit, const char *content, size_t size)
{
	const char *end = content + size, *at = content;
	size_t count = 0;

	while ((at = find(edit, at, end))) {
		count++;
		at += edit->old_size;
	}
	return count;
}

static GByteArray *replace_matches(const Edit *edit, const char *content, size_t size,
				   size_t new_size)
{
	GByteArray *result = g_byte_array_sized_new((guint)new_size);
	const char *end = content + size, *from = content, *at;

	while ((at = find(edit, from, end))) {
		g_byte_array_append(result, (const guint8 *)from, (guint)(at - from));
		g_byte_array_append(result, (const guint8 *)edit->new_text, (guint)edit->new_size);
		from = at + edit->old_size;
	}
	g_byte_array_append(result, (const guint8 *)from, (guint)(end - from));
	return result;
}

static int read_place(const PathPlace *place, struct stat *ret_st, char **ret_content,
		      size_t *ret_size)
{
	FD_AUTO fd = path_resolver_reopen(place, O_RDONLY | O_NONBLOCK | O_NOCTTY);

	if (fd < 0)
		return fd;
	if (fstat(fd, ret_st) != 0)
		return -errno;
	if (ret_st->st_size < 0 || (uint64_t)ret_st->st_size > FILES_MAX_BYTES)
		return -EFBIG;
	return io_read_to_end(fd, FILES_MAX_BYTES, ret_content, ret_size);
}

/* Whether the new content is within the limit: count * new_size cannot overflow, for each match has a byte of 64 MiB, and
 * a text in memory has less than 2^38. */
static int size_after(const Edit *edit, size_t size, size_t count, size_t *ret_size)
{
	if (edit->new_size > FILES_MAX_BYTES)
		return -EFBIG;
	*ret_size = size - count * edit->old_size + count * edit->new_size;
	return *ret_size > FILES_MAX_BYTES ? -EFBIG : 0;
}

/* -ESTALE, not failed, when the file has changed meanwhile. */
static int edit_once(FilesCall *call, const char *path, const Edit *edit, size_t *ret_count,
		     char **ret_view_path)
{
	g_autoptr(GByteArray) result = NULL;
	g_autofree char *content = NULL;
	PLACE_AUTO place = PLACE_NONE;
	size_t size, new_size, count;
	struct stat st;
	int r = files_walk(call, path, 0, false, &place);

	if (r < 0)
		return r;
	if (place.type == 0)
		return files_fail_absent(call, &place);
	if ((r = files_replace_check(call, &place)) < 0)
		return r;
	if ((r = read_place(&place, &st, &content, &size)) < 0)
		return files_fail(call, r, &place, NULL);
	if ((r = files_check_canceled(call)) < 0)
		return r;
	count = count_matches(edit, content, size);
	if (count == 1 || (count > 1 && edit->all)) {
		if ((r = size_after(edit, size, count, &new_size)) < 0)
			return files_fail(call, r, &place, NULL);
		result = replace_matches(edit, content, size, new_size);
		r = files_replace(call, &place, &st, result->data, result->len);
	}
	if (r < 0)
		return r;
	*ret_count = count;
	*ret_view_path = g_steal_pointer(&place.view_path);
	return 0;
}

#define EDIT_TRIES 8

int files_edit(FilesCall *call, const char *path, const char *old_text, const char *new_text,
	       unsigned int flags, size_t *ret_count, char **ret_view_path)
{
	const Edit edit = {
		.old_text = old_text,
		.new_text = new_text,
		.old_size = strlen(old_text),
		.new_size = strlen(new_text),
		.all = flags & FILES_ALL,
	};
	int r = -ESTALE;

	files_begin(call, "edit", NULL, path, NULL);
	if (edit.old_size == 0)
		return files_fail_argument(call, "the text to be replaced is empty");
	for (int tries = 0;
	     r == -ESTALE && call->problem->kind == PATH_PROBLEM_NONE && tries < EDIT_TRIES;
	     tries++)
		r = edit_once(call, path, &edit, ret_count, ret_view_path);
	if (r == -ESTALE && call->problem->kind == PATH_PROBLEM_NONE)
		return files_fail(call, r, NULL, NULL);
	return r;
}
