/* history.c - see history.h. */
#include "sim/history.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/bytes.h"
#include "sim/chance.h"

void history_free(struct history *history)
{
    for (uint32_t i = 0; i < HISTORY_LOGS_MAX; i++)
        free(history->logs[i].entries);
}

void history_violation(struct history *history, const char *format, ...)
{
    if (history_violated(history)) return;
    va_list arguments;
    va_start(arguments, format);
    (void)vsnprintf(history->violation, sizeof(history->violation), format, arguments);
    va_end(arguments);
}

uint32_t history_value_bytes(struct history_value value, uint8_t *out)
{
    uint64_t place = chance_mixed(((uint64_t)value.producer << 32 | value.number) + 77);
    uint32_t room = HISTORY_VALUE_MAX - HISTORY_VALUE_MIN + 1;
    uint32_t size = HISTORY_VALUE_MIN + (uint32_t)(place >> 8) % (place % 8 == 0 ? room : 60);
    store_be32(out, value.producer);
    store_be32(out + 4, value.number);
    memset(out + HISTORY_VALUE_MIN, (int)(place & 0xff), size - HISTORY_VALUE_MIN);
    return size;
}

bool history_value_read(struct view bytes, struct history_value *out)
{
    uint8_t expected[HISTORY_VALUE_MAX];
    if (bytes.null || bytes.size < HISTORY_VALUE_MIN) return false;
    *out = (struct history_value){load_be32(bytes.data), load_be32(bytes.data + 4)};
    if (out->producer >= HISTORY_PRODUCERS_MAX) return false;
    uint32_t size = history_value_bytes(*out, expected);
    return size == bytes.size && memcmp(expected, bytes.data, size) == 0;
}

int64_t history_timestamp_ms(struct history_value value)
{
    uint64_t place = chance_mixed(((uint64_t)value.number << 32 | value.producer) + 99);
    return 1790000000000 + (int64_t)value.number * 4 + (int64_t)(place % 400) * 3;
}

static struct history_entry *entry_at(struct history_log *log, int64_t offset)
{
    if (offset >= log->capacity) {
        int64_t capacity = MAX(offset + 1, log->capacity * 2 + 64);
        struct history_entry *entries =
            realloc(log->entries, (size_t)capacity * sizeof(*log->entries));
        if (entries == NULL) abort();
        memset(entries + log->capacity, 0,
               (size_t)(capacity - log->capacity) * sizeof(*log->entries));
        log->entries = entries;
        log->capacity = capacity;
    }
    log->end = MAX(log->end, offset + 1);
    return &log->entries[offset];
}

void history_claim(struct history *history,
                   uint32_t log,
                   int64_t offset,
                   struct history_value value,
                   enum history_claim claim)
{
    assert(log < HISTORY_LOGS_MAX);
    if (offset < 0 || offset > INT32_MAX) {
        history_violation(history, "log %u: a record at offset %lld", log, (long long)offset);
        return;
    }
    struct history_entry *entry = entry_at(&history->logs[log], offset);
    bool same = entry->value.producer == value.producer && entry->value.number == value.number;
    if (entry->claim != HISTORY_NONE && !same)
        history_violation(history, "I2: log %u offset %lld was record %u.%u (%s), now it is %u.%u",
                          log, (long long)offset, entry->value.producer, entry->value.number,
                          entry->claim == HISTORY_FIRM ? "firm" : "acks=1", value.producer,
                          value.number);
    if (!same) entry->epoch_known = 0;
    entry->value = value;
    entry->claim = (uint8_t)MAX(entry->claim, (uint8_t)claim);
    if (claim == HISTORY_FIRM) history_high_watermark(history, log, offset + 1);
}

void history_epoch(struct history *history, uint32_t log, int64_t offset, int32_t epoch)
{
    const struct history_log *at = &history->logs[log];
    struct history_entry *entry = &at->entries[offset];
    assert(offset < at->end);
    if (entry->epoch_known > 0 && entry->epoch_known != epoch + 1)
        history_violation(history, "I2: log %u offset %lld was of leader epoch %d, now it is of %d",
                          log, (long long)offset, entry->epoch_known - 1, epoch);
    if (offset > 0 && at->entries[offset - 1].epoch_known > epoch + 1)
        history_violation(history, "I3: log %u: epoch %d at %lld comes behind %d", log, epoch,
                          (long long)offset, at->entries[offset - 1].epoch_known - 1);
    entry->epoch_known = epoch + 1;
    history_leader_epoch(history, log, epoch);
}

void history_high_watermark(struct history *history, uint32_t log, int64_t offset)
{
    history->logs[log].high_watermark = MAX(history->logs[log].high_watermark, offset);
}

void history_leader_epoch(struct history *history, uint32_t log, int32_t epoch)
{
    history->logs[log].leader_epoch = MAX(history->logs[log].leader_epoch, epoch);
}

