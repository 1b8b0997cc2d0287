/* group_procedures_test.c - every procedure of a classic group told line by line (group_teller.h):
 * joins, votes, syncs, leaves, limits, loads, static members, offsets. The numbers are cases of the
 * conformance list (docs/groups.md). */
#include "core/group_teller.h"

/* A, who leads, and B: in a new generation, not synced. */
static void pair(struct teller *t)
{
    joins(t, 'A', (struct teller_wish){.forgets = true});
    joins(t, 'B', (struct teller_wish){.forgets = true});
    teller_until(t, t->now + 6000);
    t->story[0] = '\0'; /* Told by others. */
    tell_state(t);
}

/* Both beat every three seconds and one last time. */
static void beat_both(struct teller *t, int32_t generation, int64_t until)
{
    while (t->now + 3000 < until) {
        teller_until(t, t->now + 3000);
        beats(t, 'A', generation, NULL);
        beats(t, 'B', generation, NULL);
    }
    teller_until(t, until);
    beats(t, 'A', generation, NULL);
    beats(t, 'B', generation, NULL);
}

/* Nobody serves it until then. */
static void teller_until_load(struct teller *t, int64_t at)
{
    t->now = at;
    loads(t);
}

/* T35, T36, T38: an id first, then the join; nobody's id. */
static void first_join(void **state)
{
    struct teller *t = *state;
    joins(t, 'A', (struct teller_wish){.version = 5});
    tell_state(t);
    joins(t, 'A', (struct teller_wish){.version = 5});
    teller_until(t, 3000);
    (void)snprintf(t->ids['X'], TELLER_ID_SIZE, "nobody");
    joins(t, 'X', (struct teller_wish){.version = 5});
    assert_story(t, "     0 A joins\n"
                    "       log: generation 0, empty\n"
                    "     0 A: 79\n"
                    "     0 Empty, generation 0, members 0\n"
                    "     0 A joins\n"
                    "  3000 A: generation 1, range, leads A\n"
                    "  3000 X joins\n"
                    "  3000 X: 25\n");
}

/* T39, T40: each newcomer extends the initial delay, up to the rebalance timeout. */
static void initial_delay_extends(void **state)
{
    struct teller *t = *state;
    joins(t, 'A', (struct teller_wish){0});
    teller_until(t, 2500);
    joins(t, 'B', (struct teller_wish){0});
    teller_until(t, 5500);
    joins(t, 'C', (struct teller_wish){0});
    teller_until(t, 8500);
    joins(t, 'D', (struct teller_wish){0});
    teller_until(t, 9500);
    joins(t, 'E', (struct teller_wish){0});
    teller_until(t, 20000);
    assert_story(t, "     0 A joins\n"
                    "       log: generation 0, empty\n"
                    "  2500 B joins\n"
                    "  5500 C joins\n"
                    "  8500 D joins\n"
                    "  9500 E joins\n"
                    " 10000 A: generation 1, range, leads A B C D E\n"
                    " 10000 B: generation 1, range, follows A\n"
                    " 10000 C: generation 1, range, follows A\n"
                    " 10000 D: generation 1, range, follows A\n"
                    " 10000 E: generation 1, range, follows A\n"
                    "       log: generation 2, empty\n");
}

/* T42 to T44: the protocol that most prefer, among those that all have; none, and another type. */
static void votes(void **state)
{
    struct teller *t = *state;
    joins(t, 'A', (struct teller_wish){.protocols = "range,rr"});
    joins(t, 'B', (struct teller_wish){.protocols = "rr,range"});
    joins(t, 'C', (struct teller_wish){.protocols = "rr,range"});
    teller_until(t, 10000);
    leaves(t, 'B');
    leaves(t, 'C');
    joins(t, 'A', (struct teller_wish){.protocols = "sticky,range"});
    joins(t, 'D', (struct teller_wish){.protocols = "range"});
    joins(t, 'A', (struct teller_wish){.protocols = "sticky,range"});
    joins(t, 'E', (struct teller_wish){.protocols = "foo"});
    joins(t, 'F', (struct teller_wish){.type = "connect"});
    assert_story(t, "     0 A joins\n"
                    "       log: generation 0, empty\n"
                    "     0 B joins\n"
                    "     0 C joins\n"
                    "  6000 A: generation 1, rr, leads A B C\n"
                    "  6000 B: generation 1, rr, follows A\n"
                    "  6000 C: generation 1, rr, follows A\n"
                    " 10000 leave: 0; 0\n"
                    " 10000 leave: 0; 0\n"
                    " 10000 A joins\n"
                    " 10000 A: generation 2, sticky, leads A\n"
                    " 10000 D joins\n"
                    " 10000 A joins\n"
                    " 10000 A: generation 3, range, leads A D\n"
                    " 10000 D: generation 3, range, follows A\n"
                    " 10000 E joins\n"
                    " 10000 E: 23\n"
                    " 10000 F joins\n"
                    " 10000 F: 23\n");
}

