/* client_reader.h - a client that reads all partitions of all known topics, by assignment. */
#pragma once

#include "sim/client.h"

struct client_reader {
    struct client client;
    int16_t version; /* Of Fetch. */
    bool audit;      /* Reads all from the start and reports to the audit. */
    int64_t offsets[HISTORY_LOGS_MAX];
    int64_t high_watermarks[HISTORY_LOGS_MAX];
    bool caught_up[HISTORY_LOGS_MAX];
};

struct client_reader *client_reader_new(const struct client_seat *seat);

/* From now on read everything anew, and report it to the history's audit. */
void client_reader_audits(struct client_reader *reader);
