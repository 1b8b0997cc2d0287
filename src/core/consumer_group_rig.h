/* consumer_group_rig.h - consumer groups in tests: topics in an image, members as text, and what a
 * step has done as one line.
 *
 * A trace is the answer and the records: "2 {foo 0 1} | 5 m1 foo; 3 e2; 7 m1 foo 0 1; 6 e2; 8 m1
 * 2<0 STABLE foo 0@2 1@2". A partition's number is followed by the epoch in which it was handed
 * out. */
#pragma once

#include <stdio.h>
#include <string.h>

#include "core/core_test.h"

#include "base/bytes.h"
#include "core/consumer_group_internal.h"
#include "core/image.h"
#include "core/offsets.h"
#include "gen/consumer_group_current_member_assignment_key.h"
#include "gen/consumer_group_current_member_assignment_value.h"
#include "gen/consumer_group_heartbeat_request.h"
#include "gen/consumer_group_heartbeat_response.h"
#include "gen/consumer_group_member_metadata_key.h"
#include "gen/consumer_group_member_metadata_value.h"
#include "gen/consumer_group_metadata_value.h"
#include "gen/consumer_group_regular_expression_key.h"
#include "gen/consumer_group_regular_expression_value.h"
#include "gen/consumer_group_target_assignment_member_key.h"
#include "gen/consumer_group_target_assignment_member_value.h"
#include "gen/consumer_group_target_assignment_metadata_value.h"
#include "gen/partition_record.h"
#include "gen/remove_topic_record.h"
#include "gen/topic_record.h"

#define RIG_WALL 1000000 /* The wall clock when the other one stands at zero. */

struct crig {
    struct rig_mem heap;
    struct arena arena;
    struct image *image;
    struct groups *groups;
    struct consumer_group_options options;
    int64_t now;
    int64_t offset;
    int64_t image_offset;
    enum kafka_error append; /* What the next appends come to. */
    bool apply_fails;        /* The next step is applied without memory after so many pieces, */
    int64_t apply_fail_in;
    bool unloaded; /* and that was what it needed: the groups are to be loaded anew. */
    char trace[4096];
    uint32_t random;
    struct consumer_group_heartbeat_response out;
    /* All that was appended, to be loaded anew. */
    struct step_record *log;
    uint32_t log_count;
};

static const struct group_options crig_options = {
    .session_min_ms = 1000,
    .session_max_ms = 1800000,
    .initial_delay_ms = 3000,
    .size_max = 100,
    .metadata_max_bytes = 4096,
    .retention_ms = 604800000,
};

static inline struct uuid crig_topic_id(const char *name)
{
    struct uuid id = {{0}};
    id.bytes[0] = 7;
    id.bytes[15] = strcmp(name, "foo") == 0 ? 1 : strcmp(name, "bar") == 0 ? 2 : 3;
    return id;
}

static inline const char *crig_topic_name(struct uuid id)
{
    static const char *const names[] = {"?", "foo", "bar", "baz"};
    return names[id.bytes[15] < ARRAY_SIZE(names) ? id.bytes[15] : 0];
}

static inline void crig_image_apply(struct crig *rig, const struct step *step)
{
    for (uint32_t i = 0; i < step->record_count; i++, rig->image_offset++)
        assert_int_equal(
            image_apply(rig->image, &step->records[i], rig->image_offset, rig->image_offset),
            IMAGE_OK);
    groups_topics_changed(rig->groups);
}

static inline void crig_topic_from(struct crig *rig, const char *name, int32_t from, int32_t to)
{
    struct step step;
    int32_t *broker = arena_get(&rig->arena, sizeof(*broker));
    step_begin(&step, &rig->arena, rig->now, RIG_WALL);
    if (from == 0) {
        struct topic_record *topic = step_add(&step, &wire_topic_record, 0);
        topic->name = view_of_string(name);
        topic->topic_id = crig_topic_id(name);
    }
    *broker = 1;
    for (int32_t i = from; i < to; i++) {
        struct partition_record *partition = step_add(&step, &wire_partition_record, 1);
        partition->partition_id = i;
        partition->topic_id = crig_topic_id(name);
        partition->replicas.items = partition->isr.items = broker;
        partition->replicas.count = partition->isr.count = 1;
        partition->leader = 1;
        partition->directories.items = arena_get(&rig->arena, sizeof(struct uuid));
        partition->directories.count = 1;
    }
    crig_image_apply(rig, &step);
}

