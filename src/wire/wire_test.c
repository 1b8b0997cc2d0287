/* wire_test.c - every message and version goes round; golden bytes; truncations and flipped bits.
 */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <setjmp.h>

#include <cmocka.h>

#include "gen/broker_heartbeat_request.h"
#include "gen/fetch_response.h"
#include "gen/heartbeat_request.h"
#include "gen/heartbeat_response.h"
#include "gen/request_header.h"
#include "sys/memory.h"
#include "wire/form.h"

struct rig {
    struct mem mem;
    struct arena arena;
};

static void rig_open(struct rig *rig)
{
    memory_init(&rig->mem, 0);
    arena_init(&rig->arena, &rig->mem, 0);
}

static void rig_close(struct rig *rig)
{
    arena_free(&rig->arena);
    assert_int_equal(rig->mem.used_bytes, 0);
}

static struct view encoded(struct rig *rig, const struct wire_form *form, const void *value)
{
    size_t size = wire_size(form, value);
    uint8_t *bytes = arena_get(&rig->arena, size + 1);
    assert_non_null(bytes);
    assert_int_equal(wire_encode(form, value, bytes, NULL, 0, NULL), size);
    return view_of(bytes, (uint32_t)size);
}

static void fill_form(struct rig *rig, const struct wire_form *form, uint8_t *out, uint32_t *seed);

static struct view fill_text(struct rig *rig, uint32_t *seed, uint32_t size)
{
    uint8_t *bytes = arena_get(&rig->arena, size + 1);
    for (uint32_t i = 0; i < size; i++)
        bytes[i] = (uint8_t)('a' + (*seed)++ % 26);
    return view_of(bytes, size);
}

static void fill_array(struct rig *rig,
                       const struct wire_op *op,
                       struct wire_array *array,
                       uint32_t *seed)
{
    array->count = 2;
    if (op->code == WIRE_OP_ARRAY_FIXED) {
        uint8_t *items = arena_get(&rig->arena, 2u * op->size);
        for (uint32_t i = 0; i < 2u * op->size; i++)
            items[i] = op->type == WIRE_BOOL ? 1 : (uint8_t)++ * seed;
        array->items = items;
    } else if (op->code == WIRE_OP_ARRAY_STRING) {
        struct view *items = arena_get(&rig->arena, 2 * sizeof(*items));
        items[0] = fill_text(rig, seed, 3);
        items[1] = fill_text(rig, seed, 300); /* Two bytes of varint length. */
        array->items = items;
    } else {
        size_t size = wire_form_shape(wire_op_form(op))->size_bytes;
        uint8_t *items = arena_get(&rig->arena, 2 * size);
        for (uint32_t i = 0; i < 2; i++)
            fill_form(rig, wire_op_form(op), items + i * size, seed);
        array->items = items;
    }
}

static void fill_op(struct rig *rig, const struct wire_op *op, uint8_t *out, uint32_t *seed)
{
    void *slot = out + op->offset;
    switch ((enum wire_op_code)op->code) {
    case WIRE_OP_FIXED_RUN:
        for (uint32_t i = 0; i < op->count; i++) {
            const struct wire_fixed *f = &wire_op_fixed(op)[i];
            for (uint32_t b = 0; b < wire_type_size(f->type); b++)
                out[f->offset + b] = f->type == WIRE_BOOL ? 1 : (uint8_t)++ * seed;
        }
        break;
    case WIRE_OP_STRING: *(struct view *)slot = fill_text(rig, seed, 5); break;
    case WIRE_OP_BYTES:
    case WIRE_OP_RECORDS: *(struct view *)slot = fill_text(rig, seed, 70); break;
    case WIRE_OP_ARRAY_FIXED:
    case WIRE_OP_ARRAY_STRING:
    case WIRE_OP_ARRAY_STRUCT: fill_array(rig, op, slot, seed); break;
    case WIRE_OP_STRUCT: fill_form(rig, wire_op_form(op), slot, seed); break;
    case WIRE_OP_STRUCT_OR_NULL: {
        uint8_t *value = arena_get(&rig->arena, wire_form_shape(wire_op_form(op))->size_bytes);
        fill_form(rig, wire_op_form(op), value, seed);
        *(void **)slot = value;
        break;
    }
    case WIRE_OP_TAGS: {
        static const uint8_t unknown[] = {99, 3, 'x', 'y', 'z'};
        *(struct view *)slot = view_of(unknown, sizeof(unknown));
        break;
    }
    case WIRE_OP_ABSENT: break;
    }
}

