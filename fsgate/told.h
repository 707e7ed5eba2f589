/* What the kernel was told and may still believe, as far as the inode table does not know it: so that everything
 * that is believed can be taken back.
 *
 * Three lists. `recent`: whatever is believed for a short time only, in the order of its end. `lasting`: names that
 * are believed until they are taken back and that no inode's hint leads to: missing ones, and further
 * names of hard-linked files. Both are bounded; what has no room must not be believed. `links`: links whose text is to be
 * asked for again. Any thread at once; the lock is a leaf. */
#pragma once

#include <glib.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

typedef struct FsgTold FsgTold;

typedef struct {
	int64_t until_us; /* monotonic; recent only */
	uint64_t dir;	  /* node id of the directory, when there is a name */
	uint64_t object;  /* node id whose attributes were told, or 0 */
	bool is_dir;	  /* the object */
	char name[];	  /* "" when only attributes were told */
} FsgToldItem;

/* How long a short belief lasts. */
#define FSG_BELIEF_SHORT_S 1.0

FsgTold *fsg_told_new(unsigned int recent_most, unsigned int lasting_most);
void fsg_told_free(FsgTold *told); /* NULL is allowed */

/* From now on *believed_us (borrowed) says until when, at the most, something recent is believed. Before any other
 * thread exists. */
void fsg_told_show(FsgTold *told, _Atomic int64_t *believed_us);

/* Notes that this is believed from now on, for FSG_BELIEF_SHORT_S. false: there is no room. */
bool fsg_told_add_recent(FsgTold *told, uint64_t dir, const char *name, uint64_t object,
			 bool is_dir);
/* Notes a name that an object was moved to, which may be believed for as long: room is made. */
void fsg_told_add_moved(FsgTold *told, uint64_t dir, const char *name);
/* Notes a name that is believed until it is taken back. false: there is no room. */
bool fsg_told_add_lasting(FsgTold *told, uint64_t dir, const char *name);

/* Notes a link whose text the kernel was given and is not to keep. */
void fsg_told_add_link(FsgTold *told, uint64_t link);
/* All of them (uint64_t), and none are noted afterwards. The caller frees with g_array_unref. */
GArray *fsg_told_take_links(FsgTold *told);

/* There are neither recent items nor links. */
bool fsg_told_is_clear(FsgTold *told);

/* All items of a list, which is empty afterwards; of `recent` those that are still believed. The caller frees with
 * g_ptr_array_unref. */
GPtrArray *fsg_told_take_recent(FsgTold *told);
GPtrArray *fsg_told_take_lasting(FsgTold *told);
