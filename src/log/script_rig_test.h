/* script_rig_test.h - scripted workloads on a log in the simulated world, a model of what must hold
 * beside them, and the judge. Shared by the crash and the fault tests. */
#pragma once

#include "io/sim.h"
#include "log/rig_test.h"

#define MODEL_RECORDS 4096

struct model {
    uint32_t crc[MODEL_RECORDS]; /* Of the batch that holds this offset; 0: none. */
    int64_t base[MODEL_RECORDS]; /* Its base offset. */
    int64_t end;                 /* Assigned. */
    int64_t durable;             /* All below must be there, from `start_max` on. */
    int64_t start_max;           /* The log may start anywhere up to here. */
    int64_t start_min;           /* And not below, once this was told durable (0: not told). */
    bool compacts;               /* Records that a later one of their key replaces may be gone. */
    int32_t key[MODEL_RECORDS];  /* Then: the record's key. */
    bool may_be_gone;            /* A deletion was asked for. */
    bool has_last;               /* The last durable idempotent batch: */
    struct rig_batch last;
    int64_t last_offset;
    bool indexed;      /* Ask for times and aborted transactions, too. */
    bool two;          /* There is a second directory. */
    uint32_t assigned; /* The metadata has the replica in this one. */
    struct {
        int64_t producer_id, offset_first, marker; /* Offset of its marker. */
    } aborted[8];
    uint32_t aborted_count;
};

struct crash_run {
    struct rig *rig;
    struct sim_node *node;
    struct log *log;
    struct model *model;
    int32_t sequence;
    bool trouble;                  /* Faults are arranged: steps may fail, then the script ends. */
    int64_t retention_interval_ms; /* For the next start; 0: the usual. */
    uint32_t
        resume_bytes; /* If > 0: checkpoints all the time, and where to resume after so many. */
    struct logs_moves moves;
    uint32_t moved;  /* Moves that are over, */
    uint32_t failed; /* and of these failed. */
};

static inline bool dead(const struct crash_run *run)
{
    return sim_node_crashed(run->node);
}

/* ---- driving --------------------------------------------------------------------------------- */

static inline void settle(struct crash_run *run)
{
    rig_turn(run->rig);
    for (int i = 0; i < (run->trouble ? 300 : 100000); i++) {
        if (dead(run) || logs_idle(run->rig->logs)) break;
        rig_turn(run->rig);
    }
    if (dead(run)) return;
    if (!run->trouble) assert_true(logs_idle(run->rig->logs));
    run->model->durable = MAX(run->model->durable, log_end_durable(run->log));
}

static inline void model_take(struct model *model, int64_t offset, const struct buf *buf)
{
    struct batch_header header;
    assert_int_equal(batch_header_load(view_of(buf->data, buf->size_bytes), &header), RECORD_OK);
    for (int32_t i = 0; i <= header.last_offset_delta; i++) {
        assert_true(offset + i < MODEL_RECORDS);
        model->crc[offset + i] = header.crc;
        model->base[offset + i] = offset;
    }
    model->end = offset + header.last_offset_delta + 1;
}

/* Append a batch; false when the node is dead or the log does not take it now. */
static inline bool append(struct crash_run *run, const struct rig_batch *what)
{
    if (dead(run)) return false;
    struct buf *buf = rig_batch(run->rig, what);
    struct log_appended out;
    if (buf == NULL) return false; /* No memory, under faults. */
    buf_hold(buf);
    int result = rig_append_buf(run->log, buf, &out);
    for (int i = 0; i < 1000 && result == LOG_LATER && !dead(run); i++) { /* A move ends. */
        rig_turn(run->rig);
        buf_hold(buf);
        result = rig_append_buf(run->log, buf, &out);
    }
    if (result == LOG_OK) {
        model_take(run->model, out.offset_first, buf);
        for (int32_t i = 0; i < what->count; i++)
            run->model->key[out.offset_first + i] = what->key_from + i;
    }
    buf_release(buf);
    return result == LOG_OK;
}

