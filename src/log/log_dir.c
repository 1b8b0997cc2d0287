/* log_dir.c - meta.properties, UUIDs as text, and the clean-shutdown mark.
 *
 *   meta.properties          Java properties: `#` comments, key=value lines, order free
 *     cluster.id=MkU3OEVBNTcwNTJENDM2Qk
 *     directory.id=...       base64url of 16 bytes, 22 characters; not one of the first 100
 * integers node.id=1              version 0 has broker.id in its place version=1
 *
 *   .kafka_cleanshutdown     {"version":0,"brokerEpoch":N}; that it exists is what counts, and an
 *                            empty one is of old releases. It is deleted before the first log of
 *                            the directory is touched, and written as the last step of a stop. */
#include "log/log_dir.h"

#include <errno.h>
#include <stdio.h>

#include "log/disk.h"
#include "log/log_mark.h"
#include "log/state.h"
#include "record/sink.h"

#define META_NAME      "meta.properties"
#define META_BYTES_MAX (64u * 1024u)

static const char uuid_digits[] =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

void log_uuid_print(struct uuid uuid, char out[23])
{
    uint32_t at = 0;
    for (uint32_t i = 0; i < 15; i += 3) {
        uint32_t group =
            (uint32_t)uuid.bytes[i] << 16 | (uint32_t)uuid.bytes[i + 1] << 8 | uuid.bytes[i + 2];
        for (int shift = 18; shift >= 0; shift -= 6)
            out[at++] = uuid_digits[group >> shift & 63];
    }
    out[at++] = uuid_digits[uuid.bytes[15] >> 2];
    out[at++] = uuid_digits[(uuid.bytes[15] & 3) << 4];
    out[at] = '\0';
    assert(at == 22);
}

bool log_uuid_parse(struct view text, struct uuid *out)
{
    if (text.null || text.size != 22) return false;
    uint32_t bits = 0;
    uint32_t bit_count = 0;
    uint32_t at = 0;
    for (uint32_t i = 0; i < 22; i++) {
        const char *digit =
            text.data[i] == 0 ? NULL : memchr(uuid_digits, text.data[i], sizeof(uuid_digits) - 1);
        if (digit == NULL) return false;
        bits = bits << 6 | (uint32_t)(digit - uuid_digits);
        bit_count += 6;
        if (bit_count < 8) continue;
        bit_count -= 8;
        if (at < 16) out->bytes[at++] = (uint8_t)(bits >> bit_count);
        bits &= (1u << bit_count) - 1;
    }
    assert(at == 16);
    return bits == 0; /* The last digit's low four bits mean nothing and are zero. */
}

/* ---- meta.properties ------------------------------------------------------------------------- */

static bool meta_is_space(uint8_t c)
{
    return c == ' ' || c == '\t' || c == '\f' || c == '\r';
}

/* Copy of `line` from `at` to an unescaped separator (if `to_separator`) or the end, with its
 * escapes resolved. Returns where it stopped; -1: it does not fit. */
static int meta_unescape(struct view line, uint32_t at, bool to_separator, char out[128])
{
    uint32_t length = 0;
    for (; at < line.size; at++) {
        uint8_t c = line.data[at];
        if (to_separator && (c == '=' || c == ':' || meta_is_space(c))) break;
        if (c == '\\' && at + 1 < line.size) c = line.data[++at];
        if (length == 127) return -1;
        out[length++] = (char)c;
    }
    while (!to_separator && length > 0 && meta_is_space((uint8_t)out[length - 1]))
        length--;
    out[length] = '\0';
    return (int)at;
}

static bool meta_integer(const char *text, int32_t *out)
{
    int64_t value = 0;
    if (text[0] == '\0') return false;
    for (const char *p = text; *p != '\0'; p++) {
        if (*p < '0' || *p > '9') return false;
        value = value * 10 + (*p - '0');
        if (value > INT32_MAX) return false;
    }
    *out = (int32_t)value;
    return true;
}

static bool meta_set(struct log_meta *meta, struct view key, const char *value)
{
    if (view_is(key, "version")) return meta_integer(value, &meta->version);
    if (view_is(key, "node.id") || view_is(key, "broker.id"))
        return meta_integer(value, &meta->node_id);
    if (view_is(key, "directory.id"))
        return log_uuid_parse(view_of_string(value), &meta->directory_id);
    if (view_is(key, "cluster.id")) {
        struct view text = view_of_string(value);
        if (text.size == 0 || text.size >= sizeof(meta->cluster_id)) return false;
        memcpy(meta->cluster_id, value, text.size + 1);
    }
    return true; /* What else stands there is not ours to judge. */
}

/* One line of the file into `meta`. False: a key of ours has a value that it cannot have. */
static bool meta_line(struct log_meta *meta, struct view line)
{
    char key[128];
    char value[128];
    uint32_t at = 0;
    while (at < line.size && meta_is_space(line.data[at]))
        at++;
    if (at == line.size || line.data[at] == '#' || line.data[at] == '!') return true;
    int stop = meta_unescape(line, at, true, key);
    if (stop < 0) return true;
    at = (uint32_t)stop;
    while (at < line.size && meta_is_space(line.data[at]))
        at++;
    if (at < line.size && (line.data[at] == '=' || line.data[at] == ':')) at++;
    while (at < line.size && meta_is_space(line.data[at]))
        at++;
    if (meta_unescape(line, at, false, value) < 0) return false;
    return meta_set(meta, view_of_string(key), value);
}

