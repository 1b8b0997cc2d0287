/* metadata_log_test.c - a checkpoint written in pieces: whole or absent after a crash at every disk
 * call, with every outcome of the disk. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
/* cmocka wants the lines above first. */
#include <cmocka.h>

#include "broker/metadata_log.h"
#include "gen/topic_record.h"
#include "io/sim.h"

#undef assert
#define assert(condition) (LIKELY(condition) ? (void)0 : __builtin_trap())

#define DIR      "/metadata"
#define PIECES   3u
#define RECORDS  8u /* In a piece. */
#define OUTCOMES 6u

static const struct metadata_checkpoint old_id = {10, 1};
static const struct metadata_checkpoint new_id = {20, 2};

/* A batch of topics whose names begin with `first`. */
static bool piece(struct io *io, struct sink *out, char first, int64_t offset)
{
    struct arena arena;
    struct step step;
    arena_init(&arena, io_mem(io), 0);
    step_begin(&step, &arena, 0, 1);
    for (uint32_t i = 0; i < RECORDS; i++) {
        struct topic_record *topic = step_add(&step, &wire_topic_record, 0);
        char *name = arena_get(&arena, 200); /* So that a piece has several sectors. */
        memset(name, first, 200);
        topic->name = view_of(name, 200);
    }
    bool made = metadata_batch_put(out, &arena, &step, false, offset, 1);
    arena_free(&arena);
    return made;
}

static int write_one(struct io *io, struct metadata_checkpoint id, char first)
{
    struct metadata_part part = {.dir = DIR, .id = id};
    int result = 0;
    for (uint32_t i = 0; i < PIECES && result == 0; i++) {
        struct sink sink;
        sink_init(&sink, io_mem(io), 1u << 20);
        assert_true(piece(io, &sink, first, i * RECORDS));
        result = metadata_part_write(io, &part, sink_view(&sink));
        sink_free(&sink);
    }
    if (result == 0) result = metadata_part_finish(io, &part);
    if (result != 0) metadata_part_drop(io, &part);
    return result;
}

struct reading {
    uint32_t count;
    char first;
    bool bad;
};

static bool read_record(void *context,
                        const struct batch_header *batch,
                        int64_t offset,
                        bool control,
                        struct view key,
                        struct view value)
{
    struct reading *reading = context;
    (void)batch;
    (void)key;
    reading->bad = reading->bad || control || offset != reading->count || value.size < 200;
    if (!reading->bad) reading->bad = value.data[value.size / 2] != (uint8_t)reading->first;
    reading->count++;
    return true;
}

struct listing {
    uint32_t count;
    uint32_t parts;
};

static bool list_one(void *context, const char *name)
{
    struct listing *listing = context;
    listing->count++;
    if (strstr(name, ".part") != NULL) listing->parts++;
    return true;
}

/* What a start finds: the newest checkpoint is whole, and is the new one if it was told so. */
static void judge(struct io *io, bool old_told, bool new_told)
{
    struct metadata_checkpoint oldest, newest;
    int found = metadata_checkpoint_range(io, DIR, &oldest, &newest);
    assert_true(found == 0 || (found == -ENOENT && !old_told));
    if (found != 0) return;
    bool is_new = newest.end == new_id.end;
    assert_true(is_new || (newest.end == old_id.end && !new_told));
    struct reading reading = {.first = is_new ? 'n' : 'o'};
    struct metadata_reader reader = {read_record, &reading};
    assert_int_equal(metadata_checkpoint_read(io, DIR, newest, &reader), 0);
    assert_false(reading.bad);
    assert_int_equal(reading.count, PIECES * RECORDS);

    /* The next snapshot's cleaning leaves what is kept and nothing else. */
    struct listing listing = {0};
    assert_int_equal(metadata_checkpoint_clean(io, DIR, newest), 0);
    assert_int_equal(io_disk_list(io, DIR, list_one, &listing), 0);
    assert_int_equal(listing.count, 1);
    assert_int_equal(listing.parts, 0);
}

