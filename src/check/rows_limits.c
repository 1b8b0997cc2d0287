/* rows_limits.c - how many members a group may have.
 *
 * A server whose groups may be larger than the rows have members is not asked: Apache Kafka's
 * default is no limit. */
#include "check/classic.h"
#include "check/modern.h"
#include "check/rows.h"

/* Members of a row; each of them has two connections. */
#define MEMBERS_MAX 10

/* The limit, if a row can come to it; else the row is skipped. */
static uint32_t limit_of(struct check_run *run, const char *name)
{
    int64_t limit = run_setting(run, name);
    if (limit >= 2 && limit < MEMBERS_MAX) return (uint32_t)limit;
    run_skip(run, "its %s is %lld; a row may have %d members", name, (long long)limit, MEMBERS_MAX);
    return 2; /* The run is over: nothing is asked any more. */
}

static void classic_members(struct check_run *run)
{
    struct classic m[MEMBERS_MAX];
    uint32_t limit = limit_of(run, "group.max.size");
    for (uint32_t i = 0; i <= limit; i++) {
        classic_init(&m[i], run, NULL);
        m[i].join_version = CLASSIC_JOIN_NEWEST;
        run_expect(run, "first join", KAFKA_MEMBER_ID_REQUIRED, classic_join(&m[i]));
    }
    for (uint32_t i = 0; i < limit; i++)
        classic_enter(&m[i]);
    classic_join_send(&m[limit]);
    const struct join_group_response *answer = classic_join_take(&m[limit]);
    run_expect(run, "one more", KAFKA_GROUP_MAX_SIZE_REACHED, answer->error_code);
    run_expect_text(run, "member id of the answer", "", answer->member_id);
    for (uint32_t i = 0; i < limit; i++)
        run_expect(run, "join", KAFKA_NONE, classic_join_take(&m[i])->error_code);
}

static void one_more_for_a_full_group(struct check_run *run)
{
    struct classic m[MEMBERS_MAX];
    struct classic *all[MEMBERS_MAX];
    uint32_t limit = limit_of(run, "group.max.size");
    for (uint32_t i = 0; i <= limit; i++) {
        all[i] = &m[i];
        classic_init(&m[i], run, NULL);
    }
    classic_stable(all, limit);
    m[limit].join_version = CLASSIC_JOIN_NEWEST;
    run_expect(run, "first join of one more", KAFKA_GROUP_MAX_SIZE_REACHED,
               classic_join(&m[limit]));
    run_expect(run, "beat of the others: no rebalance", KAFKA_NONE, classic_beat(&m[0], 4));
}

static void modern_members(struct check_run *run)
{
    struct modern m[MEMBERS_MAX];
    uint32_t limit = limit_of(run, "group.consumer.max.size");
    for (uint32_t i = 0; i <= limit; i++) {
        modern_init(&m[i], run, NULL);
        run_expect(run, "join", i < limit ? KAFKA_NONE : KAFKA_GROUP_MAX_SIZE_REACHED,
                   modern_full(&m[i], 0));
    }
    run_expect(run, "full beat of one that is there", KAFKA_NONE, modern_full(&m[0], m[0].epoch));
}

static const struct check_row rows[] = {
    CHECK_ROW("T68", "as many members as may be, and one more", classic_members),
    CHECK_ROW("T69", "a full group gives nobody a member id", one_more_for_a_full_group),
    CHECK_ROW("T101", "a consumer group is full", modern_members),
};

const struct check_table rows_limits = {
    "How many members a group may have",
    rows,
    ARRAY_SIZE(rows),
};
