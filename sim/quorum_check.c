/* quorum_check.c - see quorum_check.h. */
#include "sim/quorum_check.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/xxh3.h"

void quorum_check_init(struct quorum_check *check, struct history *history, int64_t session_us)
{
    check->history = history;
    check->session_us = session_us;
}

void quorum_check_free(struct quorum_check *check)
{
    free(check->records);
}

/* ---- the log --------------------------------------------------------------------------------- */

static void check_grow(struct quorum_check *check, int64_t offset)
{
    if (offset < check->capacity) return;
    int64_t capacity = MAX(offset + 1, check->capacity * 2 + 1024);
    void *records = realloc(check->records, (size_t)capacity * sizeof(check->records[0]));
    if (records == NULL) abort();
    check->records = records;
    memset(check->records + check->capacity, 0,
           (size_t)(capacity - check->capacity) * sizeof(check->records[0]));
    check->capacity = capacity;
}

void quorum_check_record(struct quorum_check *check,
                         int64_t offset,
                         int32_t epoch,
                         struct view record)
{
    uint64_t hash = xxh3_64(record.data, record.size);
    check_grow(check, offset);
    if (check->records[offset].epoch == 0) {
        check->records[offset].epoch = epoch;
        check->records[offset].hash = hash;
        check->end = MAX(check->end, offset + 1);
    } else if (check->records[offset].epoch != epoch || check->records[offset].hash != hash) {
        history_violation(check->history,
                          "Q1: offset %lld of the metadata log, once committed in epoch %d, has "
                          "another record, of epoch %d",
                          (long long)offset, check->records[offset].epoch, epoch);
    }
}

void quorum_check_high_watermark(struct quorum_check *check, int64_t offset)
{
    if (offset < check->end)
        history_violation(check->history,
                          "Q1: the metadata log was committed up to %lld, and is up to %lld",
                          (long long)check->end, (long long)offset);
}

/* ---- partitions ------------------------------------------------------------------------------ */

static struct quorum_check_topic *check_topic(struct quorum_check *check, struct uuid id)
{
    for (uint32_t i = check->topic_count; i > 0; i--) /* Young topics change most. */
        if (uuid_equal(check->topics[i - 1].id, id)) return &check->topics[i - 1];
    assert(check->topic_count < QUORUM_CHECK_TOPICS_MAX);
    check->topics[check->topic_count].id = id;
    return &check->topics[check->topic_count++];
}

static uint64_t partition_state(const struct image_partition *partition)
{
    uint64_t state =
        (uint64_t)(uint32_t)partition->leader << 32 | (uint32_t)partition->leader_epoch;
    for (uint32_t i = 0; i < IMAGE_LISTS; i++) {
        struct image_ids ids = image_list(partition, (enum image_list)i);
        uint64_t hash = xxh3_64(ids.items, ids.count * sizeof(*ids.items));
        state = (state ^ hash) * 0x9e3779b97f4a7c15ull + ids.count;
    }
    return state;
}

static void check_epochs(struct quorum_check *check,
                         struct quorum_check_partition *seen,
                         const struct image_partition *now,
                         const char *name)
{
    uint64_t state = partition_state(now);
    if (seen->seen) {
        if (now->partition_epoch < seen->partition_epoch || now->leader_epoch < seen->leader_epoch)
            history_violation(check->history, "Q2: %s: its epochs go back to %d and %d", name,
                              now->leader_epoch, now->partition_epoch);
        else if (now->leader_epoch == seen->leader_epoch && now->leader != seen->leader)
            history_violation(check->history, "Q2: %s: leaders %d and %d in leader epoch %d", name,
                              seen->leader, now->leader, now->leader_epoch);
        else if (now->partition_epoch == seen->partition_epoch && state != seen->state)
            history_violation(check->history, "Q2: %s: two states in partition epoch %d", name,
                              now->partition_epoch);
        check->elections += now->leader_epoch != seen->leader_epoch;
    }
    bool changed = !seen->seen || now->partition_epoch != seen->partition_epoch;
    bool same_leader = seen->seen && now->leader_epoch == seen->leader_epoch;
    bool moved =
        now->leader < 0 && (changed || seen->moved) && (same_leader || check->from_snapshot);
    *seen = (struct quorum_check_partition){
        now->partition_epoch, now->leader_epoch, now->leader, state, true, moved};
}

