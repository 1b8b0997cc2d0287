/* coordinator_load.c - reading a partition of __consumer_offsets into its machine.
 *
 * From the log's start to its end, in ranges of about offsets.load.buffer.size. Nothing is appended
 * meanwhile: the partition answers COORDINATOR_LOAD_IN_PROGRESS. What is not in the page cache is
 * read in the background. */
#include <errno.h>

#include "broker/broker.h"
#include "broker/coordinator_inside.h"
#include "broker/metadata_log.h"
#include "record/control.h"

static void load_fail(struct coordinator_part *part, const char *why)
{
    say(part->node->say, SAY_ERROR, SAY_IN_GROUP,
        "partition %u of " COORDINATOR_TOPIC " cannot be loaded: %s; its groups are not served",
        part->index, why);
    coordinator_resign(part, NULL);
    part->state = PART_FAILED;
}

/* It is loaded anew when there may be some. */
static void load_no_memory(struct coordinator_part *part)
{
    load_fail(part, "no memory");
    replica_unmade(part->node, "the groups of a partition of " COORDINATOR_TOPIC);
}

/* ---- one range ------------------------------------------------------------------------------- */

struct load_reader {
    struct coordinator_part *part;
    enum groups_result result;
};

static bool load_record(void *context,
                        const struct batch_header *batch,
                        int64_t offset,
                        bool control,
                        struct view key,
                        struct view value)
{
    struct load_reader *reader = context;
    struct coordinator_part *part = reader->part;
    struct groups_place place = {
        .offset = offset,
        .producer_id = (batch->attributes & BATCH_TRANSACTIONAL) ? batch->producer_id : -1,
    };
    struct control_marker marker;
    arena_reset(&part->arena);
    if (!control)
        reader->result = groups_load(part->groups, &part->arena, key, value, place);
    else if (control_marker_parse(key, value, &marker))
        reader->result = groups_load_marker(part->groups, batch->producer_id, marker.commit);
    if (reader->result == GROUPS_SKIPPED) reader->result = GROUPS_OK;
    return reader->result == GROUPS_OK;
}

static void range_drop(struct coordinator_part *part)
{
    struct coordinator_loading *load = &part->load;
    mem_put(part->node->mem, load->iov.iov_base, load->iov.iov_len);
    load->iov.iov_base = NULL;
    log_range_release(&load->range);
}

static void range_take(struct coordinator_part *part)
{
    struct coordinator_loading *load = &part->load;
    struct load_reader reader = {.part = part};
    struct metadata_reader each = {load_record, &reader};
    struct view bytes = view_of(load->iov.iov_base, load->range.size_bytes);
    bool whole = load->op.result == (int64_t)load->range.size_bytes;
    int result = whole ? metadata_batches_read(part->node->mem, bytes, &each) : -1;
    load->read.offset = load->range.offset_next;
    range_drop(part);
    if (!whole)
        load_fail(part, "its log cannot be read");
    else if (reader.result == GROUPS_E_MEMORY || result == -ENOMEM)
        load_no_memory(part);
    else if (result != 0)
        load_fail(part, "it holds a record or a batch that cannot be understood");
    else
        coordinator_load_go(part);
}

static void range_read(struct io_op *op)
{
    struct coordinator_part *part = container_of(op, struct coordinator_part, load.op);
    if (part->state == PART_LOADING && !part->load.again) {
        range_take(part);
        return;
    }
    range_drop(part); /* It was given up meanwhile. */
    part->load.again = false;
    if (part->state == PART_LOADING) coordinator_load_go(part);
}

/* ---- the whole ------------------------------------------------------------------------------- */

static bool range_ask(struct coordinator_part *part)
{
    struct coordinator_loading *load = &part->load;
    load->iov.iov_base = mem_get(part->node->mem, load->range.size_bytes);
    load->iov.iov_len = load->range.size_bytes;
    if (load->iov.iov_base == NULL) {
        log_range_release(&load->range);
        return false;
    }
    load->op = (struct io_op){.done = range_read};
    list_init(&load->op.link);
    io_read(part->node->io, &load->op, load->range.file, &load->iov, 1, load->range.at_bytes);
    return true;
}

/* On from where the load stands; called again when the log says that it may. */
void coordinator_load_go(struct coordinator_part *part)
{
    struct coordinator_loading *load = &part->load;
    if (load->op.in_flight) return;
    int result = replica_open(part->replica);
    /* An opened log wakes those who wait on it, and this went on in there. */
    if (load->op.in_flight || part->state != PART_LOADING) return;
    if (result == LOG_OK && !part->replica->began) return; /* Not led in its log yet. */
    struct log *log = part->replica->log;
    if (result == LOG_OK && !load->began) {
        load->began = true;
        load->read = (struct log_read){
            .offset = log_start(log),
            .offset_end = INT64_MAX,
            .max_bytes = (uint32_t)broker_setting_number(part->node, "offsets.load.buffer.size"),
            .min_one = true,
        };
    }
    if (result == LOG_OK && load->read.offset >= log_end_assigned(log)) {
        coordinator_loaded(part);
        return;
    }
    if (result == LOG_OK) result = log_read(log, &load->read, &load->range);
    if (result == LOG_LATER) return;
    if (result == LOG_E_MEMORY) {
        load_no_memory(part);
    } else if (result != LOG_OK) {
        load_fail(part, "its log is not usable");
    } else if (load->range.size_bytes == 0) {
        /* The rest is assigned and not written yet. The log tells when it is. */
        log_range_release(&load->range);
    } else if (!range_ask(part)) {
        load_no_memory(part);
    }
}
