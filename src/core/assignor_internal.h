/* assignor_internal.h - what assignor.c and assignor_mixed.c share: all partitions of all topics
 * have one number each. */
#pragma once

#include "core/assignor.h"

#define ASSIGNOR_NOBODY UINT32_MAX

struct assignor_numbers {
    const struct assignor_input *in;
    uint32_t *base;  /* By topic: the number of its partition 0; one more at the end. */
    uint32_t *owner; /* By number: the member, or ASSIGNOR_NOBODY. */
    uint32_t total;
};

MUST_USE bool assignor_number(struct assignor_numbers *numbers,
                              struct arena *arena,
                              const struct assignor_input *in);

/* The topic's index, or topic_count. */
uint32_t assignor_topic_find(const struct assignor_input *in, struct uuid id);

bool assignor_wants(const struct assignor_member *member, uint32_t topic);

/* The next partition that the member had, still wants and may have: its number. From `*at` = 0 on;
 * ASSIGNOR_NOBODY at the end. One that has an owner by now is passed over. */
uint32_t assignor_kept(const struct assignor_numbers *numbers,
                       const struct assignor_member *member,
                       uint32_t *at);

/* The targets as the owners say. */
MUST_USE bool assignor_answer(struct arena *arena,
                              const struct assignor_numbers *numbers,
                              struct assignor_input *in);

/* uniform where subscriptions differ. */
assignor assignor_mixed;
