/* telemetry_test.c - whose turn it is to push, with a clock that the test turns; what is kept. */
#include "core/core_test.h"

#include "base/limits.h"
#include "core/telemetry.h"
#include "gen/errors.h"

struct rig {
    struct rig_mem heap;
    struct telemetry *telemetry;
    int64_t now_ms;
    uint32_t version;
    struct telemetry_wanted wanted;
};

static const struct view two[] = {
    {(const uint8_t *)"org.a.", 6, false, false},
    {(const uint8_t *)"org.b.", 6, false, false}
};

static void rig_open(struct rig *rig)
{
    *rig = (struct rig){
        .now_ms = 1000000,
        .version = 1,
        .wanted = {.interval_ms = 1000, .metrics = two, .metric_count = 2}
    };
    rig_mem_init(&rig->heap);
    rig->telemetry = telemetry_new(&rig->heap.mem, 7, 1);
    assert_non_null(rig->telemetry);
}

static void rig_close(struct rig *rig)
{
    assert_null(telemetry_free(rig->telemetry));
    assert_int_equal(rig->heap.mem.used_bytes, 0);
}

static struct telemetry_instance *client(struct rig *rig, uint8_t id, uint64_t connection)
{
    bool stale;
    struct telemetry_who who = {
        .id = {.bytes = {[0] = 9, [15] = id}},
        .connection = connection,
        .client_id = VIEW("me"),
        .now_ms = rig->now_ms,
    };
    struct telemetry_instance *instance =
        telemetry_instance(rig->telemetry, &who, rig->version, &stale);
    if (instance != NULL && stale)
        assert_true(telemetry_want(rig->telemetry, instance, &rig->wanted, rig->version));
    return instance;
}

static int16_t get(struct rig *rig)
{
    return telemetry_get(client(rig, 1, 1), rig->now_ms);
}

static int16_t push_as(struct rig *rig, struct telemetry_push push)
{
    struct telemetry_instance *instance = client(rig, 1, 1);
    if (push.subscription_id == 0) push.subscription_id = telemetry_subscription(instance);
    push.max_bytes = 100;
    push.now_ms = rig->now_ms;
    return telemetry_push(instance, &push);
}

static int16_t push(struct rig *rig)
{
    return push_as(rig, (struct telemetry_push){.size_bytes = 10});
}

static void intervals(void **state)
{
    (void)state;
    struct rig rig;
    rig_open(&rig);
    assert_int_equal(get(&rig), KAFKA_NONE);
    assert_int_equal(get(&rig), KAFKA_THROTTLING_QUOTA_EXCEEDED);
    assert_int_equal(push(&rig), KAFKA_NONE); /* The first one may come at any time. */
    assert_int_equal(push(&rig), KAFKA_THROTTLING_QUOTA_EXCEEDED);
    rig.now_ms += 999;
    assert_int_equal(push(&rig), KAFKA_THROTTLING_QUOTA_EXCEEDED);
    assert_int_equal(get(&rig), KAFKA_THROTTLING_QUOTA_EXCEEDED);
    rig.now_ms += 1;
    assert_int_equal(push(&rig), KAFKA_NONE);
    rig.now_ms += 1000;
    assert_int_equal(get(&rig), KAFKA_NONE);
    assert_int_equal(push(&rig), KAFKA_NONE);
    rig_close(&rig);
}

static void refused(void **state)
{
    (void)state;
    struct rig rig;
    rig_open(&rig);
    assert_int_equal(get(&rig), KAFKA_NONE);
    int32_t right = telemetry_subscription(client(&rig, 1, 1));
    assert_int_equal(push_as(&rig, (struct telemetry_push){.subscription_id = right + 1}),
                     KAFKA_UNKNOWN_SUBSCRIPTION_ID);
    assert_int_equal(get(&rig), KAFKA_NONE); /* It may ask again at once. */
    assert_int_equal(push_as(&rig, (struct telemetry_push){.compression = 5}),
                     KAFKA_UNSUPPORTED_COMPRESSION_TYPE);
    assert_int_equal(get(&rig), KAFKA_NONE);
    assert_int_equal(push_as(&rig, (struct telemetry_push){.size_bytes = 101}),
                     KAFKA_TELEMETRY_TOO_LARGE);
    assert_int_equal(get(&rig), KAFKA_THROTTLING_QUOTA_EXCEEDED);
    rig_close(&rig);
}

