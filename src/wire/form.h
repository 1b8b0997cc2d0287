/* form.h - what schemac generates: the schema's fields, and for each version a flat list of
 * operations.
 *
 * A `struct wire_field` is a field as the schema has it, over all versions; tools print from it. A
 * `struct wire_form` is one version of one struct, resolved: only the fields of that version, in
 * wire order, so that reading one never asks about versions. All are const. */
#pragma once

#include "wire/wire.h"

/* Types of a field or of an array's elements. The fixed-width ones come first. */
enum wire_type {
    WIRE_BOOL,
    WIRE_INT8,
    WIRE_INT16,
    WIRE_UINT16,
    WIRE_INT32,
    WIRE_UINT32,
    WIRE_INT64,
    WIRE_FLOAT64,
    WIRE_UUID,
    WIRE_STRING,
    WIRE_BYTES,
    WIRE_RECORDS,
    WIRE_STRUCT,
};

#define WIRE_VERSION_OPEN 32767 /* The upper end of "3+". */

struct wire_versions {
    int16_t min; /* min > max: none. */
    int16_t max;
};

enum wire_field_flags {
    WIRE_FIELD_ARRAY = 1,
    WIRE_FIELD_IGNORABLE = 2,
    WIRE_FIELD_MAP_KEY = 4,
    WIRE_FIELD_ZERO_COPY = 8,
    WIRE_FIELD_NEVER_FLEXIBLE = 16,
    WIRE_FIELD_POINTER = 32,        /* A struct that may be null: the slot is a pointer. */
    WIRE_FIELD_DEFAULT_STRING = 64, /* The schema writes the default in quotes. */
};

struct wire_field {
    const char *name; /* "GroupId" */
    const char *about;
    const char *type_text;           /* "[]int32", "[]TopicProduceData" */
    const char *default_text;        /* As the schema has it, or NULL. */
    const char *entity;              /* entityType, or NULL. */
    const struct wire_struct *shape; /* Of a struct or of the array's structs, or NULL. */
    struct wire_versions versions, nullable, tagged;
    int16_t tag;     /* -1: never tagged. */
    uint16_t offset; /* In the C struct. */
    uint8_t type;    /* enum wire_type */
    uint8_t flags;   /* Set of enum wire_field_flags */
};

struct wire_struct {
    const char *name; /* "TopicProduceData" */
    const struct wire_field *fields;
    const void *defaults; /* An instance with every field at its default; NULL: all bytes zero. */
    uint32_t size_bytes;
    uint16_t field_count;
    uint16_t tags_offset;          /* Of `tags`; UINT16_MAX: the message is never flexible. */
    struct wire_versions versions; /* A nested struct's own range, from its field. */
    bool common;                   /* Defined under commonStructs. */
};

enum wire_op_code {
    WIRE_OP_FIXED_RUN, /* `count` neighbouring fixed-width fields, `size` bytes in all:
                          more.fixed. */
    WIRE_OP_STRING,
    WIRE_OP_BYTES,
    WIRE_OP_RECORDS,
    WIRE_OP_ARRAY_FIXED,    /* Elements of fixed width, `size` bytes each. */
    WIRE_OP_ARRAY_STRING,   /* Elements are strings (or bytes), of at least `size` bytes. */
    WIRE_OP_ARRAY_STRUCT,   /* more.form: of the elements. */
    WIRE_OP_STRUCT,         /* Embedded. */
    WIRE_OP_STRUCT_OR_NULL, /* Behind a byte: negative for null. COMPACT (tagged): a varint, 0. */
    WIRE_OP_TAGS,
    WIRE_OP_ABSENT, /* `count` neighbouring fields of `size` bytes in all, pads included, take their
                       default: not in this version, or tagged. `tags` may be behind them. */
};

enum wire_op_flags { WIRE_OP_COMPACT = 1, WIRE_OP_NULLABLE = 2 };

/* One fixed-width field of a run. */
struct wire_fixed {
    uint16_t offset; /* In the C struct. */
    uint8_t type;    /* enum wire_type */
    uint8_t field;   /* Index in the shape. */
};