/* A partition that is looked at. */
struct spot {
    const struct image *image;
    const struct image_partition *partition;
    char name[64];
    bool elr;        /* Eligible replicas are kept. */
    bool last_stays; /* The last one of an ISR stays, fenced as it may be. */
    bool could;      /* Who could lead, leads. */
};

static void check_isr(struct quorum_check *check, const struct spot *spot)
{
    const struct image_partition *partition = spot->partition;
    struct image_ids isr = image_list(partition, IMAGE_ISR);
    if (isr.count == 0 && !spot->elr)
        history_violation(check->history, "Q4: %s has lost its last replica in sync", spot->name);
    for (uint32_t i = 0; i < isr.count; i++) {
        const struct image_node *broker = image_broker(spot->image, isr.items[i]);
        bool last = isr.count == 1 && spot->last_stays;
        if (!image_ids_have(image_list(partition, IMAGE_REPLICAS), isr.items[i]))
            history_violation(check->history, "Q4: %s: %d is in sync and no replica", spot->name,
                              isr.items[i]);
        else if (!last && (broker == NULL || broker->fenced))
            history_violation(check->history, "Q4: %s: broker %d is fenced and in its ISR",
                              spot->name, isr.items[i]);
        else if (spot->could && image_broker_active(spot->image, isr.items[i]) &&
                 image_replica_online(spot->image, partition, isr.items[i]))
            history_violation(check->history, "Q4: %s has no leader, and broker %d could",
                              spot->name, isr.items[i]);
    }
}

static bool topic_is_unclean(const struct image *image, const struct image_topic *topic)
{
    const struct image_configs *configs = image_configs(image, IMAGE_RESOURCE_TOPIC, topic->name);
    return configs != NULL &&
           view_is(image_config(configs, VIEW("unclean.leader.election.enable")), "true");
}

static void check_partition(struct quorum_check *check,
                            const struct image *image,
                            const struct image_topic *topic,
                            int32_t index)
{
    struct spot spot = {.image = image, .partition = image_partition(topic, index)};
    struct quorum_check_topic *seen = check_topic(check, topic->id);
    int32_t leader = spot.partition->leader;
    (void)snprintf(spot.name, sizeof(spot.name), "%.*s-%d", (int)topic->name.size,
                   (const char *)topic->name.data, index);
    assert((uint32_t)index < QUORUM_CHECK_PARTS_MAX);
    seen->unclean |= topic_is_unclean(image, topic) || check->from_snapshot;
    check_epochs(check, &seen->partitions[index], spot.partition, spot.name);
    if (leader >= 0 && !image_ids_have(image_list(spot.partition, IMAGE_ISR), leader))
        history_violation(check->history, "Q3: %s: its leader %d is not in sync", spot.name,
                          leader);
    if (leader >= 0 && !image_broker_active(image, leader))
        history_violation(check->history, "Q3: %s: its leader %d is fenced or on its way out",
                          spot.name, leader);
    spot.elr = image_feature_level(image, VIEW("eligible.leader.replicas.version")) > 0;
    spot.last_stays = !spot.elr || seen->unclean;
    spot.could = leader < 0 && !seen->partitions[index].moved;
    check_isr(check, &spot);
}

/* ---- brokers --------------------------------------------------------------------------------- */

static void check_silence(struct quorum_check *check, int32_t id, int64_t epoch, int64_t sent_us)
{
    const struct quorum_check_broker *broker = &check->brokers[id];
    if (broker->fenced_us == 0 || broker->fenced_epoch != epoch) return;
    if (sent_us + QUORUM_CHECK_SLACK_US > broker->fenced_us) return; /* Perhaps it came later. */
    bool waited =
        sent_us >= check->stood_us && sent_us + QUORUM_CHECK_SLACK_US <= check->went_on_us;
    int64_t heard_us = waited ? check->went_on_us : sent_us;
    if (broker->fenced_us < heard_us + check->session_us)
        history_violation(check->history,
                          "Q7: broker %d was fenced for silence at %lld us, and had spoken at %lld",
                          id, (long long)broker->fenced_us, (long long)sent_us);
}

