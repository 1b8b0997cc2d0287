/* errand.c - see errand.h.
 *
 * The letter goes home -> there -> home -> there: sent, answered, and (only if something of it is
 * still there: ranges, or a nudge that may not have been opened) buried. A nudge is opened there
 * before the burial, since both are the home's letters. */
#include "net/errand.h"

#include <stdio.h>

#include "net/inside.h"

static void errand_free(struct errand *errand)
{
    struct mem *mem = errand->home->mem;
    assert(list_empty(&errand->request.ranges));
    errand->request.buf = buf_release(errand->request.buf);
    arena_free(&errand->request.arena);
    mem_put(mem, errand, sizeof(*errand));
}

struct errand *errand_new(struct request *requester, struct shard *there)
{
    struct shard *home = requester->shard;
    struct errand *errand = mem_get(home->mem, sizeof(*errand));
    if (errand == NULL) return NULL;
    errand->requester = requester;
    errand->home = home;
    errand->there = there;
    struct request *request = &errand->request;
    request->api = requester->api;
    request->version = requester->version;
    request->correlation_id = requester->correlation_id;
    request->client_id = requester->client_id;
    request->message = requester->message;
    request->buf = buf_hold(requester->buf);
    request->body = requester->body;
    request->frame_bytes = requester->frame_bytes;
    request->arrived_ms = requester->arrived_ms;
    request->principal = requester->principal;
    request->listener = requester->listener;
    if (requester->peer.host != NULL) {
        (void)snprintf(errand->host, sizeof(errand->host), "%s", requester->peer.host);
        request->peer.host = errand->host;
        request->peer.port = requester->peer.port;
    }
    request->shard = there;
    request->errand = errand;
    arena_init(&request->arena, there->mem, 0);
    list_init(&request->link);
    list_init(&request->ranges);
    list_init(&request->answer);
    return errand;
}

/* ---- there ----------------------------------------------------------------------------------- */

static void errand_opened(void *owner, struct letter *letter)
{
    struct errand *errand = container_of(letter, struct errand, letter);
    assert(owner == errand->there);
    errand->request.handled_ms = io_now_ms(errand->there->io);
    errand->handle(owner, &errand->request);
}

static void errand_nudged(void *owner, struct letter *letter)
{
    struct errand *errand = container_of(letter, struct errand, nudge);
    struct request *request = &errand->request;
    void (*act)(struct request * request) = errand->orphaned ? request->gone : request->hurry;
    assert(owner == errand->there);
    if (act != NULL) act(request); /* Both are NULL when it has been ended. */
}

static void errand_buried(void *owner, struct letter *letter)
{
    struct errand *errand = container_of(letter, struct errand, letter);
    struct list *ranges = &errand->request.ranges;
    assert(owner == errand->there);
    while (!list_empty(ranges))
        request_range_done(container_of(ranges->next, struct net_range, link));
    errand_free(errand);
}

/* ---- home ------------------------------------------------------------------------------------ */

static void errand_returned(void *owner, struct letter *letter)
{
    struct errand *errand = container_of(letter, struct errand, letter);
    struct request *requester = errand->requester;
    assert(owner == errand->home);
    errand->state = ERRAND_HOME;
    requester->errors_counted = requester->errors_counted || errand->request.errors_counted;
    requester->charged = requester->charged || errand->request.charged;
    requester->patience_ms = MAX(requester->patience_ms, errand->request.patience_ms);
    request_throttle(requester, errand->request.throttle_ms);
    errand->done(errand);
}

/* On the shard there. */
void errand_answered(struct errand *errand, void *response, const char *closed)
{
    errand->response = response;
    errand->closed = closed;
    errand->request.gone = NULL;
    errand->request.hurry = NULL;
    errand->letter.open = errand_returned;
    shard_post(errand->home, &errand->letter);
}

void errand_send(struct errand *errand)
{
    assert(errand->state == ERRAND_NEW);
    errand->state = ERRAND_OUT;
    errand->letter.open = errand_opened;
    shard_post(errand->there, &errand->letter);
}

static void errand_nudge(struct errand *errand, bool orphaned)
{
    if (errand->state != ERRAND_OUT || errand->nudged) return;
    errand->nudged = true;
    errand->orphaned = orphaned;
    errand->nudge.open = errand_nudged;
    shard_post(errand->there, &errand->nudge);
}

void errand_hurry(struct errand *errand)
{
    errand_nudge(errand, false);
}

void errand_recall(struct errand *errand)
{
    errand_nudge(errand, true);
}

static void errand_bury(struct errand *errand)
{
    if (list_empty(&errand->request.ranges) && !errand->nudged) {
        errand_free(errand);
        return;
    }
    errand->letter.open = errand_buried;
    shard_post(errand->there, &errand->letter);
}

struct errand_range {
    struct net_range net;
    struct errand *errand;
};

static void range_sent(struct net_range *range)
{
    struct errand *errand = container_of(range, struct errand_range, net)->errand;
    assert(errand->ranges_out > 0);
    if (--errand->ranges_out == 0 && errand->state == ERRAND_ENDED) errand_bury(errand);
}

struct view errand_value(struct errand *errand, struct view value)
{
    struct request *requester = errand->requester;
    struct net_range *first = NULL, **place = &first;
    assert(errand->state == ERRAND_HOME);
    if (value.null || value.size == 0) return value;
    if (!value.external && requester->errand != NULL) {
        uint8_t *copy = arena_take(&requester->arena, value.size);
        if (copy == NULL) return VIEW_EMPTY;
        memcpy(copy, value.data, value.size);
        return view_of(copy, value.size);
    }
    if (!value.external || value.data == NULL) return value;
    const struct net_range *range = (const struct net_range *)(const void *)value.data;
    uint32_t count = 0;
    for (; range != NULL; range = range->next, count++) {
        struct errand_range *mine = arena_get(&requester->arena, sizeof(*mine));
        if (mine == NULL) return VIEW_EMPTY; /* What there is of it is released with the errand. */
        mine->errand = errand;
        mine->net = (struct net_range){.file = range->file,
                                       .offset = range->offset,
                                       .bytes = range->bytes,
                                       .size_bytes = range->size_bytes,
                                       .release = range_sent};
        list_init(&mine->net.link);
        *place = &mine->net;
        place = &mine->net.next;
    }
    errand->ranges_out += count;
    return request_ranges(requester, first);
}

void errand_end(struct errand *errand)
{
    if (errand == NULL) return;
    assert(errand->state == ERRAND_NEW || errand->state == ERRAND_HOME);
    errand->state = ERRAND_ENDED;
    if (errand->ranges_out == 0) errand_bury(errand);
}
