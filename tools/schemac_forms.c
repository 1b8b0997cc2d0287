/* schemac_forms.c - resolve each version of each struct into a flat list of operations.
 *
 * Versions whose lists are the same share one form: the lists are made as text and compared. */
#include "schemac.h"

#include <stdlib.h>
#include <string.h>

static const int fixed_sizes[] = {1, 1, 2, 2, 4, 4, 8, 8, 16, 0, 0, 0, 0};

static const char *const type_marks[] = {"WIRE_BOOL",  "WIRE_INT8",   "WIRE_INT16", "WIRE_UINT16",
                                         "WIRE_INT32", "WIRE_UINT32", "WIRE_INT64", "WIRE_FLOAT64",
                                         "WIRE_UUID",  "WIRE_STRING", "WIRE_BYTES", "WIRE_RECORDS",
                                         "WIRE_STRUCT"};

#define VERSIONS_MAX 64

/* The forms of one struct: which version has which. */
struct forms {
    char *texts[VERSIONS_MAX]; /* Of the distinct forms. */
    int count;
    int of_version[VERSIONS_MAX]; /* -1: none */
    int size_min[VERSIONS_MAX];   /* By distinct form. */
};

static bool flexible_in(const struct message *m, const struct field *f, int version)
{
    return versions_have(m->flexible, version) && !(f != NULL && f->never_flexible);
}

static bool is_fixed(const struct field *f)
{
    return !f->array && fixed_sizes[f->type] > 0;
}

static bool is_tagged(const struct field *f, int version)
{
    return versions_have(f->tagged, version);
}

static const char *flags_of(const struct message *m, const struct field *f, int version)
{
    bool compact = flexible_in(m, f, version);
    bool nullable = versions_have(f->nullable, version);
    if (compact && nullable) return "WIRE_OP_COMPACT | WIRE_OP_NULLABLE";
    return compact ? "WIRE_OP_COMPACT" : nullable ? "WIRE_OP_NULLABLE" : "0";
}

static const char *code_of(const struct field *f, int version)
{
    if (f->array) {
        if (f->type == TYPE_STRUCT) return "WIRE_OP_ARRAY_STRUCT";
        return fixed_sizes[f->type] > 0 ? "WIRE_OP_ARRAY_FIXED" : "WIRE_OP_ARRAY_STRING";
    }
    switch (f->type) {
    case TYPE_STRING: return "WIRE_OP_STRING";
    case TYPE_BYTES: return "WIRE_OP_BYTES";
    case TYPE_RECORDS: return "WIRE_OP_RECORDS";
    case TYPE_STRUCT:
        return versions_have(f->nullable, version) ? "WIRE_OP_STRUCT_OR_NULL" : "WIRE_OP_STRUCT";
    default: return "WIRE_OP_FIXED_RUN";
    }
}

/* Fewest bytes of a field on the wire. */
static int field_size_min(const struct message *m,
                          const struct field *f,
                          int version,
                          struct forms *all)
{
    bool compact = flexible_in(m, f, version);
    if (is_fixed(f)) return fixed_sizes[f->type];
    if (f->array || f->type == TYPE_BYTES || f->type == TYPE_RECORDS) return compact ? 1 : 4;
    if (f->type == TYPE_STRING) return compact ? 1 : 2;
    if (versions_have(f->nullable, version)) return 1;
    struct forms *inner = &all[f->shape->index];
    return inner->size_min[inner->of_version[version]];
}

struct text {
    char *bytes;
    size_t size;
    FILE *out;
};

static void text_open(struct text *t)
{
    *t = (struct text){0};
    t->out = open_memstream(&t->bytes, &t->size);
    if (t->out == NULL) fail("schemac", NULL, "out of memory");
}

static char *text_close(struct text *t)
{
    fclose(t->out);
    return t->bytes;
}

