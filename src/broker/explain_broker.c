/* explain_broker.c - `/explain/broker/ID`: a broker's state as the controller knows it, and why.
 *
 * What is committed comes from the node's image, what no record carries (offsets, sessions, beats)
 * from the controller part. Its memory begins when the controller became active. */
#include "broker/broker.h"
#include "broker/controller.h"
#include "broker/explain.h"

struct told {
    int32_t id;
    const struct image_node *broker;
    struct cluster_broker_view view;
    struct image_load load;
    bool own; /* The broker part of this process. */
    int64_t now_ms, wall_ms;
};

/* A moment of the monotonic clock as wall time; -1 stays. */
static int64_t wall_of(const struct told *told, int64_t at_ms)
{
    return at_ms < 0 ? -1 : told->wall_ms - (told->now_ms - at_ms);
}

static bool parse_id(struct view rest, int32_t *out)
{
    int64_t id = 0;
    if (rest.size == 0 || rest.size > 10) return false;
    for (uint32_t i = 0; i < rest.size; i++) {
        if (rest.data[i] < '0' || rest.data[i] > '9') return false;
        id = id * 10 + rest.data[i] - '0';
    }
    *out = (int32_t)MIN(id, INT32_MAX);
    return id <= INT32_MAX;
}

static int look(struct shard *shard, struct view rest, struct out *out, struct told *told)
{
    struct node *node = node_of(shard);
    *told = (struct told){0};
    if (!parse_id(rest, &told->id)) {
        out_text(out, "the path is /explain/broker/ID\n");
        return 400;
    }
    told->now_ms = io_now_ms(node->io);
    told->wall_ms = io_wall_ms(node->io);
    told->broker = image_broker(node->image, told->id);
    (void)controller_broker(node, told->id, &told->view);
    told->own = told->id == node->options.node_id && !node->options.controller_only;
    told->load = image_load(node->image, told->id);
    return told->broker == NULL ? 404 : 200;
}

static const char *state_of(const struct told *told)
{
    switch (told->view.liveness) {
    case CLUSTER_UNREGISTERED: return "unregistered";
    case CLUSTER_FENCED: return "fenced";
    case CLUSTER_UNFENCED: return "unfenced";
    case CLUSTER_SHUTTING_DOWN: return "shutting down";
    }
    return "unknown";
}

/* What keeps it fenced or going, in words; NULL: nothing. */
static const char *missing_of(const struct told *told)
{
    const struct cluster_broker_view *view = &told->view;
    bool heard = view->beat_count > 0;
    const struct cluster_beat *last = heard ? &view->beats[view->beat_count - 1] : NULL;
    if (view->liveness == CLUSTER_SHUTTING_DOWN)
        return told->load.leader > 0 ? "it still leads partitions"
                                     : "the other brokers have not all read the changes yet";
    if (view->liveness != CLUSTER_FENCED) return NULL;
    if (!heard) return "it has sent no heartbeat to this controller";
    if (last->want_shut_down) return "it was told that it may stop";
    if (!last->caught_up) return "it has not read its own registration yet";
    if (last->want_fence) return "it asks to stay fenced: it is not ready to serve";
    return "it has not been heard since its session ended";
}

/* ---- text ------------------------------------------------------------------------------------ */

static void text_beat(struct out *out, const struct told *told, const struct cluster_beat *beat)
{
    out_text(out, "  ");
    explain_put_time(out, wall_of(told, beat->at_ms));
    out_format(out, "  at offset %lld%s%s; told %s%s%s\n", (long long)beat->metadata_offset,
               beat->want_fence ? ", wants to be fenced" : "",
               beat->want_shut_down ? ", wants to stop" : "",
               beat->caught_up ? "caught up, " : "not caught up, ",
               beat->fenced ? "fenced" : "unfenced", beat->should_shut_down ? ", may stop" : "");
}

static bool takes_no_replicas(const struct image_node *broker)
{
    return broker->cordoned_known && broker->directory_count > 0 &&
           broker->cordoned_count >= broker->directory_count;
}

static void text_registration(struct out *out, const struct told *told)
{
    const struct image_node *broker = told->broker;
    out_format(out, "  epoch %lld, registered at offset %lld", (long long)broker->epoch,
               (long long)broker->register_offset);
    if (!broker->rack.null) {
        out_text(out, ", rack ");
        out_literal(out, broker->rack);
    }
    out_format(out, "; log directories: %u, cordoned: %u\n", broker->directory_count,
               broker->cordoned_known ? broker->cordoned_count : 0);
    out_format(out, "  leads %u partitions, in sync for %u, eligible to lead %u more\n",
               told->load.leader, told->load.isr, told->load.elr);
    if (takes_no_replicas(broker))
        out_text(out, told->own ? "  it takes no new replicas while other brokers are registered\n"
                                : "  it takes no new replicas: its log directories are cordoned\n");
}

