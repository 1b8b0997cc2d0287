/* record.c - parsing one record, and what the faults mean. */
#include "record/record.h"

#include "base/reader.h"

/* Kafka's error codes that records can earn. */
#define ERROR_NONE              0
#define ERROR_UNKNOWN           (-1)
#define ERROR_CORRUPT           2
#define ERROR_TOO_LARGE         10
#define ERROR_INVALID_TIMESTAMP 32
#define ERROR_COMPRESSION       76
#define ERROR_INVALID_RECORD    87

static const struct {
    int16_t error;
    const char *text;
} faults[RECORD_FAULT_COUNT] = {
    [RECORD_OK] = {ERROR_NONE,              "nothing is wrong"                                     },
    [RECORD_NO_BATCH] = {ERROR_INVALID_RECORD,    "there is no complete record batch"                    },
    [RECORD_LENGTH] = {ERROR_CORRUPT,           "the length is below that of the smallest batch"       },
    [RECORD_MAGIC] = {ERROR_CORRUPT,           "the magic is neither 0, 1 nor 2"                      },
    [RECORD_CRC] = {ERROR_CORRUPT,           "the checksum does not match the bytes"                },
    [RECORD_MAGIC_OLD] = {ERROR_INVALID_RECORD,    "only record batches of magic 2 are taken"             },
    [RECORD_MAGIC_MIXED] = {ERROR_INVALID_RECORD,    "messages of different magic are mixed"                },
    [RECORD_ZSTD_OLD] = {ERROR_COMPRESSION,       "zstd needs a newer version of the request"            },
    [RECORD_SECOND_BATCH] = {ERROR_INVALID_RECORD,    "there is more than one record batch"                  },
    [RECORD_TOO_LARGE] = {ERROR_TOO_LARGE,         "the batch is larger than max.message.bytes"           },
    [RECORD_CODEC] = {ERROR_UNKNOWN,           "the compression codec does not exist"                 },
    [RECORD_BASE_OFFSET] = {ERROR_INVALID_RECORD,    "the base offset is not 0"                             },
    [RECORD_LAST_DELTA] = {ERROR_INVALID_RECORD,    "the last offset delta is out of range"                },
    [RECORD_COUNT] = {ERROR_INVALID_RECORD,    "the record count is out of range"                     },
    [RECORD_COUNT_MISMATCH] = {ERROR_INVALID_RECORD,
                   "the record count does not match the last offset delta"                         },
    [RECORD_CONTROL] = {ERROR_INVALID_RECORD,    "control records come from brokers only"               },
    [RECORD_SEQUENCE] = {ERROR_INVALID_RECORD,
                   "there is a producer id without epoch or sequence number"                       },
    [RECORD_SHORT] = {ERROR_INVALID_RECORD,    "the records end before they are complete"             },
    [RECORD_VARINT] = {ERROR_INVALID_RECORD,    "a varint has too many bytes"                          },
    [RECORD_BODY] = {ERROR_INVALID_RECORD,    "the length of a record and its fields disagree"       },
    [RECORD_HEADER_COUNT] = {ERROR_INVALID_RECORD,    "the number of headers is out of range"                },
    [RECORD_HEADER_KEY] = {ERROR_INVALID_RECORD,    "the key of a header is null"                          },
    [RECORD_TRAILING] = {ERROR_INVALID_RECORD,    "there are bytes behind the last record"               },
    [RECORD_DECOMPRESS] = {ERROR_UNKNOWN,           "the records cannot be decompressed"                   },
    [RECORD_BOMB] = {ERROR_TOO_LARGE,         "the records decompress to more than is allowed"       },
    [RECORD_MEMORY] = {ERROR_UNKNOWN,           "there is no memory to look at the records"            },
    [RECORD_PRODUCER] = {ERROR_UNKNOWN,           "producer id, epoch and transaction do not go together"},
    [RECORD_OFFSETS] = {ERROR_UNKNOWN,           "the offset deltas of compressed records have gaps"    },
    [RECORD_NULL_KEY] = {ERROR_INVALID_RECORD,    "a compacted topic takes no record without a key"      },
    [RECORD_TIME_RANGE] = {ERROR_INVALID_TIMESTAMP, "the timestamp is too old or too far ahead"            },
    [RECORD_TIME_TYPE] = {ERROR_INVALID_TIMESTAMP, "a producer may not set the append time"               },
    [RECORD_NESTED] = {ERROR_INVALID_RECORD,    "a compressed message holds a compressed one"          },
    [RECORD_WRAPPER] = {ERROR_INVALID_RECORD,    "a compressed message holds no sound messages"         },
    [RECORD_TIME_VALUE] = {ERROR_UNKNOWN,           "the timestamp is negative"                            },
};

