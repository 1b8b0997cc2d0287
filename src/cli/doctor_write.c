/* doctor_write.c - `dohle doctor --write`: one record to the leader and back.
 *
 * Without --topic a topic of its own is made and deleted again. Versions that name topics by id are
 * avoided (Produce 13, Fetch 13, DeleteTopics 6), so that one way fits all servers. */
#include "cli/clock.h"
#include "cli/doctor.h"

#include <time.h>
#include <unistd.h>

#include "gen/api_versions_response.h"
#include "gen/create_topics_request.h"
#include "gen/create_topics_response.h"
#include "gen/delete_topics_request.h"
#include "gen/delete_topics_response.h"
#include "gen/errors.h"
#include "gen/fetch_request.h"
#include "gen/fetch_response.h"
#include "gen/metadata_request.h"
#include "gen/metadata_response.h"
#include "gen/produce_request.h"
#include "gen/produce_response.h"
#include "record/batch_build.h"

enum { PRODUCE_KEY = 0, FETCH_KEY = 1, METADATA_KEY = 3, CREATE_KEY = 19, DELETE_KEY = 20 };
enum { PRODUCE_MAX = 12, FETCH_MAX = 12, METADATA_MAX = 9, DELETE_MAX = 5 };

#define LEADER_WAIT_MS  10000
#define LEADER_PAUSE_MS 50
#define RECORD_BYTES    (64u * 1024u)

struct writing {
    struct doctor *doctor;
    struct dial *dial; /* The target. */
    struct dial leader;
    struct view topic;
    const char *topic_text;
    bool created;
    int64_t offset;
    struct view value;
};

/* A question that failed: told, with its cause. False. */
static bool lost(struct writing *w,
                 const struct dial *dial,
                 const char *hop,
                 enum dial_result result)
{
    doctor_found(w->doctor, DOCTOR_FAIL, hop, dial_result_text(dial, result));
    doctor_why_answer(w->doctor, hop, dial, result);
    return false;
}

static bool refused(struct writing *w, const char *hop, int16_t code, struct view message)
{
    doctor_found(w->doctor, DOCTOR_FAIL, hop,
                 doctor_text(w->doctor, "error %d, %s", code, kafka_error_name(code)));
    doctor_why_error(w->doctor, hop, code, message);
    return false;
}

/* ---- the topic ------------------------------------------------------------------------------- */

static bool create_topic(struct writing *w)
{
    struct create_topics_request request;
    struct create_topics_request_creatable_topic topic;
    struct create_topics_response response;

    wire_defaults(&wire_create_topics_request, &request);
    wire_struct_defaults(&wire_create_topics_request_creatable_topic_shape, &topic);
    topic.name = w->topic;
    topic.num_partitions = 1;
    topic.replication_factor = -1;
    request.topics.items = &topic;
    request.topics.count = 1;
    request.timeout_ms = w->doctor->timeout_ms;
    struct dial_question question = {wire_api(CREATE_KEY), &request, INT16_MAX};
    doctor_begin(w->doctor);
    enum dial_result result = dial_ask(w->dial, &question, &w->doctor->arena, &response);
    if (result != DIAL_OK) return lost(w, w->dial, "create", result);
    if (response.topics.count != 1) return lost(w, w->dial, "create", DIAL_DAMAGED);
    if (response.topics.items[0].error_code != 0)
        return refused(w, "create", response.topics.items[0].error_code,
                       response.topics.items[0].error_message);
    w->created = true;
    doctor_found(w->doctor, DOCTOR_OK, "create",
                 doctor_text(w->doctor, "topic %s, to be deleted again", w->topic_text));
    return true;
}

static void delete_topic(struct writing *w)
{
    struct delete_topics_request request;
    struct delete_topics_response response;

    wire_defaults(&wire_delete_topics_request, &request);
    request.topic_names.items = &w->topic;
    request.topic_names.count = 1;
    request.timeout_ms = w->doctor->timeout_ms;
    struct dial_question question = {wire_api(DELETE_KEY), &request, DELETE_MAX};
    doctor_begin(w->doctor);
    enum dial_result result = dial_ask(w->dial, &question, &w->doctor->arena, &response);
    int16_t code = result == DIAL_OK && response.responses.count == 1
                       ? response.responses.items[0].error_code
                       : -1;
    if (code == 0) {
        doctor_found(w->doctor, DOCTOR_OK, "delete",
                     doctor_text(w->doctor, "topic %s is gone", w->topic_text));
    } else {
        doctor_found(w->doctor, DOCTOR_WARN, "delete",
                     doctor_text(w->doctor, "topic %s is left over (%s)", w->topic_text,
                                 kafka_error_name(code)));
    }
}

