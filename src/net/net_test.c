/* net_test.c - a shard over real sockets: frames, order, holds, limits, ranges, ApiVersions.
 *
 * The client's ends are blocking sockets of the same thread: send, turn the shard, receive. */
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

enum { PARKED_MAX = 64 };

struct rig {
    struct mem mem;
    struct io *io;
    struct say say;
    char said[4096];
    struct shard *shard;
    struct shard *peers[1];
    struct listener *listener;
    struct request *parked[PARKED_MAX];
    uint32_t parked_count;
    uint32_t handled;
    uint32_t gone;
    uint32_t released;
    int64_t throttle_ms;
    struct io_file *file;
    uint32_t file_part;
};

static struct rig *rig_of(struct shard *shard)
{
    return shard->node;
}

static void catch_line(void *context, const char *line, size_t size)
{
    struct rig *rig = context;
    size = MIN(size, sizeof(rig->said) - 1);
    memcpy(rig->said, line, size);
    rig->said[size] = '\0';
}

/* ---- handlers -------------------------------------------------------------------------------- */

static void parked_gone(struct request *request)
{
    struct rig *rig = rig_of(request->shard);
    rig->gone++;
    for (uint32_t i = 0; i < rig->parked_count; i++)
        if (rig->parked[i] == request) rig->parked[i] = NULL;
    request_finish(request);
}

static void park(struct shard *shard, struct request *request)
{
    struct rig *rig = rig_of(shard);
    assert_true(rig->parked_count < PARKED_MAX);
    request->gone = parked_gone;
    rig->parked[rig->parked_count++] = request;
    rig->handled++;
}

static void answer(struct request *request)
{
    void *response = request_response(request);
    assert_non_null(response);
    request_reply(request, response);
}

static void heartbeat(struct shard *shard, struct request *request)
{
    struct rig *rig = rig_of(shard);
    rig->handled++;
    struct heartbeat_response *response = request_response(request);
    response->throttle_time_ms = (int32_t)rig->throttle_ms;
    request_throttle(request, rig->throttle_ms);
    rig->throttle_ms = 0;
    request_reply(request, response);
}

static void violate(struct shard *shard, struct request *request)
{
    (void)shard;
    request_close(request, "a broken promise");
}

static void range_released(struct net_range *range)
{
    ((struct rig *)range->context)->released++;
}

static struct net_range *new_range(struct rig *rig, struct request *request)
{
    struct net_range *range = arena_get(&request->arena, sizeof(*range));
    range->release = range_released;
    range->context = rig;
    return range;
}

/* Two partitions: one from memory and a file, one from the file; `file_part` bytes each. */
static void fetch(struct shard *shard, struct request *request)
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

static const struct net_handler handlers[] = {
    {0,  3, 13, 0, WIRE_BROKER,     park     }, /* Produce */
    {1,  4, 18, 4, WIRE_BROKER,     fetch    }, /* Fetch */
    {12, 0, 4,  0, WIRE_BROKER,     heartbeat}, /* Heartbeat */
    {13, 0, 5,  0, WIRE_BROKER,     park     }, /* LeaveGroup */
    {14, 0, 5,  0, WIRE_BROKER,     violate  }, /* SyncGroup */
    {52, 0, 2,  0, WIRE_CONTROLLER, park     }, /* Vote */
};

/* ---- the rig --------------------------------------------------------------------------------- */

static struct shard_settings default_settings(void)
{
    return (struct shard_settings){.request_max_bytes = 1024 * 1024,
                                   .connections_max = 1000,
                                   .connections_per_ip = 1000,
                                   .idle_ms = -1,
                                   .receive_budget_bytes = 16 * 1024 * 1024};
}

static void rig_open(struct rig *rig, struct shard_settings settings)
{
    *rig = (struct rig){
        .say = {.level = SAY_INFO, .sink = catch_line}
    };
    rig->say.context = rig;
    memory_init(&rig->mem, 0);
    rig->io = posix_new(&rig->mem);
    assert_non_null(rig->io);
    struct shard_options options = {.io = rig->io,
                                    .say = &rig->say,
                                    .count = 1,
                                    .peers = rig->peers,
                                    .handlers = handlers,
                                    .handler_count = ARRAY_SIZE(handlers),
                                    .settings = settings,
                                    .hooks = {.node = rig}};
    assert_int_equal(shard_open(&options, &rig->shard), 0);
    rig->peers[0] = rig->shard;
    struct io_address address = {.host = "127.0.0.1"};
    struct listener_options listener = {.name = VIEW("PLAINTEXT"),
                                        .kind = WIRE_BROKER,
                                        .connections_max = UINT32_MAX,
                                        .addresses = &address,
                                        .address_count = 1};
    assert_int_equal(shard_listen(rig->shard, &listener, &rig->listener), 0);
}

