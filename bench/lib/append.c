/* append.c - see append.h. */
#include "bench/lib/append.h"

#include <fcntl.h>
#include <unistd.h>

#include "base/reader.h"
#include "bench/lib/client.h"
#include "record/batch.h"
#include "record/crc.h"

#define APPEND_FILE_MAX (1 << 30) /* Then from its start again, as if a new segment. */

void append_open(struct append *append, const char *path)
{
    *append = (struct append){.fd = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0644)};
    if (append->fd < 0) client_die("could not create %s", path);
}

/* What a broker must see of each record: its length, time and offset. */
static void walk(struct view batch, int32_t count)
{
    struct reader in =
        reader_of(view_of(batch.data + BATCH_HEADER_BYTES, batch.size - BATCH_HEADER_BYTES));
    int64_t latest = 0;
    for (int32_t i = 0; i < count; i++) {
        int32_t size = reader_varint(&in);
        struct reader record = in;
        (void)reader_u8(&record);
        int64_t time = reader_varlong(&record);
        if (reader_varint(&record) != i) client_die("a record with a wrong offset");
        latest = MAX(latest, time);
        (void)reader_take(&in, (size_t)size);
    }
    if (in.fault != READER_OK || reader_left(&in) != 0 || latest < 0) client_die("a bad batch");
}

void append_batch(struct append *append, struct view batch)
{
    struct batch_header header;
    uint8_t *bytes;
    if (batch_header_load(batch, &header) != RECORD_OK || !batch_crc_valid(&header, batch))
        client_die("a batch that is none");
    walk(batch, header.record_count);
    memcpy(&bytes, &batch.data, sizeof(bytes)); /* In place, as a broker does. */
    store_be64(bytes, (uint64_t)append->offset);
    append->offset += header.record_count;
    if (append->count == APPEND_PIECES) append_write(append);
    append->pieces[append->count++] = (struct iovec){bytes, batch.size};
}

void append_write(struct append *append)
{
    if (append->count == 0) return;
    ssize_t put = pwritev(append->fd, append->pieces, (int)append->count, append->end);
    if (put <= 0) client_die("could not write");
    append->end += put;
    append->count = 0;
    if (append->end < APPEND_FILE_MAX) return;
    append->end = 0;
    if (ftruncate(append->fd, 0) != 0) client_die("could not truncate");
}
