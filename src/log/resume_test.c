/* resume_test.c - a recovery begins near the end of a large segment, and at its base when what it
 * needs for that is missing or damaged: with the same result. In the simulated world. */
#include "log/script_rig_test.h"

/* Checkpoints come by the clock here, for which a sixteenth is enough: 2 KiB, some eight batches.
 */
#define RESUME_BYTES 32768u

struct resumed {
    struct sim_world *world; /* Of the log that was killed. */
    struct sim_node *node;
    struct rig *rig;
    struct model model;
    struct crash_run run;
};

static void begin_on(struct resumed *at, struct sim_world *world, struct sim_node *node)
{
    at->world = world;
    at->node = node;
    at->rig = rig_on(node);
    at->rig->config.segment_bytes = 1 << 20;
    at->rig->config.index_interval_bytes = 500;
    at->run = (struct crash_run){
        .rig = at->rig, .node = node, .model = &at->model, .resume_bytes = RESUME_BYTES};
}

static void end(struct resumed *at)
{
    sim_world_free(at->world);
    free(at->rig);
}

/* Appends that wait for each other, with checkpoints meanwhile. */
static void grow(struct resumed *at, int batches)
{
    for (int i = 0; i < batches; i++)
        assert_true(append_next(&at->run, 2, 200));
}

static void make(struct resumed *at)
{
    memset(at, 0, sizeof(*at));
    struct sim_world *world = rig_world(11);
    begin_on(at, world, sim_node_new(world, "n"));
    format(at->rig);
    assert_true(start(&at->run) && open_log(&at->run, true));
}

/* The disk as a kill leaves it, in a world of its own. */
static void fork_of(const struct resumed *of, struct resumed *at)
{
    at->model = of->model;
    struct sim_world *world = rig_world(12);
    begin_on(at, world, sim_node_fork(world, of->node, SIM_CRASH_KILL, 0));
    at->run.sequence = of->run.sequence;
}

static void open_again(struct resumed *at)
{
    assert_true(start(&at->run) && open_log(&at->run, false));
}

static uint64_t scanned(const struct resumed *at)
{
    return log_recovered(at->run.log)->scanned_bytes;
}

/* All records are there, and the producer's last five batches are known. */
static void assert_whole(struct resumed *at)
{
    struct verdict verdict = {0};
    assert_int_equal(log_end_assigned(at->run.log), at->model.end);
    for (int32_t back = 8; back >= 0; back -= 2) {
        struct log_appended out;
        struct rig_batch what = at->model.last;
        what.sequence -= back;
        what.timestamp_ms -= back;
        int result = rig_append_buf(at->run.log, rig_batch(at->rig, &what), &out);
        assert_int_equal(result, LOG_DUPLICATE);
        assert_int_equal(out.offset_first, at->model.last_offset - back);
    }
    if (!judge_records(&at->run, &verdict)) fail_msg("%s", verdict.text);
}

struct listed {
    char snapshots[16][40];
    int count;
};

static bool list_snapshot(void *context, const char *name)
{
    struct listed *listed = context;
    if (strstr(name, ".snapshot") == NULL) return true;
    assert_true(listed->count < 16);
    (void)snprintf(listed->snapshots[listed->count++], 40, "%s", name);
    return true;
}

static struct listed snapshots(const struct resumed *at)
{
    struct listed listed = {0};
    struct disk_path folder = disk_join(at->rig->dir, "t-0");
    assert_int_equal(io_disk_list(at->rig->io, folder.text, list_snapshot, &listed), 0);
    return listed;
}

/* ---- tests ----------------------------------------------------------------------------------- */

static void begins_behind_the_recovery_point(void **state)
{
    (void)state;
    struct resumed was, is, again;
    make(&was);
    grow(&was, 300);
    assert_int_equal(snapshots(&was).count, LOG_RESUME_SNAPSHOTS);
    fork_of(&was, &is);
    open_again(&is);
    assert_int_equal(log_recovered(is.run.log)->segments, 1);
    assert_true(scanned(&is) > 0);
    assert_true(scanned(&is) < log_size_bytes(is.run.log) / 8);
    assert_whole(&is);

    grow(&is, 1); /* And once more, with what the recovery has left. */
    fork_of(&is, &again);
    open_again(&again);
    assert_true(scanned(&again) < log_size_bytes(again.run.log) / 8);
    struct verdict verdict = {0};
    if (!judge_records(&again.run, &verdict)) fail_msg("%s", verdict.text);
    end(&again);
    end(&is);
    end(&was);
}

/* Without a checkpoint in between, and with one. */
static void begins_at_a_clean_stop(void **state)
{
    (void)state;
    for (int more = 0; more < 2; more++) {
        struct resumed was, is;
        make(&was);
        was.run.resume_bytes = 0;
        stop(&was.run);
        open_again(&was);
        grow(&was, 200);
        stop(&was.run);
        assert_int_equal(snapshots(&was).count, 1);
        was.run.resume_bytes = more > 0 ? RESUME_BYTES : 0;
        open_again(&was);
        grow(&was, more == 0 ? 5 : 30);
        fork_of(&was, &is);
        open_again(&is);
        assert_true(scanned(&is) > 0);
        assert_true(scanned(&is) < log_size_bytes(is.run.log) / 4);
        assert_whole(&is);
        end(&is);
        end(&was);
    }
}

/* ---- helpers that are missing or wrong --------------------------------------------------------
 */

static struct disk_path helper(const struct resumed *at, const char *suffix)
{
    char name[64];
    (void)snprintf(name, sizeof(name), "t-0/%020d%s", 0, suffix);
    return disk_join(at->rig->dir, name);
}

