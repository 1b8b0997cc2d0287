/* quota.c - see quota.h.
 *
 * Which limit holds for user U and client id C, and who shares its bucket:
 *
 *   user     client id   bucket
 *   U        C           U, C
 *   U        default     U, C
 *   U        -           U
 *   default  C           U, C
 *   default  default     U, C
 *   default  -           U
 *   -        C           C
 *   -        default     C
 *
 * Limits and buckets lie in one kind of map, under keys of the same form: the kind, then for each
 * part one byte (absent, default, named), the name's size and its bytes. */
#include "core/quota.h"

#include "base/bytes.h"
#include "base/limits.h"
#include "core/quota_rate.h"

#define QUOTA_IDLE_MS    (60 * 60 * 1000) /* A bucket without use is dropped after that. */
#define QUOTA_PART_BYTES (5u + QUOTA_NAME_MAX)
#define QUOTA_KEY_BYTES  (1u + 2u * QUOTA_PART_BYTES)

enum quota_tag { QUOTA_ABSENT, QUOTA_DEFAULT, QUOTA_NAMED, QUOTA_TAGS };

struct quota_row {
    uint8_t user; /* enum quota_tag */
    uint8_t client;
};

static const struct quota_row quota_rows[] = {
    {QUOTA_NAMED,   QUOTA_NAMED  },
    {QUOTA_NAMED,   QUOTA_DEFAULT},
    {QUOTA_NAMED,   QUOTA_ABSENT },
    {QUOTA_DEFAULT, QUOTA_NAMED  },
    {QUOTA_DEFAULT, QUOTA_DEFAULT},
    {QUOTA_DEFAULT, QUOTA_ABSENT },
    {QUOTA_ABSENT,  QUOTA_NAMED  },
    {QUOTA_ABSENT,  QUOTA_DEFAULT},
};

static const struct quota_key quota_keys[] = {
    {"producer_byte_rate",       QUOTA_PRODUCE,    QUOTA_LONG,   false},
    {"consumer_byte_rate",       QUOTA_FETCH,      QUOTA_LONG,   false},
    {"request_percentage",       QUOTA_REQUEST,    QUOTA_DOUBLE, false},
    {"controller_mutation_rate", QUOTA_MUTATION,   QUOTA_DOUBLE, false},
    {"connection_creation_rate", QUOTA_CONNECTION, QUOTA_INT,    true },
};

struct quota_limit_entry {
    struct map_node node;
    double limit;
    uint8_t key[];
};

struct quota_bucket {
    struct map_node node;
    struct list used; /* In the order of their last use. */
    int64_t used_ms;
    uint8_t *key; /* Behind the samples. */
    double tokens;
    int64_t waited_ms;
    int64_t tokens_ms; /* When they were counted; -1: never, the bucket is full. */
    struct quota_rate rate;
};

struct quota {
    struct mem *mem;
    struct quota_options options;
    struct map limits;
    struct map buckets;
    struct list used; /* Of struct quota_bucket, the longest unused first. */
    uint32_t limit_counts[QUOTA_KINDS][QUOTA_TAGS][QUOTA_TAGS];
    uint32_t kind_counts[QUOTA_KINDS];
    uint8_t *scratch; /* Room for a key, while there are limits. */
};

const struct quota_key *quota_key(struct view name)
{
    for (size_t i = 0; i < ARRAY_SIZE(quota_keys); i++)
        if (view_is(name, quota_keys[i].name)) return &quota_keys[i];
    return NULL;
}

/* ---- keys ------------------------------------------------------------------------------------ */

static uint8_t *put_part(uint8_t *at, uint8_t tag, struct view name)
{
    uint32_t size = tag == QUOTA_NAMED ? name.size : 0;
    *at++ = tag;
    store_be32(at, size);
    at += 4;
    if (size > 0) memcpy(at, name.data, size);
    return at + size;
}

/* In the scratch; null: a name is longer than any that Kafka takes. */
static struct view make_key(struct quota *quota,
                            enum quota_kind kind,
                            struct quota_row row,
                            const struct quota_client *client)
{
    if (client->user.size > QUOTA_NAME_MAX || client->client_id.size > QUOTA_NAME_MAX)
        return VIEW_NULL;
    assert(quota->scratch != NULL);
    uint8_t *at = quota->scratch;
    *at++ = (uint8_t)kind;
    at = put_part(at, row.user, client->user);
    at = put_part(at, row.client, client->client_id);
    return view_of(quota->scratch, (uint32_t)(at - quota->scratch));
}

