/* wire.c - see wire.h. */
#include "cli/wire.h"
#include "text/nearest.h"

#include <stdlib.h>
#include <strings.h>

static bool same(const char *a, const char *b)
{
    return strcasecmp(a, b) == 0;
}

static const struct wire_api *api_named(const char *name)
{
    uint32_t count;
    const struct wire_api *apis = wire_apis(&count);
    char *end = NULL;

    for (uint32_t i = 0; i < count; i++)
        if (same(apis[i].name, name)) return &apis[i];
    long key = strtol(name, &end, 10);
    bool number = name[0] != '\0' && *end == '\0' && key >= 0 && key <= INT16_MAX;
    return number ? wire_api((int16_t)key) : NULL;
}

static enum cli_exit unknown_name(struct cli *cli, const char *name, bool only_apis)
{
    struct nearest nearest = nearest_to(view_of_string(name));
    uint32_t count;
    const struct wire_api *apis = wire_apis(&count);

    for (uint32_t i = 0; i < count; i++)
        nearest_offer(&nearest, apis[i].name);
    const struct wire_message *const *messages = wire_messages(&count);
    for (uint32_t i = 0; i < count && !only_apis; i++)
        nearest_offer(&nearest, messages[i]->name);

    cli_fail(cli, CLI_USAGE, "no %s is called \"%s\"", only_apis ? "API" : "message", name);
    if (nearest.best != NULL) {
        cli_hint(cli, "did you mean %s?", nearest.best);
    } else {
        cli_hint(cli, "`dohle wire list` names all APIs");
    }
    return CLI_USAGE;
}

static const struct wire_message *message_named(const char *name)
{
    uint32_t count;
    const struct wire_message *const *messages = wire_messages(&count);
    for (uint32_t i = 0; i < count; i++)
        if (same(messages[i]->name, name)) return messages[i];
    return NULL;
}

enum cli_exit wire_choose(struct cli *cli, const char *name, struct wire_choice *out)
{
    const struct wire_api *api = api_named(name);
    if (api != NULL) {
        *out = (struct wire_choice){
            api, {api->request, api->response},
             2
        };
        return CLI_OK;
    }
    const struct wire_message *message = message_named(name);
    if (message == NULL) return unknown_name(cli, name, false);
    bool rpc = message->kind == WIRE_REQUEST || message->kind == WIRE_RESPONSE;
    *out = (struct wire_choice){
        rpc ? wire_api(message->api_key) : NULL, {message, NULL},
             1
    };
    return CLI_OK;
}

enum cli_exit wire_choose_api(struct cli *cli, const char *name, const struct wire_api **out)
{
    *out = api_named(name);
    return *out == NULL ? unknown_name(cli, name, true) : CLI_OK;
}

enum cli_exit wire_choose_version(struct cli *cli,
                                  const struct wire_message *message,
                                  int16_t *version)
{
    long long number = message->version_max;
    enum cli_exit code = cli_integer(cli, "version", (struct cli_range){0, INT16_MAX}, &number);
    if (code != CLI_OK) return code;
    if (number < message->version_min || number > message->version_max) {
        return (enum cli_exit)cli_fail(cli, CLI_USAGE, "%s has versions %d to %d, not %lld",
                                       message->name, message->version_min, message->version_max,
                                       number);
    }
    *version = (int16_t)number;
    return CLI_OK;
}

void wire_range(struct out *out, int16_t min, int16_t max)
{
    if (min > max) {
        out_text(out, "none");
    } else if (min == max) {
        out_format(out, "%d", min);
    } else {
        out_format(out, "%d-%d", min, max);
    }
}
