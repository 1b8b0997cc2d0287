/* json_read.c - JSON into the C struct of a message, by the schema's tables. See json.h. */
#include "text/json.h"
#include "text/nearest.h"

#include <json-c/json.h>

#include <errno.h>
#include <math.h>
#include <stdlib.h>

enum { NESTING_MAX = 40, TAG_ROOM = 10 };

struct json_reader {
    struct arena *arena;
    struct node_list memory; /* For texts in the arena. */
    struct json_fault *fault;
    int16_t version;
    const struct wire_message *message;
    bool failed;
};

static bool fail(struct json_reader *r, const char *path, const char *text)
{
    if (!r->failed) {
        *r->fault = (struct json_fault){.path = path, .text = text};
        if (r->arena->failed || r->memory.failed) r->fault->text = "no memory is left";
    }
    r->failed = true;
    return false;
}

static void *take(struct json_reader *r, size_t size_bytes, const char *path)
{
    void *block = arena_get(r->arena, size_bytes);
    if (block == NULL) (void)fail(r, path, "no memory is left");
    return block;
}

/* ---- plain values ---------------------------------------------------------------------------- */

static const struct {
    int64_t min, max;
    const char *text;
} ranges[] = {
    [WIRE_INT8] = {INT8_MIN,  INT8_MAX,   "is no number from -128 to 127"              },
    [WIRE_INT16] = {INT16_MIN, INT16_MAX,  "is no number from -32768 to 32767"          },
    [WIRE_UINT16] = {0,         UINT16_MAX, "is no number from 0 to 65535"               },
    [WIRE_INT32] = {INT32_MIN, INT32_MAX,  "is no number from -2147483648 to 2147483647"},
    [WIRE_UINT32] = {0,         UINT32_MAX, "is no number from 0 to 4294967295"          },
    [WIRE_INT64] = {INT64_MIN, INT64_MAX,  "is no number of 64 bits"                    },
};

static bool read_integer(struct json_reader *r,
                         json_object *json,
                         uint8_t type,
                         void *slot,
                         const char *path)
{
    if (!json_object_is_type(json, json_type_int)) return fail(r, path, ranges[type].text);
    int64_t value = json_object_get_int64(json);
    bool beyond = value == INT64_MAX && json_object_get_uint64(json) > INT64_MAX;
    if (beyond || value < ranges[type].min || value > ranges[type].max)
        return fail(r, path, ranges[type].text);
    /* Little-endian: the low bytes are the narrower value. */
    memcpy(slot, &value, wire_type_size(type));
    return true;
}

static bool read_real(struct json_reader *r, json_object *json, void *slot, const char *path)
{
    double value;
    if (json_object_is_type(json, json_type_double) || json_object_is_type(json, json_type_int)) {
        value = json_object_get_double(json);
    } else {
        const char *text =
            json_object_is_type(json, json_type_string) ? json_object_get_string(json) : "";
        if (strcmp(text, "NaN") == 0) {
            value = NAN;
        } else if (strcmp(text, "Infinity") == 0) {
            value = INFINITY;
        } else if (strcmp(text, "-Infinity") == 0) {
            value = -INFINITY;
        } else {
            return fail(r, path, "is no number");
        }
    }
    memcpy(slot, &value, sizeof(value));
    return true;
}

static int base64_digit(char c)
{
    if (c >= 'A' && c <= 'Z') return c - 'A';
    if (c >= 'a' && c <= 'z') return c - 'a' + 26;
    if (c >= '0' && c <= '9') return c - '0' + 52;
    if (c == '+' || c == '-') return 62;
    if (c == '/' || c == '_') return 63;
    return -1;
}

int64_t json_base64(const char *text, size_t size, uint8_t *out)
{
    uint32_t bits = 0, bit_count = 0;
    int64_t count = 0;

    while (size > 0 && text[size - 1] == '=')
        size--;
    if (size % 4 == 1) return -1;
    for (size_t i = 0; i < size; i++) {
        int digit = base64_digit(text[i]);
        if (digit < 0) return -1;
        bits = bits << 6 | (uint32_t)digit;
        bit_count += 6;
        if (bit_count < 8) continue;
        bit_count -= 8;
        out[count++] = (uint8_t)(bits >> bit_count);
    }
    return count;
}

static bool read_uuid(struct json_reader *r, json_object *json, void *slot, const char *path)
{
    uint8_t bytes[24];
    bool is_text = json_object_is_type(json, json_type_string);
    size_t size = is_text ? (size_t)json_object_get_string_len(json) : 0;

    if (size != 22 || json_base64(json_object_get_string(json), size, bytes) != 16)
        return fail(r, path, "is no UUID of 22 characters of base64");
    memcpy(slot, bytes, sizeof(struct uuid));
    return true;
}

