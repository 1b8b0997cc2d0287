/* schemac_emit.c - the generated files: a header per message, tables, the index, error codes. */
#include "schemac.h"

#include "output.h"

#include <stdlib.h>
#include <string.h>

static const char *const c_types[] = {
    "bool",   "int8_t",      "int16_t",     "uint16_t",    "int32_t",     "uint32_t", "int64_t",
    "double", "struct uuid", "struct view", "struct view", "struct view", NULL};

static const char *const type_marks[] = {"WIRE_BOOL",  "WIRE_INT8",   "WIRE_INT16", "WIRE_UINT16",
                                         "WIRE_INT32", "WIRE_UINT32", "WIRE_INT64", "WIRE_FLOAT64",
                                         "WIRE_UUID",  "WIRE_STRING", "WIRE_BYTES", "WIRE_RECORDS",
                                         "WIRE_STRUCT"};

static bool is_flexible(const struct message *m)
{
    return m->flexible.min <= m->flexible.max;
}

static void emit_member(const struct field *f, FILE *out)
{
    char *element = f->type == TYPE_STRUCT ? keep_format("struct %s", f->shape->c_name)
                                           : keep_format("%s", c_types[f->type]);
    if (f->array)
        fprintf(out, "    struct {\n        %s *items;\n        int32_t count;\n    } %s;", element,
                f->snake);
    else
        fprintf(out, "    %s %s%s;", element, field_is_pointer(f) ? "*" : "", f->snake);
    fprintf(out, "%s%s%s\n", f->about[0] != '\0' ? " /* " : "", f->about,
            f->about[0] != '\0' ? " */" : "");
}

static void emit_struct(const struct message *m, const struct shape *shape, bool *done, FILE *out)
{
    if (done[shape->index]) return;
    done[shape->index] = true;
    for (int i = 0; i < shape->field_count; i++)
        if (shape->fields[i].shape != NULL) emit_struct(m, shape->fields[i].shape, done, out);
    fprintf(out, "struct %s {\n", shape->c_name);
    for (int i = 0; i < shape->field_count; i++)
        emit_member(&shape->fields[i], out);
    if (is_flexible(m))
        fprintf(out, "    struct view tags; /* Unknown tagged fields, as they came. */\n");
    if (shape->field_count == 0 && !is_flexible(m))
        fprintf(out, "    uint8_t nothing; /* The message has no fields. */\n");
    fprintf(out, "};\n\n");
}

void emit_header(const struct message *m, const char *dir)
{
    struct output output = output_open("%s/%s.h", dir, m->snake);
    FILE *out = output.file;
    bool *done = keep((size_t)m->shape_count);
    fprintf(out, "/* %s: made by schemac from schema/messages/%s.json. */\n#pragma once\n\n",
            m->name, m->name);
    fprintf(out, "#include \"wire/wire.h\"\n\n");
    for (int i = 0; i < m->shape_count; i++)
        emit_struct(m, m->shapes[i], done, out);
    fprintf(out, "extern const struct wire_message wire_%s;\n", m->snake);
    for (int i = 0; i < m->shape_count; i++)
        fprintf(out, "extern const struct wire_struct wire_%s_shape;\n", m->shapes[i]->c_name);
    output_close(&output);
}

/* ---- defaults -------------------------------------------------------------------------------- */

static const char *number_of(const struct field *f)
{
    const char *text = f->default_text;
    if (text == NULL || text[0] == '\0') return NULL;
    if (f->type == TYPE_BOOL) return strcmp(text, "true") == 0 ? "true" : NULL;
    if (f->type == TYPE_FLOAT64) return strtod(text, NULL) != 0 ? text : NULL;
    long long value = strtoll(text, NULL, 0);
    if (value == 0) return NULL;
    if (f->type == TYPE_INT64 && value == (-9223372036854775807LL - 1)) return "INT64_MIN";
    return keep_format(f->type == TYPE_INT64 ? "%lldLL" : "%lld", value);
}

