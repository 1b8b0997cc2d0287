/* client_reader.h - a client that reads all partitions of all known topics, by assignment. */
#pragma once

#include "sim/client.h"

struct client_reader {
    struct client client;
    int16_t version; /* Of Fetch. */
    bool sessions;   /* Fetches incrementally (KIP-227). */
    int32_t session_id, session_epoch;
    int64_t
        told[HISTORY_LOGS_MAX]; /* The offset that the session has; -1: it has not got the log. */
    bool audit;                 /* Reads all from the start and reports to the audit. */
    int64_t offsets[HISTORY_LOGS_MAX];
    int64_t high_watermarks[HISTORY_LOGS_MAX];
    int64_t high_low[HISTORY_LOGS_MAX]; /* Not below this, when the request was sent. */
    bool caught_up[HISTORY_LOGS_MAX];
};

struct client_reader *client_reader_new(const struct client_seat *seat);

/* From now on read everything anew, and report it to the history's audit. */
void client_reader_audits(struct client_reader *reader);
