/* envelope.c - Envelope: a request that a broker took from its client and passes on.
 *
 * What lies inside is a whole request without its length. It is decoded here, decided as any call
 * of the controller, and its answer, header and body, goes back in the envelope's. */
#include "broker/controller_steps.h"

#include "broker/broker.h"
#include "gen/default_principal_data.h"
#include "gen/envelope_request.h"
#include "gen/envelope_response.h"
#include "gen/request_header.h"
#include "gen/response_header.h"

struct envelope {
    struct controller_call call;
    struct request *request;
    struct envelope_response *response;
    const struct wire_api *api; /* Of what lies inside. */
    int32_t correlation_id;
    int16_t version;
};

/* APIs that a broker may pass on for its clients. */
static bool envelope_forwardable(int16_t key)
{
    static const int8_t keys[] = {19, 20, 30, 31, 33, 37, 38, 39, 40, 43, 44,
                                  45, 46, 49, 51, 55, 57, 64, 67, 80, 81, 94};
    for (size_t i = 0; i < ARRAY_SIZE(keys); i++)
        if (keys[i] == key) return true;
    return false;
}

static bool envelope_principal(struct request *request, struct view bytes)
{
    struct default_principal_data principal;
    if (bytes.null || bytes.size < 2) return false;
    int16_t version = (int16_t)load_be16(bytes.data);
    const struct wire_form *form = wire_form(&wire_default_principal_data, version);
    struct reader in = reader_of(view_of(bytes.data + 2, bytes.size - 2));
    return form != NULL && wire_decode(&in, form, &request->arena, &principal);
}

/* The row of handlers.c that serves this version of the API here, or NULL. */
static bool envelope_served(int16_t key, int16_t version)
{
    for (uint32_t i = 0; i < broker_handler_count; i++) {
        const struct net_handler *handler = &broker_handlers[i];
        if (handler->api_key == key)
            return (handler->listeners & WIRE_CONTROLLER) != 0 && version >= handler->version_min &&
                   version <= handler->version_max;
    }
    return false;
}

/* Header and body of the request inside. NONE, or what the envelope is answered with. */
static int16_t envelope_open(struct envelope *envelope, struct view data, void **message)
{
    struct request *request = envelope->request;
    struct reader in = reader_of(data);
    struct request_header header;
    if (data.size < 4) return KAFKA_UNSUPPORTED_VERSION;
    int16_t key = (int16_t)load_be16(data.data);
    envelope->version = (int16_t)load_be16(data.data + 2);
    envelope->api = wire_api(key);
    if (envelope->api == NULL || !envelope_served(key, envelope->version))
        return envelope_forwardable(key) ? KAFKA_UNSUPPORTED_VERSION : KAFKA_INVALID_REQUEST;
    int16_t header_version = wire_request_header_version(envelope->api, envelope->version);
    *message = broker_array(request, 1, envelope->api->request->size_bytes);
    if (*message == NULL) return KAFKA_UNKNOWN_SERVER_ERROR;
    if (!wire_decode(&in, wire_form(&wire_request_header, header_version), &request->arena,
                     &header) ||
        !wire_decode(&in, wire_form(envelope->api->request, envelope->version), &request->arena,
                     *message))
        return KAFKA_UNSUPPORTED_VERSION;
    envelope->correlation_id = header.correlation_id;
    return KAFKA_NONE;
}

static void envelope_end(struct envelope *envelope, int16_t error)
{
    envelope->response->error_code = error;
    if (error != KAFKA_NONE) request_error(envelope->request, error);
    request_reply(envelope->request, envelope->response);
}

static void envelope_done(struct controller_call *call, int16_t error)
{
    struct envelope *envelope = container_of(call, struct envelope, call);
    struct request *request = envelope->request;
    if (error != KAFKA_NONE) {
        envelope_end(envelope, error); /* NOT_CONTROLLER: the broker looks for another one. */
        return;
    }
    const struct wire_form *head = wire_form(
        &wire_response_header, wire_response_header_version(envelope->api, envelope->version));
    const struct wire_form *body = wire_form(envelope->api->response, envelope->version);
    struct response_header header = {.correlation_id = envelope->correlation_id,
                                     .tags = VIEW_EMPTY};
    size_t head_bytes = wire_size(head, &header), body_bytes = wire_size(body, call->out);
    uint8_t *bytes = broker_array(request, head_bytes + body_bytes, 1);
    if (bytes == NULL) {
        envelope_end(envelope, KAFKA_UNKNOWN_SERVER_ERROR);
        return;
    }
    (void)wire_encode(head, &header, bytes, NULL, 0, NULL);
    (void)wire_encode(body, call->out, bytes + head_bytes, NULL, 0, NULL);
    envelope->response->response_data = view_of(bytes, (uint32_t)(head_bytes + body_bytes));
    envelope_end(envelope, KAFKA_NONE);
}

void handle_envelope(struct shard *shard, struct request *request)
{
    const struct envelope_request *in = request->message;
    struct envelope *envelope = broker_array(request, 1, sizeof(*envelope));
    struct envelope_response *response = request_response(request);
    if (envelope == NULL || response == NULL) {
        request_close(request, "no memory for an envelope");
        return;
    }
    *envelope = (struct envelope){.request = request, .response = response};
    void *message = NULL;
    int16_t error = KAFKA_NONE;
    if (!auth_is_broker(request))
        error = KAFKA_CLUSTER_AUTHORIZATION_FAILED;
    else if (in->client_host_address.size != 4 && in->client_host_address.size != 16)
        error = KAFKA_INVALID_REQUEST;
    if (error == KAFKA_NONE) error = envelope_open(envelope, in->request_data, &message);
    if (error == KAFKA_NONE && !envelope_principal(request, in->request_principal))
        error = KAFKA_PRINCIPAL_DESERIALIZATION_FAILURE;
    if (error == KAFKA_NONE && (!envelope_forwardable(envelope->api->key) ||
                                controller_step_find(envelope->api->key) == NULL))
        error = KAFKA_INVALID_REQUEST;
    void *out =
        error == KAFKA_NONE ? broker_array(request, 1, envelope->api->response->size_bytes) : NULL;
    if (error == KAFKA_NONE && out == NULL) error = KAFKA_UNKNOWN_SERVER_ERROR;
    if (error != KAFKA_NONE) {
        envelope_end(envelope, error);
        return;
    }
    wire_defaults(envelope->api->response, out);
    envelope->call = (struct controller_call){
        .api_key = envelope->api->key,
        .version = envelope->version,
        .in = message,
        .out = out,
        .arena = &request->arena,
        .arrived_ms = request->arrived_ms,
        .client = request,
        .forwarded = true,
        .done = envelope_done,
    };
    controller_submit(node_of(shard), &envelope->call);
}