/* T50, T51, T54, T55: followers wait for the leader; who is given nothing has nothing. */
static void assignment(void **state)
{
    struct teller *t = *state;
    pair(t);
    syncs(t, 'B', 1, "");
    beats(t, 'A', 1, NULL);
    syncs(t, 'A', 1, "A=x B=y");
    syncs(t, 'B', 1, "");
    syncs(t, 'B', 2, "");
    joins(t, 'A', (struct teller_wish){0});
    syncs(t, 'B', 1, "");
    joins(t, 'B', (struct teller_wish){0});
    syncs(t, 'A', 2, "A=z");
    syncs(t, 'B', 2, "");
    assert_story(t, "  6000 Completing, generation 1, members 2\n"
                    "  6000 B syncs\n"
                    "  6000 A beats: 0\n"
                    "  6000 A syncs A=x B=y\n"
                    "       log: generation 1, A=x B=y\n"
                    "  6000 A: has x\n"
                    "  6000 B: has y\n"
                    "  6000 B syncs\n"
                    "  6000 B: has y\n"
                    "  6000 B syncs\n"
                    "  6000 B: 22\n"
                    "  6000 A joins\n"
                    "  6000 B syncs\n"
                    "  6000 B: 27\n"
                    "  6000 B joins\n"
                    "  6000 A: generation 2, range, leads A B\n"
                    "  6000 B: generation 2, range, follows A\n"
                    "  6000 A syncs A=z\n"
                    "       log: generation 2, A=z B=\n"
                    "  6000 A: has z\n"
                    "  6000 B syncs\n"
                    "  6000 B: has \n");
}

/* Assignments in any order, of two for a member the last, none for who is not in the group. */
static void assignment_in_any_order(void **state)
{
    struct teller *t = *state;
    pair(t);
    syncs(t, 'B', 1, "");
    (void)snprintf(t->ids['X'], TELLER_ID_SIZE, "nobody");
    syncs(t, 'A', 1, "B=u X=q B=y A=x");
    assert_story(t, "  6000 Completing, generation 1, members 2\n"
                    "  6000 B syncs\n"
                    "  6000 A syncs B=u X=q B=y A=x\n"
                    "       log: generation 1, A=x B=y\n"
                    "  6000 A: has x\n"
                    "  6000 B: has y\n");
}

/* T45 to T49: joins that change nothing, before the sync and after; one that does. */
static void joins_before_the_sync(void **state)
{
    struct teller *t = *state;
    pair(t);
    joins(t, 'A', (struct teller_wish){0});
    joins(t, 'B', (struct teller_wish){0});
    syncs(t, 'B', 1, "");
    joins(t, 'C', (struct teller_wish){0});
    joins(t, 'A', (struct teller_wish){0});
    joins(t, 'B', (struct teller_wish){0});
    syncs(t, 'A', 2, "A=x B=y C=z");
    joins(t, 'B', (struct teller_wish){0});
    joins(t, 'B', (struct teller_wish){.metadata = "other"});
    beats(t, 'A', 2, NULL);
    assert_story(t, "  6000 Completing, generation 1, members 2\n"
                    "  6000 A joins\n"
                    "  6000 A: generation 1, range, leads A B\n"
                    "  6000 B joins\n"
                    "  6000 B: generation 1, range, follows A\n"
                    "  6000 B syncs\n"
                    "  6000 C joins\n"
                    "  6000 B: 27\n"
                    "  6000 A joins\n"
                    "  6000 B joins\n"
                    "  6000 A: generation 2, range, leads A B C\n"
                    "  6000 B: generation 2, range, follows A\n"
                    "  6000 C: generation 2, range, follows A\n"
                    "  6000 A syncs A=x B=y C=z\n"
                    "       log: generation 2, A=x B=y C=z\n"
                    "  6000 A: has x\n"
                    "  6000 B joins\n"
                    "  6000 B: generation 2, range, follows A\n"
                    "  6000 B joins\n"
                    "  6000 A beats: 27\n");
}

