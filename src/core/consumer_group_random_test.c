/* consumer_group_random_test.c - a consumer group that lives at random: members come, beat, are
 * slow to give up, crash, come back as zombies, leave; topics grow; appends fail; the coordinator
 * is loaded anew. After each step must hold:
 *
 *   one owner        no two members work on the same partition, by what the clients themselves know
 *   holders are true each partition that a member has or is to give up is held in its epoch, and no
 *                    other is held
 *   replay           a machine that loads the log is as the one that wrote it (now and then)
 *
 * and in the end, when all are quiet, that the group is stable and every partition has its owner.
 */
#include "core/consumer_group_rig.h"

#define CLIENTS    8
#define STEPS      1500
#define PARTITIONS 32 /* Of one topic, at most. */

struct client {
    char id[8];
    int32_t epoch;
    bool joined; /* As far as it knows. */
    bool alive;
    bool full;         /* Its last beat failed: it tells all again. */
    bool bar;          /* Wants both topics. */
    uint64_t owned[2]; /* Of foo, bar: a bit for each partition. */
    uint64_t given[2]; /* What the coordinator last gave it. */
};

struct world {
    struct crig *rig;
    struct client clients[CLIENTS];
    uint64_t dice;
    int32_t partitions[2];
};

static uint32_t roll(struct world *w, uint32_t sides)
{
    w->dice ^= w->dice << 13;
    w->dice ^= w->dice >> 7;
    w->dice ^= w->dice << 17;
    return (uint32_t)(w->dice >> 11) % sides;
}

static const char *const topic_names[] = {"foo", "bar"};

static char *owned_text(struct world *w, const struct client *client)
{
    const size_t room = 512;
    char *out = arena_get(&w->rig->arena, room);
    size_t at = 0;
    for (int t = 0; t < 2; t++) {
        if (client->owned[t] == 0) continue;
        at += (size_t)snprintf(out + at, room - at, "%s%s", at > 0 ? ", " : "", topic_names[t]);
        for (int p = 0; p < PARTITIONS; p++)
            if (client->owned[t] >> p & 1) at += (size_t)snprintf(out + at, room - at, " %d", p);
    }
    return out;
}

static void forget(struct client *client)
{
    client->joined = false;
    client->epoch = 0;
    client->owned[0] = client->owned[1] = 0;
    client->given[0] = client->given[1] = 0;
}

/* What the client makes of an answer: it stops what it may not have, at once or later; then it
 * begins what is new. */
static void take_answer(struct world *w, struct client *client)
{
    const struct consumer_group_heartbeat_response *out = &w->rig->out;
    if (out->error_code != KAFKA_NONE) {
        assert_true(out->error_code == KAFKA_UNKNOWN_MEMBER_ID ||
                    out->error_code == KAFKA_FENCED_MEMBER_EPOCH ||
                    out->error_code == KAFKA_GROUP_ID_NOT_FOUND);
        forget(client);
        return;
    }
    client->joined = true;
    client->epoch = out->member_epoch;
    if (out->assignment == NULL) return;
    client->given[0] = client->given[1] = 0;
    for (int32_t i = 0; i < out->assignment->topic_partitions.count; i++) {
        struct uuid id = out->assignment->topic_partitions.items[i].topic_id;
        int t = uuid_equal(id, crig_topic_id("foo")) ? 0 : 1;
        for (int32_t p = 0; p < out->assignment->topic_partitions.items[i].partitions.count; p++)
            client->given[t] |= 1ull
                                << out->assignment->topic_partitions.items[i].partitions.items[p];
    }
}

static void work(struct client *client, bool gives_up)
{
    for (int t = 0; t < 2; t++) {
        if (gives_up) client->owned[t] &= client->given[t];
        bool clean = (client->owned[0] & ~client->given[0]) == 0 &&
                     (client->owned[1] & ~client->given[1]) == 0;
        if (clean) client->owned[t] |= client->given[t];
    }
}