void history_topic(struct history *history, uint32_t topic, struct uuid id, int32_t partitions)
{
    struct history_topic *known = &history->topics[topic];
    if (known->known && !uuid_equal(known->id, id))
        history_violation(history, "I17: topic %s has another id than before", known->name);
    if (partitions != known->partitions)
        history_violation(history, "I17: topic %s has %d partitions, not %d", known->name,
                          partitions, known->partitions);
    known->id = id;
    known->known = true;
}

int64_t history_firm_end(const struct history *history, uint32_t log)
{
    const struct history_log *at = &history->logs[log];
    int64_t end = at->end;
    while (end > 0 && at->entries[end - 1].claim != HISTORY_FIRM)
        end--;
    return end;
}

void history_delete_asked(struct history *history, uint32_t log, int64_t offset)
{
    history->logs[log].deletable = MAX(history->logs[log].deletable, offset);
}

void history_log_start(struct history *history, uint32_t log, int64_t offset, uint32_t restarts)
{
    if (offset > history->logs[log].deletable)
        history_violation(history, "I20: log %u begins at %lld, nobody asked for more than %lld",
                          log, (long long)offset, (long long)history->logs[log].deletable);
    if (restarts != history->restarts) return;
    if (history->logs[log].start_restarts != restarts) history->logs[log].start = 0;
    history->logs[log].start_restarts = restarts;
    history->logs[log].start = MAX(history->logs[log].start, offset);
}

void history_deleted(struct history *history,
                     uint32_t log,
                     int64_t low_watermark,
                     uint32_t restarts)
{
    history->deletes++;
    history_log_start(history, log, low_watermark, restarts);
}

void history_producer_id(struct history *history, int64_t id)
{
    for (uint32_t i = 0; i < history->producer_id_count; i++)
        if (history->producer_ids[i] == id)
            history_violation(history, "I16: producer id %lld was given twice", (long long)id);
    assert(history->producer_id_count < HISTORY_IDS_MAX);
    history->producer_ids[history->producer_id_count++] = id;
}

void history_gives_up(struct history *history, struct history_value first, uint32_t end)
{
    assert(history->given_up_count < HISTORY_GIVEN_UP_MAX);
    history->given_up[history->given_up_count++] =
        (struct history_given_up){.producer = first.producer, .first = first.number, .end = end};
}

/* Among what was given up; NULL: it was not. */
static struct history_given_up *given_up_with(struct history *history, struct history_value value)
{
    for (uint32_t i = 0; i < history->given_up_count; i++) {
        struct history_given_up *up = &history->given_up[i];
        if (up->producer == value.producer && value.number >= up->first && value.number < up->end)
            return up;
    }
    return NULL;
}

void history_power_cut(struct history *history)
{
    history->power_cuts++;
    for (uint32_t i = 0; i < HISTORY_LOGS_MAX; i++) {
        struct history_log *log = &history->logs[i];
        for (int64_t offset = 0; offset < log->end; offset++)
            if (log->entries[offset].claim == HISTORY_WEAK)
                log->entries[offset].claim = HISTORY_NONE;
    }
}

void history_audit_begin(struct history *history)
{
    for (uint32_t i = 0; i < HISTORY_LOGS_MAX; i++) {
        history->logs[i].audited_end = 0;
        memset(history->logs[i].audited_number, 0, sizeof(history->logs[i].audited_number));
    }
    for (uint32_t i = 0; i < history->given_up_count; i++)
        memset(history->given_up[i].audited, 0, sizeof(history->given_up[i].audited));
}

void history_audit_record(struct history *history,
                          uint32_t log,
                          int64_t offset,
                          struct history_value value)
{
    struct history_log *at = &history->logs[log];
    uint32_t *number = &at->audited_number[value.producer];
    if (at->audited_end == 0 && offset <= at->deletable) at->audited_end = offset;
    if (offset != at->audited_end)
        history_violation(history, "log %u: offset %lld follows %lld", log, (long long)offset,
                          (long long)at->audited_end - 1);
    struct history_given_up *up = given_up_with(history, value);
    uint32_t after = up != NULL && *number > up->end ? up->audited[log] : *number;
    if (history->idempotent[value.producer] && value.number < after)
        history_violation(history, "I9: log %u offset %lld: record %u.%u comes behind %u.%u", log,
                          (long long)offset, value.producer, value.number, value.producer,
                          after - 1);
    if (up != NULL) up->audited[log] = value.number + 1;
    *number = MAX(*number, value.number + 1);
    at->audited_end = offset + 1;
}

void history_audit_end(struct history *history)
{
    for (uint32_t i = 0; i < HISTORY_LOGS_MAX; i++) {
        struct history_log *log = &history->logs[i];
        for (int64_t offset = MAX(log->audited_end, log->deletable); offset < log->end; offset++)
            if (log->entries[offset].claim != HISTORY_NONE)
                history_violation(history, "I1: log %u ends at %lld; record %u.%u at %lld is lost",
                                  i, (long long)log->audited_end,
                                  log->entries[offset].value.producer,
                                  log->entries[offset].value.number, (long long)offset);
    }
}
