/* samples.h - the messages of workload W1, each in SAMPLES_VARIANTS variants that differ in lengths
 * and values, so that no branch predictor learns a message by heart. */
#pragma once

#include "record/sink.h"
#include "wire/wire.h"

#define SAMPLES_VARIANTS 64u

struct sample_case {
    const char *name; /* "HeartbeatRequest-4", "FetchRequest-16" */
    const struct wire_message *message;
    int16_t version;
    uint32_t count; /* Partitions, topics, members, or bytes of records. */
    /* Fill the struct with variant `seed`; what it points to lies in the arena. */
    void (*fill)(struct arena *arena, void *out, uint32_t count, uint64_t seed);
    /* Leave the records outside, as on the way to a socket; NULL: the message has none. */
    void (*outside)(void *message);
};

extern const struct sample_case samples_cases[];
extern const uint32_t samples_case_count;

/* The encoded bytes of one variant, behind what `out` holds. */
void samples_encode(const struct sample_case *sample, uint32_t variant, struct sink *out);
