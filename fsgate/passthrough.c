/* Passthrough; see passthrough.h. The kernel's interface is used directly: libfuse 3.14 has none, and the one
 * of 3.17 and later makes the same calls. */
#include "fsgate/passthrough.h"

#include "common/errno-util.h"
#include "common/syscall-wrap.h"
#include "fsgate/identity.h"

#include <errno.h>
#include <glib.h>
#include <linux/capability.h>
#include <pthread.h>
#include <sys/ioctl.h>
#include <unistd.h>

/* Of the protocol since 7.40. */
typedef struct {
	int32_t fd;
	uint32_t flags;
	uint64_t padding;
} BackingMap;
#define BACKING_OPEN  _IOW(229, 1, BackingMap)
#define BACKING_CLOSE _IOW(229, 2, uint32_t)

struct FsgPassthrough {
	FsgDevice *device;    /* borrowed, or NULL */
	pthread_mutex_t lock; /* for the inodes' backing_id, passed_opens and cached_opens */
	int refused;	      /* errno of the last file that could not be handed over; atomic */
};

bool fsg_passthrough_is_allowed(void)
{
	uint64_t effective, permitted, inheritable;

	/* In a user namespace the kernel says no at the first file, which is soon enough. */
	return sys_capget(&effective, &permitted, &inheritable) == 0 &&
	       (effective & 1ull << CAP_SYS_ADMIN);
}

FsgPassthrough *fsg_passthrough_new(FsgDevice *device)
{
	FsgPassthrough *passthrough = g_new0(FsgPassthrough, 1);

	passthrough->device = device;
	pthread_mutex_init(&passthrough->lock, NULL);
	return passthrough;
}

void fsg_passthrough_free(FsgPassthrough *passthrough)
{
	if (!passthrough)
		return;
	pthread_mutex_destroy(&passthrough->lock);
	g_free(passthrough);
}

static int32_t backing_open(FsgPassthrough *passthrough, int fd)
{
	BackingMap map = { .fd = fd };
	int r;

	/* The kernel writes to the file, for all who have it open, with the credentials of this moment: with root's
	 * CAP_FSETID no set-id bit would go. */
	if (fsg_identity_lower() < 0)
		return 0;
	r = ioctl(fsg_device_fd(passthrough->device), BACKING_OPEN, &map);
	if (r > 0)
		return r;
	__atomic_store_n(&passthrough->refused, r < 0 ? errno : EIO, __ATOMIC_RELAXED);
	return 0;
}

static void backing_close(FsgPassthrough *passthrough, int32_t id)
{
	uint32_t argument = (uint32_t)id;

	if (id > 0)
		(void)ioctl(fsg_device_fd(passthrough->device), BACKING_CLOSE, &argument);
}

static bool is_on(const FsgPassthrough *passthrough)
{
	return passthrough->device && fsg_device_has_passthrough(passthrough->device);
}

/* Joins an opening that others have. false: it is the first. Under the lock. */
static bool join(FsgInode *inode, int32_t *ret_id)
{
	if (inode->cached_opens > 0) {
		inode->cached_opens++;
		*ret_id = 0;
		return true;
	}
	if (inode->passed_opens > 0) {
		inode->passed_opens++;
		*ret_id = inode->backing_id;
		return true;
	}
	return false;
}

int32_t fsg_passthrough_take(FsgPassthrough *passthrough, FsgInode *inode, int fd)
{
	int32_t id = 0, own = 0;
	bool joined;

	if (!is_on(passthrough))
		return 0;
	pthread_mutex_lock(&passthrough->lock);
	joined = join(inode, &id);
	pthread_mutex_unlock(&passthrough->lock);
	if (joined)
		return id;
	own = fd >= 0 ? backing_open(passthrough, fd) : 0;
	pthread_mutex_lock(&passthrough->lock);
	if (!join(inode, &id)) {
		id = inode->backing_id = own;
		if (own > 0)
			inode->passed_opens = 1;
		else
			inode->cached_opens = 1;
		own = 0;
	}
	pthread_mutex_unlock(&passthrough->lock);
	backing_close(passthrough, own); /* somebody else was faster */
	return id;
}

void fsg_passthrough_return(FsgPassthrough *passthrough, FsgInode *inode, int32_t id)
{
	int32_t closed = 0;

	if (!is_on(passthrough))
		return;
	pthread_mutex_lock(&passthrough->lock);
	if (id > 0 && --inode->passed_opens == 0) {
		closed = inode->backing_id;
		inode->backing_id = 0;
	} else if (id == 0) {
		inode->cached_opens--;
	}
	pthread_mutex_unlock(&passthrough->lock);
	backing_close(passthrough, closed);
}

const char *fsg_passthrough_state(FsgPassthrough *passthrough)
{
	int refused = __atomic_load_n(&passthrough->refused, __ATOMIC_RELAXED);

	if (!passthrough->device || !fsg_device_wants_passthrough(passthrough->device))
		return "off: needs CAP_SYS_ADMIN in the first user namespace";
	if (!fsg_device_offered_passthrough(passthrough->device))
		return "off: the kernel has none (Linux 6.9)";
	if (refused == EPERM)
		return "off: needs CAP_SYS_ADMIN in the first user namespace";
	if (refused == ELOOP)
		return "on, but not for file systems that lie on others";
	return refused ? "on, but not for all files" : "on";
}
