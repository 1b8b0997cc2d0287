/* client.h - librdkafka as the everyday commands use it (topic, produce, consume, cluster, ...).
 *
 * The library is loaded when the first of these commands runs, so that a server and the tools pay
 * nothing for it (docs/decisions/0006-linking.md). Its functions are called through `rd`:
 * `client->rd.produceva(...)` is rd_kafka_produceva(...). To use another one: add it to
 * CLIENT_SYMBOLS. */
#pragma once

#include "cli/cli.h"

#include <librdkafka/rdkafka.h>

#define CLIENT_SYMBOLS(X)                                                                          \
    X(conf_new)                                                                                    \
    X(conf_destroy)                                                                                \
    X(conf_set)                                                                                    \
    X(conf_set_opaque)                                                                             \
    X(conf_set_log_cb)                                                                             \
    X(conf_set_error_cb)                                                                           \
    X(conf_set_dr_msg_cb)                                                                          \
    X(new)                                                                                         \
    X(destroy)                                                                                     \
    X(destroy_flags)                                                                               \
    X(opaque)                                                                                      \
    X(err2str)                                                                                     \
    X(err2name)                                                                                    \
    X(last_error)                                                                                  \
    X(poll)                                                                                        \
    X(flush)                                                                                       \
    X(outq_len)                                                                                    \
    X(version_str)                                                                                 \
    X(mem_free)                                                                                    \
    X(clusterid)                                                                                   \
    X(controllerid)                                                                                \
    X(metadata)                                                                                    \
    X(metadata_destroy)                                                                            \
    X(query_watermark_offsets)                                                                     \
    X(offsets_for_times)                                                                           \
    X(topic_partition_list_new)                                                                    \
    X(topic_partition_list_destroy)                                                                \
    X(topic_partition_list_add)                                                                    \
    X(topic_new)                                                                                   \
    X(topic_destroy)                                                                               \
    X(topic_name)                                                                                  \
    X(queue_new)                                                                                   \
    X(queue_destroy)                                                                               \
    X(queue_poll)                                                                                  \
    X(consume_start_queue)                                                                         \
    X(consume_stop)                                                                                \
    X(consume_batch_queue)                                                                         \
    X(subscribe)                                                                                   \
    X(assignment)                                                                                  \
    X(poll_set_consumer)                                                                           \
    X(consumer_poll)                                                                               \
    X(consumer_close)                                                                              \
    X(commit)                                                                                      \
    X(message_destroy)                                                                             \
    X(message_timestamp)                                                                           \
    X(message_headers)                                                                             \
    X(message_errstr)                                                                              \
    X(header_get_all)                                                                              \
    X(headers_new)                                                                                 \
    X(headers_destroy)                                                                             \
    X(header_add)                                                                                  \
    X(headers_copy)                                                                                \
    X(produceva)                                                                                   \
    X(error_code)                                                                                  \
    X(error_string)                                                                                \
    X(error_destroy)                                                                               \
    X(AdminOptions_new)                                                                            \
    X(AdminOptions_destroy)                                                                        \
    X(AdminOptions_set_request_timeout)                                                            \
    X(AdminOptions_set_operation_timeout)                                                          \
    X(NewTopic_new)                                                                                \
    X(NewTopic_destroy)                                                                            \
    X(NewTopic_set_config)                                                                         \
    X(CreateTopics)                                                                                \
    X(CreateTopics_result_topics)                                                                  \
    X(DeleteTopic_new)                                                                             \
    X(DeleteTopic_destroy)                                                                         \
    X(DeleteTopics)                                                                                \
    X(DeleteTopics_result_topics)                                                                  \
    X(NewPartitions_new)                                                                           \
    X(NewPartitions_destroy)                                                                       \
    X(CreatePartitions)                                                                            \
    X(CreatePartitions_result_topics)                                                              \
    X(topic_result_error)                                                                          \
    X(topic_result_error_string)                                                                   \
    X(topic_result_name)                                                                           \
    X(ConfigResource_new)                                                                          \
    X(ConfigResource_destroy)                                                                      \
    X(ConfigResource_set_config)                                                                   \
    X(ConfigResource_configs)                                                                      \
    X(ConfigResource_error)                                                                        \
    X(ConfigResource_error_string)                                                                 \
    X(ConfigEntry_name)                                                                            \
    X(ConfigEntry_value)                                                                           \
    X(ConfigEntry_source)                                                                          \
    X(DescribeConfigs)                                                                             \
    X(DescribeConfigs_result_resources)                                                            \
    X(AlterConfigs)                                                                                \
    X(AlterConfigs_result_resources)                                                               \
    X(event_error)                                                                                 \
    X(event_error_string)                                                                          \
    X(event_CreateTopics_result)                                                                   \
    X(event_DeleteTopics_result)                                                                   \
    X(event_CreatePartitions_result)                                                               \
    X(event_DescribeConfigs_result)                                                                \
    X(event_AlterConfigs_result)                                                                   \
    X(event_destroy)