static void rig_close(struct rig *rig)
{
    io_disk_close(rig->io, rig->file);
    rig->shard = shard_close(rig->shard);
    io_free(rig->io);
    assert_int_equal(rig->mem.used_bytes, 0);
}

static void turns(struct rig *rig, int count)
{
    for (int i = 0; i < count; i++)
        shard_turn(rig->shard, INT64_MIN);
}

static int client_open(struct rig *rig)
{
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    struct sockaddr_in to = {.sin_family = AF_INET,
                             .sin_port = htons(rig->listener->bound[0].port)};
    int one = 1;
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
    inet_pton(AF_INET, "127.0.0.1", &to.sin_addr);
    assert_int_equal(connect(fd, (struct sockaddr *)&to, sizeof(to)), 0);
    turns(rig, 2);
    return fd;
}

static void client_send(int fd, const void *bytes, size_t size)
{
    assert_int_equal(send(fd, bytes, size, MSG_NOSIGNAL), (ssize_t)size);
}

/* `size` bytes, turning the shard meanwhile. False: closed before. */
static bool client_receive(struct rig *rig, int fd, void *out, size_t size)
{
    size_t at = 0;
    for (int i = 0; i < 20000 && at < size; i++) {
        ssize_t got = recv(fd, (char *)out + at, size - at, MSG_DONTWAIT);
        if (got == 0 || (got < 0 && errno != EAGAIN)) return false;
        if (got > 0) at += (size_t)got;
        shard_turn(rig->shard, INT64_MIN);
    }
    assert_int_equal(at, size);
    return true;
}

/* Nothing to read: the connection is open and silent. */
static bool client_silent(struct rig *rig, int fd)
{
    char byte;
    turns(rig, 3);
    return recv(fd, &byte, 1, MSG_DONTWAIT) < 0 && errno == EAGAIN;
}

static bool client_closed(struct rig *rig, int fd)
{
    char byte;
    turns(rig, 3);
    ssize_t got = recv(fd, &byte, 1, MSG_DONTWAIT);
    return got == 0 || (got < 0 && errno == ECONNRESET);
}

/* A frame of this API with its schema's sample body; returns its size with the length. */
static size_t frame_make(uint8_t *out, int16_t key, int16_t version, int32_t id)
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
static int32_t answer_id(struct rig *rig, int fd, uint8_t *out, uint32_t *size)
{
    uint8_t length[4];
    assert_true(client_receive(rig, fd, length, 4));
    *size = load_be32(length);
    assert_true(client_receive(rig, fd, out, *size));
    return (int32_t)load_be32(out);
}

static int32_t next_id(struct rig *rig, int fd)
{
    uint8_t bytes[4096];
    uint32_t size;
    return answer_id(rig, fd, bytes, &size);
}

/* ---- tests ----------------------------------------------------------------------------------- */

static void every_split(void **state)
{
    (void)state;
    struct rig rig;
    rig_open(&rig, default_settings());
    uint8_t frames[512];
    size_t size = frame_make(frames, 12, 4, 1);
    size += frame_make(frames + size, 12, 0, 2);
    int fd = client_open(&rig);
    for (size_t cut = 1; cut < size; cut++) {
        client_send(fd, frames, cut);
        turns(&rig, 1);
        client_send(fd, frames + cut, size - cut);
        assert_int_equal(next_id(&rig, fd), 1);
        assert_int_equal(next_id(&rig, fd), 2);
    }
    for (size_t i = 0; i < size; i++) {
        client_send(fd, frames + i, 1);
        turns(&rig, 1);
    }
    assert_int_equal(next_id(&rig, fd), 1);
    assert_int_equal(next_id(&rig, fd), 2);
    assert_int_equal(rig.handled, 2 * size);
    close(fd);
    rig_close(&rig);
}