/* The operation of one field that is not part of a run. */
static void emit_op(FILE *out,
                    const struct message *m,
                    const struct shape *shape,
                    int i,
                    int version,
                    struct forms *all)
{
    const struct field *f = &shape->fields[i];
    fprintf(out, "{%s, %s, %s, %d, offsetof(struct %s, %s), ", code_of(f, version),
            flags_of(m, f, version), type_marks[f->type], i, shape->c_name, f->snake);
    if (f->type == TYPE_STRUCT) {
        int form = all[f->shape->index].of_version[version];
        if (form < 0) fail(m->file, f->name, "its struct has no version %d", version);
        fprintf(out, "0, 0, {.form = &%s_form%d}},\n", f->shape->c_name, form);
    } else if (f->array) {
        fprintf(out, "%d, 0, {NULL}},\n", fixed_sizes[f->type]);
    } else if (is_fixed(f)) { /* Only as a tagged value: a run of one. */
        fprintf(
            out,
            "%d, 1, {.fixed = (const struct wire_fixed[]){{offsetof(struct %s, %s), %s, %d}}}},\n",
            fixed_sizes[f->type], shape->c_name, f->snake, type_marks[f->type], i);
    } else {
        fprintf(out, "0, 0, {NULL}},\n");
    }
}

/* A run of fixed-width fields from `first`; returns the index behind it. */
static int emit_run(FILE *out, const struct shape *shape, int first, int version)
{
    int size = 0, count = 0, end = first;
    struct text list;
    text_open(&list);
    for (; end < shape->field_count; end++) {
        const struct field *f = &shape->fields[end];
        if (!field_in(f, version) || is_tagged(f, version)) continue;
        if (!is_fixed(f)) break;
        fprintf(list.out, "{offsetof(struct %s, %s), %s, %d}, ", shape->c_name, f->snake,
                type_marks[f->type], end);
        size += fixed_sizes[f->type];
        count++;
    }
    char *text = text_close(&list);
    fprintf(
        out,
        "    {WIRE_OP_FIXED_RUN, 0, %s, %d, offsetof(struct %s, %s), %d, %d, {.fixed = (const struct "
        "wire_fixed[]){%s}}},\n",
        type_marks[shape->fields[first].type], first, shape->c_name, shape->fields[first].snake,
        size, count, text);
    free(text);
    return end;
}

/* What is not plainly in this version takes its default. Bool, pads and all: one op for each field.
 */
static void emit_absent(FILE *out, const struct shape *shape, int version, int *count)
{
    for (int i = 0; i < shape->field_count; i++) {
        const struct field *f = &shape->fields[i];
        if (field_in(f, version) && !is_tagged(f, version)) continue;
        fprintf(
            out,
            "    {WIRE_OP_ABSENT, 0, %s, %d, offsetof(struct %s, %s), sizeof(((struct %s *)0)->%s), 0, {NULL}},\n",
            type_marks[f->type], i, shape->c_name, f->snake, shape->c_name, f->snake);
        (*count)++;
    }
}

static int emit_ops(FILE *out,
                    const struct message *m,
                    const struct shape *shape,
                    int version,
                    struct forms *all,
                    int *size_min)
{
    int count = 0;
    emit_absent(out, shape, version, &count);
    for (int i = 0; i < shape->field_count;) {
        const struct field *f = &shape->fields[i];
        if (!field_in(f, version) || is_tagged(f, version)) {
            i++;
            continue;
        }
        count++;
        if (is_fixed(f)) {
            int end = emit_run(out, shape, i, version);
            for (; i < end; i++)
                if (field_in(&shape->fields[i], version) && !is_tagged(&shape->fields[i], version))
                    *size_min += fixed_sizes[shape->fields[i].type];
            continue;
        }
        *size_min += field_size_min(m, f, version, all);
        fprintf(out, "    ");
        emit_op(out, m, shape, i, version, all);
        i++;
    }
    if (flexible_in(m, NULL, version)) {
        fprintf(out, "    {WIRE_OP_TAGS, 0, 0, 255, offsetof(struct %s, tags), 0, 0, {NULL}},\n",
                shape->c_name);
        *size_min += 1;
        count++;
    } else if (m->flexible.min <= m->flexible.max) { /* No tags in this version: an empty view. */
        fprintf(
            out,
            "    {WIRE_OP_ABSENT, 0, 0, 255, offsetof(struct %s, tags), sizeof(struct view), 0, {NULL}},\n",
            shape->c_name);
        count++;
    }
    return count;
}

