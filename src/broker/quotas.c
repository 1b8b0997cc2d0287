/* quotas.c - see quotas.h. The arithmetic is core/quota's. */
#include "broker/quotas.h"

#include <arpa/inet.h>
#include <errno.h>

#include "broker/broker.h"
#include "broker/controller.h"
#include "broker/stats.h"
#include "core/quota.h"
#include "gen/client_quota_record.h"

#define PRODUCE_KEY           0
#define CREATE_TOPICS_KEY     19
#define DELETE_TOPICS_KEY     20
#define CREATE_PARTITIONS_KEY 37
#define FETCH_RESPONSE_LENGTH 4u /* Counted with the answer, as Kafka does. */

/* ---- limits ---------------------------------------------------------------------------------- */

/* What net has to ask about. */
static void quotas_charging(struct node *node)
{
    enum shard_charging charging = SHARD_CHARGE_NOTHING;
    if (node->shard == NULL) return;
    if (quota_any(node->quota, QUOTA_PRODUCE)) charging = SHARD_CHARGE_REQUESTS;
    if (quota_any(node->quota, QUOTA_REQUEST)) charging = SHARD_CHARGE_TIME;
    shard_charge(node->shard, charging);
}

/* An address as connections have it, in the arena. */
static struct view quotas_address(struct arena *arena, struct view text)
{
    char given[INET6_ADDRSTRLEN] = "", printed[INET6_ADDRSTRLEN];
    uint8_t bytes[16];
    if (text.null || text.size >= sizeof(given)) return text;
    if (text.size > 0) memcpy(given, text.data, text.size);
    int family = memchr(given, ':', text.size) != NULL ? AF_INET6 : AF_INET;
    if (inet_pton(family, given, bytes) != 1 ||
        inet_ntop(family, bytes, printed, sizeof(printed)) == NULL)
        return text;
    return arena_copy(arena, view_of_string(printed));
}

/* The entity of a record as core/quota has it. False: not one that any request belongs to. */
static bool quotas_entity(const struct client_quota_record *record,
                          struct arena *arena,
                          struct quota_entity *out)
{
    *out = (struct quota_entity){0};
    for (int32_t i = 0; i < record->entity.count; i++) {
        const struct client_quota_record_entity_data *part = &record->entity.items[i];
        if (view_is(part->entity_type, "user"))
            out->user = (struct quota_part){true, part->entity_name};
        else if (view_is(part->entity_type, "client-id"))
            out->client = (struct quota_part){true, part->entity_name};
        else if (view_is(part->entity_type, "ip"))
            out->user = (struct quota_part){true, quotas_address(arena, part->entity_name)};
        else
            return false;
    }
    return out->user.given || out->client.given;
}

void quotas_follow(struct node *node, const struct image_change *change)
{
    const struct image_raw *raw =
        (const struct image_raw *)(change->now != NULL ? change->now : change->before);
    struct arena arena;
    struct step_record record;
    struct quota_entity entity;
    arena_init(&arena, node->mem, 0);
    bool done = step_decode(raw->record, &arena, &record);
    if (done) {
        const struct client_quota_record *limit = record.value.value;
        const struct quota_key *key = quota_key(limit->key);
        if (key != NULL && quotas_entity(limit, &arena, &entity)) {
            if (change->now != NULL)
                done = quota_set(node->quota, (enum quota_kind)key->kind, &entity, limit->value);
            else
                quota_unset(node->quota, (enum quota_kind)key->kind, &entity);
        }
    }
    if (!done) say(node->say, SAY_ERROR, SAY_IN_QUOTA, "a quota does not hold: no memory for it");
    arena_free(&arena);
    quotas_charging(node);
}

/* ---- use ------------------------------------------------------------------------------------- */

/* "User:alice" is alice: quotas know no types of principals. */
static struct view principal_name(struct view principal)
{
    for (uint32_t i = 0; i < principal.size; i++)
        if (principal.data[i] == ':')
            return view_of(principal.data + i + 1, principal.size - i - 1);
    return principal;
}

static struct quota_client client_of(const struct request *request)
{
    return (struct quota_client){principal_name(request->principal), request->client_id};
}

