/* schema.c - see schema.h. */
#include "text/schema.h"

#include <stdio.h>
#include <stdlib.h>

enum { LINE_COLUMNS = 100 };

struct printer {
    struct out *out;
    int16_t version;
    size_t indent; /* Of the field that is printed. */
    size_t at;     /* Column of the line. */
    bool first;    /* Of the keys of the field. */
};

/* ---- keys of one field ----------------------------------------------------------------------- */

/* One `"key": value`, on a new line if this one would get too long. */
static void put_key(struct printer *p, const char *key, const char *value, bool quoted)
{
    size_t size = strlen(key) + strlen(value) + (quoted ? 6 : 4);

    if (!p->first) {
        out_char(p->out, ',');
        p->at++;
        if (p->at + 1 + size + 1 > LINE_COLUMNS) {
            out_char(p->out, '\n');
            out_repeat(p->out, ' ', p->indent + 2);
            p->at = p->indent + 2;
        } else {
            out_char(p->out, ' ');
            p->at++;
        }
    }
    p->first = false;
    p->at += size;
    out_format(p->out, "\"%s\": ", key);
    if (quoted) {
        out_quoted(p->out, view_of_string(value));
    } else {
        out_text(p->out, value);
    }
}

/* The range as it stood then: what ends at N or later was still open. */
static void put_versions(struct printer *p, const char *key, struct wire_versions versions)
{
    char text[24];

    if (versions.min > versions.max || versions.min > p->version) return;
    if (versions.max >= p->version) {
        snprintf(text, sizeof(text), "%d+", versions.min);
    } else if (versions.min == versions.max) {
        snprintf(text, sizeof(text), "%d", versions.min);
    } else {
        snprintf(text, sizeof(text), "%d-%d", versions.min, versions.max);
    }
    put_key(p, key, text, true);
}

static void put_flag(struct printer *p, const struct wire_field *field, int flag, const char *key)
{
    if (field->flags & flag) put_key(p, key, "true", false);
}

static void put_field_keys(struct printer *p, const struct wire_field *field)
{
    char tag[12];

    put_key(p, "name", wire_text(field->name), true);
    put_key(p, "type", wire_text(field->type_text), true);
    put_versions(p, "versions", field->versions);
    put_versions(p, "nullableVersions", field->nullable);
    if (field->default_text != 0)
        put_key(p, "default", wire_text(field->default_text),
                (field->flags & WIRE_FIELD_DEFAULT_STRING) != 0);
    if (field->tag >= 0 && field->tagged.min <= p->version) {
        put_versions(p, "taggedVersions", field->tagged);
        snprintf(tag, sizeof(tag), "%d", field->tag);
        put_key(p, "tag", tag, false);
    }
    if (field->entity != 0) put_key(p, "entityType", wire_text(field->entity), true);
    put_flag(p, field, WIRE_FIELD_MAP_KEY, "mapKey");
    put_flag(p, field, WIRE_FIELD_IGNORABLE, "ignorable");
    put_flag(p, field, WIRE_FIELD_ZERO_COPY, "zeroCopy");
    if (field->flags & WIRE_FIELD_NEVER_FLEXIBLE) put_key(p, "flexibleVersions", "none", true);
}

static void put_about(struct printer *p, const char *about)
{
    if (about == NULL || about[0] == '\0') return;
    out_text(p->out, ",\n");
    out_repeat(p->out, ' ', p->indent + 2);
    out_text(p->out, "\"about\": ");
    out_quoted(p->out, view_of_string(about));
    p->at = p->indent;
}

static void put_fields(struct printer *p, const struct wire_struct *shape, size_t indent);

static void put_field(struct printer *p, const struct wire_field *field, size_t indent)
{
    p->indent = indent;
    p->at = indent + 2;
    p->first = true;
    out_repeat(p->out, ' ', indent);
    out_text(p->out, "{ ");
    put_field_keys(p, field);
    put_about(p, wire_text(field->about));
    if (field->shape == 0 || wire_field_shape(field)->common) {
        out_text(p->out, " }");
        return;
    }
    out_text(p->out, ", \"fields\": [\n");
    put_fields(p, wire_field_shape(field), indent + 2);
    out_repeat(p->out, ' ', indent);
    out_text(p->out, "]}");
}

static void put_fields(struct printer *p, const struct wire_struct *shape, size_t indent)
{
    bool any = false;

    for (uint16_t i = 0; i < shape->field_count; i++) {
        if (wire_struct_field(shape, i)->versions.min > p->version) continue;
        if (any) out_text(p->out, ",\n");
        any = true;
        put_field(p, wire_struct_field(shape, i), indent);
    }
    if (any) out_char(p->out, '\n');
}

/* ---- the file's head and foot ---------------------------------------------------------------- */

/* The version that a note line begins with ("Version 3 adds ..."), or -1. */
static int note_version(const char *note)
{
    if (strncmp(note, "Version ", 8) != 0) return -1;
    char *end;
    long version = strtol(note + 8, &end, 10);
    return end == note + 8 || *end != ' ' ? -1 : (int)version;
}

