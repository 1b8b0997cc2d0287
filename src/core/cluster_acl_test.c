/* cluster_acl_test.c - CreateAcls, DeleteAcls, DescribeAcls: checks in order, filters, doubles. */
#include "core/cluster_rig.h"

#include "gen/access_control_entry_record.h"
#include "gen/create_acls_request.h"
#include "gen/create_acls_response.h"
#include "gen/delete_acls_request.h"
#include "gen/delete_acls_response.h"
#include "gen/describe_acls_request.h"
#include "gen/describe_acls_response.h"

#define TOPIC_TYPE 2
#define ANY        1
#define LITERAL    3
#define PREFIXED   4
#define READ       3
#define ALLOW      3

static struct view authorizer(void *context, struct view name)
{
    (void)context;
    return view_is(name, "authorizer.class.name") ? VIEW("org.example.Authorizer") : VIEW_NULL;
}

/* One entry; its error and the number of records. */
static const char *create(struct cluster_rig *rig,
                          struct create_acls_request_acl_creation *entries,
                          int32_t count)
{
    struct create_acls_request in = {0};
    struct create_acls_response out;
    wire_defaults(&wire_create_acls_response, &out);
    in.creations.items = entries;
    in.creations.count = count;
    struct step *step = rig_step(rig);
    assert_int_equal(cluster_create_acls(rig->cluster, step, &in, &out), STEP_DONE);
    uint32_t records = step->record_count;
    rig_append(rig);
    rig->size = 0;
    rig_print(rig, "%u:", records);
    for (int32_t i = 0; i < out.results.count; i++)
        rig_print(rig, " %d", out.results.items[i].error_code);
    rig_check(rig);
    return rig->text;
}

static struct create_acls_request_acl_creation good(const char *topic, int8_t pattern)
{
    return (struct create_acls_request_acl_creation){
        .resource_type = TOPIC_TYPE,
        .resource_name = view_of_string(topic),
        .resource_pattern_type = pattern,
        .principal = VIEW("User:alice"),
        .host = VIEW("*"),
        .operation = READ,
        .permission_type = ALLOW,
    };
}

static void test_checks(void **state)
{
    (void)state;
    struct cluster_rig rig;
    rig_start_with(&rig, 0, false, authorizer);
    struct create_acls_request_acl_creation bad[10];
    for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
        bad[i] = good("t", LITERAL);
    bad[0].resource_type = 4; /* The cluster has one name. */
    bad[1].resource_name = VIEW("");
    bad[2].resource_type = ANY;
    bad[3].resource_pattern_type = ANY;
    bad[4].operation = 77;
    bad[5].permission_type = ANY;
    bad[6].principal = VIEW("alice");
    bad[7].host = VIEW("");
    bad[8].host = VIEW("10.0.0.0/33");
    assert_string_equal(create(&rig, bad, 10), "1: 42 42 42 42 42 42 42 42 42 0");
    static const struct {
        struct view host;
        int16_t error;
    } hosts[] = {
        {VIEW("10.0.0.0/8"),          KAFKA_NONE           },
        {VIEW("fe80::/10"),           KAFKA_NONE           },
        {VIEW("::ffff:10.0.0.0/104"), KAFKA_INVALID_REQUEST},
        {VIEW("a/8"),                 KAFKA_INVALID_REQUEST},
        {VIEW("10.0.0.0/"),           KAFKA_INVALID_REQUEST},
        {VIEW("any text"),            KAFKA_NONE           },
    };
    for (size_t i = 0; i < ARRAY_SIZE(hosts); i++) {
        struct create_acls_request_acl_creation entry = good("h", LITERAL);
        char wanted[16];
        entry.host = hosts[i].host;
        (void)snprintf(wanted, sizeof(wanted), "%d: %d", hosts[i].error == 0, hosts[i].error);
        assert_string_equal(create(&rig, &entry, 1), wanted);
    }
    /* What exists already, or comes twice, is written once. */
    struct create_acls_request_acl_creation twice[] = {good("t", LITERAL), good("u", LITERAL),
                                                       good("u", LITERAL)};
    assert_string_equal(create(&rig, twice, 3), "1: 0 0 0");
    rig_stop(&rig);
    rig_start(&rig, 0, false); /* Without an authorizer nothing is managed. */
    assert_string_equal(create(&rig, twice, 3), "0: 54 54 54");
    rig_stop(&rig);
    rig_start_with(&rig, 25, false, authorizer); /* Below 4.4-IV1 there are no ranges. */
    struct create_acls_request_acl_creation range = good("h", LITERAL);
    range.host = VIEW("10.0.0.0/8");
    assert_string_equal(create(&rig, &range, 1), "0: 35");
    rig_stop(&rig);
}