static bool emit_default(const struct field *f, FILE *out);

/* The initialiser of a struct; false if it is all zero (nothing was written). */
static bool emit_shape_default(const struct shape *shape, FILE *out)
{
    bool any = false;
    fprintf(out, "{");
    for (int i = 0; i < shape->field_count; i++)
        any = emit_default(&shape->fields[i], out) || any;
    fprintf(out, "}");
    return any;
}

static bool emit_struct_default(const struct field *f, FILE *out)
{
    char *bytes = NULL;
    size_t size = 0;
    FILE *inner = open_memstream(&bytes, &size);
    bool any = emit_shape_default(f->shape, inner);
    fclose(inner);
    const char *text = keep_format("%s", bytes);
    free(bytes);
    const char *c_name = f->shape->c_name;
    if (!field_is_pointer(f)) {
        if (any) fprintf(out, ".%s = %s, ", f->snake, text);
        return any;
    }
    if (field_default_is_null(f)) return false;
    fprintf(out, ".%s = (struct %s *)&(const struct %s)%s, ", f->snake, c_name, c_name, text);
    return true;
}

static bool emit_default(const struct field *f, FILE *out)
{
    bool null = field_default_is_null(f);
    if (f->array) {
        if (null) fprintf(out, ".%s = {.count = -1}, ", f->snake);
        return null;
    }
    if (f->type == TYPE_STRUCT) {
        return emit_struct_default(f, out);
    }
    if (f->type == TYPE_STRING || f->type == TYPE_BYTES || f->type == TYPE_RECORDS) {
        if (null || (f->type == TYPE_RECORDS && f->nullable.min <= f->nullable.max)) {
            fprintf(out, ".%s = {.null = true}, ", f->snake);
            return true;
        }
        if (f->default_is_string && f->default_text[0] != '\0') {
            fprintf(out, ".%s = {(const uint8_t *)\"%s\", %zu, false, false}, ", f->snake,
                    f->default_text, strlen(f->default_text));
            return true;
        }
        return false;
    }
    if (f->type == TYPE_UUID) return false;
    const char *number = number_of(f);
    if (number != NULL) fprintf(out, ".%s = %s, ", f->snake, number);
    return number != NULL;
}

/* ---- tables ---------------------------------------------------------------------------------- */

void emit_string(FILE *out, const char *text)
{
    if (text == NULL) {
        fprintf(out, "NULL");
        return;
    }
    fputc('"', out);
    for (; *text != '\0'; text++) {
        if (*text == '"' || *text == '\\') fputc('\\', out);
        fputc(*text, out);
    }
    fputc('"', out);
}

static void emit_versions(FILE *out, struct versions v)
{
    fprintf(out, "{%d, %d}", v.min, v.max);
}

static void emit_flags(FILE *out, const struct field *f)
{
    fprintf(out, "0%s%s%s%s%s%s%s", f->array ? " | WIRE_FIELD_ARRAY" : "",
            f->ignorable ? " | WIRE_FIELD_IGNORABLE" : "",
            f->map_key ? " | WIRE_FIELD_MAP_KEY" : "",
            f->zero_copy ? " | WIRE_FIELD_ZERO_COPY" : "",
            f->never_flexible ? " | WIRE_FIELD_NEVER_FLEXIBLE" : "",
            field_is_pointer(f) ? " | WIRE_FIELD_POINTER" : "",
            f->default_is_string ? " | WIRE_FIELD_DEFAULT_STRING" : "");
}

static void print_field(FILE *out, const struct shape *shape, const struct field *f)
{
    fprintf(out, "    {%d, %d, %d, %d, %d, %d, ", text_place(f->name), text_place(f->about),
            text_place(f->type_text), text_place(f->default_text), text_place(f->entity),
            f->shape != NULL ? f->shape->number : 0);
    emit_versions(out, f->versions);
    fprintf(out, ", ");
    emit_versions(out, f->nullable);
    fprintf(out, ", ");
    emit_versions(out, f->tagged);
    fprintf(out, ", %d, offsetof(struct %s, %s), %s, ", f->tag, shape->c_name, f->snake,
            type_marks[f->type]);
    emit_flags(out, f);
    fprintf(out, "},\n");
}

