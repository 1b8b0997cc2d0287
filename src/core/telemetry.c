/* telemetry.c - see telemetry.h. */
#include "core/telemetry.h"

#include "base/limits.h"
#include "gen/errors.h"

#define EXPIRE_MIN_MS   60000
#define INTERVAL_MAX_MS 300000
#define CODECS          5 /* none, gzip, snappy, lz4, zstd */
#define NOT_YET         INT64_MIN

struct series {
    struct map_node node; /* By instance id and labels. */
    struct list link;     /* In its instance's list. */
    double value;
    uint32_t key_bytes;
    uint8_t key[];
};

struct telemetry_instance {
    struct map_node node;
    struct list used;   /* In telemetry->used, the youngest last. */
    struct list series; /* of struct series */
    uint32_t series_count;
    struct uuid id;
    uint64_t connection;
    int64_t used_ms;
    int64_t got_ms;    /* The last request that was not too early; NOT_YET. */
    int64_t pushed_ms; /* NOT_YET */
    bool asked;        /* It has asked since it pushed. */
    int16_t error;     /* Of the last request. */
    bool terminated;
    bool told; /* telemetry_want() was called for `version`. */
    uint32_t version;
    int32_t subscription;
    struct telemetry_wanted wanted;
    void *wanted_block; /* Holds its views. */
    size_t wanted_bytes;
    uint32_t client_id_bytes, software_bytes, software_version_bytes;
    uint8_t names[3 * TELEMETRY_NAME_MAX];
};

struct telemetry {
    struct mem *mem;
    struct map instances;
    struct map series;
    struct list used;
    uint32_t instances_max;
    uint32_t series_max;
    uint8_t scratch[sizeof(struct uuid) + TELEMETRY_LABELS_MAX];
};

/* ---- instances ------------------------------------------------------------------------------- */

static void series_drop(struct telemetry *telemetry, struct series *series)
{
    map_remove(&telemetry->series, &series->node);
    list_remove(&series->link);
    mem_put(telemetry->mem, series, sizeof(*series) + series->key_bytes);
}

static void unwant(struct telemetry *telemetry, struct telemetry_instance *instance)
{
    mem_put(telemetry->mem, instance->wanted_block, instance->wanted_bytes);
    instance->wanted_block = NULL;
    instance->wanted = (struct telemetry_wanted){.interval_ms = INTERVAL_MAX_MS};
}

static void instance_drop(struct telemetry *telemetry, struct telemetry_instance *instance)
{
    while (!list_empty(&instance->series))
        series_drop(telemetry, container_of(instance->series.next, struct series, link));
    unwant(telemetry, instance);
    map_remove(&telemetry->instances, &instance->node);
    list_remove(&instance->used);
    mem_put(telemetry->mem, instance, sizeof(*instance));
}

static uint32_t name_put(uint8_t *to, struct view name)
{
    uint32_t size = MIN(name.size, TELEMETRY_NAME_MAX);
    if (size > 0) memcpy(to, name.data, size);
    return size;
}

/* As if it had never been met. */
static void instance_begin(struct telemetry_instance *instance, uint64_t connection)
{
    instance->connection = connection;
    instance->got_ms = instance->pushed_ms = NOT_YET;
    instance->error = KAFKA_NONE;
    instance->asked = instance->terminated = false;
}

static struct telemetry_instance *instance_new(struct telemetry *telemetry,
                                               const struct telemetry_who *who)
{
    if (telemetry->instances.count >= telemetry->instances_max)
        instance_drop(telemetry,
                      container_of(telemetry->used.next, struct telemetry_instance, used));
    struct telemetry_instance *instance = mem_get(telemetry->mem, sizeof(*instance));
    if (instance == NULL) return NULL;
    instance->id = who->id;
    instance->node.key = view_of(&instance->id, sizeof(instance->id));
    instance->client_id_bytes = name_put(instance->names, who->client_id);
    instance->software_bytes = name_put(instance->names + TELEMETRY_NAME_MAX, who->software);
    instance->software_version_bytes =
        name_put(instance->names + 2 * TELEMETRY_NAME_MAX, who->software_version);
    instance->wanted.interval_ms = INTERVAL_MAX_MS;
    list_init(&instance->used);
    list_init(&instance->series);
    instance_begin(instance, who->connection);
    if (!map_insert(&telemetry->instances, &instance->node))
        return mem_put(telemetry->mem, instance, sizeof(*instance));
    return instance;
}