static void many_in_one(void **state)
{
    (void)state;
    struct rig rig;
    rig_open(&rig, default_settings());
    enum { COUNT = 1000 };
    static uint8_t frames[COUNT * 64];
    size_t size = 0;
    for (int i = 0; i < COUNT; i++)
        size += frame_make(frames + size, 12, 4, i);
    int fd = client_open(&rig);
    client_send(fd, frames, size);
    for (int i = 0; i < COUNT; i++)
        assert_int_equal(next_id(&rig, fd), i);
    assert_int_equal(rig.handled, COUNT);
    close(fd);
    turns(&rig, 3);
    assert_int_equal(shard_connection_count(rig.shard), 0);
    rig_close(&rig);
}

/* A parked request holds up what follows; a heartbeat behind it keeps its time of arrival. */
static void order(void **state)
{
    (void)state;
    struct rig rig;
    rig_open(&rig, default_settings());
    uint8_t frames[512];
    size_t size = frame_make(frames, 13, 5, 1);
    size += frame_make(frames + size, 12, 4, 2);
    int fd = client_open(&rig);
    client_send(fd, frames, size);
    assert_true(client_silent(&rig, fd));
    assert_int_equal(rig.handled, 1);
    int64_t horizon_ms = shard_horizon_ms(rig.shard);
    usleep(20000);
    turns(&rig, 2);
    assert_true(shard_horizon_ms(rig.shard) <= horizon_ms + 2); /* Held by the heartbeat. */
    answer(rig.parked[0]);
    assert_int_equal(next_id(&rig, fd), 1);
    assert_int_equal(next_id(&rig, fd), 2);
    turns(&rig, 1);
    assert_true(shard_horizon_ms(rig.shard) >= horizon_ms + 15);
    close(fd);
    rig_close(&rig);
}

/* Produce requests are handed on together; their answers keep the order. */
static void produce_pipeline(void **state)
{
    (void)state;
    struct rig rig;
    rig_open(&rig, default_settings());
    uint8_t frames[1024];
    size_t size = 0;
    for (int i = 0; i < 3; i++)
        size += frame_make(frames + size, 0, 9, i);
    size += frame_make(frames + size, 12, 4, 3);
    size += frame_make(frames + size, 0, 9, 4);
    int fd = client_open(&rig);
    client_send(fd, frames, size);
    turns(&rig, 2);
    assert_int_equal(rig.parked_count, 3);
    answer(rig.parked[2]);
    answer(rig.parked[1]);
    assert_true(client_silent(&rig, fd));
    request_finish(rig.parked[0]); /* acks=0: nothing to answer, but a place in the order. */
    assert_int_equal(next_id(&rig, fd), 1);
    assert_int_equal(next_id(&rig, fd), 2);
    assert_int_equal(next_id(&rig, fd), 3);
    assert_int_equal(rig.parked_count, 4);
    answer(rig.parked[3]);
    assert_int_equal(next_id(&rig, fd), 4);
    close(fd);
    rig_close(&rig);
}

/* The connection goes while requests are parked, answered out of turn, and staged. */
static void gone(void **state)
{
    (void)state;
    struct rig rig;
    rig_open(&rig, default_settings());
    uint8_t frames[1024];
    size_t size = 0;
    for (int i = 0; i < 3; i++)
        size += frame_make(frames + size, 0, 9, i);
    int fd = client_open(&rig);
    client_send(fd, frames, size);
    turns(&rig, 2);
    assert_int_equal(rig.parked_count, 3);
    answer(rig.parked[1]);
    rig.parked[2]->gone = NULL; /* One whose handler ends it later. */
    struct request *late = rig.parked[2];
    close(fd);
    turns(&rig, 3);
    assert_int_equal(rig.gone, 1);
    assert_int_equal(shard_connection_count(rig.shard), 0);
    assert_int_equal(shard_request_count(rig.shard), 1);
    assert_null(late->connection);
    answer(late);
    assert_int_equal(shard_request_count(rig.shard), 0);
    rig_close(&rig);
}

