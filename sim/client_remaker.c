/* client_remaker.c - it alone makes, fills, reads and deletes the topics of its name, one after the
 * other: make, write some batches, read all, delete, ask for the one that is gone.
 *
 * Every topic has an id of its own, for ever (I16). What is read by name or by id was written to
 * this topic: nothing of one before it, at no offset; it begins at 0 and holds all that was
 * acknowledged (I1, I2). A topic whose deletion was acknowledged is gone (I17): its id brings
 * UNKNOWN_TOPIC_ID to a fetch and to a produce, its name UNKNOWN_TOPIC_OR_PARTITION, also after a
 * crash; nothing but the deletion that was asked for takes one away (I20). */
#include "sim/client_remaker.h"

#include "base/bytes.h"
#include "gen/create_topics_response.h"
#include "gen/delete_topics_response.h"
#include "gen/errors.h"
#include "gen/fetch_response.h"
#include "gen/metadata_response.h"
#include "gen/produce_response.h"
#include "record/batch_build.h"
#include "sim/client_own.h"

#define MAKES_MAX   200u
#define BATCHES_MAX 8u
#define STUCK_MS    10000
#define LINGERS_MS  5000 /* For so long another shard may not have heard of a deletion. */

enum remaker_state {
    REMAKER_MAKE,
    REMAKER_LOOK, /* It is there already: the make before was taken. Which one is it? */
    REMAKER_WRITE,
    REMAKER_READ,
    REMAKER_REST,
    REMAKER_DELETE,
    REMAKER_GONE_NAME, /* Fetch what is gone, by its name; */
    REMAKER_GONE_ID,   /* by its id; */
    REMAKER_GONE_PUT,  /* write to its id. */
};

struct remaker_batch {
    int64_t offset; /* -1: not acknowledged. */
    uint32_t count;
};

struct client_remaker {
    struct client_own own;
    enum remaker_state state;
    struct uuid ids[MAKES_MAX]; /* Of all topics, the present one last. */
    uint32_t made;
    uint32_t asked;  /* Times that its deletion was sent. */
    int64_t gone_ms; /* When its deletion was acknowledged. */
    bool reading;    /* All of it is wanted. */
    struct remaker_batch batches[BATCHES_MAX];
    uint32_t batch_count, wanted;
    int64_t next, moved_ms; /* Of the read; when it last went on. */
    uint32_t at;            /* The batch that is to be read next. */
};

static struct client_remaker *remaker_of(struct client *client)
{
    return container_of(container_of(client, struct client_own, client), struct client_remaker,
                        own);
}

/* ---- asking ---------------------------------------------------------------------------------- */

/* A value tells the topic, the batch and the place in it. */
static void remaker_send(struct client_remaker *remaker)
{
    struct client_own *own = &remaker->own;
    struct batch_build build;
    struct view records;
    uint8_t value[12];
    uint32_t batch = remaker->batch_count == 0 ? 0 : remaker->batch_count - 1;
    uint32_t count = remaker->batch_count == 0 ? 1 : remaker->batches[batch].count;
    sink_reset(&own->sink);
    batch_build_begin(&build, NULL, &own->sink, &batch_build_plain);
    for (uint32_t i = 0; i < count; i++) {
        store_be32(value, remaker->made);
        store_be32(value + 4, batch);
        store_be32(value + 8, i);
        batch_build_add(&build, &(struct record_input){.timestamp_ms = io_wall_ms(own->client.io),
                                                       .key = VIEW_NULL,
                                                       .value = view_of(value, sizeof(value))});
    }
    enum record_fault fault = batch_build_finish(&build, -1, &records);
    assert(fault == RECORD_OK);
    /* By id: one by name that got stuck on a broken connection may reach the next topic. */
    client_own_produce(own, records, 13);
}

static void remaker_fetch(struct client_remaker *remaker, int64_t offset, bool by_id)
{
    client_own_fetch(&remaker->own,
                     &(struct client_own_fetch){.offset = offset,
                                                .id = remaker->own.id,
                                                .version = by_id ? CLIENT_OWN_FETCH_BY_ID : 12});
}

static void remaker_write(struct client_remaker *remaker)
{
    struct client *client = &remaker->own.client;
    bool open = remaker->batch_count > 0 && remaker->batches[remaker->batch_count - 1].offset < 0;
    if (!open && (remaker->batch_count >= remaker->wanted || !client->storm)) {
        remaker->state = REMAKER_READ;
        remaker->next = 0;
        remaker->at = 0;
        remaker->moved_ms = client_now_ms(client);
        remaker_fetch(remaker, 0, chance_percent(&client->chance, 50));
        return;
    }
    if (!open)
        remaker->batches[remaker->batch_count++] =
            (struct remaker_batch){.offset = -1, .count = 1 + chance_below(&client->chance, 6)};
    remaker_send(remaker);
}

