/* log_damage_test.c - every bit of a 64 KiB log and of every checkpoint file flipped, one at a
 * time.
 *
 * A log of three segments with an idempotent producer, aborted and committed transactions and three
 * leader epochs is stopped cleanly, or killed. For each bit the disk is forked, the bit flipped,
 * the log opened and asked everything that it was asked when it was whole. What must hold:
 *   - no crash;
 *   - a batch whose CRC holds and that continues the offsets before it is the one that was written;
 *   - after a clean stop all records are there, or it is said: by an error, by a CRC, by a hole;
 *   - offsets by time, aborted transactions, duplicates are answered as before or with an error.
 * What Kafka's formats cannot tell is listed in `blind`.
 *
 * DAMAGE_EVERY=N: only each Nth bit (with sanitizers 97, else 1); DAMAGE_ONLY=file:bit shows one.
 */
#include "log/script_rig_test.h"

#if defined(__SANITIZE_ADDRESS__)
#define EVERY_USUAL 97u
#else
#define EVERY_USUAL 1u
#endif

#define TIMES   5
#define ABORTED 16
#define SPAN_MS 100000

/* What the whole log answers. */
struct answers {
    int64_t start, end;
    int64_t by_time[TIMES];
    uint64_t by_every_time; /* A sum; asked for .timeindex only. */
    struct log_aborted aborted[ABORTED];
    uint32_t aborted_count;
    int64_t epoch_end[8];
};

enum kind {
    CLEAN,
    KILLED,
    RESUMED, /* Killed; the recovery begins inside the only segment. */
};
static const char *const kind_names[] = {"after a clean stop", "after a kill",
                                         "beside a place to resume at"};

struct original {
    enum kind kind;
    struct sim_world *world;
    struct sim_node *node;
    struct model model;
    struct answers answers;
    char dir[32];
};

struct tally {
    uint64_t bits, said, whole, wrong;
};

/* ---- the log --------------------------------------------------------------------------------- */

static void fill(struct crash_run *run, int batches, uint32_t value_bytes)
{
    for (int i = 0; i < batches; i++)
        assert_true(append_next(run, 2, value_bytes));
}

static void transaction(struct crash_run *run, bool commit)
{
    int64_t producer_id = 1000 + run->model->end;
    struct rig_batch what = {.count = 2,
                             .value_bytes = 90,
                             .producer_id = producer_id,
                             .transactional = true,
                             .timestamp_ms = 1000 + run->model->end};
    assert_true(append(run, &what));
    fill(run, 2, 100);
    struct buf *buf = rig_marker_buf(run->rig, producer_id, 0, commit);
    struct log_append in = {.buf = buf,
                            .size_bytes = buf->size_bytes,
                            .leader_epoch = log_epoch_latest(run->log),
                            .wall_ms = 1000 + run->model->end,
                            .origin = LOG_COORDINATOR,
                            .produce_version = INT16_MAX};
    struct log_appended out;
    assert_int_equal(log_append(run->log, &in, &out), LOG_OK);
    model_take(run->model, out.offset_first, buf);
    buf_release(buf);
    settle(run);
}

static void write_log(struct crash_run *run, int32_t epochs)
{
    for (int32_t epoch = 1; epoch <= 2 * epochs - 1; epoch += 2) {
        assert_int_equal(log_epoch_begin(run->log, epoch), LOG_OK);
        fill(run, 24, 200);
        transaction(run, false);
        transaction(run, true);
        fill(run, 12, 250);
        transaction(run, false);
    }
    log_set_high_watermark(run->log, run->model->end);
    run->model->start_max = 9;
    assert_int_equal(log_delete_records(run->log, 9), LOG_OK);
    settle(run);
}

static void query_answered(struct log_query *query)
{
    (void)query;
}

static int64_t ask_time(struct crash_run *run, int64_t timestamp_ms)
{
    struct log_query query = {
        .log = run->log, .timestamp_ms = timestamp_ms, .done = query_answered};
    log_query_start(&query);
    for (int i = 0; i < 1000 && query.work != NULL; i++)
        rig_turn(run->rig);
    assert_null(query.work);
    return query.result == LOG_OK ? query.offset : query.result == LOG_NOT_FOUND ? -1 : -1000;
}

