/* fetch.c - the floor of a fetch: an answer of so many bytes from the page cache, by sendfile.
 *
 *   fetch FILE BYTES */
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include "bench/lib/client.h"
#include "bench/lib/serve.h"

#define FETCH_FILE_BYTES (64 << 20) /* Read around and around. */

struct fetch {
    int fd;
    int64_t at;
    uint32_t bytes;
};

/* Fetch v12 up to its records: tags, throttle time and error 0, and as many bytes more as there
 * are. */
static void frame(struct serve *serve, struct serve_link *link, struct view bytes)
{
    static const uint8_t rest[64] = {0};
    struct fetch *fetch = serve->context;
    serve_answer(serve, link, bytes, 4 + sizeof(rest) + fetch->bytes);
    sink_put(serve_out(link), rest, sizeof(rest));
    if (fetch->at + fetch->bytes > FETCH_FILE_BYTES) fetch->at = 0;
    link->file_fd = fetch->fd;
    link->file_at = fetch->at;
    link->file_size = fetch->bytes;
    fetch->at += fetch->bytes;
}

int main(int argc, char **argv)
{
    static struct fetch fetch;
    static struct serve serve = {.frame = frame, .context = &fetch};
    static uint8_t page[1 << 16];
    if (argc != 3) client_die("usage: fetch FILE BYTES");
    fetch.fd = open(argv[1], O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    fetch.bytes = (uint32_t)strtoul(argv[2], NULL, 10);
    for (int i = 0; i < FETCH_FILE_BYTES / (int)sizeof(page); i++)
        if (fetch.fd < 0 || write(fetch.fd, page, sizeof(page)) != sizeof(page))
            client_die("could not write %s", argv[1]);
    serve_run(&serve);
}
