/* scram_admin.c - DescribeUserScramCredentials: which mechanisms users have credentials for, never
 * the credentials. */
#include <stdlib.h>

#include "broker/broker.h"
#include "core/names.h"
#include "gen/describe_user_scram_credentials_request.h"
#include "gen/describe_user_scram_credentials_response.h"
#include "gen/user_scram_credential_record.h"

/* One of the image's. */
struct credential {
    struct view name;
    int8_t mechanism;
    int32_t iterations;
};

struct describing {
    struct request *request;
    struct describe_user_scram_credentials_response *out;
    struct credential *all; /* By name, then by mechanism. */
    uint32_t count;
};

static int credential_order(const void *left, const void *right)
{
    const struct credential *a = left, *b = right;
    int order = view_compare(a->name, b->name);
    return order != 0 ? order : (a->mechanism > b->mechanism) - (a->mechanism < b->mechanism);
}

static bool describing_load(struct describing *d)
{
    const struct image *image = node_of(d->request->shard)->image;
    d->all = broker_array(d->request, image_count(image, IMAGE_SCRAM) + 1, sizeof(*d->all));
    if (d->all == NULL) return false;
    for (const struct image_object *object = NULL;
         (object = image_next(image, IMAGE_SCRAM, object)) != NULL;) {
        struct step_record record;
        if (!step_decode(((const struct image_raw *)object)->record, &d->request->arena, &record))
            return false;
        const struct user_scram_credential_record *scram = record.value.value;
        d->all[d->count++] = (struct credential){scram->name, scram->mechanism, scram->iterations};
    }
    qsort(d->all, d->count, sizeof(*d->all), credential_order);
    return true;
}

/* Where the credentials of this user begin, or would. O(log n). */
static uint32_t first_of(const struct describing *d, struct view name)
{
    uint32_t low = 0, high = d->count;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (view_compare(d->all[middle].name, name) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static bool describe_user(struct describing *d, struct view name, uint32_t times)
{
    uint32_t at = first_of(d, name), end = at;
    struct describe_user_scram_credentials_response_describe_user_scram_credentials_result *out =
        &d->out->results.items[d->out->results.count++];
    wire_struct_defaults(
        &wire_describe_user_scram_credentials_response_describe_user_scram_credentials_result_shape,
        out);
    out->user = name;
    out->error_message = VIEW_EMPTY;
    while (end < d->count && view_equal(d->all[end].name, name))
        end++;
    if (times > 1 || end == at) {
        out->error_code = times > 1 ? KAFKA_DUPLICATE_RESOURCE : KAFKA_RESOURCE_NOT_FOUND;
        out->error_message = times > 1 ? VIEW("the user is named twice in the request")
                                       : VIEW("the user has no SCRAM credential");
        request_error(d->request, out->error_code);
        return true;
    }
    out->credential_infos.items =
        broker_array(d->request, end - at, sizeof(*out->credential_infos.items));
    if (out->credential_infos.items == NULL) return false;
    for (; at < end; at++) {
        struct describe_user_scram_credentials_response_credential_info *info =
            &out->credential_infos.items[out->credential_infos.count++];
        info->mechanism = d->all[at].mechanism;
        info->iterations = d->all[at].iterations;
    }
    return true;
}

/* Those that the request names, each once; all if it names none. */
static bool describe_users(struct describing *d)
{
    const struct describe_user_scram_credentials_request *in = d->request->message;
    uint32_t asked = (uint32_t)MAX(in->users.count, 0);
    struct names seen, answered;
    uint64_t seed = io_random(d->request->shard->io, IO_RANDOM_HASH);
    d->out->results.items =
        broker_array(d->request, MAX(asked, d->count) + 1, sizeof(*d->out->results.items));
    if (d->out->results.items == NULL || !names_init(&seen, &d->request->arena, asked, seed) ||
        !names_init(&answered, &d->request->arena, asked, seed))
        return false;
    for (uint32_t i = 0; i < asked; i++)
        (void)names_see(&seen, in->users.items[i].name);
    for (uint32_t i = 0; i < asked; i++) {
        struct view name = in->users.items[i].name;
        if (names_see(&answered, name) > 1) continue;
        if (!describe_user(d, name, names_seen(&seen, name))) return false;
    }
    for (uint32_t i = 0; asked == 0 && i < d->count; i++) {
        if (i > 0 && view_equal(d->all[i].name, d->all[i - 1].name)) continue;
        if (!describe_user(d, d->all[i].name, 1)) return false;
    }
    return true;
}

void handle_describe_user_scram_credentials(struct shard *shard, struct request *request)
{
    (void)shard;
    struct describing d = {.request = request, .out = request_response(request)};
    bool made = d.out != NULL;
    if (made && !auth_allows(request, AUTH_DESCRIBE, AUTH_CLUSTER, VIEW("kafka-cluster"))) {
        d.out->error_code = KAFKA_CLUSTER_AUTHORIZATION_FAILED;
        request_error(request, d.out->error_code);
    } else if (made) {
        made = describing_load(&d) && describe_users(&d);
    }
    broker_answer(request, d.out, made);
}
