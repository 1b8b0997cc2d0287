/* otlp.h - metrics as OpenTelemetry's protocol sends them (MetricsData), one data point at a time.
 *
 * What is read: gauges, sums, and count and sum of histograms; other kinds are passed over. A
 * point's attributes are texts, numbers and truth values; others have no value here. Bounded: at
 * most OTLP_POINTS_MAX points, and nothing is allocated. Pure. */
#pragma once

#include "base/reader.h"

enum otlp_kind { OTLP_GAUGE, OTLP_SUM, OTLP_HISTOGRAM_COUNT, OTLP_HISTOGRAM_SUM };

struct otlp_point {
    struct view name; /* "org.apache.kafka.producer.record.send.total" */
    enum otlp_kind kind;
    bool delta; /* What came in since the last report, not since the beginning. */
    double value;
    struct view body; /* The point's own bytes, for otlp_attribute(). */
    uint32_t attributes;
};

struct otlp_attribute {
    struct view key;
    struct view text; /* Null: it is a number. */
    double number;    /* A truth value is 0 or 1. */
    bool known;       /* False: a value of a kind that is not read. */
};

enum otlp_result {
    OTLP_OK,
    OTLP_E_DATA,   /* Not such a message. */
    OTLP_E_POINTS, /* More points than one report may have. */
};

/* Visit each point in order. Views live as long as `data`. O(bytes). */
MUST_USE enum otlp_result otlp_walk(struct view data,
                                    void (*visit)(void *context, const struct otlp_point *point),
                                    void *context);

/* A point's attributes, one by one: begin with reader_of(point->body). False at the end, and at a
 * fault (in->fault). */
MUST_USE bool otlp_attribute(struct reader *in,
                             const struct otlp_point *point,
                             struct otlp_attribute *out);