/* Names of what a filter means, as DescribeAcls tells it: by resource, in order. */
static const char *describe(struct cluster_rig *rig, int8_t pattern, const char *name)
{
    struct describe_acls_request in = {
        .resource_type_filter = ANY,
        .resource_name_filter = name == NULL ? VIEW_NULL : view_of_string(name),
        .pattern_type_filter = pattern,
        .principal_filter = VIEW_NULL,
        .host_filter = VIEW_NULL,
        .operation = ANY,
        .permission_type = ANY,
    };
    struct describe_acls_response out;
    wire_defaults(&wire_describe_acls_response, &out);
    struct step *step = rig_step(rig);
    assert_int_equal(
        cluster_describe_acls(rig->cluster, cluster_image(rig->cluster), step, &in, &out),
        STEP_DONE);
    rig->size = 0;
    rig_print(rig, "%d", out.error_code);
    for (int32_t i = 0; i < out.resources.count; i++)
        rig_print(rig, " %.*s%s/%d", (int)out.resources.items[i].resource_name.size,
                  (const char *)out.resources.items[i].resource_name.data,
                  out.resources.items[i].pattern_type == PREFIXED ? "..." : "",
                  out.resources.items[i].acls.count);
    return rig->text;
}

static const char *erase(struct cluster_rig *rig,
                         struct delete_acls_request_delete_acls_filter *filters,
                         int32_t count)
{
    struct delete_acls_request in = {0};
    struct delete_acls_response out;
    wire_defaults(&wire_delete_acls_response, &out);
    in.filters.items = filters;
    in.filters.count = count;
    struct step *step = rig_step(rig);
    assert_int_equal(cluster_delete_acls(rig->cluster, step, &in, &out), STEP_DONE);
    uint32_t records = step->record_count;
    rig_append(rig);
    rig->size = 0;
    rig_print(rig, "%u:", records);
    for (int32_t i = 0; i < out.filter_results.count; i++)
        rig_print(rig, " %d/%d", out.filter_results.items[i].error_code,
                  out.filter_results.items[i].matching_acls.count);
    rig_check(rig);
    return rig->text;
}

static void test_filters(void **state)
{
    (void)state;
    struct cluster_rig rig;
    rig_start_with(&rig, 0, false, authorizer);
    struct create_acls_request_acl_creation entries[] = {
        good("orders", LITERAL), good("ord", PREFIXED), good("*", LITERAL), good("orders", LITERAL),
        good("other", LITERAL)};
    entries[3].principal = VIEW("User:bob");
    assert_string_equal(create(&rig, entries, 5), "5: 0 0 0 0 0");
    assert_string_equal(describe(&rig, ANY, NULL), "0 */1 orders/2 other/1 ord.../1");
    assert_string_equal(describe(&rig, LITERAL, "orders"), "0 orders/2");
    assert_string_equal(describe(&rig, PREFIXED, "orders"), "0");
    assert_string_equal(describe(&rig, 2, "orders"), "0 */1 orders/2 ord.../1"); /* MATCH */
    assert_string_equal(describe(&rig, ANY, "ord"), "0 ord.../1");
    assert_string_equal(describe(&rig, 9, NULL), "0"); /* An unknown pattern. */
    struct delete_acls_request_delete_acls_filter filters[] = {
        {.resource_type_filter = TOPIC_TYPE,
         .resource_name_filter = VIEW("orders"),
         .pattern_type_filter = LITERAL,
         .principal_filter = VIEW("User:bob"),
         .host_filter = VIEW_NULL,
         .operation = ANY,
         .permission_type = ANY},
        {.resource_type_filter = ANY,
         .resource_name_filter = VIEW("orders"),
         .pattern_type_filter = 2,
         .principal_filter = VIEW_NULL,
         .host_filter = VIEW_NULL,
         .operation = READ,
         .permission_type = ALLOW},
        {.resource_type_filter = 99,
         .pattern_type_filter = ANY,
         .operation = ANY,
         .permission_type = ANY                                   },
        {.resource_type_filter = ANY,
         .pattern_type_filter = ANY,
         .operation = 99,
         .permission_type = ANY                                    },
    };
    /* What two filters mean is listed twice and removed once. */
    assert_string_equal(erase(&rig, filters, 4), "4: 0/1 0/4 42/0 42/0");
    assert_string_equal(describe(&rig, ANY, NULL), "0 other/1");
    assert_string_equal(erase(&rig, filters, 2), "0: 0/0 0/0");
    rig_stop(&rig);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_checks),
        cmocka_unit_test(test_filters),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
