/* log_dump.h - what the parts of `dohle log dump` and `dohle log check` share: one run, one file,
 * one line of output.
 *
 * A line is a list of named values, printed as `name: value name: value` or, with --json, as one
 * JSON object a line. Names are those that Apache Kafka's own dump tool prints, where it has them.
 * Problems are lines too; they are counted, and a run with problems fails. */
#pragma once

#include "cli/cli.h"
#include "record/batch.h"

/* The whole run. */
struct dump {
    struct cli *cli;
    struct out *out; /* cli->out */
    struct compress_work work;
    bool json;
    bool batches_only; /* No records. */
    bool quiet;        /* Only problems: --verify and `log check`. */
    int64_t offset_min, offset_max;
    uint32_t value_limit; /* Bytes of a key or value that are shown as text; 0: all. */
    uint32_t partitions;  /* Of `log check`. */
    uint32_t files;
    uint32_t problems;
    bool first;        /* Of the line being printed: nothing is on it yet. */
    bool problem_line; /* It is a problem: printed in a quiet run too. */
};

/* One file, mapped. A file that shrinks meanwhile stops the program; logs only grow. */
struct dump_file {
    const char *path;
    const char *name; /* Behind the last slash. */
    struct view bytes;
    char topic[256]; /* From the folder's name; "" if that is no partition's. */
    int32_t partition;
    int64_t number; /* The offset in a segment file's name, else 0. */
    uint32_t problems;
};

/* Map a file. False: it could not be opened, and that was said. */
MUST_USE bool dump_file_open(struct dump *dump, const char *path, struct dump_file *out);
void dump_file_close(struct dump_file *file);

/* The file beside `file` with the same number and another suffix ("log"). False: it is not there.
 */
MUST_USE bool dump_file_sibling(struct dump *dump,
                                const struct dump_file *file,
                                const char *suffix,
                                struct dump_file *out);

/* ---- a line
 * -------------------------------------------------------------------------------------- */

/* Start one; `type` is its "type" in JSON; in text `mark` stands in front. In a quiet run nothing
 * of it is printed (except problems). */
void dump_line(struct dump *dump, const char *type, const char *mark);
void dump_number(struct dump *dump, const char *name, int64_t value);
void dump_text(struct dump *dump, const char *name, const char *value);
void dump_bool(struct dump *dump, const char *name, bool value);
/* In text a quoted literal, cut at value_limit; in JSON a string, or NAMEBase64 if it is no UTF-8.
 */
void dump_bytes(struct dump *dump, const char *name, struct view value);
/* The name alone: what follows is printed by the caller. */
void dump_name(struct dump *dump, const char *name);
void dump_end(struct dump *dump);

/* Count a problem and print it, with the place in the file (-1: none). */
void dump_problem(struct dump *dump, struct dump_file *file, int64_t at, const char *format, ...)
    PRINTF(4, 5);

/* Hand on what has been printed so far, when it is much. False: it cannot be written. */
MUST_USE bool dump_flush(struct dump *dump);

/* ---- the kinds of files
 * -------------------------------------------------------------------------- */

/* Is this the name of a file of one of the kinds below? */
bool dump_is_known(const char *name);

/* "20 partitions, 154 files, 0 problems" */
void dump_summary(struct dump *dump);

/* Print, and check, one file by its name, which is known. */
void dump_one(struct dump *dump, struct dump_file *file);

void dump_segment(struct dump *dump, struct dump_file *file);      /* .log, .checkpoint */
void dump_offset_index(struct dump *dump, struct dump_file *file); /* .index */
void dump_time_index(struct dump *dump, struct dump_file *file);   /* .timeindex */
void dump_txn_index(struct dump *dump, struct dump_file *file);    /* .txnindex */
void dump_snapshot(struct dump *dump, struct dump_file *file);     /* .snapshot */
void dump_offsets(struct dump *dump, struct dump_file *file);      /* *-offset-checkpoint */
void dump_epochs(struct dump *dump, struct dump_file *file);       /* leader-epoch-checkpoint */
void dump_properties(struct dump *dump, struct dump_file *file); /* meta.properties and the like */

/* The key and value of a record, decoded if the topic is one of Kafka's own. */
void dump_record_data(struct dump *dump,
                      const struct dump_file *file,
                      const struct batch_header *header,
                      const struct record *record);
