/* explain.c - `/explain/member/GROUP/MEMBER`: a member's standing and its story.
 *
 * Both forms are made from one struct explained; times are UTC. */
#include "broker/explain.h"

#include <time.h>

#include "broker/broker.h"
#include "broker/coordinator.h"
#include "core/group_story.h"
#include "core/offsets.h"

#define EXPLAIN_ELSEWHERE 421 /* The console asks the next shard. */

struct asked {
    struct view group, member;
    uint8_t bytes[512]; /* Both, decoded. */
};

struct explained {
    struct asked asked;
    struct groups *groups;
    struct group_explained of;
    int64_t wall_ms;
};

/* ---- the question -----------------------------------------------------------------------------
 */

static int hex(uint8_t c)
{
    if (c >= '0' && c <= '9') return c - '0';
    if (c >= 'a' && c <= 'f') return c - 'a' + 10;
    return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

/* Percent-decoding; what is no escape stays as it is. */
static uint32_t decode(struct view in, uint8_t *out)
{
    uint32_t size = 0;
    for (uint32_t i = 0; i < in.size; i++) {
        bool escape = in.data[i] == '%' && i + 2 < in.size && hex(in.data[i + 1]) >= 0 &&
                      hex(in.data[i + 2]) >= 0;
        out[size++] =
            escape ? (uint8_t)(hex(in.data[i + 1]) * 16 + hex(in.data[i + 2])) : in.data[i];
        if (escape) i += 2;
    }
    return size;
}

static bool split(struct view rest, struct asked *out)
{
    uint32_t at = 0;
    while (at < rest.size && rest.data[at] != '/')
        at++;
    if (at == 0 || at + 1 >= rest.size || rest.size > sizeof(out->bytes)) return false;
    uint32_t size = decode(view_of(rest.data, at), out->bytes);
    out->group = view_of(out->bytes, size);
    uint32_t more = decode(view_of(rest.data + at + 1, rest.size - at - 1), out->bytes + size);
    out->member = view_of(out->bytes + size, more);
    return true;
}

/* 200, or the status of an error that is said in `out`. */
static int explain(struct shard *shard, struct view rest, struct out *out, struct explained *e)
{
    struct node *node = node_of(shard);
    struct coordinator_part *part;
    if (!split(rest, &e->asked)) {
        out_text(out, "the path is /explain/member/GROUP/MEMBER, each percent-encoded\n");
        return 400;
    }
    enum kafka_error error = coordinator_find(node, e->asked.group, &part);
    if (error != KAFKA_NONE) {
        out_format(out, "the group's partition is not served here: %s\n",
                   kafka_error_name((int16_t)error));
        return error == KAFKA_NOT_COORDINATOR ? EXPLAIN_ELSEWHERE : 503;
    }
    e->groups = coordinator_groups(part);
    e->wall_ms = io_wall_ms(node->io);
    group_explain(e->groups, e->asked.group, e->asked.member,
                  (struct group_now){io_now_ms(node->io), e->wall_ms}, &e->of);
    return e->of.known ? 200 : 404;
}

/* ---- words ------------------------------------------------------------------------------------
 */

static const char *const event_names[] = {
    [GROUP_EVENT_JOINED] = "joined",         [GROUP_EVENT_SILENT] = "silent",
    [GROUP_EVENT_NOT_JOINED] = "not-joined", [GROUP_EVENT_NOT_SYNCED] = "not-synced",
    [GROUP_EVENT_HELD_ON] = "held-on",       [GROUP_EVENT_LEFT] = "left",
    [GROUP_EVENT_TOO_MANY] = "too-many",     [GROUP_EVENT_REPLACED] = "replaced",
    [GROUP_EVENT_TAKES_OVER] = "takes-over", [GROUP_EVENT_REBALANCE] = "rebalance",
    [GROUP_EVENT_GENERATION] = "generation", [GROUP_EVENT_STABLE] = "stable",
    [GROUP_EVENT_EMPTY] = "empty",           [GROUP_EVENT_EPOCH] = "epoch",
};

void explain_put_time(struct out *out, int64_t wall_ms)
{
    time_t seconds = (time_t)(wall_ms / 1000);
    struct tm tm;
    char text[32];
    gmtime_r(&seconds, &tm);
    (void)strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%S", &tm);
    out_format(out, "%s.%03dZ", text, (int)(wall_ms % 1000));
}

/* What happened, as half a sentence. */
static void put_what(struct out *out, const struct group_event *event)
{
    int n = event->number;
    switch ((enum group_event_kind)event->kind) {
    case GROUP_EVENT_JOINED: out_format(out, "joins; session timeout %d ms", n); break;
    case GROUP_EVENT_SILENT:
        out_format(out, "is removed: it was silent for its session timeout of %d ms", n);
        break;
    case GROUP_EVENT_NOT_JOINED:
        out_format(out, "is removed: it did not join again within the rebalance's %d ms", n);
        break;
    case GROUP_EVENT_NOT_SYNCED:
        out_format(out, "is removed: it did not sync within %d ms after its join was answered", n);
        break;
    case GROUP_EVENT_HELD_ON:
        out_format(out, "is removed: it did not give up its partitions within %d ms", n);
        break;
    case GROUP_EVENT_LEFT: out_text(out, "is removed: it left, or was made to leave"); break;
    case GROUP_EVENT_TOO_MANY: out_text(out, "is removed: the group is at its size limit"); break;
    case GROUP_EVENT_REPLACED:
        out_text(out, "is fenced: another process joined under its instance id");
        break;
    case GROUP_EVENT_TAKES_OVER:
        out_text(out, "takes the place of its instance's old process");
        break;
    case GROUP_EVENT_REBALANCE: out_format(out, "rebalance: all of %d are to join", n); break;
    case GROUP_EVENT_GENERATION:
        out_format(out, "generation %d begins with %d members", event->generation, n);
        break;
    case GROUP_EVENT_STABLE: out_format(out, "generation %d is stable", event->generation); break;
    case GROUP_EVENT_EMPTY: out_text(out, "nobody is left"); break;
    case GROUP_EVENT_EPOCH: out_format(out, "epoch %d, %d members", event->generation, n); break;
    }
}

static bool removes(const struct group_event *event)
{
    return event->kind >= GROUP_EVENT_SILENT && event->kind <= GROUP_EVENT_REPLACED;
}

/* The newest event of this member, or NULL. */
static const struct group_event *newest(const struct explained *e)
{
    for (uint32_t i = e->of.event_count; i-- > 0;) {
        const struct group_event *event = group_event_at(e->groups, e->asked.group, i);
        if (group_event_of(event, e->asked.member)) return event;
    }
    return NULL;
}

static const char *standing(const struct explained *e)
{
    const struct group_event *event = newest(e);
    switch (e->of.standing) {
    case GROUP_MEMBER: return "member";
    case GROUP_PENDING_MEMBER: return "pending";
    case GROUP_NOT_MEMBER: break;
    }
    if (event == NULL) return "unknown";
    return event->kind == GROUP_EVENT_REPLACED ? "fenced" : "removed";
}

/* ---- text -------------------------------------------------------------------------------------
 */

static void text_open(struct out *out, const struct explained *e)
{
    struct offsets_open open = offsets_open(e->groups, e->asked.group);
    if (open.count == 0) return;
    out_format(out,
               "  open transactions hold %u of its offsets, the oldest of producer %lld at offset "
               "%lld of __consumer_offsets\n"
               "  only Apache Kafka can end them; until then who asks for stable offsets of these "
               "partitions is told to wait\n",
               open.count, (long long)open.producer_id, (long long)open.record_offset);
}

static void text_member(struct out *out, const struct explained *e)
{
    const struct group_explained *of = &e->of;
    out_text(out, "  it is a member");
    if (of->leads) out_text(out, ", the leader");
    if (!of->instance.null) {
        out_text(out, ", static as ");
        out_literal(out, of->instance);
    }
    out_text(out, "; client ");
    out_literal(out, of->client_id);
    out_text(out, " at ");
    out_literal(out, of->client_host);
    if (of->joining) out_text(out, "; its join waits for the rebalance");
    if (of->syncing) out_text(out, "; its sync waits for the leader");
    if (of->member_epoch >= 0) out_format(out, "; at epoch %d", of->member_epoch);
    out_text(out, "\n  last contact ");
    if (of->contact_wall_ms < 0)
        out_text(out, "none that this node remembers");
    else
        explain_put_time(out, of->contact_wall_ms);
    out_format(out, "; its session of %d ms ends ", of->session_ms);
    explain_put_time(out, of->deadline_wall_ms);
    out_format(out, "; rebalance timeout %d ms\n", of->rebalance_ms);
}

static void text_not_member(struct out *out, const struct explained *e)
{
    const struct group_event *event = newest(e);
    if (e->of.standing == GROUP_PENDING_MEMBER) {
        out_text(out, "  it was given its id and has not joined with it yet\n");
    } else if (event == NULL) {
        out_text(out, "  it is no member, and nothing is remembered of it\n"
                      "  __consumer_offsets proves that it was not in the group's newest record "
                      "when memory began, or that it is older than what is remembered\n");
    } else {
        out_text(out, "  no member any more: it ");
        put_what(out, event);
        out_text(out, ", ");
        explain_put_time(out, event->wall_ms);
        out_char(out, '\n');
        if (event->contact_wall_ms >= 0) {
            out_text(out, "  last contact ");
            explain_put_time(out, event->contact_wall_ms);
            out_char(out, '\n');
        }
    }
}

static void text_events(struct out *out, const struct explained *e)
{
    out_text(out, "what happened, as remembered since ");
    explain_put_time(out, e->of.loaded_wall_ms);
    out_text(out, " (before, only what __consumer_offsets proves)\n");
    for (uint32_t i = 0; i < e->of.event_count; i++) {
        const struct group_event *event = group_event_at(e->groups, e->asked.group, i);
        bool own = group_event_of(event, e->asked.member);
        out_text(out, own ? "* " : "  ");
        explain_put_time(out, event->wall_ms);
        out_text(out, "  ");
        if (own) out_text(out, "it ");
        if (!own && event->member_size > 0) {
            out_literal(out, view_of(event->member, event->member_size));
            out_char(out, ' ');
        }
        put_what(out, event);
        out_char(out, '\n');
    }
}

int explain_member_text(struct shard *shard, struct view rest, struct out *out)
{
    struct explained e;
    int status = explain(shard, rest, out, &e);
    if (status != 200 && status != 404) return status;
    out_text(out, "member ");
    out_literal(out, e.asked.member);
    out_text(out, " of group ");
    out_literal(out, e.asked.group);
    if (status == 404) {
        out_text(out, ": there is no such group: no record of it is in __consumer_offsets\n");
        return status;
    }
    out_text(out, "\n  the group is ");
    out_view(out, e.of.type);
    out_text(out, ", ");
    out_view(out, e.of.state);
    out_format(out, ", %s %d, members: %u\n",
               view_is(e.of.type, "consumer") ? "epoch" : "generation", e.of.generation,
               e.of.member_count);
    text_open(out, &e);
    if (e.of.standing == GROUP_MEMBER)
        text_member(out, &e);
    else
        text_not_member(out, &e);
    text_events(out, &e);
    return status;
}

/* ---- JSON -------------------------------------------------------------------------------------
 */

void explain_json_text(struct out *out, const char *name, struct view value)
{
    out_format(out, ",\"%s\":", name);
    if (value.null)
        out_text(out, "null");
    else
        out_quoted(out, value);
}

void explain_json_time(struct out *out, const char *name, int64_t wall_ms)
{
    out_format(out, ",\"%s\":", name);
    if (wall_ms < 0) {
        out_text(out, "null");
        return;
    }
    out_char(out, '"');
    explain_put_time(out, wall_ms);
    out_char(out, '"');
}

static void json_member(struct out *out, const struct group_explained *of)
{
    if (of->standing != GROUP_MEMBER) return;
    explain_json_text(out, "instanceId", of->instance);
    explain_json_text(out, "clientId", of->client_id);
    explain_json_text(out, "clientHost", of->client_host);
    out_format(out,
               ",\"leads\":%s,\"joining\":%s,\"syncing\":%s,\"memberEpoch\":%d,"
               "\"sessionTimeoutMs\":%d,\"rebalanceTimeoutMs\":%d",
               of->leads ? "true" : "false", of->joining ? "true" : "false",
               of->syncing ? "true" : "false", of->member_epoch, of->session_ms, of->rebalance_ms);
    explain_json_time(out, "lastContact", of->contact_wall_ms);
    explain_json_time(out, "sessionEnds", of->deadline_wall_ms);
}

static void json_open(struct out *out, const struct explained *e)
{
    struct offsets_open open = offsets_open(e->groups, e->asked.group);
    out_format(out, ",\"openTransactions\":{\"offsets\":%u", open.count);
    if (open.count > 0)
        out_format(out, ",\"producerId\":%lld,\"offset\":%lld", (long long)open.producer_id,
                   (long long)open.record_offset);
    out_char(out, '}');
}

static void json_event(struct out *out, const struct group_event *event)
{
    out_format(out, "{\"event\":\"%s\"", event_names[event->kind]);
    explain_json_time(out, "time", event->wall_ms);
    if (event->member_size > 0)
        explain_json_text(out, "member", view_of(event->member, event->member_size));
    if (removes(event)) explain_json_time(out, "lastContact", event->contact_wall_ms);
    out_format(out, ",\"generation\":%d,\"number\":%d,\"what\":\"", event->generation,
               event->number);
    put_what(out, event); /* Plain words. */
    out_text(out, "\"}");
}

int explain_member_json(struct shard *shard, struct view rest, struct out *out)
{
    struct explained e;
    int status = explain(shard, rest, out, &e);
    if (status != 200 && status != 404) return status;
    out_text(out, "{\"group\":");
    out_quoted(out, e.asked.group);
    explain_json_text(out, "member", e.asked.member);
    if (status == 404) {
        out_text(out, ",\"known\":false}\n");
        return status;
    }
    explain_json_text(out, "type", e.of.type);
    explain_json_text(out, "state", e.of.state);
    out_format(out, ",\"generation\":%d,\"members\":%u,\"standing\":\"%s\"", e.of.generation,
               e.of.member_count, standing(&e));
    json_member(out, &e.of);
    json_open(out, &e);
    explain_json_time(out, "rememberedSince", e.of.loaded_wall_ms);
    out_text(out, ",\"events\":[");
    for (uint32_t i = 0; i < e.of.event_count; i++) {
        if (i > 0) out_char(out, ',');
        json_event(out, group_event_at(e.groups, e.asked.group, i));
    }
    out_text(out, "]}\n");
    return status;
}

/* ---- as a line ------------------------------------------------------------------------------- */

void explain_say_event(const struct shard *shard,
                       struct view group,
                       const struct group_event *event)
{
    struct out what;
    char group_text[300], member_text[200];
    out_init(&what, shard->mem);
    put_what(&what, event);
    struct view words = out_so_far(&what);
    struct view member = view_of(event->member, event->member_size);
    say_bytes(member, member_text, sizeof(member_text));
    say(shard->say, SAY_DEBUG, SAY_IN_GROUP, "group %s: %s%s%.*s",
        say_bytes(group, group_text, sizeof(group_text)), member_text,
        event->member_size > 0 ? " " : "", (int)words.size, (const char *)words.data);
    out_free(&what);
}
