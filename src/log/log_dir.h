/* log_dir.h - one entry of log.dirs: identity, lock, clean mark, and whether it is alive.
 *
 * Each directory fails alone: the first failed write or sync takes it offline for good, its logs
 * answer with that errno, the others go on. Formats: README.md. */
#pragma once

#include "base/view.h"
#include "io/io.h"
#include "log/disk.h"

#define LOG_CLUSTER_ID_MAX 64u /* Kafka's own are 22 characters; others must fit this. */

/* meta.properties: whose directory it is. */
struct log_meta {
    char cluster_id[LOG_CLUSTER_ID_MAX]; /* NUL-terminated. */
    int32_t node_id;                     /* -1: the file has none. */
    struct uuid directory_id;            /* All zero: the file has none. */
    int32_t version;                     /* 1; 0 is of ZooKeeper times and has no directory.id. */
};

enum log_meta_result {
    LOG_META_OK = 0,
    LOG_META_MISSING, /* The directory is not formatted. */
    LOG_META_INVALID, /* The file does not hold what it must; `out` is what could be read. */
};

/* Read `path`/meta.properties. A LOG_META result, or -errno. Blocks. */
MUST_USE int log_meta_read(struct io *io, const char *path, struct log_meta *out);

/* Does something lie in a directory that has no meta.properties which logs_open() would refuse? Its
 * name is then in `name`, cut. LOG_DIR_STRANGER, 0 or -errno (-ENOENT: no directory). Blocks. */
#define LOG_DIR_STRANGER 1
MUST_USE int log_dir_stranger(struct io *io, const char *path, char name[256]);

/* Write it (through a .tmp file, durable at return): format a directory. Creates `path` if it is
 * not there. 0 or -errno. Blocks. */
MUST_USE int log_meta_write(struct io *io, const char *path, const struct log_meta *meta);

/* The same when `needed`, what else makes the directory a formatted one, is to be durable first. */
MUST_USE int log_meta_write_after(struct io *io,
                                  const char *path,
                                  const struct log_meta *meta,
                                  struct disk_needed needed);

/* A UUID as Kafka writes it: 22 characters of base64url and a NUL. */
void log_uuid_print(struct uuid uuid, char out[23]);

/* Read 22 characters of base64url; false if `text` is not such. */
MUST_USE bool log_uuid_parse(struct view text, struct uuid *out);
