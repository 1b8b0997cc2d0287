/* quorum_describe.c - who fetches the log and how far each has come: DescribeQuorum. */
#include "core/quorum_answer.h"
#include "core/quorum_internal.h"
#include "gen/describe_quorum_request.h"
#include "gen/describe_quorum_response.h"
#include "gen/errors.h"

/* ---- observers ------------------------------------------------------------------------------- */

static struct quorum_observer *observer_find(struct quorum *q, int32_t id, struct uuid directory)
{
    list_foreach (link, &q->observers) {
        struct quorum_observer *observer = container_of(link, struct quorum_observer, link);
        if (observer->id == id && uuid_equal(observer->directory, directory)) return observer;
    }
    return NULL;
}

static void observer_remove(struct quorum *q, struct quorum_observer *observer)
{
    list_remove(&observer->link);
    q->observer_count--;
    mem_put(q->mem, observer, sizeof(*observer));
}

/* Those that have not fetched for long stand first. */
static void observers_expire(struct quorum *q, int64_t now_ms)
{
    while (!list_empty(&q->observers)) {
        struct quorum_observer *oldest =
            container_of(q->observers.next, struct quorum_observer, link);
        if (now_ms - oldest->fetched_ms < QUORUM_OBSERVER_MS) return;
        observer_remove(q, oldest);
    }
}

void quorum_observed(struct quorum *quorum,
                     const struct quorum_event *event,
                     int32_t id,
                     struct uuid directory,
                     int64_t end)
{
    observers_expire(quorum, event->now_ms);
    struct quorum_observer *observer = observer_find(quorum, id, directory);
    if (observer == NULL) {
        if (quorum->observer_count == QUORUM_OBSERVERS_MAX) return;
        observer = mem_get(quorum->mem, sizeof(*observer));
        if (observer == NULL) return;
        *observer = (struct quorum_observer){.id = id,
                                             .directory = directory,
                                             .leader_end = -1,
                                             .fetched_wall_ms = -1,
                                             .caught_up_wall_ms = -1};
        quorum->observer_count++;
    } else {
        list_remove(&observer->link);
    }
    if (end >= event->log->end)
        observer->caught_up_wall_ms = MAX(observer->caught_up_wall_ms, event->wall_ms);
    else if (observer->leader_end >= 0 && end >= observer->leader_end)
        observer->caught_up_wall_ms = MAX(observer->caught_up_wall_ms, observer->fetched_wall_ms);
    observer->end = end;
    observer->leader_end = event->log->end;
    observer->fetched_ms = event->now_ms;
    observer->fetched_wall_ms = event->wall_ms;
    list_append(&quorum->observers, &observer->link);
}

void quorum_observers_free(struct quorum *quorum)
{
    while (!list_empty(&quorum->observers))
        observer_remove(quorum, container_of(quorum->observers.next, struct quorum_observer, link));
}

/* ---- the answer ------------------------------------------------------------------------------ */

static void put_state(struct describe_quorum_response_replica_state *out,
                      int32_t id,
                      struct uuid directory,
                      const struct quorum_observer *seen)
{
    wire_struct_defaults(&wire_describe_quorum_response_replica_state_shape, out);
    out->replica_id = id;
    out->replica_directory_id = directory;
    out->log_end_offset = seen->end;
    out->last_fetch_timestamp = seen->fetched_wall_ms;
    out->last_caught_up_timestamp = seen->caught_up_wall_ms;
}

static bool put_replicas(const struct quorum *q,
                         const struct quorum_event *event,
                         struct describe_quorum_response_partition_data *out)
{
    const struct voter_set *set = quorum_set(q);
    struct describe_quorum_response_replica_state *voters =
        arena_get(event->arena, (set->count + 1) * sizeof(*voters));
    struct describe_quorum_response_replica_state *observers =
        arena_get(event->arena, (q->observer_count + 1) * sizeof(*observers));
    if (voters == NULL || observers == NULL) return false;
    for (uint32_t i = 0; i < set->count; i++) {
        bool own = set->voters[i].id == q->self->voters[0].id;
        struct quorum_observer seen = {.end = own ? event->log->end : -1,
                                       .fetched_wall_ms = own ? event->wall_ms : -1,
                                       .caught_up_wall_ms = own ? event->wall_ms : -1};
        put_state(&voters[i], set->voters[i].id, set->voters[i].directory, &seen);
    }
    out->current_voters.items = voters;
    out->current_voters.count = (int32_t)set->count;
    list_foreach (link, &q->observers) {
        const struct quorum_observer *seen = container_of(link, struct quorum_observer, link);
        put_state(&observers[out->observers.count++], seen->id, seen->directory, seen);
    }
    out->observers.items = observers;
    return true;
}

