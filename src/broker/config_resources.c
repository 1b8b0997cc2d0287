/* config_resources.c - ListConfigResources: what can have settings, by kind. */
#include "broker/broker.h"
#include "gen/list_config_resources_request.h"
#include "gen/list_config_resources_response.h"

struct listing {
    struct request *request;
    struct list_config_resources_response *out;
    uint32_t room;
};

/* In the order of the answer. */
static const int8_t listing_types[] = {IMAGE_RESOURCE_GROUP, IMAGE_RESOURCE_CLIENT_METRICS,
                                       IMAGE_RESOURCE_BROKER_LOGGER, IMAGE_RESOURCE_BROKER,
                                       IMAGE_RESOURCE_TOPIC};

static bool listing_add(struct listing *listing, int8_t type, struct view name)
{
    if ((uint32_t)listing->out->config_resources.count == listing->room) return true;
    struct list_config_resources_response_config_resource *item =
        &listing->out->config_resources.items[listing->out->config_resources.count++];
    wire_struct_defaults(&wire_list_config_resources_response_config_resource_shape, item);
    item->resource_type = type;
    item->resource_name = name;
    return !name.null;
}

/* Groups and subscriptions are there by having settings. */
static bool listing_configured(struct listing *listing, const struct image *image, int8_t type)
{
    uint32_t count;
    const struct image_object *const *all =
        image_sorted(image, IMAGE_CONFIGS, &listing->request->arena, &count);
    if (all == NULL && count > 0) return false;
    for (uint32_t i = 0; i < count; i++) {
        const struct image_configs *configs = (const struct image_configs *)all[i];
        if (configs->type == type && !listing_add(listing, type, configs->resource)) return false;
    }
    return true;
}

/* Registered brokers that the request's listener leads to. */
static bool listing_brokers(struct listing *listing, const struct image *image, int8_t type)
{
    uint32_t count;
    const struct image_object *const *all =
        image_sorted(image, IMAGE_BROKER, &listing->request->arena, &count);
    if (all == NULL && count > 0) return false;
    for (uint32_t i = 0; i < count; i++) {
        const struct image_node *broker = (const struct image_node *)all[i];
        struct metadata_place place;
        if (!metadata_place(listing->request, broker, &place)) continue;
        if (!listing_add(listing, type, broker_text(listing->request, "%d", broker->id)))
            return false;
    }
    return true;
}

static bool listing_topics(struct listing *listing, const struct image *image)
{
    uint32_t count;
    const struct image_object *const *all =
        image_sorted(image, IMAGE_TOPIC, &listing->request->arena, &count);
    if (all == NULL && count > 0) return false;
    for (uint32_t i = 0; i < count; i++) {
        struct view name = ((const struct image_topic *)all[i])->name;
        if (!listing_add(listing, IMAGE_RESOURCE_TOPIC, name)) return false;
    }
    return true;
}

static bool listing_wants(const struct request *request, int8_t type)
{
    const struct list_config_resources_request *in = request->message;
    if (request->version == 0) return type == IMAGE_RESOURCE_CLIENT_METRICS;
    for (int32_t i = 0; i < in->resource_types.count; i++)
        if (in->resource_types.items[i] == type) return true;
    return in->resource_types.count <= 0;
}

/* Is every type in the request one that there is? */
static bool listing_known(const struct request *request)
{
    const struct list_config_resources_request *in = request->message;
    for (int32_t i = 0; request->version > 0 && i < in->resource_types.count; i++) {
        bool known = false;
        for (size_t j = 0; j < ARRAY_SIZE(listing_types); j++)
            known = known || listing_types[j] == in->resource_types.items[i];
        if (!known) return false;
    }
    return true;
}

static bool listing_run(struct listing *listing)
{
    const struct image *image = node_of(listing->request->shard)->image;
    listing->room = image_count(image, IMAGE_CONFIGS) + 2 * image_count(image, IMAGE_BROKER) +
                    image_count(image, IMAGE_TOPIC);
    listing->out->config_resources.items = broker_array(
        listing->request, listing->room + 1, sizeof(*listing->out->config_resources.items));
    if (listing->out->config_resources.items == NULL) return false;
    bool made = true;
    for (size_t i = 0; made && i < ARRAY_SIZE(listing_types); i++) {
        int8_t type = listing_types[i];
        if (!listing_wants(listing->request, type)) continue;
        if (type == IMAGE_RESOURCE_TOPIC)
            made = listing_topics(listing, image);
        else if (type == IMAGE_RESOURCE_BROKER || type == IMAGE_RESOURCE_BROKER_LOGGER)
            made = listing_brokers(listing, image, type);
        else
            made = listing_configured(listing, image, type);
    }
    return made;
}

void handle_list_config_resources(struct shard *shard, struct request *request)
{
    (void)shard;
    struct listing listing = {.request = request, .out = request_response(request)};
    bool made = listing.out != NULL;
    if (made && !auth_allows(request, AUTH_DESCRIBE_CONFIGS, AUTH_CLUSTER, VIEW("kafka-cluster")))
        listing.out->error_code = KAFKA_CLUSTER_AUTHORIZATION_FAILED;
    else if (made && !listing_known(request))
        listing.out->error_code = KAFKA_UNSUPPORTED_VERSION;
    else if (made)
        made = listing_run(&listing);
    if (!made) {
        request_close(request, "no memory for an answer");
        return;
    }
    if (listing.out->error_code != KAFKA_NONE) request_error(request, listing.out->error_code);
    request_reply(request, listing.out);
}