static uint8_t part_tag(const struct quota_part *part)
{
    if (!part->given) return QUOTA_ABSENT;
    return part->name.null ? QUOTA_DEFAULT : QUOTA_NAMED;
}

static struct view entity_key(struct quota *quota,
                              enum quota_kind kind,
                              const struct quota_entity *entity,
                              struct quota_row *row)
{
    *row = (struct quota_row){part_tag(&entity->user), part_tag(&entity->client)};
    struct quota_client client = {entity->user.name, entity->client.name};
    return make_key(quota, kind, *row, &client);
}

/* ---- limits ---------------------------------------------------------------------------------- */

static void count_limit(struct quota *quota, enum quota_kind kind, struct quota_row row, int by)
{
    quota->limit_counts[kind][row.user][row.client] += (uint32_t)by;
    quota->kind_counts[kind] += (uint32_t)by;
    if (quota->limits.count == 0)
        quota->scratch = mem_put(quota->mem, quota->scratch, QUOTA_KEY_BYTES);
}

static size_t limit_bytes(const struct quota_limit_entry *entry)
{
    return sizeof(*entry) + entry->node.key.size;
}

bool quota_set(struct quota *quota,
               enum quota_kind kind,
               const struct quota_entity *entity,
               double limit)
{
    assert(entity->user.given || entity->client.given);
    assert(limit > 0);
    struct quota_row row;
    if (quota->scratch == NULL) quota->scratch = mem_get(quota->mem, QUOTA_KEY_BYTES);
    if (quota->scratch == NULL) return false;
    struct view key = entity_key(quota, kind, entity, &row);
    if (key.null) return false;
    struct map_node *node = map_find(&quota->limits, key);
    if (node != NULL) {
        container_of(node, struct quota_limit_entry, node)->limit = limit;
        return true;
    }
    struct quota_limit_entry *entry = mem_get(quota->mem, sizeof(*entry) + key.size);
    if (entry == NULL) return false;
    memcpy(entry->key, key.data, key.size);
    entry->node.key = view_of(entry->key, key.size);
    entry->limit = limit;
    if (!map_insert(&quota->limits, &entry->node)) {
        mem_put(quota->mem, entry, limit_bytes(entry));
        return false;
    }
    count_limit(quota, kind, row, 1);
    return true;
}

void quota_unset(struct quota *quota, enum quota_kind kind, const struct quota_entity *entity)
{
    struct quota_row row;
    if (quota->scratch == NULL) return;
    struct view key = entity_key(quota, kind, entity, &row);
    struct map_node *node = key.null ? NULL : map_find(&quota->limits, key);
    if (node == NULL) return;
    struct quota_limit_entry *entry = container_of(node, struct quota_limit_entry, node);
    map_remove(&quota->limits, node);
    mem_put(quota->mem, entry, limit_bytes(entry));
    count_limit(quota, kind, row, -1);
}

bool quota_any(const struct quota *quota, enum quota_kind kind)
{
    return quota->kind_counts[kind] > 0;
}

/* The first row that holds for the client, and its limit. NULL: none. */
static const struct quota_row *limit_of(struct quota *quota,
                                        enum quota_kind kind,
                                        const struct quota_client *client,
                                        double *limit)
{
    if (quota->kind_counts[kind] == 0) return NULL;
    for (size_t i = 0; i < ARRAY_SIZE(quota_rows); i++) {
        struct quota_row row = quota_rows[i];
        if (quota->limit_counts[kind][row.user][row.client] == 0) continue;
        struct view key = make_key(quota, kind, row, client);
        struct map_node *node = key.null ? NULL : map_find(&quota->limits, key);
        if (node == NULL) continue;
        *limit = container_of(node, struct quota_limit_entry, node)->limit;
        return &quota_rows[i];
    }
    return NULL;
}

double quota_limit(struct quota *quota, enum quota_kind kind, const struct quota_client *client)
{
    double limit;
    return limit_of(quota, kind, client, &limit) == NULL ? __builtin_inf() : limit;
}

/* ---- buckets --------------------------------------------------------------------------------- */

