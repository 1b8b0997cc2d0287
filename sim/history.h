/* history.h - what the clients of a run were told, and the checkers over it.
 *
 * A record is a pair (producer, number); its bytes and its timestamp follow from the pair. What a
 * reply says of an offset is a claim:
 *
 *   firm   acknowledged with acks=all, or read: it holds for ever
 *   weak   acknowledged with acks=1: it holds until the next power cut
 *
 * Checked at once: an offset has one record, of one leader epoch, for ever (I2), and epochs rise
 * along a log; high watermarks never go back, for one client or from one to another who asks later
 * (I3), topics keep id and partitions (I17), producer ids are given once (I16), errors are true to
 * what they say (I24). At an audit, where a whole log is read: nothing claimed is missing (I1) but
 * what was deleted, nothing of an idempotent producer comes twice or out of order (I9). What was in
 * flight when a producer gave up its id may come behind what it sent under the next one: its
 * connection may still deliver it. */
#pragma once

#include "base/base.h"
#include "base/view.h"

#define HISTORY_TOPICS_MAX     4u
#define HISTORY_PARTITIONS_MAX 4u /* Of one topic. */
#define HISTORY_LOGS_MAX       (HISTORY_TOPICS_MAX * HISTORY_PARTITIONS_MAX)
#define HISTORY_PRODUCERS_MAX  8u
#define HISTORY_GROUPS_MAX     2u
#define HISTORY_IDS_MAX        4096u
#define HISTORY_GIVEN_UP_MAX   256u

struct history_value {
    uint32_t producer, number;
};

struct history_entry {
    struct history_value value;
    uint8_t claim;       /* enum history_claim */
    int32_t epoch_known; /* The leader epoch of its batch, plus one; 0: nobody has read it. */
};

enum history_claim { HISTORY_NONE, HISTORY_WEAK, HISTORY_FIRM };

struct history_log {
    struct history_entry *entries; /* By offset. */
    int64_t end, capacity;
    int64_t high_watermark; /* The largest that anybody was told. */
    int64_t start;          /* The same of the log's start, since the node was started last: */
    uint32_t start_restarts;
    int32_t leader_epoch; /* The largest that anybody was told. */
    int64_t deletable;    /* Below it records may be gone: somebody asked for it. */
    int64_t audited_end;  /* Of the running audit. */
    uint32_t audited_number[HISTORY_PRODUCERS_MAX]; /* The largest seen, plus one. */
};

/* What a producer had in flight when it gave up its id. */
struct history_given_up {
    uint32_t producer, first, end;      /* Numbers; `end` is the first of the next id. */
    uint32_t audited[HISTORY_LOGS_MAX]; /* The last one seen, plus one. */
};

struct history_topic {
    char name[16];
    int32_t partitions;
    bool known; /* Its creation was acknowledged. */
    struct uuid id;
};

struct history {
    struct history_log logs[HISTORY_LOGS_MAX];
    struct history_topic topics[HISTORY_TOPICS_MAX];
    uint32_t topic_count;
    bool idempotent[HISTORY_PRODUCERS_MAX];
    int64_t producer_ids[HISTORY_IDS_MAX];
    uint32_t producer_id_count;
    struct history_given_up given_up[HISTORY_GIVEN_UP_MAX];
    uint32_t given_up_count;
    uint32_t power_cuts, restarts;
    int64_t restart_us;    /* When the node was started last. */
    int64_t trouble_us;    /* Until when its disk or its memory was in trouble; INT64_MAX: it is. */
    uint32_t troubles;     /* How often such trouble began or ended. */
    uint32_t windows_lost; /* See client_producer.c. */
    uint64_t acknowledged, read; /* Records. */
    uint64_t deletes;            /* Acknowledged. */
    bool quiet;                  /* Nobody writes any more, and what was written is durable. */
    bool print;                  /* Tell on stdout what producers send and are told. */
    char violation[256];         /* The first one; empty: none. */
};

void history_free(struct history *history);

/* A rule was broken. Only the first one is kept. */
void history_violation(struct history *history, const char *format, ...) PRINTF(2, 3);

static inline bool history_violated(const struct history *history)
{
    return history->violation[0] != '\0';
}

/* The bytes of a record's value: HISTORY_VALUE_MIN to HISTORY_VALUE_MAX. Returns the size. */
#define HISTORY_VALUE_MIN 8u
#define HISTORY_VALUE_MAX 600u
uint32_t history_value_bytes(struct history_value value, uint8_t *out);

/* Read a value back. False: these are not the bytes of any record. */
bool history_value_read(struct view bytes, struct history_value *out);

/* A record's timestamp: they rise with the numbers, with steps back and equal ones. Near the time
 * at which worlds begin, so that no rule of a topic's refuses or deletes it. */
int64_t history_timestamp_ms(struct history_value value);

/* A reply says that the record lies there. */
void history_claim(struct history *history,
                   uint32_t log,
                   int64_t offset,
                   struct history_value value,
                   enum history_claim claim);

/* The batch of a record that was read has this leader epoch. */
void history_epoch(struct history *history, uint32_t log, int64_t offset, int32_t epoch);

/* Somebody was told that it is not below this. */
void history_high_watermark(struct history *history, uint32_t log, int64_t offset);
void history_leader_epoch(struct history *history, uint32_t log, int32_t epoch);

/* Is it the name of a topic of the history, not of one that a client has for itself? */
#define HISTORY_TOPIC_PREFIX "topic"
static inline bool history_topic_name(struct view name)
{
    return name.size > 5 && memcmp(name.data, HISTORY_TOPIC_PREFIX, 5) == 0;
}

/* A topic was acknowledged or listed with this id. */
void history_topic(struct history *history, uint32_t topic, struct uuid id, int32_t partitions);

/* One past the last record that a client was told firmly. */
int64_t history_firm_end(const struct history *history, uint32_t log);

/* Records below the offset are to be deleted; they are, and the log begins there: never behind what
 * anybody asked for (I20). */
void history_delete_asked(struct history *history, uint32_t log, int64_t offset);
void history_deleted(struct history *history,
                     uint32_t log,
                     int64_t low_watermark,
                     uint32_t restarts);

/* A client was told where the log begins; it had asked after so many `restarts`. What a node said
 * that has crashed since may come late, and need not hold any more. */
void history_log_start(struct history *history, uint32_t log, int64_t offset, uint32_t restarts);

void history_producer_id(struct history *history, int64_t id);

/* A producer gives up its id; what it sent from `first` on, below `end`, was not acknowledged. */
void history_gives_up(struct history *history, struct history_value first, uint32_t end);

/* The power was cut: weak claims are gone. */
void history_power_cut(struct history *history);

/* An audit reads every log from its start: begin, one call for each record in order, end. */
void history_audit_begin(struct history *history);
void history_audit_record(struct history *history,
                          uint32_t log,
                          int64_t offset,
                          struct history_value value);
void history_audit_end(struct history *history);
