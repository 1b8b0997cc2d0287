/* topic.c - `dohle topic create`, `delete`, `alter`. topic_show.c lists and describes. */
#include "cli/topic.h"

static const struct cli_range partitions_range = {1, 100000};

/* ---- admin calls ----------------------------------------------------------------------------- */

struct topic_call topic_call(struct client *client, rd_kafka_admin_op_t op)
{
    char error[256];
    rd_kafka_AdminOptions_t *options = client->rd.AdminOptions_new(client->handle, op);
    assert(options != NULL);
    /* The values are in range, so it cannot fail; the operation's timeout is not for all calls. */
    (void)client->rd.AdminOptions_set_request_timeout(options, client->timeout_ms, error,
                                                      sizeof(error));
    if (op == RD_KAFKA_ADMIN_OP_CREATETOPICS || op == RD_KAFKA_ADMIN_OP_DELETETOPICS ||
        op == RD_KAFKA_ADMIN_OP_CREATEPARTITIONS)
        (void)client->rd.AdminOptions_set_operation_timeout(options, client->timeout_ms, error,
                                                            sizeof(error));
    return (struct topic_call){client->rd.queue_new(client->handle), options};
}

rd_kafka_event_t *topic_called(struct client *client, struct topic_call call, const char *what)
{
    rd_kafka_event_t *event = client->rd.queue_poll(call.queue, client->timeout_ms + 1000);
    rd_kafka_resp_err_t error =
        event == NULL ? RD_KAFKA_RESP_ERR__TIMED_OUT : client->rd.event_error(event);
    client->rd.AdminOptions_destroy(call.options);
    client->rd.queue_destroy(call.queue);
    if (error == RD_KAFKA_RESP_ERR_NO_ERROR) return event;
    (void)client_fail(client, what, error,
                      event == NULL ? NULL : client->rd.event_error_string(event));
    if (event != NULL) client->rd.event_destroy(event);
    return NULL;
}

int topic_results(struct client *client,
                  const rd_kafka_topic_result_t **results,
                  size_t count,
                  const char *done)
{
    int code = CLI_OK;
    bool json = cli_has(client->cli, "json");
    for (size_t i = 0; i < count; i++) {
        const char *name = client->rd.topic_result_name(results[i]);
        rd_kafka_resp_err_t error = client->rd.topic_result_error(results[i]);
        bool there = error == RD_KAFKA_RESP_ERR_TOPIC_ALREADY_EXISTS;
        char what[320];
        (void)snprintf(what, sizeof(what), "topic \"%s\"", name);
        if (there && strcmp(done, "created") == 0 && cli_has(client->cli, "if-not-exists")) {
            if (!json) out_format(&client->cli->out, "%s is there already\n", what);
        } else if (error != RD_KAFKA_RESP_ERR_NO_ERROR) {
            code =
                client_fail(client, what, error, client->rd.topic_result_error_string(results[i]));
        } else if (json) {
            out_text(&client->cli->out, "{\"topic\":");
            out_quoted(&client->cli->out, view_of_string(name));
            out_format(&client->cli->out, ",\"done\":\"%s\"}\n", done);
        } else {
            out_format(&client->cli->out, "%s %s\n", done, what);
        }
    }
    return code;
}

/* ---- create ---------------------------------------------------------------------------------- */

static enum cli_exit split(struct client *client, const char *text, char *name, size_t room)
{
    const char *equals = strchr(text, '=');
    if (equals == NULL || equals == text || (size_t)(equals - text) >= room)
        return (enum cli_exit)cli_fail(client->cli, CLI_USAGE,
                                       "--config takes NAME=VALUE, not \"%s\"", text);
    memcpy(name, text, (size_t)(equals - text));
    name[equals - text] = '\0';
    return CLI_OK;
}

