/* controller_snapshot.c - snapshots of the committed image, so that a start need not read the whole
 * log.
 *
 * The bytes are made here, from the image that clients are told, between two batches; a job writes
 * them through a .part file, synced and renamed. The newest two are kept: the log then begins at
 * the older of them, so that a broker that lags a little still finds its records, and one that lags
 * a lot gets the newer. */
#include "broker/controller_inside.h"
#include "record/batch_build.h"

#define SNAPSHOT_BATCH_BYTES (1u << 20)
#define SNAPSHOT_BYTES_MAX   (1u << 30)

struct controller_snapshot {
    struct io_op op;
    struct controller *c;
    struct metadata_checkpoint id;
    struct metadata_checkpoint kept; /* The oldest that stays. */
    struct sink bytes;
};

/* Filling the data batches. */
struct snapshot_fill {
    struct sink *out;
    struct arena *arena; /* image_snapshot() resets it after each record. */
    struct batch_build build;
    int64_t offset; /* In the file: of the next batch. */
    int64_t wall_ms;
    int32_t epoch;
    bool open;
};

static bool fill_close(struct snapshot_fill *fill)
{
    struct view batch;
    if (!fill->open) return true;
    fill->open = false;
    fill->offset += fill->build.count;
    return batch_build_finish(&fill->build, -1, &batch) == RECORD_OK;
}

static bool fill_record(void *context, const struct step_record *record)
{
    struct snapshot_fill *fill = context;
    if (!fill->open) {
        struct batch_build_options options = batch_build_plain;
        options.base_offset = fill->offset;
        options.leader_epoch = fill->epoch;
        batch_build_begin(&fill->build, NULL, fill->out, &options);
        fill->open = true;
    }
    struct record_input input = {.timestamp_ms = fill->wall_ms,
                                 .key = VIEW_NULL,
                                 .value = step_encode(fill->arena, &record->value)};
    if (input.value.null) return false;
    batch_build_add(&fill->build, &input);
    return batch_build_size(&fill->build) < SNAPSHOT_BATCH_BYTES || fill_close(fill);
}

/* Head, data, foot. False: no memory. */
static bool snapshot_make(struct controller_snapshot *snapshot)
{
    struct controller *c = snapshot->c;
    struct node *node = c->node;
    struct arena arena;
    struct step head, foot;
    arena_init(&arena, node->mem, 0);
    int64_t wall_ms = io_wall_ms(node->io);
    struct snapshot_fill fill = {
        .out = &snapshot->bytes, .arena = &arena, .wall_ms = wall_ms, .epoch = snapshot->id.epoch};
    step_begin(&head, &arena, io_now_ms(node->io), wall_ms);
    bool made = quorum_snapshot_head(c->quorum, &head, wall_ms) == STEP_DONE &&
                metadata_batch_put(&snapshot->bytes, &arena, &head, true, 0, fill.epoch);
    fill.offset = head.record_count;
    arena_reset(&arena);
    made = made && image_snapshot(node->image, &arena, fill_record, &fill) && fill_close(&fill);
    arena_reset(&arena);
    step_begin(&foot, &arena, io_now_ms(node->io), wall_ms);
    made = made && quorum_snapshot_foot(&foot) == STEP_DONE &&
           metadata_batch_put(&snapshot->bytes, &arena, &foot, true, fill.offset, fill.epoch);
    arena_free(&arena);
    return made;
}

static int64_t snapshot_write(struct io *io, void *argument)
{
    struct controller_snapshot *snapshot = argument;
    struct view bytes = view_of(snapshot->bytes.data, snapshot->bytes.size_bytes);
    int result = metadata_checkpoint_write(io, snapshot->c->dir, snapshot->id, bytes);
    return result == 0 ? metadata_checkpoint_clean(io, snapshot->c->dir, snapshot->kept) : result;
}

static void snapshot_free(struct controller_snapshot *snapshot)
{
    struct node *node = snapshot->c->node;
    snapshot->c->snapshot = NULL;
    sink_free(&snapshot->bytes);
    mem_put(node->mem, snapshot, sizeof(*snapshot));
}

static void snapshot_done(struct io_op *op)
{
    struct controller_snapshot *snapshot = container_of(op, struct controller_snapshot, op);
    struct controller *c = snapshot->c;
    if (op->result == 0) {
        c->newest = snapshot->id;
        c->oldest = snapshot->kept;
        controller_trim(c);
    } else {
        say(c->node->say, SAY_WARN, "controller",
            "a snapshot of the metadata could not be written: error %d", (int)-op->result);
    }
    snapshot_free(snapshot);
}

void controller_trim(struct controller *c)
{
    if (c->failed != NULL || c->oldest.end == c->newest.end) return;
    if (c->oldest.end <= log_start(c->log)) return;
    int result = log_delete_records(c->log, c->oldest.end);
    if (result == LOG_OK)
        result = log_roll(c->log); /* Whole segments go: below a snapshot to come. */
    if (result != LOG_OK)          /* The next snapshot tries again; a start reads over it. */
        say(c->node->say, SAY_WARN, "controller",
            "the metadata log could not be shortened to offset %lld: result %d",
            (long long)c->oldest.end, result);
}

static bool snapshot_is_due(struct controller *c)
{
    const struct node *node = c->node;
    if (c->snapshot != NULL || c->failed != NULL || node->image_offset <= c->newest.end)
        return false;
    if (image_transaction(node->image) >= 0 || c->snapshot_bytes == 0) return false;
    int64_t age_ms = io_now_ms(node->io) - c->snapshot_ms;
    return c->snapshot_bytes >= (uint64_t)broker_setting_kept(node, &c->snapshot_bytes_max) ||
           age_ms >= broker_setting_kept(node, &c->snapshot_interval_ms);
}

int64_t controller_snapshot_turn(struct controller *c)
{
    struct node *node = c->node;
    if (!snapshot_is_due(c)) {
        bool counting = c->snapshot == NULL && c->snapshot_bytes > 0 && c->failed == NULL;
        return counting ? c->snapshot_ms + broker_setting_kept(node, &c->snapshot_interval_ms)
                        : INT64_MAX;
    }
    struct controller_snapshot *snapshot = mem_get(node->mem, sizeof(*snapshot));
    c->snapshot_bytes = 0;
    c->snapshot_ms = io_now_ms(node->io);
    if (snapshot == NULL) return INT64_MAX; /* Without memory: the next time will do. */
    *snapshot = (struct controller_snapshot){.c = c};
    snapshot->id = (struct metadata_checkpoint){
        node->image_offset, MAX(log_epoch_at(c->log, node->image_offset - 1), 0)};
    snapshot->kept = c->newest.end > 0 ? c->newest : snapshot->id;
    sink_init(&snapshot->bytes, node->mem, SNAPSHOT_BYTES_MAX);
    c->snapshot = snapshot;
    if (!snapshot_make(snapshot)) {
        snapshot_free(snapshot);
        return INT64_MAX;
    }
    snapshot->op.done = snapshot_done;
    io_job(node->io, &snapshot->op, snapshot_write, snapshot);
    return INT64_MAX;
}