static bool check_has_asked(const struct quorum_check_broker *seen, int64_t epoch)
{
    for (uint32_t i = 0; i < MIN(seen->asked_count, QUORUM_CHECK_BEATS_MAX); i++)
        if (seen->asked[i] == epoch) return true;
    return false;
}

void quorum_check_asked(struct quorum_check *check, int32_t broker, int64_t epoch)
{
    struct quorum_check_broker *seen = &check->brokers[broker];
    if (!check_has_asked(seen, epoch))
        seen->asked[seen->asked_count++ % QUORUM_CHECK_BEATS_MAX] = epoch;
}

void quorum_check_stands(struct quorum_check *check, int64_t now_us, int64_t until_us)
{
    if (now_us >= check->went_on_us) check->stood_us = now_us;
    check->went_on_us = MAX(check->went_on_us, until_us);
}

void quorum_check_ends(struct quorum_check *check, int64_t now_us)
{
    check->went_on_us = MIN(check->went_on_us, now_us);
}

void quorum_check_spoke(struct quorum_check *check, int32_t broker, int64_t epoch, int64_t sent_us)
{
    struct quorum_check_broker *seen = &check->brokers[broker];
    uint32_t at = seen->beat_count++ % QUORUM_CHECK_BEATS_MAX;
    seen->beats[at].epoch = epoch;
    seen->beats[at].sent_us = sent_us;
    check_silence(check, broker, epoch, sent_us);
}

static void check_fenced(struct quorum_check *check, int32_t id, int64_t epoch, int64_t wall_ms)
{
    struct quorum_check_broker *seen = &check->brokers[id];
    check->fencings++;
    if (check_has_asked(seen, epoch) || wall_ms < 0 || check->world_us == NULL) return;
    int64_t silent_us = check->world_us(check->context, wall_ms);
    if (silent_us < 0) return;
    check->silences++;
    seen->fenced_epoch = epoch;
    seen->fenced_us = silent_us;
    for (uint32_t i = 0; i < MIN(seen->beat_count, QUORUM_CHECK_BEATS_MAX); i++)
        check_silence(check, id, seen->beats[i].epoch, seen->beats[i].sent_us);
}

static void check_broker(struct quorum_check *check, const struct image_node *now, int64_t wall_ms)
{
    struct quorum_check_broker *seen = &check->brokers[now->id];
    bool same = now->epoch == seen->epoch;
    if (now->epoch < seen->epoch)
        history_violation(check->history, "Q5: broker %d: epoch %lld after %lld", now->id,
                          (long long)now->epoch, (long long)seen->epoch);
    else if (same != uuid_equal(now->incarnation, seen->incarnation) &&
             (same || seen->unregistered == 0)) /* Else it was forgotten in between. */
        history_violation(check->history, "Q5: broker %d: epoch %lld %s", now->id,
                          (long long)now->epoch,
                          same ? "of two incarnations" : "of an incarnation that has another");
    if (same && seen->unfenced && now->fenced) check_fenced(check, now->id, now->epoch, wall_ms);
    seen->epoch = now->epoch;
    seen->incarnation = now->incarnation;
    seen->unfenced = !now->fenced;
}

/* ---- images ---------------------------------------------------------------------------------- */

void quorum_check_image(struct quorum_check *check, const struct image *image, int64_t wall_ms)
{
    const struct image_object *at = NULL;
    check->from_snapshot = wall_ms < 0;
    check->batches++;
    for (uint32_t i = 0; i < QUORUM_CHECK_BROKERS_MAX; i++) {
        const struct image_node *broker = image_broker(image, (int32_t)i);
        if (broker != NULL) check_broker(check, broker, wall_ms);
    }
    while ((at = image_next(image, IMAGE_TOPIC, at)) != NULL) {
        const struct image_topic *topic = (const void *)at;
        for (int32_t i = 0; i < topic->partition_count; i++)
            check_partition(check, image, topic, i);
    }
}

void quorum_check_equal(struct quorum_check *check,
                        const struct image *a,
                        const struct image *b,
                        const char *what)
{
    if (!image_equal(a, b))
        history_violation(check->history, "Q6: %s is another than what the log makes", what);
}