/* So many batches of one record, each settled before the next. */
static inline void append_few(struct crash_run *run, int count)
{
    for (int k = 0; k < count && !dead(run); k++) {
        append(run, &(struct rig_batch){.count = 1, .value_bytes = 60u + (uint32_t)k});
        settle(run);
    }
}

static inline bool append_next(struct crash_run *run, int32_t count, uint32_t value_bytes)
{
    struct rig_batch what = {.count = count,
                             .value_bytes = value_bytes,
                             .timestamp_ms = 1000 + run->model->end,
                             .producer_id = 5,
                             .sequence = run->sequence};
    if (!append(run, &what)) return false;
    run->sequence += count;
    struct model *model = run->model;
    model->has_last = false; /* A snapshot has only the newest, which may be there now. */
    int64_t offset = model->end - count;
    settle(run);
    if (dead(run) || model->durable < model->end) return false;
    model->has_last = true;
    model->last = what;
    model->last_offset = offset;
    return true;
}

static inline bool open_log(struct crash_run *run, bool is_new)
{
    struct logs_replica replica = {
        .topic = VIEW("t"),
        .topic_id = {{0, 17, 34, 51}},
        .config = &run->rig->config,
        .directory = LOG_DIRECTORY_ANY,
        .is_new = is_new,
        .assigned = run->rig->ids[run->model->assigned],
    };
    if (logs_replica(run->rig->logs, &replica, &run->log) != LOG_OK) return false;
    int result = LOG_LATER;
    for (int i = 0; i < 100000 && !dead(run); i++) {
        result = log_open(run->log);
        if (result != LOG_LATER) break;
        rig_turn(run->rig);
    }
    return result == LOG_OK;
}

/* The owner's part: the metadata has the new directory, then the folders are renamed. */
static inline void move_told(void *context,
                             struct log *log,
                             enum log_move_event event,
                             uint32_t directory)
{
    struct crash_run *run = context;
    if (event == LOG_MOVE_READY) {
        run->model->assigned = directory;
        logs_move_go(log, true);
    }
    run->moved += event == LOG_MOVE_DONE;
    run->failed += event == LOG_MOVE_FAILED;
    if (event == LOG_MOVE_DONE || event == LOG_MOVE_READY) return;
    struct log_dir_info info;
    logs_dir_info(run->rig->logs, log_directory(log), &info);
    if (info.error == 0) run->model->assigned = log_directory(log);
}

static inline bool start(struct crash_run *run)
{
    struct rig *rig = run->rig;
    const char *const paths[] = {rig->dir, rig->other};
    rig->options = (struct logs_options){
        .paths = paths,
        .path_count = run->model->two ? 2 : 1,
        .node_id = 1,
        .config = rig->config,
        .unsynced_max_bytes = 4u << 20,
        .cleaner_backoff_ms = 5,
        .retention_interval_ms = run->retention_interval_ms,
        .cleaner_map_bytes = 1,
        .checkpoint_interval_ms = run->resume_bytes > 0 ? 1 : 0,
        .resume_bytes = run->resume_bytes,
        .say = rig_say,
        .context = rig,
    };
    if (logs_open(rig->io, &rig->options, &rig->logs) != LOGS_OK) return false;
    for (uint32_t i = 0; i < rig->options.path_count; i++) {
        struct log_dir_info info;
        logs_dir_info(rig->logs, i, &info);
        if (!uuid_is_zero(info.directory_id)) rig->ids[i] = info.directory_id;
        /* With one directory there would be no start: nothing that can heal is judged. */
        if (info.error == -ENOMEM || info.error == -ENOSPC) {
            logs_abandon(rig->logs);
            rig->logs = NULL;
            return false;
        }
    }
    run->moves = (struct logs_moves){.told = move_told, .context = run};
    logs_moves_follow(rig->logs, &run->moves);
    return true;
}

static inline void stop(struct crash_run *run)
{
    if (dead(run)) return;
    logs_stop(run->rig->logs);
    settle(run);
    if (dead(run)) return;
    if (!run->trouble || logs_idle(run->rig->logs)) logs_close(run->rig->logs, 77);
    run->rig->logs = NULL;
    run->log = NULL;
}

