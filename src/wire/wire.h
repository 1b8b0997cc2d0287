/* wire.h - Kafka's messages as C structs, and the one engine that reads and writes them.
 *
 * schema/messages/X.json is compiled by tools/schemac into gen/X.h (snake case): a struct per
 * message and per nested struct, and one `const struct wire_message wire_x`. What a field becomes:
 *
 *   bool int8 int16 int32 int64 uint16 uint32 float64   the C type of that width
 *   uuid                        struct uuid
 *   string bytes records        struct view into the decoded buffer (see `external` below)
 *   struct                      embedded; if it may be null: a pointer, NULL for null
 *   []T                         struct { T *items; int32_t count; }, count -1 for null
 *
 * `struct heartbeat_request` is message HeartbeatRequest; nested struct TopicProduceData of
 * ProduceRequest is `struct produce_request_topic_produce_data`. A name that is a C keyword gets a
 * trailing underscore. Each struct of a message with flexible versions has a `struct view tags`:
 * the unknown tagged fields as they came, written back as they came.
 *
 * Pure; no allocation but from the arena given. Thread: any. */
#pragma once

#include "base/arena.h"
#include "base/reader.h"
#include "base/view.h"

struct wire_array {
    void *items;   /* In the arena. */
    int32_t count; /* -1: null. */
};

struct wire_form;   /* One version of a message: its flat list of operations. wire/form.h */
struct wire_struct; /* A message's body or a nested struct, over all versions. wire/form.h */
struct wire_field;  /* One field of the schema: name, type, versions, meaning. wire/form.h */

enum wire_kind {
    WIRE_REQUEST,
    WIRE_RESPONSE,
    WIRE_HEADER,
    WIRE_DATA,
    WIRE_METADATA,
    WIRE_COORDINATOR_KEY,
    WIRE_COORDINATOR_VALUE
};

struct wire_message {
    const char *name;  /* "HeartbeatRequest" */
    const char *about; /* What the message is for. */
    const struct wire_struct *shape;
    uint32_t size_bytes; /* Of its struct. */
    uint16_t forms;      /* Of version_min in wire_form_numbers. */
    int16_t api_key;     /* Also the record type of metadata and coordinator records; -1: none. */
    int16_t version_min; /* Of all that the schema knows, also what 4.x does not serve any more. */
    int16_t version_max;
    int16_t flexible_min; /* INT16_MAX: no version is flexible. */
    uint8_t kind;         /* enum wire_kind */
};

enum wire_listener { WIRE_BROKER = 1, WIRE_CONTROLLER = 2 };

#define WIRE_NO_THROTTLE UINT16_MAX

/* One API of Kafka: a pair of messages under a key. */
struct wire_api {
    int16_t key;
    int16_t served_min; /* What Apache Kafka 4.4 serves; 0 and -1 for the keys it dropped. */
    int16_t served_max;
    int16_t stable_max; /* served_max without versions marked latestVersionUnstable. */
    uint8_t listeners;  /* Set of enum wire_listener. */
    /* Where the response's struct says how long its client has to wait, or WIRE_NO_THROTTLE. */
    uint16_t throttle_at;
    const char *name; /* "Heartbeat" */
    const struct wire_message *request;
    const struct wire_message *response;
};

/* The API with this key, or NULL. O(1). */
const struct wire_api *wire_api(int16_t key);

/* All APIs in the order of their keys. */
const struct wire_api *wire_apis(uint32_t *count);

/* All messages, records and headers included, in the order of their names. */
const struct wire_message *const *wire_messages(uint32_t *count);

/* The message with this name ("HeartbeatRequest", "TopicRecord"), or NULL. O(log n). */
const struct wire_message *wire_message_by_name(struct view name);

/* The form of one version, or NULL if the message has no such version. O(1). */
const struct wire_form *wire_form(const struct wire_message *message, int16_t version);

/* Header versions by the schema's rules (ControlledShutdown 0 has request header 0; every
 * ApiVersions response has response header 0). */
int16_t wire_request_header_version(const struct wire_api *api, int16_t version);
int16_t wire_response_header_version(const struct wire_api *api, int16_t version);

/* Decode one message from `in` into the struct `out` that the form describes (it need not be
 * zeroed: every field is set, absent ones to their default). Views point into the buffer behind
 * `in`; arrays are in `request`. Bytes may be left in `in`; the caller decides what that means.
 *
 * False: the bytes are not such a message; `in->fault` says why and `in->at` where that was sure
 * (wire_walk names the field); `out` then holds nothing to be read. The memory taken is bounded by
 * WIRE_MEMORY_FACTOR times the bytes there and WIRE_MEMORY_FLOOR. Cost: O(bytes). */
MUST_USE bool wire_decode(struct reader *in,
                          const struct wire_form *form,
                          struct arena *request,
                          void *out);

/* Set every field of the struct to its schema default (strings empty or null, arrays empty). Do
 * this before filling a struct that will be encoded. A pointer in it is to a constant: replace it,
 * do not write through it. */
void wire_defaults(const struct wire_message *message, void *out);

/* The same for one array item or nested struct, by its generated `wire_x_shape`. */
void wire_struct_defaults(const struct wire_struct *shape, void *out);

/* Exact size of the encoded message, external bytes included. */
size_t wire_size(const struct wire_form *form, const void *in);

/* The same; `external` tells what of it is external: how many bytes in how many values. */
struct wire_external {
    size_t bytes;
    uint32_t count;
};
size_t wire_size_external(const struct wire_form *form,
                          const void *in,
                          struct wire_external *external);

/* A place in the encoded bytes where external bytes (a `records` view with `external` set) go. */
struct wire_gap {
    uint32_t at;       /* Offset in the message's own bytes: the gap lies before this byte. */
    uint32_t size;     /* Bytes that are not written here. */
    const void *token; /* The view's `data`. */
};

/* Encode into `out`, which holds wire_size() minus the external bytes. Gaps, in order, go to
 * `gaps`; more than `gap_limit` of them is a bug (assert). Returns the number of own bytes written.
 */
size_t wire_encode(const struct wire_form *form,
                   const void *in,
                   uint8_t *out,
                   struct wire_gap *gaps,
                   uint32_t gap_limit,
                   uint32_t *gap_count);

/* The first field set to something else than its default that this version cannot carry and that is
 * not ignorable, or null where this version has no null (Kafka would refuse to encode it), or NULL.
 * For tools and tests; servers set fields by version. */
const struct wire_field *wire_unsupported(const struct wire_form *form, const void *in);

/* Fill `out` with the sample instance: the smallest legal one with one element in each array,
 * numbers zero, booleans false, strings and bytes empty (not null), structs there (not null), no
 * tagged fields, and an empty record batch (wire_sample_records) in each `records` field. Only
 * fields that the form has are touched beside defaults. False: the arena is exhausted. */
MUST_USE bool wire_sample(const struct wire_form *form, struct arena *arena, void *out);

/* The empty 61-byte record batch v2 of the sample: all numbers zero but its length, magic and CRC.
 */
struct view wire_sample_records(void);