static void farewell(void **state)
{
    (void)state;
    struct rig rig;
    rig_open(&rig);
    assert_int_equal(get(&rig), KAFKA_NONE);
    assert_int_equal(push(&rig), KAFKA_NONE);
    assert_int_equal(push_as(&rig, (struct telemetry_push){.terminating = true}), KAFKA_NONE);
    for (int i = 0; i < 3; i++) {
        rig.now_ms += 5000;
        assert_int_equal(push(&rig), KAFKA_INVALID_REQUEST);
    }
    /* By another connection it begins anew. */
    struct telemetry_instance *again = client(&rig, 1, 2);
    assert_int_equal(telemetry_get(again, rig.now_ms), KAFKA_NONE);
    rig_close(&rig);
}

static void wishes_change(void **state)
{
    (void)state;
    struct rig rig;
    rig_open(&rig);
    assert_int_equal(get(&rig), KAFKA_NONE);
    assert_int_equal(push(&rig), KAFKA_NONE);
    int32_t before = telemetry_subscription(client(&rig, 1, 1));
    rig.version++; /* Something changed, not for this one. */
    assert_int_equal(telemetry_subscription(client(&rig, 1, 1)), before);
    assert_int_equal(push(&rig), KAFKA_THROTTLING_QUOTA_EXCEEDED);
    rig.version++;
    rig.wanted.metric_count = 1;
    assert_int_not_equal(telemetry_subscription(client(&rig, 1, 1)), before);
    assert_int_equal(push_as(&rig, (struct telemetry_push){.subscription_id = before}),
                     KAFKA_UNKNOWN_SUBSCRIPTION_ID);
    assert_int_equal(get(&rig), KAFKA_NONE);
    assert_int_equal(push(&rig), KAFKA_NONE);
    /* The same wishes in another order are the same subscription; never above five minutes. */
    struct view turned[] = {two[1], two[0]};
    rig.wanted.metric_count = 2;
    rig.wanted.metrics = turned;
    rig.version++;
    assert_int_equal(telemetry_subscription(client(&rig, 1, 1)), before);
    rig.wanted.interval_ms = 3600000;
    rig.version++;
    assert_int_equal(telemetry_wanted(client(&rig, 1, 1))->interval_ms, 300000);
    rig_close(&rig);
}

/* ---- values ---------------------------------------------------------------------------------- */

struct told {
    char text[512];
    double value;
    uint32_t count;
};

static void tell(void *context, const struct telemetry_series *series)
{
    struct told *told = context;
    assert_true(series->labels.size < sizeof(told->text));
    memcpy(told->text, series->labels.data, series->labels.size);
    told->text[series->labels.size] = '\0';
    told->value = series->value;
    told->count++;
}

