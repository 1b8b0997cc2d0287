/* connection_test.c - holds, limits, file ranges, timers, the horizon, failed allocations. */
#include <fcntl.h>

#include "net/rig_test.h"

static void throttled(void **state)
{
    struct rig *rig = *state;
    uint8_t frames[512];
    size_t size = frame_make(frames, 12, 4, 1);
    size += frame_make(frames + size, 12, 4, 2);
    int fd = client_open(rig);
    rig->throttle_ms = 60;
    int64_t start_ms = io_now_us(rig->io) / 1000;
    client_send(fd, frames, size);
    uint8_t bytes[64];
    uint32_t answer_bytes;
    assert_int_equal(answer_id(rig, fd, bytes, &answer_bytes), 1);
    assert_int_equal(load_be32(bytes + 5), 60); /* Behind id and tags: ThrottleTimeMs. */
    assert_true(client_silent(rig, fd));
    while (rig->handled < 2)
        shard_turn(rig->shard, INT64_MAX);
    assert_true(io_now_us(rig->io) / 1000 - start_ms >= 59);
    assert_int_equal(next_id(rig, fd), 2);
    close(fd);
}

/* Does the horizon stand still where it is, or before? */
static bool horizon_stands(struct rig *rig, int64_t at_ms)
{
    for (uint32_t i = 0; i < 100 && shard_horizon_ms(rig->shard) <= at_ms; i++)
        shard_turn(rig->shard, io_now_us(rig->io) / 1000 + 1);
    return shard_horizon_ms(rig->shard) <= at_ms;
}

/* What a mute keeps waiting, and when the horizon stands still for it. */
static void muted_horizon(struct rig *rig, uint32_t throttle_ms, bool holds)
{
    uint8_t frames[512], bytes[64];
    uint32_t answer_bytes;
    size_t size = frame_make(frames, 12, 4, 1);
    int fd = client_open(rig);
    rig->throttle_ms = throttle_ms;
    client_send(fd, frames, size);
    assert_int_equal(answer_id(rig, fd, bytes, &answer_bytes), 1);
    client_send(fd, frames, size); /* Staged by the next turn, */
    client_send(fd, frames, size); /* and one that nobody can see. */
    shard_turn(rig->shard, INT64_MAX);
    assert_true(horizon_stands(rig, io_now_ms(rig->io)) == holds);
    close(fd);
}

/* The mute of a quota of requests: whoever beat before it is not removed in it. */
static void short_mute_holds(void **state)
{
    muted_horizon(*state, NET_MUTE_HOLD_MAX_MS - 100, true);
}

/* A longer one is the client's own doing. */
static void long_mute_holds_nothing(void **state)
{
    muted_horizon(*state, NET_MUTE_HOLD_MAX_MS + 60000, false);
}

/* A beat waits for another request for a while, then for the mute that this one brought: only the
 * mute is the client's doing. */
static void slow_request_is_no_mute(void **state)
{
    struct rig *rig = *state;
    uint8_t frames[512];
    size_t size = frame_make(frames, 13, 4, 1);
    size += frame_make(frames + size, 12, 4, 2);
    int fd = client_open(rig);
    client_send(fd, frames, size);
    for (int i = 0; i < 1000 && rig->parked_count == 0; i++)
        turns(rig, 1);
    int64_t staged_ms = io_now_ms(rig->io);
    usleep(200000);
    turns(rig, 2);
    request_throttle(rig->parked[0], NET_MUTE_HOLD_MAX_MS - 100);
    answer(rig->parked[0]);
    assert_int_equal(next_id(rig, fd), 1);
    assert_true(horizon_stands(rig, staged_ms));
    assert_int_equal(rig->handled, 1);
    close(fd);
}

