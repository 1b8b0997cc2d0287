/* errand_test.c - three shards: connections are dealt, errands go and come home, whoever goes
 * first.
 */
#define RIG_HANDLERS 4
#include "net/rig_test.h"

#include "net/errand.h"

/* ---- handlers: one asks the next shard, one waits there, one brings ranges ------------------- */

static struct shard *next_of(struct shard *shard)
{
    return shard->peers[(shard->index + 1) % shard->count];
}

static void send_errand(struct shard *shard,
                        struct request *request,
                        void (*handle)(struct shard *, struct request *),
                        void (*done)(struct errand *))
{
    struct errand *errand = errand_new(request, next_of(shard));
    assert_non_null(errand);
    errand->handle = handle;
    errand->done = done;
    request->parked = errand;
    errand_send(errand);
}

static void tell_index(struct shard *shard, struct request *request)
{
    struct heartbeat_response *response = request_response(request);
    assert_null(request->connection);
    assert_string_equal(request->peer.host, "127.0.0.1");
    response->throttle_time_ms = (int32_t)shard->index;
    request_reply(request, response);
}

static void bring_index(struct errand *errand)
{
    struct request *request = errand->requester;
    const struct heartbeat_response *told = errand->response;
    struct heartbeat_response *response = request_response(request);
    assert_int_equal(told->throttle_time_ms, errand->there->index);
    response->error_code = (int16_t)(100 * request->shard->index + errand->there->index);
    errand_end(errand);
    request_reply(request, response);
}

static void ask_index(struct shard *shard, struct request *request)
{
    send_errand(shard, request, tell_index, bring_index);
}

static void gone_there(struct request *request)
{
    rig_of(request->shard)->gone++;
    request_finish(request);
}

static void hurried(struct request *request)
{
    request_reply(request, request_response(request));
}

static void wait_there(struct shard *shard, struct request *request)
{
    rig_of(shard)->handled++;
    request->gone = gone_there;
    request->hurry = hurried;
    rig_of(shard)->parked[rig_of(shard)->parked_count++] = request;
}

static void gone_home(struct request *request)
{
    errand_recall(request->parked);
}

static void waited(struct errand *errand)
{
    struct request *request = errand->requester;
    bool answered = errand->response != NULL;
    errand_end(errand);
    if (answered)
        answer(request);
    else
        request_finish(request);
}

static void ask_wait(struct shard *shard, struct request *request)
{
    request->gone = gone_home;
    send_errand(shard, request, wait_there, waited);
}

static void bring_ranges(struct errand *errand)
{
    struct request *request = errand->requester;
    const struct fetch_response *told = errand->response;
    struct fetch_response *response = request_response(request);
    struct fetch_response_fetchable_topic_response *topic =
        arena_get(&request->arena, sizeof(*topic));
    struct fetch_response_partition_data *parts = arena_get(&request->arena, 2 * sizeof(*parts));
    *topic = told->responses.items[0];
    memcpy(parts, topic->partitions.items, 2 * sizeof(*parts));
    for (int i = 0; i < 2; i++)
        parts[i].records = errand_value(errand, parts[i].records);
    topic->partitions.items = parts;
    response->responses.items = topic;
    response->responses.count = 1;
    errand_end(errand);
    request_reply(request, response);
}

static void ask_ranges(struct shard *shard, struct request *request)
{
    send_errand(shard, request, fetch, bring_ranges);
}

static void close_there(struct shard *shard, struct request *request)
{
    (void)shard;
    request_close(request, "a broken promise");
}

static void closed_home(struct errand *errand)
{
    struct request *request = errand->requester;
    const char *why = errand->closed;
    assert_string_equal(why, "a broken promise");
    errand_end(errand);
    request_close(request, why);
}

static void ask_close(struct shard *shard, struct request *request)
{
    send_errand(shard, request, close_there, closed_home);
}

static const struct net_handler handlers[RIG_HANDLERS] = {
    {1,  4, 18, 4, WIRE_BROKER, ask_ranges}, /* Fetch */
    {12, 0, 4,  0, WIRE_BROKER, ask_index }, /* Heartbeat */
    {13, 0, 5,  0, WIRE_BROKER, ask_wait  }, /* LeaveGroup */
    {14, 0, 5,  0, WIRE_BROKER, ask_close }, /* SyncGroup */
};

/* ---- tests ----------------------------------------------------------------------------------- */

static void send_frame(int fd, int16_t key, int16_t version, int32_t id)
{
    uint8_t frame[1024];
    client_send(fd, frame, frame_make(frame, key, version, id));
}

