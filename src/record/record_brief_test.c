/* record_brief_test.c - the short ways through records find what the long way finds: on batches as
 * they come, on random ones, and on what wrong bytes make of them. */
#include "record/batch_build.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

#include "record/record_test.h"

enum way {
    WAY_LONG,  /* record_next */
    WAY_BRIEF, /* record_next_brief */
    WAY_RUNS,  /* record_run_look, and record_next_brief between runs */
    WAY_COUNT
};

/* What a walk over a batch finds. */
struct walked {
    int32_t count;
    int32_t in_runs; /* So many of them. */
    int64_t min_timestamp_ms, max_timestamp_ms;
    bool null_key; /* One, at least. */
    bool in_order;
    enum record_fault fault;
};

static void walk_one(struct walked *out, int64_t timestamp_ms, int32_t offset_delta, bool key_null)
{
    out->min_timestamp_ms = MIN(out->min_timestamp_ms, timestamp_ms);
    out->max_timestamp_ms = MAX(out->max_timestamp_ms, timestamp_ms);
    out->in_order &= offset_delta == out->count++;
    out->null_key |= key_null;
}

static bool walk_next(struct record_iter *iter, enum way way, struct walked *out)
{
    struct record record;
    struct record_brief brief;
    if (way == WAY_LONG) {
        if (!record_next(iter, &record)) return false;
        walk_one(out, record.timestamp_ms, record.offset_delta, record.key.null);
        return true;
    }
    if (way == WAY_RUNS) {
        struct record_run run;
        record_run_look(iter, out->count, &run);
        if (run.count > 0) {
            record_run_take(iter, &run);
            out->count += run.count;
            out->in_runs += run.count;
            out->min_timestamp_ms = MIN(out->min_timestamp_ms, run.min_timestamp_ms);
            out->max_timestamp_ms = MAX(out->max_timestamp_ms, run.max_timestamp_ms);
            out->in_order &= run.in_order;
            out->null_key |= run.key_null;
        }
    }
    if (!record_next_brief(iter, &brief)) return false;
    walk_one(out, brief.timestamp_ms, brief.offset_delta, brief.key_null);
    return true;
}

static struct walked walk(struct compress_work *work, struct view batch, enum way way)
{
    struct batch_header header;
    struct record_iter iter;
    struct walked out = {
        .min_timestamp_ms = INT64_MAX, .max_timestamp_ms = INT64_MIN, .in_order = true};
    assert_int_equal(batch_header_load(batch, &header), RECORD_OK);
    record_iter_begin(&iter, work, &header, batch);
    while (walk_next(&iter, way, &out))
        ;
    out.fault = record_iter_end(&iter);
    return out;
}

/* Walk all ways, in memory of exactly that size, so that a read too far is seen. Returns what the
 * runs found. */
static struct walked all_ways(struct compress_work *work, struct view batch)
{
    uint8_t *exact = malloc(batch.size);
    memcpy(exact, batch.data, batch.size);
    struct walked found[WAY_COUNT];
    for (int way = 0; way < WAY_COUNT; way++)
        found[way] = walk(work, view_of(exact, batch.size), (enum way)way);
    for (int way = 1; way < WAY_COUNT; way++) {
        assert_int_equal(found[way].count, found[WAY_LONG].count);
        assert_int_equal(found[way].fault, found[WAY_LONG].fault);
        assert_int_equal(found[way].min_timestamp_ms, found[WAY_LONG].min_timestamp_ms);
        assert_int_equal(found[way].max_timestamp_ms, found[WAY_LONG].max_timestamp_ms);
        assert_int_equal(found[way].null_key, found[WAY_LONG].null_key);
        assert_int_equal(found[way].in_order, found[WAY_LONG].in_order);
    }
    free(exact);
    return found[WAY_RUNS];
}

/* How the records of a stretch of a batch look. */
struct stretch {
    int32_t records;
    int32_t key_bytes; /* -1: null. */
    uint32_t value_bytes;
    bool even;          /* All of one size; else some differ. */
    int64_t step_ms;    /* From one record to the next: also negative. */
    uint32_t header_in; /* One in so many has a header; 0: none. */
};

static struct stretch random_stretch(uint64_t *state)
{
    static const int32_t keys[] = {-1, -1, 0, 1, 3, 8, 36, 63, 64, 100};
    static const uint32_t values[] = {0, 1, 5, 6, 7, 10, 50, 63, 64, 100, 100, 100, 300};
    static const int64_t steps[] = {0, 0, 1, 1, 1, 2, 100, 9000, 700000, 90000000, -1, -40};
    return (struct stretch){.records = 1 + (int32_t)(test_random(state) % 90),
                            .key_bytes = keys[test_random(state) % ARRAY_SIZE(keys)],
                            .value_bytes = values[test_random(state) % ARRAY_SIZE(values)],
                            .even = test_random(state) % 4 != 0,
                            .step_ms = steps[test_random(state) % ARRAY_SIZE(steps)],
                            .header_in = test_random(state) % 4 == 0 ? 9 : 0};
}

