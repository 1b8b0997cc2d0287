/* quota_admin.c - DescribeClientQuotas: the quotas of the committed image that a filter lets pass.
 * They are altered by core/cluster_quota.c. */
#include "broker/broker.h"
#include "core/names.h"
#include "gen/client_quota_record.h"
#include "gen/describe_client_quotas_request.h"
#include "gen/describe_client_quotas_response.h"

/* ---- quotas ---------------------------------------------------------------------------------- */

enum match { MATCH_EXACT, MATCH_DEFAULT, MATCH_ANY };

static int16_t filter_fail(struct request *request,
                           struct describe_client_quotas_response *out,
                           int16_t error,
                           const char *what)
{
    out->error_code = error;
    out->error_message = view_of_string(what);
    request_error(request, error);
    return error;
}

/* NONE, or the error that the answer has then. */
static int16_t filter_check(struct request *request, struct describe_client_quotas_response *out)
{
    const struct describe_client_quotas_request *in = request->message;
    uint32_t ips = 0, others = 0;
    struct names types;
    if (!names_init(&types, &request->arena, (uint32_t)MAX(in->components.count, 0),
                    io_random(request->shard->io, IO_RANDOM_HASH)))
        return filter_fail(request, out, KAFKA_UNKNOWN_SERVER_ERROR, "no memory");
    for (int32_t i = 0; i < in->components.count; i++) {
        const struct describe_client_quotas_request_component_data *c = &in->components.items[i];
        bool ip = view_is(c->entity_type, "ip");
        if (c->entity_type.size == 0)
            return filter_fail(request, out, KAFKA_INVALID_REQUEST, "an entity type is empty");
        if (names_see(&types, c->entity_type) > 1)
            return filter_fail(request, out, KAFKA_INVALID_REQUEST, "an entity type comes twice");
        if (!ip && !view_is(c->entity_type, "user") && !view_is(c->entity_type, "client-id"))
            return filter_fail(request, out, KAFKA_UNSUPPORTED_VERSION,
                               "entities have users, client ids and addresses only");
        if (c->match_type < MATCH_EXACT || c->match_type > MATCH_ANY)
            return filter_fail(request, out, KAFKA_INVALID_REQUEST, "an unknown match type");
        if ((c->match_type == MATCH_EXACT) == c->match.null)
            return filter_fail(request, out, KAFKA_INVALID_REQUEST,
                               "a name goes with an exact match, and only with that");
        ips += ip;
        others += !ip;
    }
    if (ips > 0 && others > 0)
        return filter_fail(request, out, KAFKA_INVALID_REQUEST,
                           "an address stands alone in an entity");
    return KAFKA_NONE;
}

static bool component_matches(const struct describe_client_quotas_request_component_data *c,
                              const struct client_quota_record *quota)
{
    for (int32_t i = 0; i < quota->entity.count; i++) {
        const struct client_quota_record_entity_data *part = &quota->entity.items[i];
        if (!view_equal(part->entity_type, c->entity_type)) continue;
        if (c->match_type == MATCH_ANY) return true;
        return c->match_type == MATCH_DEFAULT ? part->entity_name.null
                                              : view_equal(part->entity_name, c->match);
    }
    return false;
}

static bool filter_matches(const struct describe_client_quotas_request *in,
                           const struct client_quota_record *quota)
{
    for (int32_t i = 0; i < in->components.count; i++)
        if (!component_matches(&in->components.items[i], quota)) return false;
    return !in->strict || quota->entity.count == MAX(in->components.count, 0);
}

static bool same_entity(const struct client_quota_record *a, const struct client_quota_record *b)
{
    if (a->entity.count != b->entity.count) return false;
    for (int32_t i = 0; i < a->entity.count; i++) {
        bool found = false;
        for (int32_t j = 0; j < b->entity.count && !found; j++)
            found = view_equal(a->entity.items[i].entity_type, b->entity.items[j].entity_type) &&
                    view_equal(a->entity.items[i].entity_name, b->entity.items[j].entity_name);
        if (!found) return false;
    }
    return true;
}

static bool entry_begin(struct request *request,
                        const struct client_quota_record *quota,
                        struct describe_client_quotas_response_entry_data *out)
{
    size_t count = (size_t)quota->entity.count;
    wire_struct_defaults(&wire_describe_client_quotas_response_entry_data_shape, out);
    out->entity.items = broker_array(request, count, sizeof(*out->entity.items));
    if (out->entity.items == NULL) return false;
    out->entity.count = quota->entity.count;
    for (size_t i = 0; i < count; i++) {
        out->entity.items[i].entity_type = quota->entity.items[i].entity_type;
        out->entity.items[i].entity_name = quota->entity.items[i].entity_name;
    }
    return true;
}

/* All quotas that match, those of one entity together: the image sorts them so. */
static bool quotas_fill(struct request *request, struct describe_client_quotas_response *out)
{
    struct arena *arena = &request->arena;
    const struct image *image = node_of(request->shard)->image;
    uint32_t count;
    const struct image_object *const *all = image_sorted(image, IMAGE_QUOTA, arena, &count);
    out->entries.items = broker_array(request, count + 1, sizeof(*out->entries.items));
    struct describe_client_quotas_response_value_data *values =
        broker_array(request, count + 1, sizeof(*values));
    if (out->entries.items == NULL || values == NULL || (all == NULL && count > 0)) return false;
    out->entries.count = 0;
    const struct client_quota_record *last = NULL;
    for (uint32_t i = 0; i < count; i++) {
        struct step_record record;
        if (!step_decode(((const struct image_raw *)all[i])->record, arena, &record)) return false;
        const struct client_quota_record *quota = record.value.value;
        if (!filter_matches(request->message, quota)) continue;
        if (last == NULL || !same_entity(last, quota)) {
            if (!entry_begin(request, quota, &out->entries.items[out->entries.count])) return false;
            out->entries.items[out->entries.count++].values.items = values;
        }
        last = quota;
        values->key = quota->key;
        values->value = quota->value;
        values++;
        out->entries.items[out->entries.count - 1].values.count++;
    }
    return true;
}

void handle_describe_client_quotas(struct shard *shard, struct request *request)
{
    (void)shard;
    struct describe_client_quotas_response *out = request_response(request);
    bool made = out != NULL;
    if (made) {
        out->error_message = VIEW_EMPTY;
        out->entries.count = -1;
        if (!auth_allows(request, AUTH_DESCRIBE_CONFIGS, AUTH_CLUSTER, VIEW("kafka-cluster")))
            (void)filter_fail(request, out, KAFKA_CLUSTER_AUTHORIZATION_FAILED, NULL);
        else if (filter_check(request, out) == KAFKA_NONE)
            made = quotas_fill(request, out);
    }
    broker_answer(request, out, made);
}