static int64_t asked_time(const struct original *of, int i)
{
    if (i == TIMES - 1) return LOG_MAX_TIMESTAMP;
    return 1000 + (of->model.end + 20) * i / (TIMES - 2);
}

static uint64_t ask_every_time(const struct original *of, struct crash_run *run)
{
    uint64_t sum = 0;
    for (int64_t i = 0; i < of->model.end + 4; i += 3)
        sum = sum * 31 + (uint64_t)ask_time(run, 1000 + i);
    return sum;
}

static bool ask(const struct original *of, struct crash_run *run, struct answers *out)
{
    memset(out, 0, sizeof(*out));
    out->start = log_start(run->log);
    out->end = log_end_assigned(run->log);
    for (int i = 0; i < TIMES; i++)
        out->by_time[i] = ask_time(run, asked_time(of, i));
    struct log_read in = {.offset = out->start, .offset_end = out->end};
    int result = rig_aborted(run->rig, run->log, &in, out->aborted, &out->aborted_count);
    for (int32_t epoch = 0; epoch < 8; epoch++)
        out->epoch_end[epoch] = log_epoch_end(run->log, epoch).end;
    return result == LOG_OK;
}

/* The world that a log of this kind is opened in. */
static void set_up(struct crash_run *run, enum kind kind)
{
    run->rig->config.segment_bytes = kind == RESUMED ? 1 << 20 : 24 * 1024;
    run->rig->config.index_interval_bytes = 512;
}

/* The disk as it is, opened: is only a part of it read? */
static void assert_resumes(struct original *of)
{
    struct sim_world *world = rig_world(5);
    struct sim_node *node = sim_node_fork(world, of->node, SIM_CRASH_KILL, 0);
    struct rig *rig = rig_on(node);
    struct crash_run run = {.rig = rig, .node = node, .model = &of->model};
    set_up(&run, of->kind);
    assert_true(start(&run) && open_log(&run, false));
    const struct log_recovery *found = log_recovered(run.log);
    assert_int_equal(found->segments, 1);
    assert_true(found->scanned_bytes > 0);
    assert_true(found->scanned_bytes < log_size_bytes(run.log) / 2);
    sim_world_free(world);
    free(rig);
}

static void original_make(struct original *of, enum kind kind)
{
    bool clean = kind == CLEAN;
    memset(of, 0, sizeof(*of));
    of->kind = kind;
    of->world = rig_world(3);
    of->node = sim_node_new(of->world, "n");
    struct rig *rig = rig_on(of->node);
    (void)snprintf(of->dir, sizeof(of->dir), "%s", rig->dir);
    struct crash_run run = {
        .rig = rig, .node = of->node, .model = &of->model, .resume_bytes = kind == RESUMED ? 1 : 0};
    set_up(&run, kind);
    format(rig);
    assert_true(start(&run) && open_log(&run, true));
    int32_t epochs = kind == RESUMED ? 2 : 3;
    write_log(&run, epochs);
    if (clean) {
        stop(&run);
        assert_true(start(&run) && open_log(&run, false));
    }
    assert_true(kind == RESUMED || log_segments(run.log) >= 3);
    assert_true(ask(of, &run, &of->answers));
    of->answers.by_every_time = ask_every_time(of, &run);
    assert_int_equal(of->answers.aborted_count, 2 * epochs);
    settle(&run);
    if (clean) stop(&run);
    of->model.end = of->answers.end;
    if (!clean) sim_node_crash(of->node, SIM_CRASH_KILL, 0);
    free(rig);
    if (kind == RESUMED) assert_resumes(of);
}

/* ---- judging --------------------------------------------------------------------------------- */

/* Read as a careful consumer: CRCs, offsets one behind the other. True: all was there. */
static bool read_as_consumer(struct crash_run *run, int64_t offset, int64_t end, bool *wrong)
{
    while (offset < end) {
        struct log_read in = {offset, INT64_MAX, 16 * 1024, true};
        struct log_range range;
        if (rig_read(run->rig, run->log, &in, &range) != LOG_OK) return false;
        if (range.size_bytes == 0) return false;
        uint8_t *bytes = malloc(range.size_bytes);
        int64_t got =
            io_disk_read(run->rig->io, range.file, bytes, range.size_bytes, range.at_bytes);
        int64_t from = offset;
        struct batch_scan scan = batch_scan_of(view_of(bytes, got < 0 ? 0 : (uint32_t)got));
        struct batch_header header;
        struct view batch;
        bool good = true;
        while (good && batch_next(&scan, &header, &batch)) {
            bool first = offset == from && header.base_offset <= offset;
            good = batch_crc_valid(&header, batch) && (header.base_offset == offset || first);
            if (!good) break;
            const struct model *model = run->model;
            *wrong |= header.base_offset < 0 || header.base_offset >= MODEL_RECORDS ||
                      model->crc[header.base_offset] != header.crc ||
                      model->base[header.base_offset] != header.base_offset;
            offset = batch_last_offset(&header) + 1;
        }
        good = good && offset > from;
        free(bytes);
        log_range_release(&range);
        if (!good) return false;
    }
    return true;
}

