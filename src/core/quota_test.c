/* quota_test.c - client quotas with a clock that the test turns: rates, tokens, who shares what. */
#include <stdio.h>

#include "core/core_test.h"

#include "core/quota.h"

struct rig {
    struct rig_mem heap;
    struct quota *quota;
};

static void rig_open(struct rig *rig)
{
    rig_mem_init(&rig->heap);
    rig->quota = quota_new(&rig->heap.mem, &(struct quota_options){
                                               .clients = {11, 1000},
                                               .controller = {11, 1000},
                                               .seed = 7,
    });
    assert_non_null(rig->quota);
}

static void rig_close(struct rig *rig)
{
    quota_free(rig->quota);
    assert_int_equal(rig->heap.mem.used_bytes, 0);
}

/* "" is the default of its type, NULL no part. */
static struct quota_part part(const char *name)
{
    if (name == NULL) return (struct quota_part){0};
    return (struct quota_part){true, name[0] == '\0' ? VIEW_NULL : view_of_string(name)};
}

static void limit(struct rig *rig,
                  enum quota_kind kind,
                  const char *user,
                  const char *client,
                  double value)
{
    struct quota_entity entity = {part(user), part(client)};
    if (value > 0)
        assert_true(quota_set(rig->quota, kind, &entity, value));
    else
        quota_unset(rig->quota, kind, &entity);
}

static struct quota_client client_of(const char *user, const char *client)
{
    return (struct quota_client){view_of_string(user), view_of_string(client)};
}

static int64_t produce(struct rig *rig,
                       const char *user,
                       const char *client,
                       double bytes,
                       int64_t at)
{
    struct quota_client who = client_of(user, client);
    return quota_charge(rig->quota, &who, &(struct quota_use){QUOTA_PRODUCE, bytes, at});
}

/* The three examples of Kafka's arithmetic: a burst is averaged over ten seconds. */
static void test_throttle_is_what_the_rate_demands(void **unused)
{
    (void)unused;
    struct rig rig;
    rig_open(&rig);
    limit(&rig, QUOTA_PRODUCE, NULL, "", 100);
    assert_int_equal(produce(&rig, "u", "a", 2000, 5000), 10000);
    assert_int_equal(produce(&rig, "u", "b", 1000, 5000), 0);
    assert_int_equal(produce(&rig, "u", "c", 500, 5000), 0);
    assert_int_equal(produce(&rig, "u", "c", 600, 5500), 500);
    rig_close(&rig);
}

/* A client that waits as it is told gets its rate over a long time: Kafka's samples forget whole
 * seconds at once, so uneven requests get up to a third more, and never less. */
static void test_rate_over_time(void **unused)
{
    (void)unused;
    struct rig rig;
    rig_open(&rig);
    limit(&rig, QUOTA_PRODUCE, "u", NULL, 1000);
    const double sizes[] = {700, 4000, 100, 100, 9000, 1, 2500};
    double sent = 0;
    int64_t at = 0;
    for (uint32_t i = 0; at < 100000; i++) {
        sent += sizes[i % ARRAY_SIZE(sizes)];
        at += 20 + produce(&rig, "u", i % 2 == 0 ? "a" : "b", sizes[i % ARRAY_SIZE(sizes)], at);
    }
    double rate = sent / ((double)at / 1000);
    assert_true(rate >= 1000);
    assert_true(rate <= 1333);
    rig_close(&rig);
}

/* What is old is forgotten, and what was taken back does not count. */
static void test_window_moves(void **unused)
{
    (void)unused;
    struct rig rig;
    rig_open(&rig);
    limit(&rig, QUOTA_PRODUCE, "u", NULL, 100);
    assert_int_equal(produce(&rig, "u", "a", 1500, 0), 5000);
    assert_int_equal(produce(&rig, "u", "a", -1500, 0), 0);
    assert_int_equal(produce(&rig, "u", "a", 1000, 1), 0);
    assert_true(produce(&rig, "u", "a", 1000, 2) > 0);
    assert_int_equal(produce(&rig, "u", "a", 1000, 20000), 0);
    rig_close(&rig);
}

