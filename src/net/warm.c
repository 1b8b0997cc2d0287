/* warm.c - a file range that is not in the page cache is read by a job before it is sent, so that
 * the shard never waits for a device. What was read counts as proved: when it is gone again before
 * it is sent, the kernel reads it once more, and nothing loops. */
#include "net/inside.h"

#include <errno.h>

#define WARM_READ_BYTES (64u * 1024u)

struct warm {
    struct io_op op;
    struct shard *shard;
    struct connection *connection; /* NULL: it is gone. */
    struct output_piece *piece;
    struct list pieces; /* Of a connection that is gone. */
    uint64_t offset;
    uint32_t size_bytes;
    uint8_t bytes[WARM_READ_BYTES]; /* Read for the page cache's sake, and not looked at. */
};

/* Job: bytes that are there now, or -errno of the first read. */
static int64_t warm_run(struct io *io, void *argument)
{
    struct warm *warm = argument;
    struct io_file *file = warm->piece->file;
    uint32_t done = 0;
    while (done < warm->size_bytes) {
        uint32_t size = MIN(warm->size_bytes - done, WARM_READ_BYTES);
        int64_t got = io_disk_read(io, file, warm->bytes, size, warm->offset + done);
        if (got < 0 && done == 0) return got;
        if (got <= 0) break;
        done += (uint32_t)got;
    }
    return done;
}

static void warm_done(struct io_op *op)
{
    struct warm *warm = container_of(op, struct warm, op);
    struct connection *connection = warm->connection;
    struct shard *shard = warm->shard;
    shard->state->warm_count--;
    output_release_all(shard, &warm->pieces);
    if (connection != NULL) {
        connection->warm = NULL;
        /* Nothing there: the send finds the end of the file. */
        warm->piece->proved_bytes = op->result > 0 ? (uint32_t)op->result : warm->size_bytes;
        if (op->result < 0) {
            metric_add(&shard->metrics, METRIC_CONNECTIONS_FAILED, 1);
            connection_close(connection, NULL);
        } else {
            output_later(connection);
        }
    }
    mem_put(shard->mem, warm, sizeof(*warm));
}

bool warm_start(struct connection *connection, struct output_piece *piece)
{
    struct shard *shard = connection->shard;
    assert(connection->warm == NULL);
    struct warm *warm = mem_take(shard->mem, sizeof(*warm)); /* Not to zero what is read into. */
    if (warm == NULL) return false;
    warm->op = (struct io_op){.done = warm_done};
    warm->shard = shard;
    warm->connection = connection;
    warm->piece = piece;
    warm->offset = piece->offset;
    warm->size_bytes = MIN(piece->size_bytes, IO_PROBE_BYTES);
    list_init(&warm->pieces);
    connection->warm = warm;
    shard->state->warm_count++;
    io_job(shard->io, &warm->op, warm_run, warm);
    return true;
}

void warm_orphan(struct warm *warm, struct list *pieces)
{
    struct list *node;
    warm->connection = NULL;
    while ((node = list_pop(pieces)) != NULL)
        list_append(&warm->pieces, node);
}
