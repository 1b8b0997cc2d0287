/* sim_op.c - submitted operations: late, in drawn order across files, in order within one.
 *
 * What the caller lends is checked: written bytes are copied at the submission and compared when
 * the completion is delivered; a read buffer is full of garbage until then, and must still be. */
#include "io/sim_inside.h"

#include <stdlib.h>

#define GARBAGE      0xdb
#define STALL_MAX_US 2000000u

struct sim_op {
    struct list link; /* On its shard's ops or done. */
    struct io_op *op;
    struct iovec *iov; /* As submitted. */
    uint8_t *bytes;    /* To write; or as read. */
    uint64_t size;
    struct io_file **files;
    uint64_t *sequences; /* Of each file when the commit was asked for. */
    bool ran;
};

static uint32_t file_count(const struct io_op *op)
{
    return op->kind == IO_DURABLE ? op->durable.file_count : 0;
}

static bool on_one_file(const struct io_op *op)
{
    return op->kind == IO_WRITE || op->kind == IO_READ;
}

static void op_free(struct sim_op *held)
{
    free(held->iov);
    free(held->bytes);
    free(held->files);
    free(held->sequences);
    free(held);
}

static void file_hold(struct io_file *file)
{
    assert(!file->closing);
    file->in_flight++;
}

static void file_release(struct io_file *file)
{
    assert(file->in_flight > 0);
    if (--file->in_flight == 0 && file->closing) sim_file_put(file);
}

static void release(struct sim_op *held)
{
    if (on_one_file(held->op)) file_release(held->op->rw.file);
    for (uint32_t i = 0; i < file_count(held->op); i++)
        file_release(held->files[i]);
}

/* ---- submission ------------------------------------------------------------------------------ */

static void lend_bytes(struct sim_op *held)
{
    const struct io_op *op = held->op;
    size_t iov_bytes = op->rw.iov_count * sizeof(struct iovec);
    held->iov = sim_heap(iov_bytes);
    memcpy(held->iov, op->rw.iov, iov_bytes);
    for (uint32_t i = 0; i < op->rw.iov_count; i++)
        held->size += held->iov[i].iov_len;
    held->bytes = sim_heap(held->size);
    uint8_t *at = held->bytes;
    for (uint32_t i = 0; i < op->rw.iov_count; i++) {
        const struct iovec *piece = &held->iov[i];
        if (piece->iov_len == 0) continue;
        if (op->kind == IO_WRITE)
            memcpy(at, piece->iov_base, piece->iov_len);
        else
            memset(piece->iov_base, GARBAGE, piece->iov_len);
        at += piece->iov_len;
    }
}

static void lend_files(struct sim_op *held)
{
    const struct io_op *op = held->op;
    held->files = sim_heap(op->durable.file_count * sizeof(*held->files));
    held->sequences = sim_heap(op->durable.file_count * sizeof(*held->sequences));
    for (uint32_t i = 0; i < op->durable.file_count; i++) {
        held->files[i] = op->durable.files[i];
        held->sequences[i] = op->durable.files[i]->inode->sequence;
        file_hold(held->files[i]);
    }
}

static int64_t delay_us(struct sim_node *node, const struct io_op *op)
{
    const struct sim_options *options = &node->world->options;
    int64_t delay = sim_draw_delay(node, SIM_SITE_DISK_DELAY, &options->disk_delay);
    if (sim_draw_below(node, SIM_SITE_DISK_STALL, 1000000) < options->disk_stall_per_million)
        delay += (int64_t)sim_draw_below(node, SIM_SITE_DISK_STALL, STALL_MAX_US);
    if (on_one_file(op)) {
        enum sim_call call = op->kind == IO_WRITE ? SIM_CALL_WRITE : SIM_CALL_READ;
        delay += (int64_t)sim_stall_ms(node, call, op->rw.file->path) * 1000;
    } else if (op->kind == IO_DURABLE) {
        delay += (int64_t)sim_stall_ms(node, SIM_CALL_SYNC, op->durable.files[0]->path) * 1000;
    }
    return delay;
}

void sim_submit(struct io *io, struct io_op *op)
{
    struct sim_shard *shard = sim_shard_of(io);
    struct sim_node *node = shard->node;
    struct sim_op *held = sim_heap(sizeof(*held));
    held->op = op;
    list_append(&shard->ops, &held->link);
    if (on_one_file(op)) {
        file_hold(op->rw.file);
        lend_bytes(held);
    } else if (op->kind == IO_DURABLE) {
        lend_files(held);
    }
    if (node->crashed) return; /* It will never complete. */

    int64_t at_us = node->world->now_us + delay_us(node, op);
    if (op->kind == IO_WRITE) {
        struct sim_inode *inode = op->rw.file->inode;
        at_us = MAX(at_us, inode->last_write_us + 1);
        inode->last_write_us = at_us;
    } else if (op->kind == IO_JOB) {
        at_us = MAX(at_us, shard->lane_us + 1);
        shard->lane_us = at_us;
    }
    sim_schedule(node->world, at_us,
                 (struct sim_event){.kind = SIM_EVENT_OP, .shard = shard, .op = held});
}

