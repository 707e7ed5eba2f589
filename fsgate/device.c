/* The connection to the kernel; see device.h. */
#include "fsgate/device.h"

#include "common/fd-util.h"
#include "common/sanitizers.h"
#include "common/syscall-wrap.h"
#include "fsgate/request.h"
#include "fsgate/view.h"

#include <errno.h>
#include <fcntl.h>
#include <glib.h>
#include <linux/fuse.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

/* Of the protocol, where the system's header is older than the kernel. Bits 32 and up are in flags2. */
#define INIT_EXT		(1ull << 30)
#define INIT_PARALLEL_DIROPS	(1ull << 18)
#define INIT_HANDLE_KILLPRIV_V2 (1ull << 28)
#define INIT_PASSTHROUGH	(1ull << 37)

/* A host directory on an overlay (a container's) is one file system on another, and ours is on top. */
#define STACK_DEPTH 2

/* struct fuse_init_out as it is since 7.40. */
typedef struct {
	uint32_t major, minor;
	uint32_t max_readahead;
	uint32_t flags;
	uint16_t max_background, congestion_threshold;
	uint32_t max_write;
	uint32_t time_gran;
	uint16_t max_pages, map_alignment;
	uint32_t flags2;
	uint32_t max_stack_depth;
	uint32_t unused[6];
} InitOut;

/* What one thread writes before a reply is known to the one that reads the request which that reply made possible: the
 * kernel stands between them, which ThreadSanitizer does not know. */
#if WITH_THREAD_SANITIZER
static int replies;
#define REPLYING() ((void)__atomic_add_fetch(&replies, 1, __ATOMIC_RELEASE))
#define ASKED()	   ((void)__atomic_load_n(&replies, __ATOMIC_ACQUIRE))
#else
#define REPLYING() ((void)0)
#define ASKED()	   ((void)0)
#endif

struct FsgDevice {
	int fd; /* a duplicate of libfuse's, which it may close at any unmount; owned */
	bool want_passthrough;
	/* Written by the thread that reads INIT, before any other exists. */
	uint64_t init_unique;
	uint64_t offered;
	bool has_passthrough;
	atomic_bool initialised;
};

static FsgDevice *device_of(void *userdata)
{
	return ((FsgView *)userdata)->device;
}

static void note_init(FsgDevice *device, const void *request, size_t size)
{
	const struct fuse_in_header *header = request;
	const struct fuse_init_in *init = (const void *)(header + 1);

	if (size < sizeof *header + offsetof(struct fuse_init_in, flags) + sizeof init->flags ||
	    header->opcode != FUSE_INIT)
		return;
	device->init_unique = header->unique;
	device->offered = init->flags;
	if ((init->flags & INIT_EXT) &&
	    size >= sizeof *header + offsetof(struct fuse_init_in, flags2) + sizeof init->flags2)
		device->offered |= (uint64_t)init->flags2 << 32;
}

ssize_t fsg_device_read(FsgDevice *device, void *buffer, size_t size)
{
	ssize_t got = read(device->fd, buffer, size);

	/* ENOENT: the client was killed before its request was taken. */
	if (got < 0)
		return errno == EINTR || errno == ENOENT || errno == EAGAIN ? -EAGAIN : -errno;
	if ((size_t)got < sizeof(struct fuse_in_header))
		return -EIO;
	if (!device->initialised)
		note_init(device, buffer, (size_t)got);
	ASKED();
	return got;
}

/* What libfuse answers to INIT, in the form that has room for what we add. PARALLEL_DIROPS, which libfuse 3.14 wants and
 * forgets to ask for: without it one name that hangs (of a mount, in the view's root) stops all look-ups in its
 * directory. */
static ssize_t reply_init(FsgDevice *device, const struct iovec *iov)
{
	struct {
		struct fuse_out_header header;
		InitOut init;
	} out;
	const uint64_t ours = INIT_EXT | INIT_PARALLEL_DIROPS | INIT_HANDLE_KILLPRIV_V2 |
			      (device->want_passthrough ? INIT_PASSTHROUGH : 0);
	const bool extended = device->offered & INIT_EXT;
	const size_t size = extended ? sizeof out : sizeof out.header + iov[1].iov_len;
	uint64_t flags;

	memset(&out, 0, sizeof out);
	memcpy(&out.header, iov[0].iov_base, sizeof out.header);
	memcpy(&out.init, iov[1].iov_base, MIN(iov[1].iov_len, sizeof out.init));
	flags = out.init.flags | (uint64_t)out.init.flags2 << 32;
	flags |= ours & device->offered;
	out.init.flags = (uint32_t)flags;
	out.init.flags2 = (uint32_t)(flags >> 32);
	if (flags & INIT_PASSTHROUGH)
		out.init.max_stack_depth = STACK_DEPTH;
	device->has_passthrough = flags & INIT_PASSTHROUGH;
	out.header.len = (uint32_t)size;
	return write(device->fd, &out, size);
}

