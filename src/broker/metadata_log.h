/* metadata_log.h - the files of __cluster_metadata-0 beside its segments: checkpoints,
 * quorum-state.
 *
 * Formats are Kafka's: a checkpoint is a file of batches, control records at its head
 * and foot, metadata records between. All calls block: before serving, or in a job. */
#pragma once

#include "base/arena.h"
#include "core/quorum.h"
#include "core/step.h"
#include "io/io.h"
#include "record/batch.h"
#include "record/sink.h"

#define METADATA_PATH_BYTES 4096u

/* One checkpoint's name. */
struct metadata_checkpoint {
    int64_t end; /* Exclusive; 0 with epoch 0: what format wrote (bootstrap). */
    int32_t epoch;
};

/* A part of a checkpoint's bytes. */
struct metadata_slice {
    int64_t position; /* Told: where to begin, */
    uint8_t *bytes;   /* where they go, */
    uint32_t room;    /* and how many fit. */
    uint32_t count;   /* Found: how many came, */
    int64_t size;     /* and how many the checkpoint has. */
};

/* The oldest and the newest checkpoint that is no bootstrap, in `dir`. 0; -ENOENT: there is none,
 * or no `dir`; another -errno: nobody knows. */
MUST_USE int metadata_checkpoint_range(struct io *io,
                                       const char *dir,
                                       struct metadata_checkpoint *oldest,
                                       struct metadata_checkpoint *newest);

/* Bytes of a checkpoint file from `position` on into a slice. 0; -ENOENT: there is no such
 * checkpoint; -ERANGE: `position` is not in it; -errno. */
MUST_USE int metadata_checkpoint_slice(struct io *io,
                                       const char *dir,
                                       struct metadata_checkpoint id,
                                       struct metadata_slice *slice);

/* What a checkpoint or a segment holds, one record at a time. `control`: key and value are a
 * control record's. False from a callback ends the walk. */
struct metadata_reader {
    bool (*record)(void *context,
                   const struct batch_header *batch,
                   int64_t offset,
                   bool control,
                   struct view key,
                   struct view value);
    void *context;
};

/* Every record of whole batches in `bytes`. 0, -EBADMSG (a batch that does not hold), -ECANCELED.
 */
MUST_USE int metadata_batches_read(struct mem *mem,
                                   struct view bytes,
                                   const struct metadata_reader *reader);

/* Every record of a checkpoint file. The same, or -errno. */
MUST_USE int metadata_checkpoint_read(struct io *io,
                                      const char *dir,
                                      struct metadata_checkpoint id,
                                      const struct metadata_reader *reader);

/* A batch of a step's records behind what the sink holds. False: no memory. */
MUST_USE bool metadata_batch_put(struct sink *out,
                                 struct arena *arena,
                                 const struct step *step,
                                 bool control,
                                 int64_t base_offset,
                                 int32_t epoch);

/* Write a checkpoint file in pieces: it has its name when it is whole and durable, until then it
 * ends in .part. A zeroed part with dir and id set may be written to. */
struct metadata_part {
    const char *dir;
    struct metadata_checkpoint id;
    struct io_file *file;
    int64_t size_bytes;
    bool made; /* There is a file that ends in .part. */
};

/* The next bytes. 0 or -errno. */
MUST_USE int metadata_part_write(struct io *io, struct metadata_part *part, struct view bytes);

/* Sync, close, rename. 0 or -errno; the part is closed in any case. */
MUST_USE int metadata_part_finish(struct io *io, struct metadata_part *part);

/* Close and remove what there is of it; harmless after metadata_part_finish(). */
void metadata_part_drop(struct io *io, struct metadata_part *part);

/* Write a whole checkpoint file under its own name, for a format: neither its bytes nor its name
 * are durable at return. 0 with the open file, or -errno. */
MUST_USE int metadata_checkpoint_write(struct io *io,
                                       const char *dir,
                                       struct metadata_checkpoint id,
                                       struct view bytes,
                                       struct io_file **file);

/* Remove every checkpoint below `kept`, the bootstrap one too, and parts that a crash left; no part
 * is being written. 0 or -errno. */
MUST_USE int metadata_checkpoint_clean(struct io *io,
                                       const char *dir,
                                       struct metadata_checkpoint kept);

/* quorum-state: its text into `out` (of `size` bytes). 0: read, -ENOENT: there is none, -errno. */
MUST_USE int metadata_quorum_read(struct io *io, const char *dir, char *out, size_t size);
MUST_USE int metadata_quorum_write(struct io *io, const char *dir, struct view text);