static bool put_nodes(const struct quorum *q,
                      const struct quorum_event *event,
                      struct describe_quorum_response *out)
{
    const struct voter_set *set = quorum_set(q);
    out->nodes.items = arena_get(event->arena, (set->count + 1) * sizeof(*out->nodes.items));
    if (out->nodes.items == NULL) return false;
    for (uint32_t i = 0; i < set->count; i++) {
        const struct quorum_voter *voter = &set->voters[i];
        struct describe_quorum_response_node *node = &out->nodes.items[out->nodes.count++];
        wire_struct_defaults(&wire_describe_quorum_response_node_shape, node);
        node->node_id = voter->id;
        node->listeners.items =
            arena_get(event->arena, (voter->endpoint_count + 1) * sizeof(*node->listeners.items));
        if (node->listeners.items == NULL) return false;
        for (uint32_t k = 0; k < voter->endpoint_count; k++) {
            struct describe_quorum_response_listener *to = &node->listeners.items[k];
            wire_struct_defaults(&wire_describe_quorum_response_listener_shape, to);
            to->name = voter->endpoints[k].name;
            to->host = voter->endpoints[k].host;
            to->port = voter->endpoints[k].port;
        }
        node->listeners.count = (int32_t)voter->endpoint_count;
    }
    return true;
}

/* Anything but the one partition of the metadata log is unknown, as in Kafka all of it then. */
static int16_t describe_check(const struct quorum *q, const struct describe_quorum_request *in)
{
    bool one = in->topics.count == 1 && in->topics.items[0].partitions.count == 1;
    if (!one || !view_is(in->topics.items[0].topic_name, QUORUM_TOPIC) ||
        in->topics.items[0].partitions.items[0].partition_index != 0)
        return KAFKA_UNKNOWN_TOPIC_OR_PARTITION;
    return quorum_leads(q) ? KAFKA_NONE : KAFKA_NOT_LEADER_OR_FOLLOWER;
}

static bool put_topic(const struct quorum *q,
                      const struct quorum_event *event,
                      const struct describe_quorum_request_topic_data *in,
                      int16_t error,
                      struct describe_quorum_response_topic_data *out)
{
    wire_struct_defaults(&wire_describe_quorum_response_topic_data_shape, out);
    out->topic_name = in->topic_name;
    size_t count = (size_t)MAX(in->partitions.count, 0);
    out->partitions.items = arena_get(event->arena, (count + 1) * sizeof(*out->partitions.items));
    if (out->partitions.items == NULL) return false;
    for (size_t i = 0; i < count; i++) {
        struct describe_quorum_response_partition_data *to =
            &out->partitions.items[out->partitions.count++];
        wire_struct_defaults(&wire_describe_quorum_response_partition_data_shape, to);
        to->partition_index = in->partitions.items[i].partition_index;
        to->error_code = error;
        if (to->error_code != KAFKA_NONE) {
            to->error_message = error == KAFKA_UNKNOWN_TOPIC_OR_PARTITION
                                    ? VIEW("only partition 0 of __cluster_metadata has a quorum")
                                    : VIEW("this node does not lead the quorum");
            continue;
        }
        to->leader_id = q->leader_id;
        to->leader_epoch = q->epoch;
        to->high_watermark = q->high_watermark;
        if (!put_replicas(q, event, to)) return false;
    }
    return true;
}

enum quorum_answer quorum_describe(struct quorum *quorum,
                                   const struct quorum_event *event,
                                   const struct describe_quorum_request *in,
                                   struct describe_quorum_response *out)
{
    observers_expire(quorum, event->now_ms);
    int16_t error = describe_check(quorum, in);
    size_t count = (size_t)MAX(in->topics.count, 0);
    out->topics.items = arena_get(event->arena, (count + 1) * sizeof(*out->topics.items));
    if (out->topics.items == NULL) return QUORUM_E_MEMORY;
    for (size_t i = 0; i < count; i++)
        if (!put_topic(quorum, event, &in->topics.items[i], error,
                       &out->topics.items[out->topics.count++]))
            return QUORUM_E_MEMORY;
    if (error == KAFKA_NONE && event->version >= 2 && !put_nodes(quorum, event, out))
        return QUORUM_E_MEMORY;
    return QUORUM_ANSWERED;
}
