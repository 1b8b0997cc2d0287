/* controller_append.c - the metadata log takes the records of a step, or says why not.
 *
 * A step that the log does not take has not happened (cluster_refused): its caller gets an error,
 * periodic work is put off. So a full disk or a lack of memory stops changes of the metadata, and
 * nothing else, for as long as it lasts. What may give room back uses the directory's last room
 * (log_append.last_room). A batch that is in the log and that there is no memory to apply is
 * applied before anything else is decided (controller_catch_up). What is not one of these (the
 * directory has failed, a record that does not hold) ends the control part. */
#include "broker/controller_inside.h"
#include "broker/shards.h"
#include "gen/alter_client_quotas_response.h"
#include "gen/alter_configs_response.h"
#include "gen/alter_user_scram_credentials_response.h"
#include "gen/create_acls_response.h"
#include "gen/create_partitions_response.h"
#include "gen/create_topics_response.h"
#include "gen/delete_acls_response.h"
#include "gen/delete_topics_response.h"
#include "gen/incremental_alter_configs_response.h"

#define RECORD_BYTES 1024u /* Of memory that a record takes: a replica and its log, */
#define IMAGE_BYTES  512u  /* and its place in the image of a shard. */

#define AGAIN_MS 1000  /* Periodic work that was refused. */
#define SAID_MS  30000 /* Between two lines about refusals that go on. */

void controller_step_start(struct controller *c, struct step *step, struct arena *arena)
{
    step_begin(step, arena, io_now_ms(c->node->io), io_wall_ms(c->node->io));
    step->horizon_ms = shard_horizon_all_ms(c->node->shard);
    step->random[0] = io_random(c->node->io, IO_RANDOM_IDS) | 1;
    step->random[1] = io_random(c->node->io, IO_RANDOM_IDS);
    step->offset_next = log_end_assigned(c->log);
}

/* ---- appending ------------------------------------------------------------------------------- */

void controller_pending_free(struct controller *c, struct pending *pending)
{
    if (pending == NULL) return;
    shards_unpublish(c->node, &pending->letters);
    buf_release(pending->buf);
    mem_put(c->node->mem, pending, sizeof(*pending));
}

/* With all memory that telling of it takes. NULL: none. */
static struct pending *pending_new(struct controller *c, struct view bytes)
{
    struct node *node = c->node;
    struct pending *pending = mem_get(node->mem, sizeof(*pending));
    if (pending == NULL) return NULL;
    *pending = (struct pending){.buf = buf_new(node->mem, bytes.size)};
    if (!shards_prepare(node, &pending->letters) || pending->buf == NULL) {
        controller_pending_free(c, pending);
        return NULL;
    }
    memcpy(pending->buf->data, bytes.data, bytes.size);
    return pending;
}

int controller_append(struct controller *c, const struct step *step, int how, int64_t *base)
{
    struct log_appended appended;
    sink_reset(&c->sink);
    if (!metadata_batch_put(&c->sink, step->arena, step, (how & APPEND_CONTROL) != 0, 0,
                            quorum_epoch(c->quorum)))
        return c->sink.fault == SINK_LIMIT ? LOG_E_SEGMENT : LOG_E_MEMORY;
    struct pending *pending = pending_new(c, sink_view(&c->sink));
    if (pending == NULL) return LOG_E_MEMORY;
    struct log_append in = {
        .buf = pending->buf,
        .size_bytes = pending->buf->size_bytes,
        .leader_epoch = quorum_epoch(c->quorum),
        .wall_ms = step->wall_ms,
        .origin = LOG_COORDINATOR,
        .produce_version = INT16_MAX,
        .last_room = (how & APPEND_LAST_ROOM) != 0,
    };
    int result = log_append(c->log, &in, &appended);
    if (result != LOG_OK) {
        controller_pending_free(c, pending);
        return result;
    }
    pending->offset_end = appended.offset_end;
    list_append(&c->pending, &pending->link);
    *base = appended.offset_first;
    return LOG_OK;
}

/* ---- refusing -------------------------------------------------------------------------------- */

/* Does it pass by itself, or with the request? */
static bool result_passes(int result)
{
    return result == LOG_E_FULL || result == LOG_E_BUSY || result == LOG_E_MEMORY ||
           result == LOG_E_SEGMENT;
}

static const char *log_dir_path(const struct controller *c)
{
    struct log_dir_info info;
    logs_dir_info(c->node->logs, 0, &info);
    return info.path;
}

static void refused_say(struct controller *c, int result)
{
    int64_t now_ms = io_now_ms(c->node->io);
    metric_add(&c->node->shard->metrics, METRIC_METADATA_REFUSED, 1);
    c->refused++;
    if (c->refused > 1 && now_ms - c->refused_said_ms < SAID_MS) return;
    c->refused_said_ms = now_ms;
    if (result == LOG_E_FULL)
        say(c->node->say, SAY_ERROR, SAY_IN_CONTROLLER,
            "changes of the metadata are refused with KAFKA_STORAGE_ERROR (%u so far): log "
            "directory \"%s\" is full; free space there, or delete topics: it goes on by itself",
            c->refused, log_dir_path(c));
    else
        say(c->node->say, SAY_ERROR, SAY_IN_CONTROLLER,
            "changes of the metadata are refused with REQUEST_TIMED_OUT (%u so far): the memory "
            "is used up; raise dohle.memory.max, or delete topics: it goes on by itself",
            c->refused);
}

/* Something was taken again, or could be. */
static void refused_end(struct controller *c)
{
    if (c->refused == 0) return;
    say(c->node->say, SAY_INFO, SAY_IN_CONTROLLER,
        "the metadata log takes changes again; %u were refused meanwhile", c->refused);
    c->refused = 0;
}

