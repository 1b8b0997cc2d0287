/* consume_group.c - `dohle consume --group`: a member that prints its share and commits it.
 *
 * What is committed has been written out before: an end at the wrong moment prints records twice,
 * and loses none. Without --follow it ends when every partition that it was given has been read to
 * its end. */
#include "cli/clock.h"
#include "cli/consume.h"

#define POLL_MS   100
#define COMMIT_MS 1000 /* How often what was printed is committed. */

struct ends {
    int32_t *ids; /* Partitions that were read to their end. */
    uint32_t count;
    uint32_t room;
};

static bool ends_have(const struct ends *ends, int32_t id)
{
    for (uint32_t i = 0; i < ends->count; i++)
        if (ends->ids[i] == id) return true;
    return false;
}

/* Is everything that we were given read to its end? Nothing given: no. */
static bool all_ended(struct consume_grouped *grouped, const struct ends *ends)
{
    const struct client *client = grouped->client;
    rd_kafka_topic_partition_list_t *given = NULL;
    if (ends->count == 0 || client->rd.assignment(client->handle, &given) != 0) return false;
    bool all = given->cnt > 0;
    for (int i = 0; i < given->cnt; i++)
        all = all && ends_have(ends, given->elems[i].partition);
    client->rd.topic_partition_list_destroy(given);
    return all;
}

/* Write out, then commit. */
static enum cli_exit settle(struct consume_grouped *grouped)
{
    struct client *client = grouped->client;
    enum cli_exit code = cli_flush(client->cli);
    if (code != CLI_OK) return code;
    rd_kafka_resp_err_t error = client->rd.commit(client->handle, NULL, 0);
    if (error == RD_KAFKA_RESP_ERR_NO_ERROR || error == RD_KAFKA_RESP_ERR__NO_OFFSET) return CLI_OK;
    return (enum cli_exit)client_fail(client, "the commit", error, NULL);
}

static enum cli_exit take(struct consume_grouped *grouped,
                          struct ends *ends,
                          const rd_kafka_message_t *message)
{
    struct client *client = grouped->client;
    if (message->err == RD_KAFKA_RESP_ERR__PARTITION_EOF) {
        if (!ends_have(ends, message->partition) && ends->count < ends->room)
            ends->ids[ends->count++] = message->partition;
        return CLI_OK;
    }
    if (message->err != RD_KAFKA_RESP_ERR_NO_ERROR)
        return (enum cli_exit)client_fail(client, "reading", message->err,
                                          client->rd.message_errstr(message));
    consume_print(grouped->printer, message);
    grouped->progress->records++;
    grouped->progress->bytes += message->len + message->key_len;
    return CLI_OK;
}

static enum cli_exit loop(struct consume_grouped *grouped, struct ends *ends)
{
    struct client *client = grouped->client;
    enum cli_exit code = CLI_OK;
    int64_t commit_ms = clock_us(CLOCK_MONOTONIC) / 1000 + COMMIT_MS;
    while (code == CLI_OK && !*grouped->stopped) {
        if (grouped->limit > 0 && grouped->progress->records >= grouped->limit) break;
        if (!grouped->follow && all_ended(grouped, ends)) break;
        rd_kafka_message_t *message = client->rd.consumer_poll(client->handle, POLL_MS);
        if (message != NULL) {
            code = take(grouped, ends, message);
            client->rd.message_destroy(message);
        }
        int64_t now_ms = clock_us(CLOCK_MONOTONIC) / 1000;
        if (code == CLI_OK && (message == NULL || now_ms >= commit_ms)) {
            code = settle(grouped);
            commit_ms = now_ms + COMMIT_MS;
        }
        client_progress_tell(grouped->progress);
    }
    return code == CLI_OK ? settle(grouped) : code;
}

enum cli_exit consume_grouped(struct consume_grouped *grouped)
{
    struct client *client = grouped->client;
    struct ends ends = {.room = CONSUME_PARTITIONS_MAX};
    const rd_kafka_metadata_t *metadata = client_metadata(client);
    if (metadata == NULL) return CLI_FAILED;
    bool known = client_topic(client, metadata, grouped->printer->topic) != NULL;
    client->rd.metadata_destroy(metadata);
    if (!known) return CLI_FAILED;
    ends.ids = mem_get(client->cli->mem, ends.room * sizeof(*ends.ids));
    if (ends.ids == NULL) return (enum cli_exit)cli_fail(client->cli, CLI_FAILED, "out of memory");
    rd_kafka_topic_partition_list_t *topics = client->rd.topic_partition_list_new(1);
    client->rd.topic_partition_list_add(topics, grouped->printer->topic, RD_KAFKA_PARTITION_UA);
    (void)client->rd.poll_set_consumer(client->handle);
    rd_kafka_resp_err_t error = client->rd.subscribe(client->handle, topics);
    client->rd.topic_partition_list_destroy(topics);
    enum cli_exit code = error == RD_KAFKA_RESP_ERR_NO_ERROR
                             ? loop(grouped, &ends)
                             : (enum cli_exit)client_fail(client, "the subscription", error, NULL);
    (void)client->rd.consumer_close(client->handle);
    mem_put(client->cli->mem, ends.ids, ends.room * sizeof(*ends.ids));
    return code;
}
