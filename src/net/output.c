/* output.c - a connection's output: pieces of memory and of files, sent in order.
 *
 * Small answers share chunks, so that all of a turn leave in one send. A chunk is freed when it is
 * sent: an idle connection has none. File pieces go from the page cache to the stream, when they
 * are proved to be in it; a job brings there what is not (warm.c). */
#include "net/inside.h"

#include <errno.h>

/* What one connection may send in one turn before the others have theirs. */
#define OUTPUT_FLUSH_BYTES (4u * 1024u * 1024u)

static struct output_piece *last_piece(struct connection *connection)
{
    if (list_empty(&connection->output)) return NULL;
    return container_of(connection->output.previous, struct output_piece, link);
}

static uint8_t *chunk_start(struct output_piece *piece)
{
    assert(piece->room_bytes > 0);
    return (uint8_t *)(piece + 1);
}

static struct output_piece *chunk_new(struct connection *connection, uint32_t size_bytes)
{
    struct shard *shard = connection->shard;
    bool small = size_bytes <= NET_CHUNK_SMALL_BYTES && list_empty(&connection->output);
    uint32_t room = small ? NET_CHUNK_SMALL_BYTES : MAX(size_bytes, NET_CHUNK_BYTES);
    struct list *spare = small ? list_pop(&shard->state->spare_chunks) : NULL;
    struct output_piece *piece;
    if (spare != NULL) {
        piece = container_of(spare, struct output_piece, link);
        shard->state->spare_chunk_count--;
    } else {
        piece = mem_take(shard->mem, sizeof(*piece) + room);
        if (piece == NULL) return NULL;
    }
    *piece = (struct output_piece){.room_bytes = room};
    piece->bytes = chunk_start(piece);
    list_append(&connection->output, &piece->link);
    return piece;
}

static void chunk_free(struct shard *shard, struct output_piece *piece)
{
    struct shard_state *state = shard->state;
    if (piece->room_bytes == NET_CHUNK_SMALL_BYTES && state->spare_chunk_count < NET_SPARE_CHUNKS) {
        list_prepend(&state->spare_chunks, &piece->link); /* The warmest is taken first. */
        state->spare_chunk_count++;
        return;
    }
    mem_put(shard->mem, piece, sizeof(*piece) + piece->room_bytes);
}

void output_free_spares(struct shard *shard)
{
    struct list *node;
    while ((node = list_pop(&shard->state->spare_chunks)) != NULL)
        mem_put(shard->mem, container_of(node, struct output_piece, link),
                sizeof(struct output_piece) + NET_CHUNK_SMALL_BYTES);
    shard->state->spare_chunk_count = 0;
}

uint8_t *output_reserve(struct connection *connection, uint32_t size_bytes)
{
    assert(size_bytes > 0);
    struct output_piece *piece = last_piece(connection);
    if (piece != NULL && piece->room_bytes > 0) {
        size_t used = (size_t)(piece->bytes - chunk_start(piece)) + piece->size_bytes;
        if (piece->room_bytes - used < size_bytes) piece = NULL;
    } else {
        piece = NULL;
    }
    if (piece == NULL) piece = chunk_new(connection, size_bytes);
    if (piece == NULL) return NULL;
    size_t used = (size_t)(piece->bytes - chunk_start(piece)) + piece->size_bytes;
    piece->size_bytes += size_bytes;
    connection->output_bytes += size_bytes;
    output_later(connection);
    return chunk_start(piece) + used;
}

void output_append(struct connection *connection, struct list *pieces)
{
    struct list *node;
    while ((node = list_pop(pieces)) != NULL) {
        struct output_piece *piece = container_of(node, struct output_piece, link);
        connection->output_bytes += piece->size_bytes;
        list_append(&connection->output, node);
    }
    output_later(connection);
}

void output_later(struct connection *connection)
{
    if (connection->closed || connection->write_blocked || connection->warm != NULL) return;
    if (list_empty(&connection->flush))
        list_append(&connection->shard->state->flush, &connection->flush);
}

/* The piece is off its list: free what belongs to it. A request goes with its last piece, and its
 * arena with all its pieces. */
void output_release(struct output_piece *piece)
{
    struct request *request = piece->request;
    if (piece->range != NULL) request_range_done(piece->range);
    if (request != NULL) request_free(request);
}

/* `sent` bytes at the head are gone. */
static void advance(struct connection *connection, uint64_t sent)
{
    assert(connection->output_bytes >= sent);
    connection->output_bytes -= sent;
    while (!list_empty(&connection->output)) {
        struct output_piece *piece =
            container_of(connection->output.next, struct output_piece, link);
        uint32_t part = (uint32_t)MIN(sent, (uint64_t)piece->size_bytes);
        piece->size_bytes -= part;
        piece->proved_bytes -= MIN(part, piece->proved_bytes);
        piece->offset += part;
        if (piece->file == NULL && piece->bytes != NULL) piece->bytes += part;
        sent -= part;
        if (piece->size_bytes > 0) break;
        list_remove(&piece->link);
        if (piece->room_bytes > 0)
            chunk_free(connection->shard, piece);
        else
            output_release(piece);
    }
    assert(sent == 0);
}