/* T52, T53: the log refuses the assignment. */
static void refused_assignment(void **state)
{
    struct teller *t = *state;
    pair(t);
    syncs(t, 'B', 1, "");
    t->append = KAFKA_COORDINATOR_NOT_AVAILABLE;
    syncs(t, 'A', 1, "A=x B=y");
    tell_state(t);
    t->append = KAFKA_NONE;
    joins(t, 'A', (struct teller_wish){0});
    joins(t, 'B', (struct teller_wish){0});
    t->append = KAFKA_NOT_COORDINATOR;
    syncs(t, 'A', 2, "A=x B=y");
    t->append = KAFKA_NONE;
    joins(t, 'A', (struct teller_wish){0});
    joins(t, 'B', (struct teller_wish){0});
    t->append = KAFKA_UNKNOWN_SERVER_ERROR;
    syncs(t, 'A', 3, "A=x B=y");
    t->append = KAFKA_NONE;
    assert_story(t, "  6000 Completing, generation 1, members 2\n"
                    "  6000 B syncs\n"
                    "  6000 A syncs A=x B=y\n"
                    "       log: refuses\n"
                    "  6000 A: 15\n"
                    "  6000 B: 15\n"
                    "  6000 PreparingRebalance, generation 1, members 2\n"
                    "  6000 A joins\n"
                    "  6000 B joins\n"
                    "  6000 A: generation 2, range, leads A B\n"
                    "  6000 B: generation 2, range, follows A\n"
                    "  6000 A syncs A=x B=y\n"
                    "       log: refuses\n"
                    "  6000 A: 16\n"
                    "  6000 A joins\n"
                    "  6000 B joins\n"
                    "  6000 A: generation 3, range, leads A B\n"
                    "  6000 B: generation 3, range, follows A\n"
                    "  6000 A syncs A=x B=y\n"
                    "       log: refuses\n"
                    "  6000 A: -1\n");
}

/* T56: beats keep those who do not sync until the sync's limit, and no longer. */
static void nobody_syncs(void **state)
{
    struct teller *t = *state;
    pair(t);
    beat_both(t, 1, t->now + 10000);
    tell_state(t);
    assert_story(t, "  6000 Completing, generation 1, members 2\n"
                    "  9000 A beats: 0\n"
                    "  9000 B beats: 0\n"
                    " 12000 A beats: 0\n"
                    " 12000 B beats: 0\n"
                    " 15000 A beats: 0\n"
                    " 15000 B beats: 0\n"
                    "       log: generation 2, empty\n"
                    " 16000 A beats: 25\n"
                    " 16000 B beats: 25\n"
                    " 16000 Empty, generation 2, members 0\n");
}

/* T57 */
static void only_the_leader_syncs(void **state)
{
    struct teller *t = *state;
    pair(t);
    syncs(t, 'A', 1, "A=x B=y");
    beat_both(t, 1, t->now + 10000);
    assert_story(t, "  6000 Completing, generation 1, members 2\n"
                    "  6000 A syncs A=x B=y\n"
                    "       log: generation 1, A=x B=y\n"
                    "  6000 A: has x\n"
                    "  9000 A beats: 0\n"
                    "  9000 B beats: 0\n"
                    " 12000 A beats: 0\n"
                    " 12000 B beats: 0\n"
                    " 15000 A beats: 0\n"
                    " 15000 B beats: 0\n"
                    " 16000 A beats: 27\n"
                    " 16000 B beats: 25\n");
}

