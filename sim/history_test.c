/* history_test.c - the order within a producer (I9), the owners within a group (I13), who replaced
 * whom (I15) and who was removed (kept) are seen to be broken, and only then. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "sim/membership.h"

/* An audit of a log of an idempotent producer's records with these numbers; is it as it may be? */
static bool order_passes(struct history *history, const uint32_t *numbers, uint32_t count)
{
    history->violation[0] = '\0';
    history_audit_begin(history);
    for (uint32_t i = 0; i < count; i++)
        history_audit_record(history, 0, i, (struct history_value){1, numbers[i]});
    history_audit_end(history);
    return !history_violated(history);
}

#define ORDER_PASSES(history, ...)                                                                 \
    order_passes((history), (const uint32_t[]){__VA_ARGS__},                                       \
                 ARRAY_SIZE(((const uint32_t[]){__VA_ARGS__})))

static struct history *history_new(void)
{
    struct history *history = test_calloc(1, sizeof(*history));
    history->idempotent[1] = true;
    return history;
}

static void i9_in_order_and_once(void **state)
{
    (void)state;
    struct history *history = history_new();
    assert_true(ORDER_PASSES(history, 3, 4, 9));
    assert_false(ORDER_PASSES(history, 3, 4, 4));
    assert_false(ORDER_PASSES(history, 3, 9, 4));
    test_free(history);
}

static void i9_what_was_given_up_may_come_late(void **state)
{
    (void)state;
    struct history *history = history_new();
    history_gives_up(history, (struct history_value){1, 5}, 8);
    assert_true(ORDER_PASSES(history, 3, 4, 8, 9, 6, 7, 10));
    assert_true(ORDER_PASSES(history, 4, 5, 8, 6, 9, 7));
    assert_false(ORDER_PASSES(history, 4, 8, 7, 6));  /* Not in its own order, */
    assert_false(ORDER_PASSES(history, 4, 8, 6, 6));  /* not twice, */
    assert_false(ORDER_PASSES(history, 5, 6, 8, 6));  /* not even so, */
    assert_false(ORDER_PASSES(history, 5, 7, 6, 8));  /* not before the next id, */
    assert_false(ORDER_PASSES(history, 5, 8, 4));     /* not what was acknowledged, */
    assert_false(ORDER_PASSES(history, 8, 10, 7, 9)); /* nor what the next id sent. */
    test_free(history);
}

/* The first rule that was broken is this one; NULL: none. Then all is forgotten. */
static void breaks(struct history *history, const char *rule)
{
    if (rule == NULL)
        assert_string_equal(history->violation, "");
    else
        assert_int_equal(strncmp(history->violation, rule, strlen(rule)), 0);
    history_free(history);
    memset(history, 0, sizeof(*history));
}

static void claims(struct history *history, int64_t offset, uint32_t number, int claim)
{
    history_claim(history, 0, offset, (struct history_value){1, number}, (enum history_claim)claim);
}

static void i1_nothing_is_lost(void **state)
{
    (void)state;
    struct history *history = history_new();
    for (int weak = 0; weak < 2; weak++) {
        for (int cut = 0; cut < 2; cut++) {
            claims(history, 0, 1, HISTORY_FIRM);
            claims(history, 1, 2, weak ? HISTORY_WEAK : HISTORY_FIRM);
            if (cut) history_power_cut(history);
            history_audit_begin(history);
            history_audit_record(history, 0, 0, (struct history_value){1, 1});
            history_audit_end(history);
            breaks(history, weak && cut ? NULL : "I1: log 0 ends at 1");
        }
    }
    claims(history, 0, 1, HISTORY_FIRM);
    history_delete_asked(history, 0, 1);
    history_audit_begin(history);
    history_audit_end(history);
    breaks(history, NULL);
    test_free(history);
}

static void i2_an_offset_has_one_record(void **state)
{
    (void)state;
    struct history *history = history_new();
    claims(history, 3, 1, HISTORY_FIRM);
    claims(history, 3, 1, HISTORY_FIRM);
    history_epoch(history, 0, 3, 2);
    history_epoch(history, 0, 3, 2);
    breaks(history, NULL);
    claims(history, 3, 1, HISTORY_FIRM);
    claims(history, 3, 2, HISTORY_FIRM);
    breaks(history, "I2: log 0 offset 3 was record");
    claims(history, 3, 1, HISTORY_FIRM);
    history_epoch(history, 0, 3, 2);
    history_epoch(history, 0, 3, 1);
    breaks(history, "I2: log 0 offset 3 was of leader epoch 2");
    claims(history, 3, 1, HISTORY_FIRM);
    claims(history, 4, 2, HISTORY_FIRM);
    history_epoch(history, 0, 3, 2);
    history_epoch(history, 0, 4, 1);
    breaks(history, "I3: log 0: epoch 1");
    test_free(history);
}

