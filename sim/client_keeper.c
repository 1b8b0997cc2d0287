/* client_keeper.c - it alone writes to its topic, one batch at a time, and reads all of it now and
 * then: a pass. So it can say what must be there.
 *
 * Compacted (I19): of each key the last acknowledged value is found, or a later one; within a pass
 * a key's values never go back; a key without a value has a tombstone behind its last value. While
 * a pass runs a tombstone may go after its delete.retention.ms, so that a value before it, which
 * went with it, was still read: in the pass after that the value may not be found.
 * Where that time is a day, every tombstone is found.
 * By size (I20): the log begins later only if what is left is not less than retention.bytes.
 * By time (I20): no record younger than retention.ms is gone. Old records are stamped four hours
 * back, retention.ms is two hours, the node's clock is wrong by half an hour at most.
 * All: what was acknowledged lies where it was said to, at or above the log's start (I1, I2).
 * A batch that is sent again may be there twice. The copy of a connection that was given up may
 * come late, behind later values of its keys: then it goes back, and is the last one. */
#include "sim/client_keeper.h"

#include "base/bytes.h"
#include "gen/create_topics_response.h"
#include "gen/errors.h"
#include "gen/fetch_response.h"
#include "gen/list_offsets_response.h"
#include "gen/metadata_response.h"
#include "gen/produce_response.h"
#include "record/batch_build.h"
#include "sim/client_own.h"

#define KEYS        64u
#define KEYS_BUSY   8u  /* Of them at a time, so that others rest in old segments; */
#define KEYS_MOVE   25u /* for so many batches. */
#define RECORDS_MAX 6000u
#define BATCHES_MAX 1500u
#define VALUE_MAX   400u
#define OLD_MS      (4 * 3600000ll)
#define SIZE_LEFT   20000 /* retention.bytes */
#define STUCK_MS    10000 /* For so long a fetch below the high watermark may bring nothing. */

enum keeper_state { KEEPER_CREATE, KEEPER_WRITE, KEEPER_START, KEEPER_PASS };

struct keeper_batch {
    uint32_t first, count; /* Numbers of records. */
    uint32_t bytes, tries;
    int64_t offset; /* -1: not acknowledged. */
    bool old;
};

struct keeper_record {
    uint8_t key;
    bool tombstone;
};

struct client_keeper {
    struct client_own own;
    enum client_keeper_rule rule;
    enum keeper_state state;
    bool passing;         /* A pass is wanted. */
    bool tombstones_stay; /* delete.retention.ms is a day, not half a second. */
    uint32_t old_left, fresh_left;
    int64_t gone;

    struct keeper_record records[RECORDS_MAX];
    uint32_t record_count;
    struct keeper_batch batches[BATCHES_MAX];
    uint32_t batch_count;
    int64_t kept[KEYS];   /* Number of the last acknowledged record of each key; -1: none. */
    int64_t buried[KEYS]; /* The value that a copy of an older tombstone was found behind; -1. */

    /* The pass. */
    int64_t start, next, expected;
    int64_t promised[KEYS];             /* `kept` when it began. */
    int64_t seen[KEYS], seen_at[KEYS];  /* The last number of each key, its offset. */
    bool doubtful[KEYS], doubted[KEYS]; /* A value before a tombstone was read; in the last pass. */
    uint32_t batch_at, batch_end;       /* Acknowledged when it began, to be found. */
    uint32_t found;
    int64_t moved_ms; /* When a fetch last brought something. */
};

static struct client_keeper *keeper_of(struct client *client)
{
    return container_of(container_of(client, struct client_own, client), struct client_keeper, own);
}

/* ---- writing --------------------------------------------------------------------------------- */

static void keeper_new_batch(struct client_keeper *keeper)
{
    struct chance *chance = &keeper->own.client.chance;
    struct keeper_batch *batch = &keeper->batches[keeper->batch_count++];
    uint32_t busy = keeper->batch_count / KEYS_MOVE * KEYS_BUSY;
    uint32_t key = chance_below(chance, KEYS_BUSY);
    *batch = (struct keeper_batch){.first = keeper->record_count, .offset = -1};
    batch->count = 1 + chance_below(chance, 4);
    if (keeper->old_left == 0 && keeper->fresh_left == 0) {
        keeper->old_left = chance_below(chance, 60);
        keeper->fresh_left = 1 + chance_below(chance, 60);
    }
    batch->old = keeper->rule == CLIENT_KEEPER_TIME && keeper->old_left > 0;
    if (keeper->old_left > 0)
        keeper->old_left--;
    else
        keeper->fresh_left--;
    for (uint32_t i = 0; i < batch->count; i++)
        keeper->records[keeper->record_count++] = (struct keeper_record){
            .key = (uint8_t)((busy + (key + i) % KEYS_BUSY) % KEYS),
            .tombstone = keeper->rule == CLIENT_KEEPER_COMPACT && chance_percent(chance, 15),
        };
}