static void count_wait(struct node *node,
                       const struct quota_client *client,
                       enum metric metric,
                       int64_t wait_ms)
{
    char user[100], id[100];
    struct metrics *metrics = &node->shard->metrics;
    metric_set(metrics, METRIC_QUOTA_BUCKETS, quota_bucket_count(node->quota));
    if (wait_ms <= 0) return;
    metric_add(metrics, metric, 1);
    metric_add(metrics, METRIC_THROTTLE_MS, (uint64_t)wait_ms);
    if (say_on(node->say, SAY_DEBUG, SAY_IN_QUOTA))
        say(node->say, SAY_DEBUG, SAY_IN_QUOTA, "user %s, client \"%s\" waits %lld ms for its %s",
            say_bytes(client->user, user, sizeof(user)),
            say_bytes(client->client_id, id, sizeof(id)), (long long)wait_ms,
            metric == METRIC_THROTTLED_FETCH      ? "fetches"
            : metric == METRIC_THROTTLED_REQUEST  ? "processor time"
            : metric == METRIC_THROTTLED_MUTATION ? "changes of topics"
                                                  : "produced bytes");
}

static int64_t charge_time(struct node *node, struct request *request)
{
    if (!quota_any(node->quota, QUOTA_REQUEST)) return 0;
    struct quota_client client = client_of(request);
    struct quota_use use = {
        .kind = QUOTA_REQUEST,
        .amount = (double)request->cpu_ns * 100 / 1e9, /* A second of it is 100 percent. */
        .now_ms = io_now_ms(node->io),
    };
    int64_t wait_ms = quota_charge(node->quota, &client, &use);
    count_wait(node, &client, METRIC_THROTTLED_REQUEST, wait_ms);
    return wait_ms;
}

int64_t quotas_charge(struct shard *shard, struct request *request, bool answered)
{
    struct node *node = node_of(shard);
    int64_t wait_ms = 0;
    if (request->charged || request->listener->kind == WIRE_CONTROLLER) return 0;
    if (request->api->key == PRODUCE_KEY && quota_any(node->quota, QUOTA_PRODUCE)) {
        struct quota_client client = client_of(request);
        struct quota_use use = {QUOTA_PRODUCE, request->frame_bytes, io_now_ms(node->io)};
        wait_ms = quota_charge(node->quota, &client, &use);
        count_wait(node, &client, METRIC_THROTTLED_PRODUCE, wait_ms);
    }
    /* Without an answer a request is exempt from the quota on time. */
    int64_t time_wait_ms = answered ? charge_time(node, request) : 0;
    return MAX(wait_ms, time_wait_ms);
}

int64_t quotas_admit(struct node *node, const struct io_address *peer)
{
    if (!quota_any(node->quota, QUOTA_CONNECTION)) return 0;
    struct quota_client client = {view_of_string(peer->host), VIEW_EMPTY};
    struct quota_use use = {QUOTA_CONNECTION, 1, io_now_ms(node->io)};
    int64_t wait_ms = quota_charge(node->quota, &client, &use);
    if (wait_ms <= 0) return 0;
    use.amount = -1; /* It does not come in. */
    (void)quota_charge(node->quota, &client, &use);
    return wait_ms;
}

uint32_t quotas_fetch_max(struct node *node, const struct request *request, uint32_t max_bytes)
{
    if (!quota_any(node->quota, QUOTA_FETCH)) return max_bytes;
    struct quota_client client = client_of(request);
    double window_s = (double)(broker_setting_number(node, "quota.window.num") - 1) *
                      (double)broker_setting_number(node, "quota.window.size.seconds");
    double most = quota_limit(node->quota, QUOTA_FETCH, &client) * window_s;
    return most < max_bytes ? (uint32_t)most : max_bytes;
}

bool quotas_fetch(struct node *node, struct request *request, uint64_t bytes)
{
    int64_t wait_ms = 0;
    if (request->connection == NULL) return false;
    struct quota_client client = client_of(request);
    struct quota_use use = {QUOTA_FETCH, (double)(bytes + FETCH_RESPONSE_LENGTH),
                            io_now_ms(node->io)};
    bool limited = quota_any(node->quota, QUOTA_FETCH);
    if (limited) wait_ms = quota_charge(node->quota, &client, &use);
    count_wait(node, &client, METRIC_THROTTLED_FETCH, wait_ms);
    request_rest(request);
    int64_t time_wait_ms = charge_time(node, request);
    wait_ms = MAX(wait_ms, time_wait_ms);
    request->charged = true;
    if (wait_ms <= 0) return false;
    use.amount = -use.amount;
    if (limited) (void)quota_charge(node->quota, &client, &use);
    request_throttle(request, wait_ms);
    return true;
}

