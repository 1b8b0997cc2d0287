/* explain.h - pages of the console that tell why: what this node knows of one thing, as JSON and as
 * text for people. */
#pragma once

#include "net/shard.h"
#include "text/out.h"

/* "GROUP/MEMBER", both percent-encoded: the member's standing, its contacts, what happened to it
 * and to its group. On the shard's thread. The HTTP status: 200; 404: there is no such group here;
 * 400; 503: its partition is not served. */
int explain_member_json(struct shard *shard, struct view rest, struct out *out);
int explain_member_text(struct shard *shard, struct view rest, struct out *out);