/* Neighbouring pieces that leave in one send. */
struct gather {
    struct iovec iov[NET_SEND_PIECES];
    uint32_t count;
    uint32_t copied; /* Of `bytes`: short ranges of files. */
    uint8_t bytes[NET_COPY_BYTES];
};

/* One piece more. False: it cannot join, also when it is a range that is not in the page cache. */
static bool gather_piece(struct io *io, struct output_piece *piece, struct gather *gather)
{
    const uint8_t *bytes = piece->bytes;
    if (gather->count == NET_SEND_PIECES) return false;
    if (piece->file != NULL) {
        uint8_t *room = gather->bytes + gather->copied;
        if (piece->size_bytes > NET_COPY_BYTES - gather->copied) return false;
        if (piece->size_bytes > 0 &&
            io_disk_read_cached(io, piece->file, room, piece->size_bytes, piece->offset) !=
                (int64_t)piece->size_bytes)
            return false;
        gather->copied += piece->size_bytes;
        bytes = room;
    }
    if (piece->size_bytes == 0) return true;
    memcpy(&gather->iov[gather->count].iov_base, &bytes, sizeof(void *)); /* iovec has no const. */
    gather->iov[gather->count++].iov_len = piece->size_bytes;
    return true;
}

/* Send neighbouring pieces at the head that are memory or short ranges. `*any` is false, and
 * nothing is sent, if the first cannot. */
static int64_t send_gathered(struct connection *connection, bool *any)
{
    struct gather gather;
    struct io *io = connection->shard->io;
    bool more = false;
    gather.count = gather.copied = 0;
    *any = false;
    list_foreach (node, &connection->output) {
        more = !gather_piece(io, container_of(node, struct output_piece, link), &gather);
        if (more) break;
        *any = true;
    }
    if (gather.count == 0) return 0; /* Only empty pieces: nothing to ask the stream. */
    return io_stream_send(io, connection->stream, gather.iov, gather.count, more);
}

/* One send. Bytes, or -errno; -EAGAIN also when the bytes have to be read first. */
static int64_t send_some(struct connection *connection, bool *file)
{
    struct output_piece *piece = container_of(connection->output.next, struct output_piece, link);
    struct io *io = connection->shard->io;
    bool any;
    int64_t sent = send_gathered(connection, &any);
    *file = !any;
    if (any) return sent;
    assert(piece->file != NULL);
    if (piece->proved_bytes == 0)
        piece->proved_bytes =
            (uint32_t)io_disk_cached(io, piece->file, piece->offset, piece->size_bytes);
    if (piece->proved_bytes == 0) return warm_start(connection, piece) ? -EAGAIN : -ENOMEM;
    sent = io_stream_send_file(io, connection->stream, piece->file, piece->offset,
                               MIN(piece->proved_bytes, piece->size_bytes));
    /* The file is shorter than it was: the bytes that were promised are gone. */
    return sent == 0 && piece->size_bytes > 0 ? -EIO : sent;
}

static void flush_all(struct connection *connection)
{
    struct metrics *metrics = &connection->shard->metrics;
    uint64_t total = 0;
    while (!list_empty(&connection->output) && total < OUTPUT_FLUSH_BYTES) {
        bool file;
        int64_t sent = send_some(connection, &file);
        if (sent == -EAGAIN) {
            connection->write_blocked = connection->warm == NULL;
            break;
        }
        if (sent < 0) {
            metric_add(metrics, METRIC_CONNECTIONS_FAILED, 1);
            connection_close(connection, NULL);
            return;
        }
        metric_add(metrics, METRIC_SENT_BYTES, (uint64_t)sent);
        if (file) metric_add(metrics, METRIC_SENT_FILE_BYTES, (uint64_t)sent);
        total += (uint64_t)sent;
        advance(connection, (uint64_t)sent);
    }
    if (total > 0) connection->active_ms = io_now_ms(connection->shard->io);
    if (!list_empty(&connection->output) && !connection->write_blocked) output_later(connection);
}

void output_flush(struct connection *connection)
{
    list_remove(&connection->flush);
    if (connection->closed) return;
    flush_all(connection);
    if (connection->closed) return;
    if ((connection->holds & CONNECTION_OUTPUT_FULL) &&
        connection->output_bytes < NET_OUTPUT_HIGH_BYTES)
        connection_resume(connection);
    connection_watch(connection);
}

void output_release_all(struct shard *shard, struct list *pieces)
{
    struct list *node;
    while ((node = list_pop(pieces)) != NULL) {
        struct output_piece *piece = container_of(node, struct output_piece, link);
        if (piece->room_bytes > 0)
            chunk_free(shard, piece);
        else
            output_release(piece);
    }
}

void output_drop(struct connection *connection)
{
    connection->output_bytes = 0;
    if (connection->warm != NULL)
        warm_orphan(connection->warm, &connection->output);
    else
        output_release_all(connection->shard, &connection->output);
    connection->warm = NULL;
}
