/* rig_test.h - a shard, or a few, over real sockets for the tests of this folder.
 *
 * The client's ends are blocking sockets of the same thread: send, turn the shard, receive. What
 * one test file does not use is marked so. */
#pragma once

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "gen/api_versions_request.h"
#include "gen/api_versions_response.h"
#include "gen/fetch_request.h"
#include "gen/fetch_response.h"
#include "gen/heartbeat_request.h"
#include "gen/heartbeat_response.h"
#include "gen/metrics.h"
#include "gen/produce_response.h"
#include "gen/request_header.h"
#include "io/posix.h"
#include "net/inside.h"
#include "sys/memory.h"

enum { PARKED_MAX = 64, RIG_SHARDS = 3 };

struct rig {
    struct mem mem;
    struct io *io; /* Of the first shard, which listens. */
    struct io *ios[RIG_SHARDS];
    struct say say;
    char said[4096];
    struct shard *shard;
    struct shard *peers[RIG_SHARDS];
    uint32_t count;
    struct listener *listener;
    struct request *parked[PARKED_MAX];
    uint32_t parked_count;
    uint32_t handled;
    uint32_t gone;
    uint32_t released;
    int64_t throttle_ms;
    int64_t charge_ms;
    int64_t admit_ms;
    bool admit_late; /* Who waits comes in then. */
    bool beats_park; /* Heartbeats wait for the test, else they are answered at once. */
    uint32_t charged;
    struct io_file *file;
    uint32_t file_part;
};

static struct rig *rig_of(struct shard *shard)
{
    return shard->node;
}

__attribute__((unused)) static void catch_line(void *context, const char *line, size_t size)
{
    struct rig *rig = context;
    size = MIN(size, sizeof(rig->said) - 1);
    memcpy(rig->said, line, size);
    rig->said[size] = '\0';
}

/* ---- hooks ----------------------------------------------------------------------------------- */

/* Whatever ends waits `charge_ms`, if its handler took time. */
__attribute__((unused)) static int64_t charge_all(struct shard *shard,
                                                  struct request *request,
                                                  bool answered)
{
    struct rig *rig = rig_of(shard);
    rig->charged++;
    assert_true(answered);
    return request->cpu_ns > 0 ? rig->charge_ms : 0;
}

__attribute__((unused)) static struct shard_admission admit_some(struct shard *shard,
                                                                 const struct listener *listener,
                                                                 const struct io_address *peer)
{
    struct rig *rig = rig_of(shard);
    assert_string_equal(peer->host, "127.0.0.1");
    assert_ptr_equal(listener, rig->listener);
    return (struct shard_admission){rig->admit_ms, rig->admit_ms > 0 && !rig->admit_late};
}

/* ---- handlers -------------------------------------------------------------------------------- */

__attribute__((unused)) static void parked_gone(struct request *request)
{
    struct rig *rig = rig_of(request->shard);
    rig->gone++;
    for (uint32_t i = 0; i < rig->parked_count; i++)
        if (rig->parked[i] == request) rig->parked[i] = NULL;
    request_finish(request);
}

__attribute__((unused)) static void park(struct shard *shard, struct request *request)
{
    struct rig *rig = rig_of(shard);
    assert_true(rig->parked_count < PARKED_MAX);
    request->gone = parked_gone;
    rig->parked[rig->parked_count++] = request;
    rig->handled++;
}

__attribute__((unused)) static void answer(struct request *request)
{
    void *response = request_response(request);
    assert_non_null(response);
    request_reply(request, response);
}

__attribute__((unused)) static void heartbeat(struct shard *shard, struct request *request)
{
    struct rig *rig = rig_of(shard);
    if (rig->beats_park) {
        park(shard, request);
        return;
    }
    rig->handled++;
    struct heartbeat_response *response = request_response(request);
    request_throttle(request, rig->throttle_ms);
    rig->throttle_ms = 0;
    request_reply(request, response);
}

__attribute__((unused)) static void violate(struct shard *shard, struct request *request)
{
    (void)shard;
    request_close(request, "a broken promise");
}

__attribute__((unused)) static void range_released(struct net_range *range)
{
    ((struct rig *)range->context)->released++;
}

__attribute__((unused)) static struct net_range *new_range(struct rig *rig, struct request *request)
{
    struct net_range *range = arena_get(&request->arena, sizeof(*range));
    range->release = range_released;
    range->context = rig;
    return range;
}

