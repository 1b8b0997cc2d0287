/* loggers.c - see loggers.h; IncrementalAlterConfigs.
 *
 * A level holds for the process that was asked, until it ends: nothing is logged. What else the
 * request names goes to the control part, and the answers are put together in its order. */
#include "broker/loggers.h"

#include "broker/controller.h"
#include "core/config.h"
#include "core/join.h"
#include "core/names.h"
#include "gen/incremental_alter_configs_request.h"
#include "gen/incremental_alter_configs_response.h"

enum logger_op { LOGGER_SET, LOGGER_DELETE, LOGGER_APPEND, LOGGER_SUBTRACT };

#define CONFIG_OF   incremental_alter_configs_request_alterable_config
#define RESOURCE_OF incremental_alter_configs_request_alter_configs_resource
#define ANSWER_OF   incremental_alter_configs_response_alter_configs_resource_response

/* Kafka's names, by enum say_level. */
static const char *const level_names[] = {"TRACE", "DEBUG", "INFO", "WARN", "ERROR", "FATAL"};

const char *loggers_level_name(enum say_level level)
{
    assert(level < ARRAY_SIZE(level_names));
    return level_names[level];
}

bool loggers_own_id(const struct request *request, struct view name)
{
    int64_t id = -1;
    return name.size > 0 && !config_spaced(name) && config_parse_int64(name, &id) &&
           id == node_of(request->shard)->options.node_id;
}

static bool level_of(struct view text, enum say_level *out)
{
    for (uint32_t i = 0; i < ARRAY_SIZE(level_names); i++) {
        if (!view_is(text, level_names[i])) continue;
        *out = (enum say_level)i;
        return true;
    }
    return false;
}

static bool area_of(struct view text, enum say_area *out)
{
    for (uint32_t i = 0; i < SAY_AREAS; i++) {
        if (!view_is(text, say_area_name((enum say_area)i))) continue;
        *out = (enum say_area)i;
        return true;
    }
    return false;
}

/* ---- one resource ---------------------------------------------------------------------------- */

static int16_t refuse(struct ANSWER_OF *out, int16_t error, struct view why)
{
    out->error_code = error;
    out->error_message = why;
    return error;
}

/* What is wrong with the whole of it, before its loggers are looked at. False: no memory. */
static bool check_shape(struct request *request,
                        const struct RESOURCE_OF *in,
                        struct ANSWER_OF *out)
{
    struct names names;
    uint32_t count = (uint32_t)MAX(in->configs.count, 0);
    if (!names_init(&names, &request->arena, count, io_random(request->shard->io, IO_RANDOM_HASH)))
        return false;
    for (uint32_t i = 0; i < count; i++) {
        const struct CONFIG_OF *config = &in->configs.items[i];
        if (names_see(&names, config->name) > 1)
            refuse(out, KAFKA_INVALID_REQUEST, VIEW("a logger is named twice"));
        else if (config->value.null && config->config_operation != LOGGER_DELETE)
            refuse(out, KAFKA_INVALID_REQUEST, VIEW("a logger without a level"));
    }
    return true;
}

static int16_t check_config(struct request *request,
                            const struct CONFIG_OF *in,
                            struct ANSWER_OF *out)
{
    enum say_area area;
    enum say_level level;
    struct arena *arena = &request->arena;
    if (in->config_operation != LOGGER_SET && in->config_operation != LOGGER_DELETE)
        return refuse(out, KAFKA_INVALID_REQUEST,
                      VIEW("a level can be set and deleted, nothing can be added to it"));
    if (!area_of(in->name, &area))
        return refuse(out, KAFKA_INVALID_CONFIG,
                      JOIN(arena, VIEW("there is no logger \""), in->name,
                           VIEW("\"; describing this resource tells which there are")));
    if (in->config_operation == LOGGER_SET && !level_of(in->value, &level))
        return refuse(out, KAFKA_INVALID_CONFIG,
                      JOIN(arena, VIEW("\""), in->value,
                           VIEW("\" is no level: TRACE, DEBUG, INFO, WARN, ERROR, FATAL")));
    if (in->config_operation == LOGGER_DELETE && area == SAY_IN_ROOT)
        return refuse(out, KAFKA_INVALID_REQUEST, VIEW("the level of root can only be set"));
    return KAFKA_NONE;
}

static void apply_config(struct node *node, const struct CONFIG_OF *in)
{
    enum say_area area;
    enum say_level level;
    if (!area_of(in->name, &area)) return;
    if (in->config_operation == LOGGER_DELETE)
        say_unset(node->say->levels, area);
    else if (level_of(in->value, &level))
        say_set(node->say->levels, area, level);
    say(node->say, SAY_INFO, SAY_IN_CONFIG, "log lines of %s are said from %s on",
        say_area_name(area), loggers_level_name(say_level_of(node->say, area)));
}

