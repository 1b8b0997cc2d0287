/* controller_steps.h - which step of core/cluster answers which API. */
#pragma once

#include "broker/controller.h"
#include "core/cluster.h"

struct controller_step_row {
    int16_t api_key;
    enum step_result (*step)(struct cluster *cluster, struct step *step, const void *in, void *out);
};

/* NULL: not a call of the controller. */
const struct controller_step_row *controller_step_find(int16_t api_key);

/* Decide a call whose API is known. */
MUST_USE enum step_result controller_step(struct cluster *cluster,
                                          struct step *step,
                                          const struct controller_call *call);
