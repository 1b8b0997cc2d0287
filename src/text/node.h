/* node.h - a message as a flat list of nodes: what the object tree, the table, the byte rows and
 * the pages print.
 *
 * Nodes stand in the order of the tree, parents first; a node's bytes hold those of its children.
 * The grammar of names, types and values is in docs/wire.md. Everything lives in the arena given.
 *
 * Damage does not stop the list: what was read stands there, the field that could not be read is
 * the last node of its message, and `problems` says what was wrong, in which field, and where. */
#pragma once

#include "text/out.h"
#include "wire/walk.h"

/* The seven parts of the reference pages. They colour every view, and each has a letter. */
enum node_part {
    NODE_FRAME,
    NODE_HEADER,
    NODE_REQUEST,
    NODE_BATCH,
    NODE_RECORD,
    NODE_RESPONSE,
    NODE_TAGS,
    NODE_PARTS,
};

/* "rpc header" and the like; NULL for NODE_PARTS. */
const char *node_part_name(enum node_part part);

/* The letter that stands for the part where there is no colour: F H Q B R S T. */
char node_part_letter(enum node_part part);

struct node {
    const char *name;
    const char *type;               /* "" for none. */
    const char *value;              /* NULL: none. */
    const char *about;              /* NULL: none. */
    const struct wire_field *field; /* NULL: not a field of a schema. */
    uint32_t offset;
    uint32_t length;
    uint16_t depth;
    uint8_t part;  /* enum node_part */
    bool inflated; /* Its offset counts from the start of decompressed records. */
    bool broken;   /* Its bytes could not be read. */
};

struct node_problem {
    const char *path; /* "Topics[0].Partitions[2].Index"; "" for the message as a whole. */
    const char *text;
    uint32_t offset;
    bool inflated;
    bool in_records; /* Of a record batch, not of the message that carries it. */
    bool fault;      /* Else it is odd: Kafka takes it. */
};

struct node_list {
    struct arena *arena;
    struct node *nodes;
    struct node_problem *problems;
    uint32_t count, room;
    uint32_t problem_count, problem_room;
    uint32_t value_limit; /* Bytes of a string or of bytes that are shown; 0: all. */
    bool failed;          /* No memory, or more than TEXT_NODES_MAX nodes: the list is cut. */
};

/* An empty list whose memory is the arena's. */
void node_list_init(struct node_list *list, struct arena *arena);

/* Is the message damaged (some problem is a fault)? */
bool node_list_faulty(const struct node_list *list);

/* Add a node at the end; its strings must live as long as the list. Returns its index, or
 * UINT32_MAX when the list has failed. */
uint32_t node_add(struct node_list *list, const struct node *node);

/* Add a problem; strings as in node_add. */
void node_problem_add(struct node_list *list, const struct node_problem *problem);

/* A formatted text in the list's arena; "" when there is no memory. */
const char *node_format(struct node_list *list, const char *format, ...) PRINTF(2, 3);

/* What the walk of one message is to be called in the list. */
struct node_message {
    const struct wire_message *message;
    int16_t version;
    uint16_t depth; /* Of the message's own node. */
    enum node_part part;
    const char *type;  /* "struct", "v2" */
    const char *about; /* Of the message's own node. */
    uint32_t offset;   /* Of its first byte in the frame. */
    bool snake_names;  /* Headers: request_api_key, not RequestApiKey. */
};

/* Add the nodes of one message whose bytes are `bytes` from `in->offset` on. Returns how many bytes
 * it took; a fault is among the list's problems. Cost: O(bytes). */
uint32_t node_message_add(struct node_list *list, const struct node_message *in, struct view bytes);

/* A `records` value: the bytes, where they begin in the frame, the depth of its batches, and the
 * path of its field. */
struct node_records {
    struct view bytes;
    uint32_t offset;
    uint16_t depth;
    const char *path;
};

/* Add the nodes of its batches, records and headers; what is compressed is decompressed within
 * RECORD_INFLATED_MAX. Node names: RecordBatch, Message (magic 0 and 1), [i] for a record. */
void node_records_add(struct node_list *list, const struct node_records *in);

/* `n bytes` and what they are: text where they are printable, else 0x and digits; at most
 * `value_limit` of them. "null" for null. */
const char *node_bytes(struct node_list *list, struct view bytes);

/* Which part each byte belongs to: paints `parts[0 .. size)` from the list. */
void node_paint(const struct node_list *list, uint8_t *painted, uint32_t size);