static int add_fields(const struct shape *shape)
{
    char *bytes = NULL;
    size_t size = 0;
    FILE *rows = open_memstream(&bytes, &size);
    for (int i = 0; i < shape->field_count; i++)
        print_field(rows, shape, &shape->fields[i]);
    fclose(rows);
    int first = table_add(TABLE_FIELDS, bytes, shape->field_count);
    free(bytes);
    return first;
}

static void emit_shape(const struct message *m, struct shape *shape, FILE *out)
{
    char *bytes = NULL;
    size_t size = 0;
    FILE *text = open_memstream(&bytes, &size);
    bool any = emit_shape_default(shape, text);
    fclose(text);
    for (int i = 0; i < shape->field_count; i++) /* Tagged fields are compared with them. */
        any = any || shape->fields[i].tag >= 0;
    int defaults = 0;
    shape->has_defaults = any;
    if (any) {
        const char *name = keep_format("wire_%s_defaults", shape->c_name);
        fprintf(out, "const struct %s %s = %s;\n", shape->c_name, name, bytes);
        (void)table_add(TABLE_EXTERN,
                        keep_format("extern const struct %s %s;\n", shape->c_name, name), 0);
        defaults = table_add(TABLE_DEFAULTS, keep_format("    &%s,\n", name), 1);
    }
    free(bytes);

    fprintf(out, "_Static_assert(sizeof(struct %s) == %d, \"layout\");\n", shape->c_name,
            shape->c_size);
    fprintf(out, "const struct wire_struct wire_%s_shape = {", shape->c_name);
    fprintf(out, "%d, sizeof(struct %s), %d, %d, %d, ", text_place(shape->name), shape->c_name,
            add_fields(shape), defaults, shape->field_count);
    if (is_flexible(m))
        fprintf(out, "offsetof(struct %s, tags), ", shape->c_name);
    else
        fprintf(out, "UINT16_MAX, ");
    emit_versions(out, shape->versions);
    fprintf(out, ", %s};\n", shape->common ? "true" : "false");
}

static const char *kind_mark(const struct message *m)
{
    static const char *const kinds[][2] = {
        {"request",           "WIRE_REQUEST"          },
        {"response",          "WIRE_RESPONSE"         },
        {"header",            "WIRE_HEADER"           },
        {"data",              "WIRE_DATA"             },
        {"metadata",          "WIRE_METADATA"         },
        {"coordinator-key",   "WIRE_COORDINATOR_KEY"  },
        {"coordinator-value", "WIRE_COORDINATOR_VALUE"},
    };
    for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
        if (strcmp(kinds[i][0], m->kind) == 0) return kinds[i][1];
    fail(m->file, "type", "no kind \"%s\"", m->kind);
}

static void emit_message(const struct message *m, FILE *out)
{
    for (int i = 0; i < m->shape_count; i++)
        emit_shape(m, m->shapes[i], out);
    int forms = emit_forms(m, out);

    bool any = m->valid.min <= m->valid.max;
    fprintf(out, "const struct wire_message wire_%s = {\"%s\", ", m->snake, m->name);
    emit_string(out, m->note_count > 0 ? m->notes[0] : "");
    fprintf(out, ", &wire_%s_shape, sizeof(struct %s), %d, ", m->shapes[0]->c_name, m->snake,
            forms);
    fprintf(out, "%d, %d, %d, %d, %s};\n\n", m->api_key, any ? m->valid.min : 0,
            any ? m->valid.max : -1, is_flexible(m) ? m->flexible.min : 32767, kind_mark(m));
}

