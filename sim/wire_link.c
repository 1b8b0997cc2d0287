/* wire_link.c - see wire_link.h. */
#include "sim/wire_link.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "gen/request_header.h"
#include "gen/response_header.h"

#define AGAIN_MS 20

void wire_link_init(struct wire_link *link, struct io *io, const char *host, uint16_t port)
{
    link->io = io;
    link->server.port = port;
    link->client_id = "sim";
    (void)snprintf(link->server.host, sizeof(link->server.host), "%s", host);
    link->in = malloc(WIRE_LINK_BYTES_MAX);
    link->out = malloc(WIRE_LINK_BYTES_MAX);
    if (link->in == NULL || link->out == NULL) abort();
    arena_init(&link->reply, io_mem(io), 0);
}

void wire_link_free(struct wire_link *link)
{
    free(link->in);
    free(link->out);
}

void wire_link_drop(struct wire_link *link)
{
    if (link->stream == NULL) return;
    io_stream_close(link->io, link->stream);
    link->stream = NULL;
    link->in_size = link->out_size = link->wait_count = 0;
    link->again_ms = io_now_ms(link->io) + AGAIN_MS;
    link->lost(link);
}

static void link_flush(struct wire_link *link)
{
    while (link->out_size > 0) {
        struct iovec iov = {link->out, link->out_size};
        int64_t n = io_stream_send(link->io, link->stream, &iov, 1, false);
        if (n == -EAGAIN) break;
        if (n < 0) {
            wire_link_drop(link);
            return;
        }
        link->out_size -= (uint32_t)n;
        memmove(link->out, link->out + n, link->out_size);
    }
    io_stream_want(link->io, link->stream, IO_READABLE | (link->out_size > 0 ? IO_WRITABLE : 0));
}

void wire_link_send(struct wire_link *link, int16_t api_key, int16_t version, const void *message)
{
    assert(link->stream != NULL);
    assert(link->wait_count < WIRE_LINK_WAITS_MAX);
    const struct wire_api *api = wire_api(api_key);
    const struct wire_form *body = wire_form(api->request, version);
    const struct wire_form *head =
        wire_form(&wire_request_header, wire_request_header_version(api, version));
    struct request_header header;
    uint32_t gaps;

    wire_defaults(&wire_request_header, &header);
    header.request_api_key = api_key;
    header.request_api_version = version;
    header.correlation_id = ++link->correlation;
    header.client_id = view_of_string(link->client_id);
    size_t size = wire_size(head, &header) + wire_size(body, message);
    assert(link->out_size + 4 + size <= WIRE_LINK_BYTES_MAX);
    uint8_t *at = link->out + link->out_size;
    store_be32(at, (uint32_t)size);
    size_t used = wire_encode(head, &header, at + 4, NULL, 0, &gaps);
    used += wire_encode(body, message, at + 4 + used, NULL, 0, &gaps);
    assert(used == size);
    link->out_size += 4 + (uint32_t)size;
    link->waits[link->wait_count++] = (struct wire_link_wait){
        header.correlation_id, api_key, version, link->history->troubles, link->history->restarts};
    if (link->wait_count == 1) link->silent_ms = io_now_ms(link->io) + WIRE_LINK_SILENCE_MS;
    io_stream_want(link->io, link->stream, IO_READABLE | IO_WRITABLE);
}

/* One whole reply. */
static void link_reply(struct wire_link *link, struct view frame)
{
    struct response_header header;
    struct reader in = reader_of(frame);
    if (link->wait_count == 0) {
        history_violation(link->history, "a reply to no request");
        return;
    }
    struct wire_link_wait wait = link->waits[0];
    const struct wire_api *api = wire_api(wait.api);
    const struct wire_form *head =
        wire_form(&wire_response_header, wire_response_header_version(api, wait.version));
    arena_reset(&link->reply);
    void *response = arena_get(&link->reply, api->response->size_bytes);
    bool fine = wire_decode(&in, head, &link->reply, &header) &&
                wire_decode(&in, wire_form(api->response, wait.version), &link->reply, response) &&
                reader_left(&in) == 0;
    if (!fine || header.correlation_id != wait.correlation) {
        history_violation(link->history, "a reply of %s %d that is none", api->name, wait.version);
        return;
    }
    link->wait_count--;
    memmove(link->waits, link->waits + 1, link->wait_count * sizeof(link->waits[0]));
    link->silent_ms = io_now_ms(link->io) + WIRE_LINK_SILENCE_MS;
    link->troubled =
        link->history->trouble_us == INT64_MAX || wait.troubles != link->history->troubles;
    link->answered(link, &wait, response);
}

static void link_replies(struct wire_link *link)
{
    uint32_t at = 0;
    const struct io_stream *stream = link->stream;
    while (link->in_size - at >= 4) {
        uint32_t size = load_be32(link->in + at);
        if (size > WIRE_LINK_BYTES_MAX - 4) {
            history_violation(link->history, "a reply of %u bytes", size);
            return;
        }
        if (link->in_size - at < 4 + size) break;
        link_reply(link, view_of(link->in + at + 4, size));
        if (link->stream != stream) return; /* Its owner has dropped it. */
        at += 4 + size;
    }
    link->in_size -= at;
    memmove(link->in, link->in + at, link->in_size);
}

static void link_ready(void *context, struct io_stream *stream, int ready)
{
    struct wire_link *link = context;
    if (ready & IO_READABLE) {
        int64_t n = io_stream_recv(link->io, stream, link->in + link->in_size,
                                   WIRE_LINK_BYTES_MAX - link->in_size);
        if (n <= 0 && n != -EAGAIN) {
            wire_link_drop(link);
            return;
        }
        if (n > 0) link->in_size += (uint32_t)n;
        link_replies(link);
    } else if (ready & IO_HANGUP) {
        wire_link_drop(link);
        return;
    }
    if (link->stream != NULL && ready & IO_WRITABLE) link_flush(link);
}

void wire_link_turn(struct wire_link *link)
{
    static const struct io_stream_events events = {link_ready};
    int64_t now_ms = io_now_ms(link->io);
    if (link->stream != NULL && link->wait_count > 0 && now_ms >= link->silent_ms)
        wire_link_drop(link);
    if (link->stream != NULL || now_ms < link->again_ms) return;
    if (io_connect(link->io, &link->server, &link->stream) != 0) {
        link->stream = NULL;
        link->again_ms = now_ms + AGAIN_MS;
        return;
    }
    link->connects++;
    link->silent_ms = now_ms + WIRE_LINK_SILENCE_MS;
    io_stream_watch(link->io, link->stream, IO_READABLE | IO_WRITABLE, &events, link);
}

int64_t wire_link_next_ms(const struct wire_link *link)
{
    if (link->stream == NULL) return link->again_ms;
    return link->wait_count > 0 ? link->silent_ms : INT64_MAX;
}