static void client_beat(struct world *w, struct client *client, bool tells)
{
    struct crig_beat beat = {.epoch = client->epoch};
    bool lost = roll(w, 20) == 0; /* The answer. */
    if (!client->joined) {
        forget(client);
        client->bar = roll(w, 4) > 0;
        beat.epoch = 0;
    }
    if (!client->joined || client->full) {
        beat.rebalance = 12000;
        beat.names = client->bar ? "foo bar" : "foo";
    }
    if (!client->joined || client->full || tells) beat.owned = owned_text(w, client);
    enum kafka_error append = w->rig->append;
    crig_beat(w->rig, client->id, beat);
    client->full = append != KAFKA_NONE || lost;
    if (!client->full) take_answer(w, client);
}

/* ---- what must hold -------------------------------------------------------------------------- */

static const struct consumer_group *group_of(const struct groups *groups)
{
    const struct group *group = groups_find(groups, VIEW("g"));
    return group == NULL ? NULL : group->consumer;
}

static void check_owners(struct world *w)
{
    const struct consumer_group *group = group_of(w->rig->groups);
    uint64_t all[2] = {0, 0};
    for (int i = 0; group != NULL && i < CLIENTS; i++) {
        const struct client *client = &w->clients[i];
        const struct consumer_member *member =
            consumer_group_member(group, view_of_string(client->id));
        /* Who is removed, or known by an epoch of another life, is fenced. */
        if (member == NULL || !client->joined) continue;
        for (int t = 0; t < 2; t++) {
            assert_int_equal(all[t] & client->owned[t], 0);
            all[t] |= client->owned[t];
        }
    }
}

static uint32_t check_set(const struct consumer_group *group,
                          const struct consumer_member *member,
                          const struct partition_set *set)
{
    for (uint32_t i = 0; i < set->count; i++)
        assert_int_equal(consumer_group_holder(group, set->items[i].topic, set->items[i].partition),
                         member->now.epoch);
    return set->count;
}

static void check_holders(const struct consumer_group *group)
{
    uint32_t held = 0, counted = 0;
    if (group == NULL) return;
    list_foreach (link, &group->member_list) {
        const struct consumer_member *member = container_of(link, struct consumer_member, link);
        held += check_set(group, member, &member->now.assigned);
        held += check_set(group, member, &member->now.pending);
        assert_true(member->now.epoch <= group->epoch);
        assert_false(partition_set_intersect(&member->now.assigned, &member->now.pending));
    }
    for (int t = 0; t < 2; t++)
        for (int32_t p = 0; p < PARTITIONS; p++)
            counted +=
                consumer_group_holder(group, crig_topic_id(topic_names[t]), p) != CONSUMER_FREE;
    assert_int_equal(held, counted);
}

static void check_same(const struct consumer_group *a, const struct consumer_group *b)
{
    assert_int_equal(a == NULL, b == NULL);
    if (a == NULL) return;
    assert_int_equal(a->epoch, b->epoch);
    assert_int_equal(a->assignment_epoch, b->assignment_epoch);
    assert_int_equal(a->hash, b->hash);
    assert_int_equal(a->members.count, b->members.count);
    assert_int_equal(a->targets.count, b->targets.count);
    list_foreach (link, &a->member_list) {
        const struct consumer_member *member = container_of(link, struct consumer_member, link);
        const struct consumer_member *other = consumer_group_member(b, member->id);
        assert_non_null(other);
        assert_int_equal(member->now.epoch, other->now.epoch);
        assert_int_equal(member->now.previous, other->now.previous);
        assert_int_equal(member->now.state, other->now.state);
        assert_true(partition_set_same(&member->now.assigned, &other->now.assigned));
        assert_true(partition_set_same(&member->now.pending, &other->now.pending));
        assert_true(consumer_said_equal(&member->said, &other->said));
        assert_true(partition_set_equal(consumer_group_target(a, member->id),
                                        consumer_group_target(b, member->id)));
    }
}