/* A mute that is over, and kept a beat waiting, does not count for the one that comes later. */
static void earlier_mute_is_over(void **state)
{
    struct rig *rig = *state;
    uint8_t frames[512];
    size_t size = frame_make(frames, 12, 4, 1);
    size += frame_make(frames + size, 12, 4, 2);
    int fd = client_open(rig);
    rig->throttle_ms = 200;
    client_send(fd, frames, size);
    assert_int_equal(next_id(rig, fd), 1);
    rig->throttle_ms = NET_MUTE_HOLD_MAX_MS - 100;
    assert_int_equal(next_id(rig, fd), 2);
    int64_t muted_ms = io_now_ms(rig->io);
    while (shard_horizon_ms(rig->shard) <= muted_ms)
        shard_turn(rig->shard, io_now_us(rig->io) / 1000 + 1);
    client_send(fd, frames, frame_make(frames, 12, 4, 3));
    shard_turn(rig->shard, INT64_MAX);
    assert_true(horizon_stands(rig, io_now_ms(rig->io)));
    assert_int_equal(rig->handled, 2);
    close(fd);
}

/* Quotas: asked for every request that ends, told in its answer; only while they are on. */
static void charged(void **state)
{
    struct rig *rig = *state;
    uint8_t frames[512], bytes[64];
    uint32_t answer_bytes;
    size_t size = frame_make(frames, 12, 1, 1);
    int fd = client_open(rig);
    rig->charge_ms = 30;
    client_send(fd, frames, size);
    assert_int_equal(answer_id(rig, fd, bytes, &answer_bytes), 1);
    assert_int_equal(load_be32(bytes + 4), 0);
    assert_int_equal(rig->charged, 0);
    shard_charge(rig->shard, SHARD_CHARGE_TIME);
    client_send(fd, frames, size);
    assert_int_equal(answer_id(rig, fd, bytes, &answer_bytes), 1);
    assert_int_equal(load_be32(bytes + 4), 30);
    shard_charge(rig->shard, SHARD_CHARGE_REQUESTS); /* No time is measured: none was taken. */
    client_send(fd, frames, size);
    while (rig->handled < 3)
        shard_turn(rig->shard, INT64_MAX);
    assert_int_equal(answer_id(rig, fd, bytes, &answer_bytes), 1);
    assert_int_equal(load_be32(bytes + 4), 0);
    assert_int_equal(rig->charged, 2);
    close(fd);
}

/* An address above its rate: its connection is held unread, then closed. */
static void turned_away(void **state)
{
    struct rig *rig = *state;
    uint8_t frames[512];
    size_t size = frame_make(frames, 12, 4, 1);
    rig->admit_ms = 20;
    int64_t start_ms = io_now_us(rig->io) / 1000;
    int fd = client_open(rig);
    client_send(fd, frames, size);
    assert_true(client_silent(rig, fd));
    assert_int_equal(rig->shard->state->turned_away_count, 1);
    while (shard_connection_count(rig->shard) > 0)
        shard_turn(rig->shard, INT64_MAX);
    assert_true(io_now_us(rig->io) / 1000 - start_ms >= 19);
    assert_true(client_closed(rig, fd));
    assert_int_equal(rig->handled, 0);
    assert_int_equal(rig->shard->state->turned_away_count, 0);
    assert_int_equal(rig->shard->metrics.values[METRIC_CONNECTIONS_THROTTLED], 1);
    close(fd);
}

/* More connections than the listener's rate: taken, and read a little later. */
static void delayed(void **state)
{
    struct rig *rig = *state;
    uint8_t frames[512];
    size_t size = frame_make(frames, 12, 4, 1);
    rig->admit_ms = 20;
    rig->admit_late = true;
    int64_t start_ms = io_now_us(rig->io) / 1000;
    int fd = client_open(rig);
    client_send(fd, frames, size);
    assert_true(client_silent(rig, fd));
    while (rig->handled == 0)
        shard_turn(rig->shard, INT64_MAX);
    assert_true(io_now_us(rig->io) / 1000 - start_ms >= 19);
    assert_int_equal(shard_connection_count(rig->shard), 1);
    assert_int_equal(rig->shard->metrics.values[METRIC_CONNECTIONS_DELAYED], 1);
    assert_int_equal(rig->shard->metrics.values[METRIC_CONNECTIONS_THROTTLED], 0);
    close(fd);
}

/* Limits that change while the shard serves; an address with one of its own. */
static void limits_change(void **state)
{
    struct rig *rig = *state;
    int first = client_open(rig);
    struct shard_limits limits = {.connections_max = 1000, .connections_per_ip = 1};
    shard_limit(rig->shard, &limits);
    int second = client_open(rig);
    turns(rig, 3);
    assert_int_equal(shard_connection_count(rig->shard), 1);
    struct shard_host_limit host = {VIEW("127.0.0.1"), 2};
    limits.hosts = &host;
    limits.host_count = 1;
    shard_limit(rig->shard, &limits);
    int third = client_open(rig);
    turns(rig, 3);
    assert_int_equal(shard_connection_count(rig->shard), 2);
    close(first);
    close(second);
    close(third);
}

