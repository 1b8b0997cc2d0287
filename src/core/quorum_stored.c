/* quorum_stored.c - the text of the file quorum-state, Kafka's JSON of data version 0 and 1.
 *
 *   {"leaderId":1,"leaderEpoch":2,"votedId":-1,"votedDirectoryId":"AAAAAAAAAAAAAAAAAAAAAA","data_version":1}
 *   {"clusterId":"","leaderId":1,"leaderEpoch":2,"votedId":-1,"appliedOffset":0,"currentVoters":[{"voterId":1}],"data_version":0}
 */
#include "core/quorum.h"

static const char alphabet[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

/* ---- reading --------------------------------------------------------------------------------- */

/* What follows `"name":` in the text; the null view: it is not there. */
static struct view member(struct view text, struct view name)
{
    for (uint32_t i = 0; i + name.size + 3 <= text.size; i++) {
        const uint8_t *p = text.data + i;
        if (p[0] != '"' || memcmp(p + 1, name.data, name.size) != 0 || p[1 + name.size] != '"')
            continue;
        uint32_t at = i + name.size + 2;
        while (at < text.size && (text.data[at] == ' ' || text.data[at] == ':'))
            at++;
        return view_of(text.data + at, text.size - at);
    }
    return VIEW_NULL;
}

static bool member_int(struct view text, struct view name, int32_t *out)
{
    struct view rest = member(text, name);
    if (rest.null) return false;
    uint32_t at = 0;
    bool negative = rest.size > 0 && rest.data[0] == '-';
    if (negative) at++;
    int64_t value = 0;
    uint32_t digits = 0;
    for (; at < rest.size && rest.data[at] >= '0' && rest.data[at] <= '9' && digits < 11;
         at++, digits++)
        value = value * 10 + (rest.data[at] - '0');
    if (digits == 0 || value > INT32_MAX) return false;
    *out = (int32_t)(negative ? -value : value);
    return true;
}

static bool uuid_parse(struct view text, struct uuid *out)
{
    uint64_t bits = 0;
    uint32_t have = 0, at = 0;
    if (text.size < 23 || text.data[0] != '"') return false;
    for (uint32_t i = 1; i <= 22; i++) {
        const char *found = NULL;
        for (const char *c = alphabet; *c != '\0' && found == NULL; c++)
            if (*c == (char)text.data[i]) found = c;
        if (found == NULL) return false;
        bits = (bits << 6) | (uint64_t)(found - alphabet);
        have += 6;
        if (have >= 8 && at < sizeof(out->bytes)) {
            have -= 8;
            out->bytes[at++] = (uint8_t)(bits >> have);
        }
    }
    return true;
}

bool quorum_stored_read(struct view text, struct quorum_stored *out)
{
    int32_t version;
    *out = (struct quorum_stored){0};
    if (!member_int(text, VIEW("data_version"), &version) || version < 0 || version > 1)
        return false;
    if (!member_int(text, VIEW("leaderId"), &out->leader_id) ||
        !member_int(text, VIEW("leaderEpoch"), &out->leader_epoch) ||
        !member_int(text, VIEW("votedId"), &out->voted_id) || out->leader_epoch < 0)
        return false;
    return version == 0 ||
           uuid_parse(member(text, VIEW("votedDirectoryId")), &out->voted_directory);
}

/* ---- writing --------------------------------------------------------------------------------- */

struct text {
    uint8_t *at;
};

static void put(struct text *t, const char *literal)
{
    while (*literal != '\0')
        *t->at++ = (uint8_t)*literal++;
}

static void put_int(struct text *t, int64_t value)
{
    char digits[24];
    uint32_t count = 0;
    uint64_t rest = value < 0 ? (uint64_t)-value : (uint64_t)value;
    do {
        digits[count++] = (char)('0' + rest % 10);
        rest /= 10;
    } while (rest > 0);
    if (value < 0) *t->at++ = '-';
    while (count > 0)
        *t->at++ = (uint8_t)digits[--count];
}

static void put_uuid(struct text *t, struct uuid id)
{
    uint32_t bits = 0, have = 0;
    for (uint32_t i = 0; i < sizeof(id.bytes); i++) {
        bits = (bits << 8) | id.bytes[i];
        have += 8;
        while (have >= 6) {
            have -= 6;
            *t->at++ = (uint8_t)alphabet[(bits >> have) & 63];
        }
    }
    *t->at++ = (uint8_t)alphabet[(bits << (6 - have)) & 63];
}

struct view quorum_stored_write(const struct quorum *quorum,
                                const struct quorum_stored *stored,
                                struct arena *arena)
{
    uint32_t voters;
    const struct quorum_voter *voter = quorum_voters(quorum, &voters);
    bool old = quorum_kraft_version(quorum) == 0;
    uint8_t *start = arena_get(arena, 256 + (size_t)voters * 32);
    if (start == NULL) return VIEW_NULL;
    struct text t = {start};
    put(&t, old ? "{\"clusterId\":\"\",\"leaderId\":" : "{\"leaderId\":");
    put_int(&t, stored->leader_id);
    put(&t, ",\"leaderEpoch\":");
    put_int(&t, stored->leader_epoch);
    put(&t, ",\"votedId\":");
    put_int(&t, stored->voted_id);
    if (old) {
        put(&t, ",\"appliedOffset\":0,\"currentVoters\":[");
        for (uint32_t i = 0; i < voters; i++) {
            put(&t, i > 0 ? ",{\"voterId\":" : "{\"voterId\":");
            put_int(&t, voter[i].id);
            put(&t, "}");
        }
        put(&t, "],\"data_version\":0}");
    } else {
        put(&t, ",\"votedDirectoryId\":\"");
        put_uuid(&t, stored->voted_directory);
        put(&t, "\",\"data_version\":1}");
    }
    return view_of(start, (uint32_t)(t.at - start));
}
