/* offsets_test.c - offsets of groups told line by line (group_teller.h): who may commit, how long
 * offsets last, what transactions that others wrote do to them. The numbers are cases of the
 * conformance list (docs/groups.md). */
#include "core/group_teller.h"

struct commit {
    char who;           /* '\0': nobody, without a generation. */
    int32_t generation; /* 0: -1. */
    int64_t offset;
    const char *topic; /* "foo" */
    const char *metadata;
    int16_t version; /* 8 */
    int64_t retention;
};

/* Partition 0. */
static void commits(struct teller *t, struct commit wish)
{
    struct offset_commit_request_offset_commit_request_partition in = {
        .committed_offset = wish.offset,
        .committed_leader_epoch = -1,
        .commit_timestamp = -1,
        .committed_metadata = view_of_string(wish.metadata != NULL ? wish.metadata : ""),
    };
    struct offsets_commit by = {
        .group_id = VIEW("g"),
        .member_id = wish.who == '\0' ? VIEW_EMPTY : teller_id(t, wish.who),
        .instance_id = VIEW_NULL,
        .generation = wish.generation != 0 ? wish.generation : -1,
        .retention_ms = wish.retention != 0 ? wish.retention : -1,
        .arrived_ms = t->now,
    };
    struct offsets_put put = {.topic = view_of_string(wish.topic != NULL ? wish.topic : "foo"),
                              .in = &in};
    struct step step;
    teller_begin(t, &step, wish.version != 0 ? wish.version : 8);
    enum kafka_error error = offsets_commit_check(t->groups, &step, &by);
    if (error == KAFKA_NONE) error = offsets_commit_put(t->groups, &step, &by, &put);
    tell_time(t);
    tell(t, "%c commits: %d\n", wish.who == '\0' ? '-' : wish.who, error);
    if (error == KAFKA_NONE) teller_commit(t, &step);
}

static void fetches(struct teller *t, const char *topic)
{
    struct offsets_found found =
        offsets_find(t->groups, VIEW("g"), view_of_string(topic), 0, (struct uuid){{0}});
    tell_time(t);
    tell(t, "%s: %lld%s\n", topic, (long long)found.offset, found.unstable ? ", unstable" : "");
}

/* The cleaner looks at this moment of the wall clock. */
static void expires(struct teller *t, int64_t at)
{
    struct step step;
    teller_begin(t, &step, 0);
    step.wall_ms = TELLER_WALL + at;
    tell(t, "       cleaned at %lld\n", (long long)at);
    assert_int_equal(offsets_expire(t->groups, &step), STEP_DONE);
    teller_commit(t, &step);
}

static void deletes(struct teller *t, const char *topic)
{
    struct step step;
    teller_begin(t, &step, 0);
    assert_int_equal(offsets_delete_check(t->groups, VIEW("g")), KAFKA_NONE);
    enum kafka_error error =
        offsets_delete_put(t->groups, &step, VIEW("g"), view_of_string(topic), 0);
    tell_time(t);
    tell(t, "delete %s: %d\n", topic, error);
    if (error == KAFKA_NONE) teller_commit(t, &step);
}

/* The topic, which had no id in the records. */
static void loses(struct teller *t, const char *topic)
{
    struct step step;
    teller_begin(t, &step, 0);
    tell_time(t);
    tell(t, "%s is gone\n", topic);
    assert_int_equal(
        offsets_topic_deleted(t->groups, &step, view_of_string(topic), (struct uuid){{0}}),
        STEP_DONE);
    teller_commit(t, &step);
}

/* A record of producer 5's transaction, as Apache Kafka writes it: foo-0. */
static void loads_transactional(struct teller *t, int64_t offset)
{
    char hex[80];
    struct view key = rig_hex(&t->arena, "0001 0001 67 0003 666f6f 00000000");
    (void)snprintf(hex, sizeof(hex), "0003 %016llx ffffffff 0000 0000000000000000",
                   (unsigned long long)offset);
    tell(t, "       log: producer 5: foo-0 %lld\n", (long long)offset);
    struct groups_place place = {t->offset++, 5};
    assert_int_equal(groups_load(t->groups, &t->arena, key, rig_hex(&t->arena, hex), place),
                     GROUPS_OK);
}

