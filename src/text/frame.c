/* frame.c - see frame.h. */
#include "text/frame.h"

#include "gen/request_header.h"
#include "gen/response_header.h"

enum { SIZE_BYTES = 4, HEAD_BYTES = 12, METADATA_FRAME_VERSION = 1 };

/* What stands before a record, field by field. */
struct envelope {
    const char *name;
    const char *about;
    bool varint; /* Else an int16. */
    uint32_t value;
};

/* Where Kafka writes the version of a message of kind `data` before it. */
static bool data_has_version(const struct wire_message *message)
{
    static const char *const names[] = {"AbortedTxn",
                                        "ConsumerProtocolAssignment",
                                        "ConsumerProtocolSubscription",
                                        "ControlRecordTypeSchema",
                                        "DefaultPrincipalData",
                                        "EndTxnMarker",
                                        "ProducerSnapshot"};
    for (size_t i = 0; i < ARRAY_SIZE(names); i++)
        if (strcmp(message->name, names[i]) == 0) return true;
    return false;
}

/* The fields before a record of this message; returns how many, at most three. */
static uint32_t envelope_of(const struct frame_kind *kind, struct envelope out[3])
{
    const struct wire_message *message = kind->message;
    uint32_t version = (uint32_t)kind->version, type = (uint32_t)message->api_key, count = 0;
    struct envelope versioned = {"version", "version in which the record is written", false,
                                 version};

    switch ((enum wire_kind)message->kind) {
    case WIRE_METADATA:
        /* Remote log metadata has its own log, without the frame's version. */
        if (strncmp(message->name, "Remote", 6) != 0)
            out[count++] = (struct envelope){"frame_version", "version of these three fields", true,
                                             METADATA_FRAME_VERSION};
        out[count++] = (struct envelope){"type", "number of this kind of record", true, type};
        versioned.varint = true;
        out[count++] = versioned;
        return count;
    case WIRE_COORDINATOR_KEY:
        out[count++] = (struct envelope){"type", "number of this kind of record", false, type};
        return count;
    case WIRE_COORDINATOR_VALUE: out[count++] = versioned; return count;
    case WIRE_DATA:
        if (data_has_version(message)) out[count++] = versioned;
        return count;
    default: return count;
    }
}

struct frame_kind frame_kind_of(const struct wire_message *message, int16_t version)
{
    struct frame_kind kind = {.message = message, .version = version, .header_version = -1};

    assert(wire_form(message, version) != NULL);
    if (message->kind == WIRE_REQUEST) {
        kind.api = wire_api(message->api_key);
        kind.header_version = wire_request_header_version(kind.api, version);
    } else if (message->kind == WIRE_RESPONSE) {
        kind.api = wire_api(message->api_key);
        kind.header_version = wire_response_header_version(kind.api, version);
    }
    return kind;
}

static const struct wire_message *header_of(const struct frame_kind *kind)
{
    return kind->message->kind == WIRE_REQUEST ? &wire_request_header : &wire_response_header;
}

/* ---- encoding -------------------------------------------------------------------------------- */

/* Append one message; false when there is no memory. */
static bool put_message(struct out *out,
                        const struct wire_form *form,
                        const void *value,
                        struct arena *arena)
{
    size_t size = wire_size(form, value);
    uint8_t *bytes = arena_get(arena, size + 1);
    if (bytes == NULL) return false;
    size_t written = wire_encode(form, value, bytes, NULL, 0, NULL);
    assert(written == size);
    out_bytes(out, bytes, size);
    return !out->failed;
}

static bool put_header(struct out *out,
                       const struct frame_kind *kind,
                       const struct frame_header *in,
                       struct arena *arena)
{
    const struct wire_message *message = header_of(kind);
    const struct wire_form *form = wire_form(message, kind->header_version);

