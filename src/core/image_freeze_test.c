/* image_freeze_test.c - what a freeze writes is the image as it was, whatever happens to it between
 * slices; and what one slice may cost, in objects. */
#include <stdio.h>

#include "core/image_random.h"

#include "gen/feature_level_record.h"
#include "gen/partition_change_record.h"

struct rig {
    struct rig_mem heap;
    struct arena arena;
    struct image *image;
    struct image *copy; /* What the freeze wrote. */
    uint32_t written;
    uint32_t refuse_at; /* The so-manieth record is refused; 0: none. */
    int64_t offset;
};

static int setup(void **state)
{
    struct rig *rig = calloc(1, sizeof(*rig));
    rig_mem_init(&rig->heap);
    arena_init(&rig->arena, &rig->heap.mem, 0);
    *state = rig;
    return 0;
}

static int teardown(void **state)
{
    struct rig *rig = *state;
    arena_free(&rig->arena);
    assert_int_equal(rig->heap.mem.used_bytes, 0);
    free(rig);
    return 0;
}

static struct image *new_image(struct rig *rig, uint64_t seed, int16_t metadata_version)
{
    struct image *image = image_new(&rig->heap.mem, seed);
    struct step step;
    assert_non_null(image);
    if (metadata_version == 0) return image;
    step_begin(&step, &rig->arena, 0, 0);
    struct feature_level_record *record = step_add(&step, &wire_feature_level_record, 0);
    record->name = VIEW("metadata.version");
    record->feature_level = metadata_version;
    assert_int_equal(image_apply(image, &step.records[0], 0, 0), IMAGE_OK);
    arena_reset(&rig->arena);
    return image;
}

/* Each record must hold where it is written: into an image that has only what came before. */
static bool write_record(void *context, const struct step_record *record)
{
    struct rig *rig = context;
    rig->written++;
    if (rig->written == rig->refuse_at) return false;
    int64_t fail_in = rig->heap.fail_in;
    rig->heap.fail_in = -1;
    if (rig->copy != NULL) assert_int_equal(image_apply(rig->copy, record, 1, 1), IMAGE_OK);
    rig->heap.fail_in = fail_in;
    return true;
}

static struct image *copy_of(struct rig *rig, struct image *image)
{
    assert_null(rig->copy);
    rig->copy = new_image(rig, 77, 0);
    assert_true(rig_snapshot(image, write_record, rig));
    struct image *copy = rig->copy;
    rig->copy = NULL;
    assert_true(image_equal(copy, image));
    return copy;
}

static void random_changes(struct rig *rig, struct step *dice, uint32_t count)
{
    for (; count > 0; count--, rig->offset++) {
        struct step step;
        step_begin(&step, &rig->arena, 0, 0);
        random_record(&step, dice);
        enum image_result result =
            image_apply(rig->image, &step.records[0], rig->offset, rig->offset);
        assert_int_not_equal(result, IMAGE_E_MEMORY); /* Many cannot follow what is there. */
        arena_reset(&rig->arena);
    }
}

/* Slices of every size with changes of every kind between them. */
static void test_changes_between_slices(void **state)
{
    struct rig *rig = *state;
    struct image_writer writer = {write_record, rig};
    for (uint64_t seed = 1; seed <= 400; seed++) {
        struct step dice;
        struct arena unused;
        arena_init(&unused, &rig->heap.mem, 0);
        step_begin(&dice, &unused, 0, 0);
        dice.random[0] = seed;
        rig->image = new_image(rig, seed, 33);
        random_changes(rig, &dice, 20 + roll(&dice, 200));

        for (uint32_t round = 0; round < 3; round++) { /* One freeze after the other. */
            struct image *before = copy_of(rig, rig->image);
            rig->copy = new_image(rig, 5, 0);
            struct image_freeze *freeze = image_freeze_begin(rig->image, writer);
            assert_non_null(freeze);
            enum image_freeze_result result = IMAGE_FREEZE_MORE;
            while (result == IMAGE_FREEZE_MORE) {
                random_changes(rig, &dice, roll(&dice, 4));
                result = image_freeze_slice(freeze, 1 + roll(&dice, 3));
            }
            assert_int_equal(result, IMAGE_FREEZE_DONE);
            random_changes(rig, &dice, 2);
            image_freeze_end(freeze);
            assert_true(image_equal(rig->copy, before));
            image_free(rig->copy);
            image_free(before);
            rig->copy = NULL;
        }
        rig->image = image_free(rig->image);
        arena_free(&unused);
    }
}

/* ---- how long a slice is --------------------------------------------------------------------- */

#define TOPICS     300u
#define PARTITIONS 40u

