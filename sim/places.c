/* places.c - see places.h. */
#include "sim/places.h"

#include "gen/errors.h"

/* A record that somebody was told firmly. */
struct known {
    int64_t timestamp_ms;
    int32_t epoch; /* -1: nobody has read it yet. */
};

static bool known_at(const struct places *places, uint32_t log, int64_t offset, struct known *out)
{
    const struct history_log *at = &places->history->logs[log];
    if (offset < 0 || offset >= at->end || at->entries[offset].claim != HISTORY_FIRM) return false;
    out->timestamp_ms = history_timestamp_ms(at->entries[offset].value);
    out->epoch = at->entries[offset].epoch_known - 1;
    return true;
}

static void wrong(struct places *places, const struct places_one *one, const char *why)
{
    history_violation(
        places->history,
        "%s: log %u, asked for %lld (epoch %d): offset %lld, time %lld, epoch %d; the "
        "log began at %lld to %lld, high watermark from %lld",
        why, one->log, (long long)one->timestamp, one->of_epoch, (long long)one->offset,
        (long long)one->timestamp_ms, one->epoch, (long long)one->start_low,
        (long long)one->start_high, (long long)one->high_low);
}

/* Up to where the records were surely readable. */
static int64_t readable_end(const struct places *places, const struct places_one *one, bool all)
{
    int64_t audited = places->history->logs[one->log].audited_end;
    return all && one->quiet ? MAX(audited, one->high_low) : one->high_low;
}

/* May a record that was deleted, or may have been, be as young as this one? */
static bool deleted_as_young(const struct places *places,
                             const struct places_one *one,
                             int64_t timestamp_ms)
{
    struct known known;
    for (int64_t at = 0; at < one->start_high; at++)
        if (!known_at(places, one->log, at, &known) || known.timestamp_ms >= timestamp_ms)
            return true;
    return false;
}

/* The record of the answer is as it says. */
static void judge_found(struct places *places, const struct places_one *one, bool all)
{
    struct known known;
    const struct history_log *log = &places->history->logs[one->log];
    bool there = known_at(places, one->log, one->offset, &known);
    if (!there && all && one->offset >= log->deletable)
        wrong(places, one, "P1: nobody can read such a record");
    if (there && known.timestamp_ms != one->timestamp_ms)
        wrong(places, one, "P1: the record has another timestamp");
    if (there && one->version >= 4 && known.epoch >= 0 && known.epoch != one->epoch)
        wrong(places, one, "P1: the record's batch has another epoch");
}

static void judge_none(struct places *places, const struct places_one *one)
{
    if (one->timestamp_ms != -1 || one->epoch != -1)
        wrong(places, one, "P1: no offset, and yet a time or an epoch");
}

static void judge_time(struct places *places, const struct places_one *one, bool all)
{
    struct known known;
    int64_t end = one->offset < 0 ? readable_end(places, one, all) : one->offset;
    if (one->offset < 0)
        judge_none(places, one);
    else
        judge_found(places, one, all);
    if (one->offset >= 0 && (one->offset < one->start_low || one->timestamp_ms < one->timestamp))
        wrong(places, one, "P1: a record that is deleted, or too old");
    if (one->offset < 0 && deleted_as_young(places, one, one->timestamp)) return;
    for (int64_t at = one->start_high; at < end; at++)
        if (known_at(places, one->log, at, &known) && known.timestamp_ms >= one->timestamp)
            wrong(places, one, "P1: an earlier record is young enough");
}

static void judge_largest(struct places *places, const struct places_one *one, bool all)
{
    struct known known;
    int64_t end = readable_end(places, one, all), largest_ms = -1;
    for (int64_t at = one->start_high; at < end; at++) {
        if (!known_at(places, one->log, at, &known)) continue;
        largest_ms = MAX(largest_ms, known.timestamp_ms);
        if (one->offset >= 0 && at < one->offset && known.timestamp_ms == one->timestamp_ms)
            wrong(places, one, "P2: an earlier record has that timestamp");
    }
    if (one->offset >= 0) {
        judge_found(places, one, all);
        if (largest_ms > one->timestamp_ms) wrong(places, one, "P2: there is a larger timestamp");
        return;
    }
    judge_none(places, one);
    if (all && one->quiet && largest_ms >= 0 && !deleted_as_young(places, one, largest_ms))
        wrong(places, one, "P2: there are records");
}

static void judge_latest(struct places *places, const struct places_one *one, bool all)
{
    int64_t end = places->history->logs[one->log].audited_end;
    if (one->offset < one->high_low) wrong(places, one, "P3: below the high watermark");
    if (all && one->quiet && end > 0 && one->offset != end)
        wrong(places, one, "P3: it is not where the log ends");
    if (one->version >= 4 && one->epoch < one->epoch_low)
        wrong(places, one, "P3: the leader epoch was higher");
}

static void judge_earliest(struct places *places, const struct places_one *one)
{
    struct known known;
    if (one->offset < one->start_low || one->offset > one->start_high)
        wrong(places, one, "P3: it is not where the log begins");
    if (one->version >= 4 && one->offset < one->high_low &&
        known_at(places, one->log, one->offset, &known) && known.epoch >= 0 &&
        known.epoch != one->epoch)
        wrong(places, one, "P3: the first record's batch has another epoch");
}

/* A record of this epoch is there, and somebody was told that the epoch asked for ends as it says.
 */
