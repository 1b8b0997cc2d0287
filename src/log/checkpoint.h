/* checkpoint.h - Kafka's small text files of numbers: offsets by partition, and leader epochs.
 *
 *   0\n                      version
 *   2\n                      number of entries
 *   orders 3 1234\n          topic partition offset          (offset checkpoints), or
 *   5 100\n                  epoch start-offset              (leader-epoch-checkpoint)
 *
 * Valid: nothing at all or only the version line (no entries); else version 0, the count equal to
 * the lines, each line exactly so, numbers decimal and in range. A last newline may be missing. */
#pragma once

#include "base/view.h"
#include "record/sink.h"

#define CHECKPOINT_RECOVERY  "recovery-point-offset-checkpoint"
#define CHECKPOINT_START     "log-start-offset-checkpoint"
#define CHECKPOINT_WATERMARK "replication-offset-checkpoint"
#define CHECKPOINT_CLEANER   "cleaner-offset-checkpoint"
#define CHECKPOINT_EPOCHS    "leader-epoch-checkpoint"

/* The largest file that is read: 32 MiB are some 300,000 partitions. */
#define CHECKPOINT_BYTES_MAX (32u * 1024u * 1024u)

struct checkpoint_entry {
    struct view topic; /* View of the text; null for an epoch entry. */
    int32_t number;    /* Partition, or epoch. */
    int64_t offset;
};

struct checkpoint_reader {
    struct view text;
    uint32_t at;
    int64_t left;    /* Entries still to come by the count line. */
    bool has_topics; /* Which of the two kinds. */
    bool invalid;    /* The text does not hold; entries given out before are not to be believed. */
};

/* Start reading; the text must live as long as the entries. */
struct checkpoint_reader checkpoint_read(struct view text, bool has_topics);

/* The next entry. False: the end, or reader->invalid. */
MUST_USE bool checkpoint_next(struct checkpoint_reader *reader, struct checkpoint_entry *out);

/* Is the text valid throughout? O(text). */
MUST_USE bool checkpoint_valid(struct view text, bool has_topics);

/* Write the two head lines, then each entry. */
void checkpoint_begin(struct sink *out, uint32_t count);
void checkpoint_add(struct sink *out, const struct checkpoint_entry *entry);