struct telemetry_instance *telemetry_instance(struct telemetry *telemetry,
                                              const struct telemetry_who *who,
                                              uint32_t version,
                                              bool *stale)
{
    struct map_node *node = map_find(&telemetry->instances, view_of(&who->id, sizeof(who->id)));
    struct telemetry_instance *instance = node == NULL
                                              ? instance_new(telemetry, who)
                                              : container_of(node, struct telemetry_instance, node);
    if (instance == NULL) return NULL;
    if (instance->connection != who->connection) instance_begin(instance, who->connection);
    instance->used_ms = who->now_ms;
    list_remove(&instance->used);
    list_append(&telemetry->used, &instance->used);
    *stale = !instance->told || instance->version != version;
    return instance;
}

/* ---- what is wanted -------------------------------------------------------------------------- */

static int32_t subscription_of(const struct telemetry_instance *instance)
{
    const struct telemetry_wanted *wanted = &instance->wanted;
    uint64_t sum = map_hash((uint64_t)wanted->interval_ms, view_of(&wanted->all, 1));
    for (uint32_t i = 0; i < wanted->metric_count; i++)
        sum += map_hash(1, wanted->metrics[i]); /* In whatever order they were found. */
    uint64_t id = map_hash(sum, view_of(&instance->id, sizeof(instance->id)));
    return (int32_t)(uint32_t)(id ^ id >> 32);
}

bool telemetry_want(struct telemetry *telemetry,
                    struct telemetry_instance *instance,
                    const struct telemetry_wanted *wanted,
                    uint32_t version)
{
    size_t size = 1;
    bool changed = instance->told;
    int32_t before = instance->subscription;
    unwant(telemetry, instance);
    for (uint32_t i = 0; i < wanted->metric_count; i++)
        size += sizeof(struct view) + wanted->metrics[i].size;
    struct view *metrics = mem_get(telemetry->mem, size);
    if (metrics == NULL) return false;
    uint8_t *text = (uint8_t *)(metrics + wanted->metric_count);
    for (uint32_t i = 0; i < wanted->metric_count; i++) {
        metrics[i] = view_of(text, wanted->metrics[i].size);
        if (metrics[i].size > 0) memcpy(text, wanted->metrics[i].data, metrics[i].size);
        text += metrics[i].size;
    }
    instance->wanted_block = metrics;
    instance->wanted_bytes = size;
    instance->wanted = *wanted;
    instance->wanted.metrics = metrics;
    instance->wanted.interval_ms = MIN(wanted->interval_ms, INTERVAL_MAX_MS);
    instance->told = true;
    instance->version = version;
    instance->subscription = subscription_of(instance);
    changed = changed && instance->subscription != before;
    if (changed) instance->got_ms = instance->pushed_ms = NOT_YET; /* The interval begins anew. */
    return true;
}

const struct telemetry_wanted *telemetry_wanted(const struct telemetry_instance *instance)
{
    return &instance->wanted;
}

int32_t telemetry_subscription(const struct telemetry_instance *instance)
{
    return instance->subscription;
}

/* ---- requests -------------------------------------------------------------------------------- */

static bool elapsed(const struct telemetry_instance *instance, int64_t since_ms, int64_t now_ms)
{
    return since_ms == NOT_YET || now_ms - since_ms >= instance->wanted.interval_ms;
}

int16_t telemetry_get(struct telemetry_instance *instance, int64_t now_ms)
{
    bool may_ask_again = instance->error == KAFKA_UNKNOWN_SUBSCRIPTION_ID ||
                         instance->error == KAFKA_UNSUPPORTED_COMPRESSION_TYPE;
    bool early = !elapsed(instance, MAX(instance->got_ms, instance->pushed_ms), now_ms);
    instance->error =
        early && !may_ask_again ? KAFKA_THROTTLING_QUOTA_EXCEEDED : (int16_t)KAFKA_NONE;
    if (instance->error != KAFKA_NONE) return instance->error;
    instance->got_ms = now_ms;
    instance->asked = true;
    return KAFKA_NONE;
}

