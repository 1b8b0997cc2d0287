/* step.h - the common shape of decide-then-apply: what a step is told, and what it returns.
 *
 * A core machine (the controller, a group, a transaction coordinator) never acts. Its step function
 * looks at its state and an event and *decides*: it leaves records in the struct step and the reply
 * in the step's arena. The caller then
 *
 *   1. appends the records to the machine's log as one batch (the log gives the base offset),
 *   2. calls the machine's apply function with that base offset: the only function that changes
 *      logged state, the same that is used to load and to follow a log,
 *   3. sends the reply when the high watermark has passed the last record.
 *
 * When an append fails, or leadership goes, the machine is told the lowest offset that is lost, and
 * plays back its undo entries down to it; when records are committed, it is told the high
 * watermark and drops the entries below (undo.h).
 *
 * Pure. Nothing in a struct step outlives its arena's reset. */
#pragma once

#include "base/arena.h"
#include "base/limits.h"
#include "wire/wire.h"

/* What a step function returns. The outcome for a client is in the reply, not here. */
enum step_result {
    STEP_DONE = 0, /* The records, perhaps none, are the whole decision. */
    STEP_MORE,     /* A bulk step at its cap of records: append, apply, and call it again with the
                      same event. No reply yet. */
    STEP_E_MEMORY, /* The arena or the node's memory is exhausted; nothing has changed. Retriable.
                    */
};

/* One half of a record: a message as a struct, or bytes that are encoded already. */
struct step_part {
    const struct wire_message *message; /* NULL: see `bytes`. */
    const void *value;                  /* The message's struct, in the arena. */
    struct view bytes;                  /* If there is no message; null: no key, or a tombstone. */
    int16_t version;                    /* Of the message. */
};

/* One record of the log. Metadata records have a null key; the wire form follows from the kind of
 * the message (step_encode). */
struct step_record {
    struct step_part key;
    struct step_part value;
};

/* One setting that a request changes. */
struct cluster_override {
    struct view name;
    struct view value; /* Null: removed. */
};

/* Who asks, for machines that answer clients. */
struct step_caller {
    int16_t version; /* Of the request. */
    bool forwarded;  /* It came inside an Envelope: a broker has checked what only it can check. */
    /* May the caller do `operation` (Kafka's AclOperation) on this resource (ResourceType, name)?
     * NULL: everything. Called at the place in the order of checks where Kafka asks. */
    bool (*allows)(void *context, int8_t operation, int8_t resource_type, struct view name);
    void *allows_context;
    /* Take so many partitions from the caller's quota of changes. False: it is used up, nothing is
     * taken. NULL: there is no quota. */
    bool (*charge)(void *context, uint32_t partitions);
    void *charge_context;
    /* What only the broker that was asked can judge of its settings: why `name` cannot be `value`
     * on the broker `resource` (empty: on all), in words, in the step's arena; or null. With a null
     * name: why settings of that broker cannot be changed here at all. The name "match" is that of
     * a subscription's patterns, one by one. NULL: nobody judges. */
    struct view (*judge)(void *context, struct view resource, struct view name, struct view value);
    /* The same of all that a request changes of the broker `resource`, when each was judged; NULL
     * as `judge`, whose context it has. */
    struct view (*judge_all)(void *context,
                             struct view resource,
                             const struct cluster_override *overrides,
                             uint32_t count);
    void *judge_context;
};

/* A step: what it is told, and what it decides. */
struct step {
    struct arena *arena; /* Holds the records, the reply, and what they point to. */
    int64_t now_ms;      /* Monotonic. */
    int64_t horizon_ms;  /* All input that had arrived by then has been read: deadlines are judged
                            by it. At most now_ms. */
    int64_t wall_ms;     /* For timestamps in records and replies, never for deadlines. */
    uint64_t random[2];  /* Any 128 random bits, not both zero; step_random() goes on from them. */
    int64_t offset_next; /* The log's assigned end: the offset that the first record will get. */
    struct step_caller caller;

    struct step_record *records; /* In the arena. */
    uint32_t record_count;
    uint32_t record_capacity;
    bool atomic; /* The records stand or fall together: one batch. Else they may be cut. */
};

/* Begin a step. The arena is not reset: the caller's request may live in it. */
void step_begin(struct step *step, struct arena *arena, int64_t now_ms, int64_t wall_ms);

/* The step's next random number. The same bits give the same sequence. */
uint64_t step_random(struct step *step);

/* A random UUID (version 4) that is not reserved and whose text does not begin with '-'. */
struct uuid step_uuid(struct step *step);

/* A zeroed block in the arena, or NULL: return STEP_E_MEMORY then. */
MUST_USE static inline void *step_get(struct step *step, size_t size_bytes)
{
    return arena_get(step->arena, size_bytes);
}

/* Add a record with a null key whose value is a `message`. Returns its struct, set to the schema's
 * defaults, to be filled in; NULL: no memory. There must be room: step_room(). */
MUST_USE void *step_add(struct step *step, const struct wire_message *message, int16_t version);

/* Add a record with key and value; `key` and `value` are structs in the arena, a NULL value is a
 * tombstone. False: no memory. */
MUST_USE bool step_add_keyed(struct step *step, struct step_part key, struct step_part value);

/* How many more records this step may make: STEP_RECORDS_MAX less what it has. */
static inline uint32_t step_room(const struct step *step)
{
    return STEP_RECORDS_MAX - step->record_count;
}

/* Bytes of one half as they stand in the log:
 *
 *   metadata record    uvarint 1 (frame version), uvarint type, uvarint version, body
 *   coordinator key    int16 type, body
 *   coordinator value  int16 version, body
 *   any other          body (control records of a metadata log)
 *
 * In the arena; the null view for a null half. `failed` of the arena tells that there was no
 * memory. */
MUST_USE struct view step_encode(struct arena *arena, const struct step_part *part);

/* The same into bytes of the caller, who has room for step_encoded_size(). The null half takes 0.
 */
size_t step_encoded_size(const struct step_part *part);
void step_encode_into(const struct step_part *part, uint8_t *out);

/* Decode a metadata record's value. Strict, as every reader of a metadata log is: frame version 1,
 * a known type at a known version, no byte left over; unknown tagged fields are fine. Views point
 * into `bytes`. False: it is not such a record, or there is no memory (arena->failed). */
MUST_USE bool step_decode(struct view bytes, struct arena *arena, struct step_record *out);

/* The metadata record with this type (0 to 29), or NULL. O(1). */
const struct wire_message *step_metadata_message(uint32_t type);