static void text_session(struct out *out, const struct told *told)
{
    const struct cluster_broker_view *view = &told->view;
    out_format(out, "  read up to offset %lld", (long long)view->metadata_offset);
    if (view->metadata_offset >= 0 && view->metadata_offset < told->broker->register_offset)
        out_format(out, ", %lld behind its registration",
                   (long long)(told->broker->register_offset - view->metadata_offset));
    if (view->session_end_ms < 0) {
        out_text(out, told->own ? "; it holds no session: it lives in this process\n"
                                : "; it holds no session\n");
        return;
    }
    out_text(out, "; last contact ");
    explain_put_time(out, wall_of(told, view->contact_ms));
    out_text(out, ", its session ends ");
    explain_put_time(out, wall_of(told, view->session_end_ms));
    out_char(out, '\n');
}

int explain_broker_text(struct shard *shard, struct view rest, struct out *out)
{
    struct told told;
    int status = look(shard, rest, out, &told);
    if (status == 400) return status;
    out_format(out, "broker %d", told.id);
    if (status == 404) {
        out_text(out, ": no such broker is registered\n");
        return status;
    }
    out_format(out, " is %s", state_of(&told));
    if (told.view.since_ms > 0) {
        out_text(out, " since ");
        explain_put_time(out, wall_of(&told, told.view.since_ms));
    }
    out_format(out, ": %s; %u partitions changed by it\n", controller_reason(&told.view),
               told.view.moved);
    const char *missing = missing_of(&told);
    if (missing != NULL) out_format(out, "  missing: %s\n", missing);
    text_registration(out, &told);
    text_session(out, &told);
    out_text(out, "last heartbeats, as remembered since this controller became active:\n");
    for (uint32_t i = 0; i < told.view.beat_count; i++)
        text_beat(out, &told, &told.view.beats[i]);
    return status;
}

/* ---- JSON ------------------------------------------------------------------------------------ */

static const char *truth(bool value)
{
    return value ? "true" : "false";
}

static void json_beat(struct out *out, const struct told *told, const struct cluster_beat *beat)
{
    out_format(out, "{\"offset\":%lld", (long long)beat->metadata_offset);
    explain_json_time(out, "time", wall_of(told, beat->at_ms));
    out_format(out,
               ",\"wantFence\":%s,\"wantShutDown\":%s,\"isCaughtUp\":%s,\"isFenced\":%s,"
               "\"shouldShutDown\":%s}",
               truth(beat->want_fence), truth(beat->want_shut_down), truth(beat->caught_up),
               truth(beat->fenced), truth(beat->should_shut_down));
}

static void json_registration(struct out *out, const struct told *told)
{
    const struct image_node *broker = told->broker;
    char incarnation[23];
    log_uuid_print(broker->incarnation, incarnation);
    out_format(out, ",\"epoch\":%lld,\"registerOffset\":%lld", (long long)broker->epoch,
               (long long)broker->register_offset);
    explain_json_text(out, "incarnation", view_of_string(incarnation));
    explain_json_text(out, "rack", broker->rack);
    out_format(out, ",\"logDirs\":%u,\"cordonedLogDirs\":%u", broker->directory_count,
               broker->cordoned_known ? broker->cordoned_count : 0);
    out_format(out, ",\"leads\":%u,\"inSync\":%u,\"eligible\":%u", told->load.leader,
               told->load.isr, told->load.elr);
}

int explain_broker_json(struct shard *shard, struct view rest, struct out *out)
{
    struct told told;
    int status = look(shard, rest, out, &told);
    if (status == 400) return status;
    out_format(out, "{\"broker\":%d,\"registered\":%s", told.id, truth(status == 200));
    if (status == 404) {
        out_text(out, "}\n");
        return status;
    }
    const char *missing = missing_of(&told);
    explain_json_text(out, "state", view_of_string(state_of(&told)));
    explain_json_time(out, "since",
                      wall_of(&told, told.view.since_ms > 0 ? told.view.since_ms : -1));
    explain_json_text(out, "reason", view_of_string(controller_reason(&told.view)));
    explain_json_text(out, "missing", missing == NULL ? VIEW_NULL : view_of_string(missing));
    out_format(out, ",\"partitionsChanged\":%u,\"metadataOffset\":%lld", told.view.moved,
               (long long)told.view.metadata_offset);
    json_registration(out, &told);
    bool session = told.view.session_end_ms >= 0;
    explain_json_time(out, "lastContact", wall_of(&told, told.view.contact_ms));
    explain_json_time(out, "sessionEnds", session ? wall_of(&told, told.view.session_end_ms) : -1);
    out_text(out, ",\"heartbeats\":[");
    for (uint32_t i = 0; i < told.view.beat_count; i++) {
        if (i > 0) out_char(out, ',');
        json_beat(out, &told, &told.view.beats[i]);
    }
    out_text(out, "]}\n");
    return status;
}