static int16_t judge(struct telemetry_instance *instance, const struct telemetry_push *push)
{
    if (instance->terminated) return KAFKA_INVALID_REQUEST;
    bool due = instance->asked || elapsed(instance, instance->pushed_ms, push->now_ms);
    if (!due && !push->terminating) return KAFKA_THROTTLING_QUOTA_EXCEEDED;
    instance->pushed_ms = push->now_ms;
    instance->asked = false;
    instance->terminated = push->terminating;
    if (push->subscription_id != instance->subscription) return KAFKA_UNKNOWN_SUBSCRIPTION_ID;
    if (push->compression < 0 || push->compression >= CODECS)
        return KAFKA_UNSUPPORTED_COMPRESSION_TYPE;
    return push->size_bytes > push->max_bytes ? KAFKA_TELEMETRY_TOO_LARGE : (int16_t)KAFKA_NONE;
}

int16_t telemetry_push(struct telemetry_instance *instance, const struct telemetry_push *push)
{
    instance->error = judge(instance, push);
    return instance->error;
}

/* ---- series ---------------------------------------------------------------------------------- */

/* Text that is built behind the instance's id in the scratch; inert when it is full. */
struct label {
    uint8_t *at;
    uint8_t *end;
    bool full;
};

static void label_byte(struct label *label, uint8_t c)
{
    if (label->at == label->end)
        label->full = true;
    else
        *label->at++ = c;
}

static void label_raw(struct label *label, const char *text)
{
    while (*text != '\0')
        label_byte(label, (uint8_t)*text++);
}

static void label_escaped(struct label *label, struct view text)
{
    for (uint32_t i = 0; i < text.size && !label->full; i++) {
        uint8_t c = text.data[i];
        if (c == '"' || c == '\\' || c == '\n') label_byte(label, '\\');
        label_byte(label, c == '\n' ? 'n' : c < 0x20 ? '?' : c);
    }
}

/* Letters, digits and '_'; a digit does not begin it. */
static void label_name(struct label *label, struct view name)
{
    for (uint32_t i = 0; i < name.size && !label->full; i++) {
        uint8_t c = name.data[i];
        bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
        label_byte(label, letter || (i > 0 && c >= '0' && c <= '9') ? c : '_');
    }
}

static void label_number(struct label *label, double number)
{
    uint8_t digits[20];
    uint32_t count = 0;
    bool whole = number > -1e15 && number < 1e15;
    int64_t value = whole ? (int64_t)number : 0; /* Attributes that are numbers are ids. */
    if (value < 0) label_byte(label, '-');
    uint64_t left = value < 0 ? (uint64_t)-value : (uint64_t)value;
    do {
        digits[count++] = (uint8_t)('0' + left % 10);
        left /= 10;
    } while (left > 0);
    while (count > 0)
        label_byte(label, digits[--count]);
}

/* The key of a point's series, in the scratch; null: its labels are too long, or are none. */
static struct view series_key(struct telemetry *telemetry,
                              const struct telemetry_instance *instance,
                              const struct otlp_point *point)
{
    static const char *const kinds[] = {
        [OTLP_GAUGE] = "",
        [OTLP_SUM] = "",
        [OTLP_HISTOGRAM_COUNT] = ".count",
        [OTLP_HISTOGRAM_SUM] = ".sum",
    };
    struct label label = {telemetry->scratch + sizeof(struct uuid),
                          telemetry->scratch + sizeof(telemetry->scratch), false};
    struct reader in = reader_of(point->body);
    struct otlp_attribute attribute;
    memcpy(telemetry->scratch, &instance->id, sizeof(instance->id));
    label_raw(&label, "metric=\"");
    label_escaped(&label, point->name);
    label_raw(&label, kinds[point->kind]);
    label_byte(&label, '"');
    while (otlp_attribute(&in, point, &attribute)) {
        if (!attribute.known || attribute.key.size == 0) continue;
        label_raw(&label, ",");
        label_name(&label, attribute.key);
        label_raw(&label, "=\"");
        if (attribute.text.null)
            label_number(&label, attribute.number);
        else
            label_escaped(&label, attribute.text);
        label_byte(&label, '"');
    }
    if (label.full || in.fault != READER_OK) return VIEW_NULL;
    return view_of(telemetry->scratch, (uint32_t)(label.at - telemetry->scratch));
}

