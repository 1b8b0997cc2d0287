/* fleet.c - see fleet.h.
 *
 *   classic   WANTS_JOIN -> JoinGroup -> SyncGroup -> RESTS -> Heartbeat -> RESTS, or WANTS_JOIN
 *   consumer  WANTS_JOIN -> ConsumerGroupHeartbeat, and again at once for each new assignment
 *
 * A link has one request on its way, of the member that it serves. */
#include "bench/lib/fleet.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "bench/lib/drive.h"
#include "bench/lib/requests.h"
#include "gen/consumer_group_heartbeat_request.h"
#include "gen/consumer_group_heartbeat_response.h"
#include "gen/errors.h"
#include "gen/heartbeat_request.h"
#include "gen/heartbeat_response.h"
#include "gen/join_group_request.h"
#include "gen/join_group_response.h"
#include "gen/leave_group_request.h"
#include "gen/leave_group_response.h"
#include "gen/sync_group_request.h"
#include "gen/sync_group_response.h"

#define API_JOIN_GROUP     11
#define API_HEARTBEAT      12
#define API_LEAVE_GROUP    13
#define API_SYNC_GROUP     14
#define API_CONSUMER_BEAT  68
#define JOIN_VERSION       3 /* The last that gives an id and lets in at once. */
#define SYNC_VERSION       5
#define BEAT_VERSION       4
#define CONSUMER_VERSION   1
#define CONSUMER_JOINS     0
#define CONSUMER_LEAVES    (-1)
#define FLEET_EVENTS       256
#define FLEET_GIVE_UP_MS   600000
#define FLEET_CALM_MS      1500 /* Longer than group.consumer.assignment.interval.ms. */
#define EMPTY_SUBSCRIPTION VIEW("\0\1\0\0\0\0\377\377\377\377")

struct fleet_group {
    int32_t generation; /* The newest that somebody was told. */
    uint32_t size;      /* So many are to be in it. */
    uint32_t known;     /* Members that are in it, by its leader's answer. */
    uint32_t told;      /* Members that know the generation, and what they hold. */
};

struct fleet_link {
    struct client client;
    struct fleet *fleet;
    uint32_t member;
    uint32_t until;     /* When it is answered, the next of its members below this one is served. */
    bool asked;         /* Its answer is on the way. */
    int32_t generation; /* Of the assignment that it asks for. */
};

static struct fleet_group *group_of(const struct fleet *fleet, uint32_t member)
{
    return &fleet->groups[member / fleet->options.group_size];
}

static struct fleet_link *link_of(const struct fleet *fleet, uint32_t member)
{
    return &fleet->links[member % fleet->options.links];
}

static struct fleet_member *member_of(const struct fleet_link *link)
{
    return &link->fleet->members[link->member];
}

static void group_name(const struct fleet *fleet, uint32_t member, char name[FLEET_NAME_BYTES])
{
    (void)snprintf(name, FLEET_NAME_BYTES, "bench-%08x-%07u", (unsigned)getpid(),
                   member / fleet->options.group_size);
}

static void ask(struct fleet_link *link, int16_t api_key, int16_t version, const void *message)
{
    assert(!link->asked);
    client_ask(&link->client, api_key, version, message);
    link->asked = true;
}

/* The member knows this generation now. Those who knew an older one are counted anew. */
static void tell(struct fleet_link *link, int32_t generation)
{
    struct fleet_group *group = group_of(link->fleet, link->member);
    struct fleet_member *member = member_of(link);
    if (generation > group->generation) {
        group->generation = generation;
        group->told = 0;
    }
    if (generation == group->generation && member->generation != generation) group->told++;
    member->generation = generation;
}

/* ---- classic --------------------------------------------------------------------------------- */

static void ask_join(struct fleet_link *link)
{
    struct join_group_request request;
    struct join_group_request_join_group_request_protocol protocol;
    char name[FLEET_NAME_BYTES];
    wire_defaults(&wire_join_group_request, &request);
    wire_struct_defaults(&wire_join_group_request_join_group_request_protocol_shape, &protocol);
    group_name(link->fleet, link->member, name);
    protocol.name = VIEW("range");
    protocol.metadata = EMPTY_SUBSCRIPTION;
    request.group_id = view_of_string(name);
    request.session_timeout_ms = link->fleet->options.session_ms;
    request.rebalance_timeout_ms = 300000;
    request.member_id = view_of_string(member_of(link)->id);
    request.group_instance_id = VIEW_NULL;
    request.protocol_type = VIEW("consumer");
    request.protocols.items = &protocol;
    request.protocols.count = 1;
    ask(link, API_JOIN_GROUP, JOIN_VERSION, &request);
}

