/* record.h - one record of a batch: its fields, its faults, and walking over the records.
 *
 * A record of magic 2, no padding (varints are zigzag):
 *
 *   length          varint   bytes that follow it
 *   attributes      i8       0, not looked at
 *   timestamp delta varlong  to the batch's base timestamp
 *   offset delta    varint   to the batch's base offset
 *   key length      varint   < 0: null; then the key
 *   value length    varint   < 0: null; then the value
 *   header count    varint   >= 0; each: key length varint (>= 0), key, value length varint
 *                            (< 0: null), value
 *
 * It is valid when every field lies inside the length and the fields fill it; a batch's records are
 * when there are exactly as many as its header says and nothing is behind them.
 *
 * Pure but for the codecs' libraries; memory from the struct compress_work given. */
#pragma once

#include "base/limits.h"
#include "base/view.h"
#include "record/compress.h"

/* What can be wrong with a batch or its records. The number of Kafka's answer to a producer stands
 * behind each (record_fault_error). */
enum record_fault {
    RECORD_OK = 0,
    /* The batch's frame. */
    RECORD_NO_BATCH,     /* 87: no complete batch. */
    RECORD_LENGTH,       /*  2: a length below the smallest batch or message. */
    RECORD_MAGIC,        /*  2: a magic other than 0, 1, 2. */
    RECORD_CRC,          /*  2: the CRC does not hold. */
    RECORD_MAGIC_OLD,    /* 87: magic 0 or 1 where only 2 is taken. */
    RECORD_MAGIC_MIXED,  /* 87: messages of another magic than the first. */
    RECORD_ZSTD_OLD,     /* 76: zstd in a produce request below version 7. */
    RECORD_SECOND_BATCH, /* 87: more than one batch. */
    RECORD_TOO_LARGE,    /* 10: above max.message.bytes, as it came or recompressed. */
    RECORD_CODEC,        /* -1: codec id 5 to 7. */
    /* The batch's header. */
    RECORD_BASE_OFFSET,    /* 87: not 0 from a client. */
    RECORD_LAST_DELTA,     /* 87: last offset delta below 0 (or 2^31-1). */
    RECORD_COUNT,          /* 87: record count not above 0 (reading: below 0). */
    RECORD_COUNT_MISMATCH, /* 87: last offset delta + 1 is not the record count. */
    RECORD_CONTROL,        /* 87: a control batch from a client, or a bad control record. */
    RECORD_SEQUENCE,       /* 87: a producer id without an epoch or a sequence. */
    /* The records' structure. */
    RECORD_SHORT,        /* 87: the records end early, or a field runs over its record. */
    RECORD_VARINT,       /* 87: a varint of too many bytes. */
    RECORD_BODY,         /* 87: a record's length and its fields disagree. */
    RECORD_HEADER_COUNT, /* 87: negative, or more than the record can hold. */
    RECORD_HEADER_KEY,   /* 87: a header's key is null. */
    RECORD_TRAILING,     /* 87: bytes behind the last record. */
    RECORD_DECOMPRESS,   /* -1: the payload cannot be decompressed. */
    RECORD_BOMB,         /* 10: the payload decompresses to more than the cap. */
    RECORD_MEMORY,       /* -1: no memory to look at it now. */
    RECORD_PRODUCER,     /* -1: producer fields with which no batch can be written anew. */
    RECORD_OFFSETS,      /* -1: compressed, and offset deltas are not 0, 1, 2... */
    /* Rules for single records: collected, not raised at once. */
    RECORD_NULL_KEY,   /* 87: null key on a compacted topic. */
    RECORD_TIME_RANGE, /* 32: too old or too far ahead. */
    RECORD_TIME_TYPE,  /* 32: marked LogAppendTime by the producer. */
    RECORD_NESTED,     /* 87: a compressed message inside a compressed one (magic 0, 1). */
    RECORD_WRAPPER,    /* 87: a compressed message of magic 0 or 1 that makes no sense. */
    RECORD_TIME_VALUE, /* -1: below -1, where records are written anew. */
    RECORD_FAULT_COUNT
};

/* The Kafka error code that a produce request gets for this fault (0 for RECORD_OK). */
int16_t record_fault_error(enum record_fault fault);

/* What is wrong, for a person: "the CRC does not match", lower case, no full stop. Static. */
const char *record_fault_text(enum record_fault fault);

struct record_header {
    struct view key; /* UTF-8, never null. */
    struct view value;
};

/* One record. Views point into the batch or, for a compressed one, into the iterator's window. */
struct record {
    int64_t offset;
    int64_t timestamp_ms; /* -1: none. The batch's maximum in a LogAppendTime batch. */
    int32_t offset_delta; /* As stored. */
    int64_t timestamp_delta;
    int32_t sequence; /* -1: no producer. */
    uint8_t attributes;
    struct view key;
    struct view value;
    int32_t header_count;
    struct view header_bytes; /* The headers as stored: for record_header_next(). */
    struct view bytes;        /* The whole record with its length, as stored. */
    uint64_t at;              /* Its offset in the batch's (decompressed) records. */
};