/* A row of wire_index_facts. */
static void emit_facts(const struct message *m, FILE *out)
{
    int notes = 0;
    for (int i = 0; i < m->note_count; i++) {
        int at = table_add(TABLE_NOTES, keep_format("    %d,\n", text_place(m->notes[i])), 1);
        if (i == 0) notes = at;
    }
    fprintf(out, "    {%d, %d, %d, %d, %d, ", text_place(m->kind), m->shapes[0]->number, notes,
            m->shape_count, m->note_count);
    emit_versions(out, m->valid);
    fprintf(out, ", ");
    emit_versions(out, m->served);
    fprintf(out, ", ");
    emit_versions(out, m->flexible);
    fprintf(out, ", ");
    emit_versions(out, m->deprecated);
    fprintf(out, ", 0%s%s, %s, %s},\n", m->listens_broker ? " | WIRE_BROKER" : "",
            m->listens_controller ? " | WIRE_CONTROLLER" : "", m->listens_zk ? "true" : "false",
            m->latest_unstable ? "true" : "false");
}

const char span_macro[] =
    "/* Bytes from one member of a struct to the end of another. */\n"
    "#define SPAN(s, first, last) \\\n    (offsetof(struct s, last) + sizeof(((struct s *)0)->last) - offsetof(struct s, first))\n";

void emit_tables(struct message **messages, int count, const char *path)
{
    struct output output = output_open("%s", path);
    FILE *out = output.file;
    fprintf(out, "/* Made by schemac. */\n#include \"wire/read.h\"\n#include \"wire/write.h\"\n\n"
                 "/* A default may be a struct that nobody writes to. */\n"
                 "#pragma GCC diagnostic ignored \"-Wcast-qual\"\n\n");
    fprintf(out, "%s\n", span_macro);
    for (int i = 0; i < count; i++)
        fprintf(out, "#include \"gen/%s.h\"\n", messages[i]->snake);
    for (int i = 0; i < count; i++)
        emit_message(messages[i], out);
    output_close(&output);
}

static const struct message *pair_of(struct message **messages,
                                     int count,
                                     int key,
                                     const char *kind)
{
    for (int i = 0; i < count; i++)
        if (messages[i]->api_key == key && strcmp(messages[i]->kind, kind) == 0) return messages[i];
    return NULL;
}

static int throttle_at(const struct message *response)
{
    const struct shape *body = response->shapes[0];
    for (int i = 0; i < body->field_count; i++)
        if (strcmp(body->fields[i].name, "ThrottleTimeMs") == 0) return body->fields[i].c_offset;
    return UINT16_MAX;
}

static void emit_api(FILE *out, const struct message *request, const struct message *response)
{
    bool any = request->served.min <= request->served.max;
    int stable = any ? request->served.max - (request->latest_unstable ? 1 : 0) : -1;
    fprintf(out, "    {%d, %d, %d, %d, 0%s%s, %d, \"%.*s\", &wire_%s, &wire_%s},\n",
            request->api_key, any ? request->served.min : 0, any ? request->served.max : -1, stable,
            request->listens_broker ? " | WIRE_BROKER" : "",
            request->listens_controller ? " | WIRE_CONTROLLER" : "", throttle_at(response),
            (int)strlen(request->name) - (int)strlen("Request"), request->name, request->snake,
            response->snake);
}

