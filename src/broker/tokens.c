/* tokens.c - delegation tokens, as a listener without authentication answers: they are refused.
 *
 * A token speaks for whoever logged in to get it; on a PLAINTEXT listener nobody has. A request
 * that another broker passes on in an envelope is told that tokens are off (controller_steps.c). */
#include "broker/broker.h"
#include "gen/create_delegation_token_response.h"
#include "gen/describe_delegation_token_response.h"
#include "gen/expire_delegation_token_response.h"
#include "gen/renew_delegation_token_response.h"

/* The name that is refused a token: its owner and its requester. */
static void refuse_create(const struct request *request,
                          struct create_delegation_token_response *out)
{
    struct view name = request->principal;
    uint32_t at = 0;
    while (at < name.size && name.data[at] != ':')
        at++;
    if (at < name.size) {
        out->principal_type = view_of(name.data, at);
        out->principal_name = view_of(name.data + at + 1, name.size - at - 1);
    }
    out->token_requester_principal_type = out->principal_type;
    out->token_requester_principal_name = out->principal_name;
    out->issue_timestamp_ms = out->expiry_timestamp_ms = out->max_timestamp_ms = -1;
    out->hmac = VIEW_EMPTY;
    out->error_code = KAFKA_DELEGATION_TOKEN_REQUEST_NOT_ALLOWED;
}

void handle_delegation_token(struct shard *shard, struct request *request)
{
    (void)shard;
    void *out = broker_response(request);
    if (out == NULL) return;
    const int16_t error = KAFKA_DELEGATION_TOKEN_REQUEST_NOT_ALLOWED;
    if (request->api->key == wire_create_delegation_token_response.api_key) {
        refuse_create(request, out);
    } else if (request->api->key == wire_renew_delegation_token_response.api_key) {
        struct renew_delegation_token_response *renew = out;
        renew->error_code = error;
        renew->expiry_timestamp_ms = -1;
    } else if (request->api->key == wire_expire_delegation_token_response.api_key) {
        struct expire_delegation_token_response *expire = out;
        expire->error_code = error;
        expire->expiry_timestamp_ms = -1;
    } else {
        struct describe_delegation_token_response *describe = out;
        describe->error_code = error;
    }
    request_error(request, error);
    request_reply(request, out);
}