static enum cli_exit new_topic(struct client *client,
                               const char *name,
                               const long long sizes[2],
                               rd_kafka_NewTopic_t **out)
{
    char error[256], setting[128];
    const char *text;
    int at = 0;
    enum cli_exit code = CLI_OK;

    *out = client->rd.NewTopic_new(name, (int)sizes[0], (int)sizes[1], error, sizeof(error));
    if (*out == NULL)
        return (enum cli_exit)cli_fail(client->cli, CLI_USAGE, "topic \"%s\": %s", name, error);
    while (code == CLI_OK && (text = cli_next(client->cli, "config", &at)) != NULL) {
        code = split(client, text, setting, sizeof(setting));
        if (code == CLI_OK)
            (void)client->rd.NewTopic_set_config(*out, setting, strchr(text, '=') + 1);
    }
    return code;
}

static int create_all(struct client *client, const long long sizes[2])
{
    struct cli *cli = client->cli;
    rd_kafka_NewTopic_t *topics[CLI_WORDS_MAX] = {NULL};
    enum cli_exit code = CLI_OK;
    size_t count = 0;

    for (; count < (size_t)cli->word_count && code == CLI_OK; count++)
        code = new_topic(client, cli->words[count], sizes, &topics[count]);
    int result = (int)code;
    if (code == CLI_OK) {
        struct topic_call call = topic_call(client, RD_KAFKA_ADMIN_OP_CREATETOPICS);
        client->rd.CreateTopics(client->handle, topics, count, call.options, call.queue);
        rd_kafka_event_t *event = topic_called(client, call, "the new topic");
        result = CLI_FAILED;
        if (event != NULL) {
            size_t found = 0;
            const rd_kafka_topic_result_t **results = client->rd.CreateTopics_result_topics(
                client->rd.event_CreateTopics_result(event), &found);
            result = topic_results(client, results, found, "created");
            client->rd.event_destroy(event);
        }
    }
    for (size_t i = 0; i < count; i++)
        if (topics[i] != NULL) client->rd.NewTopic_destroy(topics[i]);
    return result;
}

static int run_create(struct cli *cli)
{
    long long sizes[2] = {-1, -1}; /* Partitions, replicas; -1: the broker's default. */
    struct client client = {0};
    enum cli_exit code = cli_integer(cli, "partitions", partitions_range, &sizes[0]);
    if (code == CLI_OK)
        code = cli_integer(cli, "replication-factor", (struct cli_range){1, 1000}, &sizes[1]);
    if (code != CLI_OK) return (int)code;
    code = client_open(cli, RD_KAFKA_PRODUCER, NULL, &client);
    int result = code == CLI_OK ? create_all(&client, sizes) : (int)code;
    client_close(&client);
    return result;
}

/* ---- delete ---------------------------------------------------------------------------------- */

static int delete_all(struct client *client)
{
    struct cli *cli = client->cli;
    rd_kafka_DeleteTopic_t *topics[CLI_WORDS_MAX];
    size_t count = (size_t)cli->word_count, found = 0;
    int result = CLI_FAILED;

    for (size_t i = 0; i < count; i++)
        topics[i] = client->rd.DeleteTopic_new(cli->words[i]);
    struct topic_call call = topic_call(client, RD_KAFKA_ADMIN_OP_DELETETOPICS);
    client->rd.DeleteTopics(client->handle, topics, count, call.options, call.queue);
    rd_kafka_event_t *event = topic_called(client, call, "the deletion");
    if (event != NULL) {
        const rd_kafka_topic_result_t **results = client->rd.DeleteTopics_result_topics(
            client->rd.event_DeleteTopics_result(event), &found);
        result = topic_results(client, results, found, "deleted");
        client->rd.event_destroy(event);
    }
    for (size_t i = 0; i < count; i++)
        client->rd.DeleteTopic_destroy(topics[i]);
    return result;
}

/* All that are named must be there, before the first is deleted. */
static int delete_known(struct client *client, const struct rd_kafka_metadata *metadata)
{
    for (int i = 0; i < client->cli->word_count; i++)
        if (client_topic(client, metadata, client->cli->words[i]) == NULL) return CLI_FAILED;
    return delete_all(client);
}

static int run_delete(struct cli *cli)
{
    return client_run(cli, RD_KAFKA_PRODUCER, delete_known);
}

/* ---- alter ----------------------------------------------------------------------------------- */