void controller_refused_turn(struct controller *c)
{
    struct log_dir_info info;
    if (c->refused == 0) return;
    logs_dir_info(c->node->logs, 0, &info);
    if (c->refused_for == LOG_E_FULL && info.error == 0 && !info.full) refused_end(c);
}

/* Does the metadata grow into the last eighth of a bounded memory? What is in the log must be
 * applied by all shards, and their replicas made; and who deletes a topic needs memory too. */
static bool grows_too_big(const struct controller *c, const struct step *step, int how)
{
    const struct mem *mem = c->node->mem;
    if (mem->limit_bytes == 0 || (how & APPEND_LAST_ROOM) != 0) return false;
    uint64_t need = (uint64_t)step->record_count * (RECORD_BYTES + c->node->count * IMAGE_BYTES);
    return mem_used(mem) + need > mem->limit_bytes - mem->limit_bytes / 8;
}

int controller_commit_step(struct controller *c, const struct step *step, int how)
{
    int64_t base;
    if (step->record_count == 0) return LOG_OK;
    int result =
        grows_too_big(c, step, how) ? LOG_E_MEMORY : controller_append(c, step, how, &base);
    if (result == LOG_OK) {
        if (c->refused_for == LOG_E_MEMORY) refused_end(c);
        switch (cluster_apply(c->cluster, step, base)) {
        case IMAGE_OK: break;
        case IMAGE_E_MEMORY: controller_unapplied(c); break;
        case IMAGE_E_FAULT: controller_fail(c, "a record that it made cannot be applied"); break;
        }
        return LOG_OK;
    }
    cluster_refused(c->cluster, step);
    if (!result_passes(result)) {
        controller_fail(c, "the metadata log takes no records");
    } else {
        c->again_ms = io_now_ms(c->node->io) + AGAIN_MS;
        if (result == LOG_E_FULL || result == LOG_E_MEMORY) {
            c->refused_for = result;
            refused_say(c, result);
        }
    }
    return result;
}

/* ---- what a refused request is answered ------------------------------------------------------ */

int16_t controller_refused_error(int result)
{
    switch (result) {
    case LOG_E_FULL: return KAFKA_KAFKA_STORAGE_ERROR;
    case LOG_E_MEMORY: return KAFKA_REQUEST_TIMED_OUT;
    default: return KAFKA_UNKNOWN_SERVER_ERROR;
    }
}

static struct view refused_words(int16_t error)
{
    switch (error) {
    case KAFKA_KAFKA_STORAGE_ERROR:
        return VIEW("the log directory of the metadata is full; nothing was changed");
    case KAFKA_REQUEST_TIMED_OUT: return VIEW("the node's memory is used up; nothing was changed");
    default: return VIEW("the records are more than one batch holds; nothing was changed");
    }
}

/* Where a response without an error of its own has its items, each with one. */
struct refused_items {
    int16_t api_key;
    uint16_t items_at, size_bytes, error_at, words_at;
};

#define ITEMS(key, at, item)                                                                       \
    {                                                                                              \
        (key), (at), sizeof(struct item), offsetof(struct item, error_code),                       \
            offsetof(struct item, error_message)                                                   \
    }

static const struct refused_items refused_rows[] = {
    ITEMS(19,
          offsetof(struct create_topics_response, topics),
          create_topics_response_creatable_topic_result),
    ITEMS(20,
          offsetof(struct delete_topics_response, responses),
          delete_topics_response_deletable_topic_result),
    ITEMS(30,
          offsetof(struct create_acls_response, results),
          create_acls_response_acl_creation_result),
    ITEMS(31,
          offsetof(struct delete_acls_response, filter_results),
          delete_acls_response_delete_acls_filter_result),
    ITEMS(33,
          offsetof(struct alter_configs_response, responses),
          alter_configs_response_alter_configs_resource_response),
    ITEMS(37,
          offsetof(struct create_partitions_response, results),
          create_partitions_response_create_partitions_topic_result),
    ITEMS(44,
          offsetof(struct incremental_alter_configs_response, responses),
          incremental_alter_configs_response_alter_configs_resource_response),
    ITEMS(49,
          offsetof(struct alter_client_quotas_response, entries),
          alter_client_quotas_response_entry_data),
    ITEMS(51,
          offsetof(struct alter_user_scram_credentials_response, results),
          alter_user_scram_credentials_response_alter_user_scram_credentials_result),
};

/* What only a topic that was created has. */
static void refused_topics(struct create_topics_response *out)
{
    for (int32_t i = 0; i < out->topics.count; i++) {
        struct create_topics_response_creatable_topic_result *topic = &out->topics.items[i];
        if (topic->error_code == KAFKA_NONE) {
            topic->topic_id = (struct uuid){0};
            topic->num_partitions = topic->replication_factor = -1;
            topic->configs.count = 0;
        }
    }
}

bool controller_refuse_items(const struct controller_call *call, int16_t error)
{
    for (size_t i = 0; i < ARRAY_SIZE(refused_rows); i++) {
        const struct refused_items *row = &refused_rows[i];
        if (row->api_key != call->api_key) continue;
        struct wire_array items;
        if (call->api_key == 19) refused_topics(call->out);
        memcpy(&items, (const uint8_t *)call->out + row->items_at, sizeof(items));
        for (int32_t j = 0; j < items.count; j++) {
            uint8_t *item = (uint8_t *)items.items + (size_t)j * row->size_bytes;
            int16_t *code = (int16_t *)(void *)(item + row->error_at);
            if (*code != KAFKA_NONE) continue;
            *code = error;
            *(struct view *)(void *)(item + row->words_at) = refused_words(error);
        }
        return items.count > 0;
    }
    return false;
}