static void refused_frames(void **state)
{
    (void)state;
    static const struct {
        const char *bytes;
        size_t size;
        enum metric metric;
    } cases[] = {
        {"\0\0\0\0",                           4,  METRIC_MALFORMED_FRAME    },
        {"\0\0\0\7\0\14\0\4\0\0\0",            11, METRIC_MALFORMED_FRAME    },
        {"\xff\xff\xff\xff",                   4,  METRIC_MALFORMED_FRAME    },
        {"\x80\0\0\0",                         4,  METRIC_MALFORMED_FRAME    },
        {"\x7f\xff\xff\xff",                   4,  METRIC_MALFORMED_FRAME    },
        {"\0\x10\0\1",                         4,  METRIC_MALFORMED_FRAME    }, /* One above the limit. */
        {"GET / HTTP/1.1\r\n",                 16, METRIC_MALFORMED_FRAME    },
        {"\x16\x03\x01\0\xff\1\0\0",           8,  METRIC_MALFORMED_FRAME    },
        {"\0\0\0\12\x27\x0f\0\0\0\0\0\1\0\0",  14, METRIC_UNKNOWN_API        },
        {"\0\0\0\12\xff\xff\0\0\0\0\0\1\0\0",  14, METRIC_UNKNOWN_API        },
        {"\0\0\0\12\0\x34\0\0\0\0\0\1\0\0",    14, METRIC_UNKNOWN_API        }, /* Vote: not here. */
        {"\0\0\0\12\0\7\0\0\0\0\0\1\0\0",      14, METRIC_UNKNOWN_API        },
        {"\0\0\0\13\0\14\0\x63\0\0\0\1\0\0\0", 15, METRIC_UNSUPPORTED_VERSION},
        {"\0\0\0\12\0\0\0\2\0\0\0\1\0\0",      14, METRIC_UNSUPPORTED_VERSION}, /* Produce 2. */
        {"\0\0\0\12\0\14\xff\xff\0\0\0\1\0\0", 14, METRIC_UNSUPPORTED_VERSION},
        {"\0\0\0\12\0\14\0\0\0\0\0\1\xff\xfe", 14, METRIC_MALFORMED_HEADER   }, /* client id: -2 */
        {"\0\0\0\12\0\14\0\0\0\0\0\1\0\x20",   14, METRIC_MALFORMED_HEADER   },
        {"\0\0\0\12\0\14\0\0\0\0\0\1\0\0",     14, METRIC_MALFORMED_BODY     },
        {"\0\0\0\10\0\14\0\4\0\0\0\1",         12, METRIC_MALFORMED_HEADER   },
    };
    struct rig rig;
    rig_open(&rig, default_settings());
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        uint64_t before = rig.shard->metrics.values[cases[i].metric];
        int fd = client_open(&rig);
        client_send(fd, cases[i].bytes, cases[i].size);
        assert_true(client_closed(&rig, fd));
        assert_int_equal(rig.shard->metrics.values[cases[i].metric], before + 1);
        close(fd);
    }
    assert_int_equal(rig.handled, 0);
    assert_int_equal(shard_connection_count(rig.shard), 0);
    rig_close(&rig);
}

static void violation(void **state)
{
    (void)state;
    struct rig rig;
    rig_open(&rig, default_settings());
    uint8_t frame[256];
    int fd = client_open(&rig);
    client_send(fd, frame, frame_make(frame, 14, 5, 1));
    assert_true(client_closed(&rig, fd));
    assert_non_null(strstr(rig.said, "a broken promise"));
    assert_int_equal(rig.shard->metrics.values[METRIC_VIOLATIONS], 1);
    close(fd);
    rig_close(&rig);
}

/* Bytes behind the body are ignored, as by Kafka, and counted. */
static void trailing(void **state)
{
    (void)state;
    struct rig rig;
    rig_open(&rig, default_settings());
    uint8_t frame[256] = {0};
    size_t size = frame_make(frame, 12, 4, 9);
    store_be32(frame, (uint32_t)(size - 4 + 3));
    int fd = client_open(&rig);
    client_send(fd, frame, size + 3);
    assert_int_equal(next_id(&rig, fd), 9);
    assert_int_equal(rig.shard->metrics.values[METRIC_TRAILING_BYTES], 1);
    close(fd);
    rig_close(&rig);
}

