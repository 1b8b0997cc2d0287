/* log_check_state.c - what a partition's batches say as a whole, and whether the files beside them
 * agree: leader epochs, producer snapshots, transaction indexes.
 *
 * The batches are replayed through the server's own rules (log/producers.h, log/epochs.h), as
 * loading does. A snapshot may know more than the log (batches that retention or compaction took),
 * never something else about a batch that is there. */
#include "cli/log_check.h"
#include "log/epochs.h"
#include "log/index.h"
#include "log/producers.h"

#include <stdlib.h>
#include <unistd.h>

#define SNAPSHOT_HEAD_BYTES  10u
#define SNAPSHOT_ENTRY_BYTES 46u

struct replay {
    struct check_partition *part;
    struct producers producers;
    struct epochs epochs; /* As the file has them. */
    bool has_epochs;
    int32_t epoch_said;     /* A wrong epoch is said once. */
    uint32_t next_snapshot; /* Index of the next one to compare. */
    struct dump_file txns;  /* The segment's .txnindex; empty if there is none. */
    uint32_t txn_at;
};

static bool open_named(struct replay *replay, struct dump_file *file, char *path, const char *name)
{
    *file = (struct dump_file){0};
    int used = snprintf(path, CHECK_PATH_BYTES, "%s/%s", replay->part->path, name);
    if (used < 0 || used >= CHECK_PATH_BYTES || access(path, F_OK) != 0) return false;
    return dump_file_open(replay->part->dump, path, file);
}

static bool open_numbered(struct replay *replay,
                          struct dump_file *file,
                          char *path,
                          int64_t number,
                          const char *suffix)
{
    char name[64];
    (void)snprintf(name, sizeof(name), "%020lld.%s", (long long)number, suffix);
    return open_named(replay, file, path, name);
}

/* ---- producer snapshots -------------------------------------------------------------------------
 */

/* One entry of a snapshot against what the batches below it say. */
static void compare_producer(struct replay *replay, const uint8_t *entry, int64_t number)
{
    struct check_partition *part = replay->part;
    int64_t id = (int64_t)load_be64(entry);
    int16_t epoch = (int16_t)load_be16(entry + 8);
    int32_t sequence = (int32_t)load_be32(entry + 10);
    int64_t offset = (int64_t)load_be64(entry + 14);
    int64_t txn = (int64_t)load_be64(entry + 38);
    const struct producer *known = producers_find(&replay->producers, id);
    if (known == NULL || known->epoch < 0) return;
    if (known->epoch != epoch)
        check_problem(part, "snapshot %lld: producer %lld has epoch %d, by the batches %d",
                      (long long)number, (long long)id, epoch, known->epoch);
    if (known->batch_count > 0 && known->epoch == epoch) {
        const struct producer_batch *last = &known->batches[known->batch_count - 1];
        bool same = last->sequence_last == sequence && last->offset_last == offset;
        if (!same)
            check_problem(part,
                          "snapshot %lld: producer %lld ends with sequence %d at offset %lld, by "
                          "the batches with %d at %lld",
                          (long long)number, (long long)id, sequence, (long long)offset,
                          last->sequence_last, (long long)last->offset_last);
    }
    if (known->txn_offset_first != txn && (txn >= part->start || txn == -1))
        check_problem(part,
                      "snapshot %lld: producer %lld has a transaction from %lld, by the batches "
                      "from %lld (-1: none)",
                      (long long)number, (long long)id, (long long)txn,
                      (long long)known->txn_offset_first);
}

static void compare_snapshot(struct replay *replay, int64_t number)
{
    char path[CHECK_PATH_BYTES];
    struct dump_file file;
    if (!open_numbered(replay, &file, path, number, "snapshot")) return;
    struct view bytes = file.bytes;
    uint32_t count = bytes.size < SNAPSHOT_HEAD_BYTES
                         ? 0
                         : (bytes.size - SNAPSHOT_HEAD_BYTES) / SNAPSHOT_ENTRY_BYTES;
    for (uint32_t i = 0; i < count; i++)
        compare_producer(
            replay, bytes.data + SNAPSHOT_HEAD_BYTES + (size_t)i * SNAPSHOT_ENTRY_BYTES, number);
    dump_file_close(&file);
}