/* ---- scripts --------------------------------------------------------------------------------- */

static inline void script_append_and_roll(struct crash_run *run)
{
    for (int i = 0; i < 12 && !dead(run); i++) {
        append(run, &(struct rig_batch){.count = 2, .value_bytes = 150, .timestamp_ms = 5000 + i});
        if (i % 3 == 0) append_next(run, 1 + i % 2, 90u + (uint32_t)i * 37u % 200u);
    }
    settle(run);
}

static inline void script_stop_and_start(struct crash_run *run)
{
    for (int round = 0; round < 3 && !dead(run); round++) {
        for (int i = 0; i < 4; i++)
            append_next(run, 2, 120);
        stop(run);
        if (dead(run) || !start(run)) return;
        if (!open_log(run, false)) return;
        if (log_end_assigned(run->log) != run->model->end) {
            assert_true(run->trouble);
            return;
        }
    }
}

static inline void task_over(struct log_task *task)
{
    (void)task;
}

static inline void wait_for(struct crash_run *run, const struct log_task *task)
{
    for (int i = 0; i < 100000 && !dead(run) && task->result == LOG_LATER; i++)
        rig_turn(run->rig);
}

/* After a cut the offsets above are another history's. */
static inline void model_cut(struct model *model, int64_t offset)
{
    model->durable = MIN(model->durable, offset);
    model->has_last = false;
}

static inline void script_truncate(struct crash_run *run)
{
    for (int i = 0; i < 10; i++)
        append_next(run, 3, 100);
    static struct log_task task;
    const int64_t places[] = {20, 4};
    for (int i = 0; i < 2 && !dead(run); i++) {
        task = (struct log_task){.done = task_over};
        model_cut(run->model, places[i] / 3 * 3);
        log_truncate(run->log, places[i], &task);
        wait_for(run, &task);
        if (dead(run)) return;
        if (!run->trouble) assert_int_equal(task.result, LOG_OK);
        if (task.result != LOG_OK) {
            /* It may have been cut or not. */
            return;
        }
        run->model->end = log_end_assigned(run->log);
        if (!run->trouble) assert_int_equal(run->model->end, places[i] / 3 * 3);
        if (run->model->end != places[i] / 3 * 3) return;
        run->sequence = 0; /* What the log knows of the producer was cut too: begin a new one. */
        run->model->has_last = false;
        /* The new history's batches are other ones at the same offsets: both may be found until
         * the truncation is known to be over, which it is now. */
        for (int64_t o = run->model->end; o < MODEL_RECORDS; o++)
            run->model->crc[o] = 0;
        append_few(run, 4);
    }
}

static inline void script_restart(struct crash_run *run)
{
    for (int i = 0; i < 5; i++)
        append_next(run, 3, 100);
    static struct log_task task;
    if (dead(run)) return;
    task = (struct log_task){.done = task_over};
    run->model->start_max = 100;
    model_cut(run->model, 0);
    log_restart(run->log, 100, &task);
    wait_for(run, &task);
    if (dead(run) || task.result != LOG_OK) return;
    run->model->start_min = run->model->durable = run->model->end = 100;
    append_few(run, 5);
}

static inline void script_delete_records(struct crash_run *run)
{
    for (int i = 0; i < 8; i++)
        append_next(run, 3, 100);
    if (dead(run)) return;
    log_set_high_watermark(run->log, run->model->end);
    run->model->start_max = 10;
    int deleted = log_delete_records(run->log, 10);
    if (!run->trouble) assert_int_equal(deleted, LOG_OK);
    settle(run);
    append_next(run, 3, 100);
    stop(run);
}

static inline void script_delete_log(struct crash_run *run)
{
    for (int i = 0; i < 4; i++)
        append_next(run, 3, 100);
    if (dead(run)) return;
    run->model->may_be_gone = true;
    model_cut(run->model, 0);
    logs_delete(run->rig->logs, run->log, NULL);
    for (int i = 0; i < 200 && !dead(run); i++)
        rig_turn(run->rig);
}