static void values(void **state)
{
    (void)state;
    struct rig rig;
    rig_open(&rig);
    struct telemetry_instance *instance = client(&rig, 1, 1);
    /* Attribute "node.id" = "a\"b" in field 7. */
    static const uint8_t body[] = {0x3a, 16,  0x0a, 7,    'n',  'o', 'd', 'e', '.',
                                   'i',  'd', 0x12, 0x05, 0x0a, 3,   'a', '"', 'b'};
    struct otlp_point point = {
        .name = VIEW("org.a.total"),
        .kind = OTLP_SUM,
        .delta = true,
        .value = 2,
        .body = view_of(body, sizeof(body)),
        .attributes = 7,
    };
    struct told told = {.count = 0};
    assert_true(telemetry_keep(rig.telemetry, instance, &point));
    assert_true(telemetry_keep(rig.telemetry, instance, &point));
    telemetry_each(rig.telemetry, tell, &told);
    assert_int_equal(told.count, 1);
    assert_string_equal(told.text, "metric=\"org.a.total\",node_id=\"a\\\"b\"");
    assert_true(told.value == 4);
    point.delta = false;
    point.value = 9;
    assert_true(telemetry_keep(rig.telemetry, instance, &point));
    telemetry_each(rig.telemetry, tell, &told);
    assert_true(told.value == 9);
    point.name = VIEW("org.c.total"); /* Nobody asked for it. */
    assert_false(telemetry_keep(rig.telemetry, instance, &point));
    assert_int_equal(telemetry_series_count(rig.telemetry), 1);
    /* Silent for a minute. */
    telemetry_expire(rig.telemetry, rig.now_ms + 59999);
    assert_int_equal(telemetry_instance_count(rig.telemetry), 1);
    telemetry_expire(rig.telemetry, rig.now_ms + 60000);
    assert_int_equal(telemetry_instance_count(rig.telemetry), 0);
    assert_int_equal(telemetry_series_count(rig.telemetry), 0);
    rig_close(&rig);
}

static void bounded(void **state)
{
    (void)state;
    struct rig rig;
    char name[TELEMETRY_LABELS_MAX + 1];
    rig_open(&rig);
    struct telemetry_instance *instance = client(&rig, 1, 1);
    struct otlp_point point = {.body = VIEW_EMPTY, .attributes = 7, .value = 1};
    uint32_t kept = 0;
    for (int i = 0; i < (int)TELEMETRY_INSTANCE_SERIES_MAX + 10; i++) {
        memcpy(name, "org.a.00000", 12);
        for (int at = 10, left = i; left > 0; left /= 10)
            name[at--] = (char)('0' + left % 10);
        point.name = view_of_string(name);
        kept += telemetry_keep(rig.telemetry, instance, &point);
    }
    assert_int_equal(kept, TELEMETRY_INSTANCE_SERIES_MAX);
    memset(name, 'x', sizeof(name));
    memcpy(name, "org.a.", 6);
    point.name = view_of(name, sizeof(name));
    assert_false(telemetry_keep(rig.telemetry, client(&rig, 2, 1), &point));
    for (uint32_t i = 0; i < TELEMETRY_INSTANCES_MAX + 5; i++) {
        bool stale;
        struct telemetry_who who = {.id = {.bytes = {[0] = (uint8_t)i, [1] = (uint8_t)(i >> 8), 1}},
                                    .now_ms = rig.now_ms};
        assert_non_null(telemetry_instance(rig.telemetry, &who, 1, &stale));
    }
    assert_int_equal(telemetry_instance_count(rig.telemetry), TELEMETRY_INSTANCES_MAX);
    rig_close(&rig);
}

/* Every allocation fails once. */
static void no_memory(void **state)
{
    (void)state;
    for (int64_t n = 0; n < 6; n++) {
        struct rig rig;
        bool stale;
        rig_open(&rig);
        struct telemetry_who who = {.id = {.bytes = {1}}, .now_ms = rig.now_ms};
        struct otlp_point point = {.name = VIEW("org.a.x"), .body = VIEW_EMPTY, .attributes = 7};
        rig.heap.fail_in = n;
        struct telemetry_instance *instance = telemetry_instance(rig.telemetry, &who, 1, &stale);
        if (instance != NULL && telemetry_want(rig.telemetry, instance, &rig.wanted, 1))
            (void)!telemetry_keep(rig.telemetry, instance, &point);
        rig.heap.fail_in = -1;
        rig_close(&rig);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(intervals),     cmocka_unit_test(refused), cmocka_unit_test(farewell),
        cmocka_unit_test(wishes_change), cmocka_unit_test(values),  cmocka_unit_test(bounded),
        cmocka_unit_test(no_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