/* ---- the leader ------------------------------------------------------------------------------ */

/* Who leads partition 0 now: its id, -1 if nobody yet (`*code`: why). */
static enum dial_result ask_leader(struct writing *w, int32_t *leader, int16_t *code)
{
    struct metadata_request request;
    struct metadata_request_metadata_request_topic topic;
    struct metadata_response response;

    wire_defaults(&wire_metadata_request, &request);
    wire_struct_defaults(&wire_metadata_request_metadata_request_topic_shape, &topic);
    topic.name = w->topic;
    request.topics.items = &topic;
    request.topics.count = 1;
    request.allow_auto_topic_creation = false;
    struct dial_question question = {wire_api(METADATA_KEY), &request, METADATA_MAX};
    *leader = -1;
    enum dial_result result = dial_ask(w->dial, &question, &w->doctor->arena, &response);
    if (result != DIAL_OK || response.topics.count != 1) return result;
    const struct metadata_response_metadata_response_topic *found = &response.topics.items[0];
    *code = found->error_code;
    for (int32_t i = 0; i < found->partitions.count; i++) {
        if (found->partitions.items[i].partition_index != 0) continue;
        *code = found->partitions.items[i].error_code;
        if (*code == 0) *leader = found->partitions.items[i].leader_id;
    }
    return result;
}

static const struct doctor_broker *broker_by_id(const struct doctor *doctor, int32_t id)
{
    for (uint32_t i = 0; i < doctor->broker_count; i++)
        if (doctor->brokers[i].id == id) return &doctor->brokers[i];
    return NULL;
}

static bool find_leader(struct writing *w)
{
    int64_t limit_ms = clock_now_ms() + LEADER_WAIT_MS;
    int32_t leader = -1;
    int16_t code = KAFKA_LEADER_NOT_AVAILABLE;
    struct doctor_reach reach;
    struct api_versions_response versions;

    doctor_begin(w->doctor);
    for (;;) {
        enum dial_result result = ask_leader(w, &leader, &code);
        if (result != DIAL_OK) return lost(w, w->dial, "leader", result);
        if (leader >= 0 || clock_now_ms() > limit_ms) break;
        if (!w->created && code == KAFKA_UNKNOWN_TOPIC_OR_PARTITION) break;
        usleep(LEADER_PAUSE_MS * 1000);
    }
    if (leader < 0) return refused(w, "leader", code, VIEW_NULL);
    const struct doctor_broker *broker = broker_by_id(w->doctor, leader);
    if (broker == NULL) return refused(w, "leader", KAFKA_BROKER_NOT_AVAILABLE, VIEW_NULL);
    doctor_reach(w->doctor, &broker->host, &w->leader, &reach);
    if (reach.error != 0) {
        doctor_found(w->doctor, DOCTOR_FAIL, "leader", doctor_reach_text(reach.error));
        doctor_why_advertised(w->doctor, broker, &reach);
        return false;
    }
    enum dial_result result = dial_versions(&w->leader, &w->doctor->arena, &versions);
    if (result != DIAL_OK) return lost(w, &w->leader, "leader", result);
    doctor_found(w->doctor, DOCTOR_OK, "leader",
                 doctor_text(w->doctor, "broker %d leads %s-0", leader, w->topic_text));
    return true;
}

/* ---- there ----------------------------------------------------------------------------------- */

static bool build_batch(struct writing *w, struct sink *sink, struct view *batch)
{
    struct batch_build build;
    struct record_input record = {
        .timestamp_ms = clock_wall_ms(), .key = VIEW("dohle doctor"), .value = w->value};
    batch_build_begin(&build, NULL, sink, &batch_build_plain);
    batch_build_add(&build, &record);
    return batch_build_finish(&build, -1, batch) == RECORD_OK;
}

static bool produce(struct writing *w)
{
    struct produce_request request;
    struct produce_request_topic_produce_data topic;
    struct produce_request_partition_produce_data partition;
    struct produce_response response;
    struct sink sink;

    wire_defaults(&wire_produce_request, &request);
    wire_struct_defaults(&wire_produce_request_topic_produce_data_shape, &topic);
    wire_struct_defaults(&wire_produce_request_partition_produce_data_shape, &partition);
    sink_init(&sink, w->doctor->cli->mem, RECORD_BYTES);
    if (!build_batch(w, &sink, &partition.records))
        return lost(w, &w->leader, "produce", DIAL_DAMAGED);
    topic.name = w->topic;
    topic.partition_data.items = &partition;
    topic.partition_data.count = 1;
    request.acks = -1;
    request.timeout_ms = w->doctor->timeout_ms;
    request.topic_data.items = &topic;
    request.topic_data.count = 1;
    struct dial_question question = {wire_api(PRODUCE_KEY), &request, PRODUCE_MAX};
    doctor_begin(w->doctor);
    enum dial_result result = dial_ask(&w->leader, &question, &w->doctor->arena, &response);
    sink_free(&sink);
    if (result != DIAL_OK) return lost(w, &w->leader, "produce", result);
    if (response.responses.count != 1 || response.responses.items[0].partition_responses.count != 1)
        return lost(w, &w->leader, "produce", DIAL_DAMAGED);
    const struct produce_response_partition_produce_response *done =
        &response.responses.items[0].partition_responses.items[0];
    if (done->error_code != 0) return refused(w, "produce", done->error_code, done->error_message);
    w->offset = done->base_offset;
    doctor_found(w->doctor, DOCTOR_OK, "produce",
                 doctor_text(w->doctor, "acks=all, offset %lld", (long long)w->offset));
    return true;
}