/* struct fuse_open_out, which ends the replies to OPEN and CREATE, as it is since 7.40. */
typedef struct {
	uint64_t fh;
	uint32_t open_flags;
	int32_t backing_id;
} OpenOut;

#define OPEN_PASSTHROUGH (1u << 7)

static void add_backing_id(const struct iovec *body, int32_t id)
{
	OpenOut *out = (void *)((char *)body->iov_base + body->iov_len - sizeof(OpenOut));

	out->open_flags |= OPEN_PASSTHROUGH;
	out->backing_id = id;
}

static ssize_t io_writev(int fd, struct iovec *iov, int count, void *userdata)
{
	FsgDevice *device = device_of(userdata);
	const struct fuse_out_header *header = iov[0].iov_base;
	ssize_t r;

	(void)fd;
	REPLYING();
	if (!device->initialised && count == 2 && header->unique == device->init_unique &&
	    header->error == 0 && iov[1].iov_len <= sizeof(InitOut)) {
		const size_t asked = iov[0].iov_len + iov[1].iov_len;

		device->initialised = true;
		return reply_init(device, iov) < 0 ? -1 : (ssize_t)asked;
	}
	if (fsg_request_backing_id() > 0 && count == 2 && header->error == 0 &&
	    iov[1].iov_len >= sizeof(OpenOut))
		add_backing_id(&iov[1], fsg_request_backing_id());
	r = writev(device->fd, iov, count);
	/* A notification about what the kernel has meanwhile: libfuse would complain on stderr of all but this. */
	if (r < 0 && header->unique == 0 && errno != ENOSYS && errno != ENODEV)
		errno = ENOENT;
	return r;
}

static ssize_t io_read(int fd, void *buffer, size_t size, void *userdata)
{
	(void)userdata;
	return read(fd, buffer, size);
}

static ssize_t io_splice_send(int from, off_t *from_offset, int to, off_t *to_offset, size_t size,
			      unsigned int flags, void *userdata)
{
	(void)to;
	REPLYING();
	return splice(from, from_offset, device_of(userdata)->fd, to_offset, size, flags);
}

FsgDevice *fsg_device_new(struct fuse_session *fuse, bool want_passthrough)
{
	/* No splice_receive: it costs every small request a second system call. */
	static const struct fuse_custom_io io = {
		.read = io_read,
		.writev = io_writev,
		.splice_send = io_splice_send,
	};
	FsgDevice *device = g_new0(FsgDevice, 1);

	device->fd = fd_dup(fuse_session_fd(fuse));
	device->want_passthrough = want_passthrough;
	if (device->fd < 0 || fuse_session_custom_io(fuse, &io, fuse_session_fd(fuse)) != 0) {
		fsg_device_free(device);
		return NULL;
	}
	return device;
}

void fsg_device_free(FsgDevice *device)
{
	if (!device)
		return;
	fd_close(&device->fd);
	g_free(device);
}

/* By the raw call: other threads are using these fds, which is the point, and ThreadSanitizer objects to it. */
void fsg_device_abort(FsgDevice *device, struct fuse_session *fuse)
{
	const unsigned int fds[] = { (unsigned int)fuse_session_fd(fuse),
				     (unsigned int)device->fd };

	for (size_t i = 0; i < G_N_ELEMENTS(fds); i++)
		(void)sys_close_range(fds[i], fds[i], 0);
}

int fsg_device_reply_error(FsgDevice *device, uint64_t unique, int errnum)
{
	const struct fuse_out_header header = {
		.len = sizeof header,
		.error = -errnum,
		.unique = unique,
	};

	return write(device->fd, &header, sizeof header) < 0 ? -errno : 0;
}

int fsg_device_fd(const FsgDevice *device)
{
	return device->fd;
}

bool fsg_device_has_passthrough(const FsgDevice *device)
{
	return device->has_passthrough;
}

bool fsg_device_offered_passthrough(const FsgDevice *device)
{
	return device->offered & INIT_PASSTHROUGH;
}

bool fsg_device_wants_passthrough(const FsgDevice *device)
{
	return device->want_passthrough;
}