/* Two partitions: one from memory and a file, one from the file; `file_part` bytes each. */
__attribute__((unused)) static void fetch(struct shard *shard, struct request *request)
{
    struct rig *rig = rig_of(shard);
    rig->handled++;
    struct fetch_response *response = request_response(request);
    struct fetch_response_fetchable_topic_response *topic =
        arena_get(&request->arena, sizeof(*topic));
    struct fetch_response_partition_data *partitions =
        arena_get(&request->arena, 2 * sizeof(*partitions));
    wire_struct_defaults(&wire_fetch_response_fetchable_topic_response_shape, topic);
    topic->topic = VIEW("t");
    topic->partitions.items = partitions;
    topic->partitions.count = 2;
    for (int i = 0; i < 2; i++) {
        wire_struct_defaults(&wire_fetch_response_partition_data_shape, &partitions[i]);
        partitions[i].partition_index = i;
        struct net_range *range = new_range(rig, request);
        range->file = rig->file;
        range->offset = (uint64_t)i;
        range->size_bytes = rig->file_part;
        struct net_range *first = range;
        if (i == 0) {
            first = new_range(rig, request);
            first->bytes = (const uint8_t *)"memory";
            first->size_bytes = 6;
            first->next = range;
        }
        partitions[i].records = request_ranges(request, first);
    }
    response->responses.items = topic;
    response->responses.count = 1;
    request_reply(request, response);
}

#ifndef RIG_HANDLERS
static const struct net_handler handlers[] = {
    {0,  3, 13, 0, WIRE_BROKER,     park     }, /* Produce */
    {1,  4, 18, 4, WIRE_BROKER,     fetch    }, /* Fetch */
    {12, 0, 4,  0, WIRE_BROKER,     heartbeat}, /* Heartbeat */
    {13, 0, 5,  0, WIRE_BROKER,     park     }, /* LeaveGroup */
    {14, 0, 5,  0, WIRE_BROKER,     violate  }, /* SyncGroup */
    {11, 0, 9,  0, WIRE_BROKER,     park     }, /* JoinGroup: waits as it is meant to */
    {52, 0, 2,  0, WIRE_CONTROLLER, park     }, /* Vote */
};
#else
static const struct net_handler handlers[RIG_HANDLERS]; /* The test's own. */
#endif

/* ---- the rig --------------------------------------------------------------------------------- */

__attribute__((unused)) static struct shard_settings default_settings(void)
{
    return (struct shard_settings){
        .request_max_bytes = 1024 * 1024,
        .limits = {.connections_max = 1000, .connections_per_ip = 1000},
        .idle_ms = -1,
        .receive_budget_bytes = 16 * 1024 * 1024
    };
}

__attribute__((unused)) static void rig_open_shards(struct rig *rig,
                                                    struct shard_settings settings,
                                                    uint32_t count)
{
    *rig = (struct rig){.say = {.sink = catch_line}, .count = count};
    rig->say.context = rig;
    memory_init(&rig->mem, 0);
    for (uint32_t i = 0; i < count; i++) {
        rig->ios[i] = posix_new(&rig->mem);
        assert_non_null(rig->ios[i]);
        struct shard_options options = {
            .io = rig->ios[i],
            .say = &rig->say,
            .index = i,
            .count = count,
            .peers = rig->peers,
            .handlers = handlers,
            .handler_count = ARRAY_SIZE(handlers),
            .settings = settings,
            .hooks = {.node = rig, .charge = charge_all, .admit = admit_some}
        };
        assert_int_equal(shard_open(&options, &rig->peers[i]), 0);
    }
    rig->shard = rig->peers[0];
    rig->io = rig->ios[0];
    struct io_address address = {.host = "127.0.0.1"};
    struct listener_options listener = {.name = VIEW("PLAINTEXT"),
                                        .kind = WIRE_BROKER,
                                        .connections_max = UINT32_MAX,
                                        .addresses = &address,
                                        .address_count = 1};
    assert_int_equal(shard_listen(rig->shard, &listener, &rig->listener), 0);
}

__attribute__((unused)) static void rig_open(struct rig *rig, struct shard_settings settings)
{
    rig_open_shards(rig, settings, 1);
}

__attribute__((unused)) static void rig_turn(struct rig *rig)
{
    for (uint32_t i = 0; i < rig->count; i++)
        shard_turn(rig->peers[i], INT64_MIN);
}

__attribute__((unused)) static void rig_close(struct rig *rig)
{
    for (uint32_t i = 0; i < rig->count && rig->count > 1; i++)
        shard_disconnect(rig->peers[i]);
    for (int i = 0; i < 10 && rig->count > 1; i++)
        rig_turn(rig);
    for (uint32_t i = 0; i < rig->count; i++)
        rig->peers[i] = shard_close(rig->peers[i]);
    io_disk_close(rig->ios[0], rig->file);
    for (uint32_t i = 0; i < rig->count; i++)
        io_free(rig->ios[i]);
    assert_int_equal(rig->mem.used_bytes, 0);
}

