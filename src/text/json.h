/* json.h - messages as JSON and back, in the shape of Apache Kafka's own JSON converters.
 *
 *   field        its name with the first letter small; fields that the version lacks are left out
 *   integer      number; float64 number, NaN and infinities as strings
 *   string       string; what is no UTF-8 becomes U+FFFD
 *   uuid         string, Kafka's base64;   bytes, records  string, base64
 *   array        array;   struct  object;   null  null
 *   tagged field like any other, there only if it is on the wire
 *   unknown tag  in "_unknownTaggedFields": [{ "tag": 99, "data": "base64" }], ours: Kafka drops it
 *
 * (Kafka writes the empty string for records, or their size as recordsSizeInBytes; it reads
 * base64.)
 *
 * Reading: a field that is left out has its default; a name that the message does not have, a value
 * that does not fit and a field that the version cannot carry are faults with their path. */
#pragma once

#include "text/frame.h"

struct json_written {
    uint32_t size_bytes; /* Bytes that the message took, or that were read up to the damage. */
    bool damaged;
};

/* Write one message from its bytes, on one line. Damaged bytes give JSON that ends early but is
 * well formed. Cost: O(bytes). */
struct json_written json_write(struct out *out, const struct wire_form *form, struct view bytes);

/* Write a whole frame, on one line: {"api", "apiKey", "type", "version", "header": {...},
 * "body": {...}}. False: it is damaged or has bytes left over. */
bool json_frame(struct out *out, const struct frame_kind *kind, struct view frame);

/* Lay one line of JSON out over many, two blanks a level; short arrays and objects stay on theirs.
 */
void json_pretty(struct out *out, struct view json);

struct json_fault {
    const char *path; /* "topics[0].partitions[2].index"; "" for the whole. */
    const char *text; /* "is no number"; both in the arena or static. */
    const char *hint; /* The nearest name, or NULL. */
};

/* Read one value of a message's struct (in the arena, to be encoded by its form). NULL: it is not
 * one, or the arena is exhausted; `fault` says what. */
MUST_USE void *json_read(struct view text,
                         const struct wire_message *message,
                         int16_t version,
                         struct arena *arena,
                         struct json_fault *fault);

/* Bytes of base64 of either alphabet, padded or not; how many, or -1 if it is not base64. `out` has
 * room for three bytes for each four digits begun. */
MUST_USE int64_t json_base64(const char *text, size_t size, uint8_t *out);