/* ---- and back -------------------------------------------------------------------------------- */

/* Is our record among these batches, at its offset? */
static bool holds_record(struct writing *w, struct view records)
{
    struct batch_scan scan = batch_scan_of(records);
    struct batch_header header;
    struct view batch;
    bool found = false;

    while (!found && batch_next(&scan, &header, &batch)) {
        struct compress_work work;
        struct record_iter iter;
        struct record record;
        if (header.magic != 2) continue;
        compress_work_init(&work, w->doctor->cli->mem);
        record_iter_begin(&iter, &work, &header, batch);
        while (!found && record_next(&iter, &record))
            found = record.offset == w->offset && view_equal(record.value, w->value);
        found = record_iter_end(&iter) == RECORD_OK && found;
        compress_work_free(&work);
    }
    return found;
}

static bool fetch(struct writing *w)
{
    struct fetch_request request;
    struct fetch_request_fetch_topic topic;
    struct fetch_request_fetch_partition partition;
    struct fetch_response response;

    wire_defaults(&wire_fetch_request, &request);
    wire_struct_defaults(&wire_fetch_request_fetch_topic_shape, &topic);
    wire_struct_defaults(&wire_fetch_request_fetch_partition_shape, &partition);
    partition.fetch_offset = w->offset;
    partition.partition_max_bytes = RECORD_BYTES;
    topic.topic = w->topic;
    topic.partitions.items = &partition;
    topic.partitions.count = 1;
    request.replica_id = -1;
    request.max_wait_ms = w->doctor->timeout_ms / 2;
    request.min_bytes = 1;
    request.max_bytes = RECORD_BYTES;
    request.session_epoch = -1;
    request.topics.items = &topic;
    request.topics.count = 1;
    struct dial_question question = {wire_api(FETCH_KEY), &request, FETCH_MAX};
    doctor_begin(w->doctor);
    enum dial_result result = dial_ask(&w->leader, &question, &w->doctor->arena, &response);
    if (result != DIAL_OK) return lost(w, &w->leader, "fetch", result);
    if (response.error_code != 0) return refused(w, "fetch", response.error_code, VIEW_NULL);
    if (response.responses.count != 1 || response.responses.items[0].partitions.count != 1)
        return lost(w, &w->leader, "fetch", DIAL_DAMAGED);
    const struct fetch_response_partition_data *done =
        &response.responses.items[0].partitions.items[0];
    if (done->error_code != 0) return refused(w, "fetch", done->error_code, VIEW_NULL);
    if (!holds_record(w, done->records)) {
        doctor_found(w->doctor, DOCTOR_FAIL, "fetch", "the record is not there");
        doctor_why_error(w->doctor, "fetch", KAFKA_OFFSET_OUT_OF_RANGE, VIEW_NULL);
        return false;
    }
    doctor_found(w->doctor, DOCTOR_OK, "fetch", "the same record");
    return true;
}

void doctor_write(struct doctor *doctor, struct dial *dial)
{
    const char *given = cli_value(doctor->cli, "topic");
    int64_t stamp = clock_wall_ms();
    struct writing w = {.doctor = doctor, .dial = dial, .leader = {.fd = -1}};

    w.leader.mem = doctor->cli->mem;
    w.topic_text = given != NULL ? given
                                 : doctor_text(doctor, "dohle-doctor-%llx-%x",
                                               (unsigned long long)stamp, (unsigned)getpid());
    w.topic = view_of_string(w.topic_text);
    w.value = view_of_string(doctor_text(doctor, "is this the record of %lld?", (long long)stamp));
    if (given != NULL || create_topic(&w)) {
        if (find_leader(&w) && produce(&w)) (void)fetch(&w);
        dial_close(&w.leader);
    }
    if (w.created) delete_topic(&w);
}
