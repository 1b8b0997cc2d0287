/* follower.c - see follower.h. */
#include "sim/follower.h"

#include <stdio.h>
#include <stdlib.h>

#include "broker/metadata_log.h"
#include "core/quorum.h"
#include "gen/errors.h"
#include "gen/fetch_request.h"
#include "gen/fetch_response.h"
#include "gen/fetch_snapshot_request.h"
#include "gen/fetch_snapshot_response.h"
#include "text/json.h"

#define API_FETCH          1
#define API_FETCH_SNAPSHOT 59
#define WAIT_MS            500
#define RETRY_MS           50
#define FETCH_BYTES        (64u * 1024u)

static void bytes_put(struct follower_bytes *to, struct view more)
{
    if (to->size + more.size > to->room) {
        to->room = MAX(to->room * 2, to->size + more.size + 1024);
        to->data = realloc(to->data, to->room);
        if (to->data == NULL) abort();
    }
    if (more.size > 0) memcpy(to->data + to->size, more.data, more.size);
    to->size += more.size;
}

static void follower_forget(struct follower *follower)
{
    image_free(follower->image);
    follower->image = image_new(io_mem(follower->link.io), 1);
    if (follower->image == NULL) abort();
    follower->applied = 0;
    follower->applied_bytes = 0;
    follower->high_watermark = -1;
    follower->download.size = 0;
    follower->download_end = 0;
    follower->next_ms = 0;
}

/* ---- applying -------------------------------------------------------------------------------- */

struct application {
    struct follower *follower;
    struct arena arena;
    bool snapshot;
};

/* A record of the log, for --trace. */
static void follower_prints(const struct follower *follower,
                            int64_t offset,
                            const struct step_record *record,
                            struct view value)
{
    struct out out;
    struct reader head = reader_of(value);
    (void)reader_uvarint(&head); /* Frame version, type and version. */
    (void)reader_uvarint(&head);
    (void)reader_uvarint(&head);
    out_init(&out, io_mem(follower->link.io));
    (void)json_write(&out, wire_form(record->value.message, record->value.version),
                     view_of(head.at, (uint32_t)reader_left(&head)));
    struct view told = out_so_far(&out);
    printf("   record %lld %s %.*s\n", (long long)offset, record->value.message->name,
           (int)told.size, (const char *)told.data);
    out_free(&out);
}

static bool apply_record(void *context,
                         const struct batch_header *batch,
                         int64_t offset,
                         bool control,
                         struct view key,
                         struct view value)
{
    struct application *to = context;
    struct follower *follower = to->follower;
    struct step_record record;
    (void)key;
    if (!to->snapshot) quorum_check_record(follower->check, offset, batch->leader_epoch, value);
    if (control) return true;
    arena_reset(&to->arena);
    int64_t base = to->snapshot ? follower->start - 1 : batch->base_offset;
    bool read = step_decode(value, &to->arena, &record);
    if (read && follower->audits && follower->history->print)
        follower_prints(follower, offset, &record, value);
    if (read &&
        image_apply(follower->image, &record, to->snapshot ? base : offset, base) == IMAGE_OK)
        return true;
    history_violation(follower->history, "Q8: a record at %lld that cannot be applied: %s",
                      (long long)offset, image_fault(follower->image));
    return false;
}

static void follower_apply(struct follower *follower, struct view bytes, bool snapshot)
{
    struct application to = {.follower = follower, .snapshot = snapshot};
    struct metadata_reader reader = {apply_record, &to};
    arena_init(&to.arena, io_mem(follower->link.io), 0);
    int result = metadata_batches_read(io_mem(follower->link.io), bytes, &reader);
    arena_free(&to.arena);
    if (result != 0)
        history_violation(follower->history, "Q8: bytes of the metadata log that are none: %d",
                          result);
}

