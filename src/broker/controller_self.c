/* controller_self.c - this node as a member of the quorum: its voter entry, its registration. */
#include "broker/controller_inside.h"
#include "gen/controller_registration_request.h"
#include "gen/controller_registration_response.h"
#include "net/listener.h"

#define LEVEL_CONTROLLERS 15 /* metadata.version from which controllers register: 3.7-IV0. */

/* ---- the voter ------------------------------------------------------------------------------- */

static const char *listener_host(const struct node_listener *listener)
{
    if (listener->advertised_host[0] != '\0') return listener->advertised_host;
    return listener->host[0] != '\0' ? listener->host : "localhost";
}

static uint16_t listener_port(const struct node *node, uint32_t i)
{
    const struct node_listener *listener = &node->options.listeners[i];
    if (listener->advertised_port != 0) return listener->advertised_port;
    return node->listeners[i] != NULL ? node->listeners[i]->bound[0].port : listener->port;
}

void controller_self_voter(const struct node *node,
                           struct uuid directory,
                           struct quorum_endpoint *endpoints,
                           struct quorum_voter *out)
{
    *out = (struct quorum_voter){
        .id = node->options.node_id,
        .directory = directory,
        .endpoints = endpoints,
        .kraft_min = 0,
        .kraft_max = 1,
    };
    for (uint32_t i = 0; i < node->options.listener_count; i++) {
        const struct node_listener *listener = &node->options.listeners[i];
        if (!listener->controller) continue;
        endpoints[out->endpoint_count++] =
            (struct quorum_endpoint){.name = view_of_string(listener->name),
                                     .host = view_of_string(listener_host(listener)),
                                     .port = listener_port(node, i)};
    }
    if (out->endpoint_count > 0) return;
    endpoints[out->endpoint_count++] =
        (struct quorum_endpoint){VIEW("CONTROLLER"), VIEW("localhost"), 9093};
}

/* ---- the registration ------------------------------------------------------------------------ */

struct controller_self {
    struct controller_call call;
    struct controller *c;
    struct arena arena;
    bool in_flight;
    struct controller_registration_request in;
    struct controller_registration_response out;
    struct controller_registration_request_listener listeners[NODE_LISTENERS_MAX];
    struct controller_registration_request_feature features[16];
};

static void self_done(struct controller_call *call, int16_t error)
{
    struct controller_self *self = container_of(call, struct controller_self, call);
    self->in_flight = false;
    if (error == KAFKA_NONE) error = self->out.error_code;
    if (error != KAFKA_NONE && self->c->failed == NULL)
        say(self->c->node->say, SAY_WARN, SAY_IN_CONTROLLER,
            "the controller could not register itself: %s", kafka_error_name(error));
}

static void self_listeners(struct controller_self *self)
{
    struct node *node = self->c->node;
    for (uint32_t i = 0; i < node->options.listener_count; i++) {
        const struct node_listener *listener = &node->options.listeners[i];
        if (!listener->controller) continue;
        struct controller_registration_request_listener *out =
            &self->listeners[self->in.listeners.count++];
        wire_struct_defaults(&wire_controller_registration_request_listener_shape, out);
        out->name = view_of_string(listener->name);
        out->host = view_of_string(listener_host(listener));
        out->port = listener_port(node, i);
        out->security_protocol = listener->protocol;
    }
    self->in.listeners.items = self->listeners;
}

static void self_features(struct controller_self *self)
{
    uint32_t count;
    const struct image_range *ranges = cluster_features(&count);
    assert(count <= ARRAY_SIZE(self->features));
    for (uint32_t i = 0; i < count; i++) {
        wire_struct_defaults(&wire_controller_registration_request_feature_shape,
                             &self->features[i]);
        self->features[i].name = ranges[i].name;
        self->features[i].min_supported_version = ranges[i].min;
        self->features[i].max_supported_version = ranges[i].max;
    }
    self->in.features.items = self->features;
    self->in.features.count = (int32_t)count;
}

void controller_self_register(struct controller *c)
{
    struct node *node = c->node;
    struct controller_self *self = mem_get(node->mem, sizeof(*self));
    if (self == NULL) return; /* Nothing rests on it but what clients are shown. */
    *self = (struct controller_self){.c = c};
    c->self = self;
    arena_init(&self->arena, node->mem, 0);
    wire_defaults(&wire_controller_registration_request, &self->in);
    wire_defaults(&wire_controller_registration_response, &self->out);
    self->in.controller_id = node->options.node_id;
    self->in.incarnation_id = io_random_uuid(node->io);
    self_listeners(self);
    self_features(self);
    if (self->in.listeners.count == 0 ||
        image_metadata_version(cluster_image(c->cluster)) < LEVEL_CONTROLLERS)
        return;
    self->call = (struct controller_call){
        .api_key = wire_controller_registration_request.api_key,
        .version = wire_controller_registration_request.version_max,
        .in = &self->in,
        .out = &self->out,
        .arena = &self->arena,
        .arrived_ms = io_now_ms(node->io),
        .done = self_done,
    };
    self->in_flight = true;
    controller_submit(node, &self->call);
}

bool controller_self_waits(const struct controller *c)
{
    return c->self != NULL && c->self->in_flight;
}

void controller_self_free(struct controller *c)
{
    if (c->self == NULL) return;
    arena_free(&c->self->arena);
    c->self = mem_put(c->node->mem, c->self, sizeof(*c->self));
}
