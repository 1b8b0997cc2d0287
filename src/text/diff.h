/* diff.h - what differs between two versions of one message: fields, null, tags, encoding. */
#pragma once

#include "base/arena.h"
#include "text/out.h"
#include "wire/form.h"

enum diff_kind {
    DIFF_ADDED,
    DIFF_REMOVED,
    DIFF_NULLABLE,     /* May be null now, */
    DIFF_NOT_NULLABLE, /* or may not any more. */
    DIFF_TAGGED,       /* Is a tagged field now, */
    DIFF_NOT_TAGGED,   /* or is not any more. */
    DIFF_FLEXIBLE,     /* The whole message: compact lengths and tagged fields from here on, */
    DIFF_NOT_FLEXIBLE, /* or not any more. No field. */
};

struct diff_change {
    enum diff_kind kind;
    const char *path; /* "Topics[].Partitions[].LogStartOffset"; "" for the whole message. */
    const struct wire_field *field; /* NULL: the whole message. */
};

struct diff {
    struct diff_change *changes;
    uint32_t count, room;
    bool failed; /* The arena is exhausted. */
    struct arena *arena;
};

/* Compare two versions that the message has; a struct that came or went stands for its fields. */
void diff_message(struct diff *diff,
                  const struct wire_message *message,
                  struct wire_versions versions,
                  struct arena *arena);

/* One line: "+ Topics[].TopicId  uuid". */
void diff_print(struct out *out, const struct diff_change *change);

/* "is new", "is gone", "may be null": the kind in words. */
const char *diff_words(enum diff_kind kind);

/* '+', '-' or '~'. */
char diff_sign(enum diff_kind kind);