static inline void crig_topic(struct crig *rig, const char *name, int32_t partitions)
{
    crig_topic_from(rig, name, 0, partitions);
}

static inline void crig_topic_gone(struct crig *rig, const char *name)
{
    struct step step;
    step_begin(&step, &rig->arena, rig->now, RIG_WALL);
    struct remove_topic_record *gone = step_add(&step, &wire_remove_topic_record, 0);
    gone->topic_id = crig_topic_id(name);
    crig_image_apply(rig, &step);
}

static inline void crig_options_set(struct crig *rig)
{
    groups_see(rig->groups, rig->image, &rig->options);
}

static inline int crig_setup(void **state)
{
    struct crig *rig = calloc(1, sizeof(*rig));
    rig_mem_init(&rig->heap);
    arena_init(&rig->arena, &rig->heap.mem, 0);
    rig->image = image_new(&rig->heap.mem, 3);
    rig->groups = groups_new(&rig->heap.mem, &crig_options, 7, 0);
    rig->options = (struct consumer_group_options){
        .session = {45000, 45000, 60000},
        .heartbeat = {5000,  5000,  15000},
        .assignment = {0,     0,     15000},
        .regex_refresh_ms = 600000,
        .size_max = 100,
        .migration = CONSUMER_GROUP_UPGRADE | CONSUMER_GROUP_DOWNGRADE,
        .assignors = VIEW("uniform,range"),
    };
    rig->log = calloc(20000, sizeof(*rig->log));
    crig_options_set(rig);
    *state = rig;
    return 0;
}

static inline int crig_teardown(void **state)
{
    struct crig *rig = *state;
    groups_unload(rig->groups, KAFKA_NOT_COORDINATOR);
    while (groups_answer(rig->groups) != NULL)
        ;
    groups_free(rig->groups);
    image_free(rig->image);
    arena_free(&rig->arena);
    assert_int_equal(rig->heap.mem.used_bytes, 0);
    for (uint32_t i = 0; i < rig->log_count; i++) {
        free((void *)(uintptr_t)rig->log[i].key.bytes.data);
        free((void *)(uintptr_t)rig->log[i].value.bytes.data);
    }
    free(rig->log);
    free(rig);
    return 0;
}

/* ---- records as text ------------------------------------------------------------------------- */

static inline void crig_say(struct crig *rig, const char *format, ...)
{
    size_t at = strlen(rig->trace);
    va_list list;
    va_start(list, format);
    vsnprintf(rig->trace + at, sizeof(rig->trace) - at, format, list);
    va_end(list);
}

#define TEXT(view) (int)(view).size, (view).size > 0 ? (const char *)(view).data : ""

static inline const void *crig_decode(struct crig *rig,
                                      struct view bytes,
                                      const struct wire_message *message)
{
    const void *out = group_part_decode(&rig->arena, bytes, message, message->version_min);
    assert_non_null(out);
    return out;
}

typedef struct consumer_group_current_member_assignment_value_topic_partitions crig_current;

static inline void crig_say_current(struct crig *rig, const crig_current *items, int32_t count)
{
    for (int32_t i = 0; i < count; i++) {
        crig_say(rig, " %s", crig_topic_name(items[i].topic_id));
        for (int32_t p = 0; p < items[i].partitions.count; p++)
            crig_say(rig, " %d@%d", items[i].partitions.items[p],
                     items[i].assignment_epochs.items[p]);
    }
}

