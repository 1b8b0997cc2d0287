/* log_dump_small.c - the small files of a partition's folder and of a log directory. */
#include "base/bytes.h"
#include "cli/log_dump.h"
#include "log/checkpoint.h"
#include "record/crc.h"

/* ---- producer snapshots: layout at the head of log/producers.h
 * ----------------------------------- */

#define SNAPSHOT_HEAD_BYTES  10u
#define SNAPSHOT_ENTRY_BYTES 46u
#define SNAPSHOT_VERSION     1

/* Entries that the file really has; what is wrong with its head is a problem. */
static uint32_t snapshot_count(struct dump *dump, struct dump_file *file)
{
    struct view bytes = file->bytes;
    if (bytes.size < SNAPSHOT_HEAD_BYTES) {
        dump_problem(dump, file, 0, "%u bytes are no producer snapshot", bytes.size);
        return 0;
    }
    int16_t version = (int16_t)load_be16(bytes.data);
    if (version != SNAPSHOT_VERSION) {
        dump_problem(dump, file, 0, "version %d is not known", version);
        return 0;
    }
    if (crc_32c(bytes.data + 6, bytes.size - 6) != load_be32(bytes.data + 2))
        dump_problem(dump, file, 2, "the checksum does not match the bytes");
    int32_t count = (int32_t)load_be32(bytes.data + 6);
    uint32_t there = (bytes.size - SNAPSHOT_HEAD_BYTES) / SNAPSHOT_ENTRY_BYTES;
    bool exact = (bytes.size - SNAPSHOT_HEAD_BYTES) % SNAPSHOT_ENTRY_BYTES == 0;
    if (count < 0 || (uint32_t)count != there || !exact)
        dump_problem(dump, file, 6, "%d entries are announced, the size is that of %u", count,
                     there);
    return there;
}

void dump_snapshot(struct dump *dump, struct dump_file *file)
{
    uint32_t count = snapshot_count(dump, file);
    for (uint32_t i = 0; i < count && dump_flush(dump); i++) {
        const uint8_t *p =
            file->bytes.data + SNAPSHOT_HEAD_BYTES + (size_t)i * SNAPSHOT_ENTRY_BYTES;
        int64_t txn = (int64_t)load_be64(p + 38);
        dump_line(dump, "producer", "");
        dump_number(dump, "producerId", (int64_t)load_be64(p));
        dump_number(dump, "producerEpoch", (int16_t)load_be16(p + 8));
        dump_number(dump, "coordinatorEpoch", (int32_t)load_be32(p + 34));
        dump_number(dump, "currentTxnFirstOffset", txn);
        dump_number(dump, "lastTimestamp", (int64_t)load_be64(p + 26));
        dump_number(dump, "lastSequence", (int32_t)load_be32(p + 10));
        dump_number(dump, "lastOffset", (int64_t)load_be64(p + 14));
        dump_number(dump, "offsetDelta", (int32_t)load_be32(p + 22));
        dump_end(dump);
    }
}

/* ---- text files
 * ---------------------------------------------------------------------------------- */

static void dump_checkpoint(struct dump *dump, struct dump_file *file, bool has_topics)
{
    if (!checkpoint_valid(file->bytes, has_topics)) {
        dump_problem(dump, file, -1, "the lines are not those of a checkpoint");
        return;
    }
    struct checkpoint_reader reader = checkpoint_read(file->bytes, has_topics);
    struct checkpoint_entry entry, last = {.number = -1, .offset = -1};
    while (checkpoint_next(&reader, &entry) && dump_flush(dump)) {
        dump_line(dump, has_topics ? "checkpoint" : "leaderEpoch", "");
        if (has_topics) dump_bytes(dump, "topic", entry.topic);
        dump_number(dump, has_topics ? "partition" : "epoch", entry.number);
        dump_number(dump, has_topics ? "offset" : "startOffset", entry.offset);
        dump_end(dump);
        bool rises = entry.number > last.number && entry.offset > last.offset;
        if (!has_topics && !rises)
            dump_problem(dump, file, -1, "epoch %d is not above the one before it", entry.number);
        last = entry;
    }
}

void dump_offsets(struct dump *dump, struct dump_file *file)
{
    dump_checkpoint(dump, file, true);
}

void dump_epochs(struct dump *dump, struct dump_file *file)
{
    dump_checkpoint(dump, file, false);
}

/* Lines as they are: meta.properties, partition.metadata, quorum-state, the clean mark. */
void dump_properties(struct dump *dump, struct dump_file *file)
{
    uint32_t from = 0;
    struct view text = file->bytes;
    for (uint32_t i = 0; i <= text.size; i++) {
        if (i < text.size && text.data[i] != '\n') continue;
        struct view line = view_of(text.data + from, i - from);
        from = i + 1;
        if (line.size == 0) continue;
        if (dump->quiet) continue;
        if (dump->json) {
            dump_line(dump, "line", "");
            dump_bytes(dump, "text", line);
            dump_end(dump);
        } else {
            out_view(dump->out, line);
            out_char(dump->out, '\n');
        }
    }
}