static void keeper_send(struct client_keeper *keeper)
{
    struct client_own *own = &keeper->own;
    struct keeper_batch *batch = &keeper->batches[keeper->batch_count - 1];
    uint8_t value[VALUE_MAX];
    struct batch_build build;
    struct view records;
    sink_reset(&own->sink);
    batch_build_begin(&build, NULL, &own->sink, &batch_build_plain);
    for (uint32_t i = 0; i < batch->count; i++) {
        const struct keeper_record *record = &keeper->records[batch->first + i];
        uint32_t size = (batch->first + i) * 37 % VALUE_MAX;
        uint8_t number[4];
        struct record_header header = {VIEW("n"), view_of(number, sizeof(number))};
        memset(value, 'v', size);
        store_be32(number, batch->first + i);
        batch_build_add(&build,
                        &(struct record_input){
                            .timestamp_ms = io_wall_ms(own->client.io) - (batch->old ? OLD_MS : 0),
                            .key = view_of(&record->key, 1),
                            .value = record->tombstone ? VIEW_NULL : view_of(value, size),
                            .headers = &header,
                            .header_count = 1});
    }
    enum record_fault fault = batch_build_finish(&build, -1, &records);
    assert(fault == RECORD_OK);
    batch->bytes = records.size;
    batch->tries++;
    client_own_produce(own, records, (int16_t)(7 + chance_below(&own->client.chance, 7)));
}

static void keeper_acknowledged(struct client_keeper *keeper, int64_t offset)
{
    struct keeper_batch *batch = &keeper->batches[keeper->batch_count - 1];
    batch->offset = offset;
    for (uint32_t i = 0; i < batch->count; i++)
        keeper->kept[keeper->records[batch->first + i].key] = batch->first + i;
}

/* ---- a pass ---------------------------------------------------------------------------------- */

/* The log begins there: was what is missing to go? */
static void keeper_judge_start(struct client_keeper *keeper, int64_t start)
{
    struct history *history = keeper->own.client.history;
    uint64_t left = 0;
    int64_t gone = 0;
    for (uint32_t i = 0; i < keeper->batch_count; i++) {
        const struct keeper_batch *batch = &keeper->batches[i];
        bool stays = batch->offset < 0 || batch->offset + batch->count > start;
        left += (uint64_t)batch->bytes * (stays ? batch->tries : batch->tries - 1);
        gone += stays ? 0 : batch->count;
        if (!stays && keeper->rule == CLIENT_KEEPER_TIME && !batch->old)
            history_violation(history, "I20: %s begins at %lld: record %u was young",
                              keeper->own.name, (long long)start, batch->first);
    }
    if (start > 0 && keeper->rule == CLIENT_KEEPER_SIZE && left < SIZE_LEFT)
        history_violation(history, "I20: %s begins at %lld with %llu bytes, %u are to stay",
                          keeper->own.name, (long long)start, (unsigned long long)left, SIZE_LEFT);
    if (start > 0 && keeper->rule == CLIENT_KEEPER_COMPACT)
        history_violation(history, "I20: %s, compacted, begins at %lld", keeper->own.name,
                          (long long)start);
    keeper->gone = MAX(keeper->gone, gone);
}

static void keeper_begin(struct client_keeper *keeper, int64_t start)
{
    keeper_judge_start(keeper, start);
    keeper->start = keeper->next = start;
    keeper->found = 0;
    keeper->moved_ms = client_now_ms(&keeper->own.client);
    keeper->batch_at = 0;
    keeper->batch_end = keeper->batch_count;
    while (keeper->batch_end > 0 && keeper->batches[keeper->batch_end - 1].offset < 0)
        keeper->batch_end--; /* Only the last one can be unacknowledged. */
    memcpy(keeper->promised, keeper->kept, sizeof(keeper->promised));
    for (uint32_t i = 0; i < KEYS; i++)
        keeper->seen[i] = -1;
    keeper->state = KEEPER_PASS;
}

/* Batches that lie below `offset` and were not found there. */
static void keeper_missed(struct client_keeper *keeper, int64_t offset)
{
    while (keeper->batch_at < keeper->batch_end) {
        const struct keeper_batch *batch = &keeper->batches[keeper->batch_at];
        if (batch->offset + batch->count > offset) return;
        if (keeper->rule != CLIENT_KEEPER_COMPACT && batch->offset >= keeper->start)
            history_violation(keeper->own.client.history, "I1: %s: record %u at %lld is lost",
                              keeper->own.name, batch->first, (long long)batch->offset);
        keeper->batch_at++;
    }
}