/* What no checksum covers and nothing else tells: a number in a checkpoint; the leader epoch in a
 * batch's header, from which a recovery makes the epochs anew. */
enum { BLIND_START = 1, BLIND_EPOCHS = 2 };

static int blind(const char *name, bool clean)
{
    if (strstr(name, "log-start-offset-checkpoint") != NULL) return BLIND_START;
    if (strstr(name, ".log") != NULL && !clean) return BLIND_EPOCHS;
    if (strstr(name, "leader-epoch-checkpoint") != NULL) return BLIND_EPOCHS;
    return 0;
}

static bool compare(const struct answers *was, const struct answers *is, int ignored)
{
    if ((ignored & BLIND_START) == 0 && was->start != is->start) return false;
    if (was->end != is->end) return false;
    if (ignored & BLIND_START) return true;
    for (int i = 0; i < TIMES; i++)
        if (is->by_time[i] != -1000 && is->by_time[i] != was->by_time[i]) return false;
    if (is->aborted_count != was->aborted_count) return false;
    if (memcmp(is->aborted, was->aborted, sizeof(is->aborted)) != 0) return false;
    return (ignored & BLIND_EPOCHS) ||
           memcmp(is->epoch_end, was->epoch_end, sizeof(is->epoch_end)) == 0;
}

static bool duplicate_is_known(struct crash_run *run)
{
    struct log_appended out;
    struct rig_batch what = run->model->last;
    int result = rig_append_buf(run->log, rig_batch(run->rig, &what), &out);
    return result == LOG_DUPLICATE ? out.offset_first == run->model->last_offset : result != LOG_OK;
}

/* One flip. "": as good as whole; "said": an error tells; else what is wrong. */
static const char *judge_flip(struct original *of, const char *name, uint64_t bit)
{
    bool clean = of->kind == CLEAN;
    const char *verdict = "said";
    struct sim_world *world = rig_world(5);
    struct sim_node *node = sim_node_fork(world, of->node, SIM_CRASH_KILL, 0);
    char path[160];
    (void)snprintf(path, sizeof(path), "%s/%s", of->dir, name);
    assert_true(sim_node_rot(node, path, bit));
    struct rig *rig = rig_on(node);
    struct crash_run run = {.rig = rig, .node = node, .model = &of->model, .trouble = true};
    set_up(&run, of->kind);
    if (start(&run) && open_log(&run, false)) {
        struct answers answers;
        bool wrong = false, asked = ask(of, &run, &answers);
        bool all = read_as_consumer(&run, answers.start, answers.end, &wrong);
        bool cut = log_recovered(run.log)->cut_bytes > 0;
        if (wrong)
            verdict = "another record than was written";
        else if (!clean && cut)
            verdict = "said";
        else if (all && strstr(name, ".timeindex") != NULL &&
                 ask_every_time(of, &run) != of->answers.by_every_time)
            verdict = "another offset for a time";
        else if (all && asked && !compare(&of->answers, &answers, blind(name, clean)))
            verdict = answers.end != of->answers.end ? "another end" : "another answer";
        else if (all && asked)
            verdict = duplicate_is_known(&run) ? "" : "a duplicate is taken for new";
    }
    if (getenv("DAMAGE_ONLY") != NULL) print_message("%s: %s\n%s", name, verdict, rig->said);
    sim_world_free(world);
    free(rig);
    return verdict;
}

/* ---- every bit ------------------------------------------------------------------------------- */

