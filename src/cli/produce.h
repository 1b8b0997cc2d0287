/* produce.h - what the files of `dohle produce` share. */
#pragma once

#include "cli/client.h"

enum produce_format { PRODUCE_LINES, PRODUCE_JSON, PRODUCE_WHOLE };

struct produce_bytes {
    char *ptr; /* NULL: null. Only read. */
    size_t size;
};

struct produce_record {
    struct produce_bytes key, value;
    int32_t partition;           /* RD_KAFKA_PARTITION_UA: as the key says. */
    int64_t timestamp_ms;        /* 0: now. */
    rd_kafka_headers_t *headers; /* The caller's; NULL: none. */
};

struct produce {
    struct client client;
    enum produce_format format;
    const char *topic, *separator;
    struct produce_bytes key; /* Of records that bring none. */
    rd_kafka_headers_t *headers;
    int32_t partition;
    bool null_empty;
    uint64_t line_number;
    uint64_t input_bytes; /* 0: not known. */
    uint64_t delivered, failed;
    rd_kafka_resp_err_t first_error;
    struct client_progress progress;
};

/* Queue a record; its bytes are copied. Waits while the queue is full. False: it was refused for
 * good, and is counted in `failed`. */
MUST_USE bool produce_send(struct produce *produce, const struct produce_record *record);

/* Make a record of a line of JSON and send it. False: it is none, which was said with its number,
 * or it could not be sent. */
MUST_USE bool produce_json(struct produce *produce, struct produce_bytes line);
