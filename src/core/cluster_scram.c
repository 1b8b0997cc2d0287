/* cluster_scram.c - AlterUserScramCredentials: who may log in with which mechanism.
 *
 * Each user stands for itself and may be named once; what is good of a request is one batch. The
 * records hold what proves a password, made from the salted password by a function of the owner:
 * this folder has no hashes. The salted password itself goes nowhere. */
#include "core/cluster_internal.h"

#include "core/feature.h"
#include "core/names.h"
#include "gen/alter_user_scram_credentials_request.h"
#include "gen/alter_user_scram_credentials_response.h"
#include "gen/remove_user_scram_credential_record.h"
#include "gen/user_scram_credential_record.h"

#define SCRAM_ITERATIONS_MIN 4096
#define SCRAM_ITERATIONS_MAX 16384

struct scramming {
    struct cluster *cluster;
    struct step *step;
    struct names names; /* Of all users of the request. */
    struct names told;  /* Already refused. */
    bool allowed;
    struct alter_user_scram_credentials_response *out;
};

/* One user's result, NONE so far. */
static struct alter_user_scram_credentials_response_alter_user_scram_credentials_result *
scram_result(struct scramming *s, struct view user)
{
    struct alter_user_scram_credentials_response_alter_user_scram_credentials_result *result =
        &s->out->results.items[s->out->results.count++];
    wire_struct_defaults(
        &wire_alter_user_scram_credentials_response_alter_user_scram_credentials_result_shape,
        result);
    result->user = user;
    result->error_message = VIEW_NULL;
    return result;
}

/* The checks that deletions and upsertions share, in Kafka's order. */
static int16_t scram_check(const struct scramming *s, struct view name, int8_t mechanism)
{
    if (image_metadata_version(s->cluster->image) < FEATURE_METADATA_SCRAM)
        return KAFKA_UNSUPPORTED_VERSION;
    if (name.size == 0) return KAFKA_UNACCEPTABLE_CREDENTIAL;
    if (mechanism != CLUSTER_SCRAM_SHA_256 && mechanism != CLUSTER_SCRAM_SHA_512)
        return KAFKA_UNSUPPORTED_SASL_MECHANISM;
    return KAFKA_NONE;
}

static struct view scram_says(int16_t error)
{
    switch (error) {
    case KAFKA_UNSUPPORTED_VERSION: return VIEW("the metadata.version has no SCRAM credentials");
    case KAFKA_UNACCEPTABLE_CREDENTIAL: return VIEW("a user has a name");
    case KAFKA_UNSUPPORTED_SASL_MECHANISM: return VIEW("there is no such SCRAM mechanism");
    case KAFKA_DUPLICATE_RESOURCE: return VIEW("the user is named twice in the request");
    case KAFKA_RESOURCE_NOT_FOUND: return VIEW("the user has no such SCRAM credential");
    default: return VIEW_NULL;
    }
}

/* What is wrong with a deletion by itself. False: no memory. */
static bool scram_check_deletion(
    struct scramming *s,
    const struct alter_user_scram_credentials_request_scram_credential_deletion *in,
    int16_t *error)
{
    bool there = false;
    *error = scram_check(s, in->name, in->mechanism);
    if (*error != KAFKA_NONE) return true;
    if (!image_scram(s->cluster->image, in->mechanism, in->name, &there)) return false;
    if (!there) *error = KAFKA_RESOURCE_NOT_FOUND;
    return true;
}

static enum step_result scram_delete(
    struct scramming *s,
    const struct alter_user_scram_credentials_request_scram_credential_deletion *in,
    int16_t error)
{
    struct alter_user_scram_credentials_response_alter_user_scram_credentials_result *result =
        scram_result(s, in->name);
    result->error_code = error;
    result->error_message = scram_says(error);
    if (error != KAFKA_NONE) return STEP_DONE;
    struct remove_user_scram_credential_record *record =
        step_add(s->step, &wire_remove_user_scram_credential_record, 0);
    if (record == NULL) return STEP_E_MEMORY;
    record->name = in->name;
    record->mechanism = in->mechanism;
    return STEP_DONE;
}

static struct view scram_iterations(int32_t iterations)
{
    if (iterations < SCRAM_ITERATIONS_MIN) return VIEW("fewer than 4096 iterations");
    return iterations > SCRAM_ITERATIONS_MAX ? VIEW("more than 16384 iterations") : VIEW_NULL;
}