    if (kind->message->kind == WIRE_REQUEST) {
        struct request_header header;
        wire_defaults(message, &header);
        header.request_api_key = kind->api->key;
        header.request_api_version = kind->version;
        header.correlation_id = in->correlation_id;
        header.client_id = in->client_id;
        return put_message(out, form, &header, arena);
    }
    struct response_header header;
    wire_defaults(message, &header);
    header.correlation_id = in->correlation_id;
    return put_message(out, form, &header, arena);
}

static void put_envelope(struct out *out, const struct frame_kind *kind)
{
    struct envelope fields[3];
    uint32_t count = envelope_of(kind, fields);
    for (uint32_t i = 0; i < count; i++) {
        assert(!fields[i].varint || fields[i].value < 128);
        if (!fields[i].varint) out_char(out, (char)(fields[i].value >> 8));
        out_char(out, (char)fields[i].value);
    }
}

struct view frame_encode(const struct frame_kind *kind,
                         const struct frame_header *header,
                         const void *body,
                         struct arena *arena)
{
    struct out out;
    bool framed = kind->header_version >= 0;

    out_init(&out, arena->mem);
    bool done = true;
    if (framed) {
        out_repeat(&out, 0, SIZE_BYTES);
        done = put_header(&out, kind, header, arena);
    } else {
        put_envelope(&out, kind);
    }
    done = done && put_message(&out, wire_form(kind->message, kind->version), body, arena);
    if (framed && done) store_be32((uint8_t *)out.text, (uint32_t)out.size_bytes - SIZE_BYTES);
    struct view frame = done ? arena_copy(arena, out_so_far(&out)) : VIEW_NULL;
    out_free(&out);
    return frame;
}

struct view frame_sample(const struct frame_kind *kind, struct arena *arena)
{
    const struct wire_form *form = wire_form(kind->message, kind->version);
    struct frame_header header = {.client_id = VIEW_EMPTY};
    void *body = arena_get(arena, MAX(kind->message->size_bytes, 1u));

    if (body == NULL || !wire_sample(form, arena, body)) return VIEW_NULL;
    return frame_encode(kind, &header, body, arena);
}

/* ---- what a frame is ------------------------------------------------------------------------- */

bool frame_head(struct view frame, struct frame_head *out)
{
    struct reader in = reader_of(frame);
    out->size = reader_be32(&in);
    out->api_key = (int16_t)reader_be16(&in);
    out->version = (int16_t)reader_be16(&in);
    out->correlation_id = (int32_t)reader_be32(&in);
    return in.fault == READER_OK;
}

enum frame_state frame_request_kind(struct view frame, struct frame_kind *out)
{
    struct frame_head head;
    if (!frame_head(frame, &head)) return FRAME_SHORT;
    const struct wire_api *api = wire_api(head.api_key);
    if (api == NULL) return FRAME_UNKNOWN_KEY;
    if (wire_form(api->request, head.version) == NULL) return FRAME_UNKNOWN_VERSION;
    *out = frame_kind_of(api->request, head.version);
    return FRAME_KNOWN;
}

static void see_nothing(void *context, const struct wire_event *event)
{
}

bool frame_is_whole(const struct frame_kind *kind, struct view frame)
{
    struct wire_visitor blind = {see_nothing, NULL};
    struct reader in = reader_of(frame);

    if (kind->header_version >= 0) {
        if (reader_be32(&in) != frame.size - SIZE_BYTES) return false;
        if (!wire_walk(&in, wire_form(header_of(kind), kind->header_version), &blind)) return false;
    }
    return wire_walk(&in, wire_form(kind->message, kind->version), &blind) && reader_left(&in) == 0;
}

bool frame_record_kind(const struct wire_message *message,
                       struct view bytes,
                       int16_t *version,
                       struct frame_kind *out)
{
    struct frame_kind any = frame_kind_of(message, message->version_min);
    struct envelope fields[3];
    uint32_t count = envelope_of(&any, fields);
    struct reader in = reader_of(bytes);