/* Both checkpoints are written, with a crash in the nth disk call. False: it came to its end. */
static bool crash_at(uint64_t nth)
{
    struct sim_world *world = sim_world_new(nth, NULL);
    struct sim_node *node = sim_node_new(world, "n");
    struct io *io = sim_node_start(node);
    assert_int_equal(io_disk_mkdir(io, DIR), 0);
    assert_int_equal(io_disk_sync_dir(io, "/"), 0);
    sim_node_fault(node, &(struct sim_fault){.kind = SIM_FAULT_CRASH, .nth = nth});
    bool old_told = write_one(io, old_id, 'o') == 0;
    bool new_told = old_told && write_one(io, new_id, 'n') == 0;
    if (new_told) (void)!metadata_checkpoint_clean(io, DIR, old_id);
    bool crashed = sim_node_crashed(node);
    for (int kind = 0; kind < SIM_CRASH_KINDS; kind++)
        for (uint64_t choice = 0; choice < OUTCOMES; choice++) {
            struct sim_world *after = sim_world_new(choice + 1, NULL);
            struct sim_node *left =
                sim_node_fork(after, node, (enum sim_crash)kind, nth + choice * 1000);
            judge(sim_node_start(left), old_told, new_told);
            sim_world_free(after);
        }
    sim_world_free(world);
    return crashed;
}

static void test_crash_at_every_call(void **state)
{
    (void)state;
    uint64_t nth = 1;
    while (crash_at(nth))
        nth++;
    assert_in_range(nth, 15, 60); /* Two times open, three writes, sync, rename, sync. */
}

/* A disk call that fails leaves what was there before, and nothing else. */
static void test_failing_calls(void **state)
{
    (void)state;
    bool failed = true;
    for (uint64_t nth = 1; failed; nth++) {
        struct sim_world *world = sim_world_new(nth, NULL);
        struct sim_node *node = sim_node_new(world, "n");
        struct io *io = sim_node_start(node);
        assert_int_equal(io_disk_mkdir(io, DIR), 0);
        assert_int_equal(write_one(io, old_id, 'o'), 0);
        sim_node_fault(node, &(struct sim_fault){.kind = SIM_FAULT_ERROR, .nth = nth});
        int result = write_one(io, new_id, 'n');
        failed = result != 0;
        sim_node_heal(node);
        struct listing listing = {0};
        assert_int_equal(io_disk_list(io, DIR, list_one, &listing), 0);
        assert_in_range(listing.parts, 0, 0);
        judge(io, true, result == 0);
        sim_world_free(world);
    }
}

/* Who cannot look does not say that there is none: the log alone would be another history. */
static void what_cannot_be_listed_is_not_absent(void **state)
{
    (void)state;
    struct sim_world *world = sim_world_new(1, NULL);
    struct sim_node *node = sim_node_new(world, "n");
    struct io *io = sim_node_start(node);
    struct metadata_checkpoint oldest, newest;
    assert_int_equal(io_disk_mkdir(io, DIR), 0);
    assert_int_equal(metadata_checkpoint_range(io, DIR, &oldest, &newest), -ENOENT);
    assert_int_equal(write_one(io, old_id, 'o'), 0);
    struct sim_fault fault = {.calls = SIM_CALL_LIST, .nth = 1, .error = -ENOMEM};
    sim_node_fault(node, &fault);
    assert_int_equal(metadata_checkpoint_range(io, DIR, &oldest, &newest), -ENOMEM);
    assert_int_equal(metadata_checkpoint_range(io, DIR, &oldest, &newest), 0);
    assert_int_equal(newest.end, old_id.end);
    sim_world_free(world);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_cannot_be_listed_is_not_absent),
        cmocka_unit_test(test_crash_at_every_call),
        cmocka_unit_test(test_failing_calls),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