static void ends(struct teller *t, bool committed)
{
    tell(t, "       log: producer 5 %s\n", committed ? "commits" : "aborts");
    assert_int_equal(groups_load_marker(t->groups, 5, committed), GROUPS_OK);
}

/* T109 to T112: who may commit, by generation, member and state. */
static void refusals(void **state)
{
    struct teller *t = *state;
    commits(t, (struct commit){.generation = 10, .version = 8});
    commits(t, (struct commit){.generation = 10, .version = 9});
    commits(t, (struct commit){.offset = 100});
    fetches(t, "foo");
    joins(t, 'A', (struct teller_wish){0});
    teller_until(t, 3000);
    commits(t, (struct commit){.who = 'A', .generation = 1, .offset = 200});
    syncs(t, 'A', 1, "A=x");
    commits(t, (struct commit){.who = 'A', .generation = 1, .offset = 200});
    commits(t, (struct commit){.who = 'A', .generation = 2, .offset = 300});
    commits(t, (struct commit){.who = 'X', .generation = 1, .offset = 300});
    commits(t, (struct commit){.offset = 300});
    fetches(t, "foo");
    assert_story(t, "     0 - commits: 22\n"
                    "     0 - commits: 69\n"
                    "     0 - commits: 0\n"
                    "       log: foo-0 100\n"
                    "     0 foo: 100\n"
                    "     0 A joins\n"
                    "  3000 A: generation 1, range, leads A\n"
                    "  3000 A commits: 27\n"
                    "  3000 A syncs A=x\n"
                    "       log: generation 1, A=x\n"
                    "  3000 A: has x\n"
                    "  3000 A commits: 0\n"
                    "       log: foo-0 200\n"
                    "  3000 A commits: 22\n"
                    "  3000 X commits: 25\n"
                    "  3000 - commits: 25\n"
                    "  3000 foo: 200\n");
}

/* T113: a commit is a sign of life. */
static void commits_keep_a_member(void **state)
{
    struct teller *t = *state;
    joins(t, 'A', (struct teller_wish){.session = 5000});
    teller_until(t, 3000);
    syncs(t, 'A', 1, "A=x");
    teller_until(t, 7000);
    commits(t, (struct commit){.who = 'A', .generation = 1, .offset = 7});
    teller_until(t, 11999);
    tell_state(t);
    teller_until(t, 12000);
    tell_state(t);
    assert_story(t, "     0 A joins\n"
                    "       log: generation 0, empty\n"
                    "  3000 A: generation 1, range, leads A\n"
                    "  3000 A syncs A=x\n"
                    "       log: generation 1, A=x\n"
                    "  3000 A: has x\n"
                    "  7000 A commits: 0\n"
                    "       log: foo-0 7\n"
                    " 11999 Stable, generation 1, members 1\n"
                    "       log: generation 2, empty\n"
                    " 12000 Empty, generation 2, members 0\n");
}

/* T114: a text that is too long fails its partition alone. */
static void long_metadata(void **state)
{
    struct teller *t = *state;
    static char text[4098];
    memset(text, 'x', 4097);
    commits(t, (struct commit){.offset = 1, .metadata = text});
    commits(t, (struct commit){.offset = 1, .metadata = text + 1});
    assert_story(t, "     0 - commits: 12\n"
                    "     0 - commits: 0\n"
                    "       log: foo-0 1\n");
}

/* T115: versions 2 to 4 say how long their offsets last. */
static void retention_of_the_request(void **state)
{
    struct teller *t = *state;
    commits(t, (struct commit){.offset = 1, .version = 4, .retention = 60000});
    expires(t, 59999);
    expires(t, 60000);
    assert_story(t, "     0 - commits: 0\n"
                    "       log: foo-0 1 until 60000\n"
                    "       cleaned at 59999\n"
                    "       cleaned at 60000\n"
                    "       log: foo-0 gone\n"
                    "       log: the group is gone\n");
}

