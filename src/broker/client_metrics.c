/* client_metrics.c - see client_metrics.h. */
#include "broker/client_metrics.h"

#include <errno.h>
#include <stdio.h>

#include "broker/broker.h"
#include "broker/regex.h"
#include "broker/stats.h"
#include "core/config.h"
#include "core/telemetry.h"
#include "gen/get_telemetry_subscriptions_request.h"
#include "gen/get_telemetry_subscriptions_response.h"
#include "gen/push_telemetry_request.h"
#include "gen/push_telemetry_response.h"
#include "net/connection.h"
#include "record/compress.h"

#define INTERVAL_USUAL_MS  300000
#define EXPIRE_INTERVAL_MS 10000

struct client_metrics {
    struct telemetry *telemetry;
    struct compress_work work;
    uint32_t version; /* Of the subscriptions. */
    int64_t expire_ms;
};

/* ---- subscriptions --------------------------------------------------------------------------- */

void client_metrics_follow(struct node *node, const struct image_change *change)
{
    const struct image_configs *configs =
        (const struct image_configs *)(change->now != NULL ? change->now : change->before);
    if (configs->type == IMAGE_RESOURCE_CLIENT_METRICS) node->client_metrics->version++;
}

struct view client_metrics_pattern_fault(struct arena *arena, struct view pattern)
{
    struct view why = VIEW_EMPTY;
    struct regex *compiled = regex_new(arena, pattern, &why);
    if (compiled == NULL) return why;
    (void)regex_free(compiled);
    return VIEW_NULL;
}

/* One attribute of the client as text; null: it has not told. */
static struct view attribute_of(struct request *request, struct view selector, struct uuid id)
{
    const struct connection *connection = request->connection;
    if (view_is(selector, "client_id")) return request->client_id;
    if (view_is(selector, "client_source_address")) return view_of_string(request->peer.host);
    if (view_is(selector, "client_source_port"))
        return broker_text(request, "%u", request->peer.port);
    if (view_is(selector, "client_instance_id")) {
        struct out text;
        out_init(&text, node_of(request->shard)->mem);
        out_uuid(&text, id);
        struct view copy = arena_copy(&request->arena, out_so_far(&text));
        out_free(&text);
        return copy;
    }
    struct view told = VIEW_NULL;
    if (connection != NULL && view_is(selector, "client_software_name"))
        told = connection_software(connection);
    if (connection != NULL && view_is(selector, "client_software_version"))
        told = connection_software_version(connection);
    return told.size == 0 ? VIEW_NULL : told;
}

/* "selector=pattern" */
static bool rule_fits(struct request *request, struct view rule, struct uuid id)
{
    uint32_t at = 0;
    struct view why;
    while (at < rule.size && rule.data[at] != '=')
        at++;
    if (at == rule.size) return false;
    struct view value = attribute_of(request, view_of(rule.data, at), id);
    if (value.null) return false;
    struct regex *pattern =
        regex_new(&request->arena, view_of(rule.data + at + 1, rule.size - at - 1), &why);
    bool fits = pattern != NULL && regex_matches(pattern, value);
    (void)regex_free(pattern);
    return fits;
}

static bool subscription_fits(struct request *request,
                              const struct image_configs *subscription,
                              struct uuid id)
{
    struct view rules = config_list(image_config(subscription, VIEW("match"))), rule;
    while (config_list_next(&rules, &rule))
        if (!rule_fits(request, rule, id)) return false;
    return true;
}

