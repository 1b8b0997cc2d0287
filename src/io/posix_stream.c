/* posix_stream.c - sockets: level-triggered readiness, calls that never block. */
#include "io/posix_inside.h"

#include <arpa/inet.h>
#include <errno.h>
#include <limits.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#define POSIX_BACKLOG 1024

union address {
    struct sockaddr any;
    struct sockaddr_in in;
    struct sockaddr_in6 in6;
    struct sockaddr_un un;
    struct sockaddr_storage storage;
};

static struct posix *posix_of(struct io *io)
{
    return container_of(io, struct posix, io);
}

/* Numeric address -> kernel's form; 0: it is none. */
static socklen_t address_in(const struct io_address *from, union address *to)
{
    memset(to, 0, sizeof(*to));
    if (from->host[0] == '/') {
        to->un.sun_family = AF_UNIX;
        size_t size = strnlen(from->host, sizeof(from->host));
        if (size >= sizeof(to->un.sun_path)) return 0;
        memcpy(to->un.sun_path, from->host, size);
        return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + size + 1);
    }
    if (inet_pton(AF_INET, from->host, &to->in.sin_addr) == 1) {
        to->in.sin_family = AF_INET;
        to->in.sin_port = htons(from->port);
        return sizeof(to->in);
    }
    if (inet_pton(AF_INET6, from->host, &to->in6.sin6_addr) == 1) {
        to->in6.sin6_family = AF_INET6;
        to->in6.sin6_port = htons(from->port);
        return sizeof(to->in6);
    }
    return 0;
}

static void address_out(const union address *from, struct io_address *to)
{
    *to = (struct io_address){0};
    if (from->any.sa_family == AF_INET) {
        inet_ntop(AF_INET, &from->in.sin_addr, to->host, sizeof(to->host));
        to->port = ntohs(from->in.sin_port);
    } else if (from->any.sa_family == AF_INET6) {
        if (IN6_IS_ADDR_V4MAPPED(&from->in6.sin6_addr))
            inet_ntop(AF_INET, &from->in6.sin6_addr.s6_addr[12], to->host, sizeof(to->host));
        else
            inet_ntop(AF_INET6, &from->in6.sin6_addr, to->host, sizeof(to->host));
        to->port = ntohs(from->in6.sin6_port);
    } else {
        (void)snprintf(to->host, sizeof(to->host), "%.*s", (int)sizeof(to->host) - 1,
                       from->un.sun_path);
    }
}

static uint32_t epoll_of(int want)
{
    return (want & IO_READABLE ? (uint32_t)EPOLLIN : 0) |
           (want & IO_WRITABLE ? (uint32_t)EPOLLOUT : 0);
}

/* ---- listeners ------------------------------------------------------------------------------- */

static int socket_bound(const struct io_address *address, struct io_address *bound)
{
    union address a;
    socklen_t size = address_in(address, &a);
    if (size == 0) return -EINVAL;
    int fd = socket(a.any.sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd < 0) return -errno;
    int one = 1;
    if (a.any.sa_family == AF_UNIX) {
        struct stat s;
        if (stat(address->host, &s) == 0 && S_ISSOCK(s.st_mode))
            unlink(address->host); /* Left by a dead server. */
    } else {
        setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
        /* "::" serves IPv4 as well, as Java's wildcard does; a numeric IPv6 address only itself. */
        int only = strcmp(address->host, "::") != 0;
        if (a.any.sa_family == AF_INET6)
            setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &only, sizeof(only));
    }
    socklen_t bound_size = sizeof(a);
    if (bind(fd, &a.any, size) != 0 || listen(fd, POSIX_BACKLOG) != 0 ||
        getsockname(fd, &a.any, &bound_size) != 0) {
        int reason = -errno;
        close(fd);
        return reason;
    }
    if (bound != NULL) address_out(&a, bound);
    return fd;
}