static inline void crig_say_member(struct crig *rig,
                                   int16_t type,
                                   struct view key,
                                   struct view value)
{
    static const char *const states[] = {"STABLE", "UNREVOKED", "UNRELEASED"};
    if (type == CONSUMER_KEY_SAID) {
        const struct consumer_group_member_metadata_value *in =
            crig_decode(rig, value, &wire_consumer_group_member_metadata_value);
        for (int32_t i = 0; i < in->subscribed_topic_names.count; i++)
            crig_say(rig, " %.*s", TEXT(in->subscribed_topic_names.items[i]));
        if (!in->subscribed_topic_regex.null && in->subscribed_topic_regex.size > 0)
            crig_say(rig, " ~%.*s", TEXT(in->subscribed_topic_regex));
        if (in->classic_member_metadata != NULL) crig_say(rig, " classic");
    } else if (type == CONSUMER_KEY_TARGET) {
        const struct consumer_group_target_assignment_member_value *in =
            crig_decode(rig, value, &wire_consumer_group_target_assignment_member_value);
        for (int32_t i = 0; i < in->topic_partitions.count; i++) {
            crig_say(rig, " %s", crig_topic_name(in->topic_partitions.items[i].topic_id));
            for (int32_t p = 0; p < in->topic_partitions.items[i].partitions.count; p++)
                crig_say(rig, " %d", in->topic_partitions.items[i].partitions.items[p]);
        }
    } else {
        const struct consumer_group_current_member_assignment_value *in =
            crig_decode(rig, value, &wire_consumer_group_current_member_assignment_value);
        crig_say(rig, " %d<%d %s", in->member_epoch, in->previous_member_epoch, states[in->state]);
        crig_say_current(rig, in->assigned_partitions.items, in->assigned_partitions.count);
        if (in->partitions_pending_revocation.count > 0) crig_say(rig, " pending");
        crig_say_current(rig, in->partitions_pending_revocation.items,
                         in->partitions_pending_revocation.count);
    }
    (void)key;
}

static inline void crig_say_group(struct crig *rig, int16_t type, struct view value)
{
    if (type == CONSUMER_KEY_GROUP) {
        const struct consumer_group_metadata_value *in =
            crig_decode(rig, value, &wire_consumer_group_metadata_value);
        crig_say(rig, " e%d%s", in->epoch, in->metadata_hash == 0 ? " nothing" : "");
    } else if (type == CONSUMER_KEY_ASSIGNED) {
        const struct consumer_group_target_assignment_metadata_value *in =
            crig_decode(rig, value, &wire_consumer_group_target_assignment_metadata_value);
        crig_say(rig, " e%d%s", in->assignment_epoch, in->assignment_timestamp == 0 ? " t0" : "");
    } else if (type == CONSUMER_KEY_REGEX) {
        const struct consumer_group_regular_expression_value *in =
            crig_decode(rig, value, &wire_consumer_group_regular_expression_value);
        crig_say(rig, " =");
        for (int32_t i = 0; i < in->topics.count; i++)
            crig_say(rig, " %.*s", TEXT(in->topics.items[i]));
    }
}

static inline void crig_say_record(struct crig *rig, const struct step_record *record)
{
    struct view key = record->key.bytes, value = record->value.bytes;
    int16_t type = (int16_t)load_be16(key.data);
    crig_say(rig, "%d", type);
    bool member =
        type == CONSUMER_KEY_SAID || type == CONSUMER_KEY_TARGET || type == CONSUMER_KEY_CURRENT;
    if (member || type == CONSUMER_KEY_REGEX) {
        /* Group and then another text, each behind its length. */
        uint32_t at = 4 + load_be16(key.data + 2);
        struct view second = view_of(key.data + at + 2, load_be16(key.data + at));
        crig_say(rig, " %.*s", TEXT(second));
    }
    if (value.null)
        crig_say(rig, " gone");
    else if (member)
        crig_say_member(rig, type, key, value);
    else
        crig_say_group(rig, type, value);
}

/* ---- steps ----------------------------------------------------------------------------------- */