/* What one subscription adds. False: no memory. */
static bool add_wishes(struct request *request,
                       const struct image_configs *subscription,
                       struct telemetry_wanted *wanted)
{
    int64_t interval_ms = INTERVAL_USUAL_MS;
    struct view given = image_config(subscription, VIEW("interval.ms"));
    if (!given.null && config_parse_int64(given, &interval_ms))
        wanted->interval_ms = (int32_t)MIN(interval_ms, (int64_t)wanted->interval_ms);
    struct view names = config_list(image_config(subscription, VIEW("metrics"))), name;
    struct view counted = names;
    uint32_t count = wanted->metric_count;
    while (config_list_next(&counted, &name))
        count++;
    struct view *all = broker_array(request, (size_t)count + 1, sizeof(*all));
    if (all == NULL) return false;
    for (uint32_t i = 0; i < wanted->metric_count; i++)
        all[i] = wanted->metrics[i];
    while (config_list_next(&names, &name)) {
        bool known = false;
        for (uint32_t i = 0; i < wanted->metric_count; i++)
            known = known || view_equal(all[i], name);
        wanted->all = wanted->all || view_is(name, "*");
        if (!known) all[wanted->metric_count++] = name;
    }
    wanted->metrics = all;
    return true;
}

static bool want(struct request *request, struct telemetry_instance *instance, struct uuid id)
{
    const struct node *node = node_of(request->shard);
    struct telemetry_wanted wanted = {.interval_ms = INTERVAL_USUAL_MS};
    uint32_t count;
    const struct image_object *const *all =
        image_sorted(node->image, IMAGE_CONFIGS, &request->arena, &count);
    if (all == NULL && count > 0) return false;
    for (uint32_t i = 0; i < count; i++) {
        const struct image_configs *subscription = (const struct image_configs *)all[i];
        if (subscription->type != IMAGE_RESOURCE_CLIENT_METRICS) continue;
        if (subscription_fits(request, subscription, id) &&
            !add_wishes(request, subscription, &wanted))
            return false;
    }
    if (wanted.all) wanted.metric_count = 0;
    return telemetry_want(node->client_metrics->telemetry, instance, &wanted,
                          node->client_metrics->version);
}

/* ---- requests -------------------------------------------------------------------------------- */

static void expire(struct node *node)
{
    struct client_metrics *metrics = node->client_metrics;
    int64_t now_ms = io_now_ms(node->io);
    if (now_ms < metrics->expire_ms) return;
    metrics->expire_ms = now_ms + EXPIRE_INTERVAL_MS;
    telemetry_expire(metrics->telemetry, now_ms);
}

/* The gauges after a request. */
static void count(struct node *node)
{
    struct metrics *metrics = &node->shard->metrics;
    const struct telemetry *telemetry = node->client_metrics->telemetry;
    metric_set(metrics, METRIC_CLIENT_METRICS_INSTANCES, telemetry_instance_count(telemetry));
    metric_set(metrics, METRIC_CLIENT_METRICS_VALUES, telemetry_series_count(telemetry));
}

static struct telemetry_instance *instance_of(struct request *request, struct uuid id)
{
    struct node *node = node_of(request->shard);
    bool stale;
    if (request->connection == NULL) return NULL;
    struct telemetry_who who = {
        .id = id,
        .connection = map_hash(request->peer.port, view_of_string(request->peer.host)),
        .client_id = request->client_id,
        .software = connection_software(request->connection),
        .software_version = connection_software_version(request->connection),
        .now_ms = io_now_ms(node->io),
    };
    expire(node);
    struct telemetry_instance *instance = telemetry_instance(node->client_metrics->telemetry, &who,
                                                             node->client_metrics->version, &stale);
    if (instance != NULL && stale && !want(request, instance, id)) return NULL;
    return instance;
}

/* Version 4, and neither zero nor reserved by that. */
static struct uuid random_id(struct node *node)
{
    struct uuid id;
    uint64_t bits[2] = {io_random(node->io, IO_RANDOM_IDS), io_random(node->io, IO_RANDOM_IDS)};
    memcpy(&id, bits, sizeof(id));
    id.bytes[6] = (uint8_t)((id.bytes[6] & 0x0f) | 0x40);
    id.bytes[8] = (uint8_t)((id.bytes[8] & 0x3f) | 0x80);
    return id;
}