/* The number that a record carries, if it is one that was sent with this key; else -1. */
static int64_t keeper_number(const struct client_keeper *keeper, const struct record *record)
{
    struct record_header header;
    uint32_t at = 0;
    if (record->key.size != 1 || record->header_count != 1 ||
        !record_header_next(record, &at, &header) || header.value.size != 4)
        return -1;
    uint32_t number = load_be32(header.value.data);
    if (number >= keeper->record_count) return -1;
    const struct keeper_record *sent = &keeper->records[number];
    bool same = sent->key == record->key.data[0] && sent->tombstone == record->value.null &&
                (sent->tombstone || record->value.size == number * 37 % VALUE_MAX);
    return same ? (int64_t)number : -1;
}

/* What was acknowledged for this offset is there. */
static void keeper_match(struct client_keeper *keeper, int64_t offset, int64_t number)
{
    keeper_missed(keeper, offset);
    const struct keeper_batch *batch = &keeper->batches[keeper->batch_at];
    if (keeper->batch_at == keeper->batch_end || offset < batch->offset) return;
    int64_t told = batch->first + (offset - batch->offset);
    if (told != number)
        history_violation(keeper->own.client.history,
                          "I2: %s: offset %lld was record %lld, now it is %lld", keeper->own.name,
                          (long long)offset, (long long)told, (long long)number);
    if (offset == batch->offset + batch->count - 1) keeper->batch_at++;
}

static const struct keeper_batch *keeper_batch_of(const struct client_keeper *keeper,
                                                  int64_t number)
{
    uint32_t at = keeper->batch_count;
    while (keeper->batches[at - 1].first > number)
        at--;
    return &keeper->batches[at - 1];
}

/* Is it a copy behind the one that was acknowledged? */
static bool keeper_copy(const struct client_keeper *keeper, int64_t number, int64_t offset)
{
    const struct keeper_batch *batch = keeper_batch_of(keeper, number);
    return batch->tries > 1 && batch->offset >= 0 &&
           offset > batch->offset + (number - batch->first);
}

/* Is the last value that was found of the key a copy that came behind the promised one? A tombstone
 * goes after its time: then neither is found. */
static bool keeper_overtaken(struct client_keeper *keeper, uint32_t key)
{
    int64_t promised = keeper->promised[key], seen = keeper->seen[key];
    if (promised < 0) return false;
    if (!keeper->tombstones_stay && keeper->buried[key] == promised) return true;
    const struct keeper_batch *batch = keeper_batch_of(keeper, promised);
    if (seen < 0 || keeper->seen_at[key] <= batch->offset + (promised - batch->first) ||
        !keeper_copy(keeper, seen, keeper->seen_at[key]))
        return false;
    if (keeper->records[seen].tombstone) keeper->buried[key] = promised;
    return true;
}

static bool keeper_record(struct client_own *own, const struct record *record)
{
    struct client_keeper *keeper = container_of(own, struct client_keeper, own);
    struct history *history = own->client.history;
    int64_t number = keeper_number(keeper, record);
    if (number < 0) {
        history_violation(history, "%s: offset %lld was written by nobody", own->name,
                          (long long)record->offset);
        return false;
    }
    int64_t *seen = &keeper->seen[record->key.data[0]];
    if (number < *seen && !keeper_copy(keeper, number, record->offset))
        history_violation(history, "I19: %s: key %u goes back from %lld to %lld at %lld", own->name,
                          record->key.data[0], (long long)*seen, (long long)number,
                          (long long)record->offset);
    *seen = number;
    keeper->seen_at[record->key.data[0]] = record->offset;
    keeper->found++;
    keeper_match(keeper, record->offset, number);
    return true;
}

static bool keeper_tombstone_since(const struct client_keeper *keeper, uint32_t key, int64_t number)
{
    for (int64_t i = MAX(number, 0); i < keeper->record_count; i++)
        if (keeper->records[i].key == key && keeper->records[i].tombstone) return true;
    return false;
}