/* Three connections lie on three shards; each asks the next one. */
static void there_and_back(void **state)
{
    (void)state;
    struct rig rig;
    rig_open_shards(&rig, default_settings(), RIG_SHARDS);
    int fds[6];
    for (int i = 0; i < 6; i++)
        fds[i] = client_open(&rig);
    for (uint32_t i = 0; i < RIG_SHARDS; i++)
        assert_int_equal(shard_connection_count(rig.peers[i]), 2);
    uint32_t seen[RIG_SHARDS] = {0};
    for (int i = 0; i < 6; i++) {
        uint8_t bytes[256];
        uint32_t size;
        send_frame(fds[i], 12, 0, 7 + i);
        assert_int_equal(answer_id(&rig, fds[i], bytes, &size), 7 + i);
        uint32_t code = load_be16(bytes + 4), home = code / 100;
        assert_true(home < RIG_SHARDS);
        assert_int_equal(code % 100, (home + 1) % RIG_SHARDS);
        seen[home]++;
    }
    for (uint32_t i = 0; i < RIG_SHARDS; i++)
        assert_int_equal(seen[i], 2);
    close(fds[0]);
    turns(&rig, 4); /* The place is free again, wherever the connection was. */
    close(client_open(&rig));
    rig_close(&rig);
    for (int i = 1; i < 6; i++)
        close(fds[i]);
}

/* Limits are the node's, not the shard's. */
static void limits(void **state)
{
    (void)state;
    struct rig rig;
    struct shard_settings settings = default_settings();
    settings.limits.connections_per_ip = 4;
    rig_open_shards(&rig, settings, RIG_SHARDS);
    int fds[5];
    for (int i = 0; i < 5; i++)
        fds[i] = client_open(&rig);
    assert_true(client_closed(&rig, fds[4]));
    close(fds[1]);
    turns(&rig, 4);
    int fd = client_open(&rig);
    assert_true(client_silent(&rig, fd));
    rig_close(&rig);
    for (int i = 0; i < 5; i++)
        if (i != 1) close(fds[i]);
    close(fd);
}

static void client_goes(void **state)
{
    (void)state;
    struct rig rig;
    rig_open_shards(&rig, default_settings(), RIG_SHARDS);
    int fd = client_open(&rig);
    send_frame(fd, 13, 0, 1);
    turns(&rig, 3);
    assert_int_equal(rig.handled, 1);
    close(fd);
    turns(&rig, 4);
    assert_int_equal(rig.gone, 1);
    assert_int_equal(shard_request_count(rig.peers[0]), 0);
    /* The node's end is the client's, too. */
    fd = client_open(&rig);
    send_frame(fd, 13, 0, 2);
    turns(&rig, 3);
    rig_close(&rig);
    assert_int_equal(rig.gone, 2);
    close(fd);
}

static void hurry(void **state)
{
    (void)state;
    struct rig rig;
    rig_open_shards(&rig, default_settings(), RIG_SHARDS);
    int fd = client_open(&rig);
    send_frame(fd, 13, 0, 5);
    turns(&rig, 3);
    assert_int_equal(rig.parked_count, 1);
    struct errand *errand = rig.parked[0]->errand;
    errand_hurry(errand);
    errand_hurry(errand); /* Once is enough. */
    assert_int_equal(next_id(&rig, fd), 5);
    rig_close(&rig);
    close(fd);
}

static void ranges(void **state)
{
    (void)state;
    struct rig rig;
    rig_open_shards(&rig, default_settings(), RIG_SHARDS);
    char path[] = "/tmp/dohle-errand-XXXXXX";
    int file = mkstemp(path);
    assert_true(file >= 0);
    assert_int_equal(write(file, "0123456789", 10), 10);
    close(file);
    assert_int_equal(io_disk_open(rig.ios[1], path, IO_OPEN_READ, &rig.file), 0);
    unlink(path);
    rig.file_part = 4;
    int fd = client_open(&rig);
    uint8_t bytes[4096];
    uint32_t size;
    send_frame(fd, 1, 4, 9);
    assert_int_equal(answer_id(&rig, fd, bytes, &size), 9);
    assert_non_null(memmem(bytes, size, "memory0123", 10));
    assert_non_null(memmem(bytes, size, "1234", 4));
    turns(&rig, 3);
    assert_int_equal(rig.released, 3);
    /* The client goes before it has read: released all the same. */
    send_frame(fd, 1, 4, 10);
    close(fd);
    turns(&rig, 6);
    assert_int_equal(rig.released, 6);
    rig_close(&rig);
}

static void closes(void **state)
{
    (void)state;
    struct rig rig;
    rig_open_shards(&rig, default_settings(), RIG_SHARDS);
    int fd = client_open(&rig);
    send_frame(fd, 14, 0, 1);
    turns(&rig, 4);
    assert_true(client_closed(&rig, fd));
    close(fd);
    rig_close(&rig);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(there_and_back), cmocka_unit_test(limits), cmocka_unit_test(client_goes),
        cmocka_unit_test(hurry),          cmocka_unit_test(ranges), cmocka_unit_test(closes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
