/* quorum_check_test.c - each rule of quorum_check.h is seen to be broken, and only then.
 *
 * An image of two brokers and one partition is made from records, then something is done that no
 * controller may do. */
#include "sim/quorum_check.h"

#include "core/core_test.h"

#include "core/step.h"
#include "gen/broker_registration_change_record.h"
#include "gen/feature_level_record.h"
#include "gen/partition_change_record.h"
#include "gen/partition_record.h"
#include "gen/register_broker_record.h"
#include "gen/topic_record.h"

#define SESSION_US 4000000

struct bed {
    struct rig_mem heap;
    struct history history;
    struct quorum_check check;
    struct image *image;
    int64_t offset;
    int64_t silent_us;
};

static const struct uuid topic_id = {{7}};

static void put(struct bed *bed, const struct wire_message *message, int16_t version, void *value)
{
    struct step_record record = {
        .value = {.message = message, .value = value, .version = version}
    };
    if (image_apply(bed->image, &record, bed->offset, bed->offset) != IMAGE_OK)
        fail_msg("%s: %s", message->name, image_fault(bed->image));
    bed->offset++;
}

static void put_broker(struct bed *bed, int32_t id, int64_t epoch, uint8_t incarnation)
{
    struct register_broker_record record;
    wire_defaults(&wire_register_broker_record, &record);
    record.broker_id = id;
    record.broker_epoch = epoch;
    record.incarnation_id.bytes[0] = incarnation;
    record.fenced = false;
    put(bed, &wire_register_broker_record, 3, &record);
}

static void put_fence(struct bed *bed, int32_t id, int64_t epoch)
{
    struct broker_registration_change_record record;
    wire_defaults(&wire_broker_registration_change_record, &record);
    record.broker_id = id;
    record.broker_epoch = epoch;
    record.fenced = 1;
    put(bed, &wire_broker_registration_change_record, 0, &record);
}

static void put_change(struct bed *bed, int32_t leader, int32_t *isr, int32_t isr_count)
{
    struct partition_change_record record;
    wire_defaults(&wire_partition_change_record, &record);
    record.partition_id = 0;
    record.topic_id = topic_id;
    record.leader = leader;
    record.isr.items = isr;
    record.isr.count = isr_count;
    put(bed, &wire_partition_change_record, 0, &record);
}

/* Brokers 2 and 3, and a partition that `leader` leads in its first epochs. */
static void image_begin(struct bed *bed, int32_t leader, int64_t epoch)
{
    struct feature_level_record feature;
    struct topic_record topic;
    struct partition_record partition;
    int32_t brokers[] = {2, 3};
    image_free(bed->image);
    bed->image = image_new(&bed->heap.mem, 1);
    bed->offset = 1;
    wire_defaults(&wire_feature_level_record, &feature);
    feature.name = VIEW("metadata.version");
    feature.feature_level = 30;
    put(bed, &wire_feature_level_record, 0, &feature);
    put_broker(bed, 2, epoch, 1);
    put_broker(bed, 3, 9, 2);
    wire_defaults(&wire_topic_record, &topic);
    topic.name = VIEW("t");
    topic.topic_id = topic_id;
    put(bed, &wire_topic_record, 0, &topic);
    wire_defaults(&wire_partition_record, &partition);
    partition.partition_id = 0;
    partition.topic_id = topic_id;
    partition.leader = leader;
    partition.leader_epoch = partition.partition_epoch = 0;
    partition.replicas.items = partition.isr.items = brokers;
    partition.replicas.count = partition.isr.count = 2;
    put(bed, &wire_partition_record, 0, &partition);
}

static int64_t world_us(void *context, int64_t wall_ms)
{
    (void)context;
    return wall_ms * 1000;
}

static void bed_begin(struct bed *bed)
{
    *bed = (struct bed){.silent_us = 0};
    rig_mem_init(&bed->heap);
    quorum_check_init(&bed->check, &bed->history, SESSION_US);
    bed->check.world_us = world_us;
    image_begin(bed, 2, 8);
    quorum_check_image(&bed->check, bed->image, bed->silent_us / 1000);
    assert_string_equal(bed->history.violation, "");
}

