/* api_versions.c - ApiVersions: answered from the table of handlers, so that what is not built is
 * not advertised.
 *
 * A version that is not served is answered in version 0 with error 35 and the one entry that helps
 * (KIP-511); the connection stays. From version 3 on the client names its software (KIP-511), from
 * version 5 on the cluster and node it means; the node checks those in its hook. */
#include "net/inside.h"

#include "gen/api_versions_request.h"
#include "gen/api_versions_response.h"
#include "gen/errors.h"

#define API_VERSIONS_KEY 18
#define API_VERSIONS_MAX 5

static bool is_word(uint8_t c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
}

/* Letters and digits, with '-' and '.' inside. */
static bool software_valid(struct view text)
{
    if (text.size == 0 || !is_word(text.data[0]) || !is_word(text.data[text.size - 1]))
        return false;
    for (uint32_t i = 0; i < text.size; i++)
        if (!is_word(text.data[i]) && text.data[i] != '-' && text.data[i] != '.') return false;
    return true;
}

static struct api_versions_response_api_version range_of(const struct request *request,
                                                         const struct net_handler *handler)
{
    const struct wire_api *api = wire_api(handler->api_key);
    int16_t max = handler->version_max;
    if (!request->shard->state->settings.unstable_versions) max = MIN(max, api->stable_max);
    bool legacy = request->shard->state->settings.legacy_versions &&
                  request->listener->kind == WIRE_BROKER; /* Controllers never met those clients. */
    int16_t min = legacy ? handler->version_min : handler->advertised_min;
    return (struct api_versions_response_api_version){
        .api_key = handler->api_key, .min_version = min, .max_version = max};
}

static bool fill_ranges(struct request *request, struct api_versions_response *response)
{
    const struct net_handler *const *handlers = request->shard->state->handlers;
    response->api_keys.items =
        arena_get(&request->arena, SHARD_HANDLERS_MAX * sizeof(response->api_keys.items[0]));
    if (response->api_keys.items == NULL) return false;
    int32_t count = 0;
    for (int key = 0; key < SHARD_HANDLERS_MAX; key++) {
        const struct net_handler *handler = handlers[key];
        if (key == API_VERSIONS_KEY) handler = &net_api_versions;
        if (handler == NULL || !(handler->listeners & request->listener->kind)) continue;
        response->api_keys.items[count++] = range_of(request, handler);
    }
    response->api_keys.count = count;
    return true;
}

static int16_t check(struct request *request, struct api_versions_response *response)
{
    const struct api_versions_request *message = request->message;
    if (request->version >= 3) {
        if (!software_valid(message->client_software_name) ||
            !software_valid(message->client_software_version))
            return KAFKA_INVALID_REQUEST;
        connection_set_software(request->connection, message->client_software_name,
                                message->client_software_version);
    }
    const struct shard_hooks *hooks = &request->shard->state->hooks;
    return hooks->api_versions == NULL ? KAFKA_NONE
                                       : hooks->api_versions(request->shard, request, response);
}

static void handle(struct shard *shard, struct request *request)
{
    (void)shard;
    struct api_versions_response *response = request_response(request);
    if (response == NULL || !fill_ranges(request, response)) {
        request_close(request, "no memory for an answer");
        return;
    }
    response->error_code = check(request, response);
    if (response->error_code != KAFKA_NONE) {
        response->api_keys.count = 0;
        response->supported_features.count = 0;
        response->finalized_features.count = 0;
    }
    request_error(request, response->error_code);
    request_reply(request, response);
}

void net_api_versions_unsupported(struct request *request)
{
    struct api_versions_response response;
    struct api_versions_response_api_version range = {.api_key = API_VERSIONS_KEY,
                                                      .max_version = API_VERSIONS_MAX};
    wire_defaults(request->api->response, &response);
    response.error_code = KAFKA_UNSUPPORTED_VERSION;
    response.api_keys.items = &range;
    response.api_keys.count = 1;
    request->version = 0;
    request_error(request, KAFKA_UNSUPPORTED_VERSION);
    request_reply(request, &response);
}

const struct net_handler net_api_versions = {
    .api_key = API_VERSIONS_KEY,
    .version_min = 0,
    .version_max = API_VERSIONS_MAX,
    .advertised_min = 0,
    .listeners = WIRE_BROKER | WIRE_CONTROLLER,
    .handle = handle,
};
