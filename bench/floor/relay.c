/* relay.c - the floor of delivery: a produce request is answered, and what it brought goes to the
 * consumer that waits, at once. Nothing is written. */
#include "bench/lib/serve.h"

#define FETCH_KEY 1

struct relay {
    struct serve_link *waiting; /* A fetch that is not answered yet. */
    uint8_t header[8];          /* Of it: its correlation id. */
    struct view topic;
    uint8_t name[128];
    uint64_t end, told; /* Records that came; that the consumer knows of. */
    struct view batch;  /* The last one, in */
    uint8_t kept[1 << 16];
};

/* Fetch v12 with one partition, its high watermark and one batch. */
static void deliver(struct serve *serve)
{
    struct relay *relay = serve->context;
    static const uint8_t before[1 + 4 + 2 + 4 + 1] = {[11] = 2};
    static const uint8_t behind[8 + 8 + 1 + 4] = {0};
    struct serve_link *link = relay->waiting;
    struct sink *out = serve_out(link);
    uint32_t size = 4 + sizeof(before) + 1 + relay->topic.size + 1 + 4 + 2 + 8 + sizeof(behind) +
                    1 + relay->batch.size;
    serve_answer(serve, link, view_of(relay->header, sizeof(relay->header)), size);
    sink_put(out, before, sizeof(before));
    sink_put_u8(out, (uint8_t)(relay->topic.size + 1));
    sink_put(out, relay->topic.data, relay->topic.size);
    sink_put_u8(out, 2);
    sink_put_be32(out, 0);
    sink_put_be16(out, 0);
    sink_put_be64(out, relay->end);
    sink_put(out, behind, sizeof(behind));
    sink_put_u8(out, 1);
    sink_put(out, relay->batch.data, relay->batch.size);
    relay->told = relay->end;
    relay->waiting = NULL;
}

static void frame(struct serve *serve, struct serve_link *link, struct view bytes)
{
    struct relay *relay = serve->context;
    if (load_be16(bytes.data) == FETCH_KEY) {
        relay->waiting = link;
        memcpy(relay->header, bytes.data, sizeof(relay->header));
    } else {
        struct serve_produce in = serve_read_produce(bytes);
        uint32_t size = MIN(in.topic.size, (uint32_t)sizeof(relay->name));
        memcpy(relay->name, in.topic.data, size);
        relay->topic = view_of(relay->name, size);
        relay->batch = view_of(relay->kept, MIN(in.batch.size, (uint32_t)sizeof(relay->kept)));
        memcpy(relay->kept, in.batch.data, relay->batch.size);
        relay->end++;
        serve_produced(serve, link, bytes, in.topic);
    }
    if (relay->waiting != NULL && relay->told < relay->end) deliver(serve);
}

int main(void)
{
    static struct relay relay;
    static struct serve serve = {.frame = frame, .context = &relay};
    serve_run(&serve);
}