    for (uint32_t i = 0; i < count; i++) {
        uint32_t value = fields[i].varint ? reader_uvarint(&in) : reader_be16(&in);
        if (strcmp(fields[i].name, "version") == 0) *version = (int16_t)value;
    }
    if (in.fault != READER_OK) *version = -1;
    if (wire_form(message, *version) == NULL) return false;
    *out = frame_kind_of(message, *version);
    return true;
}

/* ---- nodes ----------------------------------------------------------------------------------- */

static void problem(struct node_list *list, const char *path, uint32_t offset, const char *text)
{
    struct node_problem problem = {.path = path, .text = text, .offset = offset, .fault = true};
    node_problem_add(list, &problem);
}

/* The frame's size, and what of it is there: the bytes behind it. */
static void add_frame(struct node_list *list, struct view frame)
{
    struct node node = {.name = "Frame",
                        .type = "",
                        .about = "tells where the message ends",
                        .length = MIN(frame.size, (uint32_t)SIZE_BYTES),
                        .depth = 1,
                        .part = NODE_FRAME};
    node_add(list, &node);
    node.name = "size";
    node.type = "int32";
    node.about = "how many bytes follow, filled in last";
    node.depth = 2;
    if (frame.size < SIZE_BYTES) {
        node.value = "??";
        node.broken = true;
        node_add(list, &node);
        problem(list, "size", 0, wire_fault_text(READER_SHORT));
        return;
    }
    int32_t size = (int32_t)load_be32(frame.data);
    node.value = node_format(list, "%d", size);
    node_add(list, &node);
    int64_t there = (int64_t)frame.size - SIZE_BYTES;
    if (size == there) return;
    const char *text =
        node_format(list, "the frame says %d bytes, %lld are there", size, (long long)there);
    problem(list, "size", 0, text);
}

static uint32_t add_header(struct node_list *list, const struct frame_kind *kind, struct view frame)
{
    struct node_message in = {
        .message = header_of(kind),
        .version = kind->header_version,
        .depth = 1,
        .part = NODE_HEADER,
        .type = node_format(list, "v%d", kind->header_version),
        .about = header_of(kind)->about,
        .offset = MIN(frame.size, (uint32_t)SIZE_BYTES),
        .snake_names = true,
    };
    struct view rest = view_of(frame.data + in.offset, frame.size - in.offset);
    return in.offset + node_message_add(list, &in, rest);
}

/* What stands before a record; returns where the record begins. */
static uint32_t add_envelope(struct node_list *list,
                             const struct frame_kind *kind,
                             struct view bytes)
{
    struct envelope fields[3];
    uint32_t count = envelope_of(kind, fields);
    struct reader in = reader_of(bytes);

    for (uint32_t i = 0; i < count; i++) {
        uint32_t offset = (uint32_t)(in.at - in.start);
        uint32_t value = fields[i].varint ? reader_uvarint(&in) : reader_be16(&in);
        struct node node = {.name = fields[i].name,
                            .type = fields[i].varint ? "uvarint" : "int16",
                            .value = node_format(list, "%u", value),
                            .about = fields[i].about,
                            .offset = offset,
                            .length = (uint32_t)(in.at - in.start) - offset,
                            .depth = 1,
                            .part = NODE_FRAME,
                            .broken = in.fault != READER_OK};
        node_add(list, &node);
        if (in.fault != READER_OK) {
            problem(list, fields[i].name, offset, wire_fault_text(in.fault));
            break;
        }
        if (value == fields[i].value) continue;
        const char *text =
            node_format(list, "is %u, where %u was asked for", value, fields[i].value);
        problem(list, fields[i].name, offset, text);
    }
    return (uint32_t)(in.at - in.start);
}

static enum node_part body_part(const struct wire_message *message)
{
    switch ((enum wire_kind)message->kind) {
    case WIRE_REQUEST: return NODE_REQUEST;
    case WIRE_RESPONSE: return NODE_RESPONSE;
    case WIRE_HEADER: return NODE_HEADER;
    default: return NODE_RECORD;
    }
}