static bool fill_wishes(struct request *request,
                        const struct telemetry_wanted *wanted,
                        struct get_telemetry_subscriptions_response *out)
{
    static const int8_t codecs[] = {CODEC_ZSTD, CODEC_LZ4, CODEC_GZIP, CODEC_SNAPPY};
    out->accepted_compression_types.items = broker_array(request, ARRAY_SIZE(codecs), 1);
    out->requested_metrics.items = broker_array(request, (size_t)wanted->metric_count + 1,
                                                sizeof(*out->requested_metrics.items));
    if (out->accepted_compression_types.items == NULL || out->requested_metrics.items == NULL)
        return false;
    memcpy(out->accepted_compression_types.items, codecs, sizeof(codecs));
    out->accepted_compression_types.count = ARRAY_SIZE(codecs);
    for (uint32_t i = 0; i < wanted->metric_count; i++)
        out->requested_metrics.items[out->requested_metrics.count++] =
            arena_copy(&request->arena, wanted->metrics[i]);
    if (wanted->all) out->requested_metrics.items[out->requested_metrics.count++] = VIEW("*");
    return !request->arena.failed;
}

void handle_get_telemetry_subscriptions(struct shard *shard, struct request *request)
{
    const struct get_telemetry_subscriptions_request *in = request->message;
    struct node *node = node_of(shard);
    struct get_telemetry_subscriptions_response *out = request_response(request);
    struct uuid id = in->client_instance_id;
    if (uuid_is_zero(id)) id = random_id(node);
    struct telemetry_instance *instance = out == NULL ? NULL : instance_of(request, id);
    bool made = instance != NULL;
    if (made) {
        out->error_code = telemetry_get(instance, io_now_ms(node->io));
        count(node);
    }
    if (made && out->error_code == KAFKA_NONE) {
        out->client_instance_id = id;
        out->subscription_id = telemetry_subscription(instance);
        out->push_interval_ms = telemetry_wanted(instance)->interval_ms;
        out->telemetry_max_bytes = (int32_t)broker_setting_number(node, "telemetry.max.bytes");
        out->delta_temporality = true;
        made = fill_wishes(request, telemetry_wanted(instance), out);
    }
    if (!made) {
        request_close(request, "no memory for an answer");
        return;
    }
    request_error(request, out->error_code);
    request_reply(request, out);
}

struct report {
    struct node *node;
    struct telemetry_instance *instance;
    uint32_t dropped;
};

static void keep(void *context, const struct otlp_point *point)
{
    struct report *report = context;
    if (!telemetry_keep(report->node->client_metrics->telemetry, report->instance, point))
        report->dropped++;
}

/* All that the report unpacks to, at most `max_bytes`. False: more than that, or not such bytes. */
static bool unpack(struct client_metrics *metrics,
                   const struct push_telemetry_request *in,
                   uint8_t *room,
                   uint32_t *size_bytes)
{
    struct decompress stream;
    uint32_t max_bytes = *size_bytes, got;
    struct decompress_options options = {(enum codec)in->compression_type, 2, max_bytes};
    *size_bytes = 0;
    decompress_begin(&stream, &metrics->work, in->metrics, options);
    while (*size_bytes < max_bytes &&
           (got = decompress_read(&stream, room + *size_bytes, max_bytes - *size_bytes)) > 0)
        *size_bytes += got;
    uint8_t more;
    if (*size_bytes == max_bytes) (void)!decompress_read(&stream, &more, 1); /* Is that all? */
    bool whole = stream.fault == DECOMPRESS_OK;
    decompress_end(&stream);
    return whole;
}

static int16_t take_report(struct request *request, struct telemetry_instance *instance)
{
    const struct push_telemetry_request *in = request->message;
    struct node *node = node_of(request->shard);
    struct report report = {.node = node, .instance = instance};
    uint32_t max_bytes = (uint32_t)broker_setting_number(node, "telemetry.max.bytes");
    uint32_t size_bytes = max_bytes;
    uint8_t *room = NULL;
    struct view data = in->metrics;
    bool good = true;
    if (in->metrics.null || in->metrics.size == 0) return KAFKA_NONE;
    if (in->compression_type != CODEC_NONE) {
        room = mem_take(node->mem, max_bytes);
        good = room != NULL && unpack(node->client_metrics, in, room, &size_bytes);
        data = view_of(room, good ? size_bytes : 0);
    }
    good = good && otlp_walk(data, keep, &report) == OTLP_OK;
    mem_put(node->mem, room, max_bytes);
    metric_add(&node->shard->metrics, METRIC_CLIENT_METRICS_DROPPED, report.dropped);
    return good ? KAFKA_NONE : KAFKA_INVALID_RECORD;
}

