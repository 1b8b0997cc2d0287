/* follow.c - see follow.h. */
#include "broker/follow.h"

#include <errno.h>

#include "broker/metadata_log.h"

#define BACKOFF_MIN_MS 10
#define BACKOFF_MAX_MS 1000
#define CALM_MS        60000 /* After so long the back-off begins anew. */

struct following {
    struct image *image;
    struct arena arena;
    int64_t first; /* Base offset of the first batch; -1: none was read yet. */
    enum follow_result result;
};

static bool following_record(void *context,
                             const struct batch_header *batch,
                             int64_t offset,
                             bool control,
                             struct view key,
                             struct view value)
{
    struct following *following = context;
    struct step_record record;
    (void)key;
    if (following->first < 0) following->first = batch->base_offset;
    if (control) return true;
    arena_reset(&following->arena);
    if (!step_decode(value, &following->arena, &record)) {
        following->result = following->arena.failed ? FOLLOW_MEMORY : FOLLOW_FAULT;
        return false;
    }
    switch (image_apply(following->image, &record, offset, batch->base_offset)) {
    case IMAGE_OK: return true;
    case IMAGE_E_MEMORY: following->result = FOLLOW_MEMORY; return false;
    default: following->result = FOLLOW_FAULT; return false;
    }
}

enum follow_result follow_batches(struct mem *mem, struct image *image, struct view batches)
{
    struct following following = {.image = image, .first = -1, .result = FOLLOW_DONE};
    struct metadata_reader reader = {following_record, &following};
    arena_init(&following.arena, mem, 0);
    int result = metadata_batches_read(mem, batches, &reader);
    arena_free(&following.arena);
    if (result == 0) return FOLLOW_DONE;
    if (following.result == FOLLOW_DONE)
        following.result = result == -ENOMEM ? FOLLOW_MEMORY : FOLLOW_FAULT;
    if (following.first >= 0) image_undo(image, following.first);
    return following.result;
}

bool follow_again_set(struct follow_again *again, int64_t now_ms)
{
    bool first = again->at_ms == 0;
    if (first && now_ms - again->since_ms > CALM_MS) again->backoff_ms = 0;
    if (first) again->since_ms = now_ms;
    again->backoff_ms = MIN(MAX(again->backoff_ms * 2, BACKOFF_MIN_MS), BACKOFF_MAX_MS);
    again->at_ms = now_ms + again->backoff_ms;
    return first;
}
