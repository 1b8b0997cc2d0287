/* serve.c - see serve.h. */
#include "bench/lib/serve.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <sys/epoll.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/reader.h"
#include "bench/lib/client.h"
#include "sys/memory.h"

#define SERVE_READ_BYTES (256u * 1024u)
#define SERVE_EVENTS     256

static void link_close(struct serve_link *link)
{
    close(link->fd);
    sink_free(&link->in);
    sink_free(&link->out);
    link->fd = -1;
}

static void link_flush(struct serve *serve, struct serve_link *link)
{
    link->touched = false;
    while (link->out_at < link->out.size_bytes || link->file_size > 0) {
        bool memory = link->out_at < link->out.size_bytes;
        off_t at = link->file_at;
        ssize_t put =
            memory
                ? send(link->fd, link->out.data + link->out_at, link->out.size_bytes - link->out_at,
                       MSG_NOSIGNAL | MSG_DONTWAIT | (link->file_size > 0 ? MSG_MORE : 0))
                : sendfile(link->fd, link->file_fd, &at, link->file_size);
        if (put < 0 && errno == EINTR) continue;
        if (put <= 0) break;
        if (memory) {
            link->out_at += (uint32_t)put;
        } else {
            link->file_at += put;
            link->file_size -= (uint32_t)put;
        }
    }
    bool wants = link->out_at < link->out.size_bytes || link->file_size > 0;
    if (!wants) {
        sink_reset(&link->out);
        link->out_at = 0;
    }
    if (wants == link->wants_out) return;
    struct epoll_event event = {.events = wants ? EPOLLOUT : EPOLLIN, .data.ptr = link};
    (void)epoll_ctl(serve->epoll_fd, EPOLL_CTL_MOD, link->fd, &event);
    link->wants_out = wants;
}

static void link_receive(struct serve *serve, struct serve_link *link)
{
    uint8_t *room = sink_room(&link->in, SERVE_READ_BYTES);
    if (room == NULL) client_die("no memory to receive");
    ssize_t got = recv(link->fd, room, SERVE_READ_BYTES, MSG_DONTWAIT);
    if (got <= 0) {
        if (got == 0 || errno != EAGAIN) link_close(link);
        return;
    }
    sink_used(&link->in, (uint32_t)got);
    uint32_t at = 0;
    while (link->in.size_bytes - at >= 4) {
        uint32_t size = load_be32(link->in.data + at);
        if (link->in.size_bytes - at - 4 < size) break;
        serve->frame(serve, link, view_of(link->in.data + at + 4, size));
        at += 4 + size;
    }
    memmove(link->in.data, link->in.data + at, link->in.size_bytes - at);
    link->in.size_bytes -= at;
}

static void accept_one(struct serve *serve)
{
    int one = 1, fd = accept4(serve->listen_fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (fd < 0) return;
    if ((uint32_t)fd >= SERVE_CONNECTIONS_MAX) client_die("too many connections for a floor");
    (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
    struct serve_link *link = &serve->links[fd];
    *link = (struct serve_link){.fd = fd};
    sink_init(&link->in, &serve->mem, 1u << 30);
    sink_init(&link->out, &serve->mem, 1u << 30);
    struct epoll_event event = {.events = EPOLLIN, .data.ptr = link};
    (void)epoll_ctl(serve->epoll_fd, EPOLL_CTL_ADD, fd, &event);
}

static void open_listener(struct serve *serve)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof(address);
    serve->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    serve->listen_fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    struct epoll_event event = {.events = EPOLLIN, .data.ptr = NULL};
    if (bind(serve->listen_fd, (struct sockaddr *)&address, size) != 0 ||
        listen(serve->listen_fd, 1024) != 0 ||
        getsockname(serve->listen_fd, (struct sockaddr *)&address, &size) != 0 ||
        epoll_ctl(serve->epoll_fd, EPOLL_CTL_ADD, serve->listen_fd, &event) != 0)
        client_die("could not listen: %s", strerror(errno));
    printf("listening on %u\n", ntohs(address.sin_port));
    (void)fflush(stdout);
}

void serve_run(struct serve *serve)
{
    struct epoll_event events[SERVE_EVENTS];
    memory_init(&serve->mem, 0);
    open_listener(serve);
    for (;;) {
        int count = epoll_wait(serve->epoll_fd, events, SERVE_EVENTS, -1);
        for (int i = 0; i < count; i++) {
            struct serve_link *link = events[i].data.ptr;
            if (link == NULL)
                accept_one(serve);
            else if (events[i].events & EPOLLOUT)
                link_flush(serve, link);
            else
                link_receive(serve, link);
        }
        if (serve->handled != NULL) serve->handled(serve);
        while (serve->touched != NULL) {
            struct serve_link *link = serve->touched;
            serve->touched = link->next;
            if (link->fd > 0) link_flush(serve, link);
        }
    }
}

void serve_answer(struct serve *serve, struct serve_link *link, struct view frame, uint32_t size)
{
    if (!link->touched) {
        link->touched = true;
        link->next = serve->touched;
        serve->touched = link;
    }
    sink_put_be32(&link->out, size);
    sink_put(&link->out, frame.data + 4, 4); /* Behind key and version. */
}

/* The places as requests.c encodes them, not as a client may. */
struct serve_produce serve_read_produce(struct view frame)
{
    struct reader in = reader_of(frame);
    struct serve_produce out;
    (void)reader_take(&in, 4 + 4); /* Key and version, correlation. */
    (void)reader_take(&in, reader_be16(&in));
    (void)reader_take(&in, 1 + 1 + 2 + 4 + 1); /* Tags, no transaction, acks, timeout, count. */
    uint32_t size = reader_uvarint(&in) - 1;
    out.topic = view_of(reader_take(&in, size), size);
    (void)reader_take(&in, 1 + 4); /* Count, index. */
    size = reader_uvarint(&in) - 1;
    out.batch = view_of(reader_take(&in, size), size);
    if (in.fault != READER_OK) client_die("no produce request of the replayer");
    return out;
}

void serve_produced(struct serve *serve,
                    struct serve_link *link,
                    struct view frame,
                    struct view topic)
{
    static const uint8_t rest[2 + 8 + 8 + 8 + 1 + 1 + 1 + 1 + 4 + 1] = {[26] = 1};
    struct sink *out = serve_out(link);
    serve_answer(serve, link, frame, 4 + 1 + 1 + 1 + topic.size + 1 + 4 + (uint32_t)sizeof(rest));
    sink_put_u8(out, 0);
    sink_put_u8(out, 2);
    sink_put_u8(out, (uint8_t)(topic.size + 1));
    sink_put(out, topic.data, topic.size);
    sink_put_u8(out, 2);
    sink_put_be32(out, 0);
    sink_put(out, rest, sizeof(rest));
}
