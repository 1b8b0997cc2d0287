/* json.c - writing JSON: a visitor of wire/walk.h. See json.h. */
#include "text/json.h"

#include "gen/request_header.h"
#include "gen/response_header.h"

enum { OPEN_MAX = 64, PRETTY_COLUMNS = 80 };

/* An unknown tagged field, kept until its section ends. */
struct unknown {
    struct unknown *next;
    uint32_t tag;
    struct view bytes;
};

struct writer {
    struct out *out;
    struct arena arena; /* Of the unknown tagged fields. */
    bool any[OPEN_MAX]; /* By level: has the open object or array a member yet? */
    uint32_t level;
    struct unknown *unknown[OPEN_MAX]; /* By level of the open struct: the last one; a ring. */
    bool damaged;
};

/* What stands before a member: a comma, and its name if it is a field. */
static void put_name(struct writer *w, const struct wire_event *event)
{
    if (w->any[w->level]) out_char(w->out, ',');
    w->any[w->level] = true;
    if (event->field == NULL || event->index >= 0) return;
    const char *name = wire_text(event->field->name);
    bool upper = name[0] >= 'A' && name[0] <= 'Z';
    out_char(w->out, '"');
    out_char(w->out, upper ? (char)(name[0] - 'A' + 'a') : name[0]);
    out_text(w->out, name + 1);
    out_text(w->out, "\":");
}

static void put_value(struct out *out, const struct wire_event *event)
{
    if (event->null) {
        out_text(out, "null");
        return;
    }
    switch ((enum wire_type)event->type) {
    case WIRE_BOOL: out_text(out, event->integer ? "true" : "false"); break;
    case WIRE_INT8:
    case WIRE_INT16:
    case WIRE_UINT16:
    case WIRE_INT32:
    case WIRE_UINT32:
    case WIRE_INT64: out_format(out, "%lld", (long long)event->integer); break;
    case WIRE_FLOAT64: out_double(out, event->real); break;
    case WIRE_UUID:
        out_char(out, '"');
        out_uuid(out, event->uuid);
        out_char(out, '"');
        break;
    case WIRE_STRING: out_quoted(out, event->bytes); break;
    case WIRE_BYTES:
    case WIRE_RECORDS:
        out_char(out, '"');
        out_base64(out, event->bytes);
        out_char(out, '"');
        break;
    case WIRE_STRUCT: break;
    }
}

static void enter(struct writer *w, const struct wire_event *event)
{
    if (event->depth > 0) put_name(w, event);
    w->level++;
    assert(w->level < OPEN_MAX);
    w->any[w->level] = false;
    w->unknown[w->level] = NULL;
    if (!event->null) out_char(w->out, event->is_array ? '[' : '{');
}

/* "_unknownTaggedFields" of the open struct, in the order of the wire. */
static void put_unknown(struct writer *w)
{
    struct unknown *last = w->unknown[w->level];
    if (last == NULL) return;
    out_text(w->out,
             w->any[w->level] ? ",\"_unknownTaggedFields\":[" : "\"_unknownTaggedFields\":[");
    w->any[w->level] = true;
    struct unknown *first = last->next;
    for (struct unknown *one = first;; one = one->next) {
        out_format(w->out, "%s{\"tag\":%u,\"data\":\"", one == first ? "" : ",", one->tag);
        out_base64(w->out, one->bytes);
        out_text(w->out, "\"}");
        if (one == last) break;
    }
    out_char(w->out, ']');
}

static void leave(struct writer *w, const struct wire_event *event)
{
    if (event->null) {
        out_text(w->out, "null");
    } else if (event->is_array) {
        out_char(w->out, ']');
    } else {
        put_unknown(w);
        out_char(w->out, '}');
    }
    w->level--;
}

static void keep_unknown(struct writer *w, const struct wire_event *event)
{
    struct unknown *one = arena_get(&w->arena, sizeof(*one));
    if (one == NULL) {
        w->out->failed = true;
        return;
    }
    struct unknown *last = w->unknown[w->level];
    *one = (struct unknown){last == NULL ? one : last->next, event->tag, event->bytes};
    if (last != NULL) last->next = one;
    w->unknown[w->level] = one;
}