static void ask_versions(struct rig *rig,
                         int fd,
                         int16_t version,
                         struct view name,
                         struct api_versions_response *out,
                         struct arena *arena)
{
    const struct wire_api *api = wire_api(18);
    struct request_header header = {18, version, 77, VIEW_NULL, VIEW_EMPTY};
    struct api_versions_request body;
    wire_defaults(api->request, &body);
    body.client_software_name = name;
    body.client_software_version = VIEW("1.2");
    uint8_t frame[512];
    size_t size = wire_encode(wire_form(&wire_request_header, version >= 3 ? 2 : 1), &header,
                              frame + 4, NULL, 0, NULL);
    if (version <= 5)
        size +=
            wire_encode(wire_form(api->request, version), &body, frame + 4 + size, NULL, 0, NULL);
    store_be32(frame, (uint32_t)size);
    client_send(fd, frame, size + 4);
    static uint8_t bytes[4096];
    uint32_t got;
    assert_int_equal(answer_id(rig, fd, bytes, &got), 77);
    struct reader in = reader_of(view_of(bytes + 4, got - 4)); /* Always header version 0. */
    assert_true(wire_decode(&in, wire_form(api->response, version <= 5 ? version : 0), arena, out));
    assert_int_equal(reader_left(&in), 0);
}

static void api_versions(void **state)
{
    (void)state;
    struct rig rig;
    rig_open(&rig, default_settings());
    struct arena arena;
    arena_init(&arena, &rig.mem, 0);
    int fd = client_open(&rig);
    struct api_versions_response response;
    for (int16_t version = 0; version <= 5; version++) {
        ask_versions(&rig, fd, version, VIEW("lib-x.y"), &response, &arena);
        assert_int_equal(response.error_code, 0);
        assert_int_equal(response.api_keys.count, 6); /* The broker's five and itself, not Vote. */
        assert_int_equal(response.api_keys.items[0].api_key, 0);
        assert_int_equal(response.api_keys.items[0].min_version, 0); /* Served from 3. */
        assert_int_equal(response.api_keys.items[5].api_key, 18);
        assert_int_equal(response.api_keys.items[5].max_version, 5);
    }
    struct connection *connection =
        container_of(rig.shard->state->connections.next, struct connection, link);
    assert_true(view_is(connection_software(connection), "lib-x.y"));
    static const char *const bad[] = {"", "-a", "a-", "a b", "a\nb", "\xc3\xa9"};
    for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
        ask_versions(&rig, fd, 3, view_of_string(bad[i]), &response, &arena);
        assert_int_equal(response.error_code, 42);
        assert_int_equal(response.api_keys.count, 0);
    }
    ask_versions(&rig, fd, 99, VIEW_EMPTY, &response, &arena);
    assert_int_equal(response.error_code, 35);
    assert_int_equal(response.api_keys.count, 1);
    assert_int_equal(response.api_keys.items[0].api_key, 18);
    ask_versions(&rig, fd, 0, VIEW_EMPTY, &response, &arena); /* Still open. */
    assert_int_equal(response.error_code, 0);
    close(fd);
    arena_free(&arena);
    rig_close(&rig);
}

static void throttled(void **state)
{
    (void)state;
    struct rig rig;
    rig_open(&rig, default_settings());
    uint8_t frames[512];
    size_t size = frame_make(frames, 12, 4, 1);
    size += frame_make(frames + size, 12, 4, 2);
    int fd = client_open(&rig);
    rig.throttle_ms = 60;
    int64_t start_ms = io_now_us(rig.io) / 1000;
    client_send(fd, frames, size);
    assert_int_equal(next_id(&rig, fd), 1);
    assert_true(client_silent(&rig, fd));
    assert_true(shard_horizon_ms(rig.shard) >= start_ms); /* Its own doing holds nothing. */
    while (rig.handled < 2)
        shard_turn(rig.shard, INT64_MAX);
    assert_true(io_now_us(rig.io) / 1000 - start_ms >= 59);
    assert_int_equal(next_id(&rig, fd), 2);
    close(fd);
    rig_close(&rig);
}

