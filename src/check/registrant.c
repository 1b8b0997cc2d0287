/* registrant.c - requests of a scripted broker. */
#include "check/registrant.h"

#include <stdlib.h>
#include <unistd.h>

#include <sys/random.h>

#include "gen/api_versions_request.h"
#include "gen/api_versions_response.h"
#include "gen/assign_replicas_to_dirs_request.h"
#include "gen/assign_replicas_to_dirs_response.h"
#include "gen/broker_heartbeat_request.h"
#include "gen/broker_registration_request.h"
#include "gen/broker_registration_response.h"
#include "gen/create_topics_request.h"
#include "gen/create_topics_response.h"
#include "gen/describe_cluster_request.h"
#include "gen/describe_cluster_response.h"
#include "gen/unregister_broker_request.h"
#include "gen/unregister_broker_response.h"

/* Ids of scripted brokers: above all that people give, a few for each row of a process. */
#define ID_BASE      1000000000
#define ID_PROCESSES 10000
#define ID_ROWS      1000
#define ID_OF_ROW    4

#define TIMEOUT_MS 10000

struct world {
    struct view cluster_id;
    const struct api_versions_response *versions; /* With the levels of features. */
};

void registrant_prepare(struct check_run *world)
{
    struct world *shared = arena_get(&world->arena, sizeof(*shared));
    struct check_peer *peer = run_peer(world);
    struct api_versions_request *ask = run_new(world, &wire_api_versions_request);
    struct describe_cluster_request *who = run_new(world, &wire_describe_cluster_request);

    assert(shared != NULL); /* No limit is set. */
    world->shared = shared;
    if (world->served[wire_broker_registration_request.api_key].max < 0) {
        run_fail(world,
                 "it does not advertise BrokerRegistration: this is no controller's listener");
        return;
    }
    ask->client_software_name = VIEW("dohle-check");
    ask->client_software_version = VIEW("1");
    int16_t version = run_version(world, &wire_api_versions_request, 4);
    shared->versions = run_call(world, peer, &wire_api_versions_request, version, ask);
    run_need(world, "ApiVersions", KAFKA_NONE, shared->versions->error_code);
    who->endpoint_type = 2; /* Controllers. */
    version = run_version(world, &wire_describe_cluster_request, 1);
    const struct describe_cluster_response *answer =
        run_call(world, peer, &wire_describe_cluster_request, version, who);
    run_need(world, "DescribeCluster", KAFKA_NONE, answer->error_code);
    shared->cluster_id = answer->cluster_id;
}

static int32_t id_of(const struct check_run *run, uint32_t number)
{
    assert(number < ID_OF_ROW);
    int32_t process = (int32_t)getpid() % ID_PROCESSES;
    int32_t row = (int32_t)(run->index % ID_ROWS);
    return ID_BASE + (process * ID_ROWS + row) * ID_OF_ROW + (int32_t)number;
}

static struct uuid new_uuid(void)
{
    struct uuid uuid;
    ssize_t got = getrandom(&uuid, sizeof(uuid), 0);
    assert(got == sizeof(uuid));
    return uuid;
}

void registrant_init(struct registrant *r, struct check_run *run, uint32_t number)
{
    const struct world *shared = run->world->shared;
    *r = (struct registrant){
        .run = run,
        .peer = run_peer(run),
        .id = id_of(run, number),
        .epoch = -1,
        .incarnation = new_uuid(),
        .cluster_id = shared->cluster_id,
        .dirs = {new_uuid(), new_uuid()},
        .dir_count = REGISTRANT_DIRS,
    };
    for (int32_t i = 0; i < shared->versions->finalized_features.count; i++) {
        const struct api_versions_response_finalized_feature_key *feature =
            &shared->versions->finalized_features.items[i];
        if (r->feature_count == REGISTRANT_FEATURES) break;
        r->features[r->feature_count++] = (struct registrant_feature){
            feature->name, feature->max_version_level, feature->max_version_level};
    }
}

void registrant_restart(struct registrant *r)
{
    r->incarnation = new_uuid();
}