static void visit(void *context, const struct wire_event *event)
{
    struct writer *w = context;
    switch (event->kind) {
    case WIRE_EVENT_VALUE:
        put_name(w, event);
        put_value(w->out, event);
        break;
    case WIRE_EVENT_ENTER: enter(w, event); break;
    case WIRE_EVENT_LEAVE:
        /* The tagged section and a tagged field are left too; their events have no type. */
        if (event->is_array || event->type == WIRE_STRUCT) leave(w, event);
        break;
    case WIRE_EVENT_TAG:
        if (event->field == NULL) keep_unknown(w, event);
        break;
    case WIRE_EVENT_FAULT: w->damaged = true; break;
    case WIRE_EVENT_TAGS:
    case WIRE_EVENT_ODDITY: break;
    }
}

struct json_written json_write(struct out *out, const struct wire_form *form, struct view bytes)
{
    struct writer w = {.out = out};
    struct reader in = reader_of(bytes);

    arena_init(&w.arena, out->mem, 0);
    (void)wire_walk(&in, form, &(struct wire_visitor){visit, &w});
    arena_free(&w.arena);
    return (struct json_written){(uint32_t)(in.at - in.start), w.damaged};
}

bool json_frame(struct out *out, const struct frame_kind *kind, struct view frame)
{
    bool request = kind->message->kind == WIRE_REQUEST;
    const struct wire_message *header = request ? &wire_request_header : &wire_response_header;
    uint32_t at = MIN(frame.size, 4u);

    assert(kind->header_version >= 0);
    out_format(out, "{\"api\":\"%s\",\"apiKey\":%d,\"type\":\"%s\",\"version\":%d,\"header\":",
               kind->api->name, kind->api->key, request ? "request" : "response", kind->version);
    struct view rest = view_of(frame.data + at, frame.size - at);
    struct json_written head = json_write(out, wire_form(header, kind->header_version), rest);
    bool whole = !head.damaged && frame.size >= 4 && load_be32(frame.data) == frame.size - 4;
    if (!head.damaged) {
        at += head.size_bytes;
        out_text(out, ",\"body\":");
        rest = view_of(frame.data + at, frame.size - at);
        struct json_written body = json_write(out, wire_form(kind->message, kind->version), rest);
        whole = whole && !body.damaged && body.size_bytes == rest.size;
    }
    out_char(out, '}');
    return whole;
}

/* ---- layout ---------------------------------------------------------------------------------- */

/* Where the string that begins at `at` ends, its closing quote included. */
static uint32_t string_end(struct view json, uint32_t at)
{
    for (at++; at < json.size && json.data[at] != '"'; at++)
        if (json.data[at] == '\\') at++;
    return MIN(at + 1, json.size);
}

/* Bytes up to the end of the object or array that begins at `at`, but no more than the limit + 1.
 */
static uint32_t group_size(struct view json, uint32_t at, uint32_t limit)
{
    uint32_t depth = 0, i = at;
    while (i < json.size && i - at <= limit) {
        uint8_t c = json.data[i];
        if (c == '"') {
            i = string_end(json, i);
            continue;
        }
        if (c == '{' || c == '[') depth++;
        if ((c == '}' || c == ']') && --depth == 0) return i + 1 - at;
        i++;
    }
    return limit + 1;
}

static void new_line(struct out *out, uint32_t level)
{
    out_char(out, '\n');
    out_repeat(out, ' ', 2 * (size_t)level);
}

void json_pretty(struct out *out, struct view json)
{
    uint32_t level = 0;
    uint32_t flat_end = 0; /* Up to here everything stays on the line. */

    for (uint32_t i = 0; i < json.size;) {
        uint8_t c = json.data[i];
        bool flat = i < flat_end;
        if (c == '"') {
            uint32_t end = string_end(json, i);
            out_bytes(out, json.data + i, end - i);
            i = end;
            continue;
        }
        if (!flat && (c == '{' || c == '[')) {
            uint32_t size = group_size(json, i, PRETTY_COLUMNS);
            if (size == 2 || (level > 0 && size + 2 * level <= PRETTY_COLUMNS)) {
                flat_end = i + size;
                out_char(out, (char)c);
            } else {
                out_char(out, (char)c);
                new_line(out, ++level);
            }
        } else if (!flat && (c == '}' || c == ']')) {
            new_line(out, --level);
            out_char(out, (char)c);
        } else {
            out_char(out, (char)c);
            if (c == ',' && !flat) new_line(out, level);
            if ((c == ',' && flat) || c == ':') out_char(out, ' ');
        }
        i++;
    }
    out_char(out, '\n');
}