/* The end was reached: is the last value of every key there? */
static void keeper_end(struct client_keeper *keeper)
{
    struct history *history = keeper->own.client.history;
    keeper_missed(keeper, keeper->next);
    if (keeper->batch_at < keeper->batch_end)
        history_violation(history, "I1: %s ends at %lld; record %u at %lld is lost",
                          keeper->own.name, (long long)keeper->next,
                          keeper->batches[keeper->batch_at].first,
                          (long long)keeper->batches[keeper->batch_at].offset);
    for (uint32_t key = 0; keeper->rule == CLIENT_KEEPER_COMPACT && key < KEYS; key++) {
        int64_t promised = keeper->promised[key], seen = keeper->seen[key];
        bool old = seen < promised && !keeper_overtaken(keeper, key);
        bool deleted =
            old && !keeper->tombstones_stay && keeper_tombstone_since(keeper, key, promised);
        keeper->doubted[key] = keeper->doubtful[key];
        keeper->doubtful[key] = old && deleted && seen >= 0;
        if (old && !deleted)
            history_violation(history, "I19: %s: the last value of key %u is %lld, not %lld",
                              keeper->own.name, key, (long long)seen, (long long)promised);
        if (keeper->doubtful[key] && keeper->doubted[key])
            history_violation(history, "I19: %s: value %lld of key %u outlives tombstone %lld",
                              keeper->own.name, (long long)seen, key, (long long)promised);
    }
    if (keeper->rule == CLIENT_KEEPER_COMPACT)
        keeper->gone = MAX(keeper->gone, (int64_t)keeper->record_count - (int64_t)keeper->found);
    keeper->passing = false;
    keeper->state = KEEPER_WRITE;
}

static void keeper_fetched(struct client_keeper *keeper, const struct fetch_response *in)
{
    struct client *client = &keeper->own.client;
    int16_t error = in->error_code;
    const struct fetch_response_partition_data *partition = NULL;
    if (error == 0 && in->responses.count == 1 && in->responses.items[0].partitions.count == 1)
        partition = &in->responses.items[0].partitions.items[0];
    if (partition != NULL) error = partition->error_code;
    if (error == KAFKA_OFFSET_OUT_OF_RANGE && keeper->rule != CLIENT_KEEPER_COMPACT) {
        keeper->state = KEEPER_START; /* It was deleted while it read. */
        return;
    }
    if (error != 0 || partition == NULL) {
        client_error(client, "Fetch of a kept topic", error);
        return;
    }
    int64_t before = keeper->next;
    client_own_read(&keeper->own, partition->records, &keeper->next, keeper_record);
    if (keeper->next > before) keeper->moved_ms = client_now_ms(client);
    bool stuck = client_now_ms(client) > keeper->moved_ms + STUCK_MS;
    /* All behind may be compacted away. */
    if (keeper->next >= partition->high_watermark ||
        (stuck && keeper->rule == CLIENT_KEEPER_COMPACT))
        keeper_end(keeper);
    else if (stuck)
        history_violation(client->history, "I23: %s: nothing is read at %lld, below %lld",
                          keeper->own.name, (long long)keeper->next,
                          (long long)partition->high_watermark);
}

/* ---- the client ------------------------------------------------------------------------------ */

static void keeper_create(struct client_keeper *keeper)
{
    static const struct client_own_setting settings[][3] = {
        {{"cleanup.policy", "compact"},
         {"min.cleanable.dirty.ratio", "0.05"},
         {"delete.retention.ms", "500"}                                                           },
        {{"retention.bytes", "20000"},  {"file.delete.delay.ms", "300"}, {"retention.ms", "-1"}   },
        {{"retention.ms", "7200000"},   {"file.delete.delay.ms", "300"}, {"retention.bytes", "-1"}},
        {{"cleanup.policy", "compact"},
         {"min.cleanable.dirty.ratio", "0.05"},
         {"delete.retention.ms", "86400000"}                                                      },
    };
    uint32_t row = keeper->tombstones_stay ? ARRAY_SIZE(settings) - 1 : keeper->rule;
    client_own_create(&keeper->own, settings[row], ARRAY_SIZE(settings[0]));
}

static bool keeper_unacknowledged(const struct client_keeper *keeper)
{
    return keeper->batch_count > 0 && keeper->batches[keeper->batch_count - 1].offset < 0;
}

static void keeper_write(struct client_keeper *keeper)
{
    struct client *client = &keeper->own.client;
    bool room = keeper->batch_count < BATCHES_MAX && keeper->record_count + KEYS_BUSY < RECORDS_MAX;
    if (keeper_unacknowledged(keeper)) {
        keeper_send(keeper);
    } else if (keeper->passing || chance_percent(&client->chance, 2)) {
        keeper->state = KEEPER_START;
        client_own_earliest(&keeper->own);
    } else if (client->storm && room) {
        keeper_new_batch(keeper);
        keeper_send(keeper);
    }
    client_rests(client, 1 + chance_below(&client->chance, 40));
}

