/* echo.c - the floor of a small request: a frame comes, an answer of a heartbeat's size goes. */
#include "bench/lib/serve.h"

/* Heartbeat v4: tags of the header, throttle time, no error, tags. */
static void frame(struct serve *serve, struct serve_link *link, struct view bytes)
{
    static const uint8_t rest[1 + 4 + 2 + 1] = {0};
    serve_answer(serve, link, bytes, 4 + sizeof(rest));
    sink_put(serve_out(link), rest, sizeof(rest));
}

int main(void)
{
    static struct serve serve = {.frame = frame};
    serve_run(&serve);
}
