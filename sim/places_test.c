/* places_test.c - each rule of places.h is seen to be broken, and only then.
 *
 * A log of eight records in three epochs; an answer that is right, then some that are not. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "gen/errors.h"
#include "sim/places.h"

#define RECORDS 8

struct bed {
    struct history history;
    struct places places;
};

static int64_t time_of(int64_t offset)
{
    return history_timestamp_ms((struct history_value){1, (uint32_t)offset});
}

static int32_t epoch_of(int64_t offset)
{
    return offset < 3 ? 0 : offset < 6 ? 2 : 5;
}

/* The first record that is not older, or -1. */
static int64_t first_since(int64_t timestamp_ms)
{
    for (int64_t at = 0; at < RECORDS; at++)
        if (time_of(at) >= timestamp_ms) return at;
    return -1;
}

static int64_t first_largest(void)
{
    int64_t largest = 0;
    for (int64_t at = 1; at < RECORDS; at++)
        if (time_of(at) > time_of(largest)) largest = at;
    return largest;
}

static struct bed *bed_new(void)
{
    struct bed *bed = calloc(1, sizeof(*bed));
    assert_non_null(bed);
    bed->places.history = &bed->history;
    bed->history.quiet = true;
    history_audit_begin(&bed->history);
    for (int64_t at = 0; at < RECORDS; at++) {
        struct history_value value = {1, (uint32_t)at};
        history_claim(&bed->history, 0, at, value, HISTORY_FIRM);
        history_epoch(&bed->history, 0, at, epoch_of(at));
        history_audit_record(&bed->history, 0, at, value);
    }
    return bed;
}

/* Asked for `one`, told what it says: which rule is broken? NULL: none. */
static void told(struct places_one one, const char *rule)
{
    struct bed *bed = bed_new();
    struct places_one asked = one;
    if (one.version == 0) asked.version = 11;
    places_ask(&bed->places, &asked);
    (void)places_answered(&bed->places, &asked);
    places_audited(&bed->places);
    if (rule == NULL)
        assert_string_equal(bed->history.violation, "");
    else if (strncmp(bed->history.violation, rule, strlen(rule)) != 0)
        fail_msg("%s: %s", rule, bed->history.violation);
    history_free(&bed->history);
    free(bed);
}

#define TOLD(rule, ...) told((struct places_one){.current_epoch = -1, __VA_ARGS__}, (rule))

static void p1_by_time(void **state)
{
    (void)state;
    for (int64_t at = 0; at < RECORDS; at++) {
        int64_t wanted_ms = time_of(at), first = first_since(wanted_ms);
        TOLD(NULL, .timestamp = wanted_ms, .offset = first, .timestamp_ms = time_of(first),
             .epoch = epoch_of(first));
        TOLD("P1: the record has another t", .timestamp = wanted_ms, .offset = first,
             .timestamp_ms = time_of(first) + 1, .epoch = epoch_of(first));
        TOLD("P1: the record's batch", .timestamp = wanted_ms, .offset = first,
             .timestamp_ms = time_of(first), .epoch = epoch_of(first) + 1);
        TOLD("P1: an earlier record", .timestamp = wanted_ms, .offset = -1, .timestamp_ms = -1,
             .epoch = -1);
    }
    int64_t last_ms = time_of(first_largest());
    TOLD(NULL, .timestamp = last_ms + 1, .offset = -1, .timestamp_ms = -1, .epoch = -1);
    TOLD("P1: no offset", .timestamp = last_ms + 1, .offset = -1, .timestamp_ms = 5, .epoch = -1);
    TOLD("P1: a record that is deleted, or too old", .timestamp = last_ms + 1, .offset = 0,
         .timestamp_ms = time_of(0), .epoch = 0);
    TOLD("P1: nobody can read", .timestamp = last_ms + 1, .offset = RECORDS,
         .timestamp_ms = last_ms + 2, .epoch = 5);
}

static void p2_largest(void **state)
{
    (void)state;
    for (int64_t at = 0; at < RECORDS; at++)
        TOLD(at == first_largest() ? NULL : "P2: ", .timestamp = PLACES_MAX_TIMESTAMP, .offset = at,
             .timestamp_ms = time_of(at), .epoch = epoch_of(at));
    TOLD("P2: there are records", .timestamp = PLACES_MAX_TIMESTAMP, .offset = -1,
         .timestamp_ms = -1, .epoch = -1);
}

