/* Sockets of every family, and connections to what listens outside.
 *
 * Arguments: `KIND ADDRESS EXPECTED-INSIDE`, three for each: tcp PORT, tcp6 PORT, udp PORT, abstract NAME, path PATH. */
#include "probe.h"

#include <arpa/inet.h>
#include <errno.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <net/if.h>
#include <netinet/in.h>
#include <poll.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#define FAMILIES 64

static int make(int family, int type, int protocol)
{
	int fd = socket(family, type | SOCK_CLOEXEC, protocol);

	if (fd < 0)
		return errno;
	close(fd);
	return 0;
}

static bool is_served(int family)
{
	return family == AF_UNIX || family == AF_INET || family == AF_INET6 || family == AF_NETLINK;
}

/* Asking for any other loads a module into a kernel that is not the test's. */
static bool is_tried_outside(int family)
{
	return family == AF_PACKET || family == AF_VSOCK || family == AF_ALG;
}

static void try_families(Probe *probe)
{
	static const int types[] = { SOCK_STREAM, SOCK_DGRAM, SOCK_RAW, SOCK_SEQPACKET,
				     SOCK_PACKET };
	int made_outside = 0;
	char name[64];

	for (int family = 0; family < FAMILIES; family++) {
		int made = 0, wrong = 0;

		if (is_served(family) || (probe->outside && !is_tried_outside(family)))
			continue;
		for (size_t i = 0; i < sizeof types / sizeof types[0]; i++) {
			int r = make(family, types[i], 0);
			int pair[2];

			made += r == 0;
			wrong += r != EAFNOSUPPORT;
			if (socketpair(family, types[i], 0, pair) == 0) {
				close(pair[0]);
				close(pair[1]);
				made++;
				wrong++;
			}
		}
		made_outside += made;
		snprintf(name, sizeof name, "family %d", family);
		probe_check(probe, name, (Expected){ "EAFNOSUPPORT", "*" },
			    wrong ? EINVAL : EAFNOSUPPORT);
	}
	if (probe->outside)
		probe_that(probe, "some families would be there", made_outside > 0);
	for (int protocol = 0; protocol < 32; protocol++) {
		if (probe->outside && protocol != NETLINK_ROUTE &&
		    protocol != NETLINK_KOBJECT_UEVENT)
			continue;
		snprintf(name, sizeof name, "netlink %d", protocol);
		probe_check(probe, name,
			    (Expected){ protocol == NETLINK_ROUTE ? "0" : "EPROTONOSUPPORT", "0" },
			    make(AF_NETLINK, SOCK_RAW, protocol));
	}
	probe_check(probe, "packets by the old name", (Expected){ "EAFNOSUPPORT", "*" },
		    make(AF_INET, SOCK_PACKET, htons(3)));
	probe_check(probe, "raw", REFUSED("EPERM"), make(AF_INET, SOCK_RAW, IPPROTO_ICMP));
	probe_check(probe, "raw of version 6", (Expected){ "EPERM", "0|EAFNOSUPPORT" },
		    make(AF_INET6, SOCK_RAW, IPPROTO_ICMPV6));
	probe_check(probe, "stream", ALLOWED, make(AF_INET, SOCK_STREAM, 0));
	probe_check(probe, "datagrams", ALLOWED, make(AF_INET, SOCK_DGRAM, 0));
	probe_check(probe, "unix", ALLOWED, make(AF_UNIX, SOCK_SEQPACKET, 0));
}

/* Loopback is down, or an interface more is there: by the old and the new way. */
static int change_interface(void)
{
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0), r;
	struct ifreq request;

	memset(&request, 0, sizeof request);
	memcpy(request.ifr_name, "lo", 3);
	r = ioctl(fd, SIOCGIFFLAGS, &request);
	/* the flags that it has */
	r = r == 0 ? PROBE_CALL(ioctl(fd, SIOCSIFFLAGS, &request)) : errno;
	close(fd);
	return r;
}

static int new_interface(void)
{
	struct {
		struct nlmsghdr head;
		struct ifinfomsg info;
		char attributes[64];
	} request = { .head = { .nlmsg_len = NLMSG_LENGTH(sizeof(struct ifinfomsg)),
				.nlmsg_type = RTM_SETLINK,
				.nlmsg_flags = NLM_F_REQUEST | NLM_F_ACK },
		      .info = { .ifi_index = 1 } };
	struct {
		struct nlmsghdr head;
		struct nlmsgerr error;
		char rest[256];
	} answer = { 0 };
	int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE);
	ssize_t got;

	if (fd < 0 || send(fd, &request, request.head.nlmsg_len, 0) < 0)
		return errno;
	got = recv(fd, &answer, sizeof answer, 0);
	close(fd);
	return got > 0 && answer.head.nlmsg_type == NLMSG_ERROR ? -answer.error.error : EPROTO;
}

