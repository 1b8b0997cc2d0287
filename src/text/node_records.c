/* node_records.c - the nodes of a `records` value: a visitor of record/record_walk.h. */
#include "text/node.h"

#include "record/record_walk.h"

/* batch, records, record, headers, header: groups that can be open at once; messages of magic 1
 * open three. */
enum { GROUPS_MAX = 8 };

static const struct {
    const char *name;
    const char *about;
} abouts[] = {
    {"RecordBatch",          "a batch of records"                               },
    {"Message",              "one record of an old format, or a wrapper of many"},
    {"baseOffset",           "offset of the first record"                       },
    {"batchLength",          "how many bytes follow"                            },
    {"partitionLeaderEpoch", "epoch of the leader that appended the batch"      },
    {"magic",                "version of the format"                            },
    {"crc",                  "CRC-32C of all that follows"                      },
    {"lastOffsetDelta",      "offset of the last record, from the first"        },
    {"baseTimestamp",        "time of the first record, ms since 1970"          },
    {"maxTimestamp",         "latest time of a record"                          },
    {"producerId",           "who wrote it, -1 for nobody known"                },
    {"producerEpoch",        "which incarnation of the producer"                },
    {"baseSequence",         "the producer's count of the first record"         },
    {"recordsCount",         "how many records there are"                       },
    {"attributes",           "flags, by their bits"                             },
    {"offset",               "offset of the message"                            },
    {"messageSize",          "how many bytes follow"                            },
    {"timestampDelta",       "time, from the batch's base"                      },
    {"offsetDelta",          "offset, from the batch's base"                    },
    {"keyLength",            "bytes of the key, -1 for null"                    },
    {"valueLength",          "bytes of the value, -1 for null"                  },
    {"headersCount",         "how many headers there are"                       },
    {"length",               "how many bytes follow"                            },
};

struct group {
    uint32_t node; /* UINT32_MAX: not in the list. */
    const char *name;
    int32_t index;
};

struct builder {
    struct record_visitor visitor;
    struct node_list *list;
    const struct node_records *in;
    struct group groups[GROUPS_MAX];
    uint32_t group_count;
    uint32_t records; /* Groups "record" or "message" that are open. */
};

static const char *about_of(const char *name)
{
    for (size_t i = 0; i < ARRAY_SIZE(abouts); i++)
        if (strcmp(abouts[i].name, name) == 0) return abouts[i].about;
    return NULL;
}

static bool is_name(const char *name, const char *other)
{
    return strcmp(name, other) == 0;
}

static struct node node_of(const struct builder *b, const struct record_walk_event *event)
{
    uint64_t offset = event->offset + (event->inflated ? 0 : b->in->offset);
    return (struct node){
        .name = event->name,
        .type = event->type == NULL ? "" : event->type,
        .about = event->name == NULL ? NULL : about_of(event->name),
        .offset = (uint32_t)offset,
        .length = (uint32_t)event->size,
        .depth = (uint16_t)(b->in->depth + b->group_count),
        .part = b->records > 0 ? NODE_RECORD : NODE_BATCH,
        .inflated = event->inflated,
    };
}

static void begin(struct builder *b, const struct record_walk_event *event)
{
    struct node node = node_of(b, event);
    bool top = b->group_count == 0;

    assert(b->group_count < GROUPS_MAX);
    if (is_name(event->name, "batch")) {
        node.name = "RecordBatch";
        node.type = "v2";
    } else if (is_name(event->name, "message") && top) {
        node.name = "Message";
        node.type = "v0 or v1";
        node.part = NODE_RECORD;
    } else if (is_name(event->name, "record") || is_name(event->name, "message")) {
        node.name = node_format(b->list, "[%d]", event->index);
        node.type = is_name(event->name, "record") ? "Record" : "Message";
        node.value = node_format(b->list, "offset %lld", (long long)event->number);
        node.part = NODE_RECORD;
    } else if (is_name(event->name, "header")) {
        node.name = node_format(b->list, "[%d]", event->index);
        node.type = "Header";
    } else {
        node.type = is_name(event->name, "headers")   ? "[]Header"
                    : is_name(event->name, "records") ? "[]Record"
                                                      : "[]Message";
    }
    if (top || node.about == NULL) node.about = about_of(node.name);
    b->groups[b->group_count] = (struct group){node_add(b->list, &node), event->name, event->index};
    b->group_count++;
    if (node.part == NODE_RECORD) b->records++;
}

/* A group whose size was not known reaches to the end of its last child. */
static void end(struct builder *b)
{
    assert(b->group_count > 0);
    struct group *group = &b->groups[--b->group_count];
    if (b->records > 0) b->records--;
    if (group->node == UINT32_MAX) return;
    struct node *node = &b->list->nodes[group->node];
    if (node->length != 0) return;
    for (uint32_t i = group->node + 1; i < b->list->count; i++) {
        const struct node *child = &b->list->nodes[i];
        if (child->inflated != node->inflated) continue;
        node->length = MAX(node->length, child->offset + child->length - node->offset);
    }
}

static void add_number(struct builder *b, const struct record_walk_event *event)
{
    struct node node = node_of(b, event);
    bool bits = is_name(event->type, "bits");

    node.value = node_format(b->list, event->text == NULL ? "%lld" : "%lld (%s)",
                             (long long)event->number, event->text);
    if (bits || is_name(event->name, "controlType")) node.depth++;
    node_add(b->list, &node);
}

static void add_bytes(struct builder *b, const struct record_walk_event *event)
{
    struct node node = node_of(b, event);
    node.value = node_bytes(b->list, event->bytes);
    node_add(b->list, &node);
}

static void add_problem(struct builder *b, const struct record_walk_event *event)
{
    const char *path = b->in->path;
    for (uint32_t i = 0; i < b->group_count; i++) {
        const struct group *group = &b->groups[i];
        if (group->index < 0) continue;
        const char *name = is_name(group->name, "batch")     ? ".RecordBatch"
                           : is_name(group->name, "record")  ? ".records"
                           : is_name(group->name, "message") ? ".Message"
                                                             : ".headers";
        path = node_format(b->list, "%s%s[%d]", path, name, group->index);
    }
    struct node_problem problem = {
        .path = path,
        .text = event->text,
        .offset = (uint32_t)(event->offset + (event->inflated ? 0 : b->in->offset)),
        .inflated = event->inflated,
        .in_records = true,
        .fault = event->kind == RECORD_WALK_FAULT,
    };
    node_problem_add(b->list, &problem);
}

static bool visit(struct record_visitor *visitor, const struct record_walk_event *event)
{
    struct builder *b = container_of(visitor, struct builder, visitor);
    switch (event->kind) {
    case RECORD_WALK_BEGIN: begin(b, event); break;
    case RECORD_WALK_END: end(b); break;
    case RECORD_WALK_NUMBER: add_number(b, event); break;
    case RECORD_WALK_BYTES: add_bytes(b, event); break;
    case RECORD_WALK_ODDITY:
    case RECORD_WALK_FAULT: add_problem(b, event); break;
    }
    return !b->list->failed;
}

void node_records_add(struct node_list *list, const struct node_records *in)
{
    struct builder b = {.visitor = {visit}, .list = list, .in = in};
    struct compress_work work;

    compress_work_init(&work, list->arena->mem);
    (void)record_walk(&work, in->bytes, &b.visitor);
    compress_work_free(&work);
}