int posix_listen(struct io *io,
                 const struct io_address *address,
                 const struct io_accept_events *events,
                 void *context,
                 struct io_listener **out,
                 struct io_address *bound)
{
    struct io_listener *listener = calloc(1, sizeof(*listener));
    if (listener == NULL) return -ENOMEM;
    listener->watched = POSIX_LISTENER;
    listener->events = events;
    listener->context = context;
    list_init(&listener->grave);
    listener->fd = socket_bound(address, bound);
    struct epoll_event event = {.events = EPOLLIN, .data.ptr = listener};
    int result = listener->fd < 0 ? listener->fd : 0;
    if (result == 0 &&
        epoll_ctl(posix_of(io)->epoll_fd, EPOLL_CTL_ADD, listener->fd, &event) != 0) {
        result = -errno;
        close(listener->fd);
    }
    if (result != 0) {
        free(listener);
        return result;
    }
    if (address->host[0] == '/') memcpy(listener->path, address->host, sizeof(address->host));
    *out = listener;
    return 0;
}

void posix_unlisten(struct io *io, struct io_listener *listener)
{
    assert(!listener->closed);
    listener->closed = true;
    list_remove(&listener->grave);
    close(listener->fd);
    if (listener->path[0] != '\0') unlink(listener->path);
    list_append(&posix_of(io)->graves, &listener->grave);
}

static struct io_stream *stream_new(int fd)
{
    struct io_stream *stream = calloc(1, sizeof(*stream));
    if (stream == NULL) {
        close(fd);
        return NULL;
    }
    int one = 1;
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
    stream->watched = POSIX_STREAM;
    stream->fd = fd;
    list_init(&stream->grave);
    return stream;
}

/* Without a descriptor for it the connection stays in the queue and the listener ready: it rests,
 * or the shard would spin. */
static void listener_mute(struct posix *p, struct io_listener *listener)
{
    struct epoll_event event = {.events = 0, .data.ptr = listener};
    (void)epoll_ctl(p->epoll_fd, EPOLL_CTL_MOD, listener->fd, &event);
    list_append(&p->muted, &listener->grave);
    p->unmute_ms = p->now_ms + POSIX_MUTE_MS;
}

void posix_unmute(struct posix *p)
{
    if (p->now_ms < p->unmute_ms) return;
    struct list *node;
    while ((node = list_pop(&p->muted)) != NULL) {
        struct io_listener *listener = container_of(node, struct io_listener, grave);
        struct epoll_event event = {.events = EPOLLIN, .data.ptr = listener};
        (void)epoll_ctl(p->epoll_fd, EPOLL_CTL_MOD, listener->fd, &event);
    }
}

void posix_accept_ready(struct posix *p, struct io_listener *listener)
{
    for (int i = 0; i < (int)IO_ACCEPTS_PER_TURN && !listener->closed; i++) {
        union address a;
        socklen_t size = sizeof(a);
        memset(&a, 0, sizeof(a));
        int fd = accept4(listener->fd, &a.any, &size, SOCK_NONBLOCK | SOCK_CLOEXEC);
        if (fd < 0 && (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM))
            listener_mute(p, listener);
        if (fd < 0) return; /* None left. */
        struct io_address peer;
        address_out(&a, &peer);
        struct io_stream *stream = stream_new(fd);
        if (stream != NULL) listener->events->accepted(listener->context, stream, &peer);
    }
}

/* ---- streams --------------------------------------------------------------------------------- */

int posix_connect(struct io *io, const struct io_address *address, struct io_stream **out)
{
    (void)io;
    union address a;
    socklen_t size = address_in(address, &a);
    if (size == 0) return -EINVAL;
    int fd = socket(a.any.sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd < 0) return -errno;
    if (connect(fd, &a.any, size) != 0 && errno != EINPROGRESS) {
        int reason = -errno;
        close(fd);
        return reason;
    }
    *out = stream_new(fd);
    return *out == NULL ? -ENOMEM : 0;
}

void posix_want(struct io *io, struct io_stream *stream, int want)
{
    assert(!stream->closed);
    if (stream->registered && stream->want == want) return;
    struct epoll_event event = {.events = epoll_of(want), .data.ptr = stream};
    int how = stream->registered ? EPOLL_CTL_MOD : EPOLL_CTL_ADD;
    stream->want = want;
    if (!list_empty(&stream->grave)) return;
    if (epoll_ctl(posix_of(io)->epoll_fd, how, stream->fd, &event) == 0)
        stream->registered = true;
    else /* No memory, or too many watched: of no use any more. */
        list_append(&posix_of(io)->unwatched, &stream->grave);
}