static const struct quota_window *window_of(const struct quota *quota, enum quota_kind kind)
{
    return kind == QUOTA_MUTATION ? &quota->options.controller : &quota->options.clients;
}

static size_t bucket_head_bytes(const struct quota *quota, uint8_t kind)
{
    size_t samples =
        kind == QUOTA_MUTATION ? 0 : window_of(quota, (enum quota_kind)kind)->count + 1;
    return sizeof(struct quota_bucket) + samples * sizeof(struct quota_sample);
}

static void bucket_drop(struct quota *quota, struct quota_bucket *bucket)
{
    size_t size = bucket_head_bytes(quota, bucket->key[0]) + bucket->node.key.size;
    map_remove(&quota->buckets, &bucket->node);
    list_remove(&bucket->used);
    mem_put(quota->mem, bucket, size);
}

/* Drop the longest unused one if it is idle, or if it has to make place. */
static void make_place(struct quota *quota, int64_t now_ms)
{
    if (list_empty(&quota->used)) return;
    struct quota_bucket *oldest = container_of(quota->used.next, struct quota_bucket, used);
    if (quota->buckets.count >= QUOTA_BUCKETS_MAX || now_ms - oldest->used_ms >= QUOTA_IDLE_MS)
        bucket_drop(quota, oldest);
}

static struct quota_bucket *bucket_new(struct quota *quota, struct view key)
{
    size_t head = bucket_head_bytes(quota, key.data[0]);
    struct quota_bucket *bucket = mem_get(quota->mem, head + key.size);
    if (bucket == NULL) return NULL;
    bucket->key = (uint8_t *)bucket + head;
    memcpy(bucket->key, key.data, key.size);
    bucket->node.key = view_of(bucket->key, key.size);
    bucket->tokens_ms = -1;
    list_init(&bucket->used);
    if (!map_insert(&quota->buckets, &bucket->node))
        return mem_put(quota->mem, bucket, head + key.size);
    return bucket;
}

/* The client's bucket under this row. NULL: no memory for one, its use is not recorded. */
static struct quota_bucket *bucket_of(struct quota *quota,
                                      struct quota_row row,
                                      const struct quota_client *client,
                                      const struct quota_use *use)
{
    row.user = row.user == QUOTA_ABSENT ? QUOTA_ABSENT : QUOTA_NAMED;
    row.client = row.client == QUOTA_ABSENT ? QUOTA_ABSENT : QUOTA_NAMED;
    struct view key = make_key(quota, use->kind, row, client);
    struct map_node *node = key.null ? NULL : map_find(&quota->buckets, key);
    struct quota_bucket *bucket =
        node == NULL ? NULL : container_of(node, struct quota_bucket, node);
    if (bucket == NULL && !key.null) {
        make_place(quota, use->now_ms);
        bucket = bucket_new(quota, key);
    }
    if (bucket == NULL) return NULL;
    bucket->used_ms = use->now_ms;
    list_remove(&bucket->used);
    list_append(&quota->used, &bucket->used);
    return bucket;
}

/* ---- use ------------------------------------------------------------------------------------- */

int64_t quota_charge(struct quota *quota,
                     const struct quota_client *client,
                     const struct quota_use *use)
{
    assert(use->kind != QUOTA_MUTATION);
    double limit;
    const struct quota_row *row = limit_of(quota, use->kind, client, &limit);
    struct quota_bucket *bucket = row == NULL ? NULL : bucket_of(quota, *row, client, use);
    if (bucket == NULL) return 0;
    const struct quota_window *window = window_of(quota, use->kind);
    int64_t elapsed_ms;
    quota_rate_record(&bucket->rate, window, use->amount, use->now_ms);
    double rate = quota_rate_measure(&bucket->rate, window, use->now_ms, &elapsed_ms);
    int64_t wait_ms = quota_rate_throttle_ms(rate, limit, elapsed_ms);
    bool short_wait = use->kind == QUOTA_REQUEST || use->kind == QUOTA_CONNECTION;
    if (short_wait) wait_ms = MIN(wait_ms, window->sample_ms);
    if (use->amount > 0) bucket->waited_ms += wait_ms;
    return wait_ms;
}

