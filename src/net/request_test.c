/* request_test.c - frames become requests, in order, or close the connection; ApiVersions. */
#include "net/rig_test.h"

/* ---- tests ----------------------------------------------------------------------------------- */

static void every_split(void **state)
{
    struct rig *rig = *state;
    uint8_t frames[512];
    size_t size = frame_make(frames, 12, 4, 1);
    size += frame_make(frames + size, 12, 0, 2);
    int fd = client_open(rig);
    for (size_t cut = 1; cut < size; cut++) {
        client_send(fd, frames, cut);
        turns(rig, 1);
        client_send(fd, frames + cut, size - cut);
        assert_int_equal(next_id(rig, fd), 1);
        assert_int_equal(next_id(rig, fd), 2);
    }
    for (size_t i = 0; i < size; i++) {
        client_send(fd, frames + i, 1);
        turns(rig, 1);
    }
    assert_int_equal(next_id(rig, fd), 1);
    assert_int_equal(next_id(rig, fd), 2);
    assert_int_equal(rig->handled, 2 * size);
    close(fd);
}

static void many_in_one(void **state)
{
    struct rig *rig = *state;
    enum { COUNT = 1000 };
    static uint8_t frames[COUNT * 64];
    size_t size = 0;
    for (int i = 0; i < COUNT; i++)
        size += frame_make(frames + size, 12, 4, i);
    int fd = client_open(rig);
    client_send(fd, frames, size);
    for (int i = 0; i < COUNT; i++)
        assert_int_equal(next_id(rig, fd), i);
    assert_int_equal(rig->handled, COUNT);
    close(fd);
    turns(rig, 3);
    assert_int_equal(shard_connection_count(rig->shard), 0);
}

/* A parked request holds up what follows; a heartbeat behind it keeps its time of arrival. */
static void order(void **state)
{
    struct rig *rig = *state;
    uint8_t frames[512];
    size_t size = frame_make(frames, 13, 5, 1);
    size += frame_make(frames + size, 12, 4, 2);
    int fd = client_open(rig);
    client_send(fd, frames, size);
    assert_true(client_silent(rig, fd));
    assert_int_equal(rig->handled, 1);
    int64_t horizon_ms = shard_horizon_ms(rig->shard);
    usleep(20000);
    turns(rig, 2);
    assert_true(shard_horizon_ms(rig->shard) <= horizon_ms + 2); /* Held by the heartbeat. */
    answer(rig->parked[0]);
    assert_int_equal(next_id(rig, fd), 1);
    assert_int_equal(next_id(rig, fd), 2);
    turns(rig, 1);
    assert_true(shard_horizon_ms(rig->shard) >= horizon_ms + 15);
    close(fd);
}

/* A join may wait for what the horizon judges: a heartbeat behind it does not hold that up. */
static void behind_a_join(void **state)
{
    struct rig *rig = *state;
    uint8_t frames[512];
    size_t size = frame_make(frames, 11, 5, 1);
    size += frame_make(frames + size, 12, 4, 2);
    int fd = client_open(rig);
    client_send(fd, frames, size);
    assert_true(client_silent(rig, fd));
    assert_int_equal(rig->handled, 1);
    int64_t horizon_ms = shard_horizon_ms(rig->shard);
    usleep(20000);
    turns(rig, 2);
    assert_true(shard_horizon_ms(rig->shard) >= horizon_ms + 15);
    answer(rig->parked[0]);
    assert_int_equal(next_id(rig, fd), 1);
    assert_int_equal(next_id(rig, fd), 2);
    close(fd);
}

/* Produce requests are handed on together; their answers keep the order. */
static void produce_pipeline(void **state)
{
    struct rig *rig = *state;
    uint8_t frames[1024];
    size_t size = 0;
    for (int i = 0; i < 3; i++)
        size += frame_make(frames + size, 0, 9, i);
    size += frame_make(frames + size, 12, 4, 3);
    size += frame_make(frames + size, 0, 9, 4);
    int fd = client_open(rig);
    client_send(fd, frames, size);
    turns(rig, 2);
    assert_int_equal(rig->parked_count, 3);
    answer(rig->parked[2]);
    answer(rig->parked[1]);
    assert_true(client_silent(rig, fd));
    request_finish(rig->parked[0]); /* acks=0: nothing to answer, but a place in the order. */
    assert_int_equal(next_id(rig, fd), 1);
    assert_int_equal(next_id(rig, fd), 2);
    assert_int_equal(next_id(rig, fd), 3);
    assert_int_equal(rig->parked_count, 4);
    answer(rig->parked[3]);
    assert_int_equal(next_id(rig, fd), 4);
    close(fd);
}