/* False: no memory. */
static bool alter_loggers(struct request *request,
                          const struct RESOURCE_OF *in,
                          bool once,
                          struct ANSWER_OF *out)
{
    const struct incremental_alter_configs_request *all = request->message;
    struct node *node = node_of(request->shard);
    wire_struct_defaults(
        &wire_incremental_alter_configs_response_alter_configs_resource_response_shape, out);
    out->error_message = VIEW_NULL;
    out->resource_type = in->resource_type;
    out->resource_name = in->resource_name;
    if (!once)
        refuse(out, KAFKA_INVALID_REQUEST, VIEW("a resource is named twice"));
    else if (!check_shape(request, in, out))
        return false;
    if (out->error_code == KAFKA_NONE && !auth_is_broker(request))
        refuse(out, KAFKA_CLUSTER_AUTHORIZATION_FAILED, VIEW_NULL);
    if (out->error_code == KAFKA_NONE && !loggers_own_id(request, in->resource_name))
        refuse(out, KAFKA_INVALID_REQUEST,
               broker_text(request, "this is node %d: it has no loggers of another",
                           node->options.node_id));
    for (int32_t i = 0; i < in->configs.count && out->error_code == KAFKA_NONE; i++)
        (void)check_config(request, &in->configs.items[i], out);
    if (out->error_code != KAFKA_NONE) request_error(request, out->error_code);
    for (int32_t i = 0; i < in->configs.count; i++)
        if (out->error_code == KAFKA_NONE && !all->validate_only)
            apply_config(node, &in->configs.items[i]);
    return true;
}

/* ---- a request ------------------------------------------------------------------------------- */

static bool is_loggers(const struct RESOURCE_OF *resource)
{
    return resource->resource_type == IMAGE_RESOURCE_BROKER_LOGGER;
}

/* All answers in the request's order; `others` answers what is not of loggers, in the same order.
 * NULL: no memory. */
static struct incremental_alter_configs_response *alter_all(
    struct request *request,
    const struct incremental_alter_configs_response *others)
{
    const struct incremental_alter_configs_request *in = request->message;
    struct incremental_alter_configs_response *out = request_response(request);
    struct names names;
    uint32_t count = (uint32_t)MAX(in->resources.count, 0);
    int32_t other = 0;
    if (out == NULL ||
        !names_init(&names, &request->arena, count, io_random(request->shard->io, IO_RANDOM_HASH)))
        return NULL;
    out->responses.items = broker_array(request, count + 1, sizeof(*out->responses.items));
    if (out->responses.items == NULL) return NULL;
    for (uint32_t i = 0; i < count; i++)
        if (is_loggers(&in->resources.items[i]))
            (void)names_see(&names, in->resources.items[i].resource_name);
    for (uint32_t i = 0; i < count; i++) {
        const struct RESOURCE_OF *resource = &in->resources.items[i];
        struct ANSWER_OF *answer = &out->responses.items[out->responses.count++];
        if (!is_loggers(resource)) {
            assert(other < others->responses.count);
            *answer = others->responses.items[other++];
        } else if (!alter_loggers(request, resource,
                                  names_seen(&names, resource->resource_name) == 1, answer)) {
            return NULL;
        }
    }
    return out;
}

static void finish(struct request *request, void *others)
{
    struct incremental_alter_configs_response *out = alter_all(request, others);
    broker_answer(request, out, out != NULL);
}

void handle_incremental_alter_configs(struct shard *shard, struct request *request)
{
    const struct incremental_alter_configs_request *in = request->message;
    struct incremental_alter_configs_request *others;
    int32_t loggers = 0;
    for (int32_t i = 0; i < in->resources.count; i++)
        loggers += is_loggers(&in->resources.items[i]);
    if (loggers == 0) {
        handle_forwarded(shard, request);
        return;
    }
    if (loggers == in->resources.count) {
        finish(request, NULL);
        return;
    }
    others = broker_array(request, 1, sizeof(*others));
    struct RESOURCE_OF *items =
        broker_array(request, (size_t)(in->resources.count - loggers), sizeof(*items));
    if (others == NULL || items == NULL) {
        request_close(request, "no memory for a request to the control part");
        return;
    }
    *others = *in;
    others->resources.items = items;
    others->resources.count = 0;
    for (int32_t i = 0; i < in->resources.count; i++)
        if (!is_loggers(&in->resources.items[i]))
            items[others->resources.count++] = in->resources.items[i];
    controller_forward(request, others, finish);
}