/* The image as it is now breaks this rule; NULL: none. */
static void bed_end(struct bed *bed, const char *rule)
{
    quorum_check_image(&bed->check, bed->image, bed->silent_us / 1000);
    if (rule == NULL)
        assert_string_equal(bed->history.violation, "");
    else
        assert_int_equal(strncmp(bed->history.violation, rule, strlen(rule)), 0);
    bed->image = image_free(bed->image);
    quorum_check_free(&bed->check);
    assert_int_equal(bed->heap.mem.used_bytes, 0);
}

static void q1_committed_for_ever(void **state)
{
    struct bed bed;
    (void)state;
    bed_begin(&bed);
    quorum_check_record(&bed.check, 5, 1, VIEW("a"));
    quorum_check_record(&bed.check, 5, 1, VIEW("a"));
    assert_string_equal(bed.history.violation, "");
    quorum_check_record(&bed.check, 5, 1, VIEW("b"));
    bed_end(&bed, "Q1: offset 5");

    bed_begin(&bed);
    quorum_check_record(&bed.check, 5, 1, VIEW("a"));
    quorum_check_record(&bed.check, 5, 2, VIEW("a"));
    bed_end(&bed, "Q1: offset 5");

    bed_begin(&bed);
    quorum_check_record(&bed.check, 5, 1, VIEW("a"));
    quorum_check_high_watermark(&bed.check, 6);
    assert_string_equal(bed.history.violation, "");
    quorum_check_high_watermark(&bed.check, 5);
    bed_end(&bed, "Q1: the metadata log was");
}

static void q2_one_leader_in_an_epoch(void **state)
{
    struct bed bed;
    int32_t both[] = {3, 2}, first[] = {2};
    (void)state;
    bed_begin(&bed);
    image_begin(&bed, 3, 8);
    bed_end(&bed, "Q2: t-0: leaders 2 and 3");

    bed_begin(&bed); /* A new leader epoch is none of this. */
    put_change(&bed, 3, both, 2);
    quorum_check_image(&bed.check, bed.image, bed.silent_us / 1000);
    assert_int_equal(bed.check.elections, 1);
    bed_end(&bed, NULL);

    bed_begin(&bed);
    put_change(&bed, 3, both, 2);
    quorum_check_image(&bed.check, bed.image, bed.silent_us / 1000);
    image_begin(&bed, 2, 8);
    bed_end(&bed, "Q2: t-0: its epochs go back");

    bed_begin(&bed); /* The same partition epoch, by another way. */
    put_change(&bed, -2, first, 1);
    quorum_check_image(&bed.check, bed.image, bed.silent_us / 1000);
    image_begin(&bed, 2, 8);
    put_change(&bed, -2, both, 2);
    bed_end(&bed, "Q2: t-0");
}

static void q3_no_leader_is_fenced(void **state)
{
    struct bed bed;
    int32_t other[] = {3};
    (void)state;
    bed_begin(&bed);
    put_fence(&bed, 2, 8);
    bed_end(&bed, "Q3: t-0: its leader 2 is fenced");

    bed_begin(&bed);
    put_change(&bed, 2, other, 1);
    bed_end(&bed, "Q3: t-0: its leader 2 is not in sync");
}

static void q4_who_is_in_sync(void **state)
{
    struct bed bed;
    int32_t first[] = {2};
    (void)state;
    bed_begin(&bed);
    put_fence(&bed, 3, 9);
    bed_end(&bed, "Q4: t-0: broker 3 is fenced");

    bed_begin(&bed);
    put_change(&bed, -1, first, 1);
    bed_end(&bed, "Q4: t-0 has no leader, and broker 2 could");

    bed_begin(&bed); /* From a snapshot: it may have come back by another directory since. */
    bed.silent_us = -1000;
    put_change(&bed, -1, first, 1);
    bed_end(&bed, NULL);

    bed_begin(&bed); /* The last one stays, fenced as it is. */
    put_change(&bed, -1, first, 1);
    put_fence(&bed, 2, 8);
    bed_end(&bed, NULL);
}