static void remaker_rest(struct client_remaker *remaker)
{
    struct client *client = &remaker->own.client;
    if (remaker->reading) {
        remaker->state = REMAKER_WRITE; /* No more is written: it is read at once. */
        remaker->wanted = 0;
        remaker_write(remaker);
    } else if (client->storm && remaker->made < MAKES_MAX) {
        remaker->state = REMAKER_DELETE;
        remaker->asked = 0;
    }
}

static void remaker_fill(struct client *client)
{
    struct client_remaker *remaker = remaker_of(client);
    if (client->link.wait_count > 0) return;
    client_rests(client, 1 + chance_below(&client->chance, 60));
    switch (remaker->state) {
    case REMAKER_MAKE: client_own_create(&remaker->own, NULL, 0); break;
    case REMAKER_LOOK: client_own_look(&remaker->own); break;
    case REMAKER_WRITE: remaker_write(remaker); break;
    case REMAKER_READ:
        remaker_fetch(remaker, remaker->next, chance_percent(&client->chance, 50));
        break;
    case REMAKER_REST: remaker_rest(remaker); break;
    case REMAKER_DELETE:
        remaker->asked++;
        client_own_delete(&remaker->own, chance_percent(&client->chance, 50));
        break;
    case REMAKER_GONE_NAME: remaker_fetch(remaker, 0, false); break;
    case REMAKER_GONE_ID: remaker_fetch(remaker, 0, true); break;
    case REMAKER_GONE_PUT: remaker_send(remaker); break;
    }
}

/* ---- answers --------------------------------------------------------------------------------- */

static void remaker_made(struct client_remaker *remaker, struct uuid id)
{
    struct history *history = remaker->own.client.history;
    for (uint32_t i = 0; i < remaker->made; i++)
        if (uuid_equal(remaker->ids[i], id))
            history_violation(history, "I16: %s, made anew, has the id of %u before it",
                              remaker->own.name, remaker->made - i);
    remaker->ids[remaker->made++] = remaker->own.id = id;
    remaker->batch_count = 0;
    remaker->wanted = chance_below(&remaker->own.client.chance, BATCHES_MAX);
    remaker->state = REMAKER_WRITE;
}

static void remaker_created(struct client_remaker *remaker, const struct create_topics_response *in)
{
    int16_t error = in->topics.items[0].error_code;
    if (error == 0)
        remaker_made(remaker, in->topics.items[0].topic_id);
    else if (error == KAFKA_TOPIC_ALREADY_EXISTS)
        remaker->state = REMAKER_LOOK;
    else
        client_error(&remaker->own.client, "CreateTopics", error);
}

static void remaker_looked(struct client_remaker *remaker, const struct metadata_response *in)
{
    int16_t error = in->topics.items[0].error_code;
    if (error == 0)
        remaker_made(remaker, in->topics.items[0].topic_id);
    else
        client_error(&remaker->own.client, "Metadata", error);
}

static void remaker_deleted(struct client_remaker *remaker, const struct delete_topics_response *in)
{
    int16_t error = in->responses.items[0].error_code;
    bool gone = error == KAFKA_UNKNOWN_TOPIC_OR_PARTITION || error == KAFKA_UNKNOWN_TOPIC_ID;
    if (error == 0 || (gone && remaker->asked > 1)) { /* By an unanswered one before. */
        remaker->state = REMAKER_GONE_NAME;
        remaker->gone_ms = client_now_ms(&remaker->own.client);
    } else {
        client_error(&remaker->own.client, "DeleteTopics", error);
    }
}

static bool remaker_lingers(const struct client_remaker *remaker)
{
    return client_now_ms(&remaker->own.client) < remaker->gone_ms + LINGERS_MS;
}

static void remaker_put(struct client_remaker *remaker, const struct produce_response *in)
{
    const struct produce_response_partition_produce_response *partition =
        &in->responses.items[0].partition_responses.items[0];
    bool gone = remaker->state == REMAKER_GONE_PUT;
    if (gone && partition->error_code == KAFKA_UNKNOWN_TOPIC_ID)
        remaker->state = REMAKER_MAKE;
    else if (gone && partition->error_code == 0 && !remaker_lingers(remaker))
        history_violation(remaker->own.client.history, "I17: %s, deleted, took records",
                          remaker->own.name);
    else if (gone && partition->error_code == 0)
        return;
    else if (partition->error_code == 0)
        remaker->batches[remaker->batch_count - 1].offset = partition->base_offset;
    else
        client_error(&remaker->own.client, "Produce to a topic made anew", partition->error_code);
}