static void keeper_fill(struct client *client)
{
    struct client_keeper *keeper = keeper_of(client);
    if (client->link.wait_count > 0) return;
    switch (keeper->state) {
    case KEEPER_CREATE: keeper_create(keeper); break;
    case KEEPER_WRITE: keeper_write(keeper); break;
    case KEEPER_START: client_own_earliest(&keeper->own); break;
    case KEEPER_PASS:
        client_own_fetch(&keeper->own,
                         &(struct client_own_fetch){
                             .offset = keeper->next,
                             .id = keeper->own.id,
                             .version = (int16_t)(11 + chance_below(&client->chance, 6))});
        client_rests(client, 1);
        break;
    }
}

static void keeper_created(struct client_keeper *keeper, const struct create_topics_response *in)
{
    if (in->topics.count != 1) return;
    int16_t error = in->topics.items[0].error_code;
    if (error == 0 || error == KAFKA_TOPIC_ALREADY_EXISTS) {
        keeper->own.id = in->topics.items[0].topic_id;
        if (error == 0)
            keeper->state = KEEPER_WRITE;
        else
            client_own_look(&keeper->own);
    } else {
        client_error(&keeper->own.client, "CreateTopics of a kept topic", error);
    }
}

static void keeper_looked(struct client_keeper *keeper, const struct metadata_response *in)
{
    if (in->topics.count != 1) return;
    if (in->topics.items[0].error_code != 0) {
        client_error(&keeper->own.client, "Metadata of a kept topic",
                     in->topics.items[0].error_code);
        return;
    }
    keeper->own.id = in->topics.items[0].topic_id;
    keeper->state = KEEPER_WRITE;
}

static void keeper_produced(struct client_keeper *keeper, const struct produce_response *in)
{
    const struct produce_response_partition_produce_response *partition =
        &in->responses.items[0].partition_responses.items[0];
    if (partition->error_code != 0)
        client_error(&keeper->own.client, "Produce to a kept topic", partition->error_code);
    else
        keeper_acknowledged(keeper, partition->base_offset);
}

static void keeper_started(struct client_keeper *keeper, const struct list_offsets_response *in)
{
    const struct list_offsets_response_list_offsets_partition_response *partition =
        &in->topics.items[0].partitions.items[0];
    if (partition->error_code != 0)
        client_error(&keeper->own.client, "ListOffsets of a kept topic", partition->error_code);
    else
        keeper_begin(keeper, partition->offset);
}

static void keeper_answered(struct client *client, const struct wire_link_wait *wait, void *in)
{
    struct client_keeper *keeper = keeper_of(client);
    switch ((enum client_own_api)wait->api) {
    case CLIENT_OWN_CREATE: keeper_created(keeper, in); break;
    case CLIENT_OWN_METADATA: keeper_looked(keeper, in); break;
    case CLIENT_OWN_PRODUCE: keeper_produced(keeper, in); break;
    case CLIENT_OWN_LIST_OFFSETS: keeper_started(keeper, in); break;
    case CLIENT_OWN_FETCH: keeper_fetched(keeper, in); break;
    case CLIENT_OWN_DELETE: break;
    }
}

static void keeper_lost(struct client *client)
{
    (void)client; /* What was unanswered is asked again. */
}

static bool keeper_finished(const struct client *client)
{
    const struct client_keeper *keeper = (const void *)client;
    return keeper->state == KEEPER_WRITE && !keeper->passing && !keeper_unacknowledged(keeper);
}

static const struct client_kind keeper_kind = {
    .name = "keeper",
    .size_bytes = sizeof(struct client_keeper),
    .fill = keeper_fill,
    .answered = keeper_answered,
    .lost = keeper_lost,
    .finished = keeper_finished,
};

struct client_keeper *client_keeper_new(const struct client_seat *seat,
                                        enum client_keeper_rule rule)
{
    struct client_keeper *keeper = keeper_of(client_new(&keeper_kind, seat));
    client_own_init(&keeper->own, "kept", seat);
    keeper->rule = rule;
    keeper->tombstones_stay =
        rule == CLIENT_KEEPER_COMPACT && chance_percent(&keeper->own.client.chance, 40);
    for (uint32_t i = 0; i < KEYS; i++)
        keeper->kept[i] = keeper->buried[i] = -1;
    return keeper;
}

struct client *client_keeper_base(struct client_keeper *keeper)
{
    return &keeper->own.client;
}

void client_keeper_audits(struct client_keeper *keeper)
{
    keeper->passing = true;
}

uint64_t client_keeper_written(const struct client_keeper *keeper)
{
    return keeper->record_count;
}

uint64_t client_keeper_gone(const struct client_keeper *keeper)
{
    return (uint64_t)keeper->gone;
}