/* ---- effect ---------------------------------------------------------------------------------- */

static int64_t run_durable(struct sim_shard *shard, struct sim_op *held)
{
    int64_t result = 0;
    for (uint32_t i = 0; i < file_count(held->op); i++) {
        int error = sim_sync_up_to(&shard->io, held->files[i], held->sequences[i]);
        if (result == 0) result = error;
    }
    return result;
}

static int64_t run_job(struct sim_shard *shard, struct io_op *op)
{
    assert(!shard->in_job);
    shard->in_job = true;
    int64_t result = op->job.run(&shard->io, op->job.argument);
    shard->in_job = false;
    return result;
}

void sim_op_run(struct sim_shard *shard, struct sim_op *held)
{
    struct io_op *op = held->op;
    struct sim_node *node = shard->node;
    if (node->crashed) return;
    switch ((enum io_kind)op->kind) {
    case IO_WRITE:
        op->result = sim_write(&shard->io, op->rw.file, held->bytes, held->size, op->rw.offset);
        break;
    case IO_READ:
        op->result = sim_read(&shard->io, op->rw.file, held->bytes, held->size, op->rw.offset);
        break;
    case IO_DURABLE: op->result = run_durable(shard, held); break;
    case IO_JOB: op->result = run_job(shard, op); break;
    }
    held->ran = true;
    if (node->crashed) return;
    if (op->kind != IO_JOB) {
        sim_op_done(shard, held);
        return;
    }
    const struct sim_range *range = &node->world->options.disk_delay;
    int64_t at_us = node->world->now_us + sim_draw_delay(node, SIM_SITE_DISK_DELAY, range);
    shard->lane_us = MAX(shard->lane_us, at_us);
    sim_schedule(node->world, at_us,
                 (struct sim_event){.kind = SIM_EVENT_OP_DONE, .shard = shard, .op = held});
}

void sim_op_done(struct sim_shard *shard, struct sim_op *held)
{
    list_remove(&held->link);
    list_append(&shard->done, &held->link);
    shard->ready = true;
}

/* ---- completion ------------------------------------------------------------------------------ */

static bool is_garbage(const uint8_t *bytes, size_t size)
{
    for (size_t i = 0; i < size; i++)
        if (bytes[i] != GARBAGE) return false;
    return true;
}

/* What was lent has not been touched; what was read goes into its place. */
static void give_back(struct sim_op *held)
{
    const struct io_op *op = held->op;
    if (op->kind == IO_DURABLE)
        assert(memcmp(held->files, op->durable.files, file_count(op) * sizeof(*held->files)) == 0);
    if (!on_one_file(op)) return;
    assert(memcmp(held->iov, op->rw.iov, op->rw.iov_count * sizeof(struct iovec)) == 0);
    const uint8_t *at = held->bytes;
    uint64_t left = op->kind == IO_READ && op->result > 0 ? (uint64_t)op->result : 0;
    for (uint32_t i = 0; i < op->rw.iov_count; i++) {
        const struct iovec *piece = &held->iov[i];
        if (piece->iov_len == 0) continue;
        if (op->kind == IO_WRITE) {
            assert(memcmp(at, piece->iov_base, piece->iov_len) == 0);
        } else {
            assert(is_garbage(piece->iov_base, piece->iov_len));
            size_t part = (size_t)MIN(left, piece->iov_len);
            if (part > 0) memcpy(piece->iov_base, at, part);
            left -= part;
        }
        at += piece->iov_len;
    }
}

/* Only what is there now: what a callback submits completes in a later turn. */
uint32_t sim_ops_deliver(struct sim_shard *shard)
{
    struct list batch;
    list_init(&batch);
    struct list *node;
    while ((node = list_pop(&shard->done)) != NULL)
        list_append(&batch, node);
    uint32_t count = 0;
    while (!shard->node->crashed && (node = list_pop(&batch)) != NULL) {
        struct sim_op *held = container_of(node, struct sim_op, link);
        struct io_op *op = held->op;
        give_back(held);
        release(held);
        op_free(held);
        op->in_flight = false;
        io_count_done(&shard->io, op);
        count++;
        op->done(op);
    }
    while ((node = list_pop(&batch)) != NULL)
        list_append(&shard->done, node);
    return count;
}

static void drop_all(struct list *head)
{
    struct list *node;
    while ((node = list_pop(head)) != NULL)
        op_free(container_of(node, struct sim_op, link));
}

void sim_ops_drop(struct sim_shard *shard)
{
    drop_all(&shard->ops);
    drop_all(&shard->done);
}

void sim_ops_finish(struct sim_shard *shard)
{
    list_foreach (node, &shard->ops) {
        struct sim_op *held = container_of(node, struct sim_op, link);
        if (!held->ran) sim_op_run(shard, held);
    }
    sim_forget_shard(shard->node->world, shard);
    struct list *lists[] = {&shard->ops, &shard->done};
    for (uint32_t i = 0; i < ARRAY_SIZE(lists); i++) {
        list_foreach (node, lists[i])
            release(container_of(node, struct sim_op, link));
        drop_all(lists[i]);
    }
}
