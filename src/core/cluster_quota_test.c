/* cluster_quota_test.c - AlterClientQuotas as records, and changes of topics that a quota refuses.
 */
#include "core/cluster_rig.h"

#include "gen/alter_client_quotas_request.h"
#include "gen/alter_client_quotas_response.h"
#include "gen/client_quota_record.h"
#include "gen/create_partitions_request.h"
#include "gen/create_partitions_response.h"
#include "gen/delete_topics_request.h"
#include "gen/delete_topics_response.h"

typedef struct alter_client_quotas_request_entity_data part_in;
typedef struct alter_client_quotas_request_op_data op_in;
typedef struct alter_client_quotas_request_entry_data entry_in;

/* One request; the errors and the number of records, as text. */
static const char *alter(struct cluster_rig *rig, entry_in *entries, int32_t count)
{
    struct alter_client_quotas_request in = {0};
    struct alter_client_quotas_response out;
    in.entries.items = entries;
    in.entries.count = count;
    struct step *step = rig_step(rig);
    assert_int_equal(cluster_alter_client_quotas(rig->cluster, step, &in, &out), STEP_DONE);
    uint32_t records = step->record_count;
    rig_append(rig);
    rig->size = 0;
    rig_print(rig, "%u:", records);
    for (int32_t i = 0; i < out.entries.count; i++)
        rig_print(rig, " %d", out.entries.items[i].error_code);
    rig_check(rig);
    return rig->text;
}

#define ENTRY(whom, what)                                                                          \
    {                                                                                              \
        .entity = {(whom), ARRAY_SIZE(whom)}, .ops = {(what), ARRAY_SIZE(what) }                   \
    }

static void test_records(void **unused)
{
    (void)unused;
    struct cluster_rig rig;
    rig_start(&rig, 0, false);
    part_in user[] = {
        {.entity_type = VIEW("user"), .entity_name = VIEW("u")}
    };
    part_in pair[] = {
        {.entity_type = VIEW("user"),      .entity_name = VIEW_NULL},
        {.entity_type = VIEW("client-id"), .entity_name = VIEW("c")}
    };
    part_in pair_again[] = {pair[1], pair[0]};
    op_in set[] = {
        {.key = VIEW("producer_byte_rate"), .value = 10  },
        {.key = VIEW("request_percentage"), .value = 0.25}
    };
    op_in half[] = {
        {.key = VIEW("producer_byte_rate"), .value = 10 },
        {.key = VIEW("request_percentage"), .value = 0.5}
    };
    op_in unset[] = {
        {.key = VIEW("producer_byte_rate"), .remove = true},
        {.key = VIEW("consumer_byte_rate"), .remove = true}
    };
    op_in bad[] = {
        {.key = VIEW("producer_byte_rate"), .value = 11 },
        {.key = VIEW("consumer_byte_rate"), .value = 1.5}
    };
    op_in twice[] = {
        {.key = VIEW("producer_byte_rate"), .value = 11},
        {.key = VIEW("producer_byte_rate"), .value = 12}
    };
    entry_in both[] = {ENTRY(user, set), ENTRY(pair, set)};
    assert_string_equal(alter(&rig, both, 2), "4: 0 0");
    assert_string_equal(alter(&rig, both, 2), "0: 0 0"); /* Nothing differs. */
    entry_in one[] = {ENTRY(pair_again, half)};
    assert_string_equal(alter(&rig, one, 1), "1: 0"); /* The same entity in another order. */
    entry_in mixed[] = {ENTRY(user, bad), ENTRY(pair, unset)};
    assert_string_equal(alter(&rig, mixed, 2), "1: 42 0");
    entry_in doubled[] = {ENTRY(user, half), ENTRY(pair, half), ENTRY(pair_again, set)};
    assert_string_equal(alter(&rig, doubled, 3), "1: 0 42 42");
    entry_in keys[] = {ENTRY(user, twice)};
    assert_string_equal(alter(&rig, keys, 1), "0: 42");
    assert_int_equal(image_count(cluster_image(rig.cluster), IMAGE_QUOTA), 3);
    rig_stop(&rig);
}

/* Lets pass so many partitions. */
static bool charge(void *context, uint32_t partitions)
{
    int64_t *left = context;
    if (*left < 0) return false;
    *left -= partitions;
    return true;
}

static void test_refused_changes(void **unused)
{
    (void)unused;
    struct cluster_rig rig;
    int64_t left = 1;
    rig_start(&rig, 0, false);
    rig_up(&rig, 1);
    TOPIC(&rig, "old", 1);
    rig.version = 7;

    struct create_topics_request_creatable_topic topics[2];
    struct create_topics_request creation;
    struct create_topics_response created;
    wire_defaults(&wire_create_topics_request, &creation);
    for (int i = 0; i < 2; i++) {
        wire_struct_defaults(&wire_create_topics_request_creatable_topic_shape, &topics[i]);
        topics[i].name = i == 0 ? VIEW("a") : VIEW("b");
        topics[i].num_partitions = 3;
        topics[i].replication_factor = 1;
    }
    creation.topics.items = topics;
    creation.topics.count = 2;
    struct step *step = rig_step(&rig);
    step->caller.charge = charge;
    step->caller.charge_context = &left;
    assert_int_equal(cluster_create_topics(rig.cluster, step, &creation, &created), STEP_DONE);
    assert_int_equal(created.topics.items[0].error_code, KAFKA_NONE);
    assert_int_equal(created.topics.items[1].error_code, KAFKA_THROTTLING_QUOTA_EXCEEDED);
    assert_int_equal(step->record_count, 4); /* Of the first alone. */
    rig_append(&rig);
    assert_int_equal(left, -2);

    struct create_partitions_request_create_partitions_topic grown = {.name = VIEW("a"),
                                                                      .count = 5};
    struct create_partitions_request growth;
    struct create_partitions_response grew;
    wire_defaults(&wire_create_partitions_request, &growth);
    growth.timeout_ms = 10000;
    grown.assignments.count = -1;
    growth.topics.items = &grown;
    growth.topics.count = 1;
    step = rig_step(&rig);
    step->caller.charge = charge;
    step->caller.charge_context = &left;
    assert_int_equal(cluster_create_partitions(rig.cluster, step, &growth, &grew), STEP_DONE);
    assert_int_equal(grew.results.items[0].error_code, KAFKA_THROTTLING_QUOTA_EXCEEDED);
    assert_int_equal(step->record_count, 0);

    struct delete_topics_request_delete_topic_state gone = {.name = VIEW("old")};
    struct delete_topics_request deletion;
    struct delete_topics_response deleted;
    wire_defaults(&wire_delete_topics_request, &deletion);
    deletion.timeout_ms = 10000;
    deletion.topics.items = &gone;
    deletion.topics.count = 1;
    step = rig_step(&rig);
    step->caller.charge = charge;
    step->caller.charge_context = &left;
    assert_int_equal(cluster_delete_topics(rig.cluster, step, &deletion, &deleted), STEP_DONE);
    assert_int_equal(deleted.responses.items[0].error_code, KAFKA_THROTTLING_QUOTA_EXCEEDED);
    assert_int_equal(step->record_count, 0);
    rig_check(&rig);
    rig_stop(&rig);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_records),
        cmocka_unit_test(test_refused_changes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
