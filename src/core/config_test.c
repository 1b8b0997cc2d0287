/* config_test.c - the table against itself, values good and bad, rules over several settings. */
#include "core/core_test.h"

#include "core/config.h"

static enum config_fault check(enum config_scope scope, const char *name, const char *value)
{
    const struct config_def *def = config_find(scope, view_of_string(name));
    assert_non_null(def);
    return config_check(def, view_of_string(value));
}

static void test_table(void **state)
{
    static const enum config_scope scopes[] = {CONFIG_BROKER, CONFIG_TOPIC, CONFIG_GROUP,
                                               CONFIG_CLIENT_METRICS};
    uint32_t total = 0;
    for (uint32_t s = 0; s < ARRAY_SIZE(scopes); s++) {
        uint32_t count;
        const struct config_def *all = config_all(scopes[s], &count);
        total += count;
        for (uint32_t i = 0; i < count; i++) {
            const struct config_def *def = &all[i];
            assert_ptr_equal(config_find(scopes[s], view_of_string(def->name)), def);
            /* A default is a value that could be set; a list may be empty until it is. */
            struct view value = view_of_string(def->default_text);
            if (!value.null && !(value.size == 0 && def->not_empty))
                assert_int_equal(config_check(def, value), CONFIG_OK);
            for (uint32_t j = 0; def->synonyms != NULL && def->synonyms[j] != NULL; j++)
                assert_non_null(config_find(CONFIG_BROKER, view_of_string(def->synonyms[j])));
        }
    }
    assert_true(total > 440);
    assert_null(config_find(CONFIG_TOPIC, VIEW("no.such.thing")));
    assert_null(config_find(CONFIG_TOPIC, VIEW("num.partitions")));
}

static void test_numbers(void **state)
{
    assert_int_equal(check(CONFIG_TOPIC, "retention.ms", "-1"), CONFIG_OK);
    assert_int_equal(check(CONFIG_TOPIC, "retention.ms", " 100 "), CONFIG_OK);
    assert_int_equal(check(CONFIG_TOPIC, "retention.ms", "-2"), CONFIG_E_RANGE);
    assert_int_equal(check(CONFIG_TOPIC, "retention.ms", "x"), CONFIG_E_PARSE);
    assert_int_equal(check(CONFIG_TOPIC, "retention.ms", ""), CONFIG_E_PARSE);
    assert_int_equal(check(CONFIG_TOPIC, "retention.ms", NULL), CONFIG_E_NULL);
    assert_int_equal(check(CONFIG_TOPIC, "retention.ms", "9223372036854775807"), CONFIG_OK);
    assert_int_equal(check(CONFIG_TOPIC, "retention.ms", "9223372036854775808"), CONFIG_E_PARSE);
    assert_int_equal(check(CONFIG_TOPIC, "retention.bytes", "-9223372036854775808"), CONFIG_OK);
    assert_int_equal(check(CONFIG_TOPIC, "retention.bytes", "-9223372036854775809"),
                     CONFIG_E_PARSE);
    assert_int_equal(check(CONFIG_TOPIC, "segment.bytes", "2147483647"), CONFIG_OK);
    assert_int_equal(check(CONFIG_TOPIC, "segment.bytes", "2147483648"), CONFIG_E_PARSE);
    assert_int_equal(check(CONFIG_TOPIC, "segment.bytes", "1048575"), CONFIG_E_RANGE);
    assert_int_equal(check(CONFIG_TOPIC, "compression.gzip.level", "0"), CONFIG_E_RANGE);
    assert_int_equal(check(CONFIG_TOPIC, "compression.gzip.level", "-1"), CONFIG_OK);
    assert_int_equal(check(CONFIG_TOPIC, "compression.gzip.level", "9"), CONFIG_OK);
    assert_int_equal(check(CONFIG_TOPIC, "min.cleanable.dirty.ratio", "1.01"), CONFIG_E_RANGE);
    assert_int_equal(check(CONFIG_TOPIC, "min.cleanable.dirty.ratio", "5e-1"), CONFIG_OK);
    assert_int_equal(check(CONFIG_TOPIC, "min.cleanable.dirty.ratio", ".5"), CONFIG_OK);
    assert_int_equal(check(CONFIG_TOPIC, "min.cleanable.dirty.ratio", "."), CONFIG_E_PARSE);
    assert_int_equal(check(CONFIG_TOPIC, "min.cleanable.dirty.ratio", "1e999"), CONFIG_E_PARSE);
}