static bool read_bytes(struct json_reader *r,
                       json_object *json,
                       uint8_t type,
                       void *slot,
                       const char *path)
{
    struct view *out = slot;

    if (json == NULL) {
        *out = VIEW_NULL;
        return true;
    }
    if (!json_object_is_type(json, json_type_string)) return fail(r, path, "is no string");
    const char *text = json_object_get_string(json);
    size_t size = (size_t)json_object_get_string_len(json);
    uint8_t *bytes = take(r, size + 4, path);
    if (bytes == NULL) return false;
    if (type == WIRE_STRING) {
        if (size > INT16_MAX) return fail(r, path, "is longer than 32767 bytes");
        memcpy(bytes, text, size);
        *out = view_of(bytes, (uint32_t)size);
        return true;
    }
    int64_t count = json_base64(text, size, bytes);
    if (count < 0) return fail(r, path, "is no base64");
    *out = view_of(bytes, (uint32_t)count);
    return true;
}

/* ---- structs and arrays ---------------------------------------------------------------------- */

static bool read_struct(struct json_reader *r,
                        json_object *json,
                        const struct wire_struct *shape,
                        void *out,
                        const char *path);

/* One value that is no array. */
static bool read_one(struct json_reader *r,
                     json_object *json,
                     const struct wire_field *field,
                     void *slot,
                     const char *path)
{
    switch ((enum wire_type)field->type) {
    case WIRE_BOOL:
        if (!json_object_is_type(json, json_type_boolean))
            return fail(r, path, "is neither true nor false");
        *(bool *)slot = json_object_get_boolean(json);
        return true;
    case WIRE_INT8:
    case WIRE_INT16:
    case WIRE_UINT16:
    case WIRE_INT32:
    case WIRE_UINT32:
    case WIRE_INT64: return read_integer(r, json, field->type, slot, path);
    case WIRE_FLOAT64: return read_real(r, json, slot, path);
    case WIRE_UUID: return read_uuid(r, json, slot, path);
    case WIRE_STRING:
    case WIRE_BYTES:
    case WIRE_RECORDS: return read_bytes(r, json, field->type, slot, path);
    case WIRE_STRUCT: return read_struct(r, json, wire_field_shape(field), slot, path);
    }
    return false;
}

static size_t element_size(const struct wire_field *field)
{
    if (field->type == WIRE_STRUCT) return wire_field_shape(field)->size_bytes;
    return field->type >= WIRE_STRING ? sizeof(struct view) : wire_type_size(field->type);
}

static bool read_array(struct json_reader *r,
                       json_object *json,
                       const struct wire_field *field,
                       struct wire_array *out,
                       const char *path)
{
    *out = (struct wire_array){.count = -1};
    if (json == NULL) return true;
    if (!json_object_is_type(json, json_type_array)) return fail(r, path, "is no array");
    size_t count = json_object_array_length(json);
    size_t size = element_size(field);
    if (count > INT32_MAX) return fail(r, path, "has too many elements");
    *out = (struct wire_array){.count = (int32_t)count};
    if (count == 0) return true;
    out->items = take(r, count * size, path);
    if (out->items == NULL) return false;
    for (size_t i = 0; i < count; i++) {
        json_object *element = json_object_array_get_idx(json, i);
        const char *place = node_format(&r->memory, "%s[%zu]", path, i);
        if (element == NULL) return fail(r, place, "may not be null");
        if (!read_one(r, element, field, (uint8_t *)out->items + i * size, place)) return false;
    }
    return true;
}

static bool read_field(struct json_reader *r,
                       json_object *json,
                       const struct wire_field *field,
                       uint8_t *out,
                       const char *path)
{
    void *slot = out + field->offset;
    bool here = wire_versions_have(field->versions, r->version);

    if (json == NULL && here && !wire_versions_have(field->nullable, r->version))
        return fail(r, path, node_format(&r->memory, "may not be null in version %d", r->version));
    if (field->flags & WIRE_FIELD_ARRAY) return read_array(r, json, field, slot, path);
    if (field->flags & WIRE_FIELD_POINTER) {
        *(void **)slot = NULL;
        if (json == NULL) return true;
        slot = *(void **)slot = take(r, wire_field_shape(field)->size_bytes, path);
        if (slot == NULL) return false;
    }
    bool is_text =
        field->type == WIRE_STRING || field->type == WIRE_BYTES || field->type == WIRE_RECORDS;
    if (json == NULL && !is_text) return fail(r, path, "may not be null");
    return read_one(r, json, field, slot, path);
}

