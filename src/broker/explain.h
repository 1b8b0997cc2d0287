/* explain.h - pages of the console that tell why: what this node knows of one thing, as JSON and as
 * text for people. */
#pragma once

#include "net/shard.h"
#include "text/out.h"

/* "GROUP/MEMBER", both percent-encoded: the member's standing, its contacts, what happened to it
 * and to its group. On the shard's thread. The HTTP status: 200; 404: there is no such group here;
 * 400; 503: its partition is not served; 421: not by this shard. */
int explain_member_json(struct shard *shard, struct view rest, struct out *out);
int explain_member_text(struct shard *shard, struct view rest, struct out *out);

/* One event of a group as a debug line. */
struct group_event;
void explain_say_event(const struct shard *shard,
                       struct view group,
                       const struct group_event *event);

/* "ID": a broker's state, what is missing to be unfenced, its session, its last heartbeats. On the
 * shard's thread. 200; 404: no such broker is registered; 400. */
int explain_broker_json(struct shard *shard, struct view rest, struct out *out);
int explain_broker_text(struct shard *shard, struct view rest, struct out *out);

/* For the pages here: a time in UTC; a member of a JSON object, with the comma before it, null for
 * the null view and for a negative time. */
void explain_put_time(struct out *out, int64_t wall_ms);
void explain_json_text(struct out *out, const char *name, struct view value);
void explain_json_time(struct out *out, const char *name, int64_t wall_ms);
