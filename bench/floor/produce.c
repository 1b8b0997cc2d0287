/* produce.c - the floor of a produce request: CRC, a walk over the records, one append to new pages
 * per wake-up, an answer.   produce FILE */
#include "bench/lib/append.h"
#include "bench/lib/client.h"

static void frame(struct serve *serve, struct serve_link *link, struct view bytes)
{
    struct append *append = serve->context;
    struct serve_produce in = serve_read_produce(bytes);
    append_batch(append, in.batch);
    append_write(append); /* The bytes move when the frames behind this one are cut. */
    serve_produced(serve, link, bytes, in.topic);
}

int main(int argc, char **argv)
{
    static struct append append;
    static struct serve serve = {.frame = frame, .context = &append};
    if (argc != 2) client_die("usage: produce FILE");
    append_open(&append, argv[1]);
    serve_run(&serve);
}
