/* quorum_voters.h - sets of voters as they stand at offsets of the log. Used by quorum*.c only. */
#pragma once

#include "base/list.h"
#include "core/quorum.h"

/* One set, in one block of memory with all that it points to. */
struct voter_set {
    struct list link;
    int64_t offset; /* Of its record; -1: from the bootstrap checkpoint or the options. */
    uint32_t size_bytes;
    uint32_t count;
    struct quorum_voter voters[];
};

/* A copy of voters and of all their views. NULL: no memory. */
struct voter_set *quorum_voters_copy(struct mem *mem,
                                     const struct quorum_voter *voters,
                                     uint32_t count,
                                     int64_t offset);
struct voter_set *quorum_voters_free(struct mem *mem, struct voter_set *set); /* Returns NULL. */

/* Decode a VotersRecord. NULL: corrupt, or no memory. */
struct voter_set *quorum_voters_decode(struct mem *mem, struct view record, int64_t offset);

/* Same id, directory, endpoints and versions? */
bool quorum_voter_equal(const struct quorum_voter *a, const struct quorum_voter *b);

/* Add a KRAFT_VOTERS control record to the step. */
MUST_USE bool quorum_voters_add(struct step *step,
                                const struct quorum_voter *voters,
                                uint32_t count);

/* A control record with this type's key (control records: version 0, then the type). */
MUST_USE bool quorum_control_add(struct step *step,
                                 int16_t type,
                                 const struct wire_message *message,
                                 int16_t version,
                                 const void *value);

/* Control record types. */
enum quorum_control_type {
    QUORUM_LEADER_CHANGE = 2,
    QUORUM_SNAPSHOT_HEADER = 3,
    QUORUM_SNAPSHOT_FOOTER = 4,
    QUORUM_KRAFT_VERSION = 5,
    QUORUM_KRAFT_VOTERS = 6
};