static void i16_to_i20_ids_topics_and_starts(void **state)
{
    (void)state;
    struct history *history = history_new();
    history_producer_id(history, 5);
    history_producer_id(history, 6);
    breaks(history, NULL);
    history_producer_id(history, 5);
    history_producer_id(history, 5);
    breaks(history, "I16: producer id 5");
    history->topics[0].partitions = 2;
    history_topic(history, 0, (struct uuid){{1}}, 2);
    history_topic(history, 0, (struct uuid){{2}}, 2);
    breaks(history, "I17: topic  has another id");
    history->topics[0].partitions = 2;
    history_topic(history, 0, (struct uuid){{1}}, 3);
    breaks(history, "I17: topic  has 3 partitions");
    history_delete_asked(history, 0, 7);
    history_deleted(history, 0, 7, 0);
    breaks(history, NULL);
    history_delete_asked(history, 0, 7);
    history_log_start(history, 0, 8, 0);
    breaks(history, "I20: log 0 begins at 8");
    test_free(history);
}

/* Two seats of one instance and a third one. */
static struct membership *group_new(struct history *history)
{
    struct membership *group = test_calloc(1, sizeof(*group));
    group->history = history;
    group->seat_count = 3;
    for (uint32_t i = 0; i < 3; i++) {
        group->seats[i].in = true;
        group->seats[i].patience_ms = 4000;
        group->seats[i].instance[0] = i == 2 ? 'b' : 'a';
    }
    return group;
}

static void lets_in(struct membership *group, uint32_t at, int64_t sent_us, int64_t now_us)
{
    static const bool owns[HISTORY_LOGS_MAX] = {true};
    membership_joined(group, at, group->history->restarts, sent_us, now_us);
    membership_renew(group, at, sent_us, now_us);
    membership_owns(group, at, owns, now_us);
}

static void i13_one_owner(void **state)
{
    (void)state;
    struct history *history = history_new();
    struct membership *group = group_new(history);
    membership_joins(group, 1, 900);
    membership_joins(group, 0, 1000);
    lets_in(group, 2, 1100, 3000);
    assert_false(history_violated(history));
    lets_in(group, 0, 1000, 3100);
    assert_true(history_violated(history));
    test_free(group);
    test_free(history);
}

static void i13_who_asked_since_may_have_its_place(void **state)
{
    (void)state;
    struct history *history = history_new();
    struct membership *group = group_new(history);
    membership_joins(group, 0, 1000);
    membership_joins(group, 1, 1001);
    lets_in(group, 2, 1100, 3000);
    lets_in(group, 0, 1000, 3100);
    assert_false(history_violated(history));
    membership_joins(group, 0, 3200);
    lets_in(group, 0, 3200, 3300);
    assert_true(history_violated(history));
    test_free(group);
    test_free(history);
}

/* Seat 0 is let in; then 1, with its instance id, takes its place, and `written` is whether it was
 * acknowledged from the log. Then seat 0 speaks, behind a restart or not, which was before the
 * answers to seat 1 arrived or not. Does that pass? */
static bool replaced_may_speak(bool written, bool restart, bool late)
{
    struct history *history = history_new();
    struct membership *group = group_new(history);
    membership_joined(group, 0, 0, 1000, 1100);
    membership_in(group, 0, 0);
    history->restarts += restart && late;
    membership_joined(group, 1, 0, 2000, 2100);
    if (written) membership_in(group, 1, 0);
    history->restarts += restart && !late;
    membership_renew(group, 0, 3000, 3100);
    bool passes = !history_violated(history);
    test_free(group);
    test_free(history);
    return passes;
}

static void i15_a_place_is_taken_for_good_from_the_log(void **state)
{
    (void)state;
    assert_false(replaced_may_speak(false, false, false));
    assert_false(replaced_may_speak(true, false, false));
    assert_false(replaced_may_speak(true, true, false));
    assert_false(replaced_may_speak(true, true, true));
    assert_true(replaced_may_speak(false, true, false));
    assert_true(replaced_may_speak(false, true, true));
}

static void kept_a_beat_counts_once_the_group_is_loaded(void **state)
{
    (void)state;
    struct history *history = history_new();
    struct membership *group = group_new(history);
    history->restart_us = 1000;
    assert_false(membership_is_loaded(group, 9000000)); /* However long it takes. */
    membership_loaded(group, 900, 2000);                /* From before the restart. */
    assert_false(membership_is_loaded(group, 9000000));
    membership_loaded(group, 1500, 2000);
    assert_false(membership_is_loaded(group, 1900)); /* Sent while it may have been loading. */
    assert_true(membership_is_loaded(group, 2001));
    membership_loaded(group, 2500, 3000);
    assert_true(membership_is_loaded(group, 2001)); /* The first time counts. */
    history->trouble_us = INT64_MAX;
    assert_false(membership_is_loaded(group, 9000000));
    history->trouble_us = 4000;
    membership_loaded(group, 3900, 4100);
    assert_false(membership_is_loaded(group, 9000000));
    membership_loaded(group, 4100, 4200);
    assert_true(membership_is_loaded(group, 9000000));
    test_free(group);
    test_free(history);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(i9_in_order_and_once),
        cmocka_unit_test(i9_what_was_given_up_may_come_late),
        cmocka_unit_test(i1_nothing_is_lost),
        cmocka_unit_test(i2_an_offset_has_one_record),
        cmocka_unit_test(i16_to_i20_ids_topics_and_starts),
        cmocka_unit_test(i13_one_owner),
        cmocka_unit_test(i13_who_asked_since_may_have_its_place),
        cmocka_unit_test(i15_a_place_is_taken_for_good_from_the_log),
        cmocka_unit_test(kept_a_beat_counts_once_the_group_is_loaded),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
