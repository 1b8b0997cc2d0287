/* tap_rewrite.c - see tap_rewrite.h. */
#include "cli/tap_rewrite.h"

#include "gen/describe_cluster_response.h"
#include "gen/fetch_response.h"
#include "gen/find_coordinator_response.h"
#include "gen/metadata_response.h"
#include "gen/produce_response.h"
#include "gen/response_header.h"
#include "gen/share_acknowledge_response.h"
#include "gen/share_fetch_response.h"

struct mapping {
    tap_map map;
    void *context;
    bool changed;
};

static void one(struct mapping *m, struct view *host, int32_t *port)
{
    if (host->null || host->size == 0 || *port <= 0) return;
    if (m->map(m->context, host, port)) m->changed = true;
}

/* Every item of an array of structs that have `host` and `port`. */
#define EACH(m, array)                                                                             \
    for (int32_t i_ = 0; i_ < (array).count; i_++)                                                 \
    one((m), &(array).items[i_].host, &(array).items[i_].port)

static void metadata(struct mapping *m, void *body)
{
    struct metadata_response *response = body;
    EACH(m, response->brokers);
}

static void find_coordinator(struct mapping *m, void *body)
{
    struct find_coordinator_response *response = body;
    one(m, &response->host, &response->port);
    EACH(m, response->coordinators);
}

static void describe_cluster(struct mapping *m, void *body)
{
    struct describe_cluster_response *response = body;
    EACH(m, response->brokers);
}

static void produce(struct mapping *m, void *body)
{
    struct produce_response *response = body;
    EACH(m, response->node_endpoints);
}

static void fetch(struct mapping *m, void *body)
{
    struct fetch_response *response = body;
    EACH(m, response->node_endpoints);
}

static void share_fetch(struct mapping *m, void *body)
{
    struct share_fetch_response *response = body;
    EACH(m, response->node_endpoints);
}

static void share_acknowledge(struct mapping *m, void *body)
{
    struct share_acknowledge_response *response = body;
    EACH(m, response->node_endpoints);
}

static const struct rule {
    const struct wire_message *message;
    void (*visit)(struct mapping *m, void *body);
} rules[] = {
    {&wire_metadata_response,          metadata         },
    {&wire_find_coordinator_response,  find_coordinator },
    {&wire_describe_cluster_response,  describe_cluster },
    {&wire_produce_response,           produce          },
    {&wire_fetch_response,             fetch            },
    {&wire_share_fetch_response,       share_fetch      },
    {&wire_share_acknowledge_response, share_acknowledge},
};

static const struct rule *rule_of(const struct frame_kind *response)
{
    for (size_t i = 0; i < ARRAY_SIZE(rules); i++)
        if (rules[i].message == response->message) return &rules[i];
    return NULL;
}

bool tap_rewrites(const struct frame_kind *response)
{
    return rule_of(response) != NULL;
}

/* Size, the header as it came, the body anew. */
static struct view put_together(struct view head,
                                const struct wire_form *form,
                                const void *body,
                                struct arena *arena)
{
    size_t size = head.size + wire_size(form, body);
    uint8_t *bytes = arena_take(arena, size);
    if (bytes == NULL) return VIEW_NULL;
    memcpy(bytes, head.data, head.size);
    store_be32(bytes, (uint32_t)(size - 4));
    (void)wire_encode(form, body, bytes + head.size, NULL, 0, NULL);
    return view_of(bytes, (uint32_t)size);
}

struct view tap_rewrite(const struct frame_kind *response,
                        struct view frame,
                        struct arena *arena,
                        tap_map map,
                        void *context)
{
    const struct rule *rule = rule_of(response);
    struct mapping mapping = {map, context, false};
    const struct wire_form *form = wire_form(response->message, response->version);
    struct response_header header;

    if (rule == NULL || form == NULL || frame.size < 8) return frame;
    struct reader in = reader_of(frame);
    (void)reader_be32(&in);
    const struct wire_form *head = wire_form(&wire_response_header, response->header_version);
    void *body = arena_get(arena, response->message->size_bytes);
    if (body == NULL || !wire_decode(&in, head, arena, &header)) return frame;
    struct view before = view_of(frame.data, (uint32_t)(in.at - frame.data));
    if (!wire_decode(&in, form, arena, body) || reader_left(&in) > 0) return frame;
    rule->visit(&mapping, body);
    if (!mapping.changed) return frame;
    struct view changed = put_together(before, form, body, arena);
    return changed.null ? frame : changed;
}