/* The leader's carries an assignment for each, the others' none. */
static void ask_sync(struct fleet_link *link, const struct join_group_response *joined)
{
    struct sync_group_request request;
    struct sync_group_request_sync_group_request_assignment *items =
        calloc((size_t)joined->members.count + 1, sizeof(*items));
    char name[FLEET_NAME_BYTES];
    if (items == NULL) client_die("no memory for assignments");
    wire_defaults(&wire_sync_group_request, &request);
    group_name(link->fleet, link->member, name);
    for (int32_t i = 0; i < joined->members.count; i++) {
        wire_struct_defaults(&wire_sync_group_request_sync_group_request_assignment_shape,
                             &items[i]);
        items[i].member_id = joined->members.items[i].member_id;
        items[i].assignment = EMPTY_SUBSCRIPTION;
    }
    request.group_id = view_of_string(name);
    request.generation_id = joined->generation_id;
    request.member_id = view_of_string(member_of(link)->id);
    request.group_instance_id = VIEW_NULL;
    request.protocol_type = VIEW("consumer");
    request.protocol_name = VIEW("range");
    request.assignments.items = items;
    request.assignments.count = joined->members.count;
    ask(link, API_SYNC_GROUP, SYNC_VERSION, &request);
    free(items);
}

static void joined(struct fleet_link *link, const struct join_group_response *answer)
{
    struct fleet_member *member = member_of(link);
    struct fleet_group *group = group_of(link->fleet, link->member);
    if (answer->error_code != KAFKA_NONE) client_die("JoinGroup: error %d", answer->error_code);
    (void)snprintf(member->id, sizeof(member->id), "%.*s", (int)answer->member_id.size,
                   (const char *)answer->member_id.data);
    if (answer->members.count > 0) {
        group->known = (uint32_t)answer->members.count;
        if (group->known < group->size) {
            ask_join(link);
            return;
        }
    }
    if (answer->generation_id > group->generation) {
        group->generation = answer->generation_id;
        group->told = 0;
    } else if (member->generation == answer->generation_id) {
        group->told--;
    }
    member->generation = FLEET_NOT_JOINED; /* Until it has its assignment. */
    link->generation = answer->generation_id;
    ask_sync(link, answer);
}

static void synced(struct fleet_link *link, const struct sync_group_response *answer)
{
    if (answer->error_code == KAFKA_REBALANCE_IN_PROGRESS) {
        ask_join(link);
        return;
    }
    if (answer->error_code != KAFKA_NONE) client_die("SyncGroup: error %d", answer->error_code);
    tell(link, link->generation);
}

/* `name` holds the group's name for as long as the request is used. */
static void fill_beat(const struct fleet *fleet,
                      uint32_t member,
                      char name[FLEET_NAME_BYTES],
                      struct heartbeat_request *request)
{
    wire_defaults(&wire_heartbeat_request, request);
    group_name(fleet, member, name);
    request->group_id = view_of_string(name);
    request->generation_id = fleet->members[member].generation;
    request->member_id = view_of_string(fleet->members[member].id);
    request->group_instance_id = VIEW_NULL;
}

static void ask_beat(struct fleet_link *link)
{
    struct heartbeat_request request;
    char name[FLEET_NAME_BYTES];
    fill_beat(link->fleet, link->member, name, &request);
    ask(link, API_HEARTBEAT, BEAT_VERSION, &request);
}

static void beaten(struct fleet_link *link, const struct heartbeat_response *answer)
{
    if (answer->error_code == KAFKA_REBALANCE_IN_PROGRESS)
        ask_join(link);
    else if (answer->error_code != KAFKA_NONE)
        client_die("Heartbeat: error %d", answer->error_code);
}

static void ask_leave(struct fleet_link *link)
{
    struct leave_group_request request;
    struct leave_group_request_member_identity identity;
    char name[FLEET_NAME_BYTES];
    wire_defaults(&wire_leave_group_request, &request);
    wire_struct_defaults(&wire_leave_group_request_member_identity_shape, &identity);
    group_name(link->fleet, link->member, name);
    identity.member_id = view_of_string(member_of(link)->id);
    identity.group_instance_id = VIEW_NULL;
    request.group_id = view_of_string(name);
    request.members.items = &identity;
    request.members.count = 1;
    ask(link, API_LEAVE_GROUP, 5, &request);
}

/* ---- consumer -------------------------------------------------------------------------------- */