/* All that is on the disk and known to be committed goes into the image. */
static void follower_catch_up(struct follower *follower)
{
    if (follower->applied < follower->start && follower->high_watermark >= follower->start) {
        follower_apply(follower, view_of(follower->snapshot.data, follower->snapshot.size), true);
        follower->applied = follower->start;
        if (follower->audits) quorum_check_image(follower->check, follower->image, -1);
    }
    while (follower->applied_bytes < follower->log.size) {
        struct batch_header header;
        struct view rest = view_of(follower->log.data + follower->applied_bytes,
                                   follower->log.size - follower->applied_bytes);
        if (batch_header_load(rest, &header) != RECORD_OK) abort();
        if (batch_last_offset(&header) >= follower->high_watermark) return;
        follower_apply(follower, view_of(rest.data, batch_size(&header)), false);
        follower->applied = batch_last_offset(&header) + 1;
        follower->applied_bytes += batch_size(&header);
        if (follower->audits && image_transaction(follower->image) < 0)
            quorum_check_image(follower->check, follower->image, header.max_timestamp);
        if (history_violated(follower->history)) return;
    }
}

/* ---- asking ---------------------------------------------------------------------------------- */

static void follower_ask_snapshot(struct follower *follower)
{
    struct fetch_snapshot_request request;
    struct fetch_snapshot_request_topic_snapshot topic;
    struct fetch_snapshot_request_partition_snapshot part;
    wire_defaults(&wire_fetch_snapshot_request, &request);
    wire_struct_defaults(&wire_fetch_snapshot_request_topic_snapshot_shape, &topic);
    wire_struct_defaults(&wire_fetch_snapshot_request_partition_snapshot_shape, &part);
    part.current_leader_epoch = follower->leader_epoch;
    part.snapshot_id.end_offset = follower->download_end;
    part.snapshot_id.epoch = follower->download_epoch;
    part.position = follower->download.size;
    part.replica_directory_id = follower->directory;
    topic.name = VIEW(QUORUM_TOPIC);
    topic.partitions.items = &part;
    topic.partitions.count = 1;
    request.cluster_id = follower->cluster_id;
    request.replica_id = follower->id;
    request.max_bytes = (int32_t)follower->piece_bytes;
    request.topics.items = &topic;
    request.topics.count = 1;
    wire_link_send(&follower->link, API_FETCH_SNAPSHOT, 1, &request);
}

static void follower_ask(struct follower *follower)
{
    struct fetch_request request;
    struct fetch_request_fetch_topic topic;
    struct fetch_request_fetch_partition part;
    if (follower->download_end > 0) {
        follower_ask_snapshot(follower);
        return;
    }
    wire_defaults(&wire_fetch_request, &request);
    wire_struct_defaults(&wire_fetch_request_fetch_topic_shape, &topic);
    wire_struct_defaults(&wire_fetch_request_fetch_partition_shape, &part);
    part.current_leader_epoch = follower->leader_epoch;
    part.fetch_offset = follower->end;
    part.last_fetched_epoch = follower->end_epoch;
    part.partition_max_bytes = 0;
    part.replica_directory_id = follower->directory;
    part.high_watermark = follower->high_watermark;
    topic.topic_id = quorum_topic_id;
    topic.partitions.items = &part;
    topic.partitions.count = 1;
    request.cluster_id = follower->cluster_id;
    request.replica_state.replica_id = follower->id;
    request.max_wait_ms = WAIT_MS;
    request.max_bytes = (int32_t)FETCH_BYTES;
    request.session_epoch = -1;
    request.topics.items = &topic;
    request.topics.count = 1;
    wire_link_send(&follower->link, API_FETCH, follower->id % 2 == 0 ? 17 : 18, &request);
}

/* ---- being answered -------------------------------------------------------------------------- */

static void follower_later(struct follower *follower)
{
    follower->refusals++;
    follower->next_ms = io_now_ms(follower->link.io) + RETRY_MS;
}

