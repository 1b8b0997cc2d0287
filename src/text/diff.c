/* diff.c - see diff.h. */
#include "text/diff.h"

enum { PATH_BYTES = 512 };

struct comparison {
    struct diff *diff;
    int16_t from, to;
    char path[PATH_BYTES];
};

static void add(struct comparison *c, enum diff_kind kind, const struct wire_field *field)
{
    struct diff *diff = c->diff;

    if (diff->count == diff->room) {
        uint32_t room = MAX(diff->room * 2, 16u);
        struct diff_change *changes = arena_get(diff->arena, room * sizeof(*changes));
        if (changes == NULL) {
            diff->failed = true;
            return;
        }
        if (diff->count > 0) memcpy(changes, diff->changes, diff->count * sizeof(*changes));
        diff->changes = changes;
        diff->room = room;
    }
    size_t size = strlen(c->path) + 1;
    char *path = arena_get(diff->arena, size);
    if (path == NULL) {
        diff->failed = true;
        return;
    }
    memcpy(path, c->path, size);
    diff->changes[diff->count++] = (struct diff_change){kind, path, field};
}

/* Add ".name[]" to the path; returns the old length to go back to. */
static size_t path_push(struct comparison *c, const struct wire_field *field)
{
    size_t old = strlen(c->path), name = strlen(wire_text(field->name));
    bool array = (field->flags & WIRE_FIELD_ARRAY) && field->shape != 0;
    assert(old + name + 4 < PATH_BYTES); /* The schemas bound it: six levels of names. */
    size_t at = old;
    if (old > 0) c->path[at++] = '.';
    memcpy(c->path + at, wire_text(field->name), name);
    at += name;
    if (array) {
        c->path[at++] = '[';
        c->path[at++] = ']';
    }
    c->path[at] = '\0';
    return old;
}

static void compare_struct(struct comparison *c, const struct wire_struct *shape)
{
    for (uint16_t i = 0; i < shape->field_count; i++) {
        const struct wire_field *field = wire_struct_field(shape, i);
        bool before = wire_versions_have(field->versions, c->from);
        bool after = wire_versions_have(field->versions, c->to);
        size_t old = path_push(c, field);
        if (before != after) add(c, after ? DIFF_ADDED : DIFF_REMOVED, field);
        if (before && after) {
            bool null_before = wire_versions_have(field->nullable, c->from);
            bool null_after = wire_versions_have(field->nullable, c->to);
            bool tag_before = wire_versions_have(field->tagged, c->from);
            bool tag_after = wire_versions_have(field->tagged, c->to);
            if (null_before != null_after)
                add(c, null_after ? DIFF_NULLABLE : DIFF_NOT_NULLABLE, field);
            if (tag_before != tag_after) add(c, tag_after ? DIFF_TAGGED : DIFF_NOT_TAGGED, field);
            if (field->shape != 0) compare_struct(c, wire_field_shape(field));
        }
        c->path[old] = '\0';
    }
}

void diff_message(struct diff *diff,
                  const struct wire_message *message,
                  struct wire_versions versions,
                  struct arena *arena)
{
    struct comparison c = {.diff = diff, .from = versions.min, .to = versions.max};
    bool before = c.from >= message->flexible_min, after = c.to >= message->flexible_min;

    assert(wire_form(message, c.from) != NULL && wire_form(message, c.to) != NULL);
    *diff = (struct diff){.arena = arena};
    if (before != after) add(&c, after ? DIFF_FLEXIBLE : DIFF_NOT_FLEXIBLE, NULL);
    compare_struct(&c, message->shape);
}

const char *diff_words(enum diff_kind kind)
{
    switch (kind) {
    case DIFF_ADDED: return "is new";
    case DIFF_REMOVED: return "is gone";
    case DIFF_NULLABLE: return "may be null";
    case DIFF_NOT_NULLABLE: return "may not be null any more";
    case DIFF_TAGGED: return "is a tagged field now";
    case DIFF_NOT_TAGGED: return "is no tagged field any more";
    case DIFF_FLEXIBLE: return "is flexible: compact lengths and tagged fields";
    case DIFF_NOT_FLEXIBLE: return "is not flexible: plain lengths, no tagged fields";
    }
    return "";
}

char diff_sign(enum diff_kind kind)
{
    return kind == DIFF_ADDED ? '+' : kind == DIFF_REMOVED ? '-' : '~';
}

void diff_print(struct out *out, const struct diff_change *change)
{
    out_format(out, "%c ", diff_sign(change->kind));
    if (change->field == NULL) {
        out_format(out, "the message %s\n", diff_words(change->kind));
        return;
    }
    out_format(out, "%s  %s", change->path, wire_text(change->field->type_text));
    if (change->kind > DIFF_REMOVED) {
        out_format(out, "  %s\n", diff_words(change->kind));
    } else if (change->kind == DIFF_ADDED && change->field->about != 0) {
        out_text(out, "  ");
        out_wrapped(out, wire_text(change->field->about), 8, 100);
        out_char(out, '\n');
    } else {
        out_char(out, '\n');
    }
}