/* Every field set, two elements in each array, every known tag, one unknown tag. */
static void fill_form(struct rig *rig, const struct wire_form *form, uint8_t *out, uint32_t *seed)
{
    wire_struct_defaults(wire_form_shape(form), out);
    for (uint32_t i = 0; i < form->op_count; i++)
        fill_op(rig, &wire_form_ops(form)[i], out, seed);
    for (uint32_t i = 0; i < form->tagged_count; i++)
        fill_op(rig, &wire_form_tagged(form)[i].op, out, seed);
}

typedef void each_form(struct rig *rig, const struct wire_message *message, int16_t version);

static void for_all(each_form *each)
{
    uint32_t count;
    const struct wire_message *const *messages = wire_messages(&count);
    assert_true(count > 280);
    for (uint32_t i = 0; i < count; i++) {
        for (int16_t v = messages[i]->version_min; v <= messages[i]->version_max; v++) {
            struct rig rig;
            rig_open(&rig);
            each(&rig, messages[i], v);
            rig_close(&rig);
        }
    }
}

static void check_round(struct rig *rig, const struct wire_form *form, const void *value)
{
    struct view bytes = encoded(rig, form, value);
    void *again = arena_get(&rig->arena, wire_form_shape(form)->size_bytes);
    memset(again, 0xa5, wire_form_shape(form)->size_bytes);
    struct reader in = reader_of(bytes);
    assert_true(wire_decode(&in, form, &rig->arena, again));
    assert_int_equal(reader_left(&in), 0);
    assert_int_equal(in.oddities, 0);
    assert_true(view_equal(bytes, encoded(rig, form, again)));
    assert_null(wire_unsupported(form, again));
    assert_true(bytes.size >= form->size_min);
}

static void round_trip(struct rig *rig, const struct wire_message *message, int16_t version)
{
    const struct wire_form *form = wire_form(message, version);
    void *value = arena_get(&rig->arena, message->size_bytes);
    uint32_t seed = 1;
    assert_true(wire_sample(form, &rig->arena, value));
    check_round(rig, form, value);
    fill_form(rig, form, value, &seed);
    check_round(rig, form, value);
}

static void test_round_trips(void **state)
{
    for_all(round_trip);
}

/* Every truncation is an error, every flipped bit an error or a value; never a fault, never more
 * memory than the factor allows. */
static void damage(struct rig *rig, const struct wire_message *message, int16_t version)
{
    const struct wire_form *form = wire_form(message, version);
    void *value = arena_get(&rig->arena, message->size_bytes);
    uint32_t seed = 1;
    fill_form(rig, form, value, &seed);
    struct view bytes = encoded(rig, form, value);
    uint8_t *copy = malloc(bytes.size + 1);
    struct arena scratch;
    arena_init(&scratch, &rig->mem, 0);

    for (uint32_t size = 0; size < bytes.size; size++) {
        uint8_t *exact = malloc(size + 1); /* Its end is watched by the sanitizer. */
        memcpy(exact + 1, bytes.data, size);
        struct reader in = reader_of(view_of(exact + 1, size));
        assert_false(wire_decode(&in, form, &scratch, value));
        arena_reset(&scratch);
        free(exact);
    }
    for (uint32_t bit = 0; bit < bytes.size * 8; bit++) {
        memcpy(copy, bytes.data, bytes.size);
        copy[bit / 8] ^= (uint8_t)(1u << (bit % 8));
        struct reader in = reader_of(view_of(copy, bytes.size));
        if (wire_decode(&in, form, &scratch, value)) assert_true(in.at <= copy + bytes.size);
        assert_true(scratch.used_bytes <= 16u * bytes.size + 4096u);
        arena_reset(&scratch);
    }
    arena_free(&scratch);
    free(copy);
}

static void test_w19_w20_damage(void **state)
{
    for_all(damage);
}

static void check_golden(const char *name, const char *hex)
{
    FILE *file = fopen(name, "r");
    char line[256] = {0};
    assert_non_null(file);
    assert_non_null(fgets(line, sizeof(line), file));
    fclose(file);
    line[strcspn(line, "\n")] = '\0';
    assert_string_equal(line, hex);
}

static void to_hex(struct view bytes, char *out)
{
    for (uint32_t i = 0; i < bytes.size; i++)
        (void)snprintf(out + 2 * i, 3, "%02x", bytes.data[i]);
}