/* Parse one record at the start of `in` (magic 2; offset and sequence are left 0, timestamp_ms is
 * the delta): the structure alone. `*used` is the record's size with its length field. Cost:
 * O(header count); checks every header. */
MUST_USE enum record_fault record_parse(struct view in, struct record *out, uint32_t *used);

/* The next of a record's headers, given a cursor `*at` that starts at 0. False: no more. The record
 * came from record_parse or record_next, so its headers are sound. */
MUST_USE bool record_header_next(const struct record *record,
                                 uint32_t *at,
                                 struct record_header *out);

/* The same on header bytes that are known to be sound. */
MUST_USE bool record_header_decode(struct view header_bytes,
                                   uint32_t *at,
                                   struct record_header *out);

/* ---- walking over a batch's records --------------------------------------------------------- */

struct batch_header;

/* The records of one batch, one after the other. Compressed ones pass through a window from the
 * work's memory that grows to the largest record, at most to limits.h's RECORD_BYTES_MAX. */
struct record_iter {
    struct compress_work *work;
    const struct batch_header *header;
    struct decompress stream;
    uint8_t *window; /* NULL: not compressed, `in` is the batch itself. */
    uint32_t window_bytes;
    struct view in;  /* What has been read and not consumed, the record given out last included. */
    uint64_t at;     /* Offset of it in the batch's (decompressed) records. */
    uint32_t given;  /* Bytes of the record given out last. */
    int32_t left;    /* Records still to come by the header's count. */
    bool compressed; /* `stream` is open. */
    enum record_fault fault;
};

/* Start at the first record of a batch of magic 2 whose header has been read by batch_header_load
 * (`batch` is the whole batch; header and bytes must live until the end). A compressed batch takes
 * the work's reading side. Faults show at the first record_next. */
void record_iter_begin(struct record_iter *iter,
                       struct compress_work *work,
                       const struct batch_header *header,
                       struct view batch);

/* The next record; its views last until the next call. False: the end, or iter->fault is set (also
 * when bytes are left behind the last record). */
MUST_USE bool record_next(struct record_iter *iter, struct record *out);

/* The same for who only checks: a record that is larger than what is in the window is stepped over
 * as it comes, so that memory stays at RECORD_WINDOW_BYTES; its key, value, header_bytes and bytes
 * have no data then (sizes and nulls are right), though all of them were checked. */
MUST_USE bool record_next_skim(struct record_iter *iter, struct record *out);

/* What validation needs of a record. */
struct record_brief {
    int64_t timestamp_ms;
    int32_t offset_delta;
    bool key_null;
};

/* As record_next_skim, with all its checks, for who needs no more than that: the usual record (no
 * headers, short varints) costs some 10 ns. */
MUST_USE bool record_next_brief(struct record_iter *iter, struct record_brief *out);

/* Usual records one behind the other, together. */
struct record_run {
    int32_t count; /* 0: the next record is not a usual one, or there is none. */
    uint32_t size_bytes;
    int64_t min_timestamp_ms; /* As wide as they can be: they do not wrap. */
    int64_t max_timestamp_ms;
    bool key_null; /* One of them, at least. */
    bool in_order; /* Offset deltas rise by one from `index` on. */
};

/* Look at the records next to come, as far as they are usual and there; nothing is taken. `index`
 * is how many were read before. Costs some 2 ns each where records on end have one size, else 7. */
void record_run_look(struct record_iter *iter, int32_t index, struct record_run *run);

/* Take them: the next record is the one behind. */
void record_run_take(struct record_iter *iter, const struct record_run *run);

/* The next record's bytes, whole but unparsed, and `*at`, its offset in the records: for tools that
 * look into broken ones. False as with record_next. */
MUST_USE bool record_next_raw(struct record_iter *iter, struct view *bytes, uint64_t *at);

/* Release window and work. Needed after every begin. Returns the fault. */
enum record_fault record_iter_end(struct record_iter *iter);

/* ---- finding -------------------------------------------------------------------------------- */

struct record_spot {
    int64_t offset; /* -1: there is none. */
    int64_t timestamp_ms;
};

/* The first record of the batch whose timestamp is at least `timestamp_ms` and whose offset is at
 * least `offset_min`. Reads records only up to that one. */
MUST_USE enum record_fault record_find_time(struct compress_work *work,
                                            struct view batch,
                                            int64_t timestamp_ms,
                                            int64_t offset_min,
                                            struct record_spot *spot);

/* The first record of the batch that has the batch's largest timestamp. */
MUST_USE enum record_fault record_find_latest(struct compress_work *work,
                                              struct view batch,
                                              struct record_spot *spot);