int16_t registrant_register(struct registrant *r)
{
    struct broker_registration_request_listener listener;
    struct broker_registration_request_feature features[REGISTRANT_FEATURES];
    struct broker_registration_request *ask = run_new(r->run, &wire_broker_registration_request);

    wire_struct_defaults(&wire_broker_registration_request_listener_shape, &listener);
    listener.name = VIEW("PLAINTEXT");
    listener.host = VIEW("127.0.0.1");
    listener.port = 1;
    for (uint32_t i = 0; i < r->feature_count; i++) {
        wire_struct_defaults(&wire_broker_registration_request_feature_shape, &features[i]);
        features[i].name = r->features[i].name;
        features[i].min_supported_version = r->features[i].min;
        features[i].max_supported_version = r->features[i].max;
    }
    ask->broker_id = r->id;
    ask->cluster_id = r->cluster_id;
    ask->incarnation_id = r->incarnation;
    ask->listeners.items = &listener;
    ask->listeners.count = 1;
    ask->features.items = features;
    ask->features.count = (int32_t)r->feature_count;
    ask->is_migrating_zk_broker = r->migrating;
    ask->log_dirs.items = r->dirs;
    ask->log_dirs.count = r->dir_count;
    int16_t version = run_version(r->run, &wire_broker_registration_request, 4);
    const struct broker_registration_response *answer =
        run_call(r->run, r->peer, &wire_broker_registration_request, version, ask);
    if (answer->error_code == KAFKA_NONE) r->epoch = answer->broker_epoch;
    return answer->error_code;
}

const struct broker_heartbeat_response *registrant_beat(struct registrant *r,
                                                        const struct registrant_beat *beat)
{
    struct broker_heartbeat_request *ask = run_new(r->run, &wire_broker_heartbeat_request);
    int16_t wanted = r->run->version >= 0 ? r->run->version : 2;
    int16_t version = run_version(r->run, &wire_broker_heartbeat_request, wanted);

    ask->broker_id = r->id;
    ask->broker_epoch = r->epoch;
    ask->current_metadata_offset = beat->offset;
    ask->want_fence = beat->fence;
    ask->want_shut_down = beat->shut_down;
    struct uuid offline = beat->offline != NULL ? *beat->offline : (struct uuid){{0}};
    struct uuid cordoned[REGISTRANT_DIRS] = {{{0}}};
    if (beat->offline != NULL && version >= 1) {
        ask->offline_log_dirs.items = &offline;
        ask->offline_log_dirs.count = 1;
    }
    if (beat->cordoned != NULL && version >= 2) {
        for (int32_t i = 0; i < beat->cordoned_count; i++)
            cordoned[i] = beat->cordoned[i];
        ask->cordoned_log_dirs.items = cordoned;
        ask->cordoned_log_dirs.count = beat->cordoned_count;
    }
    return run_call(r->run, r->peer, &wire_broker_heartbeat_request, version, ask);
}

/* "caught up, fenced" and the like. */
static const char *flags_text(struct check_run *run, struct registrant_flags flags)
{
    return run_text(run, "%s, %s%s", flags.caught_up ? "caught up" : "behind",
                    flags.fenced ? "fenced" : "unfenced", flags.shut_down ? ", shut down" : "");
}

void registrant_expect(struct registrant *r,
                       const char *what,
                       const struct registrant_beat *beat,
                       struct registrant_flags flags)
{
    const struct broker_heartbeat_response *answer = registrant_beat(r, beat);
    struct registrant_flags got = {answer->is_caught_up, answer->is_fenced,
                                   answer->should_shut_down};
    run_need(r->run, what, KAFKA_NONE, answer->error_code);
    run_expect_text(r->run, what, flags_text(r->run, flags),
                    view_of_string(flags_text(r->run, got)));
}

void registrant_live(struct registrant *r)
{
    run_need(r->run, "registration", KAFKA_NONE, registrant_register(r));
    const struct broker_heartbeat_response *answer =
        registrant_beat(r, &(struct registrant_beat){.offset = REGISTRANT_FAR});
    run_need(r->run, "beat", KAFKA_NONE, answer->error_code);
    run_need_true(r->run, "the broker is unfenced", r->run->over || !answer->is_fenced);
}