/* ---- unknown tagged fields ------------------------------------------------------------------- */

static void put_uvarint(struct out *out, uint32_t value)
{
    for (; value >= 0x80; value >>= 7)
        out_char(out, (char)(value | 0x80));
    out_char(out, (char)value);
}

static bool is_known_tag(const struct json_reader *r, const struct wire_struct *shape, int64_t tag)
{
    for (uint16_t i = 0; i < shape->field_count; i++)
        if (wire_struct_field(shape, i)->tag == tag &&
            wire_versions_have(wire_struct_field(shape, i)->tagged, r->version))
            return true;
    return false;
}

static bool read_unknown(struct json_reader *r,
                         json_object *json,
                         const struct wire_struct *shape,
                         struct out *tags,
                         const char *path)
{
    json_object *number = json_object_object_get(json, "tag");
    json_object *data = json_object_object_get(json, "data");
    struct view bytes = VIEW_NULL;
    uint32_t tag;

    if (number == NULL || data == NULL) return fail(r, path, "needs \"tag\" and \"data\"");
    if (!read_integer(r, number, WIRE_UINT32, &tag, path)) return false;
    if (!read_bytes(r, data, WIRE_BYTES, &bytes, path)) return false;
    if (is_known_tag(r, shape, tag)) return fail(r, path, "is a tag that the schema knows");
    put_uvarint(tags, tag);
    put_uvarint(tags, bytes.size);
    out_view(tags, bytes);
    return true;
}

static bool read_unknowns(struct json_reader *r,
                          json_object *json,
                          const struct wire_struct *shape,
                          uint8_t *out,
                          const char *path)
{
    struct out tags;
    bool fine = true;

    if (shape->tags_offset == UINT16_MAX || r->version < r->message->flexible_min)
        return fail(r, path,
                    node_format(&r->memory, "version %d has no tagged fields", r->version));
    if (!json_object_is_type(json, json_type_array)) return fail(r, path, "is no array");
    out_init(&tags, r->arena->mem);
    for (size_t i = 0; fine && i < json_object_array_length(json); i++) {
        const char *place = node_format(&r->memory, "%s[%zu]", path, i);
        fine = read_unknown(r, json_object_array_get_idx(json, i), shape, &tags, place);
    }
    struct view *slot = (struct view *)(void *)(out + shape->tags_offset);
    if (fine) *slot = arena_copy(r->arena, out_so_far(&tags));
    out_free(&tags);
    return fine;
}

/* ---- the object ------------------------------------------------------------------------------ */

/* The first letter of a field's key: that of its name, small. */
static char key_letter(const char *name)
{
    bool upper = name[0] >= 'A' && name[0] <= 'Z';
    return upper ? (char)(name[0] - 'A' + 'a') : name[0];
}

static bool is_key_of(const char *key, const struct wire_field *field)
{
    const char *name = wire_text(field->name);
    return key[0] == key_letter(name) && strcmp(key + 1, name + 1) == 0;
}

static const struct wire_field *field_of(const struct wire_struct *shape, const char *key)
{
    for (uint16_t i = 0; i < shape->field_count; i++)
        if (is_key_of(key, wire_struct_field(shape, i))) return wire_struct_field(shape, i);
    return NULL;
}

static bool unknown_key(struct json_reader *r,
                        const struct wire_struct *shape,
                        const char *path,
                        const char *key)
{
    struct nearest nearest = nearest_to(view_of_string(key));
    for (uint16_t i = 0; i < shape->field_count; i++)
        nearest_offer(&nearest, wire_text(wire_struct_field(shape, i)->name));
    (void)fail(r, path, node_format(&r->memory, "is no field of %s", wire_text(shape->name)));
    if (nearest.best != NULL)
        r->fault->hint =
            node_format(&r->memory, "%c%s", key_letter(nearest.best), nearest.best + 1);
    return false;
}

static bool is_null(const struct wire_field *field, const uint8_t *in)
{
    const void *slot = in + field->offset;
    if (field->flags & WIRE_FIELD_ARRAY) return ((const struct wire_array *)slot)->count < 0;
    if (field->flags & WIRE_FIELD_POINTER) return *(const void *const *)slot == NULL;
    bool text = field->type >= WIRE_STRING && field->type <= WIRE_RECORDS;
    return text && ((const struct view *)slot)->null;
}

