/* crowd_test.c - a stalled coordinator with 100,000 heartbeats in its sockets removes nobody.
 *
 * One machine opens many connections to a simulated node; on each lives one classic member with a
 * group of its own. The node, or one of its shards, stands still for three session timeouts while
 * the beats come in. All of them are answered NONE, since sessions are judged by the time up to
 * which all input is read and not by the clock. Who then says no more is removed. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "gen/errors.h"
#include "gen/find_coordinator_response.h"
#include "sim/client_caller.h"
#include "sim/cluster.h"
#include "sim/stage.h"

#define BEATS       100000u
#define PEOPLE      320u
#define WAVE        32u /* Of connections that join at once: fewer than a backlog holds. */
#define SESSION_MS  10000
#define STALL_MS    (3 * SESSION_MS)
#define FRAME_BYTES 256u
#define IN_BYTES    4096u
#define WAIT_US     60000000

enum { API_JOIN = 11, API_HEARTBEAT = 12, API_SYNC = 14 };
enum person_state { PERSON_OUT, PERSON_JOINING, PERSON_SYNCING, PERSON_IN };

struct crowd;

struct person {
    struct crowd *crowd;
    struct io_stream *stream;
    enum person_state state;
    char group[16], member[64];
    int32_t generation;
    uint8_t frame[FRAME_BYTES]; /* What is sent; when it beats, again and again. */
    uint32_t frame_size, sent;  /* `sent` of it, now. */
    uint8_t in[IN_BYTES];
    uint32_t in_size;
};

struct crowd {
    struct io *io;
    struct io_address server;
    struct person people[PEOPLE];
    uint32_t started, joined;
    uint32_t wanted, begun; /* Beats to be sent in all, and those of which a byte is sent. */
    uint32_t none, unknown; /* Answers. */
};

struct scene {
    struct sim_world *world;
    struct cluster cluster;
    struct history history;
    struct client_caller *caller;
    struct crowd crowd;
};

/* ---- frames ---------------------------------------------------------------------------------- */

static void put_i16(struct person *person, int16_t value)
{
    store_be16(person->frame + person->frame_size, (uint16_t)value);
    person->frame_size += 2;
}

static void put_i32(struct person *person, int32_t value)
{
    store_be32(person->frame + person->frame_size, (uint32_t)value);
    person->frame_size += 4;
}

static void put_text(struct person *person, const char *text)
{
    size_t size = strlen(text);
    put_i16(person, (int16_t)size);
    memcpy(person->frame + person->frame_size, text, size);
    person->frame_size += (uint32_t)size;
}

static void frame_begin(struct person *person, int16_t api, int16_t version)
{
    person->frame_size = 4;
    person->sent = 0;
    put_i16(person, api);
    put_i16(person, version);
    put_i32(person, api);
    put_text(person, "c");
    put_text(person, person->group);
}

static void frame_end(struct person *person)
{
    assert_true(person->frame_size <= FRAME_BYTES);
    store_be32(person->frame, person->frame_size - 4);
}

static void frame_join(struct person *person)
{
    frame_begin(person, API_JOIN, 3);
    put_i32(person, SESSION_MS);
    put_i32(person, SESSION_MS);
    put_text(person, "");
    put_text(person, "consumer");
    put_i32(person, 1);
    put_text(person, "range");
    put_i32(person, 0);
    frame_end(person);
}

static void frame_sync(struct person *person)
{
    frame_begin(person, API_SYNC, 2);
    put_i32(person, person->generation);
    put_text(person, person->member);
    put_i32(person, 1);
    put_text(person, person->member);
    put_i32(person, 0);
    frame_end(person);
}

static void frame_beat(struct person *person)
{
    frame_begin(person, API_HEARTBEAT, 0);
    put_i32(person, person->generation);
    put_text(person, person->member);
    frame_end(person);
    person->sent = person->frame_size;
}

/* ---- one of the crowd ------------------------------------------------------------------------ */

/* Send what is begun; begin beats as long as the stream takes them and more are wanted. */
static void person_send(struct person *person)
{
    struct crowd *crowd = person->crowd;
    for (;;) {
        if (person->sent == person->frame_size) {
            if (person->state != PERSON_IN || crowd->begun == crowd->wanted) break;
            person->sent = 0;
        }
        struct iovec iov = {person->frame + person->sent, person->frame_size - person->sent};
        int64_t n = io_stream_send(crowd->io, person->stream, &iov, 1, false);
        if (n == -EAGAIN && person->sent == 0 && person->state == PERSON_IN) {
            person->sent = person->frame_size;
            break;
        }
        if (n == -EAGAIN) break;
        assert_true(n > 0);
        if (person->sent == 0 && person->state == PERSON_IN) crowd->begun++;
        person->sent += (uint32_t)n;
    }
    bool more = person->sent < person->frame_size;
    io_stream_want(crowd->io, person->stream, IO_READABLE | (more ? IO_WRITABLE : 0));
}