static bool remaker_record(struct client_own *own, const struct record *record)
{
    struct client_remaker *remaker = container_of(own, struct client_remaker, own);
    struct history *history = own->client.history;
    uint32_t made = 0, batch = 0, place = 0;
    if (record->value.size == 12) {
        made = load_be32(record->value.data);
        batch = load_be32(record->value.data + 4);
        place = load_be32(record->value.data + 8);
    }
    if (made != remaker->made || batch >= remaker->batch_count) {
        history_violation(history, "I2: %s: offset %lld is of topic %u, this is topic %u",
                          own->name, (long long)record->offset, made, remaker->made);
        return false;
    }
    if (record->offset != remaker->next)
        history_violation(history, "I2: %s: offset %lld was read at %lld", own->name,
                          (long long)record->offset, (long long)remaker->next);
    remaker->next = record->offset + 1;
    const struct remaker_batch *told = &remaker->batches[remaker->at];
    if (remaker->at >= remaker->batch_count || record->offset < told->offset) return true;
    if (batch != remaker->at || record->offset != told->offset + place)
        history_violation(history, "I1: %s: offset %lld holds %u of batch %u, not of %u", own->name,
                          (long long)record->offset, place, batch, remaker->at);
    if (record->offset == told->offset + told->count - 1) remaker->at++;
    return true;
}

static void remaker_read(struct client_remaker *remaker,
                         const struct fetch_response_partition_data *partition)
{
    struct client_own *own = &remaker->own;
    int64_t before = remaker->next;
    if (partition->log_start_offset > 0)
        history_violation(own->client.history, "I20: %s begins at %lld", own->name,
                          (long long)partition->log_start_offset);
    client_own_read(own, partition->records, &remaker->next, remaker_record);
    if (remaker->next > before) remaker->moved_ms = client_now_ms(&own->client);
    if (remaker->next < partition->high_watermark) {
        if (client_now_ms(&own->client) > remaker->moved_ms + STUCK_MS)
            history_violation(own->client.history, "I23: %s: nothing is read at %lld", own->name,
                              (long long)remaker->next);
        return;
    }
    if (remaker->at < remaker->batch_count)
        history_violation(own->client.history, "I1: %s: batch %u at %lld is lost", own->name,
                          remaker->at, (long long)remaker->batches[remaker->at].offset);
    remaker->reading = false;
    remaker->state = REMAKER_REST;
}

static void remaker_fetched(struct client_remaker *remaker, const struct fetch_response *in)
{
    int16_t error = in->error_code;
    const struct fetch_response_partition_data *partition = NULL;
    if (error == 0 && in->responses.count == 1 && in->responses.items[0].partitions.count == 1) {
        partition = &in->responses.items[0].partitions.items[0];
        error = partition->error_code;
    }
    if (remaker->state == REMAKER_GONE_NAME && error == KAFKA_UNKNOWN_TOPIC_OR_PARTITION)
        remaker->state = REMAKER_GONE_ID;
    else if (remaker->state == REMAKER_GONE_ID && error == KAFKA_UNKNOWN_TOPIC_ID)
        remaker->state = REMAKER_GONE_PUT;
    else if (remaker->state != REMAKER_READ && error == 0 && remaker_lingers(remaker))
        return;
    else if (remaker->state != REMAKER_READ && error == 0)
        history_violation(remaker->own.client.history, "I17: %s, deleted, is read",
                          remaker->own.name);
    else if (error != 0 || partition == NULL)
        client_error(&remaker->own.client, "Fetch of a topic made anew", error);
    else
        remaker_read(remaker, partition);
}

static void remaker_answered(struct client *client, const struct wire_link_wait *wait, void *in)
{
    struct client_remaker *remaker = remaker_of(client);
    switch ((enum client_own_api)wait->api) {
    case CLIENT_OWN_CREATE: remaker_created(remaker, in); break;
    case CLIENT_OWN_METADATA: remaker_looked(remaker, in); break;
    case CLIENT_OWN_PRODUCE: remaker_put(remaker, in); break;
    case CLIENT_OWN_DELETE: remaker_deleted(remaker, in); break;
    case CLIENT_OWN_FETCH: remaker_fetched(remaker, in); break;
    case CLIENT_OWN_LIST_OFFSETS: break;
    }
}

static void remaker_lost(struct client *client)
{
    (void)client; /* What was unanswered is asked again. */
}

static bool remaker_finished(const struct client *client)
{
    const struct client_remaker *remaker = (const void *)client;
    return remaker->state == REMAKER_REST && !remaker->reading;
}

static const struct client_kind remaker_kind = {
    .name = "remaker",
    .size_bytes = sizeof(struct client_remaker),
    .fill = remaker_fill,
    .answered = remaker_answered,
    .lost = remaker_lost,
    .finished = remaker_finished,
};

struct client_remaker *client_remaker_new(const struct client_seat *seat)
{
    struct client_remaker *remaker = remaker_of(client_new(&remaker_kind, seat));
    client_own_init(&remaker->own, "made", seat);
    return remaker;
}

struct client *client_remaker_base(struct client_remaker *remaker)
{
    return &remaker->own.client;
}

void client_remaker_audits(struct client_remaker *remaker)
{
    remaker->reading = true;
}

uint64_t client_remaker_made(const struct client_remaker *remaker)
{
    return remaker->made;
}