/* All snapshots that are to hold what lies below `offset`. */
static void compare_snapshots_up_to(struct replay *replay, int64_t offset)
{
    struct check_partition *part = replay->part;
    while (replay->next_snapshot < part->snapshot_count &&
           part->snapshots[replay->next_snapshot] <= offset)
        compare_snapshot(replay, part->snapshots[replay->next_snapshot++]);
}

/* ---- one batch
 * ----------------------------------------------------------------------------------- */

/* The next entry of the transaction index must be this transaction. */
static void compare_aborted(struct replay *replay,
                            int64_t producer_id,
                            const struct producer_ended *txn)
{
    struct view bytes = replay->txns.bytes;
    if (bytes.size < replay->txn_at + INDEX_TXN_BYTES) {
        check_problem(replay->part,
                      "the transaction of producer %lld aborted at offset %lld is not in the "
                      "transaction index",
                      (long long)producer_id, (long long)txn->offset_last);
        return;
    }
    const uint8_t *entry = bytes.data + replay->txn_at;
    replay->txn_at += INDEX_TXN_BYTES;
    bool same = (int64_t)load_be64(entry + 2) == producer_id &&
                (int64_t)load_be64(entry + 10) <= txn->offset_first &&
                (int64_t)load_be64(entry + 18) == txn->offset_last;
    if (!same)
        check_problem(replay->part,
                      "the transaction index has producer %lld, offsets %lld to %lld; the batches "
                      "have producer %lld, %lld to %lld",
                      (long long)load_be64(entry + 2), (long long)load_be64(entry + 10),
                      (long long)load_be64(entry + 18), (long long)producer_id,
                      (long long)txn->offset_first, (long long)txn->offset_last);
}

static void replay_producer(struct replay *replay,
                            const struct batch_header *header,
                            struct view batch)
{
    struct producer_marker marker = {0};
    struct producer_ended ended = {0};
    if (header->magic < 2 || header->producer_id < 0) return;
    bool control = (header->attributes & BATCH_CONTROL) != 0;
    if (control && !producers_marker(header, batch, &marker)) {
        check_problem(replay->part, "the marker at offset %lld cannot be read",
                      (long long)header->base_offset);
        return;
    }
    if (!producers_reserve(&replay->producers, header->producer_id)) return;
    producers_apply(&replay->producers, header, &marker, &ended);
    if (ended.ended && ended.aborted) compare_aborted(replay, header->producer_id, &ended);
}

static void replay_epoch(struct replay *replay, const struct batch_header *header)
{
    if (!replay->has_epochs || header->magic < 2 || header->leader_epoch < 0) return;
    if (batch_last_offset(header) < replay->part->start) return; /* No epoch is kept of these. */
    int32_t epoch = epochs_at(&replay->epochs, header->base_offset);
    if (epoch == header->leader_epoch || header->leader_epoch == replay->epoch_said) return;
    /* What the file lacks is found in the batches when they are recovered. */
    bool newer = header->leader_epoch > epochs_latest(&replay->epochs);
    if (newer && header->base_offset >= replay->part->recovery) return;
    replay->epoch_said = header->leader_epoch;
    check_problem(replay->part,
                  "the batch at offset %lld has leader epoch %d, by the checkpoint its epoch is %d",
                  (long long)header->base_offset, header->leader_epoch, epoch);
}

/* ---- all segments
 * -------------------------------------------------------------------------------- */

static void note_damage(struct check_partition *part,
                        int64_t base,
                        const struct batch_scan *scan,
                        uint32_t at)
{
    part->damaged = true;
    part->damage_base = base;
    part->damage_at = at;
    part->damage_bytes = scan->bytes.size - at;
    part->damage_is_cut = at == scan->at && scan->fault == RECORD_OK;
}

