/* log_dump_record.c - keys and values of Kafka's own topics, decoded by the schema's tables.
 *
 *   __consumer_offsets, __transaction_state, __share_group_state
 *       key: i16 type, message; value: i16 version, message. The types are those of one family of
 *       messages each, named XKey and XValue.
 *   __cluster_metadata
 *       value: uvarint frame version 1, uvarint type, uvarint version, message
 *   control records
 *       key: i16 version, i16 type; value: a message whose first field is its version */
#include "base/reader.h"
#include "cli/log_dump.h"
#include "record/control.h"
#include "text/json.h"

/* Does this key message belong to the topic? */
static bool of_topic(const struct wire_message *message, const char *topic)
{
    if (message->kind != WIRE_COORDINATOR_KEY) return false;
    bool txn = strcmp(message->name, "TransactionLogKey") == 0;
    bool share = strcmp(message->name, "ShareSnapshotKey") == 0 ||
                 strcmp(message->name, "ShareUpdateKey") == 0;
    if (strcmp(topic, "__transaction_state") == 0) return txn;
    if (strcmp(topic, "__share_group_state") == 0) return share;
    return strcmp(topic, "__consumer_offsets") == 0 && !txn && !share;
}

static const struct wire_message *key_message(const char *topic, int16_t type)
{
    uint32_t count;
    const struct wire_message *const *messages = wire_messages(&count);
    for (uint32_t i = 0; i < count; i++)
        if (messages[i]->api_key == type && of_topic(messages[i], topic)) return messages[i];
    return NULL;
}

/* The value's message of a key's: XKey -> XValue. */
static const struct wire_message *value_message(const struct wire_message *key)
{
    char name[128];
    size_t stem = strlen(key->name) - strlen("Key");
    (void)snprintf(name, sizeof(name), "%.*sValue", (int)stem, key->name);
    return wire_message_by_name(view_of_string(name));
}

/* "name: Message v1 {...}", or the bytes if they are not such. */
static void print_message(struct dump *dump,
                          const char *name,
                          const struct wire_message *message,
                          int16_t version,
                          struct view body)
{
    const struct wire_form *form = message == NULL ? NULL : wire_form(message, version);
    if (form == NULL) {
        dump_bytes(dump, name, body);
        return;
    }
    dump_name(dump, name);
    if (dump->json)
        out_format(dump->out, "{\"message\":\"%s\",\"version\":%d,\"data\":", message->name,
                   version);
    else
        out_format(dump->out, "%s v%d ", message->name, version);
    struct json_written written = json_write(dump->out, form, body);
    if (dump->json) out_char(dump->out, '}');
    if (written.damaged)
        dump_text(dump, "damage", "the message ends early or is broken");
    else if (written.size_bytes < body.size)
        dump_text(dump, "damage", "bytes are left over");
}

static struct view behind(struct view bytes, uint32_t size)
{
    return view_of(bytes.data + size, bytes.size - size);
}

static bool print_coordinator(struct dump *dump, const char *topic, const struct record *record)
{
    if (record->key.null || record->key.size < 2) return false;
    int16_t type = (int16_t)load_be16(record->key.data);
    const struct wire_message *message = key_message(topic, type);
    if (message == NULL) return false;
    print_message(dump, "key", message, message->version_max, behind(record->key, 2));
    if (record->value.null || record->value.size < 2) {
        dump_bytes(dump, "payload", record->value);
        return true;
    }
    int16_t version = (int16_t)load_be16(record->value.data);
    print_message(dump, "payload", value_message(message), version, behind(record->value, 2));
    return true;
}

static bool print_metadata(struct dump *dump, const struct record *record)
{
    if (record->value.null) return false;
    struct reader in = reader_of(record->value);
    uint32_t frame = reader_uvarint(&in);
    uint32_t type = reader_uvarint(&in);
    uint32_t version = reader_uvarint(&in);
    if (in.fault != READER_OK || frame != 1 || version > INT16_MAX) return false;
    uint32_t count;
    const struct wire_message *const *messages = wire_messages(&count);
    for (uint32_t i = 0; i < count; i++) {
        const struct wire_message *message = messages[i];
        bool remote = strncmp(message->name, "Remote", 6) == 0;
        if (message->kind != WIRE_METADATA || remote || message->api_key != (int16_t)type) continue;
        if (wire_form(message, (int16_t)version) == NULL) return false;
        print_message(dump, "payload", message, (int16_t)version,
                      behind(record->value, (uint32_t)(in.at - in.start)));
        return true;
    }
    return false;
}

static void print_control(struct dump *dump, const struct record *record)
{
    static const char *const names[] = {
        [CONTROL_LEADER_CHANGE] = "LeaderChangeMessage",
        [CONTROL_SNAPSHOT_HEADER] = "SnapshotHeaderRecord",
        [CONTROL_SNAPSHOT_FOOTER] = "SnapshotFooterRecord",
        [CONTROL_KRAFT_VERSION] = "KRaftVersionRecord",
        [CONTROL_KRAFT_VOTERS] = "VotersRecord",
    };
    enum control_type type;
    struct control_marker marker;
    if (control_marker_parse(record->key, record->value, &marker)) {
        dump_text(dump, "endTxnMarker", marker.commit ? "COMMIT" : "ABORT");
        dump_number(dump, "coordinatorEpoch", marker.coordinator_epoch);
        return;
    }
    bool known = control_key_parse(record->key, &type) && type >= CONTROL_LEADER_CHANGE;
    if (!known || record->value.null || record->value.size < 2) {
        dump_bytes(dump, "key", record->key);
        dump_bytes(dump, "payload", record->value);
        return;
    }
    dump_text(dump, "controlType", control_name(type));
    int16_t version = (int16_t)load_be16(record->value.data);
    print_message(dump, "payload", wire_message_by_name(view_of_string(names[type])), version,
                  record->value);
}

void dump_record_data(struct dump *dump,
                      const struct dump_file *file,
                      const struct batch_header *header,
                      const struct record *record)
{
    if (header->magic == 2 && (header->attributes & BATCH_CONTROL) != 0) {
        print_control(dump, record);
        return;
    }
    bool metadata =
        strcmp(file->topic, "__cluster_metadata") == 0 || strstr(file->name, ".checkpoint") != NULL;
    if (metadata && print_metadata(dump, record)) return;
    if (!metadata && print_coordinator(dump, file->topic, record)) return;
    if (dump->json || !record->key.null) dump_bytes(dump, "key", record->key);
    dump_bytes(dump, "payload", record->value);
}