int16_t record_fault_error(enum record_fault fault)
{
    assert(fault < RECORD_FAULT_COUNT);
    return faults[fault].error;
}

const char *record_fault_text(enum record_fault fault)
{
    assert(fault < RECORD_FAULT_COUNT);
    return faults[fault].text;
}

static enum record_fault fault_of(const struct reader *in)
{
    assert(in->fault != READER_OK);
    return in->fault == READER_VARINT ? RECORD_VARINT : RECORD_SHORT;
}

/* A length and so many bytes; a negative length is null. */
static inline struct view take_bytes(struct reader *in)
{
    int32_t size = reader_varint(in);
    if (size < 0) return VIEW_NULL;
    const uint8_t *p = reader_take(in, (size_t)size);
    return p == NULL ? VIEW_EMPTY : view_of(p, (uint32_t)size);
}

/* Check `count` headers and step over them. */
static enum record_fault skip_headers(struct reader *in, int32_t count)
{
    for (int32_t i = 0; i < count; i++) {
        struct view key = take_bytes(in);
        if (in->fault == READER_OK && key.null) return RECORD_HEADER_KEY;
        (void)take_bytes(in);
        if (in->fault != READER_OK) return fault_of(in);
    }
    return RECORD_OK;
}

/* The fields of a record, which fill `body`. */
static enum record_fault parse_body(struct view body, struct record *out)
{
    struct reader in = reader_of(body);
    out->attributes = reader_u8(&in);
    out->timestamp_delta = reader_varlong(&in);
    out->offset_delta = reader_varint(&in);
    out->key = take_bytes(&in);
    out->value = take_bytes(&in);
    out->header_count = reader_varint(&in);
    if (in.fault != READER_OK) return fault_of(&in);

    /* A header takes two bytes at least, but Kafka only asks for one. */
    if (out->header_count < 0) return RECORD_HEADER_COUNT;
    if ((size_t)out->header_count > reader_left(&in)) return RECORD_HEADER_COUNT;
    out->header_bytes = view_of(in.at, (uint32_t)reader_left(&in));
    if (out->header_count > 0) {
        enum record_fault fault = skip_headers(&in, out->header_count);
        if (fault != RECORD_OK) return fault;
    }
    return reader_left(&in) == 0 ? RECORD_OK : RECORD_BODY;
}

enum record_fault record_parse(struct view in, struct record *out, uint32_t *used)
{
    struct reader at = reader_of(in);
    int32_t length = reader_varint(&at);
    if (at.fault != READER_OK) return fault_of(&at);
    if (length < 0) return RECORD_BODY;
    const uint8_t *body = reader_take(&at, (size_t)length);
    if (body == NULL) return RECORD_SHORT;

    out->offset = 0;
    out->sequence = 0;
    out->at = 0;
    *used = (uint32_t)(at.at - in.data);
    out->bytes = view_of(in.data, *used);
    enum record_fault fault = parse_body(view_of(body, (uint32_t)length), out);
    out->timestamp_ms = out->timestamp_delta;
    return fault;
}

bool record_header_decode(struct view header_bytes, uint32_t *at, struct record_header *out)
{
    assert(*at <= header_bytes.size);
    if (*at == header_bytes.size) return false;
    struct reader in = reader_of(view_of(header_bytes.data + *at, header_bytes.size - *at));
    out->key = take_bytes(&in);
    out->value = take_bytes(&in);
    assert(in.fault == READER_OK);
    *at += (uint32_t)(in.at - in.start);
    return true;
}

bool record_header_next(const struct record *record, uint32_t *at, struct record_header *out)
{
    return record_header_decode(record->header_bytes, at, out);
}
