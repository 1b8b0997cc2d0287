/* control.c - keys and values of control records; the layout is at the head of control.h. */
#include "record/control.h"

#define MARKER_VALUE_BYTES 6u

bool control_key_parse(struct view key, enum control_type *type)
{
    *type = CONTROL_UNKNOWN;
    if (key.null || key.size < CONTROL_KEY_BYTES) return false;
    if ((int16_t)load_be16(key.data) < 0) return false;
    int16_t value = (int16_t)load_be16(key.data + 2);
    if (value >= CONTROL_ABORT && value <= CONTROL_KRAFT_VOTERS) *type = (enum control_type)value;
    return true;
}

const char *control_name(enum control_type type)
{
    static const char *const names[] = {"ABORT",           "COMMIT",          "LEADER_CHANGE",
                                        "SNAPSHOT_HEADER", "SNAPSHOT_FOOTER", "KRAFT_VERSION",
                                        "KRAFT_VOTERS"};
    assert(type <= CONTROL_KRAFT_VOTERS);
    return type < 0 ? "UNKNOWN" : names[type];
}

bool control_marker_parse(struct view key, struct view value, struct control_marker *out)
{
    enum control_type type;
    *out = (struct control_marker){0};
    if (!control_key_parse(key, &type)) return false;
    if (type != CONTROL_ABORT && type != CONTROL_COMMIT) return false;
    if (value.null || value.size < MARKER_VALUE_BYTES) return false;
    if ((int16_t)load_be16(value.data) < 0) return false;
    out->commit = type == CONTROL_COMMIT;
    out->coordinator_epoch = (int32_t)load_be32(value.data + 2);
    return true;
}

static void store_key(uint8_t out[CONTROL_KEY_BYTES], enum control_type type)
{
    assert(type >= CONTROL_ABORT);
    store_be16(out, 0);
    store_be16(out + 2, (uint16_t)type);
}

void control_marker_store(const struct control_marker_batch *marker,
                          uint8_t out[CONTROL_MARKER_BYTES])
{
    /* length 16, attributes 0, deltas 0, key length 4, key, value length 6, value, no headers */
    uint8_t *record = out + BATCH_HEADER_BYTES;
    memset(record, 0, CONTROL_MARKER_BYTES - BATCH_HEADER_BYTES);
    record[0] = 2 * 16;
    record[4] = 2 * CONTROL_KEY_BYTES;
    store_key(record + 5, marker->marker.commit ? CONTROL_COMMIT : CONTROL_ABORT);
    record[9] = 2 * MARKER_VALUE_BYTES;
    store_be32(record + 12, (uint32_t)marker->marker.coordinator_epoch);

    struct batch_header header = {
        .base_offset = marker->base_offset,
        .length = CONTROL_MARKER_BYTES - BATCH_FRAME_BYTES,
        .leader_epoch = marker->leader_epoch,
        .magic = 2,
        .attributes = BATCH_TRANSACTIONAL | BATCH_CONTROL,
        .base_timestamp = marker->timestamp_ms,
        .max_timestamp = marker->timestamp_ms,
        .producer_id = marker->producer_id,
        .base_sequence = BATCH_NO_SEQUENCE,
        .record_count = 1,
        .producer_epoch = marker->producer_epoch,
    };
    batch_header_store(&header, out);
}

void control_add(struct batch_build *build,
                 enum control_type type,
                 struct view value,
                 int64_t timestamp_ms)
{
    assert(build->options.control);
    uint8_t key[CONTROL_KEY_BYTES];
    store_key(key, type);
    struct record_input record = {
        .timestamp_ms = timestamp_ms,
        .key = view_of(key, sizeof(key)),
        .value = value,
    };
    batch_build_add(build, &record);
}