static struct series *series_new(struct telemetry *telemetry,
                                 struct telemetry_instance *instance,
                                 struct view key)
{
    if (telemetry->series.count >= telemetry->series_max ||
        instance->series_count >= TELEMETRY_INSTANCE_SERIES_MAX)
        return NULL;
    struct series *series = mem_get(telemetry->mem, sizeof(*series) + key.size);
    if (series == NULL) return NULL;
    memcpy(series->key, key.data, key.size);
    series->key_bytes = key.size;
    series->node.key = view_of(series->key, key.size);
    list_init(&series->link);
    if (!map_insert(&telemetry->series, &series->node))
        return mem_put(telemetry->mem, series, sizeof(*series) + key.size);
    list_append(&instance->series, &series->link);
    instance->series_count++;
    return series;
}

static bool is_wanted(const struct telemetry_wanted *wanted, struct view name)
{
    for (uint32_t i = 0; i < wanted->metric_count; i++) {
        struct view prefix = wanted->metrics[i];
        if (name.size >= prefix.size && memcmp(name.data, prefix.data, prefix.size) == 0)
            return true;
    }
    return wanted->all;
}

bool telemetry_keep(struct telemetry *telemetry,
                    struct telemetry_instance *instance,
                    const struct otlp_point *point)
{
    if (point->name.size == 0 || !is_wanted(&instance->wanted, point->name)) return false;
    struct view key = series_key(telemetry, instance, point);
    struct map_node *node = key.null ? NULL : map_find(&telemetry->series, key);
    struct series *series = node == NULL ? NULL : container_of(node, struct series, node);
    if (series == NULL && !key.null) series = series_new(telemetry, instance, key);
    if (series == NULL) return false;
    series->value = point->delta ? series->value + point->value : point->value;
    return true;
}

/* ---- all of them ----------------------------------------------------------------------------- */

void telemetry_expire(struct telemetry *telemetry, int64_t now_ms)
{
    struct map_node *next;
    for (struct map_node *node = map_next(&telemetry->instances, NULL); node != NULL; node = next) {
        struct telemetry_instance *instance = container_of(node, struct telemetry_instance, node);
        next = map_next(&telemetry->instances, node);
        int64_t silent_ms = MAX(EXPIRE_MIN_MS, 3 * (int64_t)instance->wanted.interval_ms);
        if (now_ms - instance->used_ms >= silent_ms) instance_drop(telemetry, instance);
    }
}

uint32_t telemetry_instance_count(const struct telemetry *telemetry)
{
    return telemetry->instances.count;
}

uint32_t telemetry_series_count(const struct telemetry *telemetry)
{
    return telemetry->series.count;
}

void telemetry_each(const struct telemetry *telemetry,
                    void (*visit)(void *context, const struct telemetry_series *series),
                    void *context)
{
    list_foreach (at, &telemetry->used) {
        struct telemetry_instance *instance = container_of(at, struct telemetry_instance, used);
        const uint8_t *names = instance->names;
        struct telemetry_series out = {
            .id = instance->id,
            .client_id = view_of(names, instance->client_id_bytes),
            .software = view_of(names + TELEMETRY_NAME_MAX, instance->software_bytes),
            .software_version =
                view_of(names + 2 * TELEMETRY_NAME_MAX, instance->software_version_bytes),
        };
        list_foreach (link, &instance->series) {
            const struct series *series = container_of(link, struct series, link);
            out.labels = view_of(series->key + sizeof(struct uuid),
                                 series->key_bytes - (uint32_t)sizeof(struct uuid));
            out.value = series->value;
            visit(context, &out);
        }
    }
}

struct telemetry *telemetry_new(struct mem *mem, uint64_t seed, uint32_t share)
{
    struct telemetry *telemetry = mem_get(mem, sizeof(*telemetry));
    if (telemetry == NULL) return NULL;
    telemetry->mem = mem;
    telemetry->instances_max = MAX(TELEMETRY_INSTANCES_MAX / share, 1u);
    telemetry->series_max = MAX(TELEMETRY_SERIES_MAX / share, 1u);
    map_init(&telemetry->instances, mem, seed);
    map_init(&telemetry->series, mem, seed);
    list_init(&telemetry->used);
    return telemetry;
}

struct telemetry *telemetry_free(struct telemetry *telemetry)
{
    if (telemetry == NULL) return NULL;
    while (!list_empty(&telemetry->used))
        instance_drop(telemetry,
                      container_of(telemetry->used.next, struct telemetry_instance, used));
    map_free(&telemetry->instances);
    map_free(&telemetry->series);
    return mem_put(telemetry->mem, telemetry, sizeof(*telemetry));
}