static void add_topic(struct rig *rig, uint32_t id, int32_t partitions)
{
    char name[16];
    (void)snprintf(name, sizeof(name), "topic-%u", id);
    struct step step;
    step_begin(&step, &rig->arena, 0, 0);
    struct topic_record *topic = step_add(&step, &wire_topic_record, 0);
    topic->name = view_of_string(name);
    topic->topic_id = (struct uuid){
        {1, [14] = (uint8_t)(id >> 8), [15] = (uint8_t)id}
    };
    for (int32_t i = 0; i < partitions; i++) {
        struct partition_record *record = step_add(&step, &wire_partition_record, 2);
        record->topic_id = topic->topic_id;
        record->partition_id = i;
        record->leader = IMAGE_NO_LEADER;
    }
    for (uint32_t i = 0; i < step.record_count; i++)
        assert_int_equal(image_apply(rig->image, &step.records[i], 1, 1), IMAGE_OK);
    arena_reset(&rig->arena);
}

static void change_partition(struct rig *rig, uint32_t id, int32_t partition)
{
    struct step step;
    step_begin(&step, &rig->arena, 0, 0);
    struct partition_change_record *record = step_add(&step, &wire_partition_change_record, 0);
    record->topic_id = (struct uuid){
        {1, [14] = (uint8_t)(id >> 8), [15] = (uint8_t)id}
    };
    record->partition_id = partition;
    record->leader_recovery_state = 1;
    assert_int_equal(image_apply(rig->image, &step.records[0], 1, 1), IMAGE_OK);
    arena_reset(&rig->arena);
}

/* A slice writes no more records than it may look at objects; a change makes at most its topic's
 * and its own record be written early; and together they write everything exactly once. */
static void test_slices_are_bounded(void **state)
{
    struct rig *rig = *state;
    rig->image = new_image(rig, 3, 33);
    add_topic(rig, 0, 5000); /* One topic that is many slices long. */
    for (uint32_t i = 1; i < TOPICS; i++)
        add_topic(rig, i, (int32_t)PARTITIONS);
    uint32_t total = 1 + TOPICS + image_count(rig->image, IMAGE_PARTITION);

    struct image_freeze *freeze =
        image_freeze_begin(rig->image, (struct image_writer){write_record, rig});
    assert_non_null(freeze);
    assert_int_equal(rig->written, 1); /* The features. */
    uint32_t slices = 0;
    enum image_freeze_result result = IMAGE_FREEZE_MORE;
    while (result == IMAGE_FREEZE_MORE) {
        uint32_t before = rig->written;
        change_partition(rig, TOPICS - 1 - slices % TOPICS, (int32_t)(slices % PARTITIONS));
        assert_in_range(rig->written - before, 0, 2);
        before = rig->written;
        result = image_freeze_slice(freeze, 100);
        assert_in_range(rig->written - before, 0, 100);
        add_topic(rig, 1000 + slices, 3); /* What comes later is not written. */
        slices++;
    }
    assert_int_equal(result, IMAGE_FREEZE_DONE);
    assert_in_range(slices, total / 100, 2 * total / 100);
    assert_int_equal(rig->written, total);
    image_freeze_end(freeze);
    rig->image = image_free(rig->image);
}

/* ---- failing --------------------------------------------------------------------------------- */

/* Each allocation fails once, each record is refused once: the freeze says so, the image goes on.
 */
static void test_torture(void **state)
{
    struct rig *rig = *state;
    struct image_writer writer = {write_record, rig};
    rig->image = new_image(rig, 3, 33);
    for (uint32_t i = 0; i < 3; i++)
        add_topic(rig, i, 4);
    struct image *twin = copy_of(rig, rig->image);
    bool done = false;
    for (int64_t fail = 0; !done; fail++) {
        rig->written = 0;
        rig->heap.fail_in = fail % 2 ? fail / 2 : -1;
        rig->refuse_at = fail % 2 ? 0 : (uint32_t)fail / 2 + 1;
        struct image_freeze *freeze = image_freeze_begin(rig->image, writer);
        enum image_freeze_result result = IMAGE_FREEZE_MORE;
        while (freeze != NULL && result == IMAGE_FREEZE_MORE)
            result = image_freeze_slice(freeze, 2);
        done = freeze != NULL && result == IMAGE_FREEZE_DONE && fail > 60;
        rig->heap.fail_in = -1;
        image_freeze_end(freeze);
        assert_true(image_equal(rig->image, twin));
    }
    assert_int_equal(rig->written, 1 + 3 + 12);

    /* A change that finds no memory to write what was: the change holds, the freeze does not. */
    rig->refuse_at = 0;
    struct image_freeze *freeze = image_freeze_begin(rig->image, writer);
    assert_non_null(freeze);
    rig->refuse_at = rig->written + 1;
    change_partition(rig, 2, 3);
    assert_int_equal(image_freeze_slice(freeze, 100), IMAGE_FREEZE_FAILED);
    image_freeze_end(freeze);
    image_free(twin);
    rig->image = image_free(rig->image);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_changes_between_slices, setup, teardown),
        cmocka_unit_test_setup_teardown(test_slices_are_bounded, setup, teardown),
        cmocka_unit_test_setup_teardown(test_torture, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
