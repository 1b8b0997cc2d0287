/* cluster_scram_test.c - AlterUserScramCredentials: each check of Kafka's, and the records. */
#include "core/cluster_rig.h"

#include "gen/alter_user_scram_credentials_request.h"
#include "gen/alter_user_scram_credentials_response.h"
#include "gen/user_scram_credential_record.h"

typedef struct alter_user_scram_credentials_request_scram_credential_deletion deletion_in;
typedef struct alter_user_scram_credentials_request_scram_credential_upsertion upsertion_in;

/* Keys that can be told: the password's first byte, and the next one. */
static void keys_of(int8_t mechanism, struct view salted, struct cluster_scram_keys *out)
{
    out->size_bytes = mechanism == CLUSTER_SCRAM_SHA_512 ? 64 : 32;
    memset(out->stored, salted.data[0], out->size_bytes);
    memset(out->server, salted.data[0] + 1, out->size_bytes);
}

static void open_rig(struct cluster_rig *rig, int16_t metadata_version)
{
    rig_start_with(rig, metadata_version, false, NULL);
    struct cluster_options options = {.node_id = 1,
                                      .cluster_id = VIEW("cluster"),
                                      .session_timeout_ms = 9000,
                                      .seed = 5,
                                      .scram_keys = keys_of};
    struct cluster_bootstrap none = {0};
    cluster_free(rig->cluster);
    rig->cluster = cluster_new(&rig->heap.mem, &options);
    assert_true(rig_snapshot(rig->follower, rig_copy_record, cluster_image(rig->cluster)));
    assert_int_equal(cluster_activate(rig->cluster, rig_step(rig), &none), STEP_DONE);
}

struct asking {
    deletion_in *deletions;
    int32_t deletion_count;
    upsertion_in *upsertions;
    int32_t upsertion_count;
};

/* The results and the number of records, as text. */
static const char *alter(struct cluster_rig *rig, struct asking asking)
{
    struct alter_user_scram_credentials_request in = {0};
    struct alter_user_scram_credentials_response out;
    in.deletions.items = asking.deletions;
    in.deletions.count = asking.deletion_count;
    in.upsertions.items = asking.upsertions;
    in.upsertions.count = asking.upsertion_count;
    struct step *step = rig_step(rig);
    assert_int_equal(cluster_alter_scram(rig->cluster, step, &in, &out), STEP_DONE);
    uint32_t records = step->record_count;
    rig_append(rig);
    rig->size = 0;
    rig_print(rig, "%u:", records);
    for (int32_t i = 0; i < out.results.count; i++) {
        rig_print(rig, " %.*s=%d", (int)out.results.items[i].user.size,
                  (const char *)out.results.items[i].user.data, out.results.items[i].error_code);
        assert_int_equal(out.results.items[i].error_message.null,
                         out.results.items[i].error_code == KAFKA_NONE);
    }
    rig_check(rig);
    return rig->text;
}

#define SET(...)                                                                                   \
    .upsertions = (upsertion_in[]){__VA_ARGS__},                                                   \
    .upsertion_count = ARRAY_SIZE(((upsertion_in[]){__VA_ARGS__}))
#define REMOVE(...)                                                                                \
    .deletions = (deletion_in[]){__VA_ARGS__},                                                     \
    .deletion_count = ARRAY_SIZE(((deletion_in[]){__VA_ARGS__}))
#define ALTER(rig, ...) alter((rig), (struct asking){__VA_ARGS__})
#define USER(user, how, times)                                                                     \
    {                                                                                              \
        .name = VIEW(user), .mechanism = (how), .iterations = (times), .salt = VIEW("salt"),       \
        .salted_password = VIEW("password")                                                        \
    }

static void test_scram(void **unused)
{
    (void)unused;
    struct cluster_rig rig;
    open_rig(&rig, 33);
    deletion_in a = {.name = VIEW("a"), .mechanism = 1};
    assert_string_equal(ALTER(&rig, REMOVE(a)), "0: a=91");
    assert_string_equal(ALTER(&rig, SET(USER("a", 1, 4096))), "1: a=0");
    const struct image *image = cluster_image(rig.cluster);
    bool there = false;
    assert_true(image_scram(image, 1, VIEW("a"), &there) && there);
    assert_true(image_scram(image, 2, VIEW("a"), &there) && !there);
    struct step_record record;
    struct arena arena;
    arena_init(&arena, &rig.heap.mem, 0);
    const struct image_raw *raw = (const struct image_raw *)image_next(image, IMAGE_SCRAM, NULL);
    assert_true(step_decode(raw->record, &arena, &record));
    const struct user_scram_credential_record *scram = record.value.value;
    assert_int_equal(scram->stored_key.size, 32);
    assert_int_equal(scram->stored_key.data[31], 'p');
    assert_int_equal(scram->server_key.data[0], 'q');
    assert_int_equal(scram->iterations, 4096);
    assert_true(view_is(scram->salt, "salt"));
    arena_free(&arena);

    /* S83: what is refused, and the good ones beside it. */
    assert_string_equal(ALTER(&rig, SET(USER("b", 1, 4096), USER("b", 2, 4096))), "0: b=92");
    assert_string_equal(ALTER(&rig, REMOVE(a), SET(USER("a", 2, 4096), USER("c", 2, 16384))),
                        "1: a=92 c=0");
    assert_string_equal(ALTER(&rig, SET(USER("", 1, 4096), USER("d", 1, 4095), USER("e", 1, 16385),
                                        USER("f", 3, 4096), USER("g", 0, 4096))),
                        "0: =93 d=93 e=93 f=33 g=33");
    assert_string_equal(ALTER(&rig, REMOVE(a, {.name = VIEW("c"), .mechanism = 1})), "1: a=0 c=91");
    assert_string_equal(ALTER(&rig, .deletion_count = 0), "0:");
    cluster_resign(rig.cluster, rig.offset);
    struct alter_user_scram_credentials_request in = {0};
    struct alter_user_scram_credentials_response out;
    in.deletions.items = &a;
    in.deletions.count = 1;
    assert_int_equal(cluster_alter_scram(rig.cluster, rig_step(&rig), &in, &out), STEP_DONE);
    assert_int_equal(out.results.items[0].error_code, KAFKA_NOT_CONTROLLER);
    rig_stop(&rig);
}

static void test_older_metadata(void **unused)
{
    (void)unused;
    struct cluster_rig rig;
    open_rig(&rig, 10);
    assert_string_equal(ALTER(&rig, SET(USER("a", 1, 4096))), "0: a=35");
    rig_stop(&rig);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_scram),
                                       cmocka_unit_test(test_older_metadata)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