/* A field that was left out may default to null where this version has no null. */
static bool check_nulls(struct json_reader *r,
                        const struct wire_struct *shape,
                        const uint8_t *in,
                        const char *path)
{
    for (uint16_t i = 0; i < shape->field_count; i++) {
        const struct wire_field *field = wire_struct_field(shape, i);
        bool here = wire_versions_have(field->versions, r->version) &&
                    !wire_versions_have(field->tagged, r->version) &&
                    !wire_versions_have(field->nullable, r->version);
        if (!here || !is_null(field, in)) continue;
        const char *place = node_format(&r->memory, "%s%s%s", path, path[0] == '\0' ? "" : ".",
                                        wire_text(field->name));
        return fail(r, place, node_format(&r->memory, "needs a value in version %d", r->version));
    }
    return true;
}

static bool read_struct(struct json_reader *r,
                        json_object *json,
                        const struct wire_struct *shape,
                        void *out,
                        const char *path)
{
    if (!json_object_is_type(json, json_type_object)) return fail(r, path, "is no object");
    wire_struct_defaults(shape, out);
    struct json_object_iterator at = json_object_iter_begin(json);
    struct json_object_iterator end = json_object_iter_end(json);
    for (; !json_object_iter_equal(&at, &end); json_object_iter_next(&at)) {
        const char *key = json_object_iter_peek_name(&at);
        json_object *value = json_object_iter_peek_value(&at);
        const char *place =
            node_format(&r->memory, "%s%s%s", path, path[0] == '\0' ? "" : ".", key);
        const struct wire_field *field = field_of(shape, key);
        bool fine;
        if (field != NULL) {
            fine = read_field(r, value, field, out, place);
        } else if (strcmp(key, "_unknownTaggedFields") == 0) {
            fine = read_unknowns(r, value, shape, out, place);
        } else {
            fine = unknown_key(r, shape, place, key);
        }
        if (!fine) return false;
    }
    return check_nulls(r, shape, out, path);
}

/* Parse the text; NULL and a fault if it is no JSON or there is more behind it. */
static json_object *parse(struct json_reader *r, struct view text)
{
    json_tokener *tokener = json_tokener_new_ex(NESTING_MAX);
    if (tokener == NULL) {
        (void)fail(r, "", "no memory is left");
        return NULL;
    }
    json_object *json = json_tokener_parse_ex(tokener, (const char *)text.data, (int)text.size);
    enum json_tokener_error error = json_tokener_get_error(tokener);
    size_t parsed = json_tokener_get_parse_end(tokener);
    if (error == json_tokener_continue) {
        /* All was taken and more might come; a number or null is ended by the text's end. */
        json = json_tokener_parse_ex(tokener, "", 1);
        error = json_tokener_get_error(tokener);
        parsed = text.size;
    }
    if (error != json_tokener_success) {
        uint32_t line = 1;
        for (size_t i = 0; i < MIN(parsed, (size_t)text.size); i++)
            line += text.data[i] == '\n';
        (void)fail(r, "",
                   node_format(&r->memory, "is no JSON: line %u: %s", line,
                               json_tokener_error_desc(error)));
    } else {
        for (; parsed < text.size; parsed++)
            if (strchr(" \t\r\n", text.data[parsed]) == NULL) break;
        if (parsed < text.size) (void)fail(r, "", "has more behind its JSON value");
    }
    json_tokener_free(tokener);
    if (!r->failed) return json;
    json_object_put(json);
    return NULL;
}

void *json_read(struct view text,
                const struct wire_message *message,
                int16_t version,
                struct arena *arena,
                struct json_fault *fault)
{
    struct json_reader r = {.arena = arena, .fault = fault, .version = version, .message = message};
    const struct wire_form *form = wire_form(message, version);

    assert(form != NULL);
    *fault = (struct json_fault){.path = "", .text = ""};
    node_list_init(&r.memory, arena);
    if (text.size > INT32_MAX) {
        (void)fail(&r, "", "is larger than 2 GiB");
        return NULL;
    }
    json_object *json = parse(&r, text);
    if (r.failed) return NULL;
    void *out = take(&r, message->size_bytes, "");
    if (out != NULL) (void)read_struct(&r, json, message->shape, out, "");
    json_object_put(json);
    if (r.failed) return NULL;
    const struct wire_field *unsupported = wire_unsupported(form, out);
    if (unsupported != NULL) {
        (void)fail(&r, wire_text(unsupported->name),
                   node_format(&r.memory, "is not in version %d", version));
        return NULL;
    }
    return out;
}
