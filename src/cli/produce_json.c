/* produce_json.c - a line of JSON as a record, for `dohle produce --format json`. */
#include <json-c/json.h>

#include "cli/produce.h"
#include "text/json.h"

/* One line's record while it is put together. */
struct json_record {
    struct produce *produce;
    struct produce_record record;
    rd_kafka_headers_t *headers;
    char *decoded[2]; /* Of keyBase64, valueBase64: to be given back. */
    size_t decoded_room[2];
};

static bool fail(const struct json_record *r, const char *what)
{
    (void)cli_fail(r->produce->client.cli, CLI_FAILED, "line %llu: %s",
                   (unsigned long long)r->produce->line_number, what);
    return false;
}

/* Text as it is, null as null, anything else as its JSON. Lives as long as the JSON. */
static struct produce_bytes text_of(json_object *json)
{
    const char *text;
    struct produce_bytes bytes = {NULL, 0};
    if (json == NULL) return bytes;
    if (json_object_is_type(json, json_type_string)) {
        text = json_object_get_string(json);
        bytes.size = (size_t)json_object_get_string_len(json);
    } else {
        text = json_object_to_json_string_length(json, JSON_C_TO_STRING_PLAIN, &bytes.size);
    }
    memcpy(&bytes.ptr, &text, sizeof(text)); /* Only read. */
    return bytes;
}

/* Member `name`, or `name`Base64 decoded. */
static bool take_bytes(struct json_record *r, json_object *json, int which)
{
    static const char *const names[2][2] = {
        {"key",   "keyBase64"  },
        {"value", "valueBase64"}
    };
    struct produce_bytes *out = which == 0 ? &r->record.key : &r->record.value;
    json_object *found;

    if (json_object_object_get_ex(json, names[which][0], &found)) {
        *out = text_of(found);
        return true;
    }
    if (!json_object_object_get_ex(json, names[which][1], &found)) return true;
    struct produce_bytes text = text_of(found);
    r->decoded_room[which] = text.size + 4;
    r->decoded[which] = mem_get(r->produce->client.cli->mem, r->decoded_room[which]);
    if (r->decoded[which] == NULL) return fail(r, "out of memory");
    int64_t size =
        json_base64(text.ptr == NULL ? "" : text.ptr, text.size, (uint8_t *)r->decoded[which]);
    if (size < 0)
        return fail(r, which == 0 ? "keyBase64 is no base64" : "valueBase64 is no base64");
    *out = (struct produce_bytes){r->decoded[which], (size_t)size};
    return true;
}

static bool take_header(struct json_record *r, json_object *name, json_object *value)
{
    struct produce_bytes text = text_of(value);
    if (!json_object_is_type(name, json_type_string))
        return fail(r, "a header is {\"name\": TEXT, \"value\": TEXT}");
    (void)r->produce->client.rd.header_add(r->headers, json_object_get_string(name), -1, text.ptr,
                                           text.ptr == NULL ? -1 : (ssize_t)text.size);
    return true;
}

static bool take_headers(struct json_record *r, json_object *json)
{
    json_object *list, *name, *value;
    if (!json_object_object_get_ex(json, "headers", &list) || list == NULL) return true;
    if (!json_object_is_type(list, json_type_array))
        return fail(r, "headers are a list of {\"name\", \"value\"}");
    struct client *client = &r->produce->client;
    r->headers = r->produce->headers == NULL ? client->rd.headers_new(8)
                                             : client->rd.headers_copy(r->produce->headers);
    r->record.headers = r->headers;
    for (size_t i = 0; i < json_object_array_length(list); i++) {
        json_object *one = json_object_array_get_idx(list, i);
        if (!json_object_is_type(one, json_type_object) ||
            !json_object_object_get_ex(one, "name", &name))
            return fail(r, "a header is {\"name\": TEXT, \"value\": TEXT}");
        if (!json_object_object_get_ex(one, "value", &value)) value = NULL;
        if (!take_header(r, name, value)) return false;
    }
    return true;
}

static bool take_numbers(struct json_record *r, json_object *json)
{
    json_object *found;
    if (json_object_object_get_ex(json, "timestamp", &found) && found != NULL) {
        if (!json_object_is_type(found, json_type_int))
            return fail(r, "a timestamp is a number of milliseconds");
        r->record.timestamp_ms = MAX(json_object_get_int64(found), 0);
    }
    if (r->produce->partition != RD_KAFKA_PARTITION_UA) return true;
    if (json_object_object_get_ex(json, "partition", &found) && found != NULL) {
        if (!json_object_is_type(found, json_type_int)) return fail(r, "a partition is a number");
        r->record.partition = json_object_get_int(found);
    }
    return true;
}

bool produce_json(struct produce *produce, struct produce_bytes line)
{
    struct json_record r = {
        .produce = produce,
        .record = {
                   .key = produce->key, .partition = produce->partition, .headers = produce->headers}
    };
    if (line.size == 0) return true;
    json_object *json = json_tokener_parse(line.ptr);
    bool fine = json_object_is_type(json, json_type_object)
                    ? take_bytes(&r, json, 0) && take_bytes(&r, json, 1) &&
                          take_headers(&r, json) && take_numbers(&r, json)
                    : fail(&r, "is no JSON object");
    fine = fine && produce_send(produce, &r.record);
    if (r.headers != NULL) produce->client.rd.headers_destroy(r.headers);
    for (int i = 0; i < 2; i++)
        mem_put(produce->client.cli->mem, r.decoded[i], r.decoded_room[i]);
    json_object_put(json);
    return fine;
}