/* The words of the note that begins at line `i`, without "Version N "; returns the line behind. */
static uint16_t take_note(struct out *out, const struct wire_facts *facts, uint16_t i)
{
    const char *words = strchr(wire_facts_note(facts, i) + 8, ' ');
    out_text(out, words == NULL ? "" : words + 1);
    for (i++; i < facts->note_count && note_version(wire_facts_note(facts, i)) < 0; i++)
        out_format(out, " %s", wire_facts_note(facts, i));
    return i;
}

void schema_note(struct out *out, const struct wire_message *message, int16_t version)
{
    const struct wire_facts *facts = wire_facts(message);
    for (uint16_t i = 0; i < facts->note_count; i++)
        if (note_version(wire_facts_note(facts, i)) == version) {
            (void)take_note(out, facts, i);
            return;
        }
}

/* One comment, broken into lines that each begin with `//`. */
static void put_comment(struct out *out, const char *text)
{
    size_t at = 0;
    while (*text != '\0') {
        size_t size = strcspn(text, " ");
        if (at == 0 || at + 1 + size > LINE_COLUMNS) {
            out_text(out, at == 0 ? "  //" : "\n  //");
            at = 4;
        }
        out_char(out, ' ');
        out_bytes(out, text, size);
        at += 1 + size;
        text += size;
        text += strspn(text, " ");
    }
    out_char(out, '\n');
}

static void put_notes(struct out *out, const struct wire_facts *facts, int16_t newest)
{
    struct out note;
    bool any = false;

    out_init(&note, out->mem);
    for (uint16_t i = 0; i < facts->note_count;) {
        int version = note_version(wire_facts_note(facts, i));
        if (version < 0) {
            i++;
            continue;
        }
        out_reset(&note);
        out_format(&note, "Version %d ", version);
        i = take_note(&note, facts, i);
        out_char(&note, '\0');
        if (version > newest || note.failed) continue;
        if (any) out_text(out, "  //\n");
        any = true;
        put_comment(out, note.text);
    }
    out_free(&note);
}

static void put_listeners(struct out *out, const struct wire_facts *facts)
{
    static const char *const names[] = {"broker", "controller"};
    if (facts->listeners == 0 && !facts->listens_zk) return;
    bool any = false;
    out_text(out, "  \"listeners\": [");
    if (facts->listens_zk) {
        out_text(out, "\"zkBroker\"");
        any = true;
    }
    for (int i = 0; i < 2; i++) {
        if (!(facts->listeners & (i == 0 ? WIRE_BROKER : WIRE_CONTROLLER))) continue;
        out_format(out, "%s\"%s\"", any ? ", " : "", names[i]);
        any = true;
    }
    out_text(out, "],\n");
}

static void put_head(struct out *out, const struct wire_message *message, int16_t version)
{
    const struct wire_facts *facts = wire_facts(message);

    if (message->api_key >= 0) out_format(out, "  \"apiKey\": %d,\n", message->api_key);
    out_format(out, "  \"type\": \"%s\",\n", wire_text(facts->type_text));
    put_listeners(out, facts);
    out_format(out, "  \"name\": \"%s\",\n", message->name);
    put_notes(out, facts, version);
    out_text(out, "  \"validVersions\": \"");
    out_format(out, message->version_min == version ? "%d" : "%d-%d", message->version_min,
               version);
    if (message->flexible_min > version) {
        out_text(out, "\",\n  \"flexibleVersions\": \"none\",\n");
    } else {
        out_format(out, "\",\n  \"flexibleVersions\": \"%d+\",\n", message->flexible_min);
    }
    if (facts->latest_unstable && version == message->version_max)
        out_text(out, "  \"latestVersionUnstable\": true,\n");
}

static void put_common(struct printer *p, const struct wire_facts *facts)
{
    bool any = false;
    for (uint16_t i = 1; i < facts->shape_count; i++) {
        const struct wire_struct *shape = wire_shapes[facts->shapes + i];
        if (!shape->common || shape->versions.min > p->version) continue;
        out_text(p->out, any ? ",\n" : ",\n  \"commonStructs\": [\n");
        any = true;
        p->indent = 4;
        p->at = 6;
        p->first = true;
        out_text(p->out, "    { ");
        put_key(p, "name", wire_text(shape->name), true);
        put_versions(p, "versions", shape->versions);
        out_text(p->out, ", \"fields\": [\n");
        put_fields(p, shape, 6);
        out_text(p->out, "    ]}");
    }
    if (any) out_text(p->out, "\n  ]");
}

void schema_print(struct out *out, const struct wire_message *message, int16_t version)
{
    const struct wire_facts *facts = wire_facts(message);
    struct printer printer = {.out = out, .version = version};

    assert(wire_form(message, version) != NULL);
    out_text(out, "{\n");
    put_head(out, message, version);
    out_text(out, "  \"fields\": [\n");
    put_fields(&printer, message->shape, 4);
    out_text(out, "  ]");
    put_common(&printer, facts);
    out_text(out, "\n}\n");
}