/* Is the batch whole, and in order behind the end? Loading asks the same. */
static bool batch_holds(const struct check_partition *part,
                        const struct batch_header *header,
                        struct view batch)
{
    if (!batch_crc_valid(header, batch)) return false;
    if (batch_last_offset(header) < part->end) return false;
    return header->magic < 2 ||
           (header->base_offset >= part->end && header->last_offset_delta >= 0);
}

/* Walk over one segment. False: there is damage in it. */
static bool replay_segment(struct replay *replay, const struct dump_file *file, int64_t base)
{
    struct check_partition *part = replay->part;
    struct batch_scan scan = batch_scan_of(file->bytes);
    struct batch_header header;
    struct view batch;
    if (base < part->end)
        check_problem(part, "segment %lld begins below the end of the one before it, %lld",
                      (long long)base, (long long)part->end);
    part->end = MAX(part->end, base);
    while (batch_next(&scan, &header, &batch)) {
        if (!batch_holds(part, &header, batch)) {
            note_damage(part, base, &scan, scan.at - batch.size);
            return false;
        }
        compare_snapshots_up_to(replay, header.base_offset);
        replay_epoch(replay, &header);
        replay_producer(replay, &header, batch);
        part->end = MAX(part->end, batch_last_offset(&header) + 1);
    }
    if (scan.at == file->bytes.size) return true;
    note_damage(part, base, &scan, scan.at);
    return false;
}

static void load_epochs(struct replay *replay)
{
    char path[CHECK_PATH_BYTES];
    struct dump_file file;
    if (!open_named(replay, &file, path, "leader-epoch-checkpoint")) return;
    replay->has_epochs =
        epochs_read(replay->part->dump->cli->mem, &replay->epochs, file.bytes) == LOG_OK;
    dump_file_close(&file);
}

/* Entries behind the end are what an election left that wrote nothing: one at the end is usual. */
static void check_epochs_end(struct replay *replay)
{
    for (uint32_t i = 0; replay->has_epochs && i < replay->epochs.count; i++) {
        const struct epoch_entry *entry = &replay->epochs.entries[i];
        if (entry->start > replay->part->end)
            check_problem(replay->part, "leader epoch %d begins at %lld, behind the end at %lld",
                          entry->epoch, (long long)entry->start, (long long)replay->part->end);
    }
}

void check_state(struct check_partition *part)
{
    struct mem *mem = part->dump->cli->mem;
    struct replay replay = {.part = part, .epoch_said = -1};
    producers_init(&replay.producers, mem, 1);
    load_epochs(&replay);
    bool sound = true;
    for (uint32_t i = 0; i < part->segment_count && sound; i++) {
        char path[CHECK_PATH_BYTES], txn_path[CHECK_PATH_BYTES];
        struct dump_file file;
        int64_t base = part->segments[i];
        if (!open_numbered(&replay, &file, path, base, "log")) break;
        replay.txn_at = 0;
        bool indexed = open_numbered(&replay, &replay.txns, txn_path, base, "txnindex");
        part->bytes += file.bytes.size;
        sound = replay_segment(&replay, &file, base);
        if (sound && replay.txn_at < replay.txns.bytes.size)
            check_problem(part,
                          "the transaction index of segment %lld knows transactions that its "
                          "batches do not",
                          (long long)base);
        if (indexed) dump_file_close(&replay.txns);
        dump_file_close(&file);
    }
    if (sound) {
        compare_snapshots_up_to(&replay, part->end);
        check_epochs_end(&replay);
        for (uint32_t i = replay.next_snapshot; i < part->snapshot_count; i++)
            check_problem(part, "snapshot %lld lies behind the end at %lld",
                          (long long)part->snapshots[i], (long long)part->end);
    }
    producers_free(&replay.producers);
    epochs_free(mem, &replay.epochs);
}