/* The batch that was taken last is the marker. */
static inline void model_aborted(struct model *model, int64_t producer_id, int64_t first)
{
    uint32_t at = model->aborted_count++;
    assert_true(at < 8);
    model->aborted[at].producer_id = producer_id;
    model->aborted[at].offset_first = first;
    model->aborted[at].marker = model->end - 1;
}

/* The log ends here now: markers above are gone. */
static inline void model_aborted_cut(struct model *model, int64_t end)
{
    while (model->aborted_count > 0 && model->aborted[model->aborted_count - 1].marker >= end)
        model->aborted_count--;
}

static inline void script_transactions(struct crash_run *run)
{
    run->model->indexed = true;
    for (int i = 0; i < 4 && !dead(run); i++) {
        struct rig_batch what = {.count = 2,
                                 .value_bytes = 100,
                                 .producer_id = 40 + i,
                                 .transactional = true,
                                 .timestamp_ms = 7000 + i};
        int64_t first = run->model->end;
        bool begun = append(run, &what);
        append_next(run, 1, 50);
        if (dead(run)) return;
        struct buf *buf = rig_marker_buf(run->rig, 40 + i, 0, i % 2 == 0);
        if (buf == NULL) return;
        struct log_append in = {.buf = buf,
                                .size_bytes = buf->size_bytes,
                                .wall_ms = 1700000009999,
                                .origin = LOG_COORDINATOR,
                                .produce_version = INT16_MAX};
        struct log_appended out;
        if (log_append(run->log, &in, &out) == LOG_OK) {
            model_take(run->model, out.offset_first, buf);
            if (begun && i % 2 != 0) model_aborted(run->model, 40 + i, first);
        }
        buf_release(buf);
        settle(run);
    }
    stop(run);
}

static inline void script_compact(struct crash_run *run)
{
    run->model->compacts = true;
    run->rig->config.cleanup_compact = true;
    run->rig->config.cleanup_delete = false;
    run->rig->config.min_cleanable_dirty_permil = 1;
    log_configure(run->log, &run->rig->config);
    for (int round = 0; round < 3 && !dead(run); round++) {
        for (int i = 0; i < 5; i++)
            append(run, &(struct rig_batch){.count = 3,
                                            .value_bytes = 100,
                                            .timestamp_ms = 5000,
                                            .key_from = (round + i) % 4 * 2,
                                            .codec = round == 1 ? CODEC_LZ4 : CODEC_NONE});
        settle(run);
        if (dead(run)) return;
        if (log_roll(run->log) != LOG_OK) return;
        settle(run);
        if (dead(run)) return;
        log_set_high_watermark(run->log, log_end_assigned(run->log));
        for (int i = 0; i < 4 && !dead(run); i++)
            rig_turn(run->rig);
        settle(run);
    }
    stop(run);
}

static inline void retain_under(struct crash_run *run, int64_t retention_bytes, int64_t ms)
{
    for (int i = 0; i < 16; i++)
        append_next(run, 3, 150);
    stop(run);
    run->retention_interval_ms = 5;
    run->rig->config.retention_bytes = retention_bytes;
    run->rig->config.retention_ms = ms;
    run->model->start_max = MODEL_RECORDS;
    if (dead(run) || !start(run) || !open_log(run, false)) return;
    log_set_high_watermark(run->log, log_end_assigned(run->log));
    for (int i = 0; i < 12 && !dead(run); i++)
        rig_turn(run->rig);
    settle(run);
    append_next(run, 2, 100);
    stop(run);
}

static inline void script_retain(struct crash_run *run)
{
    retain_under(run, 1500, LOG_RETENTION_UNLIMITED);
}

/* All of it is old: one empty segment stays. */
static inline void script_expire(struct crash_run *run)
{
    retain_under(run, LOG_RETENTION_UNLIMITED, 1000);
}

static inline void query_over(struct log_query *query)
{
    query->log = NULL;
}

