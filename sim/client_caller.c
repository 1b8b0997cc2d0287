/* client_caller.c - see client_caller.h. */
#include "sim/client_caller.h"

#include <stdlib.h>

#include "text/json.h"

static struct client_caller *caller_of(struct client *client)
{
    return container_of(client, struct client_caller, client);
}

static void caller_fill(struct client *client)
{
    struct client_caller *caller = caller_of(client);
    if (caller->message == NULL) return;
    wire_link_send(&client->link, caller->api->key, caller->version, caller->message);
    caller->message = NULL;
}

static void caller_answered(struct client *client, const struct wire_link_wait *wait, void *in)
{
    (void)wait;
    caller_of(client)->response = in;
}

static void caller_lost(struct client *client)
{
    history_violation(client->history, "the caller's connection is gone");
}

static bool caller_finished(const struct client *client)
{
    const struct client_caller *caller = (const void *)client;
    return caller->message == NULL && client->link.wait_count == 0;
}

static void caller_ended(struct client *client)
{
    arena_free(&caller_of(client)->request);
}

struct client_caller *client_caller_new(const struct client_seat *seat)
{
    static const struct client_kind kind = {
        .name = "caller",
        .size_bytes = sizeof(struct client_caller),
        .fill = caller_fill,
        .answered = caller_answered,
        .lost = caller_lost,
        .finished = caller_finished,
        .ended = caller_ended,
    };
    struct client_caller *caller = caller_of(client_new(&kind, seat));
    arena_init(&caller->request, io_mem(caller->client.io), 0);
    return caller;
}

/* "Heartbeat 4" */
static void caller_choose(struct client_caller *caller, const char *what)
{
    uint32_t count;
    const struct wire_api *apis = wire_apis(&count);
    size_t name_size = strcspn(what, " ");
    uint32_t at = 0;
    while (at < count &&
           (strlen(apis[at].name) != name_size || strncmp(apis[at].name, what, name_size) != 0))
        at++;
    assert(at < count);
    caller->api = &apis[at];
    caller->version = (int16_t)strtol(what + name_size, NULL, 10);
}

void client_caller_ask(struct client_caller *caller, const char *what, const char *json)
{
    struct arena *arena = &caller->request;
    struct json_fault fault;
    assert(caller_finished(&caller->client));
    arena_reset(arena);
    uint32_t size = view_of_string(json).size;
    char *text = arena_get(arena, size);
    assert(text != NULL);
    for (uint32_t i = 0; i < size; i++)
        text[i] = (char)(json[i] == '\'' ? '"' : json[i]);
    caller_choose(caller, what);
    caller->response = NULL;
    caller->message =
        json_read(view_of(text, size), caller->api->request, caller->version, arena, &fault);
    if (caller->message == NULL)
        history_violation(caller->client.history, "%s: %s %s", json, fault.path, fault.text);
    caller->client.next_ms = 0;
}

const char *client_caller_answer(struct client_caller *caller)
{
    struct arena *arena = &caller->request;
    const struct wire_form *form = wire_form(caller->api->response, caller->version);
    struct out out;
    size_t size = wire_size(form, caller->response);
    uint8_t *bytes = arena_get(arena, size + 1);
    assert(bytes != NULL);
    (void)wire_encode(form, caller->response, bytes, NULL, 0, NULL);
    out_init(&out, io_mem(caller->client.io));
    (void)json_write(&out, form, view_of(bytes, (uint32_t)size));
    assert(!out.failed && out.size_bytes < CALLER_ANSWER_MAX);
    for (size_t i = 0; i < out.size_bytes; i++)
        caller->answer[i] = (char)(out.text[i] == '"' ? '\'' : out.text[i]);
    caller->answer[out.size_bytes] = '\0';
    out_free(&out);
    return caller->answer;
}