/* A length that promises much costs what has arrived. */
static void promises(void **state)
{
    (void)state;
    struct rig rig;
    rig_open(&rig, default_settings());
    int fds[50];
    for (size_t i = 0; i < ARRAY_SIZE(fds); i++) {
        fds[i] = client_open(&rig);
        client_send(fds[i], "\0\xf\xff\xff\0\0", 6);
    }
    turns(&rig, 3);
    assert_int_equal(shard_connection_count(rig.shard), ARRAY_SIZE(fds));
    assert_true(rig.shard->state->budget_used_bytes <= ARRAY_SIZE(fds) * 1024);
    for (size_t i = 0; i < ARRAY_SIZE(fds); i++)
        close(fds[i]);
    turns(&rig, 3);
    assert_int_equal(rig.shard->state->budget_used_bytes, 0);
    rig_close(&rig);
}

/* A budget that is used up stops new frames, and still lets one after the other end. */
static void budget(void **state)
{
    (void)state;
    struct rig rig;
    struct shard_settings settings = default_settings();
    settings.receive_budget_bytes = 100 * 1024;
    rig_open(&rig, settings);
    enum { COUNT = 4, BODY = 200 * 1024 };
    static uint8_t frame[BODY + 64];
    memset(frame, 0, sizeof(frame));
    size_t head = frame_make(frame, 12, 0, 5);
    store_be32(frame, (uint32_t)(head - 4 + BODY)); /* Trailing bytes make it large. */
    int fds[COUNT];
    size_t sent[COUNT] = {0};
    for (int i = 0; i < COUNT; i++)
        fds[i] = client_open(&rig);
    for (int round = 0; round < 2000 && rig.handled < COUNT; round++) {
        for (int i = 0; i < COUNT; i++) {
            size_t part = MIN(head + BODY - sent[i], 8192);
            ssize_t put = send(fds[i], frame + sent[i], part, MSG_DONTWAIT | MSG_NOSIGNAL);
            if (put > 0) sent[i] += (size_t)put;
        }
        turns(&rig, 1);
        assert_true(rig.shard->state->budget_used_bytes <= 100 * 1024 + 2 * (BODY + 64));
    }
    assert_int_equal(rig.handled, COUNT);
    assert_true(rig.shard->metrics.values[METRIC_HELD_BUDGET] > 0);
    for (int i = 0; i < COUNT; i++) {
        assert_int_equal(next_id(&rig, fds[i]), 5);
        close(fds[i]);
    }
    rig_close(&rig);
}

static void ranges_send(struct rig *rig, uint32_t part)
{
    rig->file_part = part;
    uint8_t frame[256];
    int fd = client_open(rig);
    rig->released = 0;
    client_send(fd, frame, frame_make(frame, 1, 12, 3));
    uint8_t *bytes = malloc(2 * (size_t)part + 4096);
    uint32_t size;
    assert_int_equal(answer_id(rig, fd, bytes, &size), 3);
    struct arena arena;
    arena_init(&arena, &rig->mem, 0);
    struct fetch_response response;
    struct reader in = reader_of(view_of(bytes + 5, size - 5));
    assert_true(wire_decode(&in, wire_form(&wire_fetch_response, 12), &arena, &response));
    struct view first = response.responses.items[0].partitions.items[0].records;
    struct view second = response.responses.items[0].partitions.items[1].records;
    assert_int_equal(first.size, part + 6);
    assert_memory_equal(first.data, "memory", 6);
    assert_int_equal(second.size, part);
    for (uint32_t i = 0; i < part; i++) {
        assert_int_equal(first.data[6 + i], (uint8_t)(i % 251));
        assert_int_equal(second.data[i], (uint8_t)((i + 1) % 251));
    }
    turns(rig, 1);
    assert_int_equal(rig->released, 3);
    assert_int_equal(shard_request_count(rig->shard), 0);
    arena_free(&arena);
    free(bytes);
    close(fd);
    turns(rig, 2);
}

static void make_file(struct rig *rig, uint32_t size)
{
    char path[] = "/tmp/dohle-net-test-XXXXXX";
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    uint8_t *bytes = malloc(size);
    for (uint32_t i = 0; i < size; i++)
        bytes[i] = (uint8_t)(i % 251);
    assert_int_equal(write(fd, bytes, size), (ssize_t)size);
    close(fd);
    free(bytes);
    assert_int_equal(io_disk_open(rig->io, path, IO_OPEN_READ, &rig->file), 0);
    unlink(path);
}