static inline void crig_begin(struct crig *rig, struct step *step, int16_t version)
{
    step_begin(step, &rig->arena, rig->now, RIG_WALL + rig->now);
    step->random[0] = ++rig->random;
    step->caller.version = version;
}

static inline void crig_commit(struct crig *rig, const struct step *step)
{
    crig_say(rig, " |");
    for (uint32_t i = 0; i < step->record_count; i++) {
        crig_say(rig, i == 0 ? " " : "; ");
        crig_say_record(rig, &step->records[i]);
    }
    if (step->record_count == 0) return;
    if (rig->append != KAFKA_NONE) {
        groups_failed(rig->groups, step, rig->append);
        return;
    }
    for (uint32_t i = 0; i < step->record_count; i++) {
        rig->log[rig->log_count].key.bytes = rig_heap(step->records[i].key.bytes);
        rig->log[rig->log_count++].value.bytes = rig_heap(step->records[i].value.bytes);
    }
    rig->heap.fail_in = rig->apply_fails ? rig->apply_fail_in : -1;
    rig->unloaded = groups_apply(rig->groups, step, rig->offset) != GROUPS_OK;
    rig->heap.fail_in = -1;
    rig->offset += step->record_count;
    assert_true(rig->apply_fails || !rig->unloaded);
    if (rig->unloaded) groups_unload(rig->groups, KAFKA_NOT_COORDINATOR);
}

/* "foo 0 1, bar 2" */
static inline void crig_owned(struct crig *rig,
                              const char *text,
                              struct consumer_group_heartbeat_request *in)
{
    typedef struct consumer_group_heartbeat_request_topic_partitions topic;
    in->topic_partitions.count = text == NULL ? -1 : 0;
    if (text == NULL) return;
    in->topic_partitions.items = arena_get(&rig->arena, 4 * sizeof(topic));
    for (const char *at = text; *at != '\0';) {
        topic *item = &in->topic_partitions.items[in->topic_partitions.count++];
        char name[8];
        int used;
        assert_int_equal(sscanf(at, "%7s%n", name, &used), 1);
        at += used;
        item->topic_id = crig_topic_id(name);
        item->partitions.items = arena_get(&rig->arena, 32 * sizeof(int32_t));
        item->partitions.count = 0;
        while (sscanf(at, "%d%n", &item->partitions.items[item->partitions.count], &used) == 1) {
            item->partitions.count++;
            at += used;
        }
        while (*at == ',' || *at == ' ')
            at++;
    }
}

/* A heartbeat in text; what is NULL or zero is not told. */
struct crig_beat {
    int32_t epoch;
    const char *names; /* "foo bar"; "": none. */
    const char *owned; /* As crig_owned(). */
    const char *instance;
    const char *regex;
    const char *fault; /* Of the expression. */
    const char *assignor;
    const char *rack;
    const char *group;
    int32_t rebalance;
    bool old; /* Version 0. */
};

static inline void crig_names(struct crig *rig,
                              const char *text,
                              struct consumer_group_heartbeat_request *in)
{
    in->subscribed_topic_names.count = text == NULL ? -1 : 0;
    if (text == NULL) return;
    in->subscribed_topic_names.items = arena_get(&rig->arena, 8 * sizeof(struct view));
    while (*text != '\0') {
        uint32_t size = (uint32_t)strcspn(text, " ");
        in->subscribed_topic_names.items[in->subscribed_topic_names.count++] =
            arena_copy(&rig->arena, view_of(text, size));
        text += size + (text[size] == ' ');
    }
}