/* The eight rows, by taking away the first one that holds each time. */
static void test_precedence(void **unused)
{
    (void)unused;
    struct rig rig;
    rig_open(&rig);
    static const char *const rows[][2] = {
        {"u",  "c" },
        {"u",  ""  },
        {"u",  NULL},
        {"",   "c" },
        {"",   ""  },
        {"",   NULL},
        {NULL, "c" },
        {NULL, ""  },
    };
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
        limit(&rig, QUOTA_FETCH, rows[i][0], rows[i][1], (double)(10 + i));
    struct quota_client who = client_of("u", "c");
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        assert_true(quota_limit(rig.quota, QUOTA_FETCH, &who) == (double)(10 + i));
        limit(&rig, QUOTA_FETCH, rows[i][0], rows[i][1], 0);
    }
    assert_false(quota_any(rig.quota, QUOTA_FETCH));
    assert_true(quota_limit(rig.quota, QUOTA_FETCH, &who) > 1e300);
    rig_close(&rig);
}

/* Who shares a bucket: all clients of a user, all users of a client id, or nobody. */
static void test_buckets(void **unused)
{
    (void)unused;
    struct rig rig;
    rig_open(&rig);
    assert_int_equal(produce(&rig, "u", "a", 1e9, 0), 0);
    assert_int_equal(quota_bucket_count(rig.quota), 0); /* No limit, no record. */
    limit(&rig, QUOTA_PRODUCE, "u", NULL, 100);
    assert_int_equal(produce(&rig, "u", "a", 1000, 0), 0);
    assert_true(produce(&rig, "u", "b", 1000, 0) > 0);
    assert_int_equal(produce(&rig, "v", "b", 1e9, 0), 0);
    limit(&rig, QUOTA_PRODUCE, "", "", 100);
    assert_int_equal(produce(&rig, "v", "a", 1000, 0), 0);
    assert_int_equal(produce(&rig, "v", "b", 1000, 0), 0);
    limit(&rig, QUOTA_PRODUCE, "", "", 0);
    limit(&rig, QUOTA_PRODUCE, NULL, "c", 100);
    assert_int_equal(produce(&rig, "v", "c", 1000, 0), 0);
    assert_true(produce(&rig, "w", "c", 1000, 0) > 0);
    assert_int_equal(quota_bucket_count(rig.quota), 4);
    rig_close(&rig);
}

/* A changed limit holds at once, over what was recorded before. */
static void test_change(void **unused)
{
    (void)unused;
    struct rig rig;
    rig_open(&rig);
    limit(&rig, QUOTA_PRODUCE, "u", NULL, 1000);
    assert_int_equal(produce(&rig, "u", "a", 5000, 0), 0);
    limit(&rig, QUOTA_PRODUCE, "u", NULL, 100);
    assert_int_equal(produce(&rig, "u", "a", 0, 0), 40000);
    rig_close(&rig);
}

/* Requests and connections wait for one sample at most. */
static void test_short_waits(void **unused)
{
    (void)unused;
    struct rig rig;
    rig_open(&rig);
    limit(&rig, QUOTA_REQUEST, "u", NULL, 1);
    limit(&rig, QUOTA_CONNECTION, "", NULL, 1);
    struct quota_client who = client_of("u", "a");
    assert_int_equal(quota_charge(rig.quota, &who, &(struct quota_use){QUOTA_REQUEST, 100, 0}),
                     1000);
    int64_t wait_ms = 0;
    for (int i = 0; i < 10; i++)
        wait_ms = quota_charge(rig.quota, &who, &(struct quota_use){QUOTA_CONNECTION, 1, 0});
    assert_int_equal(wait_ms, 0);
    assert_int_equal(quota_charge(rig.quota, &who, &(struct quota_use){QUOTA_CONNECTION, 1, 0}),
                     1000);
    rig_close(&rig);
}

static int64_t mutate(struct rig *rig, double partitions, int64_t at, bool strict, bool *allowed)
{
    struct quota_client who = client_of("u", "a");
    return quota_mutate(rig->quota, &who, &(struct quota_use){QUOTA_MUTATION, partitions, at},
                        strict, allowed);
}