/* A length that promises much costs what has arrived. */
static void promises(void **state)
{
    struct rig *rig = *state;
    int fds[50];
    for (size_t i = 0; i < ARRAY_SIZE(fds); i++) {
        fds[i] = client_open(rig);
        client_send(fds[i], "\0\xf\xff\xff\0\0", 6);
    }
    turns(rig, 3);
    assert_int_equal(shard_connection_count(rig->shard), ARRAY_SIZE(fds));
    assert_true(rig->shard->state->budget_used_bytes <= ARRAY_SIZE(fds) * 1024);
    for (size_t i = 0; i < ARRAY_SIZE(fds); i++)
        close(fds[i]);
    turns(rig, 3);
    assert_int_equal(rig->shard->state->budget_used_bytes, 0);
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
    struct rig *rig = *state;
    make_file(rig, 4 * 1024 * 1024 + 1);
    ranges_send(rig, 1);
    ranges_send(rig, 1000);
    ranges_send(rig, 4 * 1024 * 1024); /* More than a socket takes at once. */
}

static void forget_pages(struct rig *rig)
{
    assert_int_equal(fsync(posix_fd(rig->file)), 0);
    assert_int_equal(posix_fadvise(posix_fd(rig->file), 0, 0, POSIX_FADV_DONTNEED), 0);
}

/* What is not in the page cache is read by a job, not by the shard in sendfile(). */
static void cold_ranges(void **state)
{
    (void)state;
    enum { SIZE = 3 * 1024 * 1024 + 5000 };
    struct rig rig;
    rig_open(&rig, default_settings());
    make_file(&rig, SIZE + 1);
    forget_pages(&rig);
    bool cold = io_disk_cached(rig.io, rig.file, 0, SIZE) == 0; /* Not so in memory. */
    ranges_send(&rig, SIZE);
    if (cold) assert_true(io_counts(rig.io).jobs > 0); /* The kernel reads ahead. */
    uint64_t jobs = io_counts(rig.io).jobs;
    ranges_send(&rig, SIZE); /* Now it is there. */
    assert_int_equal(io_counts(rig.io).jobs, jobs);

    /* The client goes while its bytes are being read. */
    forget_pages(&rig);
    uint8_t frame[256];
    rig.released = 0;
    int fd = client_open(&rig);
    client_send(fd, frame, frame_make(frame, 1, 12, 3));
    turns(&rig, 1);
    close(fd);
    for (int i = 0; i < 5000 && rig.released < 3; i++) {
        usleep(1000); /* The job has a thread of its own. */
        turns(&rig, 1);
    }
    assert_int_equal(rig.released, 3);
    assert_int_equal(shard_connection_count(rig.shard), 0);

    /* The shard ends while they are. */
    forget_pages(&rig);
    fd = client_open(&rig);
    client_send(fd, frame, frame_make(frame, 1, 12, 3));
    turns(&rig, 1);
    rig_close(&rig);
    close(fd);
}

/* A client that does not read: output stays bounded, ranges are released when it goes. */
static void unread(void **state)
{
    struct rig *rig = *state;
    make_file(rig, 1024 * 1024 + 1);
    rig->file_part = 1024 * 1024;
    uint8_t frame[256];
    size_t size = frame_make(frame, 1, 12, 3);
    int fd = client_open(rig);
    for (int i = 0; i < 100; i++)
        client_send(fd, frame, size);
    turns(rig, 50);
    assert_true(rig->handled < 30);
    assert_int_equal(rig->shard->metrics.values[METRIC_HELD_OUTPUT], 1);
    struct connection *connection =
        container_of(rig->shard->state->connections.next, struct connection, link);
    assert_true(connection->output_bytes <= NET_OUTPUT_HIGH_BYTES + 2 * rig->file_part + 1024);
    /* Others are unhurt, and the horizon too. */
    int other = client_open(rig);
    client_send(other, frame, frame_make(frame, 12, 4, 8));
    assert_int_equal(next_id(rig, other), 8);
    close(fd);
    close(other);
    turns(rig, 3);
    assert_int_equal(rig->released, 3 * (rig->handled - 1));
    assert_int_equal(shard_connection_count(rig->shard), 0);
}