int64_t quota_mutate(struct quota *quota,
                     const struct quota_client *client,
                     const struct quota_use *use,
                     bool strict,
                     bool *allowed)
{
    assert(use->kind == QUOTA_MUTATION);
    double limit;
    *allowed = true;
    const struct quota_row *row = limit_of(quota, QUOTA_MUTATION, client, &limit);
    struct quota_bucket *bucket = row == NULL ? NULL : bucket_of(quota, *row, client, use);
    if (bucket == NULL) return 0;
    const struct quota_window *window = window_of(quota, QUOTA_MUTATION);
    double full = (double)window->count * (double)window->sample_ms / 1000 * limit;
    if (bucket->tokens_ms >= 0)
        bucket->tokens += limit * (double)(use->now_ms - bucket->tokens_ms) / 1000;
    if (bucket->tokens_ms < 0 || bucket->tokens > full) bucket->tokens = full;
    bucket->tokens_ms = use->now_ms;
    *allowed = !strict || bucket->tokens >= 0;
    if (*allowed) bucket->tokens -= use->amount;
    if (bucket->tokens >= 0 || (strict && *allowed)) return 0;
    double wait_ms = -bucket->tokens / limit * 1000 + 0.5;
    int64_t told_ms = wait_ms >= INT32_MAX ? INT32_MAX : (int64_t)wait_ms;
    bucket->waited_ms += told_ms;
    return told_ms;
}

/* ---- telling --------------------------------------------------------------------------------- */

const char *quota_name(enum quota_kind kind)
{
    for (size_t i = 0; i < ARRAY_SIZE(quota_keys); i++)
        if (quota_keys[i].kind == kind) return quota_keys[i].name;
    return "";
}

/* A part of a bucket's key, and what is behind it. */
static struct view take_part(const uint8_t **at)
{
    uint32_t size = load_be32(*at + 1);
    struct view name = (*at)[0] == QUOTA_NAMED ? view_of(*at + 5, size) : VIEW_NULL;
    *at += 5 + size;
    return name;
}

void quota_each(struct quota *quota,
                int64_t now_ms,
                uint32_t max,
                void (*visit)(void *context, const struct quota_told *told),
                void *context)
{
    for (struct list *link = quota->used.previous; link != &quota->used && max > 0;
         link = link->previous, max--) {
        struct quota_bucket *bucket = container_of(link, struct quota_bucket, used);
        const uint8_t *at = bucket->key;
        struct quota_told told = {.kind = (enum quota_kind) * at++, .waited_ms = bucket->waited_ms};
        int64_t elapsed_ms;
        told.user = take_part(&at);
        told.client_id = take_part(&at);
        if (told.kind == QUOTA_MUTATION)
            told.rate = bucket->tokens;
        else if (bucket->rate.count > 0)
            told.rate =
                quota_rate_measure(&bucket->rate, window_of(quota, told.kind), now_ms, &elapsed_ms);
        visit(context, &told);
    }
}

uint32_t quota_bucket_count(const struct quota *quota)
{
    return quota->buckets.count;
}

/* ---- life ------------------------------------------------------------------------------------ */

struct quota *quota_new(struct mem *mem, const struct quota_options *options)
{
    assert(options->clients.count >= 1 && options->clients.count <= QUOTA_SAMPLES_MAX);
    assert(options->controller.count >= 1);
    struct quota *quota = mem_get(mem, sizeof(*quota));
    if (quota == NULL) return NULL;
    quota->mem = mem;
    quota->options = *options;
    map_init(&quota->limits, mem, options->seed);
    map_init(&quota->buckets, mem, options->seed);
    list_init(&quota->used);
    return quota;
}

struct quota *quota_free(struct quota *quota)
{
    if (quota == NULL) return NULL;
    struct mem *mem = quota->mem;
    while (!list_empty(&quota->used))
        bucket_drop(quota, container_of(quota->used.next, struct quota_bucket, used));
    struct map_node *node;
    while ((node = map_next(&quota->limits, NULL)) != NULL) {
        struct quota_limit_entry *entry = container_of(node, struct quota_limit_entry, node);
        map_remove(&quota->limits, node);
        mem_put(mem, entry, limit_bytes(entry));
    }
    map_free(&quota->limits);
    map_free(&quota->buckets);
    mem_put(mem, quota->scratch, QUOTA_KEY_BYTES);
    return mem_put(mem, quota, sizeof(*quota));
}
