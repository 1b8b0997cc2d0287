/* doctor.h - what the files of `dohle doctor` share: the walk's state and its findings.
 *
 *   doctor.c        the command, the walk up to the advertised addresses, what is printed
 *   doctor_why.c    which words belong to a failure, and what to change
 *   doctor_write.c  --write: one record there and back
 *
 * A finding is printed when it is made. The first one that fails is the hop that is named at the
 * end; its cause and the changes that mend it are collected beside it. */
#pragma once

#include "cli/cli.h"
#include "cli/dial.h"

#define DOCTOR_STEPS_MAX   256
#define DOCTOR_BROKERS_MAX 64 /* More are counted, not visited. */
#define DOCTOR_CHANGES_MAX 8

enum doctor_state { DOCTOR_OK, DOCTOR_WARN, DOCTOR_FAIL };

struct doctor_step {
    enum doctor_state state;
    const char *hop;  /* "resolve", "connect", "ApiVersions", "Metadata", "broker 1", "produce" */
    const char *text; /* Both in the arena. */
    double ms;
};

/* What is wrong and what mends it. `cause` NULL: nothing is. */
struct doctor_diagnosis {
    const char *hop;
    const char *kind;  /* One word for programs: "advertised-name", "tls", ... */
    const char *cause; /* Sentences. */
    const char *changes[DOCTOR_CHANGES_MAX];
    uint32_t change_count;
};

struct doctor_broker {
    int32_t id;
    struct dial_host host; /* As it advertises itself. */
};

struct doctor {
    struct cli *cli;
    struct arena arena;
    bool json;
    int timeout_ms;
    struct dial_host target;
    char target_text[DIAL_TEXT_BYTES];
    struct dial_address reached; /* Of the target: the one that took the connection. */
    struct view cluster_id;
    struct doctor_broker brokers[DOCTOR_BROKERS_MAX];
    uint32_t broker_count;
    int32_t controller_id;
    struct doctor_step steps[DOCTOR_STEPS_MAX];
    uint32_t step_count;
    double step_start_ms;
    struct doctor_diagnosis diagnosis;
    bool warned; /* The diagnosis is of a warning: clients of some kinds fail, others do not. */
};

/* ---- findings (doctor.c) -------------------------------------------------------------------- */

/* A hop is about to be walked: its time runs. */
void doctor_begin(struct doctor *doctor);

/* Text in the arena. */
MUST_USE const char *doctor_text(struct doctor *doctor, const char *format, ...) PRINTF(2, 3);

/* Tell what was found on a hop. */
void doctor_found(struct doctor *doctor,
                  enum doctor_state state,
                  const char *hop,
                  const char *text);

/* Connect to one of the host's addresses, telling those that fail only if another works.
 * `last_error` is then what the last one failed with (a negative errno, or a getaddrinfo code above
 * DOCTOR_RESOLVE with no address). */
#define DOCTOR_RESOLVE 100000
struct doctor_reach {
    struct dial_addresses addresses;
    struct dial_address address; /* The one that works, or the last that was tried. */
    int error;                   /* 0: connected. */
    uint32_t refused_count;      /* Addresses before it that did not work, */
    const char *refused;         /* as text: "[::1]:9092 (Connection refused)" */
    bool four_failed, six_failed;
};
void doctor_reach(struct doctor *doctor,
                  const struct dial_host *host,
                  struct dial *dial,
                  struct doctor_reach *out);

/* "the name is not known here", "Connection refused" */
const char *doctor_reach_text(int error);

/* ---- causes (doctor_why.c) ------------------------------------------------------------------ */

/* Each sets the diagnosis, unless there is one already. */
void doctor_why_target(struct doctor *doctor, const struct doctor_reach *reach);
void doctor_why_answer(struct doctor *doctor,
                       const char *hop,
                       const struct dial *dial,
                       enum dial_result result);
void doctor_why_sasl(struct doctor *doctor, const char *hop, const char *mechanisms);
void doctor_why_advertised(struct doctor *doctor,
                           const struct doctor_broker *broker,
                           const struct doctor_reach *reach);
void doctor_why_one_family(struct doctor *doctor,
                           const char *hop,
                           const struct dial_host *host,
                           const struct doctor_reach *reach);
void doctor_why_elsewhere(struct doctor *doctor,
                          const struct doctor_broker *broker,
                          struct view cluster_id);
void doctor_why_error(struct doctor *doctor, const char *hop, int16_t code, struct view message);

/* ---- one record (doctor_write.c) ------------------------------------------------------------ */

/* Produce a record and fetch it again, through the advertised address of the leader. `dial` is
 * connected to the target. */
void doctor_write(struct doctor *doctor, struct dial *dial);