/* The file got shorter than what was promised: the connection is closed, not hung. */
static void short_file(void **state)
{
    struct rig *rig = *state;
    make_file(rig, 100);
    rig->file_part = 1000;
    uint8_t frame[256];
    int fd = client_open(rig);
    client_send(fd, frame, frame_make(frame, 1, 12, 3));
    turns(rig, 5);
    assert_int_equal(shard_connection_count(rig->shard), 0);
    assert_int_equal(rig->released, 3);
    close(fd);
}

static void too_many(void **state)
{
    (void)state;
    struct rig rig;
    struct shard_settings settings = default_settings();
    settings.limits.connections_per_ip = 2;
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
    settings.idle_ms = 1000; /* Longer than a busy machine forgets this test. */
    rig_open(&rig, settings);
    uint8_t frame[256];
    size_t size = frame_make(frame, 12, 4, 1);
    int busy = client_open(&rig), lazy = client_open(&rig), slow = client_open(&rig);
    size_t at = 0;
    for (uint32_t i = 0; i < 4000 && rig.shard->metrics.values[METRIC_CONNECTIONS_IDLE_CLOSED] < 2;
         i++) {
        client_send(busy, frame, size);
        assert_int_equal(next_id(&rig, busy), 1);
        if (i % 20 == 0 && at < size) { /* A byte now and then. */
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

/* A client that has connected and written; nobody has accepted it. */
static int client_unseen(struct rig *rig)
{
    uint8_t frame[256];
    int fd = client_connect(rig);
    client_send(fd, frame, frame_make(frame, 12, 4, 1));
    return fd;
}

/* A server that was stopped reads two requests at once: the second one waits for the first, and
 * may have come at any time of the stop. So it is on a connection that it has read before, and on
 * one that it has not. */
static void staged_after_a_stop(void **state)
{
    (void)state;
    for (uint32_t known = 0; known < 2; known++) {
        struct rig rig;
        uint8_t frames[512];
        rig_open(&rig, default_settings());
        turns(&rig, 2);
        int fd = known ? client_open(&rig) : -1;
        if (known) {
            client_send(fd, frames, frame_make(frames, 12, 4, 1));
            assert_int_equal(next_id(&rig, fd), 1);
            turns(&rig, 2);
        }
        int64_t stopped_ms = io_now_us(rig.io) / 1000;
        if (!known) fd = client_unseen(&rig); /* A beat; it waits for nothing. */
        size_t size = frame_make(frames, 13, 4, 2);
        client_send(fd, frames, size + frame_make(frames + size, 12, 4, 3));
        usleep(20000);
        for (int i = 0; i < 1000 && rig.parked_count == 0; i++)
            turns(&rig, 1);
        assert_int_equal(rig.parked_count, 1);
        turns(&rig, 3);
        assert_int_equal(rig.handled, 2);
        assert_true(shard_horizon_ms(rig.shard) <= stopped_ms);
        answer(rig.parked[0]);
        for (int i = 0; i < 1000 && rig.handled < 3; i++)
            turns(&rig, 1);
        turns(&rig, 2);
        assert_true(shard_horizon_ms(rig.shard) >= stopped_ms + 20);
        close(fd);
        rig_close(&rig);
    }
}

/* A server that was stopped has a new connection with bytes on it: the turn that accepts it has not
 * read them, so its horizon stays before the stop. */
static void accepted_unread(void **state)
{
    struct rig *rig = *state;
    turns(rig, 2);
    int64_t stopped_ms = io_now_us(rig->io) / 1000;
    int fd = client_unseen(rig);
    usleep(20000);
    turns(rig, 1);
    assert_int_equal(rig->handled, 0);
    assert_true(shard_horizon_ms(rig->shard) <= stopped_ms);
    for (int i = 0; i < 1000 && rig->handled == 0; i++)
        turns(rig, 1);
    assert_int_equal(rig->handled, 1);
    turns(rig, 1);
    assert_true(shard_horizon_ms(rig->shard) >= stopped_ms + 20);
    close(fd);
}

/* The same of one given to another shard: it holds the giver's horizon until that has read it. */
static void given_unread(void **state)
{
    (void)state;
    struct rig rig;
    rig_open_shards(&rig, default_settings(), 2);
    int first = client_open(&rig); /* Stays with the listener's shard. */
    turns(&rig, 2);
    int64_t stopped_ms = io_now_us(rig.io) / 1000;
    int fd = client_unseen(&rig);
    usleep(20000);
    for (int i = 0; i < 3; i++)
        shard_turn(rig.peers[0], INT64_MIN);
    assert_true(shard_horizon_all_ms(rig.peers[1]) <= stopped_ms);
    shard_turn(rig.peers[1], INT64_MIN); /* Takes it. */
    for (int i = 0; i < 3; i++)
        shard_turn(rig.peers[0], INT64_MIN);
    assert_int_equal(rig.handled, 0);
    assert_true(shard_horizon_all_ms(rig.peers[1]) <= stopped_ms);
    shard_turn(rig.peers[1], INT64_MIN);
    assert_int_equal(rig.handled, 1);
    turns(&rig, 2);
    assert_true(shard_horizon_all_ms(rig.peers[1]) >= stopped_ms + 20);
    close(fd);
    close(first);
    rig_close(&rig);
}

/* While the shard holds, nothing is read and the horizon stands; then all goes on. */
static void shard_held(void **state)
{
    struct rig *rig = *state;
    uint8_t frame[256];
    int fd = client_open(rig);
    shard_hold(rig->shard, true);
    int64_t horizon_ms = io_now_us(rig->io) / 1000;
    client_send(fd, frame, frame_make(frame, 12, 4, 1));
    usleep(10000);
    assert_true(client_silent(rig, fd));
    assert_true(shard_horizon_ms(rig->shard) <= horizon_ms);
    shard_hold(rig->shard, false);
    assert_int_equal(next_id(rig, fd), 1);
    turns(rig, 2);
    assert_true(shard_horizon_ms(rig->shard) >= horizon_ms + 9);
    close(fd);
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
    struct rig *rig = *state;
    struct tick clock = {0}, session = {0};
    shard_timer_init(&clock.timer, ticked);
    shard_timer_init(&session.timer, ticked);
    turns(rig, 1);
    int64_t now_ms = io_now_ms(rig->io);
    shard_timer_set(rig->shard, &clock.timer, now_ms + 20);
    shard_session_set(rig->shard, &session.timer, now_ms + 20);
    shard_hold(rig->shard, true);
    for (int i = 0; i < 100 && clock.fired_ms == 0; i++)
        shard_turn(rig->shard, now_ms + 40);
    assert_true(clock.fired_ms >= now_ms + 20);
    assert_int_equal(session.fired_ms, 0);
    shard_turn(rig->shard, now_ms + 60);
    assert_int_equal(session.fired_ms, 0); /* The clock is past it, the horizon is not. */
    shard_hold(rig->shard, false);
    for (int i = 0; i < 100 && session.fired_ms == 0; i++)
        shard_turn(rig->shard, now_ms + 100);
    assert_true(session.fired_ms >= now_ms + 20);
    shard_timer_cancel(&clock.timer);
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
        RIG_TEST(throttled),
        RIG_TEST(charged),
        RIG_TEST(turned_away),
        RIG_TEST(delayed),
        RIG_TEST(limits_change),
        RIG_TEST(promises),
        cmocka_unit_test(budget),
        RIG_TEST(ranges),
        cmocka_unit_test(cold_ranges),
        RIG_TEST(unread),
        RIG_TEST(short_file),
        cmocka_unit_test(too_many),
        cmocka_unit_test(idle),
        RIG_TEST(shard_held),
        RIG_TEST(timers),
        cmocka_unit_test(staged_after_a_stop),
        RIG_TEST(accepted_unread),
        cmocka_unit_test(given_unread),
        cmocka_unit_test(no_memory),
        RIG_TEST(short_mute_holds),
        RIG_TEST(long_mute_holds_nothing),
        RIG_TEST(slow_request_is_no_mute),
        RIG_TEST(earlier_mute_is_over),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
