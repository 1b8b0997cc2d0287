/* consume_where.c - from an offset, from the end, or from a time. See consume.h. */
#include <inttypes.h>
#include <stdlib.h>
#include <time.h>

#include "cli/consume.h"

static bool parse_number(const char *text, int64_t *out)
{
    char *end = NULL;
    if (*text == '\0' || *text == '+' || *text == ' ') return false;
    *out = strtoll(text, &end, 10);
    return *end == '\0';
}

/* "-10m": so long ago. */
static bool parse_age(const char *text, int64_t wall_ms, int64_t *out)
{
    static const struct {
        char unit;
        int64_t ms;
    } units[] = {
        {'s', 1000    },
        {'m', 60000   },
        {'h', 3600000 },
        {'d', 86400000}
    };
    char *end = NULL;
    if (text[0] != '-') return false;
    long long number = strtoll(text + 1, &end, 10);
    if (end == text + 1 || *end == '\0' || end[1] != '\0' || number < 0 || number > 1000000)
        return false;
    for (size_t i = 0; i < ARRAY_SIZE(units); i++) {
        if (units[i].unit != *end) continue;
        *out = wall_ms - number * units[i].ms;
        return true;
    }
    return false;
}

static bool parse_date(const char *text, int64_t *out)
{
    static const char *const forms[] = {"%Y-%m-%dT%H:%M:%S", "%Y-%m-%dT%H:%M", "%Y-%m-%d %H:%M:%S",
                                        "%Y-%m-%d %H:%M", "%Y-%m-%d"};
    for (size_t i = 0; i < ARRAY_SIZE(forms); i++) {
        struct tm tm = {.tm_isdst = -1};
        const char *end = strptime(text, forms[i], &tm);
        if (end == NULL || (*end != '\0' && strcmp(end, "Z") != 0)) continue;
        time_t seconds = *end == 'Z' ? timegm(&tm) : mktime(&tm);
        *out = (int64_t)seconds * 1000;
        return true;
    }
    return false;
}

bool consume_from_parse(const char *text, int64_t wall_ms, struct consume_from *out)
{
    *out = (struct consume_from){CONSUME_BEGINNING, 0};
    if (strcmp(text, "beginning") == 0) return true;
    if (strcmp(text, "end") == 0) {
        out->where = CONSUME_END;
        return true;
    }
    if (text[0] == '@') {
        out->where = CONSUME_TIME;
        return parse_age(text + 1, wall_ms, &out->number) || parse_date(text + 1, &out->number) ||
               (parse_number(text + 1, &out->number) && out->number >= 0);
    }
    if (!parse_number(text, &out->number)) return false;
    out->where = out->number < 0 || text[0] == '-' ? CONSUME_LAST : CONSUME_OFFSET;
    if (out->number < 0) out->number = -out->number;
    return true;
}

static enum cli_exit by_time(struct client *client,
                             const char *topic,
                             int64_t time_ms,
                             struct consume_part *parts,
                             uint32_t count)
{
    rd_kafka_topic_partition_list_t *list = client->rd.topic_partition_list_new((int)count);
    for (uint32_t i = 0; i < count; i++)
        client->rd.topic_partition_list_add(list, topic, parts[i].id)->offset = time_ms;
    rd_kafka_resp_err_t error =
        client->rd.offsets_for_times(client->handle, list, client->timeout_ms);
    for (uint32_t i = 0; i < count && error == RD_KAFKA_RESP_ERR_NO_ERROR; i++) {
        const rd_kafka_topic_partition_t *found = &list->elems[i];
        if (found->err != RD_KAFKA_RESP_ERR_NO_ERROR) error = found->err;
        parts[i].at = found->offset >= 0 ? found->offset : parts[i].next;
    }
    client->rd.topic_partition_list_destroy(list);
    if (error == RD_KAFKA_RESP_ERR_NO_ERROR) return CLI_OK;
    return (enum cli_exit)client_fail(client, "the offsets of that time", error, NULL);
}

enum cli_exit consume_where(struct client *client,
                            const char *topic,
                            const struct consume_from *from,
                            struct consume_part *parts,
                            uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        struct consume_part *part = &parts[i];
        char what[320];
        rd_kafka_resp_err_t error = client->rd.query_watermark_offsets(
            client->handle, topic, part->id, &part->low, &part->next, client->timeout_ms);
        (void)snprintf(what, sizeof(what), "partition %d of \"%s\"", part->id, topic);
        if (error != RD_KAFKA_RESP_ERR_NO_ERROR)
            return (enum cli_exit)client_fail(client, what, error, NULL);
        switch (from->where) {
        case CONSUME_TIME:
        case CONSUME_BEGINNING: part->at = part->low; break;
        case CONSUME_END: part->at = part->next; break;
        case CONSUME_OFFSET: part->at = MAX(from->number, part->low); break;
        case CONSUME_LAST: part->at = MAX(part->next - from->number, part->low); break;
        }
    }
    return from->where == CONSUME_TIME ? by_time(client, topic, from->number, parts, count)
                                       : CLI_OK;
}