static void ranges(void **state)
{
    (void)state;
    struct rig rig;
    rig_open(&rig, default_settings());
    make_file(&rig, 4 * 1024 * 1024 + 1);
    ranges_send(&rig, 1);
    ranges_send(&rig, 1000);
    ranges_send(&rig, 4 * 1024 * 1024); /* More than a socket takes at once. */
    rig_close(&rig);
}

/* A client that does not read: output stays bounded, ranges are released when it goes. */
static void unread(void **state)
{
    (void)state;
    struct rig rig;
    rig_open(&rig, default_settings());
    make_file(&rig, 1024 * 1024 + 1);
    rig.file_part = 1024 * 1024;
    uint8_t frame[256];
    size_t size = frame_make(frame, 1, 12, 3);
    int fd = client_open(&rig);
    for (int i = 0; i < 100; i++)
        client_send(fd, frame, size);
    turns(&rig, 50);
    assert_true(rig.handled < 30);
    assert_int_equal(rig.shard->metrics.values[METRIC_HELD_OUTPUT], 1);
    struct connection *connection =
        container_of(rig.shard->state->connections.next, struct connection, link);
    assert_true(connection->output_bytes <= NET_OUTPUT_HIGH_BYTES + 2 * rig.file_part + 1024);
    /* Others are unhurt, and the horizon too. */
    int other = client_open(&rig);
    client_send(other, frame, frame_make(frame, 12, 4, 8));
    assert_int_equal(next_id(&rig, other), 8);
    close(fd);
    close(other);
    turns(&rig, 3);
    assert_int_equal(rig.released, 3 * (rig.handled - 1));
    assert_int_equal(shard_connection_count(rig.shard), 0);
    rig_close(&rig);
}

/* The file got shorter than what was promised: the connection is closed, not hung. */
static void short_file(void **state)
{
    (void)state;
    struct rig rig;
    rig_open(&rig, default_settings());
    make_file(&rig, 100);
    rig.file_part = 1000;
    uint8_t frame[256];
    int fd = client_open(&rig);
    client_send(fd, frame, frame_make(frame, 1, 12, 3));
    turns(&rig, 5);
    assert_int_equal(shard_connection_count(rig.shard), 0);
    assert_int_equal(rig.released, 3);
    close(fd);
    rig_close(&rig);
}

static void too_many(void **state)
{
    (void)state;
    struct rig rig;
    struct shard_settings settings = default_settings();
    settings.connections_per_ip = 2;
    rig_open(&rig, settings);
    uint8_t frame[256];
    size_t size = frame_make(frame, 12, 4, 1);
    int fds[3];
    for (int i = 0; i < 3; i++)
        fds[i] = client_open(&rig);
    assert_true(client_closed(&rig, fds[2]));
    assert_int_equal(rig.shard->metrics.values[METRIC_CONNECTIONS_REFUSED], 1);
    client_send(fds[0], frame, size);
    assert_int_equal(next_id(&rig, fds[0]), 1);
    close(fds[0]);
    turns(&rig, 2);
    int again = client_open(&rig); /* There is a place now. */
    client_send(again, frame, size);
    assert_int_equal(next_id(&rig, again), 1);
    close(fds[1]);
    close(fds[2]);
    close(again);
    rig_close(&rig);
}

static void idle(void **state)
{
    (void)state;
    struct rig rig;
    struct shard_settings settings = default_settings();
    settings.idle_ms = 50;
    rig_open(&rig, settings);
    uint8_t frame[256];
    size_t size = frame_make(frame, 12, 4, 1);
    int busy = client_open(&rig), lazy = client_open(&rig), slow = client_open(&rig);
    int64_t start_ms = io_now_us(rig.io) / 1000;
    size_t at = 0;
    while (io_now_us(rig.io) / 1000 - start_ms < 120) {
        client_send(busy, frame, size);
        assert_int_equal(next_id(&rig, busy), 1);
        if (at < size) { /* A byte now and then. */
            send(slow, frame + at, 1, MSG_NOSIGNAL);
            at += at < 20;
        }
        usleep(5000);
    }
    assert_true(client_closed(&rig, lazy));
    assert_true(client_closed(&rig, slow));
    assert_true(client_silent(&rig, busy));
    assert_int_equal(rig.shard->metrics.values[METRIC_CONNECTIONS_IDLE_CLOSED], 2);
    close(busy);
    close(lazy);
    close(slow);
    rig_close(&rig);
}

