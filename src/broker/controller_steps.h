/* controller_steps.h - which step of core/cluster answers which API. */
#pragma once

#include "broker/controller.h"
#include "core/cluster.h"

struct controller_step_row {
    int16_t api_key;
    int8_t operation; /* That the caller needs on the cluster (enum auth_operation); 0: the step
                         asks by itself. */
    int32_t error_at; /* Offset of the error code of the whole in the response; -1: it has none. */
    bool last_room;   /* It may give room back, or keeps the cluster alive: APPEND_LAST_ROOM. */
    enum step_result (*step)(struct controller *c, struct step *step, const void *in, void *out);
};

/* NULL: not a call of the controller. */
const struct controller_step_row *controller_step_find(int16_t api_key);

/* Set the error of the whole in a response. False: this one has no such field. */
bool controller_step_refuse(const struct controller_step_row *row, void *out, int16_t error);

/* May the client do this to the cluster? What this process asks itself it may; finer rights are
 * the step's. The row is there. O(1) and the authorizer's cost. */
bool controller_step_allowed(const struct controller_call *call);

/* Decide a call whose API is known. */
MUST_USE enum step_result controller_step(struct controller *c,
                                          struct step *step,
                                          const struct controller_call *call);