/* So are Heartbeats, where nothing else is among those in process. */
static void heartbeat_pipeline(void **state)
{
    struct rig *rig = *state;
    rig->beats_park = true;
    uint8_t frames[1024];
    size_t size = frame_make(frames, 0, 9, 0);
    for (int i = 1; i < 4; i++)
        size += frame_make(frames + size, 12, 4, i);
    size += frame_make(frames + size, 0, 9, 4);
    int fd = client_open(rig);
    client_send(fd, frames, size);
    turns(rig, 2);
    assert_int_equal(rig->parked_count, 1); /* None goes beside the Produce before it. */
    answer(rig->parked[0]);
    assert_int_equal(next_id(rig, fd), 0);
    assert_int_equal(rig->parked_count, 4);
    answer(rig->parked[3]);
    answer(rig->parked[2]);
    assert_true(client_silent(rig, fd));
    assert_int_equal(rig->parked_count, 4);
    answer(rig->parked[1]);
    for (int i = 1; i < 4; i++)
        assert_int_equal(next_id(rig, fd), i);
    assert_int_equal(rig->parked_count, 5);
    answer(rig->parked[4]);
    assert_int_equal(next_id(rig, fd), 4);
    close(fd);
}

/* An answer that there was no memory for a part of is none (seed 4876: a topic without partitions).
 */
static void answer_without_a_part(void **state)
{
    struct rig *rig = *state;
    rig->beats_park = true;
    uint8_t frames[128];
    size_t size = frame_make(frames, 12, 4, 1);
    int fd = client_open(rig);
    client_send(fd, frames, size);
    turns(rig, 2);
    assert_int_equal(rig->parked_count, 1);
    void *response = request_response(rig->parked[0]);
    assert_non_null(response);
    rig->parked[0]->arena.failed = true; /* As of any piece of it. */
    request_reply(rig->parked[0], response);
    assert_true(client_closed(rig, fd));
    close(fd);
}

static int64_t charge_nothing(struct shard *shard, struct request *request, bool answered)
{
    (void)shard, (void)request, (void)answered;
    return 0;
}

/* Where quotas are on, one is answered, and its connection muted, before the next is handled. */
static void heartbeats_that_a_quota_counts(void **state)
{
    struct rig *rig = *state;
    rig->beats_park = true;
    rig->shard->state->hooks.charge = charge_nothing;
    shard_charge(rig->shard, SHARD_CHARGE_REQUESTS);
    uint8_t frames[1024];
    size_t size = 0;
    for (int i = 0; i < 2; i++)
        size += frame_make(frames + size, 12, 4, i);
    int fd = client_open(rig);
    client_send(fd, frames, size);
    turns(rig, 2);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(rig->parked_count, i + 1);
        answer(rig->parked[i]);
        assert_int_equal(next_id(rig, fd), i);
    }
    close(fd);
}

/* The connection goes while requests are parked, answered out of turn, and staged. */
static void gone(void **state)
{
    struct rig *rig = *state;
    uint8_t frames[1024];
    size_t size = 0;
    for (int i = 0; i < 3; i++)
        size += frame_make(frames + size, 0, 9, i);
    int fd = client_open(rig);
    client_send(fd, frames, size);
    turns(rig, 2);
    assert_int_equal(rig->parked_count, 3);
    answer(rig->parked[1]);
    rig->parked[2]->gone = NULL; /* One whose handler ends it later. */
    struct request *late = rig->parked[2];
    close(fd);
    turns(rig, 3);
    assert_int_equal(rig->gone, 1);
    assert_int_equal(shard_connection_count(rig->shard), 0);
    assert_int_equal(shard_request_count(rig->shard), 1);
    assert_null(late->connection);
    answer(late);
    assert_int_equal(shard_request_count(rig->shard), 0);
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
        {"\0\0\0\12\0\14\0\0\0\0\0\1\xff\xfe", 14,
         METRIC_MALFORMED_BODY                                               }, /* client id -2 is null */
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
        if (rig.shard->metrics.values[cases[i].metric] != before + 1)
            fail_msg("case %zu is not counted as %s; said: %s", i,
                     metric_defs[cases[i].metric].name, rig.said);
        close(fd);
    }
    assert_int_equal(rig.handled, 0);
    assert_int_equal(shard_connection_count(rig.shard), 0);
    rig_close(&rig);
}

static void violation(void **state)
{
    struct rig *rig = *state;
    uint8_t frame[256];
    int fd = client_open(rig);
    client_send(fd, frame, frame_make(frame, 14, 5, 1));
    assert_true(client_closed(rig, fd));
    assert_non_null(strstr(rig->said, "a broken promise"));
    assert_int_equal(rig->shard->metrics.values[METRIC_VIOLATIONS], 1);
    close(fd);
}