static int add_partitions(struct client *client, const char *name, size_t partitions)
{
    char error[256];
    int result = CLI_FAILED;
    size_t found = 0;
    rd_kafka_NewPartitions_t *more =
        client->rd.NewPartitions_new(name, partitions, error, sizeof(error));

    if (more == NULL) return cli_fail(client->cli, CLI_USAGE, "topic \"%s\": %s", name, error);
    struct topic_call call = topic_call(client, RD_KAFKA_ADMIN_OP_CREATEPARTITIONS);
    client->rd.CreatePartitions(client->handle, &more, 1, call.options, call.queue);
    rd_kafka_event_t *event = topic_called(client, call, "more partitions");
    if (event != NULL) {
        const rd_kafka_topic_result_t **results = client->rd.CreatePartitions_result_topics(
            client->rd.event_CreatePartitions_result(event), &found);
        result = topic_results(client, results, found, "enlarged");
        client->rd.event_destroy(event);
    }
    client->rd.NewPartitions_destroy(more);
    return result;
}

/* Is this setting changed by the command line? */
static bool is_changed(struct client *client, const char *name)
{
    const char *text;
    int at = 0;
    size_t size = strlen(name);
    while ((text = cli_next(client->cli, "config", &at)) != NULL)
        if (strncmp(text, name, size) == 0 && text[size] == '=') return true;
    at = 0;
    while ((text = cli_next(client->cli, "unset", &at)) != NULL)
        if (strcmp(text, name) == 0) return true;
    return false;
}

/* The library's AlterConfigs replaces all settings of a topic: those that stay are sent again. */
static enum cli_exit fill(struct client *client,
                          rd_kafka_ConfigResource_t *resource,
                          const char *name)
{
    const rd_kafka_ConfigEntry_t **entries;
    char setting[128];
    const char *text;
    size_t count;
    int at = 0;
    enum cli_exit code = CLI_OK;

    rd_kafka_event_t *event = topic_configs(client, name, &entries, &count);
    if (event == NULL) return CLI_FAILED;
    for (size_t i = 0; i < count; i++) {
        const char *entry = client->rd.ConfigEntry_name(entries[i]);
        if (client->rd.ConfigEntry_source(entries[i]) !=
            RD_KAFKA_CONFIG_SOURCE_DYNAMIC_TOPIC_CONFIG)
            continue;
        if (!is_changed(client, entry))
            (void)client->rd.ConfigResource_set_config(resource, entry,
                                                       client->rd.ConfigEntry_value(entries[i]));
    }
    client->rd.event_destroy(event);
    while (code == CLI_OK && (text = cli_next(client->cli, "config", &at)) != NULL) {
        code = split(client, text, setting, sizeof(setting));
        if (code == CLI_OK)
            (void)client->rd.ConfigResource_set_config(resource, setting, strchr(text, '=') + 1);
    }
    return code;
}

static int send_settings(struct client *client,
                         rd_kafka_ConfigResource_t *resource,
                         const char *name)
{
    char what[320];
    size_t found = 0;
    int result = CLI_FAILED;

    (void)snprintf(what, sizeof(what), "topic \"%s\"", name);
    struct topic_call call = topic_call(client, RD_KAFKA_ADMIN_OP_ALTERCONFIGS);
    client->rd.AlterConfigs(client->handle, &resource, 1, call.options, call.queue);
    rd_kafka_event_t *event = topic_called(client, call, what);
    if (event != NULL) {
        const rd_kafka_ConfigResource_t **results = client->rd.AlterConfigs_result_resources(
            client->rd.event_AlterConfigs_result(event), &found);
        rd_kafka_resp_err_t error = client->rd.ConfigResource_error(results[0]);
        if (error == RD_KAFKA_RESP_ERR_NO_ERROR) {
            if (!cli_has(client->cli, "json")) out_format(&client->cli->out, "altered %s\n", what);
            result = CLI_OK;
        } else {
            result = client_fail(client, what, error,
                                 client->rd.ConfigResource_error_string(results[0]));
        }
        client->rd.event_destroy(event);
    }
    return result;
}