/* Frame, header and sample body of an API's request or response. */
static void check_frame(const char *file, int16_t key, int16_t version, bool request)
{
    struct rig rig;
    rig_open(&rig);
    const struct wire_api *api = wire_api(key);
    const struct wire_form *form = wire_form(request ? api->request : api->response, version);
    void *body = arena_get(&rig.arena, 4096);
    assert_true(wire_sample(form, &rig.arena, body));
    struct view bytes = encoded(&rig, form, body);

    uint8_t head[32] = {0};
    uint32_t head_size =
        request ? 15 : 9; /* size, header; flexible headers end with a tag count. */
    if (request) {
        store_be16(head + 4, (uint16_t)key);
        store_be16(head + 6, (uint16_t)version);
    }
    store_be32(head, head_size - 4 + bytes.size);
    char hex[256];
    to_hex(view_of(head, head_size), hex);
    to_hex(bytes, hex + 2 * head_size);
    check_golden(file, hex);
    rig_close(&rig);
}

static void test_golden(void **state)
{
    check_frame("test/golden/HeartbeatRequest-v4.hex", 12, 4, true);
    check_frame("test/golden/HeartbeatResponse-v4.hex", 12, 4, false);
    check_frame("test/golden/BrokerHeartbeatRequest-v1.hex", 63, 1, true);
    check_frame("test/golden/BrokerHeartbeatResponse-v1.hex", 63, 1, false);
}

static void test_apis(void **state)
{
    uint32_t count;
    const struct wire_api *apis = wire_apis(&count);
    assert_int_equal(count, 95);
    assert_string_equal(apis[12].name, "Heartbeat");
    assert_int_equal(apis[0].served_min, 3);
    assert_int_equal(apis[4].served_max, -1);
    assert_int_equal(apis[22].stable_max, apis[22].served_max - 1);
    assert_null(wire_api(95));
    assert_null(wire_api(-1));
    assert_int_equal(wire_request_header_version(wire_api(7), 0), 0);
    assert_int_equal(wire_request_header_version(wire_api(12), 3), 1);
    assert_int_equal(wire_request_header_version(wire_api(12), 4), 2);
    assert_int_equal(wire_response_header_version(wire_api(18), 4), 0);
    assert_int_equal(wire_response_header_version(wire_api(12), 4), 1);
    assert_ptr_equal(wire_message_by_name(VIEW("HeartbeatRequest")), &wire_heartbeat_request);
    assert_null(wire_message_by_name(VIEW("Heartbeatrequest")));
}

/* KIP-482: the client id of a flexible header is not compact. */
static void test_header_client_id(void **state)
{
    struct rig rig;
    rig_open(&rig);
    struct request_header header = {.request_api_key = 12,
                                    .request_api_version = 4,
                                    .correlation_id = 7,
                                    .client_id = VIEW("ab")};
    struct view bytes = encoded(&rig, wire_form(&wire_request_header, 2), &header);
    static const uint8_t want[] = {0, 12, 0, 4, 0, 0, 0, 7, 0, 2, 'a', 'b', 0};
    assert_true(view_equal(bytes, view_of(want, sizeof(want))));
    rig_close(&rig);
}

/* What Kafka's readers take: an overlong varint, a known tag twice; both are counted. */
static void test_oddities(void **state)
{
    struct rig rig;
    rig_open(&rig);
    static const uint8_t overlong[] = {0x82, 0x00, 'g', 0, 0, 0, 5, 0x02, 'm', 0, 0};
    struct reader in = reader_of(view_of(overlong, sizeof(overlong)));
    struct heartbeat_request beat;
    assert_true(wire_decode(&in, wire_form(&wire_heartbeat_request, 4), &rig.arena, &beat));
    assert_true(view_is(beat.group_id, "g"));
    assert_true(beat.group_instance_id.null);
    assert_int_equal(beat.generation_id, 5);
    assert_int_equal(in.oddities, 1);

    uint8_t twice[22 + 1 + 2 * 19] = {0};
    twice[22] = 2;
    for (int i = 0; i < 2; i++) {
        uint8_t *tag = twice + 23 + i * 19;
        tag[1] = 17; /* Tag 0: one uuid. */
        tag[2] = 2;
        tag[3] = (uint8_t)(i + 1);
    }
    in = reader_of(view_of(twice, sizeof(twice)));
    struct broker_heartbeat_request broker;
    assert_true(
        wire_decode(&in, wire_form(&wire_broker_heartbeat_request, 1), &rig.arena, &broker));
    assert_int_equal(in.oddities, 1);
    assert_int_equal(broker.offline_log_dirs.count, 1);
    assert_int_equal(broker.offline_log_dirs.items[0].bytes[0], 2);
    assert_int_equal(broker.broker_epoch, 0);
    rig_close(&rig);
}