static void gone(struct resumed *at, const char *suffix)
{
    assert_int_equal(io_disk_unlink(at->rig->io, helper(at, suffix).text), 0);
}

/* Change the file's bytes: `change` gets them and returns the new size. */
static void altered(struct resumed *at, const char *path, uint32_t (*change)(struct disk_bytes *))
{
    struct disk_bytes bytes;
    struct mem *mem = &at->rig->mem;
    assert_int_equal(disk_read_whole(at->rig->io, mem, path, 1u << 20, &bytes), 0);
    uint32_t size = change(&bytes);
    assert_int_equal(disk_write_synced(at->rig->io, path, view_of(bytes.data, size)), 0);
    disk_free(mem, &bytes);
}

static uint32_t halved(struct disk_bytes *bytes)
{
    return bytes->size_bytes / 2 / 24 * 24; /* Whole entries of both kinds. */
}

static uint32_t zeroed(struct disk_bytes *bytes)
{
    memset(bytes->data, 0, bytes->size_bytes);
    return bytes->size_bytes;
}

static uint32_t emptied(struct disk_bytes *bytes)
{
    (void)bytes;
    return 0;
}

static uint32_t bent(struct disk_bytes *bytes)
{
    bytes->data[bytes->size_bytes / 2] ^= 1;
    return bytes->size_bytes;
}

/* Each entry of .index points one byte further. */
static uint32_t shifted(struct disk_bytes *bytes)
{
    for (uint32_t i = 7; i < bytes->size_bytes; i += 8)
        bytes->data[i]++;
    return bytes->size_bytes;
}

static void no_index(struct resumed *at)
{
    gone(at, ".index");
}

static void no_times(struct resumed *at)
{
    gone(at, ".timeindex");
}

static void short_times(struct resumed *at)
{
    altered(at, helper(at, ".timeindex").text, halved);
}

static void no_time_in_times(struct resumed *at)
{
    altered(at, helper(at, ".timeindex").text, emptied);
}

static void zeros_for_an_index(struct resumed *at)
{
    altered(at, helper(at, ".index").text, zeroed);
}

static void empty_index(struct resumed *at)
{
    altered(at, helper(at, ".index").text, emptied);
}

static void wrong_places(struct resumed *at)
{
    altered(at, helper(at, ".index").text, shifted);
}

static void no_snapshots(struct resumed *at)
{
    struct listed listed = snapshots(at);
    struct disk_path folder = disk_join(at->rig->dir, "t-0");
    for (int i = 0; i < listed.count; i++)
        assert_int_equal(
            io_disk_unlink(at->rig->io, disk_join(folder.text, listed.snapshots[i]).text), 0);
}

static void bent_snapshots(struct resumed *at)
{
    struct listed listed = snapshots(at);
    struct disk_path folder = disk_join(at->rig->dir, "t-0");
    for (int i = 0; i < listed.count; i++)
        altered(at, disk_join(folder.text, listed.snapshots[i]).text, bent);
}

static void begins_at_the_base_otherwise(void **state)
{
    (void)state;
    static void (*const damages[])(struct resumed *) = {
        no_index,    no_times,     short_times,  no_time_in_times, zeros_for_an_index,
        empty_index, wrong_places, no_snapshots, bent_snapshots};
    struct resumed was, is;
    make(&was);
    grow(&was, 100);
    for (size_t i = 0; i < ARRAY_SIZE(damages); i++) {
        fork_of(&was, &is);
        damages[i](&is);
        open_again(&is);
        assert_int_equal(scanned(&is), log_size_bytes(is.run.log));
        assert_whole(&is);
        end(&is);
    }
    end(&was);
}

/* Half the index is as good as an older one. */
static void short_index_is_an_older_one(void **state)
{
    (void)state;
    struct resumed was, is;
    make(&was);
    grow(&was, 100);
    fork_of(&was, &is);
    altered(&is, helper(&is, ".index").text, halved);
    open_again(&is);
    assert_true(scanned(&is) > log_size_bytes(is.run.log) / 3);
    assert_true(scanned(&is) < log_size_bytes(is.run.log) * 2 / 3);
    assert_whole(&is);
    end(&is);
    end(&was);
}

/* A record whose time lies far ahead: the largest time of all is known behind the place too. */
static void remembers_the_largest_time(void **state)
{
    (void)state;
    struct resumed was, is;
    make(&was);
    grow(&was, 3);
    assert_true(append(&was.run, &(struct rig_batch){.count = 1, .timestamp_ms = 900000}));
    int64_t offset = was.model.end - 1;
    grow(&was, 60);
    fork_of(&was, &is);
    open_again(&is);
    assert_true(scanned(&is) < log_size_bytes(is.run.log) / 2);
    static struct log_query query;
    query = (struct log_query){
        .log = is.run.log, .timestamp_ms = LOG_MAX_TIMESTAMP, .done = query_over};
    log_query_start(&query);
    for (int i = 0; i < 1000 && query.log != NULL; i++)
        rig_turn(is.rig);
    assert_int_equal(query.result, LOG_OK);
    assert_int_equal(query.offset, offset);
    assert_whole(&is);
    end(&is);
    end(&was);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(begins_behind_the_recovery_point),
        cmocka_unit_test(begins_at_a_clean_stop),
        cmocka_unit_test(begins_at_the_base_otherwise),
        cmocka_unit_test(short_index_is_an_older_one),
        cmocka_unit_test(remembers_the_largest_time),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