/* T116: an offset of a group without members lasts from its commit, and then the group goes. */
static void simple_group(void **state)
{
    struct teller *t = *state;
    commits(t, (struct commit){.offset = 1});
    expires(t, 604799999);
    expires(t, 604800000);
    tell_state(t);
    assert_story(t, "     0 - commits: 0\n"
                    "       log: foo-0 1\n"
                    "       cleaned at 604799999\n"
                    "       cleaned at 604800000\n"
                    "       log: foo-0 gone\n"
                    "       log: the group is gone\n"
                    "     0 no group\n");
}

/* T117: offsets of a group that was emptied last from then. */
static void emptied_group(void **state)
{
    struct teller *t = *state;
    joins(t, 'A', (struct teller_wish){0});
    teller_until(t, 3000);
    syncs(t, 'A', 1, "A=x");
    commits(t, (struct commit){.who = 'A', .generation = 1, .offset = 1});
    teller_until(t, 9000);
    leaves(t, 'A');
    expires(t, 9000 + 604799999);
    expires(t, 9000 + 604800000);
    tell_state(t);
    assert_story(t, "     0 A joins\n"
                    "       log: generation 0, empty\n"
                    "  3000 A: generation 1, range, leads A\n"
                    "  3000 A syncs A=x\n"
                    "       log: generation 1, A=x\n"
                    "  3000 A: has x\n"
                    "  3000 A commits: 0\n"
                    "       log: foo-0 1\n"
                    "  9000 leave: 0; 0\n"
                    "       log: generation 2, empty\n"
                    "       cleaned at 604808999\n"
                    "       cleaned at 604809000\n"
                    "       log: foo-0 gone\n"
                    "       log: the group is gone\n"
                    "  9000 no group\n");
}

/* T118, T125: offsets of a topic that members want neither expire nor are deleted. */
static void subscribed_topics(void **state)
{
    struct teller *t = *state;
    joins(t, 'A', (struct teller_wish){.wants = true, .session = 1800000});
    teller_until(t, 3000);
    syncs(t, 'A', 1, "A=x");
    commits(t, (struct commit){.who = 'A', .generation = 1, .offset = 1});
    commits(t, (struct commit){.who = 'A', .generation = 1, .offset = 2, .topic = "bar"});
    expires(t, 3000 + 604800000);
    commits(t, (struct commit){.who = 'A', .generation = 1, .offset = 2, .topic = "bar"});
    deletes(t, "foo");
    deletes(t, "bar");
    assert_story(t, "     0 A joins\n"
                    "       log: generation 0, empty\n"
                    "  3000 A: generation 1, range, leads A\n"
                    "  3000 A syncs A=x\n"
                    "       log: generation 1, A=x\n"
                    "  3000 A: has x\n"
                    "  3000 A commits: 0\n"
                    "       log: foo-0 1\n"
                    "  3000 A commits: 0\n"
                    "       log: bar-0 2\n"
                    "       cleaned at 604803000\n"
                    "       log: bar-0 gone\n"
                    "  3000 A commits: 0\n"
                    "       log: bar-0 2\n"
                    "  3000 delete foo: 86\n"
                    "  3000 delete bar: 0\n"
                    "       log: bar-0 gone\n");
}

/* T119: what a transaction holds is not seen, but told. */
static void open_transaction(void **state)
{
    struct teller *t = *state;
    commits(t, (struct commit){.offset = 100});
    fetches(t, "foo");
    assert_int_equal(offsets_open(t->groups, VIEW_NULL).count, 0);
    int64_t record_offset = t->offset;
    loads_transactional(t, 200);
    fetches(t, "foo");
    struct offsets_open open = offsets_open(t->groups, VIEW("g"));
    assert_int_equal(open.count, 1);
    assert_int_equal(open.producer_id, 5);
    assert_int_equal(open.record_offset, record_offset);
    assert_int_equal(offsets_open(t->groups, VIEW("h")).count, 0);
    assert_int_equal(offsets_open(t->groups, VIEW_NULL).count, 1);
    assert_story(t, "     0 - commits: 0\n"
                    "       log: foo-0 100\n"
                    "     0 foo: 100\n"
                    "       log: producer 5: foo-0 200\n"
                    "     0 foo: 100, unstable\n");
}

