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
    int index; /* In its message, for names of tables. */
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

/* Write DIR/NAME.h for a message. */
void emit_header(const struct message *m, const char *dir);

/* Write one file of tables for some messages, and the index of all. */
void emit_tables(struct message **messages, int count, const char *path);
void emit_index(struct message **messages, int count, const char *path);

/* The operations of every version, as C text. */
void emit_forms(const struct message *m, FILE *out);

/* Error codes: schema/errors.json -> DIR/errors.h and DIR/errors.c. */
void emit_errors(const char *schema_dir, const char *dir);

/* A file that is only replaced when it differs, so that make does not rebuild the rest. */
FILE *output_open(const char *path);
void output_close(FILE *out, const char *path);