/* One segment with places to resume at, written as it grows: across a transaction that is aborted,
 * a stop, a cut, and a roll. */
static inline void script_resume(struct crash_run *run)
{
    stop(run);
    run->resume_bytes = 1;
    run->model->indexed = true;
    run->rig->config.segment_bytes = 3000;
    run->rig->config.index_interval_bytes = 150;
    if (dead(run) || !start(run) || !open_log(run, false)) return;
    script_transactions(run); /* Ends with a stop. */
    if (dead(run) || !start(run) || !open_log(run, false)) return;
    model_aborted_cut(run->model, log_end_assigned(run->log));
    for (int i = 0; i < 4 && !dead(run); i++)
        append_next(run, 2, 100);
    static struct log_task task;
    if (dead(run)) return;
    task = (struct log_task){.done = task_over};
    int64_t to = run->model->end - 3; /* Into the last batch but one, */
    for (uint32_t i = 0; i < run->model->aborted_count; i++)
        run->model->indexed &= run->model->aborted[i].marker < to - 1; /* if they were taken. */
    model_cut(run->model, to - 1);
    log_truncate(run->log, to, &task);
    wait_for(run, &task);
    if (dead(run) || task.result != LOG_OK) return;
    run->model->end = log_end_assigned(run->log);
    if (!run->trouble) assert_int_equal(run->model->end, to - 1);
    if (run->model->end != to - 1) return;
    for (int64_t o = run->model->end; o < MODEL_RECORDS; o++)
        run->model->crc[o] = 0;
    for (int k = 0; k < 12 && !dead(run); k++) { /* Of the same sizes as what was cut, and more. */
        append(run, &(struct rig_batch){.count = 2, .value_bytes = 100, .timestamp_ms = 9000 - k});
        settle(run);
    }
}

/* Until no move runs. */
static inline void settle_move(struct crash_run *run)
{
    for (int i = 0; i < (run->trouble ? 3000 : 100000) && !dead(run); i++) {
        if (log_move_target(run->log) == LOG_DIRECTORY_ANY) break;
        rig_turn(run->rig);
    }
    if (!dead(run)) settle(run);
}

/* To the second directory and back, with appends beside, records deleted, a start in between. */
static inline void script_move(struct crash_run *run)
{
    stop(run);
    run->model->two = true;
    if (dead(run) || io_disk_mkdir(run->rig->io, run->rig->other) != 0) return;
    if (io_disk_sync_dir(run->rig->io, "/tmp") != 0) return;
    if (dead(run) || !start(run) || !open_log(run, false)) return;
    for (int i = 0; i < 5; i++)
        append_next(run, 3, 150);
    if (dead(run)) return;
    log_set_high_watermark(run->log, run->model->durable);
    run->model->start_max = 4;
    if (log_delete_records(run->log, 4) != LOG_OK) return;
    settle(run);
    for (uint32_t to = 1; to < 3 && !dead(run); to++) {
        if (logs_move(run->rig->logs, run->log, to % 2) != LOG_OK) return;
        for (int i = 0; i < 3; i++)
            append_next(run, 2, 150);
        if (to == 2) { /* Wherever it is, it goes on after a start. */
            stop(run);
            if (dead(run) || !start(run) || !open_log(run, false)) return;
            append_next(run, 2, 150);
        }
        settle_move(run);
        if (dead(run)) return;
        if (!run->trouble) assert_int_equal(log_directory(run->log), to % 2);
        if (!run->trouble) assert_int_equal(run->moved, to);
    }
    append_next(run, 2, 150);
    stop(run);
}