/* T120: it counts when its marker says so. */
static void transaction_ends(void **state)
{
    struct teller *t = *state;
    commits(t, (struct commit){.offset = 100});
    loads_transactional(t, 200);
    ends(t, false);
    fetches(t, "foo");
    loads_transactional(t, 300);
    ends(t, true);
    fetches(t, "foo");
    assert_story(t, "     0 - commits: 0\n"
                    "       log: foo-0 100\n"
                    "       log: producer 5: foo-0 200\n"
                    "       log: producer 5 aborts\n"
                    "     0 foo: 100\n"
                    "       log: producer 5: foo-0 300\n"
                    "       log: producer 5 commits\n"
                    "     0 foo: 300\n");
}

#define PRODUCERS  20
#define PARTITIONS 30

/* A record of foo's partition: of a producer's transaction, or (without an offset) that it is gone.
 */
static void loads_of(struct teller *t, int64_t producer_id, uint32_t partition, int64_t offset)
{
    char key[48], hex[80];
    (void)snprintf(key, sizeof(key), "0001 0001 67 0003 666f6f %08x", partition);
    (void)snprintf(hex, sizeof(hex), "0003 %016llx ffffffff 0000 0000000000000000",
                   (unsigned long long)offset);
    struct view value = offset < 0 ? VIEW_NULL : rig_hex(&t->arena, hex);
    struct groups_place place = {t->offset++, producer_id};
    assert_int_equal(groups_load(t->groups, &t->arena, rig_hex(&t->arena, key), value, place),
                     GROUPS_OK);
}

/* Many at once that hold the same partitions: each marker ends its own, a partition that is gone
 * ends with all that hold it, of two that end the one that was written later counts. */
static void many_transactions(void **state)
{
    struct teller *t = *state;
    for (uint32_t i = 0; i < PRODUCERS * PARTITIONS; i++)
        loads_of(t, i / PARTITIONS, i % PARTITIONS, i);
    assert_int_equal(offsets_open(t->groups, VIEW("g")).count, PRODUCERS * PARTITIONS);
    fetches(t, "foo");
    assert_int_equal(groups_load_marker(t->groups, 7, true), GROUPS_OK);
    assert_int_equal(groups_load_marker(t->groups, PRODUCERS, true), GROUPS_OK);
    fetches(t, "foo");
    assert_int_equal(offsets_open(t->groups, VIEW("g")).count, (PRODUCERS - 1) * PARTITIONS);
    loads_of(t, -1, 3, -1);
    assert_int_equal(offsets_open(t->groups, VIEW("g")).count, (PRODUCERS - 1) * (PARTITIONS - 1));
    assert_int_equal(offsets_open(t->groups, VIEW("g")).producer_id, 0);
    for (int64_t i = PRODUCERS; i-- > 0;)
        assert_int_equal(groups_load_marker(t->groups, i, i != PRODUCERS - 1), GROUPS_OK);
    assert_int_equal(offsets_open(t->groups, VIEW_NULL).count, 0);
    fetches(t, "foo");
    loads_of(t, -1, 0, -1);
    fetches(t, "foo");
    assert_story(t, "     0 foo: -1, unstable\n"
                    "     0 foo: 210, unstable\n"
                    "     0 foo: 540\n"
                    "     0 foo: -1\n");
}

/* T121: a plain commit behind a transaction's own wins, whatever its marker says. */
static void newer_than_the_transaction(void **state)
{
    struct teller *t = *state;
    loads_transactional(t, 200);
    commits(t, (struct commit){.offset = 300});
    ends(t, true);
    fetches(t, "foo");
    assert_story(t, "       log: producer 5: foo-0 200\n"
                    "     0 - commits: 0\n"
                    "       log: foo-0 300\n"
                    "       log: producer 5 commits\n"
                    "     0 foo: 300\n");
}