static socklen_t make_address(const char *kind, const char *where, struct sockaddr_storage *ret)
{
	struct sockaddr_in *v4 = (struct sockaddr_in *)(void *)ret;
	struct sockaddr_in6 *v6 = (struct sockaddr_in6 *)(void *)ret;
	struct sockaddr_un *un = (struct sockaddr_un *)(void *)ret;
	bool abstract = strcmp(kind, "abstract") == 0;

	memset(ret, 0, sizeof *ret);
	if (abstract || strcmp(kind, "path") == 0) {
		size_t length = strlen(where);

		un->sun_family = AF_UNIX;
		memcpy(un->sun_path + abstract, where, length);
		return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + length + 1);
	}
	if (strcmp(kind, "tcp6") == 0) {
		v6->sin6_family = AF_INET6;
		v6->sin6_port = htons((uint16_t)atoi(where));
		v6->sin6_addr = in6addr_loopback;
		return sizeof *v6;
	}
	v4->sin_family = AF_INET;
	v4->sin_port = htons((uint16_t)atoi(where));
	v4->sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	return sizeof *v4;
}

/* A datagram has arrived when there is an answer. */
static int connect_to(const char *kind, const char *where)
{
	struct sockaddr_storage address;
	socklen_t size = make_address(kind, where, &address);
	bool datagram = strcmp(kind, "udp") == 0;
	int fd = socket(address.ss_family, (datagram ? SOCK_DGRAM : SOCK_STREAM) | SOCK_CLOEXEC, 0);
	struct pollfd p = { .fd = fd, .events = POLLIN };
	char byte;
	int r = fd < 0 ? errno : PROBE_CALL(connect(fd, (struct sockaddr *)&address, size));

	if (r == 0 && datagram) {
		r = PROBE_CALL(send(fd, "x", 1, 0));
		if (r == 0)
			r = poll(&p, 1, 3000) == 1 ? PROBE_CALL(recv(fd, &byte, 1, 0)) : ETIMEDOUT;
	}
	close(fd);
	return r;
}

/* A server of one's own, to which the same calls lead. */
static int serve_oneself(const char *kind, const char *where)
{
	struct sockaddr_storage address;
	socklen_t size = make_address(kind, where, &address);
	int fd = socket(address.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0), r;
	char port[16];

	r = PROBE_CALL(bind(fd, (struct sockaddr *)&address, size));
	if (r == 0)
		r = PROBE_CALL(listen(fd, 1));
	if (r == 0 && strcmp(kind, "tcp") == 0) {
		const struct sockaddr_in *v4 = (const struct sockaddr_in *)(const void *)&address;

		r = PROBE_CALL(getsockname(fd, (struct sockaddr *)&address, &size));
		snprintf(port, sizeof port, "%d", ntohs(v4->sin_port));
		where = port;
	}
	if (r == 0)
		r = connect_to(kind, where);
	close(fd);
	return r;
}

int main(int argc, char **argv)
{
	Probe probe = probe_begin(argc, argv);

	try_families(&probe);
	probe_check(&probe, "flags of the loopback", REFUSED("EPERM"), change_interface());
	probe_check(&probe, "an interface by netlink", REFUSED("EPERM"), new_interface());
	probe_check(&probe, "own server", ALLOWED, serve_oneself("tcp", "0"));
	probe_check(&probe, "own abstract server", ALLOWED,
		    serve_oneself("abstract", "stella-attack-own"));
	if (!probe.outside)
		probe_check(&probe, "own server with a path", ALLOWED,
			    serve_oneself("path", "/tmp/own-socket"));
	for (int i = 0; i + 2 < probe.argc; i += 3) {
		char name[200];

		snprintf(name, sizeof name, "%s %s of the host", probe.argv[i], probe.argv[i + 1]);
		probe_check(&probe, name, (Expected){ probe.argv[i + 2], "0" },
			    connect_to(probe.argv[i], probe.argv[i + 1]));
	}
	return probe_end(&probe);
}
