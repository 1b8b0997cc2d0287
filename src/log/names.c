/* names.c - the names of folders in a log directory.
 *
 *   TOPIC-PARTITION               a replica
 *   TOPIC-PARTITION.UUID-delete   being deleted; the topic is cut so that 255 bytes suffice
 *   TOPIC-PARTITION.UUID-stray    not this node's; kept for the operator; cut alike
 *   TOPIC-PARTITION.UUID-future   the copy that a move between directories makes; not cut
 *   __cluster_metadata-0          the metadata log, not one of ours
 *   remote-log-index-cache        of tiered storage
 *
 * UUID is 32 hexadecimal digits. Any other folder is an error, as in Apache Kafka: a server that
 * skipped it could miss a replica. */
#include <stdio.h>
#include <string.h>

#include "log/state.h"

#define UUID_HEX_SIZE 32u

static bool names_hex(const char *text, size_t size)
{
    for (size_t i = 0; i < size; i++)
        if (!((text[i] >= '0' && text[i] <= '9') || (text[i] >= 'a' && text[i] <= 'f')))
            return false;
    return true;
}

static struct uuid names_uuid(const char *text)
{
    struct uuid id = {{0}};
    for (size_t i = 0; i < UUID_HEX_SIZE; i++) {
        char c = text[i];
        uint8_t digit = (uint8_t)(c <= '9' ? c - '0' : c - 'a' + 10);
        id.bytes[i / 2] = (uint8_t)(id.bytes[i / 2] << 4 | digit);
    }
    return id;
}

/* Split "TOPIC-PARTITION" of `size` bytes at its last dash. */
static bool names_split(const char *name, size_t size, struct names_folder *out)
{
    size_t dash = size;
    while (dash > 0 && name[dash - 1] != '-')
        dash--;
    if (dash < 2 || dash == size || size - dash > 10) return false;
    int64_t partition = 0;
    for (size_t i = dash; i < size; i++) {
        if (name[i] < '0' || name[i] > '9') return false;
        partition = partition * 10 + (name[i] - '0');
    }
    if (partition > INT32_MAX || dash - 1 > TOPIC_NAME_MAX) return false;
    out->topic = view_of(name, (uint32_t)(dash - 1));
    out->partition = (int32_t)partition;
    return true;
}

struct names_folder names_parse(const char *name)
{
    static const struct {
        const char *suffix;
        int kind;
    } asides[] = {
        {"-delete", NAMES_DELETE},
        {"-stray",  NAMES_STRAY },
        {"-future", NAMES_FUTURE}
    };
    struct names_folder out = {.kind = NAMES_SKIP};
    if (strcmp(name, "__cluster_metadata-0") == 0) return out;
    if (strcmp(name, "remote-log-index-cache") == 0) return out;

    size_t size = strlen(name);
    out.kind = NAMES_BAD;
    for (size_t i = 0; i < ARRAY_SIZE(asides); i++) {
        size_t suffix = strlen(asides[i].suffix);
        if (size <= suffix || strcmp(name + size - suffix, asides[i].suffix) != 0) continue;
        size_t stem = size - suffix; /* TOPIC-PARTITION.UUID */
        if (stem <= UUID_HEX_SIZE + 1 || name[stem - UUID_HEX_SIZE - 1] != '.') return out;
        if (!names_hex(name + stem - UUID_HEX_SIZE, UUID_HEX_SIZE)) return out;
        if (names_split(name, stem - UUID_HEX_SIZE - 1, &out)) out.kind = asides[i].kind;
        out.aside_id = names_uuid(name + stem - UUID_HEX_SIZE);
        return out;
    }
    if (names_split(name, size, &out)) out.kind = NAMES_PARTITION;
    return out;
}

bool logs_move_name_fits(struct view topic, int32_t partition)
{
    char tail[80];
    int size = snprintf(tail, sizeof(tail), "-%d.%32s-future", partition, "");
    assert(size > 0);
    return topic.size + (uint32_t)size <= 255;
}

struct disk_path log_aside(const struct log *log, const char *suffix)
{
    struct uuid id = log->aside_id;
    char hex[UUID_HEX_SIZE + 1];
    for (uint32_t i = 0; i < 16; i++)
        snprintf(hex + 2 * i, 3, "%02x", id.bytes[i]);
    char tail[80];
    int tail_size = snprintf(tail, sizeof(tail), "-%d.%s-%s", log->partition, hex, suffix);
    assert(tail_size > 0);
    uint32_t topic_size = MIN(log->topic.size, 255u - (uint32_t)tail_size);
    char name[256];
    int size = snprintf(name, sizeof(name), "%.*s%s", (int)topic_size,
                        (const char *)log->topic.data, tail);
    assert(size > 0);
    assert((size_t)size < sizeof(name));
    return disk_join(log->directory->path, name);
}
