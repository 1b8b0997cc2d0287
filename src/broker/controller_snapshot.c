/* controller_snapshot.c - snapshots of the committed image, so that a start need not read the whole
 * log.
 *
 * The image that clients are told is frozen between two batches (core/image.h) and written a slice
 * a turn, while it goes on changing: a turn looks at SNAPSHOT_SLICE_OBJECTS of them, however many
 * there are. What has come together is written by a job to a .part file, which is synced and
 * renamed at the end. So memory holds two pieces and what changes meanwhile, never the snapshot.
 *
 * The newest two are kept: the log then begins at the older of them, so that a broker that lags a
 * little still finds its records, and one that lags a lot gets the newer. */
#include "broker/controller_inside.h"
#include "record/batch_build.h"

#define SNAPSHOT_BATCH_BYTES (1u << 20)
#define SNAPSHOT_PIECE_MAX   (1u << 30)

struct controller_snapshot {
    struct io_op op;
    struct controller *c;
    struct metadata_checkpoint id;
    struct metadata_checkpoint kept; /* The oldest that stays. */
    struct image_freeze *freeze;     /* NULL: all of it has been written to the pieces. */
    struct metadata_part part;       /* The job's while one runs, */
    struct sink pieces[2];           /* and so is the piece that is not being filled. */
    uint32_t filling;
    bool writing;             /* A job runs. */
    bool failed;              /* It comes to nothing, */
    bool dropping;            /* and that job removes the file. */
    struct batch_build build; /* The data batch being filled, */
    bool open;                /* if there is one. */
    struct arena arena;       /* Of one record. */
    int64_t offset;           /* In the file: of the next batch. */
    int64_t wall_ms;
};

/* ---- filling --------------------------------------------------------------------------------- */

static struct sink *snapshot_piece(struct controller_snapshot *snapshot)
{
    return &snapshot->pieces[snapshot->filling];
}

static bool snapshot_batch_close(struct controller_snapshot *snapshot)
{
    struct view batch;
    if (!snapshot->open) return true;
    snapshot->open = false;
    snapshot->offset += snapshot->build.count;
    return batch_build_finish(&snapshot->build, -1, &batch) == RECORD_OK;
}

/* Called in slices, and while a change is applied to the image. */
static bool snapshot_record(void *context, const struct step_record *record)
{
    struct controller_snapshot *snapshot = context;
    if (!snapshot->open) {
        struct batch_build_options options = batch_build_plain;
        options.base_offset = snapshot->offset;
        options.leader_epoch = snapshot->id.epoch;
        batch_build_begin(&snapshot->build, NULL, snapshot_piece(snapshot), &options);
        snapshot->open = true;
    }
    struct record_input input = {.timestamp_ms = snapshot->wall_ms,
                                 .key = VIEW_NULL,
                                 .value = step_encode(&snapshot->arena, &record->value)};
    bool encoded = !input.value.null;
    if (encoded) batch_build_add(&snapshot->build, &input);
    arena_reset(&snapshot->arena);
    if (!encoded) return false;
    return batch_build_size(&snapshot->build) < SNAPSHOT_BATCH_BYTES ||
           snapshot_batch_close(snapshot);
}

/* The control records at the file's head or foot. False: no memory. */
static bool snapshot_control(struct controller_snapshot *snapshot, bool head)
{
    struct step step;
    step_begin(&step, &snapshot->arena, io_now_ms(snapshot->c->node->io), snapshot->wall_ms);
    enum step_result result =
        head ? quorum_snapshot_head(snapshot->c->quorum, &step, snapshot->wall_ms)
             : quorum_snapshot_foot(&step);
    bool made =
        result == STEP_DONE && metadata_batch_put(snapshot_piece(snapshot), &snapshot->arena, &step,
                                                  true, snapshot->offset, snapshot->id.epoch);
    snapshot->offset += step.record_count;
    arena_reset(&snapshot->arena);
    return made;
}

/* ---- writing --------------------------------------------------------------------------------- */

static void snapshot_free(struct controller_snapshot *snapshot)
{
    struct node *node = snapshot->c->node;
    assert(!snapshot->writing);
    snapshot->c->snapshot = NULL;
    image_freeze_end(snapshot->freeze);
    if (snapshot->open) batch_build_abort(&snapshot->build);
    sink_free(&snapshot->pieces[0]);
    sink_free(&snapshot->pieces[1]);
    arena_free(&snapshot->arena);
    mem_put(node->mem, snapshot, sizeof(*snapshot));
}

static void snapshot_done(struct io_op *op);

static void snapshot_job(struct controller_snapshot *snapshot,
                         int64_t (*run)(struct io *io, void *argument))
{
    assert(!snapshot->writing);
    snapshot->writing = true;
    snapshot->filling = 1 - snapshot->filling;
    snapshot->op.done = snapshot_done;
    io_job(snapshot->c->node->io, &snapshot->op, run, snapshot);
}

static struct view snapshot_full(struct controller_snapshot *snapshot)
{
    return sink_view(&snapshot->pieces[1 - snapshot->filling]);
}

static int64_t snapshot_write(struct io *io, void *argument)
{
    struct controller_snapshot *snapshot = argument;
    return metadata_part_write(io, &snapshot->part, snapshot_full(snapshot));
}

static int64_t snapshot_write_last(struct io *io, void *argument)
{
    struct controller_snapshot *snapshot = argument;
    int64_t result = snapshot_write(io, argument);
    if (result == 0) result = metadata_part_finish(io, &snapshot->part);
    if (result == 0) result = metadata_checkpoint_clean(io, snapshot->part.dir, snapshot->kept);
    return result;
}

