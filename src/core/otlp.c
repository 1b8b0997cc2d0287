/* otlp.c - see otlp.h. Field numbers are those of opentelemetry/proto/metrics/v1. */
#include "core/otlp.h"

#include "base/limits.h"
#include "base/protobuf.h"

#define DELTA 1 /* AggregationTemporality */

struct walk {
    void (*visit)(void *context, const struct otlp_point *point);
    void *context;
    uint32_t points;
    enum otlp_result result;
};

/* A metric's data as they are met; temporality may stand behind the points. */
struct metric {
    struct view name;
    struct view data;
    uint32_t kind; /* The field that it stood in. */
    bool delta;
};

enum { METRIC_GAUGE = 5, METRIC_SUM = 7, METRIC_HISTOGRAM = 9 };

static void give(struct walk *walk, const struct otlp_point *point)
{
    if (walk->points++ >= OTLP_POINTS_MAX) {
        walk->result = OTLP_E_POINTS;
        return;
    }
    walk->visit(walk->context, point);
}

static void check(struct walk *walk, const struct reader *in)
{
    if (in->fault != READER_OK && walk->result == OTLP_OK) walk->result = OTLP_E_DATA;
}

static void walk_number(struct walk *walk, const struct metric *metric, struct view body)
{
    struct reader in = reader_of(body);
    struct protobuf_field field;
    struct otlp_point point = {
        .name = metric->name,
        .kind = metric->kind == METRIC_SUM ? OTLP_SUM : OTLP_GAUGE,
        .delta = metric->kind == METRIC_SUM && metric->delta,
        .body = body,
        .attributes = 7,
    };
    bool valued = false;
    while (protobuf_next(&in, &field)) {
        if (field.form != PROTOBUF_FIXED64 || (field.number != 4 && field.number != 6)) continue;
        point.value =
            field.number == 4 ? protobuf_double(field.value) : (double)(int64_t)field.value;
        valued = true;
    }
    check(walk, &in);
    if (valued && walk->result == OTLP_OK) give(walk, &point);
}

static void walk_histogram(struct walk *walk, const struct metric *metric, struct view body)
{
    struct reader in = reader_of(body);
    struct protobuf_field field;
    struct otlp_point point = {
        .name = metric->name, .delta = metric->delta, .body = body, .attributes = 9};
    double count = 0, sum = 0;
    while (protobuf_next(&in, &field)) {
        if (field.form != PROTOBUF_FIXED64) continue;
        if (field.number == 4) count = (double)field.value;
        if (field.number == 5) sum = protobuf_double(field.value);
    }
    check(walk, &in);
    if (walk->result != OTLP_OK) return;
    point.kind = OTLP_HISTOGRAM_COUNT;
    point.value = count;
    give(walk, &point);
    point.kind = OTLP_HISTOGRAM_SUM;
    point.value = sum;
    if (walk->result == OTLP_OK) give(walk, &point);
}

static void walk_data(struct walk *walk, struct metric *metric)
{
    struct protobuf_field field;
    struct reader in = reader_of(metric->data);
    while (protobuf_next(&in, &field))
        if (field.number == 2 && field.form == PROTOBUF_VARINT)
            metric->delta = field.value == DELTA;
    check(walk, &in);
    in = reader_of(metric->data);
    while (walk->result == OTLP_OK && protobuf_next(&in, &field)) {
        if (field.number != 1 || field.form != PROTOBUF_BYTES) continue;
        if (metric->kind == METRIC_HISTOGRAM)
            walk_histogram(walk, metric, field.bytes);
        else
            walk_number(walk, metric, field.bytes);
    }
}

static void walk_metric(struct walk *walk, struct view body)
{
    struct reader in = reader_of(body);
    struct protobuf_field field;
    struct metric metric = {.name = VIEW_EMPTY, .data = VIEW_EMPTY};
    while (protobuf_next(&in, &field)) {
        if (field.form != PROTOBUF_BYTES) continue;
        if (field.number == 1) metric.name = field.bytes;
        if (field.number != METRIC_GAUGE && field.number != METRIC_SUM &&
            field.number != METRIC_HISTOGRAM)
            continue;
        metric.kind = field.number;
        metric.data = field.bytes;
    }
    check(walk, &in);
    if (walk->result == OTLP_OK && metric.kind != 0) walk_data(walk, &metric);
}

/* The submessages with this number, each given on. */
static void walk_each(struct walk *walk,
                      struct view body,
                      uint32_t number,
                      void (*inner)(struct walk *walk, struct view body))
{
    struct reader in = reader_of(body);
    struct protobuf_field field;
    while (walk->result == OTLP_OK && protobuf_next(&in, &field))
        if (field.number == number && field.form == PROTOBUF_BYTES) inner(walk, field.bytes);
    check(walk, &in);
}

static void walk_scope(struct walk *walk, struct view body)
{
    walk_each(walk, body, 2, walk_metric);
}

static void walk_resource(struct walk *walk, struct view body)
{
    walk_each(walk, body, 2, walk_scope);
}

enum otlp_result otlp_walk(struct view data,
                           void (*visit)(void *context, const struct otlp_point *point),
                           void *context)
{
    struct walk walk = {.visit = visit, .context = context};
    walk_each(&walk, data, 1, walk_resource);
    return walk.result;
}

/* ---- attributes ------------------------------------------------------------------------------ */

static void read_value(struct reader *outer, struct view body, struct otlp_attribute *out)
{
    struct reader in = reader_of(body);
    struct protobuf_field field;
    while (protobuf_next(&in, &field)) {
        out->known = true;
        if (field.number == 1 && field.form == PROTOBUF_BYTES)
            out->text = field.bytes;
        else if ((field.number == 2 || field.number == 3) && field.form == PROTOBUF_VARINT)
            out->number = (double)(int64_t)field.value;
        else if (field.number == 4 && field.form == PROTOBUF_FIXED64)
            out->number = protobuf_double(field.value);
        else
            out->known = false;
    }
    if (in.fault != READER_OK) reader_fail(outer, in.fault);
}

bool otlp_attribute(struct reader *in, const struct otlp_point *point, struct otlp_attribute *out)
{
    struct protobuf_field field;
    do {
        if (!protobuf_next(in, &field)) return false;
    } while (field.number != point->attributes || field.form != PROTOBUF_BYTES);
    *out = (struct otlp_attribute){.key = VIEW_EMPTY, .text = VIEW_NULL};
    struct reader pair = reader_of(field.bytes);
    while (protobuf_next(&pair, &field)) {
        if (field.form != PROTOBUF_BYTES) continue;
        if (field.number == 1) out->key = field.bytes;
        if (field.number == 2) read_value(&pair, field.bytes, out);
    }
    if (pair.fault != READER_OK) reader_fail(in, pair.fault);
    return in->fault == READER_OK;
}
