/* consumer_group_classic.c - the classic protocol towards a consumer group: members that speak it
 * (groups.md 7.5, 13). */
#include "core/consumer_group_internal.h"

enum kafka_error consumer_group_classic_beat(struct group *group, const struct group_beat *beat)
{
    struct consumer_member *member =
        beat->instance_id.null ? consumer_group_member(group->consumer, beat->member_id)
                               : consumer_group_static(group->consumer, beat->instance_id);
    if (member == NULL) return KAFKA_UNKNOWN_MEMBER_ID;
    if (!view_equal(member->id, beat->member_id)) return KAFKA_FENCED_INSTANCE_ID;
    if (!member->said.classic) return KAFKA_UNKNOWN_MEMBER_ID;
    if (beat->generation != member->now.epoch) return KAFKA_ILLEGAL_GENERATION;
    consumer_group_contact(member, beat->arrived_ms);
    return KAFKA_NONE;
}