static void p3_places(void **state)
{
    (void)state;
    for (int64_t at = RECORDS - 1; at <= RECORDS + 1; at++)
        TOLD(at == RECORDS ? NULL : "P3: ", .timestamp = PLACES_LATEST, .offset = at,
             .timestamp_ms = -1, .epoch = 5);
    TOLD("P3: the leader epoch was", .timestamp = PLACES_LATEST, .offset = RECORDS,
         .timestamp_ms = -1, .epoch = 4);
    TOLD("P3: a time", .timestamp = PLACES_LATEST, .offset = RECORDS, .timestamp_ms = 7,
         .epoch = 5);
    TOLD(NULL, .timestamp = PLACES_EARLIEST, .offset = 0, .timestamp_ms = -1, .epoch = 0);
    TOLD("P3: it is not where the log b", .timestamp = PLACES_EARLIEST, .offset = 1,
         .timestamp_ms = -1, .epoch = 0);
    TOLD("P3: the first record's", .timestamp = PLACES_EARLIEST_LOCAL, .offset = 0,
         .timestamp_ms = -1, .epoch = 2);
    TOLD(NULL, .timestamp = PLACES_TIERED, .offset = -1, .timestamp_ms = -1, .epoch = -1);
    TOLD("P3: nothing", .timestamp = PLACES_PENDING, .offset = 0, .timestamp_ms = -1, .epoch = -1);
}

/* Where the log began may be forgotten by a crash, and be told later than by the node after it. */
static void p3_a_start_told_before_a_crash_may_come_late(void **state)
{
    (void)state;
    for (uint32_t asked_after = 1; asked_after <= 2; asked_after++) {
        struct bed *bed = bed_new();
        struct places_one one = {.version = 11, .timestamp = PLACES_EARLIEST, .current_epoch = -1};
        bed->history.restarts = 2;
        history_delete_asked(&bed->history, 0, 2);
        history_deleted(&bed->history, 0, 2, asked_after);
        places_ask(&bed->places, &one);
        one.timestamp_ms = -1;
        assert_true(places_answered(&bed->places, &one));
        assert_int_equal(history_violated(&bed->history), asked_after == 2);
        history_free(&bed->history);
        free(bed);
    }
}

static void p4_epochs(void **state)
{
    static const int64_t ends[] = {3, 3, 6, 6, 6, RECORDS};
    static const int32_t floors[] = {0, 0, 2, 2, 2, 5};
    (void)state;
    for (int32_t asked = 0; asked < 6; asked++) {
        for (int64_t end = 1; end <= RECORDS + 1; end++)
            TOLD(end == ends[asked] ? NULL : "P4: ", .timestamp = PLACES_OF_EPOCH,
                 .of_epoch = asked, .offset = end, .timestamp_ms = -1, .epoch = floors[asked]);
        TOLD("P4: the epoch is known", .timestamp = PLACES_OF_EPOCH, .of_epoch = asked,
             .offset = -1, .timestamp_ms = -1, .epoch = -1);
        TOLD("P4: half", .timestamp = PLACES_OF_EPOCH, .of_epoch = asked, .offset = ends[asked],
             .timestamp_ms = -1, .epoch = -1);
        TOLD("P4: a later epoch", .timestamp = PLACES_OF_EPOCH, .of_epoch = asked,
             .offset = ends[asked], .timestamp_ms = -1, .epoch = asked + 1);
    }
    TOLD("P4: there is an epoch", .timestamp = PLACES_OF_EPOCH, .of_epoch = 3, .offset = 6,
         .timestamp_ms = -1, .epoch = 1);
    TOLD(NULL, .timestamp = PLACES_OF_EPOCH, .of_epoch = 6, .offset = -1, .timestamp_ms = -1,
         .epoch = -1);
}

static void refused(int32_t current_epoch, int16_t error, const char *rule)
{
    told((struct places_one){.current_epoch = current_epoch,
                             .error = error,
                             .timestamp = PLACES_LATEST,
                             .offset = RECORDS,
                             .timestamp_ms = -1,
                             .epoch = 5},
         rule);
}

static void p5_refusals(void **state)
{
    (void)state;
    refused(5, KAFKA_NONE, NULL);
    refused(4, KAFKA_NONE, "P5: an old epoch");
    refused(4, KAFKA_FENCED_LEADER_EPOCH, NULL);
    refused(-1, KAFKA_FENCED_LEADER_EPOCH, "P5: no epoch");
    refused(6, KAFKA_UNKNOWN_LEADER_EPOCH, NULL);
    refused(5, KAFKA_UNKNOWN_LEADER_EPOCH, "P5: that epoch");
    refused(-1, KAFKA_UNSUPPORTED_VERSION, "P5: the version knows");
    TOLD(NULL, .version = 6, .timestamp = PLACES_MAX_TIMESTAMP, .error = KAFKA_UNSUPPORTED_VERSION);
    TOLD("P5: the version does not", .version = 6, .timestamp = PLACES_MAX_TIMESTAMP, .offset = -1,
         .timestamp_ms = -1, .epoch = -1);
    TOLD("P5: the version does not", .timestamp = PLACES_PENDING - 1, .offset = -1,
         .timestamp_ms = -1, .epoch = -1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(p1_by_time),
        cmocka_unit_test(p2_largest),
        cmocka_unit_test(p3_places),
        cmocka_unit_test(p3_a_start_told_before_a_crash_may_come_late),
        cmocka_unit_test(p4_epochs),
        cmocka_unit_test(p5_refusals),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
