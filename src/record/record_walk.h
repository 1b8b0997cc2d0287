/* record_walk.h - every field of a `records` value with its place, for the tools' views.
 *
 * The walk calls the visitor for each batch, field and record, in the order of the bytes, and goes
 * on after a fault as far as it can be told where the next batch starts. Offsets count from the
 * start of the bytes given; inside a compressed batch they count from the start of the decompressed
 * records
 * (`inflated` is set then). Names are static. */
#pragma once

#include "record/batch.h"

enum record_walk_kind {
    RECORD_WALK_BEGIN,  /* A group starts: "batch", "records", "record", "headers", "header". */
    RECORD_WALK_END,    /* It ends. */
    RECORD_WALK_NUMBER, /* A number: `number`. */
    RECORD_WALK_BYTES,  /* Bytes or null: `bytes`. */
    RECORD_WALK_ODDITY, /* Allowed but unusual: `text` says what, at `offset`. */
    RECORD_WALK_FAULT,  /* Broken: `fault` and `text`, at `offset`. */
};

struct record_walk_event {
    enum record_walk_kind kind;
    const char *name;  /* Of the field or group, as Kafka's documentation has it: "baseOffset". */
    const char *type;  /* "int64", "varint", "bytes", ...; NULL for groups. */
    int32_t index;     /* Of the batch, record or header in its group; -1: none. */
    uint64_t offset;   /* Where its bytes start, */
    uint64_t size;     /* and how many they are (whole group at its BEGIN, if known, else 0). */
    bool inflated;     /* Offsets are those of decompressed bytes. */
    int64_t number;    /* NUMBER; a BEGIN of "record" has the record's offset. */
    struct view bytes; /* BYTES: lasts for the call. */
    const char *text;  /* A number's meaning ("gzip", "CreateTime"), or what is odd; or NULL. */
    enum record_fault fault;
};

struct record_visitor {
    bool (*visit)(struct record_visitor *visitor, const struct record_walk_event *event);
};

/* Walk over all batches and messages in `bytes`. Ends early when the visitor returns false. Returns
 * the first fault met (RECORD_OK also when a cut batch stands at the end, which is an oddity). */
enum record_fault record_walk(struct compress_work *work,
                              struct view bytes,
                              struct record_visitor *visitor);