static int16_t unregister(struct check_run *run, struct check_peer *peer, int32_t id)
{
    struct unregister_broker_request *ask = run_new(run, &wire_unregister_broker_request);
    ask->broker_id = id;
    int16_t version = run_version(run, &wire_unregister_broker_request, 0);
    const struct unregister_broker_response *answer =
        run_call(run, peer, &wire_unregister_broker_request, version, ask);
    return answer->error_code;
}

int16_t registrant_unregister(struct registrant *r)
{
    return unregister(r->run, r->peer, r->id);
}

int16_t registrant_topic(struct registrant *const *replicas, uint32_t count, struct uuid *id)
{
    struct check_run *run = replicas[0]->run;
    int32_t ids[ID_OF_ROW];
    struct create_topics_request_creatable_topic topic;
    struct create_topics_request_creatable_replica_assignment assignment;
    struct create_topics_request *ask = run_new(run, &wire_create_topics_request);

    assert(count <= ID_OF_ROW);
    for (uint32_t i = 0; i < count; i++)
        ids[i] = replicas[i]->id;
    wire_struct_defaults(&wire_create_topics_request_creatable_topic_shape, &topic);
    wire_struct_defaults(&wire_create_topics_request_creatable_replica_assignment_shape,
                         &assignment);
    assignment.broker_ids.items = ids;
    assignment.broker_ids.count = (int32_t)count;
    topic.name = view_of_string(run->name);
    topic.num_partitions = -1;
    topic.replication_factor = -1;
    topic.assignments.items = &assignment;
    topic.assignments.count = 1;
    ask->topics.items = &topic;
    ask->topics.count = 1;
    ask->timeout_ms = TIMEOUT_MS;
    int16_t version = run_version(run, &wire_create_topics_request, 7);
    const struct create_topics_response *answer =
        run_call(run, replicas[0]->peer, &wire_create_topics_request, version, ask);
    if (answer->topics.count != 1) return KAFKA_UNKNOWN_SERVER_ERROR;
    if (id != NULL) *id = answer->topics.items[0].topic_id;
    return answer->topics.items[0].error_code;
}

int16_t registrant_assign(struct registrant *r, struct uuid topic, struct uuid dir)
{
    struct assign_replicas_to_dirs_request_partition_data partition;
    struct assign_replicas_to_dirs_request_topic_data topics;
    struct assign_replicas_to_dirs_request_directory_data directory;
    struct assign_replicas_to_dirs_request *ask =
        run_new(r->run, &wire_assign_replicas_to_dirs_request);

    wire_struct_defaults(&wire_assign_replicas_to_dirs_request_partition_data_shape, &partition);
    wire_struct_defaults(&wire_assign_replicas_to_dirs_request_topic_data_shape, &topics);
    wire_struct_defaults(&wire_assign_replicas_to_dirs_request_directory_data_shape, &directory);
    topics.topic_id = topic;
    topics.partitions.items = &partition;
    topics.partitions.count = 1;
    directory.id = dir;
    directory.topics.items = &topics;
    directory.topics.count = 1;
    ask->broker_id = r->id;
    ask->broker_epoch = r->epoch;
    ask->directories.items = &directory;
    ask->directories.count = 1;
    int16_t version = run_version(r->run, &wire_assign_replicas_to_dirs_request, 0);
    const struct assign_replicas_to_dirs_response *answer =
        run_call(r->run, r->peer, &wire_assign_replicas_to_dirs_request, version, ask);
    if (answer->error_code != KAFKA_NONE) return answer->error_code;
    if (answer->directories.count != 1 || answer->directories.items[0].topics.count != 1)
        return KAFKA_UNKNOWN_SERVER_ERROR;
    return answer->directories.items[0].topics.items[0].partitions.items[0].error_code;
}

void registrant_clean(struct check_run *run)
{
    struct check_peer *peer = run_peer(run);
    run_delete_topic(run, peer);
    for (uint32_t i = 0; i < ID_OF_ROW; i++)
        (void)unregister(run, peer, id_of(run, i));
}