/* T58 */
static void only_followers_sync(void **state)
{
    struct teller *t = *state;
    pair(t);
    syncs(t, 'B', 1, "");
    beat_both(t, 1, t->now + 10000);
    assert_story(t, "  6000 Completing, generation 1, members 2\n"
                    "  6000 B syncs\n"
                    "  9000 A beats: 0\n"
                    "  9000 B beats: 0\n"
                    " 12000 A beats: 0\n"
                    " 12000 B beats: 0\n"
                    " 15000 A beats: 0\n"
                    " 15000 B beats: 0\n"
                    " 16000 B: 27\n"
                    " 16000 A beats: 25\n"
                    " 16000 B beats: 27\n");
}

/* T59, T60, T66: a rebalance waits for who has only an id, for its session. */
static void pending_members(void **state)
{
    struct teller *t = *state;
    joins(t, 'A', (struct teller_wish){.session = 60000, .rebalance = 60000});
    teller_until(t, 3000);
    syncs(t, 'A', 1, "A=x");
    joins(t, 'B', (struct teller_wish){.version = 5, .session = 6000});
    joins(t, 'A', (struct teller_wish){.session = 60000, .rebalance = 60000});
    teller_until(t, 5000);
    joins(t, 'B', (struct teller_wish){.version = 5, .session = 60000, .rebalance = 60000});
    syncs(t, 'A', 2, "A=x B=y");
    joins(t, 'C', (struct teller_wish){.version = 5, .session = 6000});
    joins(t, 'A', (struct teller_wish){.session = 60000, .rebalance = 60000});
    joins(t, 'B', (struct teller_wish){.version = 5, .session = 60000, .rebalance = 60000});
    teller_until(t, 11000);
    joins(t, 'C', (struct teller_wish){.version = 5, .session = 6000});
    joins(t, 'D', (struct teller_wish){.version = 5});
    leaves(t, 'D');
    joins(t, 'D', (struct teller_wish){.version = 5});
    assert_story(t, "     0 A joins\n"
                    "       log: generation 0, empty\n"
                    "  3000 A: generation 1, range, leads A\n"
                    "  3000 A syncs A=x\n"
                    "       log: generation 1, A=x\n"
                    "  3000 A: has x\n"
                    "  3000 B joins\n"
                    "  3000 B: 79\n"
                    "  3000 A joins\n"
                    "  5000 B joins\n"
                    "  5000 A: generation 2, range, leads A B\n"
                    "  5000 B: generation 2, range, follows A\n"
                    "  5000 A syncs A=x B=y\n"
                    "       log: generation 2, A=x B=y\n"
                    "  5000 A: has x\n"
                    "  5000 C joins\n"
                    "  5000 C: 79\n"
                    "  5000 A joins\n"
                    "  5000 B joins\n"
                    " 11000 A: generation 3, range, leads A B\n"
                    " 11000 B: generation 3, range, follows A\n"
                    " 11000 C joins\n"
                    " 11000 C: 25\n"
                    " 11000 D joins\n"
                    " 11000 D: 79\n"
                    " 11000 leave: 0; 0\n"
                    " 11000 D joins\n"
                    " 11000 D: 25\n");
}

/* Bug row 11: the last member expires while another has only an id; leavers while others wait. */
static void last_member_expires_beside_a_pending_one(void **state)
{
    struct teller *t = *state;
    joins(t, 'A', (struct teller_wish){.session = 6000});
    teller_until(t, 3000);
    joins(t, 'B', (struct teller_wish){.version = 5, .session = 60000});
    teller_until(t, 20000);
    tell_state(t);
    joins(t, 'B', (struct teller_wish){.version = 5, .session = 60000});
    teller_until(t, 30000);
    joins(t, 'C', (struct teller_wish){.session = 60000});
    tell_state(t);
    leaves(t, 'B');
    assert_story(t, "     0 A joins\n"
                    "       log: generation 0, empty\n"
                    "  3000 A: generation 1, range, leads A\n"
                    "  3000 B joins\n"
                    "  3000 B: 79\n"
                    "       log: generation 2, empty\n"
                    " 20000 Empty, generation 2, members 0\n"
                    " 20000 B joins\n"
                    " 23000 B: generation 3, range, leads B\n"
                    " 30000 C joins\n"
                    " 30000 PreparingRebalance, generation 3, members 2\n"
                    " 30000 leave: 0; 0\n"
                    " 30000 C: generation 4, range, leads C\n");
}