/* What came before a broken frame is answered, then the connection is closed. */
static void answered_before_closed(void **state)
{
    (void)state;
    static const char broken[] = {'\xff', '\xff', '\xff', '\xff'};
    struct rig rig;
    rig_open(&rig, default_settings());
    uint8_t frames[512];
    size_t size = frame_make(frames, 12, 4, 1);
    memcpy(frames + size, broken, sizeof(broken));
    int fd = client_open(&rig);
    client_send(fd, frames, size + sizeof(broken));
    assert_int_equal(next_id(&rig, fd), 1);
    assert_true(client_closed(&rig, fd));
    close(fd);

    /* Two in process; the third does not parse; one behind it is never looked at. */
    size = frame_make(frames, 0, 9, 2);
    size += frame_make(frames + size, 0, 9, 3);
    size += frame_make(frames + size, 0, 2, 4); /* A version that is not served. */
    size += frame_make(frames + size, 12, 4, 5);
    fd = client_open(&rig);
    client_send(fd, frames, size);
    assert_true(client_silent(&rig, fd));
    assert_int_equal(rig.parked_count, 2);
    answer(rig.parked[1]);
    answer(rig.parked[0]);
    assert_int_equal(next_id(&rig, fd), 2);
    assert_int_equal(next_id(&rig, fd), 3);
    assert_true(client_closed(&rig, fd));
    assert_int_equal(rig.handled, 3);
    close(fd);

    /* One of several in process is given up: those before and behind it end. */
    rig.parked_count = 0;
    size = frame_make(frames, 0, 9, 6);
    size += frame_make(frames + size, 0, 9, 7);
    size += frame_make(frames + size, 0, 9, 8);
    fd = client_open(&rig);
    client_send(fd, frames, size);
    turns(&rig, 2);
    assert_int_equal(rig.parked_count, 3);
    request_finish(rig.parked[2]);
    request_close(rig.parked[1], "acks=0 and an error");
    assert_true(client_silent(&rig, fd));
    answer(rig.parked[0]);
    assert_int_equal(next_id(&rig, fd), 6);
    assert_true(client_closed(&rig, fd));
    close(fd);
    assert_int_equal(shard_request_count(rig.shard), 0);
    rig_close(&rig);
}

/* Bytes behind the body are ignored, as by Kafka, and counted. */
static void trailing(void **state)
{
    struct rig *rig = *state;
    uint8_t frame[256] = {0};
    size_t size = frame_make(frame, 12, 4, 9);
    store_be32(frame, (uint32_t)(size - 4 + 3));
    int fd = client_open(rig);
    client_send(fd, frame, size + 3);
    assert_int_equal(next_id(rig, fd), 9);
    assert_int_equal(rig->shard->metrics.values[METRIC_TRAILING_BYTES], 1);
    close(fd);
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
    struct rig *rig = *state;
    struct arena arena;
    arena_init(&arena, &rig->mem, 0);
    int fd = client_open(rig);
    struct api_versions_response response;
    for (int16_t version = 0; version <= 5; version++) {
        ask_versions(rig, fd, version, VIEW("lib-x.y"), &response, &arena);
        assert_int_equal(response.error_code, 0);
        assert_int_equal(response.api_keys.count, 7); /* The broker's five and itself, not Vote. */
        assert_int_equal(response.api_keys.items[0].api_key, 0);
        assert_int_equal(response.api_keys.items[0].min_version, 0); /* Served from 3. */
        assert_int_equal(response.api_keys.items[6].api_key, 18);
        assert_int_equal(response.api_keys.items[6].max_version, 5);
    }
    struct connection *connection =
        container_of(rig->shard->state->connections.next, struct connection, link);
    assert_true(view_is(connection_software(connection), "lib-x.y"));
    static const char *const bad[] = {"", "-a", "a-", "a b", "a\nb", "\xc3\xa9"};
    for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
        ask_versions(rig, fd, 3, view_of_string(bad[i]), &response, &arena);
        assert_int_equal(response.error_code, 42);
        assert_int_equal(response.api_keys.count, 0);
    }
    ask_versions(rig, fd, 99, VIEW_EMPTY, &response, &arena);
    assert_int_equal(response.error_code, 35);
    assert_int_equal(response.api_keys.count, 1);
    assert_int_equal(response.api_keys.items[0].api_key, 18);
    ask_versions(rig, fd, 0, VIEW_EMPTY, &response, &arena); /* Still open. */
    assert_int_equal(response.error_code, 0);
    close(fd);
    arena_free(&arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        RIG_TEST(every_split),
        RIG_TEST(many_in_one),
        RIG_TEST(order),
        RIG_TEST(behind_a_join),
        RIG_TEST(produce_pipeline),
        RIG_TEST(heartbeat_pipeline),
        RIG_TEST(heartbeats_that_a_quota_counts),
        RIG_TEST(answer_without_a_part),
        RIG_TEST(gone),
        cmocka_unit_test(refused_frames),
        RIG_TEST(violation),
        cmocka_unit_test(answered_before_closed),
        RIG_TEST(trailing),
        RIG_TEST(api_versions),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
