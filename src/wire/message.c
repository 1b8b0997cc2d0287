/* message.c - look messages, forms and APIs up; header versions. */
#include "wire/index.h"

#define API_VERSIONS_KEY        18
#define CONTROLLED_SHUTDOWN_KEY 7

const struct wire_api *wire_api(int16_t key)
{
    return key < 0 || (uint32_t)key >= wire_index_api_count ? NULL : &wire_index_apis[key];
}

const struct wire_api *wire_apis(uint32_t *count)
{
    *count = wire_index_api_count;
    return wire_index_apis;
}

const struct wire_message *const *wire_messages(uint32_t *count)
{
    *count = wire_index_message_count;
    return wire_index_messages;
}

/* Index of the message with this name, or -1. The list is in the order of names. */
static int32_t message_find(struct view name)
{
    uint32_t low = 0, high = wire_index_message_count;
    while (low < high) {
        uint32_t middle = (low + high) / 2;
        int order = view_compare(name, view_of_string(wire_index_messages[middle]->name));
        if (order == 0) return (int32_t)middle;
        if (order < 0)
            high = middle;
        else
            low = middle + 1;
    }
    return -1;
}

const struct wire_message *wire_message_by_name(struct view name)
{
    int32_t i = message_find(name);
    return i < 0 ? NULL : wire_index_messages[i];
}

const struct wire_facts *wire_facts(const struct wire_message *message)
{
    int32_t i = message_find(view_of_string(message->name));
    assert(i >= 0);
    return &wire_index_facts[i];
}

const struct wire_form *wire_form(const struct wire_message *message, int16_t version)
{
    if (version < message->version_min || version > message->version_max) return NULL;
    return &wire_forms[wire_form_numbers[message->forms + version - message->version_min]];
}

int16_t wire_request_header_version(const struct wire_api *api, int16_t version)
{
    if (api->key == CONTROLLED_SHUTDOWN_KEY && version == 0) return 0;
    return version >= api->request->flexible_min ? 2 : 1;
}

int16_t wire_response_header_version(const struct wire_api *api, int16_t version)
{
    /* A client that does not know what the server speaks must be able to read the answer (KIP-511).
     */
    if (api->key == API_VERSIONS_KEY) return 0;
    return version >= api->response->flexible_min ? 1 : 0;
}