void emit_index(struct message **messages, int count, const char *path)
{
    struct output output = output_open("%s", path);
    FILE *out = output.file;
    fprintf(out, "/* Made by schemac: all messages, all APIs. */\n#include \"wire/index.h\"\n\n");
    for (int i = 0; i < count; i++)
        fprintf(out, "extern const struct wire_message wire_%s;\n", messages[i]->snake);
    fprintf(out, "const struct wire_message *const wire_index_messages[] = {\n");
    for (int i = 0; i < count; i++)
        fprintf(out, "    &wire_%s,\n", messages[i]->snake);
    fprintf(out, "};\nconst uint32_t wire_index_message_count = %d;\n", count);
    fprintf(out, "const struct wire_facts wire_index_facts[] = {\n");
    for (int i = 0; i < count; i++)
        emit_facts(messages[i], out);
    fprintf(out, "};\n\nconst struct wire_api wire_index_apis[] = {\n");
    int key = 0;
    for (;; key++) {
        const struct message *request = pair_of(messages, count, key, "request");
        const struct message *response = pair_of(messages, count, key, "response");
        if (request == NULL && response == NULL) break;
        if (request == NULL || response == NULL)
            fail("schema", NULL, "API %d needs a request and a response", key);
        emit_api(out, request, response);
    }
    fprintf(out, "};\nconst uint32_t wire_index_api_count = %d;\n", key);
    for (int i = 0; i < count; i++)
        if (strcmp(messages[i]->kind, "request") == 0 && messages[i]->api_key >= key)
            fail(messages[i]->file, "apiKey", "leaves a gap after %d", key - 1);
    output_close(&output);
}

/* ---- error codes ----------------------------------------------------------------------------- */

static const char *need_text(struct json_object *row, const char *key)
{
    struct json_object *value;
    if (!json_object_object_get_ex(row, key, &value))
        fail("errors.json", key, "is missing in a row");
    return json_object_get_string(value);
}

void emit_errors(const char *schema_dir, const char *dir)
{
    char *from = keep_format("%s/errors.json", schema_dir);
    struct json_object *list = json_object_from_file(from);
    if (list == NULL || !json_object_is_type(list, json_type_array))
        fail(from, NULL, "is not a JSON array");
    int count = (int)json_object_array_length(list);

    struct output output = output_open("%s/errors.h", dir);
    FILE *out = output.file;
    fprintf(
        out,
        "/* Kafka's error codes: made by schemac from schema/errors.json. */\n#pragma once\n\n");
    fprintf(out, "#include \"base/base.h\"\n\nenum kafka_error {\n");
    for (int i = 0; i < count; i++) {
        struct json_object *row = json_object_array_get_idx(list, (size_t)i);
        fprintf(out, "    KAFKA_%s = %s,\n", need_text(row, "name"), need_text(row, "code"));
    }
    fprintf(
        out,
        "};\n\nstruct kafka_error_row {\n    const char *name;\n    const char *message;\n    int16_t code;\n"
        "    bool retriable;\n};\n\n"
        "/* In the order of their codes, from -1. */\n"
        "extern const struct kafka_error_row kafka_errors[];\nextern const uint32_t kafka_error_count;\n\n"
        "/* \"NOT_CONTROLLER\"; \"an unknown error\" for a code that is not Kafka's. O(1). */\n"
        "const char *kafka_error_name(int16_t code);\n");
    output_close(&output);

    output = output_open("%s/errors.c", dir);
    out = output.file;
    fprintf(
        out,
        "/* Made by schemac. */\n#include \"gen/errors.h\"\n\nconst struct kafka_error_row kafka_errors[] = {\n");
    for (int i = 0; i < count; i++) {
        struct json_object *row = json_object_array_get_idx(list, (size_t)i);
        if (strtol(need_text(row, "code"), NULL, 10) != i - 1)
            fail(from, need_text(row, "name"), "codes must follow one another from -1");
        fprintf(out, "    {\"%s\", ", need_text(row, "name"));
        emit_string(out, need_text(row, "message"));
        fprintf(out, ", %s, %s},\n", need_text(row, "code"), need_text(row, "retriable"));
    }
    fprintf(out, "};\nconst uint32_t kafka_error_count = %d;\n", count);
    fprintf(
        out,
        "\nconst char *kafka_error_name(int16_t code)\n{\n"
        "    return code >= -1 && code < %d ? kafka_errors[code + 1].name : \"an unknown error\";\n}\n",
        count - 1);
    output_close(&output);
}