/* T62 to T67: leaves by id and by instance, of nobody, of a former id; the last one. */
static void several_leave(void **state)
{
    struct teller *t = *state;
    joins(t, 'A', (struct teller_wish){0});
    joins(t, 'S', (struct teller_wish){.instance = "i1", .version = 9});
    teller_until(t, 6000);
    (void)snprintf(t->ids['X'], TELLER_ID_SIZE, "nobody");
    struct teller_leaver all[] = {
        {'A',  NULL},
        {'X',  NULL},
        {'\0', "i1"},
        {'\0', "i9"}
    };
    leave(t, all, 4);
    tell_state(t);
    joins(t, 'S', (struct teller_wish){.instance = "i1", .version = 9, .forgets = true});
    teller_until(t, 10000);
    syncs(t, 'S', 3, "S=x");
    joins(t, 'T', (struct teller_wish){.instance = "i1", .version = 9});
    struct teller_leaver former = {'S', "i1"};
    leave(t, &former, 1);
    assert_story(t, "     0 A joins\n"
                    "       log: generation 0, empty\n"
                    "     0 S joins\n"
                    "  6000 A: generation 1, range, leads A S\n"
                    "  6000 S: generation 1, range, follows A\n"
                    "  6000 leave: 0; 0 25 0 25\n"
                    "       log: generation 2, empty\n"
                    "  6000 Empty, generation 2, members 0\n"
                    "  6000 S joins\n"
                    "  9000 S: generation 3, range, leads S\n"
                    " 10000 S syncs S=x\n"
                    "       log: generation 3, S=x\n"
                    " 10000 S: has x\n"
                    " 10000 T joins\n"
                    "       log: generation 3, ?=x\n"
                    " 10000 T: generation 3, range, leads T, skips the assignment\n"
                    " 10000 leave: 0; 82\n");
}

/* T68, T69: as many as may be, and one more; a full group gives no ids. */
static void full(void **state)
{
    struct teller *t = *state;
    static const char names[] = "ABC";
    t->options.size_max = 2;
    resigns(t);
    loads(t);
    for (int i = 0; i < 3; i++)
        joins(t, names[i], (struct teller_wish){.version = 5});
    for (int i = 0; i < 3; i++)
        joins(t, names[i], (struct teller_wish){.version = 5});
    teller_until(t, 6000);
    joins(t, 'D', (struct teller_wish){.version = 5});
    tell_state(t);
    assert_story(t, "     0 resigns\n"
                    "     0 loads\n"
                    "     0 A joins\n"
                    "       log: generation 0, empty\n"
                    "     0 A: 79\n"
                    "     0 B joins\n"
                    "     0 B: 79\n"
                    "     0 C joins\n"
                    "     0 C: 79\n"
                    "     0 A joins\n"
                    "     0 B joins\n"
                    "     0 C joins\n"
                    "     0 C: 81\n"
                    "  6000 A: generation 1, range, leads A B\n"
                    "  6000 B: generation 1, range, follows A\n"
                    "  6000 D joins\n"
                    "  6000 D: 81\n"
                    "  6000 Completing, generation 1, members 2\n");
}

/* T61, bug row 10: who waits with its first join has five minutes, whatever its session says. */
static void new_members_wait_five_minutes(void **state)
{
    struct teller *t = *state;
    joins(t, 'A', (struct teller_wish){.session = 1000000, .rebalance = 400000});
    teller_until(t, 3000);
    joins(t, 'B', (struct teller_wish){.session = 6000, .rebalance = 400000});
    teller_until(t, 302999);
    beats(t, 'A', 1, NULL);
    teller_until(t, 303000);
    tell_state(t);
    assert_story(t, "     0 A joins\n"
                    "       log: generation 0, empty\n"
                    "  3000 A: generation 1, range, leads A\n"
                    "  3000 B joins\n"
                    "302999 A beats: 27\n"
                    "303000 B: 25\n"
                    "303000 PreparingRebalance, generation 1, members 1\n");
}