static void check_replay(struct crig *rig)
{
    struct groups *again = groups_new(&rig->heap.mem, &crig_options, 99, rig->now);
    groups_see(again, rig->image, &rig->options);
    for (uint32_t i = 0; i < rig->log_count; i++) {
        struct groups_place place = {.offset = i, .producer_id = -1};
        assert_int_equal(
            groups_load(again, &rig->arena, rig->log[i].key.bytes, rig->log[i].value.bytes, place),
            GROUPS_OK);
    }
    check_same(group_of(rig->groups), group_of(again));
    check_holders(group_of(again));
    groups_free(again);
}

/* ---- one life -------------------------------------------------------------------------------- */

static void step_client(struct world *w, struct client *client)
{
    switch (roll(w, 16)) {
    case 0: client->alive = false; break; /* Crashes, or hangs: it may come back as it was. */
    case 1: client->alive = true; break;
    case 2:
        if (client->alive) forget(client); /* The process is started anew, under the same id. */
        break;
    case 3:
        if (!client->alive || !client->joined) break;
        client->owned[0] = client->owned[1] = 0;
        crig_beat(w->rig, client->id, (struct crig_beat){.epoch = -1});
        forget(client);
        break;
    default:
        if (!client->alive) break;
        work(client, roll(w, 3) == 0);
        client_beat(w, client, roll(w, 3) > 0);
    }
}

static void step_world(struct world *w)
{
    struct crig *rig = w->rig;
    switch (roll(w, 40)) {
    case 0: {
        int t = (int)roll(w, 2);
        if (w->partitions[t] >= PARTITIONS - 4) break;
        crig_topic_from(rig, topic_names[t], w->partitions[t], w->partitions[t] + 1);
        w->partitions[t]++;
        break;
    }
    case 1: crig_until(rig, rig->now + roll(w, 20000)); break;
    case 2: crig_reload(rig); break;
    case 3: rig->append = KAFKA_NOT_ENOUGH_REPLICAS; break;
    case 4:
        rig->options.assignment.value_ms = roll(w, 3) * 1000;
        crig_options_set(rig);
        break;
    default:
        rig->append = KAFKA_NONE;
        crig_until(rig, rig->now + roll(w, 500));
        break;
    }
}

static void settle(struct world *w)
{
    uint64_t all[2] = {0, 0};
    w->rig->append = KAFKA_NONE;
    w->rig->options.assignment.value_ms = 0;
    crig_options_set(w->rig);
    for (int round = 0; round < 40; round++)
        for (int i = 0; i < CLIENTS; i++) {
            w->clients[i].alive = true;
            work(&w->clients[i], true);
            client_beat(w, &w->clients[i], true);
            check_owners(w);
            crig_until(w->rig, w->rig->now + 100);
        }
    assert_string_equal(crig_state(w->rig), "Stable");
    for (int i = 0; i < CLIENTS; i++)
        for (int t = 0; t < 2; t++)
            all[t] |= w->clients[i].owned[t];
    for (int t = 0; t < 2; t++)
        assert_int_equal(all[t], (1ull << w->partitions[t]) - 1);
}

static void life(struct crig *rig, uint64_t seed)
{
    struct world w = {
        .rig = rig, .dice = seed * 0x9e3779b97f4a7c15u + 1, .partitions = {3, 5}
    };
    crig_topic(rig, "foo", 3);
    crig_topic(rig, "bar", 5);
    for (int i = 0; i < CLIENTS; i++) {
        snprintf(w.clients[i].id, sizeof(w.clients[i].id), "m%d", i);
        w.clients[i].alive = true;
    }
    for (int step = 0; step < STEPS; step++) {
        arena_reset(&rig->arena);
        step_client(&w, &w.clients[roll(&w, CLIENTS)]);
        check_owners(&w);
        step_world(&w);
        check_owners(&w);
        check_holders(group_of(rig->groups));
        if (step % 100 == 99) check_replay(rig);
    }
    settle(&w);
    check_replay(rig);
}

static void lives(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 20; seed++) {
        void *rig;
        crig_setup(&rig);
        life(rig, seed);
        crig_teardown(&rig);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(lives)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