/* One that changes nothing. `name` holds the group's name for as long as the request is used. */
static void fill_consumer(const struct fleet *fleet,
                          uint32_t member,
                          char name[FLEET_NAME_BYTES],
                          struct consumer_group_heartbeat_request *request)
{
    wire_defaults(&wire_consumer_group_heartbeat_request, request);
    group_name(fleet, member, name);
    request->group_id = view_of_string(name);
    request->member_id = view_of_string(fleet->members[member].id);
    request->member_epoch = fleet->members[member].generation;
    request->topic_partitions.count = -1;
    request->subscribed_topic_names.count = -1;
}

static void ask_consumer(struct fleet_link *link, int32_t epoch)
{
    struct consumer_group_heartbeat_request request;
    struct view topic = view_of_string(link->fleet->options.topic);
    char name[FLEET_NAME_BYTES];
    fill_consumer(link->fleet, link->member, name, &request);
    request.member_epoch = epoch;
    if (epoch == CONSUMER_JOINS) {
        request.rebalance_timeout_ms = 300000;
        request.subscribed_topic_names.items = &topic;
        request.subscribed_topic_names.count = 1;
        request.topic_partitions.count = 0;
    }
    ask(link, API_CONSUMER_BEAT, CONSUMER_VERSION, &request);
}

/* It holds what it was given, and nothing else any more. */
static void ask_acknowledge(struct fleet_link *link)
{
    struct consumer_group_heartbeat_request request;
    struct consumer_group_heartbeat_request_topic_partitions held;
    const struct fleet_member *member = member_of(link);
    char name[FLEET_NAME_BYTES];
    fill_consumer(link->fleet, link->member, name, &request);
    wire_struct_defaults(&wire_consumer_group_heartbeat_request_topic_partitions_shape, &held);
    held.topic_id = member->topic;
    held.partitions.items = member->owned;
    held.partitions.count = (int32_t)member->owned_count;
    request.topic_partitions.items = &held;
    request.topic_partitions.count = member->owned_count > 0;
    ask(link, API_CONSUMER_BEAT, CONSUMER_VERSION, &request);
}

static void take_assignment(struct fleet_member *member,
                            const struct consumer_group_heartbeat_response_assignment *given)
{
    uint32_t count = 0;
    for (int32_t i = 0; i < given->topic_partitions.count; i++)
        count += (uint32_t)given->topic_partitions.items[i].partitions.count;
    member->owned_count = 0;
    member->owned = realloc(member->owned, (count + 1) * sizeof(*member->owned));
    if (member->owned == NULL) client_die("no memory for an assignment");
    for (int32_t i = 0; i < given->topic_partitions.count; i++) {
        const struct consumer_group_heartbeat_response_topic_partitions *topic =
            &given->topic_partitions.items[i];
        member->topic = topic->topic_id;
        for (int32_t j = 0; j < topic->partitions.count; j++)
            member->owned[member->owned_count++] = topic->partitions.items[j];
    }
}

static void consumer_told(struct fleet_link *link,
                          const struct consumer_group_heartbeat_response *answer)
{
    struct fleet_member *member = member_of(link);
    if (answer->error_code != KAFKA_NONE)
        client_die("ConsumerGroupHeartbeat: error %d", answer->error_code);
    if (answer->member_epoch < 0) return; /* It has left. */
    tell(link, answer->member_epoch);
    if (answer->assignment == NULL) return;
    take_assignment(member, answer->assignment);
    ask_acknowledge(link);
}

/* ---- the loop -------------------------------------------------------------------------------- */

static bool is_consumer(const struct fleet *fleet)
{
    return fleet->options.protocol == FLEET_CONSUMER;
}

static void start_join(struct fleet_link *link)
{
    if (is_consumer(link->fleet))
        ask_consumer(link, CONSUMER_JOINS);
    else
        ask_join(link);
}

static void start_beat(struct fleet_link *link)
{
    if (is_consumer(link->fleet))
        ask_consumer(link, member_of(link)->generation);
    else
        ask_beat(link);
}

static void answered(struct fleet_link *link)
{
    const void *answer = client_answer(&link->client);
    link->asked = false;
    switch (link->client.asked_api) {
    case API_JOIN_GROUP: joined(link, answer); break;
    case API_SYNC_GROUP: synced(link, answer); break;
    case API_HEARTBEAT: beaten(link, answer); break;
    case API_CONSUMER_BEAT: consumer_told(link, answer); break;
    default: break; /* LeaveGroup. */
    }
}

