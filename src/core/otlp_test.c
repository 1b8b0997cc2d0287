/* otlp_test.c - a report with gauges, sums, histograms and attributes; damaged ones; too many. */
#include "core/core_test.h"

#include "base/limits.h"
#include "core/otlp.h"

/* ---- making reports -------------------------------------------------------------------------- */

struct maker {
    uint8_t bytes[64 * 1024];
    uint32_t size;
};

static void put(struct maker *maker, const void *bytes, uint32_t size)
{
    assert_true(maker->size + size <= sizeof(maker->bytes));
    if (size > 0) memcpy(maker->bytes + maker->size, bytes, size);
    maker->size += size;
}

static void put_varint(struct maker *maker, uint64_t value)
{
    do {
        uint8_t byte = (uint8_t)(value & 0x7f) | (value > 0x7f ? 0x80 : 0);
        put(maker, &byte, 1);
        value >>= 7;
    } while (value > 0);
}

static void put_bytes(struct maker *maker, uint32_t number, const void *bytes, uint32_t size)
{
    put_varint(maker, number << 3 | 2);
    put_varint(maker, size);
    put(maker, bytes, size);
}

static void put_inner(struct maker *maker, uint32_t number, const struct maker *inner)
{
    put_bytes(maker, number, inner->bytes, inner->size);
}

static void put_text(struct maker *maker, uint32_t number, const char *text)
{
    put_bytes(maker, number, text, (uint32_t)strlen(text));
}

static void put_double(struct maker *maker, uint32_t number, double value)
{
    put_varint(maker, number << 3 | 1);
    put(maker, &value, sizeof(value)); /* Machines here have protobuf's order. */
}

static void put_attribute(struct maker *maker, uint32_t number, const char *key, const char *text)
{
    struct maker value = {.size = 0}, pair = {.size = 0};
    put_text(&value, 1, text);
    put_text(&pair, 1, key);
    put_inner(&pair, 2, &value);
    put_inner(maker, number, &pair);
}

/* The whole report of one metric whose data are `data`, in the field `kind`. */
static void report_of(struct maker *out, const char *name, uint32_t kind, const struct maker *data)
{
    static struct maker metric, scope, resource;
    metric.size = scope.size = resource.size = 0;
    put_text(&metric, 1, name);
    put_text(&metric, 3, "ms");
    put_inner(&metric, kind, data);
    put_inner(&scope, 2, &metric);
    put_inner(&resource, 2, &scope);
    put_inner(out, 1, &resource);
}

/* ---- reading them ---------------------------------------------------------------------------- */

struct seen {
    struct otlp_point points[8];
    uint32_t count;
};

static void see(void *context, const struct otlp_point *point)
{
    struct seen *seen = context;
    if (seen->count < ARRAY_SIZE(seen->points)) seen->points[seen->count] = *point;
    seen->count++;
}

static void kinds(void **state)
{
    (void)state;
    static struct maker report, data, point;
    struct seen seen = {.count = 0};
    report.size = data.size = point.size = 0;
    put_double(&point, 4, 2.5);
    put_attribute(&point, 7, "topic", "birds");
    put_inner(&data, 1, &point);
    report_of(&report, "a.gauge", 5, &data);

    data.size = point.size = 0;
    put_varint(&point, 6 << 3 | 1);
    put(&point, &(int64_t){-7}, 8);
    put_inner(&data, 1, &point);
    put_varint(&data, 2 << 3);
    put_varint(&data, 1); /* Delta, told behind the point. */
    report_of(&report, "a.sum", 7, &data);

    data.size = point.size = 0;
    put_varint(&point, 4 << 3 | 1);
    put(&point, &(uint64_t){3}, 8);
    put_double(&point, 5, 4.5);
    put_inner(&data, 1, &point);
    put_varint(&data, 2 << 3);
    put_varint(&data, 2);
    report_of(&report, "a.histogram", 9, &data);

    assert_int_equal(otlp_walk(view_of(report.bytes, report.size), see, &seen), OTLP_OK);
    assert_int_equal(seen.count, 4);
    assert_true(view_is(seen.points[0].name, "a.gauge") && seen.points[0].value == 2.5);
    assert_true(seen.points[1].kind == OTLP_SUM && seen.points[1].delta);
    assert_true(seen.points[1].value == -7);
    assert_true(seen.points[2].kind == OTLP_HISTOGRAM_COUNT && seen.points[2].value == 3);
    assert_true(seen.points[3].kind == OTLP_HISTOGRAM_SUM && seen.points[3].value == 4.5);
    assert_false(seen.points[3].delta);

    struct reader in = reader_of(seen.points[0].body);
    struct otlp_attribute attribute;
    assert_true(otlp_attribute(&in, &seen.points[0], &attribute));
    assert_true(view_is(attribute.key, "topic") && view_is(attribute.text, "birds"));
    assert_true(attribute.known);
    assert_false(otlp_attribute(&in, &seen.points[0], &attribute));
    assert_int_equal(in.fault, READER_OK);
}

/* Each byte of a report changed to each of a few values: nothing but a result may come of it. */
static void damaged(void **state)
{
    (void)state;
    static struct maker report, data, point;
    report.size = data.size = point.size = 0;
    put_double(&point, 4, 2.5);
    put_attribute(&point, 7, "topic", "birds");
    put_inner(&data, 1, &point);
    report_of(&report, "a.gauge", 5, &data);
    static const uint8_t values[] = {0, 1, 0x7f, 0x80, 0xff};
    uint32_t refused = 0;
    for (uint32_t at = 0; at < report.size; at++)
        for (size_t i = 0; i < sizeof(values); i++) {
            struct seen seen = {.count = 0};
            uint8_t *copy = malloc(report.size);
            assert_non_null(copy);
            memcpy(copy, report.bytes, report.size);
            copy[at] = values[i];
            refused += otlp_walk(view_of(copy, report.size), see, &seen) != OTLP_OK;
            for (uint32_t p = 0; p < MIN(seen.count, 8u); p++) {
                struct reader in = reader_of(seen.points[p].body);
                struct otlp_attribute attribute;
                while (otlp_attribute(&in, &seen.points[p], &attribute))
                    ;
            }
            free(copy);
        }
    assert_true(refused > 50);
    struct seen seen = {.count = 0};
    assert_int_equal(otlp_walk(view_of(report.bytes, report.size - 1), see, &seen), OTLP_E_DATA);
    assert_int_equal(otlp_walk(VIEW_EMPTY, see, &seen), OTLP_OK);
}

static void too_many(void **state)
{
    (void)state;
    static struct maker data, point;
    struct maker *report = malloc(sizeof(*report));
    assert_non_null(report);
    report->size = data.size = point.size = 0;
    put_double(&point, 4, 1);
    for (uint32_t i = 0; i < 4000; i++)
        put_inner(&data, 1, &point);
    report_of(report, "m", 5, &data);
    uint32_t one = report->size;
    struct seen seen = {.count = 0};
    uint8_t *thrice = malloc((size_t)one * 3);
    assert_non_null(thrice);
    for (uint32_t i = 0; i < 3; i++)
        memcpy(thrice + (size_t)i * one, report->bytes, one);
    assert_int_equal(otlp_walk(view_of(thrice, one * 2), see, &seen), OTLP_OK);
    assert_int_equal(seen.count, 8000);
    assert_int_equal(otlp_walk(view_of(thrice, one * 3), see, &seen), OTLP_E_POINTS);
    assert_int_equal(seen.count, 8000 + OTLP_POINTS_MAX);
    free(thrice);
    free(report);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(kinds),
        cmocka_unit_test(damaged),
        cmocka_unit_test(too_many),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
