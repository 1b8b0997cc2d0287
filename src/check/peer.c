/* peer.c - connect, send, receive; every wait ends at a deadline. */
#include "check/peer.h"

#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "base/bytes.h"
#include "base/limits.h"

/* A connection that is not there after this is not there. */
#define PEER_CONNECT_MS 10000

int64_t peer_now_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

const char *peer_words(enum peer_result result)
{
    switch (result) {
    case PEER_OK: return "answered";
    case PEER_UNREACHABLE: return "cannot be reached";
    case PEER_CLOSED: return "closed the connection";
    case PEER_SILENT: return "did not answer";
    case PEER_STRANGE: return "sent an answer that cannot be read";
    }
    return "";
}

/* Wait until the socket is ready for `events`. False: the deadline passed. */
static bool ready(int fd, short events, int64_t deadline_ms)
{
    for (;;) {
        int64_t left_ms = MAX(deadline_ms - peer_now_ms(), 0);
        struct pollfd wait = {.fd = fd, .events = events};
        if (poll(&wait, 1, (int)MIN(left_ms, 1000000)) > 0) return true;
        if (peer_now_ms() >= deadline_ms) return false;
    }
}

static int connect_to(const struct addrinfo *address)
{
    const int one = 1;
    int error = 0;
    socklen_t size = sizeof(error);
    int fd = socket(address->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0) return -1;
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
    (void)connect(fd, address->ai_addr, address->ai_addrlen); /* SO_ERROR tells. */
    if (ready(fd, POLLOUT, peer_now_ms() + PEER_CONNECT_MS) &&
        getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &size) == 0 && error == 0)
        return fd;
    close(fd);
    return -1;
}

enum peer_result peer_open(struct check_peer *peer, const struct check_target *target)
{
    const struct addrinfo hints = {.ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM};
    struct addrinfo *addresses = NULL;

    *peer = (struct check_peer){.fd = -1};
    if (getaddrinfo(target->host, target->port, &hints, &addresses) != 0) return PEER_UNREACHABLE;
    for (const struct addrinfo *a = addresses; a != NULL && peer->fd < 0; a = a->ai_next)
        peer->fd = connect_to(a);
    freeaddrinfo(addresses);
    return peer->fd >= 0 ? PEER_OK : PEER_UNREACHABLE;
}

void peer_close(struct check_peer *peer)
{
    if (peer->fd >= 0) close(peer->fd);
    peer->fd = -1;
}

enum peer_result peer_send(struct check_peer *peer, struct view frame)
{
    int64_t deadline_ms = peer_now_ms() + PEER_CONNECT_MS;
    uint32_t at = 0;

    if (peer->fd < 0) return PEER_CLOSED;
    while (at < frame.size) {
        ssize_t sent = send(peer->fd, frame.data + at, frame.size - at, MSG_NOSIGNAL);
        if (sent > 0) at += (uint32_t)sent;
        if (sent <= 0 && !ready(peer->fd, POLLOUT, deadline_ms)) return PEER_SILENT;
        if (sent < 0 && peer_now_ms() >= deadline_ms) return PEER_CLOSED;
    }
    return PEER_OK;
}

bool peer_readable(struct check_peer *peer, int64_t deadline_ms)
{
    return peer->fd >= 0 && ready(peer->fd, POLLIN, deadline_ms);
}

static enum peer_result read_all(struct check_peer *peer,
                                 uint8_t *out,
                                 uint32_t size,
                                 int64_t deadline_ms)
{
    uint32_t at = 0;
    while (at < size) {
        if (!ready(peer->fd, POLLIN, deadline_ms)) return PEER_SILENT;
        ssize_t got = recv(peer->fd, out + at, size - at, 0);
        if (got <= 0) return PEER_CLOSED;
        at += (uint32_t)got;
    }
    return PEER_OK;
}

enum peer_result peer_receive(struct check_peer *peer,
                              struct arena *arena,
                              int64_t deadline_ms,
                              struct view *frame)
{
    uint8_t head[4];

    if (peer->fd < 0) return PEER_CLOSED;
    enum peer_result result = read_all(peer, head, sizeof(head), deadline_ms);
    if (result != PEER_OK) return result;
    uint32_t size = load_be32(head);
    if (size < 4 || size > WIRE_FRAME_MAX) return PEER_STRANGE;
    uint8_t *bytes = arena_get(arena, size + sizeof(head));
    if (bytes == NULL) return PEER_STRANGE;
    memcpy(bytes, head, sizeof(head));
    result = read_all(peer, bytes + sizeof(head), size, deadline_ms);
    *frame = view_of(bytes, size + (uint32_t)sizeof(head));
    return result;
}

bool peer_ended(const struct check_peer *peer)
{
    uint8_t byte;
    return recv(peer->fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT) <= 0;
}