/* The epoch and the error of an answer. False: there is nothing in it. */
static bool follower_accepts(struct follower *follower, int16_t error, int32_t epoch)
{
    if (epoch < follower->leader_epoch && epoch >= 0 && error != KAFKA_NOT_LEADER_OR_FOLLOWER) {
        history_violation(follower->history, "Q8: leader epoch %d after %d", epoch,
                          follower->leader_epoch);
        return false;
    }
    bool news = epoch > follower->leader_epoch;
    if (news) follower->leader_epoch = epoch;
    if (error == KAFKA_NONE) return !news;
    if (error != KAFKA_FENCED_LEADER_EPOCH && error != KAFKA_NOT_LEADER_OR_FOLLOWER &&
        error != KAFKA_BROKER_NOT_AVAILABLE && !follower->link.troubled)
        history_violation(follower->history, "I24: Fetch of the metadata log: error %d", error);
    if (error != KAFKA_FENCED_LEADER_EPOCH || !news) follower_later(follower);
    return false;
}

static void follower_append(struct follower *follower, struct view records)
{
    struct batch_scan scan = batch_scan_of(records);
    struct batch_header header;
    struct view batch;
    while (batch_next(&scan, &header, &batch)) {
        bool fits = header.magic == 2 && header.base_offset == follower->end &&
                    header.leader_epoch >= follower->end_epoch &&
                    header.leader_epoch <= follower->leader_epoch;
        if (!fits)
            history_violation(follower->history,
                              "Q8: a batch at %lld of epoch %d, behind %lld of %d",
                              (long long)header.base_offset, header.leader_epoch,
                              (long long)follower->end, follower->end_epoch);
        if (!fits) return;
        bytes_put(&follower->log, batch);
        follower->end = batch_last_offset(&header) + 1;
        follower->end_epoch = header.leader_epoch;
    }
    if (scan.fault != RECORD_OK)
        history_violation(follower->history, "Q8: a batch that is not whole");
}

static void follower_fetched(struct follower *follower, const struct fetch_response *in)
{
    if (in->error_code != KAFKA_NONE || in->responses.count != 1 ||
        in->responses.items[0].partitions.count != 1) {
        (void)follower_accepts(follower, in->error_code == 0 ? -1 : in->error_code, -1);
        return;
    }
    const struct fetch_response_partition_data *part = &in->responses.items[0].partitions.items[0];
    if (!follower_accepts(follower, part->error_code, part->current_leader.leader_epoch)) return;
    if (part->diverging_epoch.epoch >= 0) {
        history_violation(follower->history,
                          "Q8: a log up to %lld of epoch %d is to be cut at %lld of %d",
                          (long long)follower->end, follower->end_epoch,
                          (long long)part->diverging_epoch.end_offset, part->diverging_epoch.epoch);
        return;
    }
    if (part->snapshot_id.end_offset > 0) {
        follower->download_end = part->snapshot_id.end_offset;
        follower->download_epoch = part->snapshot_id.epoch;
        follower->download.size = 0;
        return;
    }
    follower_append(follower, part->records);
    if (part->high_watermark < follower->high_watermark)
        quorum_check_high_watermark(follower->check, part->high_watermark);
    follower->high_watermark =
        MAX(follower->high_watermark, MIN(part->high_watermark, follower->end));
    if (!history_violated(follower->history)) follower_catch_up(follower);
}

/* The snapshot is whole: it takes the place of all that was there. */
static void follower_restore(struct follower *follower)
{
    struct follower_bytes old = follower->snapshot;
    if (follower->download_end <= follower->end)
        history_violation(follower->history,
                          "Q8: sent from %lld back to a snapshot that ends at %lld",
                          (long long)follower->end, (long long)follower->download_end);
    follower->snapshot = follower->download;
    follower->start = follower->end = follower->download_end;
    follower->start_epoch = follower->end_epoch = follower->download_epoch;
    follower->log.size = 0;
    follower->snapshots++;
    follower->download = old;
    follower_forget(follower);
    follower->high_watermark = follower->start;
    follower_catch_up(follower);
}