/* Two partitions a second: 22 tokens. A strict change may go into debt once. */
static void test_tokens(void **unused)
{
    (void)unused;
    struct rig rig;
    bool allowed;
    rig_open(&rig);
    limit(&rig, QUOTA_MUTATION, "u", NULL, 2);
    assert_int_equal(mutate(&rig, 20, 1000, true, &allowed), 0);
    assert_true(allowed);
    assert_int_equal(mutate(&rig, 12, 1000, true, &allowed), 0); /* 2 - 12 = -10 */
    assert_true(allowed);
    assert_int_equal(mutate(&rig, 1, 1000, true, &allowed), 5000);
    assert_false(allowed);
    assert_int_equal(mutate(&rig, 1, 3000, true, &allowed), 3000);
    assert_false(allowed);
    assert_int_equal(mutate(&rig, 1, 6000, true, &allowed), 0); /* 0 tokens: not in debt. */
    assert_true(allowed);
    assert_int_equal(mutate(&rig, 3, 6000, false, &allowed), 2000); /* Never refused. */
    assert_true(allowed);
    assert_int_equal(mutate(&rig, 22, 1000000, true, &allowed), 0); /* Full again, not fuller. */
    assert_int_equal(mutate(&rig, 1, 1000000, true, &allowed), 0);
    assert_int_equal(mutate(&rig, 1, 1000000, true, &allowed), 500);
    assert_false(allowed);
    rig_close(&rig);
}

/* Idle buckets go; without memory for a bucket nobody waits and nothing breaks. */
static void tell(void *context, const struct quota_told *told)
{
    char *text = context;
    size_t used = strlen(text);
    (void)snprintf(text + used, 400 - used, "%s %.*s/%.*s %.0f %lld\n", quota_name(told->kind),
                   (int)told->user.size, told->user.null ? "" : (const char *)told->user.data,
                   (int)told->client_id.size,
                   told->client_id.null ? "" : (const char *)told->client_id.data, told->rate,
                   (long long)told->waited_ms);
}

static void test_told(void **unused)
{
    (void)unused;
    struct rig rig;
    char text[400] = "";
    rig_open(&rig);
    limit(&rig, QUOTA_PRODUCE, "alice", "app", 100);
    limit(&rig, QUOTA_PRODUCE, "bob", NULL, 100);
    assert_int_equal(produce(&rig, "alice", "app", 2000, 0), 10000);
    assert_int_equal(produce(&rig, "bob", "any", 500, 0), 0);
    quota_each(rig.quota, 0, 10, tell, text);
    assert_string_equal(text, "producer_byte_rate bob/ 50 0\n"
                              "producer_byte_rate alice/app 200 10000\n");
    text[0] = '\0';
    quota_each(rig.quota, 0, 1, tell, text); /* The last used one. */
    assert_string_equal(text, "producer_byte_rate bob/ 50 0\n");
    rig_close(&rig);
}

static void test_memory(void **unused)
{
    (void)unused;
    struct rig rig;
    rig_open(&rig);
    limit(&rig, QUOTA_PRODUCE, NULL, "", 1);
    produce(&rig, "u", "a", 1, 0);
    produce(&rig, "u", "b", 1, 3599999);
    assert_int_equal(quota_bucket_count(rig.quota), 2);
    produce(&rig, "u", "c", 1, 3600000);
    assert_int_equal(quota_bucket_count(rig.quota), 2);
    rig.heap.fail_in = 0;
    assert_int_equal(produce(&rig, "u", "d", 1e9, 3600000), 0);
    struct quota_entity entity = {part("x"), part(NULL)};
    assert_false(quota_set(rig.quota, QUOTA_PRODUCE, &entity, 5));
    rig.heap.fail_in = -1;
    rig_close(&rig);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_throttle_is_what_the_rate_demands),
        cmocka_unit_test(test_rate_over_time),
        cmocka_unit_test(test_window_moves),
        cmocka_unit_test(test_precedence),
        cmocka_unit_test(test_buckets),
        cmocka_unit_test(test_change),
        cmocka_unit_test(test_short_waits),
        cmocka_unit_test(test_tokens),
        cmocka_unit_test(test_told),
        cmocka_unit_test(test_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
