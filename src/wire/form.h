/* form.h - what schemac generates: the schema's fields, and for each version a flat list of
 * operations.
 *
 * A `struct wire_field` is a field as the schema has it, over all versions; tools print from it. A
 * `struct wire_form` is one version of one struct, resolved: only the fields of that version, in
 * wire order, so that reading one never asks about versions. All are const.
 *
 * The tables refer to one another and to their texts by number where they can: a pointer would be
 * relocated when the program starts, and its page be private memory of each process that runs. */
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
    uint32_t name; /* "GroupId". This and the next four: wire_text() has it. */
    uint32_t about;
    uint32_t type_text;    /* "[]int32", "[]TopicProduceData" */
    uint32_t default_text; /* As the schema has it, or none. */
    uint32_t entity;       /* entityType, or none. */
    uint16_t shape;        /* wire_field_shape() has it. */
    struct wire_versions versions, nullable, tagged;
    int16_t tag;     /* -1: never tagged. */
    uint16_t offset; /* In the C struct. */
    uint8_t type;    /* enum wire_type */
    uint8_t flags;   /* Set of enum wire_field_flags */
};

struct wire_struct {
    uint32_t name; /* "TopicProduceData"; wire_text() has it. */
    uint32_t size_bytes;
    uint16_t fields;   /* The first in wire_fields. */
    uint16_t defaults; /* wire_default_of() has it. */
    uint16_t field_count;
    uint16_t tags_offset;          /* Of `tags`; UINT16_MAX: the message is never flexible. */
    struct wire_versions versions; /* A nested struct's own range, from its field. */
    bool common;                   /* Defined under commonStructs. */
};

enum wire_op_code {
    WIRE_OP_FIXED_RUN, /* `count` neighbouring fixed-width fields, `size` bytes in all:
                          wire_op_fixed(). */
    WIRE_OP_STRING,
    WIRE_OP_BYTES,
    WIRE_OP_RECORDS,
    WIRE_OP_ARRAY_FIXED,    /* Elements of fixed width, `size` bytes each. */
    WIRE_OP_ARRAY_STRING,   /* Elements are strings (or bytes), of at least `size` bytes. */
    WIRE_OP_ARRAY_STRUCT,   /* wire_op_form(): of the elements, `size` bytes each in C and at least
                               `count` on the wire. */
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
    /* Of a run: its first in wire_fixed_fields. Of structs: their form in wire_forms. */
    uint16_t more;
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
    uint16_t shape;
    uint16_t ops;    /* First the absent ones, then in wire order. */
    uint16_t tagged; /* In the order of their tags. */
    uint16_t code;   /* For the busiest messages. */
    uint16_t op_count;
    uint16_t size_min;    /* The fewest bytes that a value of this form can take. */
    uint8_t absent_count; /* Operations of WIRE_OP_ABSENT, the first ones of `ops`. */
    uint8_t tagged_count;
    bool flexible;
};

/* The tables in gen/tables.c. The first row of a table of pointers is NULL. */
extern const char wire_texts[];
extern const struct wire_field wire_fields[];
extern const struct wire_struct *const wire_shapes[];
extern const void *const wire_defaults_of[];
extern const struct wire_op wire_ops[];
extern const struct wire_fixed wire_fixed_fields[];
extern const struct wire_tagged wire_tagged_fields[];
extern const struct wire_code *const wire_codes[];
extern const struct wire_form wire_forms[];
extern const uint16_t wire_form_numbers[]; /* Of the versions of each message. */
extern const uint32_t wire_notes[];        /* Where each lies in wire_texts. */

/* One of the schema's texts, or NULL. */
static inline const char *wire_text(uint32_t at)
{
    return at == 0 ? NULL : &wire_texts[at];
}

/* The shape of a field's struct or of its array's structs, or NULL. */
static inline const struct wire_struct *wire_field_shape(const struct wire_field *field)
{
    return wire_shapes[field->shape];
}

/* A field of the struct, in the schema's order. */
static inline const struct wire_field *wire_struct_field(const struct wire_struct *shape,
                                                         uint32_t i)
{
    return &wire_fields[shape->fields + i];
}

/* An instance with every field at its default; NULL: all bytes zero. */
static inline const void *wire_default_of(const struct wire_struct *shape)
{
    return wire_defaults_of[shape->defaults];
}

/* What a form is of, its operations and its tagged fields. */
static inline const struct wire_struct *wire_form_shape(const struct wire_form *form)
{
    return wire_shapes[form->shape];
}

static inline const struct wire_op *wire_form_ops(const struct wire_form *form)
{
    return &wire_ops[form->ops];
}

static inline const struct wire_tagged *wire_form_tagged(const struct wire_form *form)
{
    return &wire_tagged_fields[form->tagged];
}

/* NULL: only the list of operations. */
static inline const struct wire_code *wire_form_code(const struct wire_form *form)
{
    return wire_codes[form->code];
}

/* The fields of a run, op->count of them. */
static inline const struct wire_fixed *wire_op_fixed(const struct wire_op *op)
{
    return &wire_fixed_fields[op->more];
}

/* The form of a struct, or of an array's structs. */
static inline const struct wire_form *wire_op_form(const struct wire_op *op)
{
    return &wire_forms[op->more];
}

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
        if (wire_form_tagged(form)[i].tag == tag) return &wire_form_tagged(form)[i];
    return NULL;
}

/* Is this the tag of a field that only other versions have? Kafka refuses such a tag. */
static inline bool wire_form_tag_elsewhere(const struct wire_form *form, uint32_t tag)
{
    const struct wire_struct *shape = wire_form_shape(form);
    for (uint32_t i = 0; i < shape->field_count; i++)
        if (wire_struct_field(shape, i)->tag >= 0 &&
            (uint32_t)wire_struct_field(shape, i)->tag == tag)
            return wire_form_tag(form, tag) == NULL;
    return false;
}

/* The schema's facts about a message that the engine does not need, for the tools. */
struct wire_facts {
    uint32_t type_text; /* "request", "metadata", ...; wire_text() has it. */
    uint16_t shapes;    /* The first in wire_shapes is the body, then in the file's order. */
    uint16_t notes;     /* The comment lines above the fields: wire_facts_note() has them. */
    uint16_t shape_count;
    uint16_t note_count;
    struct wire_versions valid, served, flexible, deprecated;
    uint8_t listeners; /* Set of enum wire_listener. */
    bool listens_zk;   /* "zkBroker" too, in 3.9. */
    bool latest_unstable;
};

static inline const char *wire_facts_note(const struct wire_facts *facts, uint32_t i)
{
    return wire_text(wire_notes[facts->notes + i]);
}

/* The facts of a message. O(log n). */
const struct wire_facts *wire_facts(const struct wire_message *message);

/* Does this field of the struct `in` equal its default? Then it is not written as a tagged field.
 * An array is judged by its count. */
bool wire_field_is_default(const struct wire_field *field,
                           const struct wire_struct *shape,
                           const void *in);
