/* fetch_old.c - see fetch_old.h. The bytes are read and turned by a job, with a share of the node's
 * memory; they are copied into the answer, so they live until that is encoded. */
#include "broker/fetch_old.h"

#include "record/legacy.h"
#include "sys/memory.h"

/* What one fetch may take while it is turned: its bytes, one inflated batch, and the sets. */
#define FETCH_OLD_BYTES_MAX (2u * RECORD_INFLATED_MAX)

struct fetch_old {
    struct io_op op;
    struct fetch *fetch;        /* Gone with its request, before this ends. */
    struct mem *home;           /* Holds this. */
    struct memory_share memory; /* Counted to the node, on the job's thread too. */
    struct compress_work work;
    bool gone; /* The client is, while the job runs. */
    uint32_t sink_count;
    struct sink sinks[]; /* One for each item. */
};

/* A length that no message has: the client sees that something is there which it cannot take,
 * instead of asking for ever. */
static const uint8_t nothing_left[] = {255, 255, 255, 255, 255, 255, 255, 255, 0, 0, 0, 0x3d};

int16_t fetch_old_check(struct fetch *fetch, const struct image_topic *topic)
{
    struct view codec = topic_setting(fetch->node, topic->name, VIEW("compression.type"));
    return view_is(codec, "zstd") ? KAFKA_UNSUPPORTED_COMPRESSION_TYPE : KAFKA_NONE;
}

static int16_t turn_error(enum record_fault fault)
{
    switch (fault) {
    case RECORD_OK: return KAFKA_NONE;
    case RECORD_ZSTD_OLD: return KAFKA_UNSUPPORTED_COMPRESSION_TYPE;
    case RECORD_MEMORY: return KAFKA_UNKNOWN_SERVER_ERROR;
    default: return KAFKA_CORRUPT_MESSAGE;
    }
}

static int16_t turn_item(struct io *io,
                         struct fetch_old *old,
                         struct fetch_item *item,
                         struct sink *out)
{
    uint32_t size = item->range.size_bytes;
    int8_t magic = old->fetch->request->version < 2 ? 0 : 1;
    uint8_t *bytes = mem_get(&old->memory.mem, size);
    if (bytes == NULL) return KAFKA_UNKNOWN_SERVER_ERROR;
    int64_t got = io_disk_read(io, item->range.file, bytes, size, item->range.at_bytes);
    int16_t error = KAFKA_KAFKA_STORAGE_ERROR;
    if (got == (int64_t)size)
        error = turn_error(legacy_downgrade(&old->work, view_of(bytes, size), magic,
                                            item->wanted.fetch_offset, out));
    mem_put(&old->memory.mem, bytes, size);
    return error;
}

static int64_t turn_run(struct io *io, void *argument)
{
    struct fetch_old *old = argument;
    for (uint32_t i = 0; i < old->sink_count; i++) {
        struct fetch_item *item = &old->fetch->items[i];
        if (item->error != KAFKA_NONE || item->range.size_bytes == 0) continue;
        item->error = turn_item(io, old, item, &old->sinks[i]);
    }
    return 0;
}

static void turn_done(struct io_op *op)
{
    struct fetch_old *old = container_of(op, struct fetch_old, op);
    struct fetch *fetch = old->fetch;
    compress_work_free(&old->work);
    for (uint32_t i = 0; i < old->sink_count; i++) {
        struct fetch_item *item = &fetch->items[i];
        if (item->range.size_bytes == 0) continue;
        item->old_set = sink_view(&old->sinks[i]);
        if (item->old_set.size == 0 && item->error == KAFKA_NONE)
            item->old_set = view_of(nothing_left, sizeof(nothing_left));
        if (fetch->request->errand != NULL) /* Its answer is read at home, after this has ended. */
            item->old_set = arena_copy(&fetch->request->arena, item->old_set);
        if (item->error == KAFKA_NONE) continue;
        item->old_set = VIEW_EMPTY;
        item->high_watermark = item->last_stable = item->log_start = -1;
    }
    if (!old->gone) {
        fetch_answer(fetch);
        return;
    }
    fetch_gone(fetch->request);
}

static void turn_gone(struct request *request)
{
    struct fetch *fetch = request->parked;
    fetch->old->gone = true; /* The job has the items; the request ends with it. */
}

bool fetch_old_begin(struct fetch *fetch)
{
    struct request *request = fetch->request;
    bool any = false;
    for (uint32_t i = 0; i < fetch->item_count; i++)
        any = any || fetch->items[i].range.size_bytes > 0;
    if (!any || fetch->old != NULL || fetch->spread != NULL) return false;
    struct mem *home = fetch->node->mem;
    struct fetch_old *old = mem_get(home, sizeof(*old) + fetch->item_count * sizeof(old->sinks[0]));
    if (old == NULL) {
        for (uint32_t i = 0; i < fetch->item_count; i++)
            log_range_release(&fetch->items[i].range);
        return false;
    }
    old->fetch = fetch;
    old->home = home;
    old->sink_count = fetch->item_count;
    memory_share(&old->memory, home, FETCH_OLD_BYTES_MAX);
    compress_work_init(&old->work, &old->memory.mem);
    for (uint32_t i = 0; i < old->sink_count; i++)
        sink_init(&old->sinks[i], &old->memory.mem, RECORD_INFLATED_MAX);
    old->op.done = turn_done;
    fetch->old = old;
    request->parked = fetch;
    request->gone = turn_gone;
    request->hurry = NULL;
    io_job(fetch->node->io, &old->op, turn_run, old);
    return true;
}

void fetch_old_end(struct fetch_old *old)
{
    if (old == NULL) return;
    for (uint32_t i = 0; i < old->sink_count; i++)
        sink_free(&old->sinks[i]);
    assert(old->memory.mem.used_bytes == 0);
    mem_put(old->home, old, sizeof(*old) + old->sink_count * sizeof(old->sinks[0]));
}