/* T70: a group that is larger than may be when it is loaded. */
static void grown_too_large(void **state)
{
    struct teller *t = *state;
    joins(t, 'A', (struct teller_wish){0});
    joins(t, 'B', (struct teller_wish){0});
    joins(t, 'C', (struct teller_wish){0});
    teller_until(t, 6000);
    syncs(t, 'A', 1, "A=x B=y C=z");
    resigns(t);
    t->options.size_max = 2;
    loads(t);
    tell_state(t);
    joins(t, 'A', (struct teller_wish){.version = 5});
    joins(t, 'B', (struct teller_wish){.version = 5});
    joins(t, 'C', (struct teller_wish){.version = 5});
    teller_until(t, 16000);
    assert_story(t, "     0 A joins\n"
                    "       log: generation 0, empty\n"
                    "     0 B joins\n"
                    "     0 C joins\n"
                    "  6000 A: generation 1, range, leads A B C\n"
                    "  6000 B: generation 1, range, follows A\n"
                    "  6000 C: generation 1, range, follows A\n"
                    "  6000 A syncs A=x B=y C=z\n"
                    "       log: generation 1, A=x B=y C=z\n"
                    "  6000 A: has x\n"
                    "  6000 resigns\n"
                    "  6000 loads\n"
                    "  6000 PreparingRebalance, generation 1, members 3\n"
                    "  6000 A joins\n"
                    "  6000 B joins\n"
                    "  6000 C joins\n"
                    "  6000 C: 81\n"
                    " 16000 A: generation 2, range, leads A B\n"
                    " 16000 B: generation 2, range, follows A\n");
}

/* T71, T72: what waits when the shard goes; who is silent behind the load. */
static void silent_after_a_load(void **state)
{
    struct teller *t = *state;
    pair(t);
    syncs(t, 'A', 1, "A=x B=y");
    syncs(t, 'B', 1, "");
    joins(t, 'A', (struct teller_wish){.metadata = "other"});
    resigns(t);
    teller_until_load(t, 20000);
    beats(t, 'A', 1, NULL);
    teller_until(t, 25000);
    beats(t, 'A', 1, NULL);
    teller_until(t, 29999);
    tell_state(t);
    teller_until(t, 30000);
    tell_state(t);
    beats(t, 'A', 1, NULL);
    assert_story(t, "  6000 Completing, generation 1, members 2\n"
                    "  6000 A syncs A=x B=y\n"
                    "       log: generation 1, A=x B=y\n"
                    "  6000 A: has x\n"
                    "  6000 B syncs\n"
                    "  6000 B: has y\n"
                    "  6000 A joins\n"
                    "  6000 resigns\n"
                    "  6000 A: 16\n"
                    " 20000 loads\n"
                    " 20000 A beats: 0\n"
                    " 25000 A beats: 0\n"
                    " 29999 Stable, generation 1, members 2\n"
                    " 30000 PreparingRebalance, generation 1, members 1\n"
                    " 30000 A beats: 27\n");
}

/* T78 to T82: static members that come back in a rebalance, and that do not. */
static void static_members_in_a_rebalance(void **state)
{
    struct teller *t = *state;
    joins(t, 'L', (struct teller_wish){.instance = "i1", .version = 9, .protocols = "range,rr"});
    joins(t, 'F', (struct teller_wish){.instance = "i2", .version = 9, .protocols = "range,rr"});
    teller_until(t, 6000);
    syncs(t, 'F', 1, "");
    joins(t, 'M', (struct teller_wish){.instance = "i1", .version = 9, .protocols = "range,rr"});
    joins(t, 'F', (struct teller_wish){.instance = "i2", .version = 9, .protocols = "range,rr"});
    syncs(t, 'M', 2, "M=x F=y");
    joins(t, 'G', (struct teller_wish){.instance = "i2", .version = 9, .protocols = "rr"});
    joins(t, 'H', (struct teller_wish){.instance = "i2", .version = 9, .protocols = "rr"});
    joins(t, 'M', (struct teller_wish){.instance = "i1", .version = 9, .protocols = "range,rr"});
    assert_story(t, "     0 L joins\n"
                    "       log: generation 0, empty\n"
                    "     0 F joins\n"
                    "  6000 L: generation 1, range, leads L F\n"
                    "  6000 F: generation 1, range, follows L\n"
                    "  6000 F syncs\n"
                    "  6000 M joins\n"
                    "  6000 F: 27\n"
                    "  6000 F joins\n"
                    "  6000 F: generation 2, range, follows M\n"
                    "  6000 M: generation 2, range, leads F M\n"
                    "  6000 M syncs M=x F=y\n"
                    "       log: generation 2, F=y M=x\n"
                    "  6000 M: has x\n"
                    "  6000 G joins\n"
                    "  6000 H joins\n"
                    "  6000 G: 82\n"
                    "  6000 M joins\n"
                    "  6000 M: generation 3, rr, leads M H\n"
                    "  6000 H: generation 3, rr, follows M\n");
}