static void add_left_over(struct node_list *list, uint32_t at, struct view frame)
{
    uint32_t left = frame.size - at;
    struct node node = {.name = "left_over",
                        .type = "bytes",
                        .value = node_format(list, "%u byte%s", left, left == 1 ? "" : "s"),
                        .about = "bytes behind the message",
                        .offset = at,
                        .length = left,
                        .depth = 1,
                        .part = NODE_FRAME};
    node_add(list, &node);
    problem(list, "", at,
            node_format(list, "%u byte%s left over", left, left == 1 ? " is" : "s are"));
}

static void add_root(struct node_list *list, const char *name, int16_t version, struct view frame)
{
    struct node root = {.name = name,
                        .type = node_format(list, "message v%d", version),
                        .length = frame.size,
                        .part = NODE_FRAME};
    node_add(list, &root);
}

/* Was a problem from this one on a fault of the message itself? One of a batch in it ends nothing.
 */
static bool faults_since(const struct node_list *list, uint32_t problem)
{
    for (; problem < list->problem_count; problem++)
        if (list->problems[problem].fault && !list->problems[problem].in_records) return true;
    return false;
}

void frame_nodes(struct node_list *list, const struct frame_kind *kind, struct view frame)
{
    bool framed = kind->header_version >= 0;

    add_root(list, kind->message->name, kind->version, frame);
    if (framed) add_frame(list, frame);
    if (framed && frame.size < SIZE_BYTES) return;
    /* A wrong size does not hide the rest; a header that cannot be read does. */
    uint32_t before = list->problem_count;
    uint32_t at = framed ? add_header(list, kind, frame) : add_envelope(list, kind, frame);
    if (faults_since(list, before)) return;

    struct node_message in = {
        .message = kind->message,
        .version = kind->version,
        .depth = 1,
        .part = body_part(kind->message),
        .type = "struct",
        .about = node_format(list, "the message itself, version %d", kind->version),
        .offset = at,
    };
    before = list->problem_count;
    at += node_message_add(list, &in, view_of(frame.data + at, frame.size - at));
    if (!faults_since(list, before) && at < frame.size) add_left_over(list, at, frame);
}

bool frame_body_at(const struct node_list *list, const struct frame_kind *kind, uint32_t *at)
{
    for (uint32_t i = 0; i < list->count; i++) {
        const struct node *node = &list->nodes[i];
        if (node->depth != 1 || node->name != kind->message->name) continue;
        *at = node->offset;
        return true;
    }
    return false;
}

void frame_unknown_nodes(struct node_list *list, struct view frame)
{
    struct frame_head head = {0};
    bool whole = frame_head(frame, &head);
    const struct wire_api *api = whole ? wire_api(head.api_key) : NULL;

    add_root(list, api == NULL ? "Request" : api->request->name, whole ? head.version : 0, frame);
    add_frame(list, frame);
    if (frame.size < SIZE_BYTES) return;
    struct node_message in = {
        .message = &wire_request_header,
        .version = 1,
        .depth = 1,
        .part = NODE_HEADER,
        .type = "v1",
        .about = wire_request_header.about,
        .offset = SIZE_BYTES,
        .snake_names = true,
    };
    (void)node_message_add(list, &in, view_of(frame.data + SIZE_BYTES, frame.size - SIZE_BYTES));
    if (!whole) return;
    if (api == NULL) {
        problem(list, "RequestHeader.RequestApiKey", SIZE_BYTES,
                node_format(list, "no API has the key %d", head.api_key));
    } else {
        problem(list, "RequestHeader.RequestApiVersion", SIZE_BYTES + 2,
                node_format(list, "%s has versions %d to %d, not %d", api->name,
                            api->request->version_min, api->request->version_max, head.version));
    }
}