static int16_t push(struct request *request)
{
    const struct push_telemetry_request *in = request->message;
    struct node *node = node_of(request->shard);
    static const struct uuid one = {.bytes = {[15] = 1}};
    struct uuid id = in->client_instance_id;
    if (uuid_is_zero(id) || uuid_equal(id, one)) return KAFKA_INVALID_REQUEST;
    struct telemetry_instance *instance = instance_of(request, id);
    if (instance == NULL) return KAFKA_UNKNOWN_SERVER_ERROR;
    struct telemetry_push asked = {
        .subscription_id = in->subscription_id,
        .compression = in->compression_type,
        .terminating = in->terminating,
        .size_bytes = in->metrics.size,
        .max_bytes = (uint32_t)broker_setting_number(node, "telemetry.max.bytes"),
        .now_ms = io_now_ms(node->io),
    };
    int16_t error = telemetry_push(instance, &asked);
    return error == KAFKA_NONE ? take_report(request, instance) : error;
}

void handle_push_telemetry(struct shard *shard, struct request *request)
{
    struct node *node = node_of(shard);
    struct push_telemetry_response *out = broker_response(request);
    if (out == NULL) return;
    out->error_code = push(request);
    metric_add(&shard->metrics, METRIC_CLIENT_METRICS_PUSHES, 1);
    count(node);
    request_error(request, out->error_code);
    request_reply(request, out);
}

/* ---- telling --------------------------------------------------------------------------------- */

struct printing {
    struct out *out;
    const struct node *node;
};

static void print_one(void *context, const struct telemetry_series *series)
{
    const struct printing *printing = context;
    struct out *out = printing->out;
    bool printable = out_is_utf8(series->labels) && out_is_utf8(series->client_id) &&
                     out_is_utf8(series->software);
    if (!printable) return;
    out_text(out, "dohle_client_metric{");
    out_view(out, series->labels);
    out_text(out, ",instance_id=\"");
    out_uuid(out, series->id);
    out_char(out, '"');
    stats_put_label(out, "client", series->client_id);
    stats_put_label(out, "software", series->software);
    stats_put_label(out, "software_version", series->software_version);
    if (printing->node->count > 1) out_format(out, ",shard=\"%u\"", printing->node->index);
    out_format(out, "} %.17g\n", series->value);
}

void client_metrics_print(struct shard *shard, struct out *out, bool first)
{
    struct node *node = node_of(shard);
    struct printing printing = {out, node};
    expire(node);
    if (first)
        out_text(out, "# HELP dohle_client_metric The last values that clients pushed, by their "
                      "own names (KIP-714).\n# TYPE dohle_client_metric untyped\n");
    telemetry_each(node->client_metrics->telemetry, print_one, &printing);
}

/* ---- life ------------------------------------------------------------------------------------ */

int client_metrics_open(struct node *node)
{
    struct client_metrics *metrics = mem_get(node->mem, sizeof(*metrics));
    if (metrics == NULL) return -ENOMEM;
    metrics->telemetry = telemetry_new(node->mem, io_random(node->io, IO_RANDOM_HASH), node->count);
    compress_work_init(&metrics->work, node->mem);
    node->client_metrics = metrics;
    return metrics->telemetry == NULL ? -ENOMEM : 0;
}

void client_metrics_close(struct node *node)
{
    struct client_metrics *metrics = node->client_metrics;
    if (metrics == NULL) return;
    compress_work_free(&metrics->work);
    (void)telemetry_free(metrics->telemetry);
    node->client_metrics = mem_put(node->mem, metrics, sizeof(*metrics));
}