struct client_library {
#define CLIENT_FIELD(name) __typeof__(&rd_kafka_##name) name;
    CLIENT_SYMBOLS(CLIENT_FIELD)
#undef CLIENT_FIELD
};

/* The options that every such command has, for its table. */
#define CLIENT_OPTIONS                                                                             \
    CLI_OPTION("bootstrap", 'b', "HOST:PORT",                                                      \
               "Where the cluster is reached; several with commas (localhost:9092, or the "        \
               "variable DOHLE_BOOTSTRAP)."),                                                      \
        CLI_OPTION("client-config", 'F', "FILE",                                                   \
                   "Client settings, a NAME=VALUE on each line, by librdkafka's names."),          \
        CLI_OPTION("set", 'X', "NAME=VALUE", "One client setting; may be repeated."),              \
        CLI_OPTION("timeout", 0, "SECONDS", "How long to wait for an answer (10)."),               \
        CLI_FLAG("json", 'j', "Print JSON.")

struct client {
    struct cli *cli;
    struct client_library rd;
    rd_kafka_t *handle; /* NULL: not open. */
    int timeout_ms;
    const char *bootstrap;
    /* Set before client_open by who wants to hear of each record; its opaque is the client. */
    void (*on_delivery)(rd_kafka_t *handle, const rd_kafka_message_t *message, void *opaque);
    char reason[512]; /* The last thing that the library said about a connection. */
};

/* Load the library and make a client of this type from the command's options; `settings` are pairs
 * of name and value that come before the user's, ended by NULL; may be NULL. `out` must stay where
 * it is until client_close, and be zero but for `on_delivery`. CLI_OK, or it was said. */
MUST_USE enum cli_exit client_open(struct cli *cli,
                                   rd_kafka_type_t type,
                                   const char *const *settings,
                                   struct client *out);

/* Also of a client that did not open. */
void client_close(struct client *client);

/* Say that `what` ("topic \"x\"", "the list of topics") failed and what the error means to a
 * person; `detail`, the broker's own words, may be NULL. CLI_FAILED. */
int client_fail(struct client *client,
                const char *what,
                rd_kafka_resp_err_t error,
                const char *detail);

/* Open a client of this type, ask for the metadata of all topics, and call `use`, whose exit code
 * is the command's. Else CLI_FAILED or what client_open says; it was said. */
MUST_USE int client_run(struct cli *cli,
                        rd_kafka_type_t type,
                        int (*use)(struct client *client,
                                   const struct rd_kafka_metadata *metadata));

/* Metadata of all topics, or of one; freed by the library's metadata_destroy. NULL: it was said.
 * Never creates a topic. */
MUST_USE const struct rd_kafka_metadata *client_metadata(struct client *client);

/* The topic in metadata; NULL: there is none, which was said with the nearest name. */
MUST_USE const rd_kafka_metadata_topic_t *client_topic(struct client *client,
                                                       const struct rd_kafka_metadata *metadata,
                                                       const char *name);

/* ---- transfers that may take long ------------------------------------------------------------ */

/* A line on standard error that tells how far it is, if that is a terminal. */
struct client_progress {
    bool on;
    int64_t start_ms, shown_ms;
    uint64_t records, bytes;
    double part; /* 0 to 1; below 0: not known. */
};
void client_progress_begin(struct client_progress *progress);
/* Cheap: looks at the clock, and prints four times a second. */
void client_progress_tell(struct client_progress *progress);
/* Take the line away. */
void client_progress_end(struct client_progress *progress);

/* "12,345" and "3.4 MiB", in the buffer given. */
#define CLIENT_NUMBER_BYTES 40
const char *client_count_text(uint64_t number, char out[CLIENT_NUMBER_BYTES]);
const char *client_bytes_text(uint64_t bytes, char out[CLIENT_NUMBER_BYTES]);
