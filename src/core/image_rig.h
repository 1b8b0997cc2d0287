/* image_rig.h - a whole image as records, for tests. */
#pragma once

#include "core/core_test.h"

#include "core/image.h"

/* Everything at once. False: no memory, or `each` said no. */
static inline bool rig_snapshot(struct image *image,
                                bool (*each)(void *context, const struct step_record *record),
                                void *context)
{
    struct image_freeze *freeze = image_freeze_begin(image, (struct image_writer){each, context});
    bool done = freeze != NULL && image_freeze_slice(freeze, UINT32_MAX) == IMAGE_FREEZE_DONE;
    image_freeze_end(freeze);
    return done;
}
