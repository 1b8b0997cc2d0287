/* walk.h - walk the bytes of one message and tell a visitor every field with its place: for tools.
 *
 * The same operations as decode.c, read the strict way: what a serving reader only counts is told
 * here with field and offset. Trees, byte rows, JSON and pages are visitors of this walk. Pure,
 * allocates nothing. Thread: any. */
#pragma once

#include "wire/form.h"

enum wire_event_kind {
    WIRE_EVENT_VALUE, /* One field, or one element of an array, that has no parts. */
    WIRE_EVENT_ENTER, /* A struct or an array begins; its length is told when it is left. */
    WIRE_EVENT_LEAVE,
    WIRE_EVENT_TAGS, /* The tagged section begins: `integer` fields. Left like a struct. */
    WIRE_EVENT_TAG, /* A tagged field begins: `tag`, `integer` bytes; `field` NULL if unknown. Left.
                     */
    WIRE_EVENT_ODDITY, /* Something Kafka takes but a writer should not send: `oddity`. */
    WIRE_EVENT_FAULT,  /* The bytes end being a message here: `fault`. What is open is then left. */
};

enum wire_oddity {
    WIRE_ODD_VARINT,    /* An overlong varint. */
    WIRE_ODD_LENGTH,    /* A negative length other than -1, taken as null. */
    WIRE_ODD_TAG_ORDER, /* A tag that is not greater than the one before. */
    WIRE_ODD_TAG_SIZE,  /* A known tagged field whose value is not as long as its size says. */
    WIRE_ODD_BOOL,      /* A boolean that is neither 0 nor 1. */
};

struct wire_event {
    enum wire_event_kind kind;
    const struct wire_field
        *field; /* NULL: the message itself, the tagged section, an unknown tag. */
    const struct wire_struct *shape; /* Of the struct that is entered; of the array's structs. */
    int32_t index;                   /* Which element of an array this is; -1: it is a field. */
    uint32_t depth;                  /* 0: the message itself. */
    uint32_t offset; /* Of the first byte, its length prefix included, from the reader's start. */
    uint32_t length; /* In bytes, prefix included; for LEAVE: of what is left. */
    uint32_t prefix; /* Bytes of the length or count prefix. */
    bool is_array; /* ENTER: an array of `integer` elements (also when it is null: then `null`). */
    bool null;
    bool compact; /* The prefix is a varint of length plus one. */
    uint8_t type; /* enum wire_type of the value */
    uint32_t tag;
    int64_t integer; /* Booleans and integers; counts and sizes for ENTER, TAGS and TAG. */
    double real;
    struct uuid uuid;
    struct view bytes; /* Strings, bytes, records; the bytes of an unknown tag (TAG event). */
    enum wire_oddity oddity;
    enum reader_fault fault;
};

struct wire_visitor {
    void (*visit)(void *context, const struct wire_event *event);
    void *context;
};

/* Walk one message of this form from `in`. Bytes may be left over. False: there was a fault, told
 * as the last event before the leaves. Cost: O(bytes). */
bool wire_walk(struct reader *in, const struct wire_form *form, const struct wire_visitor *visitor);

/* "the value ends behind the buffer" and the like: what a fault or an oddity means, for a person.
 */
const char *wire_fault_text(enum reader_fault fault);
const char *wire_oddity_text(enum wire_oddity oddity);
