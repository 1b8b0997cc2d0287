/* lifecycle.c - see lifecycle.h. The structs of the calls live in one block for the node's life. */
#include "broker/lifecycle.h"

#include "broker/broker.h"
#include "broker/controller.h"
#include "broker/shards.h"
#include "gen/broker_heartbeat_request.h"
#include "gen/broker_heartbeat_response.h"
#include "gen/broker_registration_request.h"
#include "gen/broker_registration_response.h"
#include "net/listener.h"

struct lifecycle {
    struct node *node;
    struct controller_call call;
    struct arena arena;
    struct broker_registration_request registration;
    struct broker_registration_response registered;
    struct broker_heartbeat_request beat;
    struct broker_heartbeat_response beaten;
    struct broker_registration_request_listener listeners[NODE_LISTENERS_MAX];
    struct broker_registration_request_feature features[16];
    struct uuid directories[LOG_DIRS_MAX];
    bool in_flight;
    bool unfenced;
    struct uuid cordons[LOG_DIRS_MAX]; /* What the heartbeat calls cordoned. */
    bool beside_others;                /* Other brokers are registered. */
    bool renew;                        /* The listeners are others than it was registered with. */
    bool news; /* Of the cordons, not told yet. An error is not tried again before the next. */
    const char *failed;
};

static void lifecycle_beat(struct lifecycle *life);

static void fill_listeners(struct lifecycle *life)
{
    struct node *node = life->node;
    life->registration.listeners.count = 0;
    for (uint32_t i = 0; i < node->options.listener_count; i++) {
        const struct node_listener *in = &node->options.listeners[i];
        if (in->controller || node->listeners[i] == NULL) continue;
        struct broker_registration_request_listener *out =
            &life->listeners[life->registration.listeners.count++];
        wire_struct_defaults(&wire_broker_registration_request_listener_shape, out);
        const struct io_address *bound = &node->listeners[i]->bound[0];
        const char *host = in->advertised_host[0] != '\0' ? in->advertised_host
                           : in->host[0] != '\0'          ? in->host
                                                          : "localhost";
        out->name = view_of_string(in->name);
        out->host = view_of_string(host);
        out->port = in->advertised_port != 0 ? in->advertised_port : bound->port;
        out->security_protocol = in->protocol;
    }
    life->registration.listeners.items = life->listeners;
}

static void fill_features(struct lifecycle *life)
{
    uint32_t count;
    const struct image_range *ranges = cluster_features(&count);
    for (uint32_t i = 0; i < count && i < ARRAY_SIZE(life->features); i++) {
        wire_struct_defaults(&wire_broker_registration_request_feature_shape, &life->features[i]);
        life->features[i].name = ranges[i].name;
        life->features[i].min_supported_version = ranges[i].min;
        life->features[i].max_supported_version = ranges[i].max;
    }
    life->registration.features.items = life->features;
    life->registration.features.count = (int32_t)MIN(count, ARRAY_SIZE(life->features));
}

static void fill_directories(struct lifecycle *life)
{
    struct node *node = life->node;
    for (uint32_t i = 0; i < logs_dir_count(node->logs); i++) {
        struct log_dir_info info;
        logs_dir_info(node->logs, i, &info);
        if (info.error == 0)
            life->directories[life->registration.log_dirs.count++] = info.directory_id;
    }
    life->registration.log_dirs.items = life->directories;
}

static void submit(struct lifecycle *life,
                   const struct wire_message *message,
                   const void *in,
                   void *out,
                   void (*done)(struct controller_call *call, int16_t error))
{
    life->call = (struct controller_call){
        .api_key = message->api_key,
        .version = message->version_max,
        .in = in,
        .out = out,
        .arena = &life->arena,
        .arrived_ms = io_now_ms(life->node->io),
        .done = done,
    };
    arena_reset(&life->arena);
    life->in_flight = true;
    controller_submit(life->node, &life->call);
}

static void registered(struct controller_call *call, int16_t error)
{
    struct lifecycle *life = container_of(call, struct lifecycle, call);
    life->in_flight = false;
    if (error == KAFKA_NONE) error = life->registered.error_code;
    if (error != KAFKA_NONE && life->node->broker_epoch >= 0) {
        say(life->node->say, SAY_ERROR, SAY_IN_BROKER,
            "the control part refused the new listeners: %s", kafka_error_name(error));
        return;
    }
    if (error != KAFKA_NONE) {
        life->failed = "the control part refused the registration of the broker part";
        say(life->node->say, SAY_ERROR, SAY_IN_BROKER, "%s: %s", life->failed,
            kafka_error_name(error));
        return;
    }
    life->node->broker_epoch = life->registered.broker_epoch;
    say(life->node->say, SAY_DEBUG, SAY_IN_BROKER, "registered with epoch %lld and %d listeners",
        (long long)life->registered.broker_epoch, life->registration.listeners.count);
    if (!shards_registered(life->node)) life->failed = "no memory to tell the shards";
    lifecycle_beat(life);
}

static void beaten(struct controller_call *call, int16_t error)
{
    struct lifecycle *life = container_of(call, struct lifecycle, call);
    life->in_flight = false;
    if (error == KAFKA_NONE) error = life->beaten.error_code;
    if (error == KAFKA_NONE) life->unfenced = !life->beaten.is_fenced;
    say(life->node->say, SAY_DEBUG, SAY_IN_BROKER,
        "the control part answers a heartbeat: %s, it %s, it is %s", kafka_error_name(error),
        life->beaten.is_caught_up ? "has read enough" : "is behind",
        life->beaten.is_fenced ? "fenced" : "unfenced");
    if (error != KAFKA_NONE)
        say(life->node->say, SAY_WARN, SAY_IN_BROKER, "a heartbeat to the control part failed: %s",
            kafka_error_name(error));
    if (error == KAFKA_NONE) lifecycle_image_moved(life->node);
}