/* RIG_TEST(f): the test with a shard of the default settings as its state; the rig is closed and
 * its memory counted behind it. */
__attribute__((unused)) static int rig_setup(void **state)
{
    struct rig *rig = malloc(sizeof(*rig));
    if (rig == NULL) return -1;
    rig_open(rig, default_settings());
    *state = rig;
    return 0;
}

__attribute__((unused)) static int rig_teardown(void **state)
{
    rig_close(*state);
    free(*state);
    return 0;
}

#define RIG_TEST(test) cmocka_unit_test_setup_teardown(test, rig_setup, rig_teardown)

__attribute__((unused)) static void turns(struct rig *rig, int count)
{
    for (int i = 0; i < count; i++)
        rig_turn(rig);
}

/* Connected; nobody has accepted it. */
__attribute__((unused)) static int client_connect(struct rig *rig)
{
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    struct sockaddr_in to = {.sin_family = AF_INET,
                             .sin_port = htons(rig->listener->bound[0].port)};
    int one = 1;
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
    inet_pton(AF_INET, "127.0.0.1", &to.sin_addr);
    assert_int_equal(connect(fd, (struct sockaddr *)&to, sizeof(to)), 0);
    return fd;
}

__attribute__((unused)) static int client_open(struct rig *rig)
{
    int fd = client_connect(rig);
    turns(rig, 2);
    return fd;
}

__attribute__((unused)) static void client_send(int fd, const void *bytes, size_t size)
{
    assert_int_equal(send(fd, bytes, size, MSG_NOSIGNAL), (ssize_t)size);
}

/* `size` bytes, turning the shard meanwhile. False: closed before. */
__attribute__((unused)) static bool client_receive(struct rig *rig, int fd, void *out, size_t size)
{
    size_t at = 0;
    int64_t until_us = io_now_us(rig->io) + 20000000;
    while (at < size && io_now_us(rig->io) < until_us) {
        ssize_t got = recv(fd, (char *)out + at, size - at, MSG_DONTWAIT);
        if (got == 0 || (got < 0 && errno != EAGAIN)) return false;
        if (got > 0) at += (size_t)got;
        rig_turn(rig);
    }
    assert_int_equal(at, size);
    return true;
}

/* Nothing to read: the connection is open and silent. */
__attribute__((unused)) static bool client_silent(struct rig *rig, int fd)
{
    char byte;
    turns(rig, 3);
    return recv(fd, &byte, 1, MSG_DONTWAIT) < 0 && errno == EAGAIN;
}

__attribute__((unused)) static bool client_closed(struct rig *rig, int fd)
{
    char byte;
    turns(rig, 3);
    ssize_t got = recv(fd, &byte, 1, MSG_DONTWAIT);
    return got == 0 || (got < 0 && errno == ECONNRESET);
}

/* A frame of this API with its schema's sample body; returns its size with the length. */
__attribute__((unused)) static size_t frame_make(uint8_t *out,
                                                 int16_t key,
                                                 int16_t version,
                                                 int32_t id)
{
    const struct wire_api *api = wire_api(key);
    struct request_header header = {key, version, id, VIEW("test"), VIEW_EMPTY};
    union {
        uint64_t align;
        uint8_t bytes[1024];
    } body;
    assert_true(api->request->size_bytes <= sizeof(body));
    wire_defaults(api->request, &body);
    const struct wire_form *head =
        wire_form(&wire_request_header, wire_request_header_version(api, version));
    const struct wire_form *form = wire_form(api->request, version);
    size_t size = wire_encode(head, &header, out + 4, NULL, 0, NULL);
    size += wire_encode(form, &body, out + 4 + size, NULL, 0, NULL);
    store_be32(out, (uint32_t)size);
    return size + 4;
}

/* The next answer's correlation id; its bytes (behind the length) in `out`. */
__attribute__((unused)) static int32_t answer_id(struct rig *rig,
                                                 int fd,
                                                 uint8_t *out,
                                                 uint32_t *size)
{
    uint8_t length[4];
    assert_true(client_receive(rig, fd, length, 4));
    *size = load_be32(length);
    assert_true(client_receive(rig, fd, out, *size));
    return (int32_t)load_be32(out);
}

__attribute__((unused)) static int32_t next_id(struct rig *rig, int fd)
{
    uint8_t bytes[4096];
    uint32_t size;
    return answer_id(rig, fd, bytes, &size);
}
