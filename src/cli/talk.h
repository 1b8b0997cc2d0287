/* talk.h - what the `dohle group`, `cluster brokers` and `cluster quorum` share: questions to the
 * brokers of a cluster.
 *
 * Over the wire library and dial.h, not librdkafka: older librdkafkas cannot describe groups of the
 * new protocol. So no TLS and no SASL. A question that fails was said on standard error. */
#pragma once

#include "cli/cli.h"
#include "cli/dial.h"
#include "gen/errors.h"

#define TALK_BROKERS_MAX 64

#define TALK_OPTIONS                                                                               \
    CLI_OPTION("bootstrap", 'b', "HOST:PORT",                                                      \
               "Where the cluster is reached; several with commas (localhost:9092, or the "        \
               "variable DOHLE_BOOTSTRAP)."),                                                      \
        CLI_OPTION("timeout", 0, "SECONDS", "How long to wait for an answer (10)."),               \
        CLI_FLAG("json", 'j', "Print JSON.")

struct metadata_response;

struct talk {
    struct cli *cli;
    struct arena arena; /* Every answer, until talk_close. */
    int timeout_ms;
    struct dial boot;
    const struct metadata_response *metadata; /* All brokers and topics. */
    struct dial brokers[TALK_BROKERS_MAX];    /* By their place in the metadata. */
};

/* Reach the cluster by the command's options. CLI_OK, or it was said. talk_close in any case.
 */
MUST_USE enum cli_exit talk_open(struct cli *cli, struct talk *out);
void talk_close(struct talk *talk);

/* The connection to a broker of the cluster; NULL: said. */
MUST_USE struct dial *talk_broker(struct talk *talk, int32_t id);

/* The connection to the group's coordinator; NULL: said. `id` gets its broker id. */
MUST_USE struct dial *talk_coordinator(struct talk *talk, const char *group, int32_t *id);

/* Ask; the answer's struct is in the arena. NULL: said. A coordinator that is still loading, or not
 * yet chosen, is asked again until the command's timeout: Kafka's error for it means just that. */
struct talk_question {
    const struct wire_message *request;
    const void *body;
    int16_t version_max;
    int16_t (*error)(const void *answer); /* What the answer says; NULL: no coordinator is asked. */
};
MUST_USE const void *talk_ask(struct talk *talk,
                              struct dial *dial,
                              const struct talk_question *question);

/* A zeroed block, or a message's defaults, in the arena; NULL: no memory, said. */
MUST_USE void *talk_get(struct talk *talk, size_t size);
MUST_USE void *talk_new(struct talk *talk, const struct wire_message *message);

/* Say that `what` failed with this error and what it means. CLI_FAILED. */
int talk_fail(struct talk *talk, const char *what, int16_t error);

/* What a group has committed for one partition, and where the log stands. */
struct group_offset {
    struct view topic;
    int32_t partition;
    int64_t committed; /* -1: nothing. */
    int64_t found;     /* What talk_offsets_find() found; -1: nothing. */
    int16_t error;     /* Of that. */
};
struct group_offsets {
    struct group_offset *items; /* In the arena. */
    uint32_t count;
};

/* What is committed. False: said. */
MUST_USE bool talk_offsets_fetch(struct talk *talk,
                                 struct dial *coordinator,
                                 const char *group,
                                 struct group_offsets *out);

/* Fill `found` with the offset of this time in milliseconds, or of -1, the end, or -2, the
 * beginning. False: said. */
MUST_USE bool talk_offsets_find(struct talk *talk,
                                struct group_offsets *offsets,
                                int64_t timestamp);