static void follower_piece(struct follower *follower, const struct fetch_snapshot_response *in)
{
    if (in->error_code != KAFKA_NONE || in->topics.count != 1 ||
        in->topics.items[0].partitions.count != 1) {
        (void)follower_accepts(follower, in->error_code == 0 ? -1 : in->error_code, -1);
        return;
    }
    const struct fetch_snapshot_response_partition_snapshot *part =
        &in->topics.items[0].partitions.items[0];
    if (part->error_code == KAFKA_SNAPSHOT_NOT_FOUND) { /* There is a newer one. */
        follower->download_end = 0;
        return;
    }
    if (!follower_accepts(follower, part->error_code, part->current_leader.leader_epoch)) return;
    if (part->snapshot_id.end_offset != follower->download_end ||
        part->snapshot_id.epoch != follower->download_epoch ||
        part->position != follower->download.size) {
        history_violation(follower->history, "Q8: another piece of a snapshot than was asked for");
        return;
    }
    bytes_put(&follower->download, part->unaligned_records);
    if (follower->download.size == part->size) follower_restore(follower);
}

static void follower_answered(struct wire_link *link, const struct wire_link_wait *wait, void *in)
{
    struct follower *follower = container_of(link, struct follower, link);
    if (wait->api == API_FETCH)
        follower_fetched(follower, in);
    else
        follower_piece(follower, in);
}

static void follower_lost(struct wire_link *link)
{
    (void)link;
}

/* ---- life ------------------------------------------------------------------------------------ */

void follower_init(struct follower *follower, const struct follower_seat *seat)
{
    wire_link_init(&follower->link, seat->io, seat->host, seat->port);
    follower->link.answered = follower_answered;
    follower->link.lost = follower_lost;
    follower->link.history = follower->history = seat->check->history;
    follower->check = seat->check;
    follower->cluster_id = seat->cluster_id;
    follower->id = seat->id;
    follower->piece_bytes = FETCH_BYTES;
    follower_forget(follower);
}

void follower_free(struct follower *follower)
{
    follower->image = image_free(follower->image);
    wire_link_free(&follower->link);
    free(follower->snapshot.data);
    free(follower->log.data);
    free(follower->download.data);
}

int64_t follower_turn(struct follower *follower)
{
    struct wire_link *link = &follower->link;
    wire_link_turn(link);
    int64_t next_ms = wire_link_next_ms(link);
    if (link->stream == NULL || link->wait_count > 0) return next_ms;
    if (io_now_ms(link->io) >= follower->next_ms) follower_ask(follower);
    return link->wait_count > 0 ? wire_link_next_ms(link) : follower->next_ms;
}

void follower_crash(struct follower *follower, struct chance *chance, bool wiped)
{
    wire_link_drop(&follower->link);
    uint32_t kept = 0, at = 0;
    int64_t end = follower->start;
    int32_t epoch = follower->start_epoch;
    bool all = chance_percent(chance, 50);
    while (at < follower->log.size && !wiped) {
        struct batch_header header;
        struct view rest = view_of(follower->log.data + at, follower->log.size - at);
        if (batch_header_load(rest, &header) != RECORD_OK) abort();
        at += batch_size(&header);
        if (!all && at + 2000 > follower->log.size && chance_percent(chance, 20)) break;
        kept = at;
        end = batch_last_offset(&header) + 1;
        epoch = header.leader_epoch;
    }
    follower->log.size = kept;
    follower->end = end;
    follower->end_epoch = epoch;
    follower_forget(follower);
    follower->leader_epoch = epoch;
    if (!wiped) return;
    follower->snapshot.size = 0;
    follower->start = follower->end = 0;
    follower->start_epoch = follower->end_epoch = follower->leader_epoch = 0;
}