static int emit_tagged(FILE *out,
                       const struct message *m,
                       const struct shape *shape,
                       int version,
                       struct forms *all)
{
    int count = 0;
    for (int tag = 0; tag < 64; tag++) {
        for (int i = 0; i < shape->field_count; i++) {
            const struct field *f = &shape->fields[i];
            if (f->tag != tag || !is_tagged(f, version)) continue;
            fprintf(out, "    {%d, ", tag);
            emit_op(out, m, shape, i, version, all);
            fseek(out, -2, SEEK_CUR);
            fprintf(out, "},\n");
            count++;
        }
    }
    return count;
}

/* The text of one version's form, with @ where the form's number goes. */
static char *form_text(const struct message *m,
                       const struct shape *shape,
                       int version,
                       struct forms *all,
                       int *size_min)
{
    struct text ops, tagged, all_text;
    *size_min = 0;
    text_open(&ops);
    int op_count = emit_ops(ops.out, m, shape, version, all, size_min);
    char *ops_text = text_close(&ops);
    text_open(&tagged);
    int tagged_count =
        flexible_in(m, NULL, version) ? emit_tagged(tagged.out, m, shape, version, all) : 0;
    char *tagged_text = text_close(&tagged);

    text_open(&all_text);
    FILE *out = all_text.out;
    if (op_count > 0)
        fprintf(out, "static const struct wire_op %s_ops@[] = {\n%s};\n", shape->c_name, ops_text);
    if (tagged_count > 0)
        fprintf(out, "static const struct wire_tagged %s_tagged@[] = {\n%s};\n", shape->c_name,
                tagged_text);
    fprintf(out, "static const struct wire_form %s_form@ = {&wire_%s_shape, ", shape->c_name,
            shape->c_name);
    fprintf(out, op_count > 0 ? "%s_ops@, " : "NULL, ", shape->c_name);
    fprintf(out, tagged_count > 0 ? "%s_tagged@, " : "NULL, ", shape->c_name);
    fprintf(out, "%d, %d, %d, %s};\n", op_count, tagged_count, *size_min,
            flexible_in(m, NULL, version) ? "true" : "false");
    free(ops_text);
    free(tagged_text);
    return text_close(&all_text);
}

static void print_numbered(FILE *out, const char *text, int number)
{
    for (; *text != '\0'; text++) {
        if (*text == '@')
            fprintf(out, "%d", number);
        else
            fputc(*text, out);
    }
}

/* Is the struct part of the message in this version? */
static bool shape_in(const struct message *m, const struct shape *shape, int version)
{
    return versions_have(m->valid, version) && versions_have(shape->versions, version);
}

static void resolve(const struct message *m,
                    const struct shape *shape,
                    struct forms *all,
                    bool *done,
                    FILE *out)
{
    if (done[shape->index]) return;
    done[shape->index] = true;
    for (int i = 0; i < shape->field_count; i++)
        if (shape->fields[i].shape != NULL) resolve(m, shape->fields[i].shape, all, done, out);

    struct forms *forms = &all[shape->index];
    for (int v = 0; v < VERSIONS_MAX; v++) {
        forms->of_version[v] = -1;
        if (!shape_in(m, shape, v)) continue;
        int size_min;
        char *text = form_text(m, shape, v, all, &size_min);
        int i = 0;
        while (i < forms->count && strcmp(forms->texts[i], text) != 0)
            i++;
        if (i == forms->count) {
            forms->texts[forms->count] = text;
            forms->size_min[forms->count++] = size_min;
            print_numbered(out, text, i);
        } else {
            free(text);
        }
        forms->of_version[v] = i;
    }
}

void emit_forms(const struct message *m, FILE *out)
{
    struct forms *all = keep(sizeof(*all) * (size_t)m->shape_count);
    bool *done = keep((size_t)m->shape_count);
    if (m->valid.max >= VERSIONS_MAX)
        fail(m->file, "validVersions", "at most %d versions", VERSIONS_MAX);
    resolve(m, m->shapes[0], all, done, out);

    if (m->valid.min > m->valid.max) return;
    fprintf(out, "static const struct wire_form *const %s_forms[] = {", m->snake);
    for (int v = m->valid.min; v <= m->valid.max; v++)
        fprintf(out, "&%s_form%d, ", m->snake, all[0].of_version[v]);
    fprintf(out, "};\n");
}