/* The directories that take no new replicas: those of cordoned.log.dirs, or all beside others. */
static void beat_cordons(struct lifecycle *life)
{
    int32_t count = 0;
    for (uint32_t i = 0; i < logs_dir_count(life->node->logs); i++) {
        struct log_dir_info info;
        logs_dir_info(life->node->logs, i, &info);
        if (info.error == 0 && (info.cordoned || life->beside_others))
            life->cordons[count++] = info.directory_id;
    }
    life->beat.cordoned_log_dirs.items = life->cordons;
    life->beat.cordoned_log_dirs.count = count;
    life->news = false;
}

static void lifecycle_beat(struct lifecycle *life)
{
    struct node *node = life->node;
    wire_defaults(&wire_broker_heartbeat_request, &life->beat);
    wire_defaults(&wire_broker_heartbeat_response, &life->beaten);
    life->beat.broker_id = node->options.node_id;
    life->beat.broker_epoch = node->broker_epoch;
    life->beat.current_metadata_offset = node->image_offset - 1;
    beat_cordons(life);
    say(node->say, SAY_DEBUG, SAY_IN_BROKER,
        "a heartbeat with epoch %lld: offset %lld is read, %d directories are cordoned",
        (long long)node->broker_epoch, (long long)life->beat.current_metadata_offset,
        life->beat.cordoned_log_dirs.count);
    submit(life, &wire_broker_heartbeat_request, &life->beat, &life->beaten, beaten);
}

/* Are there other brokers? */
static void look_around(struct lifecycle *life)
{
    struct node *node = life->node;
    bool before = life->beside_others;
    uint32_t own = image_broker(node->image, node->options.node_id) != NULL ? 1 : 0;
    life->beside_others = image_count(node->image, IMAGE_BROKER) > own;
    life->news = life->news || life->beside_others != before;
    if (life->beside_others && !before)
        say(node->say, SAY_INFO, SAY_IN_BROKER,
            "other brokers are registered: this one keeps what it has and takes no new replicas");
}

static void lifecycle_register(struct lifecycle *life)
{
    wire_defaults(&wire_broker_registration_response, &life->registered);
    fill_listeners(life);
    life->renew = false;
    submit(life, &wire_broker_registration_request, &life->registration, &life->registered,
           registered);
}

bool lifecycle_start(struct node *node)
{
    struct lifecycle *life = mem_get(node->mem, sizeof(*life));
    if (life == NULL) return false;
    node->lifecycle = life;
    life->node = node;
    life->news = true;
    arena_init(&life->arena, node->mem, 0);
    wire_defaults(&wire_broker_registration_request, &life->registration);
    life->registration.broker_id = node->options.node_id;
    life->registration.cluster_id = node_cluster_id(node);
    life->registration.incarnation_id = io_random_uuid(node->io);
    life->registration.rack = node->options.rack;
    life->registration.previous_broker_epoch = logs_previous_broker_epoch(node->logs);
    fill_features(life);
    fill_directories(life);
    look_around(life);
    lifecycle_register(life);
    return true;
}

void lifecycle_image_moved(struct node *node)
{
    struct lifecycle *life = node->lifecycle;
    if (life == NULL || life->in_flight || node->broker_epoch < 0) return;
    if (life->renew) {
        lifecycle_register(life);
        return;
    }
    if ((!life->unfenced || life->news) && node->image_offset > node->broker_epoch)
        lifecycle_beat(life);
}

void lifecycle_listeners(struct node *node)
{
    if (node->lifecycle == NULL) return;
    node->lifecycle->renew = true;
    lifecycle_image_moved(node);
}

void lifecycle_cordoned(struct node *node)
{
    if (node->lifecycle == NULL) return;
    node->lifecycle->news = true;
    lifecycle_image_moved(node);
}

void lifecycle_follow(struct node *node, const struct image_change *change)
{
    struct lifecycle *life = node->lifecycle;
    if (change->kind != IMAGE_BROKER || life == NULL) return;
    bool before = life->beside_others;
    look_around(life);
    if (before && !life->beside_others)
        say(node->say, SAY_INFO, SAY_IN_BROKER,
            "no other broker is registered any more: this one takes new replicas again");
}

const char *lifecycle_failure(const struct node *node)
{
    return node->lifecycle == NULL ? NULL : node->lifecycle->failed;
}

const char *lifecycle_not_ready(const struct node *node)
{
    const struct lifecycle *life = node->lifecycle;
    if (life == NULL) return "the broker part is not registered";
    if (life->failed != NULL) return life->failed;
    const struct image_node *self = image_broker(node->image, node->options.node_id);
    if (node->broker_epoch < 0 || self == NULL) return "the broker part is not registered";
    return self->fenced ? "the broker part is fenced" : NULL;
}

void lifecycle_stop(struct node *node)
{
    struct lifecycle *life = node->lifecycle;
    if (life == NULL) return;
    arena_free(&life->arena);
    node->lifecycle = mem_put(node->mem, life, sizeof(*life));
}