static void judge_epoch_record(struct places *places,
                               const struct places_one *one,
                               int64_t at,
                               int32_t epoch)
{
    if (epoch <= one->of_epoch && at >= one->offset)
        wrong(places, one, "P4: the epoch's records reach behind that");
    if (epoch > one->of_epoch && at < one->offset)
        wrong(places, one, "P4: a later epoch began before that");
    if (epoch > one->epoch && epoch <= one->of_epoch)
        wrong(places, one, "P4: there is an epoch in between");
}

static void judge_epoch(struct places *places, const struct places_one *one, bool all)
{
    struct known known;
    const struct history *history = places->history;
    int64_t end = readable_end(places, one, all), audited = history->logs[one->log].audited_end;
    bool none = one->epoch < 0 && one->offset < 0;
    /* Without memory a leader has not noted its epoch yet. */
    int32_t latest = history->troubles == 0 && end > one->start_high ? one->epoch_low : -1;
    if (!none && (one->epoch < 0 || one->offset < 0)) wrong(places, one, "P4: half of an answer");
    if (one->epoch > one->of_epoch) wrong(places, one, "P4: a later epoch");
    for (int64_t at = one->start_high; at < end; at++) {
        if (!known_at(places, one->log, at, &known) || known.epoch < 0) continue;
        latest = MAX(latest, known.epoch);
        if (!none) judge_epoch_record(places, one, at, known.epoch);
    }
    if (none && one->of_epoch >= 0 && one->of_epoch <= latest)
        wrong(places, one, "P4: the epoch is known");
    bool last = one->of_epoch >= MAX(latest, one->epoch_low);
    if (!none && all && one->quiet && audited > 0 && last && one->offset != audited)
        wrong(places, one, "P4: the last epoch ends where the log does");
}

static void judge(struct places *places, const struct places_one *one, bool all)
{
    if (one->timestamp < 0 && one->timestamp != PLACES_MAX_TIMESTAMP &&
        one->timestamp != PLACES_OF_EPOCH && one->timestamp_ms != -1)
        wrong(places, one, "P3: a time where none was asked for");
    switch (one->timestamp) {
    case PLACES_LATEST: judge_latest(places, one, all); break;
    case PLACES_EARLIEST:
    case PLACES_EARLIEST_LOCAL: judge_earliest(places, one); break;
    case PLACES_MAX_TIMESTAMP: judge_largest(places, one, all); break;
    case PLACES_TIERED:
    case PLACES_PENDING:
        if (one->offset != -1 || one->epoch != -1) wrong(places, one, "P3: nothing is tiered");
        break;
    case PLACES_OF_EPOCH: judge_epoch(places, one, all); break;
    default: judge_time(places, one, all); break;
    }
}

void places_ask(struct places *places, struct places_one *one)
{
    const struct history_log *log = &places->history->logs[one->log];
    one->start_low = log->start_restarts == places->history->restarts ? log->start : 0;
    one->high_low = log->high_watermark;
    one->epoch_low = log->leader_epoch;
    one->restarts = places->history->restarts;
    one->quiet = places->history->quiet;
}

/* The oldest version of ListOffsets that knows this time. */
static bool time_is_known(const struct places_one *one)
{
    static const int16_t since[] = {0, 1, 1, 7, 8, 9, 11};
    if (one->timestamp >= 0 || one->timestamp == PLACES_OF_EPOCH) return true;
    return one->timestamp >= PLACES_PENDING && one->version >= since[-one->timestamp];
}

/* Is the answer no offset, for a reason that is judged here? */
static bool refused(struct places *places, struct places_one *one)
{
    int16_t error = one->error;
    bool knows = time_is_known(one);
    if (error == KAFKA_UNSUPPORTED_VERSION) {
        if (knows) wrong(places, one, "P5: the version knows that time");
    } else if (error == KAFKA_FENCED_LEADER_EPOCH) {
        if (one->current_epoch < 0) wrong(places, one, "P5: no epoch, and yet an old one");
        history_leader_epoch(places->history, one->log, one->current_epoch + 1);
    } else if (error == KAFKA_UNKNOWN_LEADER_EPOCH) {
        if (one->current_epoch <= one->epoch_low) wrong(places, one, "P5: that epoch is known");
    } else {
        if (error == 0 && !knows) wrong(places, one, "P5: the version does not know that time");
        if (error == 0 && one->current_epoch >= 0 && one->current_epoch < one->epoch_low)
            wrong(places, one, "P5: an old epoch was not refused");
        return false;
    }
    one->error = 0;
    return true;
}

bool places_answered(struct places *places, struct places_one *one)
{
    struct history *history = places->history;
    one->start_high = history->logs[one->log].deletable;
    places->asked++;
    if (refused(places, one) || one->error != 0) return false;
    places->exact += one->quiet;
    judge(places, one, false);
    /* What it says holds for all who ask from now on. */
    bool record = one->timestamp >= 0 || one->timestamp == PLACES_MAX_TIMESTAMP;
    if (one->timestamp == PLACES_LATEST)
        history_high_watermark(history, one->log, one->offset);
    else if (record && one->offset >= 0)
        history_high_watermark(history, one->log, one->offset + 1);
    else if (one->timestamp == PLACES_EARLIEST)
        history_log_start(history, one->log, one->offset, one->restarts);
    if (one->timestamp == PLACES_LATEST && one->version >= 4)
        history_leader_epoch(history, one->log, one->epoch);
    history_leader_epoch(history, one->log, one->current_epoch);
    if (places->kept_count < PLACES_KEPT_MAX) places->kept[places->kept_count++] = *one;
    return true;
}

void places_audited(struct places *places)
{
    for (uint32_t i = 0; i < places->kept_count; i++)
        judge(places, &places->kept[i], true);
}