uint32_t posix_hang_up_unwatched(struct posix *p)
{
    struct list batch;
    list_init(&batch);
    struct list *node;
    while ((node = list_pop(&p->unwatched)) != NULL)
        list_append(&batch, node);
    uint32_t count = 0;
    while ((node = list_pop(&batch)) != NULL) {
        struct io_stream *stream = container_of(node, struct io_stream, grave);
        stream->events->ready(stream->context, stream, IO_HANGUP);
        if (!stream->closed) list_append(&p->unwatched, node);
        count++;
    }
    return count;
}

void posix_watch(struct io *io,
                 struct io_stream *stream,
                 int want,
                 const struct io_stream_events *events,
                 void *context)
{
    stream->events = events;
    stream->context = context;
    posix_want(io, stream, want);
}

int64_t posix_recv(struct io *io, struct io_stream *stream, void *out, size_t size)
{
    (void)io;
    ssize_t got;
    do {
        got = recv(stream->fd, out, size, 0);
    } while (got < 0 && errno == EINTR);
    return got < 0 ? -errno : got;
}

int64_t posix_send(struct io *io,
                   struct io_stream *stream,
                   const struct iovec *iov,
                   uint32_t count,
                   bool more)
{
    (void)io;
    struct msghdr message = {.msg_iovlen = MIN(count, (uint32_t)IOV_MAX)};
    memcpy(&message.msg_iov, &iov, sizeof(iov)); /* msghdr has no const; it is only read. */
    int flags = MSG_NOSIGNAL | (more ? MSG_MORE : 0);
    ssize_t put;
    do { /* One piece, as most answers are, leaves at less cost without the vector. */
        put = count == 1 ? send(stream->fd, iov->iov_base, iov->iov_len, flags)
                         : sendmsg(stream->fd, &message, flags);
    } while (put < 0 && errno == EINTR);
    return put < 0 ? -errno : put;
}

int64_t posix_send_file(struct io *io,
                        struct io_stream *stream,
                        struct io_file *file,
                        uint64_t offset,
                        size_t size)
{
    (void)io;
    off_t at = (off_t)offset;
    ssize_t put;
    do {
        put = sendfile(stream->fd, file->fd, &at, size);
    } while (put < 0 && errno == EINTR);
    return put < 0 ? -errno : put;
}

void posix_local(struct io *io, struct io_stream *stream, struct io_address *out)
{
    (void)io;
    union address a;
    socklen_t size = sizeof(a);
    memset(&a, 0, sizeof(a));
    getsockname(stream->fd, &a.any, &size);
    address_out(&a, out);
}

void posix_peer(struct io *io, struct io_stream *stream, struct io_address *out)
{
    (void)io;
    union address a;
    socklen_t size = sizeof(a);
    memset(&a, 0, sizeof(a));
    getpeername(stream->fd, &a.any, &size);
    address_out(&a, out);
}

void posix_close_stream(struct io *io, struct io_stream *stream)
{
    assert(!stream->closed);
    stream->closed = true;
    list_remove(&stream->grave);
    close(stream->fd);
    list_append(&posix_of(io)->graves, &stream->grave);
}

/* A stream that nobody watches is known to no handle. */
void posix_give_stream(struct io *io, struct io_stream *stream)
{
    (void)io;
    assert(!stream->closed);
    assert(!stream->registered);
    assert(list_empty(&stream->grave));
}

void posix_take_stream(struct io *io, struct io_stream *stream)
{
    (void)io;
    assert(!stream->registered);
}

/* Free what was closed: not before the turn's end, as its events may still be in the batch. */
void posix_bury(struct posix *p)
{
    struct list *node;
    while ((node = list_pop(&p->graves)) != NULL) {
        struct io_stream *stream = container_of(node, struct io_stream, grave);
        free(stream); /* Listeners begin alike: the same offset leads to the block's start. */
    }
}

_Static_assert(offsetof(struct io_stream, grave) == offsetof(struct io_listener, grave),
               "both are buried alike");