static int alter_settings(struct client *client, const char *name)
{
    rd_kafka_ConfigResource_t *resource =
        client->rd.ConfigResource_new(RD_KAFKA_RESOURCE_TOPIC, name);
    enum cli_exit code = fill(client, resource, name);
    int result = code == CLI_OK ? send_settings(client, resource, name) : (int)code;
    client->rd.ConfigResource_destroy(resource);
    return result;
}

static int alter_known(struct client *client, const struct rd_kafka_metadata *metadata)
{
    struct cli *cli = client->cli;
    const char *name = cli->words[0];
    long long partitions = 0;
    if (client_topic(client, metadata, name) == NULL) return CLI_FAILED;
    int result = (int)cli_integer(cli, "partitions", partitions_range, &partitions);
    if (result == CLI_OK && (cli_has(cli, "config") || cli_has(cli, "unset")))
        result = alter_settings(client, name);
    if (result == CLI_OK && partitions > 0)
        result = add_partitions(client, name, (size_t)partitions);
    return result;
}

static int run_alter(struct cli *cli)
{
    long long partitions = 0;
    bool settings = cli_has(cli, "config") || cli_has(cli, "unset");
    enum cli_exit code = cli_integer(cli, "partitions", partitions_range, &partitions);
    if (code != CLI_OK) return (int)code;
    if (partitions == 0 && !settings) {
        cli_fail(cli, CLI_USAGE, "nothing is to be altered");
        cli_hint(cli, "give --partitions N, --config NAME=VALUE or --unset NAME");
        return CLI_USAGE;
    }
    return client_run(cli, RD_KAFKA_PRODUCER, alter_known);
}

/* ---- the tables ------------------------------------------------------------------------------ */

static const struct cli_option create_options[] = {
    CLI_OPTION("partitions", 'p', "N", "Partitions (the broker's num.partitions)."),
    CLI_OPTION("replication-factor", 'r', "N", "Replicas (the broker's default)."),
    CLI_OPTION("config", 'c', "NAME=VALUE", "A setting of the topic; may be repeated."),
    CLI_FLAG("if-not-exists", 0, "A topic that is there already is no error."),
    CLIENT_OPTIONS,
    CLI_OPTIONS_END,
};

extern const struct cli_command command_topic_create;
const struct cli_command command_topic_create = {
    .name = "topic create",
    .group = CLI_TALK,
    .summary = "make topics",
    .arguments = "NAME... [--partitions N] [--config NAME=VALUE]... [-b HOST:PORT]",
    .about = "    dohle topic create words --partitions 3 --config retention.ms=3600000",
    .options = create_options,
    .words_min = 1,
    .words_max = CLI_WORDS_MAX,
    .run = run_create,
};

static const struct cli_option delete_options[] = {CLIENT_OPTIONS, CLI_OPTIONS_END};

extern const struct cli_command command_topic_delete;
const struct cli_command command_topic_delete = {
    .name = "topic delete",
    .group = CLI_TALK,
    .summary = "delete topics with all their records",
    .arguments = "NAME... [-b HOST:PORT]",
    .about = "If one of them does not exist, none is deleted.",
    .options = delete_options,
    .words_min = 1,
    .words_max = CLI_WORDS_MAX,
    .run = run_delete,
};

static const struct cli_option alter_options[] = {
    CLI_OPTION("partitions", 'p', "N", "Grow to N partitions; there is no way back."),
    CLI_OPTION("config", 'c', "NAME=VALUE", "Set a setting of the topic; may be repeated."),
    CLI_OPTION("unset", 'u', "NAME", "Let a setting have its default again; may be repeated."),
    CLIENT_OPTIONS,
    CLI_OPTIONS_END,
};

extern const struct cli_command command_topic_alter;
const struct cli_command command_topic_alter = {
    .name = "topic alter",
    .group = CLI_TALK,
    .summary = "change a topic's settings, or give it more partitions",
    .arguments = "NAME [--partitions N] [--config NAME=VALUE]... [--unset NAME]... [-b HOST:PORT]",
    .options = alter_options,
    .words_min = 1,
    .words_max = 1,
    .run = run_alter,
};