static uint64_t file_bytes(const struct original *of, const char *name)
{
    struct sim_world *world = rig_world(6);
    struct sim_node *node = sim_node_fork(world, of->node, SIM_CRASH_KILL, 0);
    struct io *io = sim_node_start(node);
    char path[160];
    (void)snprintf(path, sizeof(path), "%s/%s", of->dir, name);
    struct io_stat stat;
    uint64_t size = io_disk_stat(io, path, &stat) == 0 ? stat.size_bytes : 0;
    sim_world_free(world);
    return size;
}

static void flip_file(struct original *of, const char *name, struct tally *tally)
{
    const char *text = getenv("DAMAGE_EVERY");
    uint64_t every = text == NULL ? EVERY_USUAL : strtoull(text, NULL, 10);
    /* The batches are flipped bit by bit in the other two; here it is what is beside them. */
    if (of->kind == RESUMED && strstr(name, ".log") != NULL) every = MAX(every, 11u);
    uint64_t bits = file_bytes(of, name) * 8, first = 0, shown = 0;
    const char *only = getenv("DAMAGE_ONLY");
    if (only != NULL) {
        size_t size = strlen(name);
        if (strncmp(only, name, size) != 0 || only[size] != ':') return;
        first = strtoull(only + size + 1, NULL, 10);
        bits = first + 1;
    }
    for (uint64_t bit = first; bit < bits; bit += every) {
        const char *verdict = judge_flip(of, name, bit);
        tally->bits++;
        tally->whole += verdict[0] == '\0';
        bool said = strcmp(verdict, "said") == 0;
        tally->said += said;
        if (verdict[0] == '\0' || said) continue;
        tally->wrong++;
        if (shown++ < 4)
            print_message("%s, bit %llu: %s\n", name, (unsigned long long)bit, verdict);
    }
}

struct names {
    char text[64][64];
    int count;
};

static bool take_name(void *context, const char *name)
{
    struct names *names = context;
    assert_true(names->count < 64);
    (void)snprintf(names->text[names->count++], sizeof(names->text[0]), "t-0/%s", name);
    return true;
}

static void list_names(const struct original *of, struct names *names)
{
    struct sim_world *world = rig_world(6);
    struct sim_node *node = sim_node_fork(world, of->node, SIM_CRASH_KILL, 0);
    struct io *io = sim_node_start(node);
    char path[64];
    (void)snprintf(path, sizeof(path), "%s/t-0", of->dir);
    names->count = 0;
    assert_int_equal(io_disk_list(io, path, take_name, names), 0);
    sim_world_free(world);
}

static void flip_all(enum kind kind)
{
    static struct original of;
    original_make(&of, kind);
    struct names names;
    list_names(&of, &names);
    struct tally tally = {0};
    uint64_t log_bytes = 0;
    for (int i = 0; i < names.count; i++) {
        log_bytes += file_bytes(&of, names.text[i]);
        flip_file(&of, names.text[i], &tally);
    }
    static const char *const others[] = {"recovery-point-offset-checkpoint",
                                         "log-start-offset-checkpoint",
                                         "replication-offset-checkpoint",
                                         "cleaner-offset-checkpoint",
                                         "meta.properties",
                                         ".kafka_cleanshutdown"};
    for (size_t i = 0; i < ARRAY_SIZE(others); i++)
        flip_file(&of, others[i], &tally);
    print_message("%s: %llu bytes, %llu bits flipped: %llu said, %llu harmless, %llu wrong\n",
                  kind_names[kind], (unsigned long long)log_bytes, (unsigned long long)tally.bits,
                  (unsigned long long)tally.said, (unsigned long long)tally.whole,
                  (unsigned long long)tally.wrong);
    sim_world_free(of.world);
    assert_int_equal(tally.wrong, 0);
}

static void every_bit_after_a_clean_stop(void **state)
{
    (void)state;
    flip_all(CLEAN);
}

static void every_bit_after_a_kill(void **state)
{
    (void)state;
    flip_all(KILLED);
}

static void every_bit_beside_a_place_to_resume_at(void **state)
{
    (void)state;
    flip_all(RESUMED);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_bit_after_a_clean_stop),
        cmocka_unit_test(every_bit_after_a_kill),
        cmocka_unit_test(every_bit_beside_a_place_to_resume_at),
    };
    if (getenv("DAMAGE_TEST") != NULL) cmocka_set_test_filter(getenv("DAMAGE_TEST"));
    return cmocka_run_group_tests(tests, NULL, NULL);
}