static uint32_t text_at(const uint8_t *at, char *out, size_t room)
{
    uint32_t size = load_be16(at);
    assert_true(size < room);
    memcpy(out, at + 2, size);
    out[size] = '\0';
    return 2 + size;
}

static void person_answered(struct person *person, const uint8_t *at)
{
    char text[64];
    if (person->state == PERSON_IN) {
        int16_t error = (int16_t)load_be16(at + 4);
        assert_true(error == KAFKA_NONE || error == KAFKA_UNKNOWN_MEMBER_ID);
        *(error == KAFKA_NONE ? &person->crowd->none : &person->crowd->unknown) += 1;
        return;
    }
    assert_int_equal(load_be16(at + 8), KAFKA_NONE);
    if (person->state == PERSON_SYNCING) {
        person->state = PERSON_IN;
        person->crowd->joined++;
        frame_beat(person);
        return;
    }
    person->generation = (int32_t)load_be32(at + 10);
    at += 14;
    at += text_at(at, text, sizeof(text));
    at += text_at(at, text, sizeof(text));
    (void)text_at(at, person->member, sizeof(person->member));
    person->state = PERSON_SYNCING;
    frame_sync(person);
}

static void person_ready(void *context, struct io_stream *stream, int ready)
{
    struct person *person = context;
    uint32_t at = 0;
    if (ready & IO_READABLE) {
        int64_t n = io_stream_recv(person->crowd->io, stream, person->in + person->in_size,
                                   IN_BYTES - person->in_size);
        if (n <= 0 && n != -EAGAIN) fail_msg("%s: %d", person->group, (int)n);
        if (n > 0) person->in_size += (uint32_t)n;
    }
    while (person->in_size - at >= 4 && person->in_size - at >= 4 + load_be32(person->in + at)) {
        person_answered(person, person->in + at + 4);
        at += 4 + load_be32(person->in + at);
    }
    person->in_size -= at;
    memmove(person->in, person->in + at, person->in_size);
    person_send(person);
}

static void person_start(struct crowd *crowd)
{
    static const struct io_stream_events events = {person_ready};
    struct person *person = &crowd->people[crowd->started];
    person->crowd = crowd;
    person->state = PERSON_JOINING;
    (void)snprintf(person->group, sizeof(person->group), "g%u", crowd->started++);
    frame_join(person);
    assert_int_equal(io_connect(crowd->io, &crowd->server, &person->stream), 0);
    io_stream_watch(crowd->io, person->stream, IO_READABLE | IO_WRITABLE, &events, person);
}

static void crowd_turn(struct crowd *crowd)
{
    (void)io_turn(crowd->io, io_now_ms(crowd->io) + 20);
    while (crowd->started < PEOPLE && crowd->started - crowd->joined < WAVE)
        person_start(crowd);
}

/* ---- the world ------------------------------------------------------------------------------- */

static void scene_step(struct scene *scene, int64_t until_us)
{
    void *other = stage_step(scene->world, &scene->cluster, until_us);
    if (other == &scene->crowd)
        crowd_turn(&scene->crowd);
    else if (other != NULL)
        client_turn(other);
    if (history_violated(&scene->history)) fail_msg("%s", scene->history.violation);
}

static void scene_pass(struct scene *scene, int64_t ms)
{
    int64_t until_us = sim_now_us(scene->world) + ms * 1000;
    while (sim_now_us(scene->world) < until_us)
        scene_step(scene, until_us);
}

/* Until the counter is there. */
static void scene_until(struct scene *scene, const uint32_t *counter, uint32_t count)
{
    int64_t until_us = sim_now_us(scene->world) + WAIT_US;
    while (*counter < count && sim_now_us(scene->world) < until_us)
        scene_step(scene, until_us);
    assert_int_equal(*counter, count);
}

static void scene_coordinator(struct scene *scene)
{
    for (int tries = 0; tries < 100; tries++) {
        client_caller_ask(scene->caller, "FindCoordinator 3", "{'key': 'g0', 'keyType': 0}");
        scene_pass(scene, 200);
        const struct find_coordinator_response *found = scene->caller->response;
        if (found == NULL) fail_msg("no answer to FindCoordinator");
        if (found->error_code == KAFKA_NONE) break;
    }
    scene_pass(scene, 1000); /* Its partitions are loaded. */
}