/* What has come within `wait_ms`, and what follows from it. */
static void turn(struct fleet *fleet, int wait_ms, void (*start)(struct fleet_link *link))
{
    struct epoll_event events[FLEET_EVENTS];
    int count = epoll_wait(fleet->epoll_fd, events, FLEET_EVENTS, wait_ms);
    for (int i = 0; i < count; i++) {
        struct fleet_link *link = events[i].data.ptr;
        if (!link->asked) client_die("a connection was closed");
        answered(link);
        if (link->asked || link->member + fleet->options.links >= link->until) continue;
        link->member += fleet->options.links;
        start(link);
    }
}

static bool any_asked(const struct fleet *fleet)
{
    for (uint32_t i = 0; i < fleet->options.links; i++)
        if (fleet->links[i].asked) return true;
    return false;
}

/* Every member of [first, first + count) asks once, each link's one after the other. */
static void pass(struct fleet *fleet,
                 uint32_t first,
                 uint32_t count,
                 void (*start)(struct fleet_link *link))
{
    for (uint32_t i = first; i < first + MIN(count, fleet->options.links); i++) {
        struct fleet_link *link = link_of(fleet, i);
        link->member = i;
        link->until = first + count;
        start(link);
    }
    while (any_asked(fleet))
        turn(fleet, FLEET_GIVE_UP_MS, start);
    for (uint32_t i = 0; i < fleet->options.links; i++)
        fleet->links[i].until = 0;
}

/* Every member of it holds its share of the partitions, and none is left. */
static bool balanced(const struct fleet *fleet, uint32_t group)
{
    uint32_t held = 0, first = group * fleet->options.group_size;
    uint32_t size = fleet->groups[group].size, all = fleet->options.partitions;
    for (uint32_t i = first; i < first + fleet->options.group_size; i++) {
        const struct fleet_member *member = &fleet->members[i];
        if (member->generation == FLEET_NOT_JOINED) continue;
        if (member->owned_count < all / size || member->owned_count > all / size + 1) return false;
        held += member->owned_count;
    }
    return held == all;
}

static bool settled(const struct fleet *fleet, uint32_t group)
{
    const struct fleet_group *it = &fleet->groups[group];
    if (it->size == 0) return true;
    if (it->told != it->size) return false;
    return is_consumer(fleet) ? balanced(fleet, group) : it->known == it->size;
}

static void beat_unsettled(struct fleet *fleet)
{
    for (uint32_t i = 0; i < fleet->options.links; i++) {
        struct fleet_link *link = &fleet->links[i];
        bool in = member_of(link)->generation != FLEET_NOT_JOINED;
        if (in && !link->asked && !settled(fleet, link->member / fleet->options.group_size))
            start_beat(link);
    }
}

/* Until all groups with members in [first, first + count) are settled. */
static void settle(struct fleet *fleet, uint32_t first, uint32_t count)
{
    int64_t beat_ns = drive_now_ns(), end_ns = beat_ns + (int64_t)FLEET_GIVE_UP_MS * 1000000;
    for (uint32_t i = first; i < first + count; i++) {
        uint32_t group = i / fleet->options.group_size;
        while (!settled(fleet, group)) {
            int64_t now_ns = drive_now_ns();
            if (now_ns > end_ns) client_die("a group does not settle");
            if (now_ns >= beat_ns) {
                beat_unsettled(fleet);
                beat_ns = now_ns + (int64_t)FLEET_BEAT_MS * 1000000;
            }
            turn(fleet, (int)((beat_ns - now_ns) / 1000000) + 1, NULL);
        }
        i = (group + 1) * fleet->options.group_size - 1;
    }
    while (any_asked(fleet))
        turn(fleet, FLEET_BEAT_MS, NULL);
}

void fleet_join(struct fleet *fleet, uint32_t first, uint32_t count)
{
    for (uint32_t i = first; i < first + count; i++)
        group_of(fleet, i)->size++;
    if (is_consumer(fleet)) {
        pass(fleet, first, count, start_join);
    } else {
        assert(count <= fleet->options.links);
        for (uint32_t i = first; i < first + count; i++) {
            link_of(fleet, i)->member = i;
            ask_join(link_of(fleet, i));
        }
    }
    settle(fleet, first, count);
}

static void start_leave(struct fleet_link *link)
{
    if (is_consumer(link->fleet))
        ask_consumer(link, CONSUMER_LEAVES);
    else
        ask_leave(link);
}

void fleet_leave(struct fleet *fleet, uint32_t first, uint32_t count)
{
    pass(fleet, first, count, start_leave);
    for (uint32_t i = first; i < first + count; i++) {
        struct fleet_group *group = group_of(fleet, i);
        group->size--;
        group->told -= fleet->members[i].generation == group->generation;
        fleet->members[i].generation = FLEET_NOT_JOINED;
        fleet->members[i].owned_count = 0;
        fleet->members[i].id[0] = is_consumer(fleet) ? fleet->members[i].id[0] : '\0';
        if (!is_consumer(fleet)) group->told = 0; /* A new generation is to come. */
    }
    settle(fleet, first, count);
}

