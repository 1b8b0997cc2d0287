/* tap_rewrite.h - the addresses in an answer that send a client elsewhere. */
#pragma once

#include "text/frame.h"

/* Put another address in the place of `host` and `port`. False: they stay. A view that is set lives
 * in the arena or longer. */
typedef bool (*tap_map)(void *context, struct view *host, int32_t *port);

/* Does an answer of this API name addresses of brokers? */
MUST_USE bool tap_rewrites(const struct frame_kind *response);

/* The frame with all its addresses mapped: Metadata, FindCoordinator, DescribeCluster, and the new
 * leaders that Produce, Fetch, ShareFetch and ShareAcknowledge name. The frame as it was, if
 * nothing changed or it cannot be read. A new one is in the arena. */
struct view tap_rewrite(const struct frame_kind *response,
                        struct view frame,
                        struct arena *arena,
                        tap_map map,
                        void *context);