static int meta_parse(struct view text, struct log_meta *out)
{
    *out = (struct log_meta){.node_id = -1, .version = -1};
    bool good = true;
    uint32_t at = 0;
    while (at < text.size) {
        const uint8_t *newline = memchr(text.data + at, '\n', text.size - at);
        uint32_t end = newline == NULL ? text.size : (uint32_t)(newline - text.data);
        good &= meta_line(out, view_of(text.data + at, end - at));
        at = end + 1;
    }
    bool version_0 = out->version == 0;
    bool version_1 = out->version == 1 && out->node_id >= 0 && out->cluster_id[0] != '\0';
    return good && (version_0 || version_1) ? LOG_META_OK : LOG_META_INVALID;
}

int log_meta_read(struct io *io, const char *path, struct log_meta *out)
{
    struct disk_bytes bytes;
    struct mem *mem = io_mem(io);
    int error = disk_read_whole(io, mem, disk_join(path, META_NAME).text, META_BYTES_MAX, &bytes);
    if (error == -ENOENT || error == -ENOTDIR) return LOG_META_MISSING;
    if (error == -EFBIG) return LOG_META_INVALID;
    if (error < 0) return error;
    int result = meta_parse(view_of(bytes.data, bytes.size_bytes), out);
    disk_free(mem, &bytes);
    return result;
}

int log_meta_write(struct io *io, const char *path, const struct log_meta *meta)
{
    return log_meta_write_after(io, path, meta, (struct disk_needed){0});
}

int log_meta_write_after(struct io *io,
                         const char *path,
                         const struct log_meta *meta,
                         struct disk_needed needed)
{
    assert(meta->node_id >= 0);
    assert(!uuid_is_zero(meta->directory_id));
    int error = io_disk_mkdir(io, path);
    if (error < 0 && error != -EEXIST) return error;

    char id[23];
    log_uuid_print(meta->directory_id, id);
    char text[512];
    int length =
        snprintf(text, sizeof(text), "#\ncluster.id=%s\ndirectory.id=%s\nnode.id=%d\nversion=1\n",
                 meta->cluster_id, id, meta->node_id);
    assert(length > 0);
    assert((size_t)length < sizeof(text));
    return disk_replace_after(io, path, META_NAME, view_of(text, (uint32_t)length), needed);
}

/* ---- the clean mark -------------------------------------------------------------------------- */

/* The number behind `"brokerEpoch":`, or -1. */
static int64_t mark_epoch(struct view text)
{
    static const char key[] = "\"brokerEpoch\"";
    uint32_t size = sizeof(key) - 1;
    for (uint32_t at = 0; at + size < text.size; at++) {
        if (memcmp(text.data + at, key, size) != 0) continue;
        at += size;
        while (at < text.size && (meta_is_space(text.data[at]) || text.data[at] == ':'))
            at++;
        int64_t value = 0;
        uint32_t from = at;
        for (; at < text.size && text.data[at] >= '0' && text.data[at] <= '9'; at++)
            if (__builtin_mul_overflow(value, 10, &value) ||
                __builtin_add_overflow(value, text.data[at] - '0', &value))
                return -1;
        return at == from ? -1 : value;
    }
    return -1;
}

int log_mark_take(struct io *io, const char *path, bool *there, int64_t *broker_epoch)
{
    struct mem *mem = io_mem(io);
    struct disk_path mark = disk_join(path, LOG_MARK_NAME);
    struct disk_bytes bytes;
    *there = false;
    *broker_epoch = -1;
    int error = disk_read_whole(io, mem, mark.text, META_BYTES_MAX, &bytes);
    if (error == -ENOENT) return 0;
    if (error == 0) {
        *broker_epoch = mark_epoch(view_of(bytes.data, bytes.size_bytes));
        disk_free(mem, &bytes);
    } else if (error != -EFBIG) {
        return error;
    }
    *there = true;
    error = disk_unlink_if_there(io, mark.text);
    return error < 0 ? error : io_disk_sync_dir(io, path);
}

int log_mark_write(struct io *io, const char *path, int64_t broker_epoch)
{
    char text[64];
    int length = snprintf(text, sizeof(text), "{\"version\":0,\"brokerEpoch\":%lld}",
                          (long long)broker_epoch);
    assert(length > 0);
    return disk_replace(io, path, LOG_MARK_NAME, view_of(text, (uint32_t)length));
}

/* ---- what lies there --------------------------------------------------------------------------
 */

struct stranger {
    struct io *io;
    const char *path;
    char *name;
    int result;
};

static bool stranger_look(void *context, const char *name)
{
    struct stranger *look = context;
    struct io_stat stat;
    look->result = io_disk_stat(look->io, disk_join(look->path, name).text, &stat);
    if (look->result < 0) return false;
    if (!stat.is_directory || names_parse(name).kind != NAMES_BAD) return true;
    (void)snprintf(look->name, 256, "%s", name);
    look->result = LOG_DIR_STRANGER;
    return false;
}

int log_dir_stranger(struct io *io, const char *path, char name[256])
{
    struct stranger look = {io, path, name, 0};
    int error = io_disk_list(io, path, stranger_look, &look);
    return error < 0 ? error : look.result;
}