/* A count is checked against the bytes left before anything is reserved. */
static void test_w11_count_beyond_the_bytes(void **state)
{
    struct rig rig;
    rig_open(&rig);
    static const uint8_t bytes[] = {0x7f, 0xff, 0xff, 0xff, 0, 0, 0, 1};
    struct reader in = reader_of(view_of(bytes, sizeof(bytes)));
    const struct wire_message *message = wire_message_by_name(VIEW("MetadataRequest"));
    uint8_t out[256];
    assert_false(wire_decode(&in, wire_form(message, 4), &rig.arena, out));
    assert_int_equal(in.fault, READER_COUNT);
    assert_int_equal(rig.mem.used_bytes, 0);
    rig_close(&rig);
}

/* Where we are stricter than Kafka: a million topics without a name are two megabytes on the wire
 * and would be forty-eight in memory. */
static void test_w12_memory_budget(void **state)
{
    struct rig rig;
    rig_open(&rig);
    uint32_t size = 4 + 2 * 1000000;
    uint8_t *bytes = calloc(1, size);
    store_be32(bytes, 1000000);
    struct reader in = reader_of(view_of(bytes, size));
    const struct wire_message *message = wire_message_by_name(VIEW("MetadataRequest"));
    uint8_t out[256];
    assert_false(wire_decode(&in, wire_form(message, 0), &rig.arena, out));
    assert_int_equal(in.fault, READER_MEMORY);
    assert_int_equal(rig.mem.used_bytes, 0);
    free(bytes);
    rig_close(&rig);
}

/* A field that the version cannot carry is told, unless it is ignorable or at its default. */
static void test_unsupported(void **state)
{
    struct heartbeat_request beat;
    wire_defaults(&wire_heartbeat_request, &beat);
    assert_true(beat.group_instance_id.null);
    assert_null(wire_unsupported(wire_form(&wire_heartbeat_request, 2), &beat));
    beat.group_instance_id = VIEW("i");
    assert_string_equal(
        wire_text(wire_unsupported(wire_form(&wire_heartbeat_request, 2), &beat)->name),
        "GroupInstanceId");
    assert_null(wire_unsupported(wire_form(&wire_heartbeat_request, 3), &beat));
    struct heartbeat_response reply = {.throttle_time_ms = 5};
    assert_null(wire_unsupported(wire_form(&wire_heartbeat_response, 0), &reply));
}

/* Records that are not copied: their length is written, their bytes are a gap. */
static void test_gaps(void **state)
{
    struct rig rig;
    rig_open(&rig);
    struct fetch_response_partition_data partitions[3];
    int token;
    for (int i = 0; i < 3; i++) {
        wire_struct_defaults(&wire_fetch_response_partition_data_shape, &partitions[i]);
        partitions[i].records = (struct view){(const uint8_t *)&token, 1000, false, i != 1};
    }
    partitions[1].records = VIEW("abc");
    struct fetch_response_fetchable_topic_response topic;
    wire_struct_defaults(&wire_fetch_response_fetchable_topic_response_shape, &topic);
    topic.partitions.items = partitions;
    topic.partitions.count = 3;
    struct fetch_response response;
    wire_defaults(&wire_fetch_response, &response);
    response.responses.items = &topic;
    response.responses.count = 1;

    const struct wire_form *form = wire_form(&wire_fetch_response, 12);
    struct wire_external external;
    size_t size = wire_size_external(form, &response, &external);
    assert_int_equal(external.bytes, 2000);
    assert_int_equal(external.count, 2);
    assert_int_equal(size, wire_size(form, &response));
    uint8_t *bytes = arena_get(&rig.arena, size);
    struct wire_gap gaps[2];
    uint32_t count;
    assert_int_equal(wire_encode(form, &response, bytes, gaps, 2, &count), size - 2000);
    assert_int_equal(count, 2);
    assert_true(gaps[0].at < gaps[1].at);
    assert_int_equal(gaps[1].size, 1000);
    assert_ptr_equal(gaps[1].token, &token);
    rig_close(&rig);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_apis),
        cmocka_unit_test(test_golden),
        cmocka_unit_test(test_header_client_id),
        cmocka_unit_test(test_oddities),
        cmocka_unit_test(test_w11_count_beyond_the_bytes),
        cmocka_unit_test(test_w12_memory_budget),
        cmocka_unit_test(test_unsupported),
        cmocka_unit_test(test_gaps),
        cmocka_unit_test(test_round_trips),
        cmocka_unit_test(test_w19_w20_damage),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