static void add_stretch(struct batch_build *build,
                        const struct stretch *how,
                        uint64_t *state,
                        int64_t *timestamp_ms)
{
    static const uint8_t header[] = {2, 'h', 2, 'v'};
    static uint8_t bytes[400];
    for (uint32_t i = 0; i < sizeof(bytes); i++)
        bytes[i] = (uint8_t)test_random(state);
    for (int32_t i = 0; i < how->records; i++) {
        uint32_t size = how->value_bytes + (how->even ? 0 : test_random(state) % 3);
        bool has_header = how->header_in > 0 && test_random(state) % how->header_in == 0;
        struct record_input input = {
            .timestamp_ms = *timestamp_ms,
            .key = how->key_bytes < 0 ? VIEW_NULL : view_of(bytes, (uint32_t)how->key_bytes),
            .value = size == 0 ? VIEW_NULL : view_of(bytes, size),
            .header_count = has_header,
            .header_bytes = view_of(header, has_header ? sizeof(header) : 0)};
        batch_build_add(build, &input);
        *timestamp_ms += how->step_ms;
    }
}

/* Change a few bytes of the records, or what the header says of them. */
static void mutate(uint8_t *batch, uint32_t size, uint64_t *state)
{
    uint32_t body = size - BATCH_HEADER_BYTES;
    for (uint32_t changes = 1 + test_random(state) % 3; changes > 0; changes--) {
        uint8_t *at = batch + BATCH_HEADER_BYTES + test_random(state) % body;
        switch (test_random(state) % 8) {
        case 0: *at = (uint8_t)test_random(state); break;
        case 1: *at ^= 0x80; break;
        case 2: *at = (uint8_t)(*at + 2); break;
        case 3: *at = 0; break;
        case 4: { /* Bytes of another place: a record's head where it does not belong. */
            uint32_t count = MIN(12, (uint32_t)(batch + size - at));
            memmove(at, batch + BATCH_HEADER_BYTES + test_random(state) % (body - count + 1),
                    count);
            break;
        }
        case 5: {
            uint32_t count = load_be32(batch + BATCH_AT_RECORD_COUNT) + test_random(state) % 5 - 2;
            store_be32(batch + BATCH_AT_RECORD_COUNT, count & INT32_MAX);
            break;
        }
        default: *at ^= (uint8_t)(1u << test_random(state) % 8);
        }
    }
}

/* Batches from a seed, as they are and mutated. */
static void ways_agree_on_random_batches(void **state)
{
    (void)state;
    static uint8_t bent[256 * 1024];
    uint64_t seed = 20;
    int32_t alike = 0, faulty = 0;
    for (int round = 0; round < 150; round++) {
        struct test_world world;
        struct sink out;
        struct batch_build build;
        struct view batch;
        test_begin(&world);
        sink_init(&out, &world.mem, UINT32_MAX);
        batch_build_begin(&build, &world.work, &out, &batch_build_plain);
        int64_t timestamp_ms = 1700000000000;
        for (uint32_t i = 0; i < 4; i++) {
            struct stretch how = random_stretch(&seed);
            add_stretch(&build, &how, &seed, &timestamp_ms);
        }
        assert_int_equal(batch_build_finish(&build, -1, &batch), RECORD_OK);
        assert_true(batch.size <= sizeof(bent));
        struct walked sound = all_ways(&world.work, batch);
        assert_int_equal(sound.fault, RECORD_OK);
        assert_true(sound.in_order);
        alike += sound.in_runs;
        for (int mutation = 0; mutation < 60; mutation++) {
            memcpy(bent, batch.data, batch.size);
            mutate(bent, batch.size, &seed);
            faulty += all_ways(&world.work, view_of(bent, batch.size)).fault != RECORD_OK;
        }
        sink_free(&out);
        test_end(&world);
    }
    assert_true(alike > 10000); /* The short way was gone, */
    assert_true(faulty > 3000); /* many were broken, */
    assert_true(faulty < 8000); /* and many were not, though bytes were wrong. */
}

/* Records of every size and kind, and of one batch all that one wrong bit makes of it. */
static void ways_agree_on_every_bit(void **state)
{
    (void)state;
    static uint8_t bent[16384];
    static const struct stretch stretches[] = {
        {70, -1, 16, true,  1,  0},
        {5,  3,  50, true,  -9, 0},
        {9,  3,  63, false, 70, 0},
        {4,  0,  0,  true,  0,  2},
        {6,  64, 64, true,  80, 0},
    };
    struct test_world world;
    struct sink out;
    struct batch_build build;
    struct view batch;
    uint64_t seed = 3;
    int64_t timestamp_ms = 5000;
    test_begin(&world);
    sink_init(&out, &world.mem, UINT32_MAX);
    batch_build_begin(&build, &world.work, &out, &batch_build_plain);
    for (uint32_t i = 0; i < ARRAY_SIZE(stretches); i++)
        add_stretch(&build, &stretches[i], &seed, &timestamp_ms);
    assert_int_equal(batch_build_finish(&build, -1, &batch), RECORD_OK);
    assert_true(batch.size <= sizeof(bent));
    for (uint32_t bit = BATCH_HEADER_BYTES * 8; bit < batch.size * 8; bit++) {
        memcpy(bent, batch.data, batch.size);
        bent[bit / 8] ^= (uint8_t)(1u << bit % 8);
        (void)all_ways(&world.work, view_of(bent, batch.size));
    }
    sink_free(&out);
    test_end(&world);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ways_agree_on_random_batches),
        cmocka_unit_test(ways_agree_on_every_bit),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