/* T81, T82, bug row 12: static members are kept over a rebalance, and removed when their session
 * ends. */
static void static_members_stay_away(void **state)
{
    struct teller *t = *state;
    joins(t, 'L', (struct teller_wish){.instance = "i1", .version = 9, .session = 20000});
    joins(t, 'D', (struct teller_wish){.session = 60000});
    teller_until(t, 6000);
    syncs(t, 'L', 1, "L=x D=y");
    syncs(t, 'D', 1, "");
    joins(t, 'E', (struct teller_wish){.session = 60000});
    joins(t, 'D', (struct teller_wish){.session = 60000});
    teller_until(t, 16000);
    syncs(t, 'D', 2, "L=x D=y E=z");
    leaves(t, 'D');
    leaves(t, 'E');
    tell_state(t);
    teller_until(t, 35999);
    tell_state(t);
    teller_until(t, 36000);
    tell_state(t);
    assert_story(t, "     0 L joins\n"
                    "       log: generation 0, empty\n"
                    "     0 D joins\n"
                    "  6000 L: generation 1, range, leads L D\n"
                    "  6000 D: generation 1, range, follows L\n"
                    "  6000 L syncs L=x D=y\n"
                    "       log: generation 1, L=x D=y\n"
                    "  6000 L: has x\n"
                    "  6000 D syncs\n"
                    "  6000 D: has y\n"
                    "  6000 E joins\n"
                    "  6000 D joins\n"
                    " 16000 D: generation 2, range, leads L D E\n"
                    " 16000 E: generation 2, range, follows D\n"
                    " 16000 D syncs L=x D=y E=z\n"
                    "       log: generation 2, L=x D=y E=z\n"
                    " 16000 D: has y\n"
                    " 16000 leave: 0; 0\n"
                    " 16000 leave: 0; 0\n"
                    " 16000 PreparingRebalance, generation 2, members 1\n"
                    " 35999 PreparingRebalance, generation 2, members 1\n"
                    "       log: generation 3, empty\n"
                    " 36000 Empty, generation 3, members 0\n");
}

/* T33: share and streams groups that others wrote are none of ours: nobody is a member of them. */
static void groups_of_other_kinds(void **state)
{
    /* The keys of ShareGroupMetadata and StreamsGroupMetadata; their values look alike. */
    static const char *const keys[] = {"000b 0001 67", "0011 0001 67"};
    const char *value = "0000 00000001 0000000000000000 00";
    struct teller *t = *state;
    for (size_t i = 0; i < ARRAY_SIZE(keys); i++) {
        struct groups_place place = {(int64_t)i, -1};
        assert_int_equal(groups_load(t->groups, &t->arena, rig_hex(&t->arena, keys[i]),
                                     rig_hex(&t->arena, value), place),
                         GROUPS_SKIPPED);
        struct group_beat beat = {
            .group_id = VIEW("g"), .member_id = VIEW("member"), .instance_id = VIEW_NULL};
        assert_int_equal(group_heartbeat(t->groups, &beat), KAFKA_UNKNOWN_MEMBER_ID);
    }
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, teller_setup, teller_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(first_join),
        TEST(initial_delay_extends),
        TEST(votes),
        TEST(assignment),
        TEST(assignment_in_any_order),
        TEST(joins_before_the_sync),
        TEST(refused_assignment),
        TEST(nobody_syncs),
        TEST(only_the_leader_syncs),
        TEST(only_followers_sync),
        TEST(pending_members),
        TEST(last_member_expires_beside_a_pending_one),
        TEST(several_leave),
        TEST(full),
        TEST(new_members_wait_five_minutes),
        TEST(grown_too_large),
        TEST(silent_after_a_load),
        TEST(static_members_in_a_rebalance),
        TEST(static_members_stay_away),
        TEST(groups_of_other_kinds),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