/* All that asks and changes nothing, of a log that was opened anew. */
static inline void script_lookups(struct crash_run *run)
{
    if (log_epoch_begin(run->log, 3) != LOG_OK) return;
    script_transactions(run); /* Ends with a stop. */
    if (dead(run) || !start(run) || !open_log(run, false)) return;
    static struct log_query query;
    for (int64_t time = 1000; time < 9000 && !dead(run); time += 2500) {
        query = (struct log_query){.log = run->log, .timestamp_ms = time, .done = query_over};
        log_query_start(&query);
        for (int i = 0; i < 1000 && query.log != NULL && !dead(run); i++)
            rig_turn(run->rig);
        if (!dead(run)) assert_null(query.log);
    }
    for (int64_t offset = 0; offset < run->model->end && !dead(run); offset += 4) {
        struct log_read in = {offset, INT64_MAX, 300, true};
        struct log_range range;
        struct log_aborted aborted[16];
        uint32_t count;
        int result = rig_read(run->rig, run->log, &in, &range);
        if (result == LOG_OK && !dead(run))
            result = rig_aborted(run->rig, run->log, &in, aborted, &count);
        if (!run->trouble && !dead(run)) assert_int_equal(result, LOG_OK);
        if (!dead(run)) log_range_release(&range);
    }
    stop(run);
}

/* ---- judging --------------------------------------------------------------------------------- */

struct verdict {
    uint64_t outcomes;
    char text[256]; /* Empty: good. */
};

static inline bool wrong(struct verdict *verdict, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(verdict->text, sizeof(verdict->text), format, arguments);
    va_end(arguments);
    return false;
}

/* Each key's newest durable record must be among those found. */
static inline bool judge_keys(const struct model *model, const bool *found, struct verdict *verdict)
{
    for (int64_t offset = 0; offset < model->durable; offset++) {
        bool newest = true;
        for (int64_t later = offset + 1; later < model->end; later++)
            newest = newest && model->key[later] != model->key[offset];
        if (newest && !found[offset])
            return wrong(verdict, "the newest of its key at %lld is gone", (long long)offset);
    }
    return true;
}

/* A compacted log: every record is the one of its offset, and the newest of each key is there. */
static inline bool judge_compacted(struct crash_run *run, struct verdict *verdict)
{
    static bool found[MODEL_RECORDS];
    memset(found, 0, sizeof(found));
    struct compress_work work;
    compress_work_init(&work, &run->rig->mem);
    int64_t end = log_end_assigned(run->log);
    int64_t offset = log_start(run->log);
    while (offset < end) {
        struct log_read in = {offset, INT64_MAX, 64 * 1024, true};
        struct log_range range;
        int result = rig_read(run->rig, run->log, &in, &range);
        if (result != LOG_OK) return wrong(verdict, "read at %lld: %d", (long long)offset, result);
        if (range.size_bytes == 0) break; /* The rest of the offsets is compacted away. */
        uint8_t *bytes = malloc(range.size_bytes);
        int64_t got =
            io_disk_read(run->rig->io, range.file, bytes, range.size_bytes, range.at_bytes);
        assert_int_equal(got, range.size_bytes);
        struct batch_scan scan = batch_scan_of(view_of(bytes, range.size_bytes));
        struct batch_header header;
        struct view batch;
        while (batch_next(&scan, &header, &batch)) {
            if (!batch_crc_valid(&header, batch)) return wrong(verdict, "a CRC");
            struct record_iter iter;
            struct record record;
            record_iter_begin(&iter, &work, &header, batch);
            while (record_next(&iter, &record)) {
                char key[16];
                int size = snprintf(key, sizeof(key), "k%d", run->model->key[record.offset]);
                if (!view_equal(record.key, view_of(key, (uint32_t)size)))
                    return wrong(verdict, "another key at %lld", (long long)record.offset);
                found[record.offset] = true;
            }
            (void)record_iter_end(&iter);
            offset = batch_last_offset(&header) + 1;
        }
        free(bytes);
        offset = range.offset_next;
        log_range_release(&range);
    }
    compress_work_free(&work);
    return judge_keys(run->model, found, verdict);
}