/* While the shard holds, nothing is read and the horizon stands; then all goes on. */
static void shard_held(void **state)
{
    (void)state;
    struct rig rig;
    rig_open(&rig, default_settings());
    uint8_t frame[256];
    int fd = client_open(&rig);
    shard_hold(rig.shard, true);
    int64_t horizon_ms = io_now_us(rig.io) / 1000;
    client_send(fd, frame, frame_make(frame, 12, 4, 1));
    usleep(10000);
    assert_true(client_silent(&rig, fd));
    assert_true(shard_horizon_ms(rig.shard) <= horizon_ms);
    shard_hold(rig.shard, false);
    assert_int_equal(next_id(&rig, fd), 1);
    turns(&rig, 2);
    assert_true(shard_horizon_ms(rig.shard) >= horizon_ms + 9);
    close(fd);
    rig_close(&rig);
}

struct tick {
    struct shard_timer timer;
    int64_t fired_ms;
};

static void ticked(struct shard *shard, struct shard_timer *timer)
{
    container_of(timer, struct tick, timer)->fired_ms = io_now_us(shard->io) / 1000;
}

static void timers(void **state)
{
    (void)state;
    struct rig rig;
    rig_open(&rig, default_settings());
    struct tick clock = {0}, session = {0};
    shard_timer_init(&clock.timer, ticked);
    shard_timer_init(&session.timer, ticked);
    turns(&rig, 1);
    int64_t now_ms = io_now_ms(rig.io);
    shard_timer_set(rig.shard, &clock.timer, now_ms + 20);
    shard_session_set(rig.shard, &session.timer, now_ms + 20);
    shard_hold(rig.shard, true);
    for (int i = 0; i < 100 && clock.fired_ms == 0; i++)
        shard_turn(rig.shard, now_ms + 40);
    assert_true(clock.fired_ms >= now_ms + 20);
    assert_int_equal(session.fired_ms, 0);
    shard_turn(rig.shard, now_ms + 60);
    assert_int_equal(session.fired_ms, 0); /* The clock is past it, the horizon is not. */
    shard_hold(rig.shard, false);
    for (int i = 0; i < 100 && session.fired_ms == 0; i++)
        shard_turn(rig.shard, now_ms + 100);
    assert_true(session.fired_ms >= now_ms + 20);
    shard_timer_cancel(&clock.timer);
    rig_close(&rig);
}

/* Any allocation may fail: an answer or a closed connection, nothing lost, nothing leaked. */
static void no_memory(void **state)
{
    (void)state;
    uint8_t frames[512];
    size_t size = frame_make(frames, 12, 4, 1);
    size += frame_make(frames + size, 1, 12, 2);
    for (uint64_t extra = 0; extra < 300000; extra += extra < 30000 ? 100 : 5000) {
        struct rig rig;
        rig_open(&rig, default_settings());
        make_file(&rig, 101);
        rig.file_part = 100;
        rig.mem.limit_bytes = rig.mem.used_bytes + extra;
        int fd = client_open(&rig);
        if (send(fd, frames, size, MSG_NOSIGNAL) > 0) turns(&rig, 5);
        close(fd);
        turns(&rig, 3);
        assert_int_equal(shard_connection_count(rig.shard), 0);
        assert_int_equal(shard_request_count(rig.shard), 0);
        assert_true(rig.released == 0 || rig.released == 3);
        rig_close(&rig);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_split),  cmocka_unit_test(many_in_one),
        cmocka_unit_test(order),        cmocka_unit_test(produce_pipeline),
        cmocka_unit_test(gone),         cmocka_unit_test(refused_frames),
        cmocka_unit_test(violation),    cmocka_unit_test(trailing),
        cmocka_unit_test(api_versions), cmocka_unit_test(throttled),
        cmocka_unit_test(promises),     cmocka_unit_test(budget),
        cmocka_unit_test(ranges),       cmocka_unit_test(unread),
        cmocka_unit_test(short_file),   cmocka_unit_test(too_many),
        cmocka_unit_test(idle),         cmocka_unit_test(shard_held),
        cmocka_unit_test(timers),       cmocka_unit_test(no_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