void fleet_fill(struct fleet *fleet)
{
    const struct fleet_options *options = &fleet->options;
    uint32_t part = options->links / options->group_size * options->group_size;
    if (is_consumer(fleet)) {
        for (uint32_t i = 0; i < options->members; i++)
            group_of(fleet, i)->size++;
        pass(fleet, 0, options->members, start_join);
        bool all;
        do { /* Until nothing has moved for longer than assignments are gathered. */
            (void)usleep(FLEET_CALM_MS * 1000);
            pass(fleet, 0, options->members, start_beat);
            all = true;
            for (uint32_t i = 0; i < fleet->group_count && all; i++)
                all = fleet->groups[i].told == fleet->groups[i].size;
        } while (!all);
        return;
    }
    for (uint32_t first = 0; first < options->members; first += part)
        fleet_join(fleet, first, MIN(part, options->members - first));
}

int16_t fleet_beat(struct fleet *fleet, uint32_t member)
{
    struct fleet_link *link = link_of(fleet, member);
    link->member = member;
    start_beat(link);
    link->asked = false;
    const void *answer = client_answer(&link->client);
    return is_consumer(fleet)
               ? ((const struct consumer_group_heartbeat_response *)answer)->error_code
               : ((const struct heartbeat_response *)answer)->error_code;
}

void fleet_frame(const struct fleet *fleet, uint32_t member, struct sink *out)
{
    char name[FLEET_NAME_BYTES];
    if (is_consumer(fleet)) {
        struct consumer_group_heartbeat_request request;
        fill_consumer(fleet, member, name, &request);
        (void)client_encode(out, API_CONSUMER_BEAT, CONSUMER_VERSION, 0, &request);
    } else {
        struct heartbeat_request request;
        fill_beat(fleet, member, name, &request);
        (void)client_encode(out, API_HEARTBEAT, BEAT_VERSION, 0, &request);
    }
}

/* ---- opening and closing --------------------------------------------------------------------- */

static void open_links(struct fleet *fleet)
{
    const struct fleet_options *options = &fleet->options;
    struct group_member probe = {.generation = 0};
    for (uint32_t i = 0; i < options->links; i++) {
        struct fleet_link *link = &fleet->links[i];
        struct epoll_event event = {.events = EPOLLIN, .data.ptr = link};
        link->fleet = fleet;
        link->member = MIN(i, options->members - 1);
        client_open(&link->client, options->mem, options->host, options->port);
        if (epoll_ctl(fleet->epoll_fd, EPOLL_CTL_ADD, link->client.fd, &event) != 0)
            client_die("could not watch a connection: %s", strerror(errno));
    }
    (void)snprintf(probe.group, sizeof(probe.group), "bench-%08x-probe", (unsigned)getpid());
    join_group_call(&fleet->links[0].client, &probe);
}

void fleet_open(struct fleet *fleet, const struct fleet_options *options)
{
    assert(options->members > 0);
    assert(options->members % options->group_size == 0);
    *fleet = (struct fleet){.options = *options};
    fleet->group_count = options->members / options->group_size;
    fleet->members = calloc(options->members, sizeof(*fleet->members));
    fleet->groups = calloc(fleet->group_count, sizeof(*fleet->groups));
    fleet->links = calloc(options->links, sizeof(*fleet->links));
    fleet->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    if (fleet->members == NULL || fleet->groups == NULL || fleet->links == NULL ||
        fleet->epoll_fd < 0)
        client_die("no memory for members");
    for (uint32_t i = 0; i < options->members; i++) {
        fleet->members[i].generation = FLEET_NOT_JOINED;
        if (is_consumer(fleet) || options->bare) /* As long as an id of Kafka's classic kind. */
            (void)snprintf(fleet->members[i].id, FLEET_NAME_BYTES, "bench-%036u", i);
    }
    if (!options->bare) open_links(fleet);
}

void fleet_close(struct fleet *fleet)
{
    for (uint32_t i = 0; i < fleet->options.links && !fleet->options.bare; i++)
        client_close(&fleet->links[i].client);
    for (uint32_t i = 0; i < fleet->options.members; i++)
        free(fleet->members[i].owned);
    close(fleet->epoll_fd);
    free(fleet->members);
    free(fleet->groups);
    free(fleet->links);
}