/* What the indexes know: the largest time, and just the aborted transactions that ended. */
static inline bool judge_indexes(struct crash_run *run, int64_t most_ms, struct verdict *verdict)
{
    const struct model *model = run->model;
    int64_t end = log_end_assigned(run->log);
    struct log_query query = {
        .log = run->log, .timestamp_ms = LOG_MAX_TIMESTAMP, .done = query_over};
    log_query_start(&query);
    for (int i = 0; i < 1000 && query.log != NULL; i++)
        rig_turn(run->rig);
    if (query.result != LOG_OK || query.found_timestamp_ms != most_ms)
        return wrong(verdict, "the largest time: %d, %lld instead of %lld", query.result,
                     (long long)query.found_timestamp_ms, (long long)most_ms);
    struct log_aborted found[16];
    uint32_t count = 0, wanted = 0;
    struct log_read in = {.offset = log_start(run->log), .offset_end = end};
    int result = rig_aborted(run->rig, run->log, &in, found, &count);
    if (result != LOG_OK) return wrong(verdict, "aborted transactions: %d", result);
    for (uint32_t i = 0; i < model->aborted_count; i++) {
        if (model->aborted[i].marker >= end) continue;
        bool same = wanted < count && found[wanted].producer_id == model->aborted[i].producer_id &&
                    found[wanted].offset_first == model->aborted[i].offset_first;
        if (!same) return wrong(verdict, "an aborted transaction is not known");
        wanted++;
    }
    return wanted == count || wrong(verdict, "%u aborted transactions of %u", count, wanted);
}

/* Every batch from the start to the end against the model. */
static inline bool judge_records(struct crash_run *run, struct verdict *verdict)
{
    const struct model *model = run->model;
    if (model->compacts) return judge_compacted(run, verdict);
    int64_t end = log_end_assigned(run->log);
    int64_t offset = log_start(run->log);
    int64_t most_ms = -1;
    while (offset < end) {
        struct log_read in = {offset, INT64_MAX, 64 * 1024, true};
        struct log_range range;
        int result = rig_read(run->rig, run->log, &in, &range);
        if (result != LOG_OK) return wrong(verdict, "read at %lld: %d", (long long)offset, result);
        if (range.size_bytes == 0)
            return wrong(verdict,
                         "nothing at %lld: start %lld, end %lld, written %lld, %u segments",
                         (long long)offset, (long long)log_start(run->log), (long long)end,
                         (long long)log_end_written(run->log), log_segments(run->log));
        uint8_t *bytes = malloc(range.size_bytes);
        int64_t got =
            io_disk_read(run->rig->io, range.file, bytes, range.size_bytes, range.at_bytes);
        assert_int_equal(got, range.size_bytes);
        struct batch_scan scan = batch_scan_of(view_of(bytes, range.size_bytes));
        struct batch_header header;
        struct view batch;
        bool good = true;
        while (good && batch_next(&scan, &header, &batch)) {
            good = batch_crc_valid(&header, batch) &&
                   (header.base_offset == offset || offset == log_start(run->log)) &&
                   header.base_offset < MODEL_RECORDS &&
                   model->crc[header.base_offset] == header.crc &&
                   model->base[header.base_offset] == header.base_offset;
            offset = batch_last_offset(&header) + 1;
            most_ms = MAX(most_ms, header.max_timestamp);
        }
        free(bytes);
        log_range_release(&range);
        if (!good)
            return wrong(verdict, "a wrong batch %lld..%lld, start %lld end %lld",
                         (long long)header.base_offset, (long long)offset,
                         (long long)log_start(run->log), (long long)end);
    }
    return !model->indexed || end == 0 || judge_indexes(run, most_ms, verdict);
}

/* Append, stop, start: nothing may have been left that shows later. */
static inline bool judge_going_on(struct crash_run *run, struct verdict *verdict)
{
    struct model *model = run->model;
    if (model->has_last) {
        struct log_appended out;
        struct rig_batch what = model->last;
        int result = rig_append_buf(run->log, rig_batch(run->rig, &what), &out);
        if (result != LOG_DUPLICATE || out.offset_first != model->last_offset)
            return wrong(verdict, "the last batch again: %d", result);
    }
    model->end = log_end_assigned(run->log);
    int64_t before = model->end;
    for (int i = 0; i < 3; i++) {
        if (!append(run, &(struct rig_batch){.count = 2, .value_bytes = 200}))
            return wrong(verdict, "an append is refused");
        settle(run);
    }
    if (log_end_durable(run->log) != before + 6)
        return wrong(verdict, "appends do not get durable");
    if (!judge_records(run, verdict)) return false;
    stop(run);
    if (!start(run) || !open_log(run, false)) return wrong(verdict, "it does not open again");
    if (log_end_assigned(run->log) != before + 6) return wrong(verdict, "another end after a stop");
    return judge_records(run, verdict);
}

