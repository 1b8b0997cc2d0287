/* commit.c - the floor of durable produce requests: as produce.c, and one fdatasync for all that a
 * wake-up brought before any of it is answered.   commit FILE */
#include <unistd.h>

#include "bench/lib/append.h"
#include "bench/lib/client.h"

static void frame(struct serve *serve, struct serve_link *link, struct view bytes)
{
    struct append *append = serve->context;
    struct serve_produce in = serve_read_produce(bytes);
    append_batch(append, in.batch);
    append_write(append);
    serve_produced(serve, link, bytes, in.topic);
}

static void handled(struct serve *serve)
{
    const struct append *append = serve->context;
    if (serve->touched != NULL && fdatasync(append->fd) != 0) client_die("could not sync");
}

int main(int argc, char **argv)
{
    static struct append append;
    static struct serve serve = {.frame = frame, .handled = handled, .context = &append};
    if (argc != 2) client_die("usage: commit FILE");
    append_open(&append, argv[1]);
    serve_run(&serve);
}
