/* schemac.h - the schema compiler: reads schema/, writes C structs and constant tables.
 *
 * A host program of the build; it keeps all memory until it ends. A wrong schema ends it with the
 * file and the field at fault. */
#pragma once

#include <json-c/json.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#define VERSION_OPEN 32767 /* The upper end of "3+". */
#define TAG_MAX      63

struct versions {
    int min; /* min > max: none. */
    int max;
};

enum type {
    TYPE_BOOL,
    TYPE_INT8,
    TYPE_INT16,
    TYPE_UINT16,
    TYPE_INT32,
    TYPE_UINT32,
    TYPE_INT64,
    TYPE_FLOAT64,
    TYPE_UUID,
    TYPE_STRING,
    TYPE_BYTES,
    TYPE_RECORDS,
    TYPE_STRUCT,
};

struct shape;

struct field {
    const char *name;  /* "GroupId" */
    const char *snake; /* "group_id", a C identifier */
    const char *about;
    const char *type_text;    /* "[]int32" */
    const char *default_text; /* As the schema has it; NULL: none given. */
    const char *entity;
    enum type type;
    bool array;
    bool ignorable;
    bool map_key;
    bool zero_copy;
    bool never_flexible; /* Its own "flexibleVersions": "none". */
    bool default_is_string;
    struct versions versions, nullable, tagged;
    int tag;
    int c_offset;        /* In its struct. */
    struct shape *shape; /* Of the struct or the elements. */
};

/* A struct of a message: its own body, a nested struct, or a common one. */
struct shape {
    const char *name;   /* "TopicProduceData" */
    const char *c_name; /* "produce_request_topic_produce_data" */
    bool common;
    struct versions versions;
    struct field *fields;
    int field_count;
    int index;         /* In its message, for names of tables. */
    int number;        /* In wire_shapes. */
    bool has_defaults; /* Not all of them are zero: wire_X_defaults is written. */
    int c_size;        /* Of the struct in C; 0: not laid out yet. */
    int c_align;
};

struct message {
    const char *file;
    const char *name;
    const char *snake;
    const char *kind;
    const char **notes; /* The comment lines above the fields. */
    int note_count;
    int api_key; /* -1: none */
    bool listens_broker, listens_controller, listens_zk;
    bool latest_unstable;
    struct versions valid, served, flexible, deprecated;
    bool has_deprecated;
    struct shape **shapes; /* shapes[0] is the body. */
    int shape_count;
};

/* Say what is wrong with which file and field, and end. */
__attribute__((noreturn, format(printf, 3, 4))) void fail(const char *file,
                                                          const char *field,
                                                          const char *format,
                                                          ...);

/* Memory that lives until the program ends. */
void *keep(size_t size);
char *keep_format(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* "GroupInstanceId" -> "group_instance_id"; "ISR" -> "isr". */
char *snake_case(const char *name);

/* Read every file of DIR/messages, in the order of their names. */
struct message **schema_read(const char *dir, int *count);

static inline bool versions_have(struct versions v, int version)
{
    return version >= v.min && version <= v.max;
}

/* Is the field on the wire in this version at all (plain or tagged)? */
static inline bool field_in(const struct field *f, int version)
{
    return versions_have(f->versions, version);
}

/* A struct that may be null is a pointer in C. */
static inline bool field_is_pointer(const struct field *f)
{
    return f->type == TYPE_STRUCT && !f->array && f->nullable.min <= f->nullable.max;
}

/* "default": "null". A bare null is no default, as in Kafka's generator. */
static inline bool field_default_is_null(const struct field *f)
{
    return f->default_text != NULL && f->default_is_string &&
           __builtin_strcmp(f->default_text, "null") == 0;
}

extern const int wire_sizes[]; /* By type; 0: of variable length. */

/* End with an error if the message says what it may not. */
void check_message(const struct message *m);

/* Compute the layout of a message's structs in C. */
void layout_message(struct message *m);

/* The number of the function that moves these fields of a struct; a new one if need be. */
int run_number(const struct shape *shape, const int *fields, int count);

/* Write the moves of a run, between the bytes `at` and the struct at `memory`; `verb` is "read" or
 * "write". */
void run_moves(FILE *out, int number, const char *verb, const char *memory);

/* Write the functions of all runs that were asked for. */
void emit_runs(const char *dir);

/* Write DIR/NAME.h for a message. */
void emit_header(const struct message *m, const char *dir);

/* Write one file of tables for some messages, and the index of all. */
void emit_tables(struct message **messages, int count, const char *path);
void emit_index(struct message **messages, int count, const char *path);

/* Add the forms of every version, and write their code to `out`; returns the number of the first in
 * wire_form_numbers. */
int emit_forms(const struct message *m, FILE *out);

/* The tables that all messages share, in DIR/tables.c. */
enum table {
    TABLE_FIELDS,
    TABLE_DEFAULTS,
    TABLE_OPS,
    TABLE_FIXED,
    TABLE_TAGGED,
    TABLE_CODES,
    TABLE_FORMS,
    TABLE_VERSIONS,
    TABLE_SHAPES,
    TABLE_NOTES,
    TABLE_EXTERN, /* What the others name: declarations in place of rows. */
};

/* Add rows to a table, as C text; returns the number of the first of them. */
int table_add(enum table table, const char *rows, int count);

/* Where this text lies in wire_texts; 0: NULL. Texts that are the same are there once. */
int text_place(const char *text);

/* Write the tables, when all messages have been written. */
void emit_shared(struct message **messages, int count, const char *path);

/* C text that a table of operations needs before it. */
extern const char span_macro[];

/* A string literal, or NULL. */
void emit_string(FILE *out, const char *text);

/* Error codes: schema/errors.json -> DIR/errors.h and DIR/errors.c. */
void emit_errors(const char *schema_dir, const char *dir);