static inline bool judge(struct crash_run *run, struct verdict *verdict)
{
    struct model *model = run->model;
    if (!start(run)) return wrong(verdict, "the directory does not open: %s", run->rig->said);
    bool is_new = model->durable == 0;
    if (!open_log(run, is_new)) return wrong(verdict, "the log does not open: %s", run->rig->said);
    int64_t end = log_end_assigned(run->log);
    int64_t begin = log_start(run->log);
    if (end < model->durable)
        return wrong(verdict, "end %lld, durable %lld", (long long)end, (long long)model->durable);
    if (begin > model->start_max || (begin < model->start_min && end > model->start_min))
        return wrong(verdict, "start %lld", (long long)begin);
    model_aborted_cut(model, end);
    if (!judge_records(run, verdict)) return false;
    if (log_move_target(run->log) != LOG_DIRECTORY_ANY) { /* It goes on by itself. */
        settle_move(run);
        if (log_move_target(run->log) != LOG_DIRECTORY_ANY) return wrong(verdict, "a move stays");
        if (log_end_assigned(run->log) != end) return wrong(verdict, "a move changes the end");
        if (!judge_records(run, verdict)) return false;
    }
    return judge_going_on(run, verdict);
}

static const struct sim_options world_options = {.waits = true,
                                                 .unhashed = true,
                                                 .disk_bytes = 256u << 20,
                                                 .forbid_blocking = true};

/* RIG_TRACE=1: print every disk call. */
static inline void rig_trace(void *context, const struct sim_trace *trace)
{
    (void)context;
    if (strcmp(trace->kind, "turn") == 0) return;
    print_message("%10lld %-10s %-50s at %-8llu size %-8llu -> %lld\n", (long long)trace->at_us,
                  trace->kind, trace->name, (unsigned long long)trace->offset,
                  (unsigned long long)trace->size, (long long)trace->result);
}

static inline struct sim_world *rig_world(uint64_t seed)
{
    struct sim_options options = world_options;
    if (getenv("RIG_TRACE") != NULL) options.trace = rig_trace;
    return sim_world_new(seed, &options);
}

static inline struct rig *rig_on(struct sim_node *node)
{
    struct rig *rig = calloc(1, sizeof(*rig));
    memory_init(&rig->mem, 0);
    rig->io = sim_node_start(node);
    (void)snprintf(rig->dir, sizeof(rig->dir), "/tmp/d");
    (void)snprintf(rig->other, sizeof(rig->other), "/tmp/e");
    rig->config = LOG_CONFIG_DEFAULT;
    rig->config.timestamp_after_max_ms = INT64_MAX;
    rig->config.producer_id_expiration_ms = INT64_MAX;
    rig->config.segment_ms = INT64_MAX;
    rig->config.segment_bytes = 1200;
    rig->config.index_interval_bytes = 300;
    rig->config.file_delete_delay_ms = 0;
    return rig;
}

static inline void format(struct rig *rig)
{
    assert_int_equal(io_disk_mkdir(rig->io, rig->dir), 0);
    assert_int_equal(io_disk_sync_dir(rig->io, "/tmp"), 0);
    assert_int_equal(io_disk_sync_dir(rig->io, "/"), 0);
    struct log_meta meta = {.cluster_id = "MkU3OEVBNTcwNTJENDM2Qk", .node_id = 1, .version = 1};
    meta.directory_id = io_random_uuid(rig->io);
    assert_int_equal(log_meta_write(rig->io, rig->dir, &meta), 0);
}