static void test_words(void **state)
{
    assert_int_equal(check(CONFIG_TOPIC, "preallocate", "TRUE"), CONFIG_OK);
    assert_int_equal(check(CONFIG_TOPIC, "preallocate", "yes"), CONFIG_E_PARSE);
    assert_int_equal(check(CONFIG_TOPIC, "compression.type", "zstd"), CONFIG_OK);
    assert_int_equal(check(CONFIG_TOPIC, "compression.type", "ZSTD"), CONFIG_E_VALUE);
    assert_int_equal(check(CONFIG_TOPIC, "compression.type", "none"), CONFIG_E_VALUE);
    assert_int_equal(check(CONFIG_BROKER, "group.consumer.migration.policy", "upgrade"), CONFIG_OK);
    assert_int_equal(check(CONFIG_TOPIC, "cleanup.policy", "compact, delete"), CONFIG_OK);
    assert_int_equal(check(CONFIG_TOPIC, "cleanup.policy", ""), CONFIG_OK);
    assert_int_equal(check(CONFIG_TOPIC, "cleanup.policy", "delete,,compact"), CONFIG_E_EMPTY);
    assert_int_equal(check(CONFIG_TOPIC, "cleanup.policy", "Delete"), CONFIG_E_VALUE);
    assert_int_equal(check(CONFIG_BROKER, "listeners", ""), CONFIG_E_EMPTY);
    const char *throttled = "leader.replication.throttled.replicas";
    assert_int_equal(check(CONFIG_TOPIC, throttled, "*"), CONFIG_OK);
    assert_int_equal(check(CONFIG_TOPIC, throttled, "0:1,1:2"), CONFIG_OK);
    assert_int_equal(check(CONFIG_TOPIC, throttled, "0:1,*"), CONFIG_E_VALUE);
    assert_int_equal(check(CONFIG_TOPIC, throttled, "0"), CONFIG_E_VALUE);
    const char *reset = "share.auto.offset.reset";
    assert_int_equal(check(CONFIG_GROUP, reset, "earliest"), CONFIG_OK);
    assert_int_equal(check(CONFIG_GROUP, reset, "by_duration:P1DT2H3M4.5S"), CONFIG_OK);
    assert_int_equal(check(CONFIG_GROUP, reset, "by_duration:PT10S"), CONFIG_OK);
    assert_int_equal(check(CONFIG_GROUP, reset, "by_duration:P10S"), CONFIG_E_VALUE);
    assert_int_equal(check(CONFIG_GROUP, reset, "by_duration:"), CONFIG_E_VALUE);
    assert_int_equal(check(CONFIG_GROUP, reset, "by_duration:pt10s"), CONFIG_OK);
    assert_int_equal(check(CONFIG_GROUP, reset, "never"), CONFIG_E_VALUE);
    assert_int_equal(check(CONFIG_GROUP, reset, "Earliest"), CONFIG_E_VALUE);
    assert_int_equal(check(CONFIG_GROUP, reset, "BY_DURATION:PT10S"), CONFIG_E_VALUE);
    const char *tags = "streams.rack.aware.assignment.tags";
    assert_int_equal(check(CONFIG_GROUP, tags, "a,b,A"), CONFIG_OK);
    assert_int_equal(check(CONFIG_GROUP, tags, "a,b, a"), CONFIG_E_VALUE);
    const char *dead_letters = "errors.deadletterqueue.topic.name";
    assert_int_equal(check(CONFIG_GROUP, dead_letters, "_x"), CONFIG_OK);
    assert_int_equal(check(CONFIG_GROUP, dead_letters, " __x"), CONFIG_E_VALUE);
}

static void test_long(void **state)
{
    static char text[32768];
    memset(text, 'a', sizeof(text));
    const struct config_def *def = config_find(CONFIG_BROKER, VIEW("broker.rack"));
    assert_int_equal(config_check(def, view_of(text, 32767)), CONFIG_OK);
    assert_int_equal(config_check(def, view_of(text, 32768)), CONFIG_E_LONG);
}

static void test_nearest(void **state)
{
    const struct config_def *def = config_nearest(CONFIG_TOPIC, VIEW("retention.msec"));
    assert_string_equal(def->name, "retention.ms");
    def = config_nearest(CONFIG_BROKER, VIEW("log.retenton.hours"));
    assert_string_equal(def->name, "log.retention.hours");
    assert_null(config_nearest(CONFIG_TOPIC, VIEW("completely.different.thing")));
}

static void test_lists(void **state)
{
    assert_true(config_list_has(VIEW(" a , b"), VIEW("b")));
    assert_false(config_list_has(VIEW("ab"), VIEW("b")));
    assert_false(config_list_has(VIEW_NULL, VIEW("b")));
    assert_false(config_list_has(VIEW("  "), VIEW("")));
    assert_true(config_list_has(VIEW("a,"), VIEW("")));
}

/* Overrides over the defaults. */
struct pair {
    const char *name;
    const char *value;
};

static struct view lookup_pairs(void *context, struct view name)
{
    for (const struct pair *pair = context; pair->name != NULL; pair++)
        if (view_is(name, pair->name)) return view_of_string(pair->value);
    return view_of_string(config_find(CONFIG_TOPIC, name)->default_text);
}

static void test_cross_rules(void **state)
{
    struct pair none[] = {
        {NULL, NULL}
    };
    assert_null(config_check_topic(lookup_pairs, none));
    struct pair lag[] = {
        {"min.compaction.lag.ms", "10"},
        {"max.compaction.lag.ms", "9" },
        {NULL,                    NULL}
    };
    assert_non_null(config_check_topic(lookup_pairs, lag));
    lag[1].value = "10";
    assert_null(config_check_topic(lookup_pairs, lag));
    struct pair tiered[] = {
        {"remote.storage.enable", "true"},
        {"local.retention.ms",    "200" },
        {"retention.ms",          "100" },
        {NULL,                    NULL  }
    };
    assert_non_null(config_check_topic(lookup_pairs, tiered));
    tiered[1].value = "-1";
    assert_non_null(config_check_topic(lookup_pairs, tiered));
    tiered[1].value = "-2";
    assert_null(config_check_topic(lookup_pairs, tiered));
    tiered[0].value = "false";
    tiered[1].value = "200";
    assert_null(config_check_topic(lookup_pairs, tiered));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_table),       cmocka_unit_test(test_numbers),
        cmocka_unit_test(test_words),       cmocka_unit_test(test_long),
        cmocka_unit_test(test_nearest),     cmocka_unit_test(test_lists),
        cmocka_unit_test(test_cross_rules),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