static inline void crig_answer(struct crig *rig)
{
    const struct consumer_group_heartbeat_response *out = &rig->out;
    rig->trace[0] = '\0';
    if (out->error_code != KAFKA_NONE) {
        crig_say(rig, "error %d", out->error_code);
        assert_null(out->assignment);
        assert_true(out->member_id.null);
        return;
    }
    crig_say(rig, "%d", out->member_epoch);
    if (out->assignment == NULL) return;
    crig_say(rig, " {");
    for (int32_t i = 0; i < out->assignment->topic_partitions.count; i++) {
        crig_say(rig, "%s%s", i == 0 ? "" : ", ",
                 crig_topic_name(out->assignment->topic_partitions.items[i].topic_id));
        for (int32_t p = 0; p < out->assignment->topic_partitions.items[i].partitions.count; p++)
            crig_say(rig, " %d", out->assignment->topic_partitions.items[i].partitions.items[p]);
    }
    crig_say(rig, "}");
}

static inline enum step_result crig_step_beat(struct crig *rig,
                                              struct step *step,
                                              const char *id,
                                              struct crig_beat beat)
{
    struct consumer_group_heartbeat_request in;
    wire_defaults(&wire_consumer_group_heartbeat_request, &in);
    in.group_id = view_of_string(beat.group != NULL ? beat.group : "g");
    in.member_id = view_of_string(id);
    in.member_epoch = beat.epoch;
    in.instance_id = view_of_string(beat.instance);
    in.rack_id = view_of_string(beat.rack);
    in.rebalance_timeout_ms = beat.rebalance != 0 ? beat.rebalance : -1;
    in.server_assignor = view_of_string(beat.assignor);
    in.subscribed_topic_regex = view_of_string(beat.regex);
    crig_names(rig, beat.names, &in);
    crig_owned(rig, beat.owned, &in);
    struct consumer_group_beat ask = {
        .request = &in,
        .client_id = VIEW("app"),
        .client_host = VIEW("/here"),
        .regex_fault = view_of_string(beat.fault),
        .arrived_ms = rig->now,
    };
    crig_begin(rig, step, beat.old ? 0 : 1);
    wire_defaults(&wire_consumer_group_heartbeat_response, &rig->out);
    return consumer_group_heartbeat(rig->groups, step, &ask, &rig->out);
}

static inline const char *crig_beat(struct crig *rig, const char *id, struct crig_beat beat)
{
    struct step step;
    assert_int_equal(crig_step_beat(rig, &step, id, beat), STEP_DONE);
    crig_answer(rig);
    crig_commit(rig, &step);
    return rig->trace;
}

/* The full request with which a member joins. */
static inline const char *crig_join(struct crig *rig, const char *id, const char *names)
{
    return crig_beat(rig, id, (struct crig_beat){.names = names, .owned = "", .rebalance = 12000});
}

/* Let time pass: what comes up is told, "" if nothing does. */
static inline const char *crig_until(struct crig *rig, int64_t at)
{
    rig->trace[0] = '\0';
    for (;;) {
        struct step step;
        crig_begin(rig, &step, 0);
        step.horizon_ms = MIN(rig->now, at);
        if (groups_tick(rig->groups, &step))
            crig_commit(rig, &step);
        else if (rig->now < at)
            rig->now++;
        else
            return rig->trace;
    }
}

static inline struct group *crig_group(struct crig *rig)
{
    return groups_find(rig->groups, VIEW("g"));
}

static inline const char *crig_state(struct crig *rig)
{
    return (const char *)consumer_group_state(crig_group(rig)->consumer).data;
}

/* All groups anew from what was appended. */
static inline void crig_reload(struct crig *rig)
{
    struct step step;
    groups_unload(rig->groups, KAFKA_NOT_COORDINATOR);
    while (groups_answer(rig->groups) != NULL)
        ;
    groups_free(rig->groups);
    rig->groups = groups_new(&rig->heap.mem, &crig_options, 11, rig->now);
    crig_options_set(rig);
    for (uint32_t i = 0; i < rig->log_count; i++) {
        struct groups_place place = {.offset = i, .producer_id = -1};
        assert_int_equal(groups_load(rig->groups, &rig->arena, rig->log[i].key.bytes,
                                     rig->log[i].value.bytes, place),
                         GROUPS_OK);
    }
    crig_begin(rig, &step, 0);
    groups_loaded(rig->groups, &step);
}
