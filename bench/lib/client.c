/* client.c - see client.h. */
#include "bench/lib/client.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include "gen/request_header.h"
#include "gen/response_header.h"

#define CLIENT_BYTES_MAX (256u * 1024u * 1024u) /* Of a frame: above any server's own limit. */

void client_die(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    (void)vfprintf(stderr, format, arguments);
    va_end(arguments);
    (void)fputc('\n', stderr);
    exit(1);
}

/* A connection, or -1 and errno. */
static int try_connect(const char *host, uint16_t port)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(port)};
    int one = 1;
    if (inet_pton(AF_INET, host, &address.sin_addr) != 1) client_die("no IPv4 address: %s", host);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0) return -1;
    if (connect(fd, (struct sockaddr *)&address, sizeof(address)) != 0) {
        close(fd);
        return -1;
    }
    (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
    return fd;
}

int client_socket(const char *host, uint16_t port)
{
    int fd = try_connect(host, port);
    if (fd < 0) client_die("could not connect to %s:%u: %s", host, port, strerror(errno));
    return fd;
}

void client_wait(const char *host, uint16_t port)
{
    int fd;
    while ((fd = try_connect(host, port)) < 0)
        (void)usleep(200);
    close(fd);
}

void client_open(struct client *client, struct mem *mem, const char *host, uint16_t port)
{
    *client = (struct client){.fd = client_socket(host, port)};
    sink_init(&client->frame, mem, CLIENT_BYTES_MAX);
    sink_init(&client->answer, mem, CLIENT_BYTES_MAX);
    arena_init(&client->decode, mem, 0);
}

void client_close(struct client *client)
{
    close(client->fd);
    sink_free(&client->frame);
    sink_free(&client->answer);
    arena_free(&client->decode);
}

static uint8_t *client_room(struct sink *sink, size_t size)
{
    uint8_t *at = sink_room(sink, (uint32_t)size);
    if (at == NULL) client_die("no memory for a frame of %zu bytes", size);
    return at;
}

uint32_t client_encode(struct sink *out,
                       int16_t api_key,
                       int16_t version,
                       int32_t correlation,
                       const void *message)
{
    const struct wire_api *api = wire_api(api_key);
    const struct wire_form *body = wire_form(api->request, version);
    const struct wire_form *head =
        wire_form(&wire_request_header, wire_request_header_version(api, version));
    struct request_header header;
    uint32_t gaps, start = out->size_bytes;
    wire_defaults(&wire_request_header, &header);
    header.request_api_key = api_key;
    header.request_api_version = version;
    header.correlation_id = correlation;
    header.client_id = VIEW("bench");
    size_t size = wire_size(head, &header) + wire_size(body, message);
    uint8_t *at = client_room(out, 4 + size);
    store_be32(at, (uint32_t)size);
    size_t used = wire_encode(head, &header, at + 4, NULL, 0, &gaps);
    used += wire_encode(body, message, at + 4 + used, NULL, 0, &gaps);
    assert(used == size);
    sink_used(out, 4 + (uint32_t)size);
    return start;
}

/* writev and recvmsg: no system call that the server makes too, so that a count by name can tell
 * the two apart when they live in one process. */
static void client_send(const struct client *client)
{
    size_t done = 0, size = client->frame.size_bytes;
    while (done < size) {
        struct iovec part = {client->frame.data + done, size - done};
        ssize_t put = writev(client->fd, &part, 1);
        if (put < 0 && errno == EINTR) continue;
        if (put <= 0) client_die("could not send: %s", strerror(errno));
        done += (size_t)put;
    }
}

static void client_receive(struct client *client, uint8_t *out, size_t size)
{
    size_t done = 0;
    int flags = client->turn != NULL ? MSG_DONTWAIT : 0;
    while (done < size) {
        struct iovec part = {out + done, size - done};
        struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};
        ssize_t got = recvmsg(client->fd, &message, flags);
        if (got < 0 && errno == EINTR) continue;
        if (got < 0 && errno == EAGAIN && client->turn != NULL) {
            client->turn(client->context);
            continue;
        }
        if (got <= 0) client_die("no answer: %s", got == 0 ? "closed" : strerror(errno));
        done += (size_t)got;
    }
}

void client_pause(void)
{
    (void)usleep(1000);
}

static void receive_frame(struct client *client)
{
    uint8_t length[4];
    /* In one process the answer is always behind a turn: no use in looking before. */
    if (client->turn != NULL) client->turn(client->context);
    client_receive(client, length, sizeof(length));
    uint32_t size = load_be32(length);
    if (size > CLIENT_BYTES_MAX) client_die("an answer of %u bytes", size);
    sink_reset(&client->answer);
    client_receive(client, client_room(&client->answer, size), size);
    sink_used(&client->answer, size);
}

void client_exchange_frame(struct client *client)
{
    client_send(client);
    receive_frame(client);
}

void client_ask(struct client *client, int16_t api_key, int16_t version, const void *message)
{
    client->asked_api = api_key;
    client->asked_version = version;
    sink_reset(&client->frame);
    (void)client_encode(&client->frame, api_key, version, ++client->correlation, message);
    client_send(client);
}

void *client_answer(struct client *client)
{
    const struct wire_api *api = wire_api(client->asked_api);
    int16_t version = client->asked_version;
    const struct wire_form *head =
        wire_form(&wire_response_header, wire_response_header_version(api, version));
    struct response_header header;
    receive_frame(client);
    struct reader in = reader_of(sink_view(&client->answer));
    arena_reset(&client->decode);
    void *response = arena_get(&client->decode, api->response->size_bytes);
    if (response == NULL || !wire_decode(&in, head, &client->decode, &header) ||
        !wire_decode(&in, wire_form(api->response, version), &client->decode, response) ||
        reader_left(&in) != 0 || header.correlation_id != client->correlation)
        client_die("the answer to %s %d cannot be read", api->name, version);
    return response;
}

void *client_call(struct client *client, int16_t api_key, int16_t version, const void *message)
{
    client_ask(client, api_key, version, message);
    return client_answer(client);
}