static void q5_epochs_grow(void **state)
{
    struct bed bed;
    (void)state;
    bed_begin(&bed);
    image_begin(&bed, 2, 6);
    bed_end(&bed, "Q5: broker 2: epoch 6 after 8");

    bed_begin(&bed);
    image_begin(&bed, 2, 12);
    bed_end(&bed, "Q5: broker 2: epoch 12 of an incarnation that has another");

    bed_begin(&bed); /* Unless it was forgotten meanwhile. */
    bed.check.brokers[2].unregistered++;
    image_begin(&bed, 2, 12);
    bed_end(&bed, NULL);

    bed_begin(&bed);
    put_broker(&bed, 2, 8, 5);
    bed_end(&bed, "Q5: broker 2: epoch 8 of two incarnations");
}

static void q6_images_are_equal(void **state)
{
    struct bed bed, other;
    (void)state;
    bed_begin(&bed);
    bed_begin(&other);
    quorum_check_equal(&bed.check, bed.image, other.image, "a copy");
    assert_string_equal(bed.history.violation, "");
    put_broker(&other, 4, 20, 5);
    quorum_check_equal(&bed.check, bed.image, other.image, "a copy");
    bed_end(&bed, "Q6: a copy");
    bed_end(&other, NULL);
}

/* Broker 3 is fenced, and that was decided at `silent_us`; its heartbeat was sent then, and was
 * answered before or after the fencing was seen. */
static void fenced_for_silence(int64_t fenced_us, int64_t sent_us, bool late, const char *rule)
{
    struct bed bed;
    int32_t first[] = {2};
    bed_begin(&bed);
    bed.silent_us = fenced_us;
    if (!late) quorum_check_spoke(&bed.check, 3, 9, sent_us);
    put_change(&bed, -2, first, 1);
    put_fence(&bed, 3, 9);
    quorum_check_image(&bed.check, bed.image, bed.silent_us / 1000);
    assert_int_equal(bed.check.silences, 1);
    if (late) quorum_check_spoke(&bed.check, 3, 9, sent_us);
    bed_end(&bed, rule);
}

static void q7_who_spoke_is_not_fenced(void **state)
{
    (void)state;
    for (int late = 0; late < 2; late++) {
        fenced_for_silence(10000000, 7000000, late, "Q7: broker 3");
        fenced_for_silence(10000000, 5000000, late, NULL);  /* The session was over. */
        fenced_for_silence(10000000, 9000000, late, NULL);  /* It may not have arrived. */
        fenced_for_silence(10000000, 11000000, late, NULL); /* It came later. */
    }
}

/* Who asked for it may be fenced at any time. */
static void q7_who_asked_may_be_fenced(void **state)
{
    struct bed bed;
    int32_t first[] = {2};
    (void)state;
    bed_begin(&bed);
    bed.silent_us = 10000000;
    quorum_check_asked(&bed.check, 3, 9);
    quorum_check_spoke(&bed.check, 3, 9, 7000000);
    put_change(&bed, -2, first, 1);
    put_fence(&bed, 3, 9);
    bed_end(&bed, NULL);
}

/* A heartbeat that came while the controller stood still is as new as its going on. */
static void q7_who_spoke_to_a_stalled_controller(void **state)
{
    struct bed bed;
    (void)state;
    for (int spoke = 0; spoke < 2; spoke++) {
        int32_t first[] = {2};
        bed_begin(&bed);
        bed.silent_us = 20001000;
        quorum_check_stands(&bed.check, 10000000, 15000000);
        quorum_check_stands(&bed.check, 13000000, 20000000);
        quorum_check_spoke(&bed.check, 3, 9, spoke ? 10500000 : 9500000);
        put_change(&bed, -2, first, 1);
        put_fence(&bed, 3, 9);
        bed_end(&bed, spoke ? "Q7: broker 3" : NULL);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(q1_committed_for_ever),
        cmocka_unit_test(q2_one_leader_in_an_epoch),
        cmocka_unit_test(q3_no_leader_is_fenced),
        cmocka_unit_test(q4_who_is_in_sync),
        cmocka_unit_test(q5_epochs_grow),
        cmocka_unit_test(q6_images_are_equal),
        cmocka_unit_test(q7_who_spoke_is_not_fenced),
        cmocka_unit_test(q7_who_asked_may_be_fenced),
        cmocka_unit_test(q7_who_spoke_to_a_stalled_controller),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