/* T122: what is deleted is not brought back by a marker. */
static void deleted_in_the_transaction(void **state)
{
    struct teller *t = *state;
    commits(t, (struct commit){.offset = 100});
    loads_transactional(t, 200);
    deletes(t, "foo");
    ends(t, true);
    fetches(t, "foo");
    assert_story(t, "     0 - commits: 0\n"
                    "       log: foo-0 100\n"
                    "       log: producer 5: foo-0 200\n"
                    "     0 delete foo: 0\n"
                    "       log: foo-0 gone\n"
                    "       log: producer 5 commits\n"
                    "     0 foo: -1\n");
}

/* T179: the offsets of a topic go with it; those of another topic of its name stay. */
static void deleted_topic(void **state)
{
    struct teller *t = *state;
    commits(t, (struct commit){.offset = 100});
    commits(t, (struct commit){.offset = 200, .topic = "bar"});
    loses(t, "foo");
    fetches(t, "foo");
    fetches(t, "bar");
    assert_story(t, "     0 - commits: 0\n"
                    "       log: foo-0 100\n"
                    "     0 - commits: 0\n"
                    "       log: bar-0 200\n"
                    "     0 foo is gone\n"
                    "       log: foo-0 gone\n"
                    "     0 foo: -1\n"
                    "     0 bar: 200\n");
}

/* T179: so do those that an open transaction holds; its marker brings nothing back. */
static void deleted_topic_in_the_transaction(void **state)
{
    struct teller *t = *state;
    loads_transactional(t, 200);
    loses(t, "foo");
    fetches(t, "foo");
    ends(t, true);
    fetches(t, "foo");
    assert_story(t, "       log: producer 5: foo-0 200\n"
                    "     0 foo is gone\n"
                    "       log: foo-0 gone\n"
                    "     0 foo: -1\n"
                    "       log: producer 5 commits\n"
                    "     0 foo: -1\n");
}

/* T146 to T148: the bytes of records, as Apache Kafka writes them. */
static void bytes(void **state)
{
    static const char *const keys[] = {"0002 0001 67", "0001 0001 67 0003 666f6f 00000000"};
    struct teller *t = *state;
    joins(t, 'A', (struct teller_wish){.version = 5});
    commits(t, (struct commit){.offset = 42});
    for (uint32_t i = 0; i < ARRAY_SIZE(keys); i++)
        assert_true(view_equal(t->log[i].key.bytes, rig_hex(&t->arena, keys[i])));
    struct view value = rig_hex(&t->arena, "0004 000000000000002a ffffffff 01 00000000000f4240 00");
    assert_true(view_equal(t->log[1].value.bytes, value));
    assert_int_equal(t->log_count, 2);
}

/* T194: a key that only a newer release knows is skipped; a value of one ends the load. */
static void unknown_records(void **state)
{
    struct teller *t = *state;
    struct groups_place place = {0, -1};
    struct view key = rig_hex(&t->arena, "0001 0001 67 0003 666f6f 00000000");
    struct view value = rig_hex(&t->arena, "0005 000000000000002a ffffffff 01 0000000000000000 00");
    assert_int_equal(
        groups_load(t->groups, &t->arena, rig_hex(&t->arena, "0063 0001 67"), value, place),
        GROUPS_SKIPPED);
    assert_int_equal(groups_load(t->groups, &t->arena, key, value, place), GROUPS_E_FAULT);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, teller_setup, teller_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(refusals),
        TEST(commits_keep_a_member),
        TEST(long_metadata),
        TEST(retention_of_the_request),
        TEST(simple_group),
        TEST(emptied_group),
        TEST(subscribed_topics),
        TEST(open_transaction),
        TEST(transaction_ends),
        TEST(many_transactions),
        TEST(newer_than_the_transaction),
        TEST(deleted_in_the_transaction),
        TEST(deleted_topic),
        TEST(deleted_topic_in_the_transaction),
        TEST(bytes),
        TEST(unknown_records),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