static enum step_result scram_upsert(
    struct scramming *s,
    const struct alter_user_scram_credentials_request_scram_credential_upsertion *in)
{
    struct alter_user_scram_credentials_response_alter_user_scram_credentials_result *result =
        scram_result(s, in->name);
    result->error_code = scram_check(s, in->name, in->mechanism);
    result->error_message = scram_says(result->error_code);
    if (result->error_code == KAFKA_NONE) {
        result->error_message = scram_iterations(in->iterations);
        if (!result->error_message.null) result->error_code = KAFKA_UNACCEPTABLE_CREDENTIAL;
    }
    if (result->error_code != KAFKA_NONE) return STEP_DONE;
    struct cluster_scram_keys *keys = step_get(s->step, sizeof(*keys));
    struct user_scram_credential_record *record =
        step_add(s->step, &wire_user_scram_credential_record, 0);
    if (keys == NULL || record == NULL) return STEP_E_MEMORY;
    s->cluster->options.scram_keys(in->mechanism, in->salted_password, keys);
    record->name = in->name;
    record->mechanism = in->mechanism;
    record->salt = in->salt;
    record->stored_key = view_of(keys->stored, keys->size_bytes);
    record->server_key = view_of(keys->server, keys->size_bytes);
    record->iterations = in->iterations;
    return STEP_DONE;
}

/* A user that is named more than once: one refusal, with the `error` that the first has by itself
 * if it has one. A request of somebody who may not: one each. */
static bool scram_refused(struct scramming *s, struct view name, int16_t error)
{
    bool twice = names_seen(&s->names, name) > 1;
    if (s->allowed && !twice) return false;
    if (names_see(&s->told, name) > 1) return true;
    struct alter_user_scram_credentials_response_alter_user_scram_credentials_result *result =
        scram_result(s, name);
    result->error_code = !s->allowed           ? KAFKA_CLUSTER_AUTHORIZATION_FAILED
                         : error != KAFKA_NONE ? error
                                               : KAFKA_DUPLICATE_RESOURCE;
    result->error_message = scram_says(result->error_code);
    return true;
}

static enum step_result scram_all(struct scramming *s,
                                  const struct alter_user_scram_credentials_request *in)
{
    s->allowed =
        cluster_allows(s->step, CLUSTER_OP_ALTER, CLUSTER_ON_CLUSTER, CLUSTER_ON_CLUSTER_NAME);
    enum step_result result = STEP_DONE;
    for (int32_t i = 0; i < in->deletions.count && result == STEP_DONE; i++) {
        int16_t error;
        if (!scram_check_deletion(s, &in->deletions.items[i], &error)) return STEP_E_MEMORY;
        if (!scram_refused(s, in->deletions.items[i].name, error))
            result = scram_delete(s, &in->deletions.items[i], error);
    }
    for (int32_t i = 0; i < in->upsertions.count && result == STEP_DONE; i++) {
        struct view name = in->upsertions.items[i].name;
        if (!scram_refused(s, name, scram_check(s, name, in->upsertions.items[i].mechanism)))
            result = scram_upsert(s, &in->upsertions.items[i]);
    }
    return result;
}

/* Answer every user with one error. */
static enum step_result scram_none(struct scramming *s,
                                   const struct alter_user_scram_credentials_request *in,
                                   int16_t error)
{
    for (int32_t i = 0; i < in->deletions.count; i++)
        scram_result(s, in->deletions.items[i].name)->error_code = error;
    for (int32_t i = 0; i < in->upsertions.count; i++)
        scram_result(s, in->upsertions.items[i].name)->error_code = error;
    return STEP_DONE;
}

enum step_result cluster_alter_scram(struct cluster *cluster,
                                     struct step *step,
                                     const struct alter_user_scram_credentials_request *in,
                                     struct alter_user_scram_credentials_response *out)
{
    struct scramming s = {.cluster = cluster, .step = step, .out = out};
    uint32_t count = (uint32_t)(MAX(in->deletions.count, 0) + MAX(in->upsertions.count, 0));
    wire_defaults(&wire_alter_user_scram_credentials_response, out);
    out->results.items = step_get(step, (count + 1) * sizeof(out->results.items[0]));
    if (out->results.items == NULL ||
        !names_init(&s.names, step->arena, count, step_random(step)) ||
        !names_init(&s.told, step->arena, count, step_random(step)))
        return STEP_E_MEMORY;
    if (!cluster->active) return scram_none(&s, in, KAFKA_NOT_CONTROLLER);
    if (count > step_room(step)) return scram_none(&s, in, KAFKA_POLICY_VIOLATION);
    for (int32_t i = 0; i < in->deletions.count; i++)
        (void)names_see(&s.names, in->deletions.items[i].name);
    for (int32_t i = 0; i < in->upsertions.count; i++)
        (void)names_see(&s.names, in->upsertions.items[i].name);
    enum step_result result = scram_all(&s, in);
    step->atomic = true;
    return result == STEP_DONE ? cluster_done(step) : result;
}
