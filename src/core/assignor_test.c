/* assignor_test.c - the assignors of consumer groups: cases T106 to T108, T189. */
#include "core/core_test.h"

#include "core/assignor.h"

#define MEMBERS 64

struct rig {
    struct rig_mem heap;
    struct arena arena;
    struct assignor_topic topics[8];
    struct assignor_member members[MEMBERS];
    struct assignor_input in;
    char text[512];
};

static int setup(void **state)
{
    struct rig *rig = calloc(1, sizeof(*rig));
    rig_mem_init(&rig->heap);
    arena_init(&rig->arena, &rig->heap.mem, 0);
    rig->in.topics = rig->topics;
    rig->in.members = rig->members;
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

static void topic(struct rig *rig, uint32_t partitions)
{
    struct assignor_topic *out = &rig->topics[rig->in.topic_count++];
    out->id.bytes[15] = (uint8_t)rig->in.topic_count;
    out->partitions = partitions;
}

/* Wants the topics of the bits; had the partitions of topic 0 of the other ones. */
static void member(struct rig *rig,
                   const char *id,
                   const char *instance,
                   uint32_t wants,
                   uint32_t had)
{
    struct assignor_member *out = &rig->members[rig->in.member_count++];
    uint32_t *topics = arena_get(&rig->arena, 32 * sizeof(*topics));
    out->id = view_of_string(id);
    out->instance = view_of_string(instance);
    for (uint32_t i = 0; i < 32; i++)
        if (wants >> i & 1) topics[out->topic_count++] = i;
    out->topics = topics;
    assert_true(partition_set_room(&out->before, &rig->arena, 32));
    for (uint32_t i = 0; i < 32; i++)
        if (had >> i & 1)
            out->before.items[out->before.count++] =
                (struct partition_item){.topic = rig->topics[0].id, .partition = (int32_t)i};
}

/* "A 1:0 1:1; B -" */
static const char *assigned(struct rig *rig, assignor *assign)
{
    size_t at = 0;
    assert_true(assign(&rig->arena, &rig->in));
    for (uint32_t m = 0; m < rig->in.member_count; m++) {
        const struct assignor_member *of = &rig->members[m];
        if (m > 0) rig->text[at++] = ';';
        for (uint32_t i = 0; i < of->target.count; i++) {
            rig->text[at++] = ' ';
            rig->text[at++] = (char)('0' + of->target.items[i].topic.bytes[15]);
            rig->text[at++] = ':';
            rig->text[at++] = (char)('0' + of->target.items[i].partition);
        }
    }
    rig->text[at] = '\0';
    return rig->text;
}

static void range(void **state) /* T106 */
{
    struct rig *rig = *state;
    topic(rig, 3);
    topic(rig, 3);
    member(rig, "A", NULL, 3, 0);
    member(rig, "B", NULL, 3, 0);
    assert_string_equal(assigned(rig, assignor_range), " 1:0 1:1 2:0 2:1; 1:2 2:2");
}

static void range_static(void **state) /* T107 */
{
    struct rig *rig = *state;
    topic(rig, 4);
    member(rig, "A", "i2", 1, 0);
    member(rig, "B", "i1", 1, 0);
    member(rig, "C", NULL, 1, 0);
    assert_string_equal(assigned(rig, assignor_range), " 1:2; 1:0 1:1; 1:3");
}

static void range_few(void **state)
{
    struct rig *rig = *state;
    topic(rig, 1);
    topic(rig, 2);
    member(rig, "A", NULL, 3, 0);
    member(rig, "B", NULL, 2, 0);
    member(rig, "C", NULL, 0, 0);
    assert_string_equal(assigned(rig, assignor_range), " 1:0 2:0; 2:1;");
}

static void uniform(void **state) /* T108 */
{
    struct rig *rig = *state;
    topic(rig, 4);
    member(rig, "A", NULL, 1, 0xf);
    member(rig, "B", NULL, 1, 0);
    assert_string_equal(assigned(rig, assignor_uniform), " 1:0 1:1; 1:2 1:3");
}

static void uniform_extra(void **state) /* T189 */
{
    struct rig *rig = *state;
    topic(rig, 4);
    member(rig, "A", NULL, 1, 0x1);
    member(rig, "B", NULL, 1, 0xe);
    member(rig, "C", NULL, 1, 0);
    assert_string_equal(assigned(rig, assignor_uniform), " 1:0; 1:1 1:2; 1:3");
}

/* What was held of a partition or a topic that is not there any more is forgotten. */
static void uniform_shrunk(void **state)
{
    struct rig *rig = *state;
    topic(rig, 2);
    member(rig, "A", NULL, 1, 0xf0);
    assert_string_equal(assigned(rig, assignor_uniform), " 1:0 1:1");
    member(rig, "B", NULL, 0, 0x3);
    member(rig, "C", NULL, 0, 0);
    assert_string_equal(assigned(rig, assignor_uniform), " 1:0 1:1;;");
}

static void mixed(void **state)
{
    struct rig *rig = *state;
    topic(rig, 4);
    topic(rig, 2);
    member(rig, "A", NULL, 1, 0xf);
    member(rig, "B", NULL, 3, 0);
    /* Topic 1 stays with A as it was; B gets all of topic 2: already level. */
    assert_string_equal(assigned(rig, assignor_uniform), " 1:0 1:1 1:2; 1:3 2:0 2:1");
}

/* Random shapes: every partition that somebody wants has one owner who wants it; members with the
 * same wishes differ by one at most; computed again, nothing moves. */
static void properties(void **state)
{
    struct rig *rig = *state;
    uint64_t random = 88172645463325252u;
    for (int round = 0; round < 300; round++) {
        rig->in.topic_count = rig->in.member_count = 0;
        memset(rig->topics, 0, sizeof(rig->topics));
        memset(rig->members, 0, sizeof(rig->members));
        arena_reset(&rig->arena);
#define DICE(n)                                                                                    \
    (random ^= random << 13, random ^= random >> 7, random ^= random << 17,                        \
     (uint32_t)(random % (n)))
        uint32_t topics = 1 + DICE(4), members = 1 + DICE(12);
        bool same = round % 2 == 0;
        uint32_t common = 1 + DICE((1u << topics) - 1);
        for (uint32_t i = 0; i < topics; i++)
            topic(rig, DICE(10));
        for (uint32_t i = 0; i < members; i++)
            member(rig, "m", NULL, same ? common : DICE(1u << topics), 0);
        assert_true(assignor_uniform(&rig->arena, &rig->in));
        uint32_t owned[8][16] = {{0}}, least = UINT32_MAX, most = 0;
        for (uint32_t m = 0; m < members; m++) {
            const struct partition_set *target = &rig->members[m].target;
            least = MIN(least, target->count);
            most = MAX(most, target->count);
            for (uint32_t i = 0; i < target->count; i++) {
                uint32_t t = target->items[i].topic.bytes[15] - 1u, wanted = 0;
                owned[t][target->items[i].partition]++;
                for (uint32_t k = 0; k < rig->members[m].topic_count; k++)
                    wanted += rig->members[m].topics[k] == t;
                assert_int_equal(wanted, 1);
            }
        }
        if (same) assert_true(most - least <= 1);
        for (uint32_t t = 0; t < topics; t++) {
            uint32_t wanted = 0;
            for (uint32_t m = 0; m < members; m++)
                for (uint32_t k = 0; k < rig->members[m].topic_count; k++)
                    wanted += rig->members[m].topics[k] == t;
            for (uint32_t p = 0; p < rig->topics[t].partitions; p++)
                assert_int_equal(owned[t][p], wanted > 0);
        }
        for (uint32_t m = 0; m < members; m++)
            rig->members[m].before = rig->members[m].target;
        assert_true(assignor_uniform(&rig->arena, &rig->in));
        for (uint32_t m = 0; m < members; m++)
            assert_true(partition_set_equal(&rig->members[m].before, &rig->members[m].target));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#define CASE(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
        CASE(range),         CASE(range_static),   CASE(range_few), CASE(uniform),
        CASE(uniform_extra), CASE(uniform_shrunk), CASE(mixed),     CASE(properties),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