/* ---- changes of topics ----------------------------------------------------------------------- */

/* Newer clients know that a topic can be refused for now. */
static bool is_strict(const struct controller_call *call)
{
    switch (call->api_key) {
    case CREATE_TOPICS_KEY: return call->version >= 6;
    case DELETE_TOPICS_KEY: return call->version >= 5;
    case CREATE_PARTITIONS_KEY: return call->version >= 3;
    default: return false;
    }
}

bool quotas_mutate(void *context, uint32_t partitions)
{
    struct controller_call *call = context;
    struct request *request = call->client;
    struct node *node = node_of(request->shard);
    bool allowed;
    if (!quota_any(node->quota, QUOTA_MUTATION)) return true;
    if (request->listener->kind == WIRE_CONTROLLER) return true; /* A broker's own connection. */
    struct quota_client client = client_of(request);
    struct quota_use use = {QUOTA_MUTATION, partitions, io_now_ms(node->io)};
    int64_t wait_ms = quota_mutate(node->quota, &client, &use, is_strict(call), &allowed);
    count_wait(node, &client, METRIC_THROTTLED_MUTATION, wait_ms);
    request_throttle(request, wait_ms);
    return allowed;
}

void quotas_mutated(struct node *node,
                    struct view principal,
                    struct view client_id,
                    uint32_t partitions)
{
    bool allowed;
    if (!quota_any(node->quota, QUOTA_MUTATION)) return;
    struct quota_client client = {principal_name(principal), client_id};
    struct quota_use use = {QUOTA_MUTATION, partitions, io_now_ms(node->io)};
    (void)quota_mutate(node->quota, &client, &use, false, &allowed);
}

/* ---- telling --------------------------------------------------------------------------------- */

/* Of so many clients the use is printed: names are the clients' own choice. */
#define TOLD_MAX 1000u

struct telling {
    struct out *out;
    const struct node *node;
};

static void tell_value(const struct telling *telling,
                       const struct quota_told *told,
                       const char *what,
                       double value)
{
    struct out *out = telling->out;
    out_format(out, "dohle_client_quota{quota=\"%s\",value=\"%s\"", quota_name(told->kind), what);
    if (!told->user.null)
        stats_put_label(out, told->kind == QUOTA_CONNECTION ? "ip" : "user", told->user);
    if (!told->client_id.null) stats_put_label(out, "client", told->client_id);
    if (telling->node->count > 1) out_format(out, ",shard=\"%u\"", telling->node->index);
    out_format(out, "} %.17g\n", value);
}

static void tell_one(void *context, const struct quota_told *told)
{
    const struct telling *telling = context;
    if (!told->user.null && !out_is_utf8(told->user)) return;
    if (!told->client_id.null && !out_is_utf8(told->client_id)) return;
    tell_value(telling, told, told->kind == QUOTA_MUTATION ? "tokens" : "rate", told->rate);
    tell_value(telling, told, "throttle_ms_total", (double)told->waited_ms);
}

void quotas_print(struct shard *shard, struct out *out, bool first)
{
    struct node *node = node_of(shard);
    struct telling telling = {out, node};
    if (first)
        out_text(out, "# HELP dohle_client_quota What clients use of what they are limited in, and "
                      "what they were told to wait.\n# TYPE dohle_client_quota untyped\n");
    quota_each(node->quota, io_now_ms(node->io), TOLD_MAX / node->count, tell_one, &telling);
}

/* ---- life ------------------------------------------------------------------------------------ */

static struct quota_window quotas_window(const struct node *node, const char *num, const char *size)
{
    return (struct quota_window){
        .count = (uint32_t)MIN(broker_setting_number(node, num), (int64_t)QUOTA_SAMPLES_MAX),
        .sample_ms = broker_setting_number(node, size) * 1000,
    };
}

int quotas_open(struct node *node)
{
    struct quota_options options = {
        .clients = quotas_window(node, "quota.window.num", "quota.window.size.seconds"),
        .controller = quotas_window(node, "controller.quota.window.num",
                                    "controller.quota.window.size.seconds"),
        .seed = io_random(node->io, IO_RANDOM_HASH),
    };
    node->quota = quota_new(node->mem, &options);
    return node->quota == NULL ? -ENOMEM : 0;
}

void quotas_close(struct node *node)
{
    node->quota = quota_free(node->quota);
}