/* Straight code for fixed-width fields that follow one another on the wire, by their layout. */
struct wire_run {
    void (*read)(const uint8_t *at, uint8_t *out); /* `out`: the op's offset in the struct. */
    void (*write)(uint8_t *at, const uint8_t *in);
};

extern const struct wire_run wire_runs[]; /* In gen/runs.c. */

struct wire_op {
    uint8_t code;    /* enum wire_op_code */
    uint8_t flags;   /* Set of enum wire_op_flags */
    uint8_t type;    /* Of the value or the elements. */
    uint8_t field;   /* Index in the shape; the first one of a run. */
    uint16_t offset; /* In the C struct. */
    uint16_t size;
    uint16_t count;
    uint16_t rest; /* Fewest bytes that the operations behind this one in its form take. */
    uint16_t run;  /* Of a run: its index in wire_runs. */
    union {
        const struct wire_fixed *fixed;
        const struct wire_form *form;
    } more;
};

/* A known tagged field: its value is read by `op` once the tag's number and size are. */
struct wire_tagged {
    uint16_t tag;
    uint16_t size_min; /* Fewest bytes of the value. */
    struct wire_op op;
};

struct wire_decoder; /* wire/read.h */
struct wire_encoder; /* wire/write.h */

/* The operations of a form unrolled into code. */
struct wire_code {
    const uint8_t *(*read)(struct wire_decoder *d, const uint8_t *at, uint8_t *out);
    size_t (*extra)(const uint8_t *in, struct wire_external *x);
    uint8_t *(*write)(struct wire_encoder *e, uint8_t *at, const uint8_t *in);
};

struct wire_form {
    const struct wire_struct *shape;
    const struct wire_op *ops;        /* First the absent ones, then in wire order. */
    const struct wire_tagged *tagged; /* In the order of their tags. */
    const struct wire_code *code;     /* For the busiest messages; NULL: only the list. */
    uint16_t op_count;
    uint16_t absent_count; /* Operations of WIRE_OP_ABSENT, the first ones of `ops`. */
    uint16_t tagged_count;
    uint16_t size_min; /* The fewest bytes that a value of this form can take. */
    bool flexible;
};

/* Bytes of a fixed-width type on the wire; 0 for the others. Its width in C is the same. */
static inline uint32_t wire_type_size(uint8_t type)
{
    static const uint8_t sizes[] = {1, 1, 2, 2, 4, 4, 8, 8, 16, 0, 0, 0, 0};
    return sizes[type];
}

static inline bool wire_versions_have(struct wire_versions v, int16_t version)
{
    return version >= v.min && version <= v.max;
}

/* The known tagged field of this form, or NULL. */
static inline const struct wire_tagged *wire_form_tag(const struct wire_form *form, uint32_t tag)
{
    for (uint32_t i = 0; i < form->tagged_count; i++)
        if (form->tagged[i].tag == tag) return &form->tagged[i];
    return NULL;
}

/* Is this the tag of a field that only other versions have? Kafka refuses such a tag. */
static inline bool wire_form_tag_elsewhere(const struct wire_form *form, uint32_t tag)
{
    for (uint32_t i = 0; i < form->shape->field_count; i++)
        if (form->shape->fields[i].tag >= 0 && (uint32_t)form->shape->fields[i].tag == tag)
            return wire_form_tag(form, tag) == NULL;
    return false;
}

/* The schema's facts about a message that the engine does not need, for the tools. */
struct wire_facts {
    const struct wire_message *message;
    const struct wire_struct *const *shapes; /* shapes[0] is the body, then in the file's order. */
    const char *const *notes;                /* The comment lines above the fields. */
    uint16_t shape_count;
    uint16_t note_count;
    struct wire_versions valid, served, flexible, deprecated;
    const char *type_text; /* "request", "metadata", ... */
    uint8_t listeners;     /* Set of enum wire_listener. */
    bool listens_zk;       /* "zkBroker" too, in 3.9. */
    bool latest_unstable;
};

/* The facts of a message. O(log n). */
const struct wire_facts *wire_facts(const struct wire_message *message);

/* Does this field of the struct `in` equal its default? Then it is not written as a tagged field.
 * An array is judged by its count. */
bool wire_field_is_default(const struct wire_field *field,
                           const struct wire_struct *shape,
                           const void *in);