static struct scene *scene_new(uint32_t shards)
{
    struct scene *scene = calloc(1, sizeof(*scene));
    struct sim_options options = {.forbid_blocking = true};
    cluster_options(&scene->cluster, &options);
    scene->cluster.shape.shards = shards;
    cluster_set(&scene->cluster, "offsets.topic.num.partitions", 3);
    cluster_set(&scene->cluster, "offsets.topic.replication.factor", 1);
    cluster_set(&scene->cluster, "group.initial.rebalance.delay.ms", 0);
    scene->world = sim_world_new(7, &options);
    cluster_init(&scene->cluster, scene->world, &scene->history);
    struct client_seat seat = {.world = scene->world,
                               .history = &scene->history,
                               .seed = 7,
                               .host = sim_node_host(scene->cluster.machine)};
    scene->caller = client_caller_new(&seat);
    assert_true(cluster_start(&scene->cluster));
    scene_coordinator(scene);
    struct crowd *crowd = &scene->crowd;
    crowd->io = sim_node_start(sim_node_new(scene->world, "crowd"));
    crowd->server.port = 9092;
    (void)snprintf(crowd->server.host, sizeof(crowd->server.host), "%s", seat.host);
    sim_tag(crowd->io, crowd);
    scene_until(scene, &crowd->joined, PEOPLE);
    return scene;
}

static void scene_free(struct scene *scene)
{
    client_free(&scene->caller->client);
    sim_world_free(scene->world);
    history_free(&scene->history);
    free(scene);
}

/* The crowd beats so often in all: each at least once, then as much as its stream takes. */
static void scene_beats(struct scene *scene, uint32_t count)
{
    struct crowd *crowd = &scene->crowd;
    for (uint32_t i = 0; i < PEOPLE; i++) {
        crowd->wanted++;
        person_send(&crowd->people[i]);
    }
    assert_int_equal(crowd->begun, crowd->wanted);
    crowd->wanted += count - PEOPLE;
    for (uint32_t i = 0; i < PEOPLE; i++)
        person_send(&crowd->people[i]);
    assert_int_equal(crowd->begun, crowd->wanted); /* All are in the streams. */
}

/* A stall of one shard: the beats of others are answered, so all beat on; those whose stream is
 * full have beats enough in it. */
static void scene_beats_on(struct scene *scene)
{
    struct crowd *crowd = &scene->crowd;
    for (int64_t ms = 0; ms < STALL_MS; ms += SESSION_MS / 4) {
        scene_pass(scene, SESSION_MS / 4);
        for (uint32_t i = 0; i < PEOPLE; i++) {
            crowd->wanted = crowd->begun + 1;
            person_send(&crowd->people[i]);
        }
        crowd->wanted = crowd->begun;
    }
}

/* `stalled` -1: the whole machine. */
static void beats_pend(uint32_t shards, int stalled)
{
    struct scene *scene = scene_new(shards);
    struct crowd *crowd = &scene->crowd;
    if (stalled < 0)
        sim_node_pause(scene->cluster.machine, STALL_MS);
    else
        sim_shard_pause(scene->cluster.ios[stalled], STALL_MS);
    scene_beats(scene, BEATS);
    if (stalled < 0) {
        scene_pass(scene, STALL_MS - 1000);
        assert_int_equal(crowd->none, 0);
    } else {
        scene_beats_on(scene);
    }
    scene_until(scene, &crowd->none, crowd->wanted);
    assert_int_equal(crowd->unknown, 0);
    scene_beats(scene, PEOPLE); /* All are still there. */
    scene_until(scene, &crowd->none, crowd->wanted);
    assert_int_equal(crowd->unknown, 0);
    scene_pass(scene, 2 * STALL_MS); /* Who says nothing is removed. */
    scene_beats(scene, PEOPLE);
    scene_until(scene, &crowd->unknown, PEOPLE);
    scene_free(scene);
}

static void beats_pend_before_one_shard(void **state)
{
    (void)state;
    beats_pend(1, -1);
}

static void beats_pend_before_three_shards(void **state)
{
    (void)state;
    beats_pend(3, -1);
}

static void beats_pend_before_a_stalled_shard(void **state)
{
    (void)state;
    beats_pend(3, 0);
    beats_pend(3, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(beats_pend_before_one_shard),
        cmocka_unit_test(beats_pend_before_three_shards),
        cmocka_unit_test(beats_pend_before_a_stalled_shard),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