static int64_t snapshot_drop(struct io *io, void *argument)
{
    struct controller_snapshot *snapshot = argument;
    metadata_part_drop(io, &snapshot->part);
    return 0;
}

/* It comes to nothing: end the freeze now, remove the file in a job. */
static void snapshot_give_up(struct controller_snapshot *snapshot)
{
    snapshot->failed = true;
    snapshot->freeze = image_freeze_end(snapshot->freeze);
    if (snapshot->writing) return;
    snapshot->dropping = true;
    snapshot_job(snapshot, snapshot_drop);
}

void controller_snapshot_give_up(struct controller *c)
{
    if (c->snapshot != NULL && c->snapshot->freeze != NULL) snapshot_give_up(c->snapshot);
}

static void snapshot_wrote(struct controller_snapshot *snapshot, int64_t result)
{
    struct controller *c = snapshot->c;
    if (result != 0) {
        say(c->node->say, SAY_WARN, SAY_IN_CONTROLLER,
            "a snapshot of the metadata could not be written: %s", say_errno((int)result));
        snapshot_give_up(snapshot);
        return;
    }
    sink_reset(&snapshot->pieces[1 - snapshot->filling]);
    if (snapshot->freeze != NULL) return; /* The next turn goes on. */
    c->newest = snapshot->id;
    c->oldest = snapshot->kept;
    snapshot_free(snapshot);
    controller_trim(c);
}

static void snapshot_done(struct io_op *op)
{
    struct controller_snapshot *snapshot = container_of(op, struct controller_snapshot, op);
    snapshot->writing = false;
    if (snapshot->dropping)
        snapshot_free(snapshot);
    else if (snapshot->failed)
        snapshot_give_up(snapshot);
    else
        snapshot_wrote(snapshot, op->result);
}

/* ---- when ------------------------------------------------------------------------------------ */

void controller_trim(struct controller *c)
{
    if (c->failed != NULL || c->oldest.end == c->newest.end) return;
    if (c->oldest.end <= log_start(c->log)) return;
    int result = log_delete_records(c->log, c->oldest.end);
    if (result == LOG_OK)
        result = log_roll(c->log); /* Whole segments go: below a snapshot to come. */
    if (result != LOG_OK)          /* The next snapshot tries again; a start reads over it. */
        say(c->node->say, SAY_WARN, SAY_IN_CONTROLLER,
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

/* Begin one of what is committed now. Without memory the next time will do. */
static void snapshot_begin(struct controller *c)
{
    struct node *node = c->node;
    struct controller_snapshot *snapshot = mem_get(node->mem, sizeof(*snapshot));
    c->snapshot_bytes = 0;
    c->snapshot_ms = io_now_ms(node->io);
    if (snapshot == NULL) return;
    *snapshot = (struct controller_snapshot){.c = c, .wall_ms = io_wall_ms(node->io)};
    snapshot->id = (struct metadata_checkpoint){
        node->image_offset, MAX(log_epoch_at(c->log, node->image_offset - 1), 0)};
    snapshot->kept = c->newest.end > 0 ? c->newest : snapshot->id;
    snapshot->part = (struct metadata_part){.dir = c->dir, .id = snapshot->id};
    arena_init(&snapshot->arena, node->mem, 0);
    sink_init(&snapshot->pieces[0], node->mem, SNAPSHOT_PIECE_MAX);
    sink_init(&snapshot->pieces[1], node->mem, SNAPSHOT_PIECE_MAX);
    c->snapshot = snapshot;
    if (snapshot_control(snapshot, true))
        snapshot->freeze =
            image_freeze_begin(node->image, (struct image_writer){snapshot_record, snapshot});
    if (snapshot->freeze == NULL) snapshot_free(snapshot);
}

/* One slice. True: there is more to do at once. */
static bool snapshot_go_on(struct controller_snapshot *snapshot)
{
    if (snapshot->writing) return false;
    enum image_freeze_result result = image_freeze_slice(snapshot->freeze, SNAPSHOT_SLICE_OBJECTS);
    bool done = result == IMAGE_FREEZE_DONE;
    bool made = result != IMAGE_FREEZE_FAILED;
    if (made && !done && snapshot_piece(snapshot)->size_bytes < SNAPSHOT_BATCH_BYTES) return true;
    made = made && snapshot_batch_close(snapshot);
    if (done) snapshot->freeze = image_freeze_end(snapshot->freeze);
    if (made && done) made = snapshot_control(snapshot, false);
    if (made)
        snapshot_job(snapshot, done ? snapshot_write_last : snapshot_write);
    else
        snapshot_give_up(snapshot);
    return false;
}

int64_t controller_snapshot_turn(struct controller *c)
{
    struct node *node = c->node;
    if (snapshot_is_due(c)) snapshot_begin(c);
    if (c->snapshot != NULL && c->snapshot->freeze != NULL)
        return snapshot_go_on(c->snapshot) ? io_now_ms(node->io) : INT64_MAX;
    bool counting = c->snapshot == NULL && c->snapshot_bytes > 0 && c->failed == NULL;
    return counting ? c->snapshot_ms + broker_setting_kept(node, &c->snapshot_interval_ms)
                    : INT64_MAX;
}

void controller_snapshot_stop(struct controller *c)
{
    controller_snapshot_give_up(c);
    while (c->snapshot != NULL) /* Its bytes are the job's until it ends. */
        io_turn(c->node->io, INT64_MAX);
}
