/* schemac_forms.c - resolve each version of each struct into a flat list of operations.
 *
 * Versions whose lists are the same share one form: the lists are made as text and compared. */
#include "schemac.h"

#include <stdlib.h>
#include <string.h>

static const char *const type_marks[] = {"WIRE_BOOL",  "WIRE_INT8",   "WIRE_INT16", "WIRE_UINT16",
                                         "WIRE_INT32", "WIRE_UINT32", "WIRE_INT64", "WIRE_FLOAT64",
                                         "WIRE_UUID",  "WIRE_STRING", "WIRE_BYTES", "WIRE_RECORDS",
                                         "WIRE_STRUCT"};

#define VERSIONS_MAX 64
#define RUNS_MAX     4096

/* One version of a struct as C text. In `unit`, the code of a busy message, @ stands for the form's
 * number in its struct, $ for its number in wire_forms. */
struct form {
    char *ops, *tagged, *unit;
    int op_count, absent_count, tagged_count;
    int size_min;
    bool flexible;
};

/* The forms of one struct: which version has which. */
struct forms {
    struct form *list[VERSIONS_MAX]; /* The distinct ones. */
    int count;
    int of_version[VERSIONS_MAX]; /* -1: none */
    int numbers[VERSIONS_MAX];    /* In wire_forms, by distinct form. */
};

/* Runs of fixed-width fields that are in a table already. */
static struct {
    const char *rows[RUNS_MAX];
    int starts[RUNS_MAX];
    int count;
} runs;

static bool flexible_in(const struct message *m, const struct field *f, int version)
{
    return versions_have(m->flexible, version) && !(f != NULL && f->never_flexible);
}

static bool is_fixed(const struct field *f)
{
    return !f->array && wire_sizes[f->type] > 0;
}

static bool is_tagged(const struct field *f, int version)
{
    return versions_have(f->tagged, version);
}

/* Written in its place in this version. */
static bool is_plain(const struct field *f, int version)
{
    return field_in(f, version) && !is_tagged(f, version);
}

static const char *flags_of(const struct message *m, const struct field *f, int version)
{
    /* A struct has no length; a tagged one that may be null has a varint before it. */
    if (f->type == TYPE_STRUCT && !f->array)
        return field_is_pointer(f) && is_tagged(f, version) ? "WIRE_OP_COMPACT" : "0";
    bool compact = flexible_in(m, f, version);
    bool nullable = versions_have(f->nullable, version);
    if (compact && nullable) return "WIRE_OP_COMPACT | WIRE_OP_NULLABLE";
    return compact ? "WIRE_OP_COMPACT" : nullable ? "WIRE_OP_NULLABLE" : "0";
}

static const char *code_of(const struct field *f, int version)
{
    if (f->array) {
        if (f->type == TYPE_STRUCT) return "WIRE_OP_ARRAY_STRUCT";
        return wire_sizes[f->type] > 0 ? "WIRE_OP_ARRAY_FIXED" : "WIRE_OP_ARRAY_STRING";
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

static const char *kind_of(const struct field *f)
{
    if (!f->array) return NULL;
    if (f->type == TYPE_STRUCT) return "struct";
    return wire_sizes[f->type] > 0 ? "fixed" : "string";
}

/* Fewest bytes of a field on the wire. */
static int field_size_min(const struct message *m,
                          const struct field *f,
                          int version,
                          struct forms *all)
{
    bool compact = flexible_in(m, f, version);
    if (is_fixed(f)) return wire_sizes[f->type];
    if (f->array || f->type == TYPE_BYTES || f->type == TYPE_RECORDS) return compact ? 1 : 4;
    if (f->type == TYPE_STRING) return compact ? 1 : 2;
    if (versions_have(f->nullable, version)) return 1;
    struct forms *inner = &all[f->shape->index];
    return inner->list[inner->of_version[version]]->size_min;
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

/* One operation, its texts ready to be printed. */
struct op {
    const char *code, *flags, *type, *offset, *size;
    int more;
    const char *kind; /* Of an array's elements: "fixed", "string" or "struct"; else NULL. */
    int field, count;
    int size_min;        /* Fewest bytes on the wire. */
    int run;             /* Of a run: its number. */
    const char *element; /* Of an array of structs: the struct's C name; else NULL. */
    int element_form;
};

#define OPS_MAX 256

struct ops {
    struct op list[OPS_MAX];
    int count;
    int absent_count;
};

static bool is_run(const struct op *op)
{
    return strcmp(op->code, "WIRE_OP_FIXED_RUN") == 0;
}

static bool is_tags(const struct op *op)
{
    return strcmp(op->code, "WIRE_OP_TAGS") == 0;
}

static const char *offset_of(const struct shape *shape, const char *member)
{
    return keep_format("offsetof(struct %s, %s)", shape->c_name, member);
}

static struct op *ops_add(const struct message *m, struct ops *ops)
{
    if (ops->count == OPS_MAX) fail(m->file, NULL, "more than %d operations", OPS_MAX);
    return &ops->list[ops->count++];
}

/* The index of a run's first field in wire_fixed_fields; runs that are the same are there once. */
static int run_start(const struct shape *shape, const int *fields, int count)
{
    const char *list = "";
    for (int i = 0; i < count; i++) {
        const struct field *f = &shape->fields[fields[i]];
        list =
            keep_format("%s    {%d, %s, %d},\n", list, f->c_offset, type_marks[f->type], fields[i]);
    }
    for (int i = 0; i < runs.count; i++)
        if (strcmp(runs.rows[i], list) == 0) return runs.starts[i];
    if (runs.count == RUNS_MAX) fail("schemac", NULL, "more than %d runs", RUNS_MAX);
    runs.rows[runs.count] = list;
    return runs.starts[runs.count++] = table_add(TABLE_FIXED, list, count);
}

/* Fewest bytes of an element of an array that is no struct. */
static int element_size(const struct message *m, const struct field *f, int version)
{
    if (wire_sizes[f->type] > 0) return wire_sizes[f->type];
    return flexible_in(m, f, version) ? 1 : f->type == TYPE_STRING ? 2 : 4;
}

/* The operation of one field by itself. */
static struct op op_of(const struct message *m,
                       const struct shape *shape,
                       int field,
                       int version,
                       struct forms *all)
{
    const struct field *f = &shape->fields[field];
    struct op op = {.code = code_of(f, version),
                    .flags = flags_of(m, f, version),
                    .type = type_marks[f->type],
                    .offset = offset_of(shape, f->snake),
                    .size = "0",
                    .kind = kind_of(f),
                    .field = field,
                    .size_min = field_size_min(m, f, version, all)};
    if (f->type == TYPE_STRUCT) {
        int form = all[f->shape->index].of_version[version];
        if (form < 0) fail(m->file, f->name, "its struct has no version %d", version);
        if (f->array && all[f->shape->index].list[form]->size_min == 0)
            fail(m->file, f->name, "an element of it may take no byte in version %d", version);
        op.more = all[f->shape->index].numbers[form];
        op.element = f->array ? f->shape->c_name : NULL;
        if (f->array) {
            op.size = keep_format("sizeof(struct %s)", f->shape->c_name);
            op.count = all[f->shape->index].list[form]->size_min;
        }
        op.element_form = form;
    } else if (f->array) {
        op.size = keep_format("%d", element_size(m, f, version));
    } else if (is_fixed(f)) {
        op.flags = "0";
        op.size = keep_format("%d", wire_sizes[f->type]);
        op.count = 1;
        op.run = run_number(shape, &field, 1);
        op.more = run_start(shape, &field, 1);
    }
    return op;
}

/* A run of fixed-width fields from `first`; returns the index behind it. */
static int add_run(const struct message *m,
                   const struct shape *shape,
                   int first,
                   int version,
                   struct ops *ops)
{
    int size = 0, count = 0, end = first;
    int *fields = keep(sizeof(fields[0]) * (size_t)shape->field_count);
    for (; end < shape->field_count; end++) {
        const struct field *f = &shape->fields[end];
        if (!is_plain(f, version)) continue;
        if (!is_fixed(f)) break;
        fields[count++] = end;
        size += wire_sizes[f->type];
    }
    int run = run_number(shape, fields, count);
    *ops_add(m, ops) = (struct op){.code = "WIRE_OP_FIXED_RUN",
                                   .flags = "0",
                                   .type = type_marks[shape->fields[first].type],
                                   .offset = offset_of(shape, shape->fields[first].snake),
                                   .size = keep_format("%d", size),
                                   .more = run_start(shape, fields, count),
                                   .run = run,
                                   .field = first,
                                   .count = count,
                                   .size_min = size};
    return end;
}

/* What is not plainly in this version takes its default: one operation for neighbours in the
 * struct, the pads between them included. `tags`, the last member, takes part in a version that has
 * none. */
static void add_absent(const struct message *m,
                       const struct shape *shape,
                       int version,
                       struct ops *ops)
{
    bool has_tags = m->flexible.min <= m->flexible.max;
    bool no_tags = has_tags && !flexible_in(m, NULL, version);
    int count = shape->field_count;
    for (int i = 0; i <= count;) {
        int end = i;
        while (end < count && !is_plain(&shape->fields[end], version))
            end++;
        int fields = end - i;
        bool tags = end == count && no_tags;
        if (fields > 0 || tags) {
            const char *first = fields > 0 ? shape->fields[i].snake : "tags";
            const char *last = tags ? "tags" : shape->fields[end - 1].snake;
            *ops_add(m, ops) =
                (struct op){.code = "WIRE_OP_ABSENT",
                            .flags = "0",
                            .type = fields > 0 ? type_marks[shape->fields[i].type] : "0",
                            .offset = offset_of(shape, first),
                            .size = keep_format("SPAN(%s, %s, %s)", shape->c_name, first, last),
                            .field = fields > 0 ? i : 255,
                            .count = fields};
        }
        i = end + 1;
    }
    ops->absent_count = ops->count;
}

static void make_ops(const struct message *m,
                     const struct shape *shape,
                     int version,
                     struct forms *all,
                     struct ops *ops)
{
    ops->count = 0;
    add_absent(m, shape, version, ops);
    for (int i = 0; i < shape->field_count;) {
        const struct field *f = &shape->fields[i];
        if (!is_plain(f, version)) {
            i++;
        } else if (is_fixed(f)) {
            i = add_run(m, shape, i, version, ops);
        } else {
            *ops_add(m, ops) = op_of(m, shape, i, version, all);
            i++;
        }
    }
    if (flexible_in(m, NULL, version))
        *ops_add(m, ops) = (struct op){.code = "WIRE_OP_TAGS",
                                       .flags = "0",
                                       .type = "0",
                                       .offset = offset_of(shape, "tags"),
                                       .size = "0",
                                       .field = 255,
                                       .size_min = 1};
}

static void print_op(FILE *out, const struct op *op, int rest)
{
    fprintf(out, "{%s, %s, %s, %d, %s, %s, %d, %d, %d, %d}", op->code, op->flags, op->type,
            op->field, op->offset, op->size, op->count, rest, op->run, op->more);
}

/* Print the operations, each with the smallest size of those behind it. Returns that of all. */
static int print_ops(FILE *out, const struct ops *ops)
{
    int rest = 0;
    for (int i = 0; i < ops->count; i++)
        rest += ops->list[i].size_min;
    int size_min = rest;
    if (size_min > 65535) fail("schemac", NULL, "a struct of more than 65535 bytes");
    for (int i = 0; i < ops->count; i++) {
        rest -= ops->list[i].size_min;
        fprintf(out, "    ");
        print_op(out, &ops->list[i], rest);
        fprintf(out, ",\n");
    }
    return size_min;
}

static int print_tagged(FILE *out,
                        const struct message *m,
                        const struct shape *shape,
                        int version,
                        struct forms *all)
{
    int count = 0;
    for (int tag = 0; tag <= TAG_MAX; tag++) {
        for (int i = 0; i < shape->field_count; i++) {
            const struct field *f = &shape->fields[i];
            if (f->tag != tag || !is_tagged(f, version)) continue;
            struct op op = op_of(m, shape, i, version, all);
            fprintf(out, "    {%d, %d, ", tag, op.size_min);
            print_op(out, &op, 0);
            fprintf(out, "},\n");
            count++;
        }
    }
    return count;
}

/* Messages whose operations are also unrolled into code, in flexible versions: what a server does
 * all day. */
static const char *const busy_messages[] = {
    "RequestHeader",
    "ResponseHeader",
    "ApiVersionsResponse",
    "HeartbeatRequest",
    "HeartbeatResponse",
    "BrokerHeartbeatRequest",
    "BrokerHeartbeatResponse",
    "ConsumerGroupHeartbeatRequest",
    "ConsumerGroupHeartbeatResponse",
    "FetchRequest",
    "FetchResponse",
    "ProduceRequest",
    "ProduceResponse",
    "MetadataResponse",
    "JoinGroupResponse",
    "OffsetCommitRequest",
    "OffsetCommitResponse",
};

static bool is_busy(const struct message *m, int version)
{
    for (size_t i = 0; i < sizeof(busy_messages) / sizeof(busy_messages[0]); i++)
        if (strcmp(busy_messages[i], m->name) == 0) return flexible_in(m, NULL, version);
    return false;
}

/* A struct of fixed-width fields alone is worth no call per element. */
static const char *inline_text(const struct ops *ops)
{
    for (int i = ops->absent_count; i < ops->count; i++)
        if (!is_run(&ops->list[i]) && !is_tags(&ops->list[i])) return "static inline";
    return "static inline __attribute__((always_inline))";
}

/* The form as straight code; its operations are constants that the compiler folds. */
static void print_reader(FILE *out, const struct shape *shape, const struct ops *ops)
{
    const char *c = shape->c_name;
    fprintf(out,
            "%s const uint8_t *%s_read@(struct wire_decoder *d, const uint8_t *at, uint8_t "
            "*out)\n{\n",
            inline_text(ops), c);
    for (int i = 0; i < ops->count; i++) {
        const struct op *op = &ops->list[i];
        if (is_run(op)) {
            run_moves(out, op->run, "read", keep_format("out + %s", op->offset));
            fprintf(out, "    at += %s;\n", op->size);
            continue;
        }
        if (i < ops->absent_count) {
            const char *defaults =
                shape->has_defaults ? keep_format("&wire_%s_defaults", c) : "NULL";
            fprintf(out, "    wire_read_absent(%s, &%s_ops@[%d], out);\n", defaults, c, i);
            continue;
        }
        if (op->element != NULL)
            fprintf(out, "    at = wire_read_structs(d, at, &%s_ops@[%d], out, %s_read%d);\n", c, i,
                    op->element, op->element_form);
        else if (op->kind != NULL)
            fprintf(out, "    at = wire_read_%s_items(d, at, &%s_ops@[%d], out);\n", op->kind, c,
                    i);
        else
            fprintf(out, "    at = wire_read_op(d, at, &wire_forms[$], &%s_ops@[%d], out);\n", c,
                    i);
        fprintf(out, "    if (UNLIKELY(at == NULL)) return NULL;\n");
    }
    fprintf(out, "    return at;\n}\n");
}

/* A C expression: is the field at `place` at its default? */
static const char *default_test(const struct field *f, const char *place)
{
    bool null = field_default_is_null(f);
    if (f->array) return keep_format("%s.count == %d", place, null ? -1 : 0);
    if (field_is_pointer(f)) return NULL;
    if (f->type == TYPE_STRUCT) {
        const char *all = keep_format("%s.tags.size == 0", place);
        for (int i = 0; i < f->shape->field_count && all != NULL; i++) {
            const struct field *inner = &f->shape->fields[i];
            const char *test = default_test(inner, keep_format("%s.%s", place, inner->snake));
            all = test != NULL ? keep_format("%s && %s", all, test) : NULL;
        }
        return all;
    }
    if (f->type == TYPE_UUID) return keep_format("uuid_is_zero(%s)", place);
    if (f->type == TYPE_FLOAT64 || wire_sizes[f->type] == 0) {
        if (null) return keep_format("%s.null", place);
        bool empty = f->default_text == NULL || f->default_text[0] == '\0';
        return empty && wire_sizes[f->type] == 0
                   ? keep_format("!%s.null && %s.size == 0", place, place)
                   : NULL;
    }
    const char *text = f->default_text;
    if (text == NULL || text[0] == '\0') text = f->type == TYPE_BOOL ? "false" : "0";
    return keep_format("%s == %s", place, text);
}

/* Is any tagged field set? Without a call, where the tests are plain enough. */
static void print_tag_test(FILE *out, const struct shape *shape, int version)
{
    const char *c = shape->c_name;
    fprintf(out,
            "static inline bool %s_tagged_set@(const uint8_t *in)\n{\n"
            "    const struct %s *s = (const void *)in;\n    return s->tags.size > 0",
            c, c);
    for (int i = 0; i < shape->field_count; i++) {
        const struct field *f = &shape->fields[i];
        if (!is_tagged(f, version)) continue;
        const char *test = default_test(f, keep_format("s->%s", f->snake));
        if (test != NULL)
            fprintf(out, " ||\n           !(%s)", test);
        else
            fprintf(
                out,
                " ||\n           !wire_field_is_default(&wire_%s_shape.fields[%d], &wire_%s_shape, in)",
                c, i, c);
    }
    fprintf(out, ";\n}\n");
}

static void print_measurer(FILE *out, const struct shape *shape, const struct ops *ops)
{
    const char *c = shape->c_name;
    fprintf(out,
            "%s size_t %s_extra@(const uint8_t *in, struct wire_external *x)\n{\n"
            "    size_t extra = 0;\n",
            inline_text(ops), c);
    for (int i = ops->absent_count; i < ops->count; i++) {
        const struct op *op = &ops->list[i];
        if (is_run(op)) continue;
        if (is_tags(op))
            fprintf(
                out,
                "    if (%s_tagged_set@(in)) extra += wire_extra_tags(&wire_forms[$], in, x);\n",
                c);
        else if (op->element != NULL)
            fprintf(out, "    extra += wire_extra_structs(&%s_ops@[%d], in + %s, x, %s_extra%d);\n",
                    c, i, op->offset, op->element, op->element_form);
        else
            fprintf(out, "    extra += wire_extra_op(&wire_forms[$], &%s_ops@[%d], in, x);\n", c,
                    i);
    }
    fprintf(out, "    return extra;\n}\n");
}

static void print_writer(FILE *out, const struct shape *shape, const struct ops *ops)
{
    const char *c = shape->c_name;
    fprintf(out,
            "%s uint8_t *%s_write@(struct wire_encoder *e, uint8_t *at, const uint8_t *in)\n{\n",
            inline_text(ops), c);
    for (int i = ops->absent_count; i < ops->count; i++) {
        const struct op *op = &ops->list[i];
        if (is_run(op)) {
            run_moves(out, op->run, "write", keep_format("in + %s", op->offset));
            fprintf(out, "    at += %s;\n", op->size);
        } else if (op->kind != NULL) {
            if (op->element != NULL)
                fprintf(out,
                        "    at = wire_write_structs(e, at, &%s_ops@[%d], in + %s, %s_write%d);\n",
                        c, i, op->offset, op->element, op->element_form);
            else
                fprintf(out, "    at = wire_write_%s_items(e, at, &%s_ops@[%d], in + %s);\n",
                        op->kind, c, i, op->offset);
        } else if (is_tags(op)) {
            fprintf(
                out,
                "    if (%s_tagged_set@(in)) return wire_write_tags(e, at, &wire_forms[$], in);\n",
                c);
            fprintf(out, "    *at++ = 0;\n");
        } else {
            fprintf(out, "    at = wire_write_op(e, at, &wire_forms[$], &%s_ops@[%d], in);\n", c,
                    i);
        }
    }
    fprintf(out, "    return at;\n}\n");
}

static void print_code(FILE *out, const struct shape *shape, const struct ops *ops, int version)
{
    const char *c = shape->c_name;
    print_reader(out, shape, ops);
    print_tag_test(out, shape, version);
    print_measurer(out, shape, ops);
    print_writer(out, shape, ops);
    fprintf(out, "const struct wire_code wire_%s_code@ = {%s_read@, %s_extra@, %s_write@};\n", c, c,
            c, c);
}

static struct form *make_form(const struct message *m,
                              const struct shape *shape,
                              int version,
                              struct forms *all)
{
    struct form *form = keep(sizeof(*form));
    struct ops *ops = keep(sizeof(*ops));
    struct text text;
    make_ops(m, shape, version, all, ops);
    form->op_count = ops->count;
    form->absent_count = ops->absent_count;
    form->flexible = flexible_in(m, NULL, version);
    text_open(&text);
    form->size_min = print_ops(text.out, ops);
    form->ops = text_close(&text);

    text_open(&text);
    if (form->flexible) form->tagged_count = print_tagged(text.out, m, shape, version, all);
    form->tagged = text_close(&text);

    text_open(&text);
    if (is_busy(m, version)) {
        /* Its own copy of the operations, for the compiler to fold. */
        fprintf(text.out, "static const struct wire_op %s_ops@[] = {\n%s};\n", shape->c_name,
                form->ops);
        print_code(text.out, shape, ops, version);
    }
    form->unit = text_close(&text);
    return form;
}

static bool form_same(const struct form *a, const struct form *b)
{
    return strcmp(a->ops, b->ops) == 0 && strcmp(a->tagged, b->tagged) == 0 &&
           strcmp(a->unit, b->unit) == 0 && a->flexible == b->flexible;
}

static void print_unit(FILE *out, const char *text, int number, int number_of_all)
{
    for (; *text != '\0'; text++) {
        if (*text == '@')
            fprintf(out, "%d", number);
        else if (*text == '$')
            fprintf(out, "%d", number_of_all);
        else
            fputc(*text, out);
    }
}

/* A form that its struct did not have yet: its code goes to `out`. */
static void add_form(const struct shape *shape, struct forms *forms, struct form *form, FILE *out)
{
    int i = forms->count++, code = 0;
    if (form->unit[0] != '\0') {
        const char *name = keep_format("wire_%s_code%d", shape->c_name, i);
        (void)table_add(TABLE_EXTERN, keep_format("extern const struct wire_code %s;\n", name), 0);
        code = table_add(TABLE_CODES, keep_format("    &%s,\n", name), 1);
    }
    int ops = table_add(TABLE_OPS, form->ops, form->op_count);
    int tagged = table_add(TABLE_TAGGED, form->tagged, form->tagged_count);
    const char *row = keep_format("    {%d, %d, %d, %d, %d, %d, %d, %d, %s},\n", shape->number, ops,
                                  tagged, code, form->op_count, form->size_min, form->absent_count,
                                  form->tagged_count, form->flexible ? "true" : "false");
    forms->list[i] = form;
    forms->numbers[i] = table_add(TABLE_FORMS, row, 1);
    print_unit(out, form->unit, i, forms->numbers[i]);
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
        struct form *form = make_form(m, shape, v, all);
        int i = 0;
        while (i < forms->count && !form_same(forms->list[i], form))
            i++;
        if (i == forms->count) add_form(shape, forms, form, out);
        forms->of_version[v] = i;
    }
}

int emit_forms(const struct message *m, FILE *out)
{
    struct forms *all = keep(sizeof(*all) * (size_t)m->shape_count);
    bool *done = keep((size_t)m->shape_count);
    if (m->valid.max >= VERSIONS_MAX)
        fail(m->file, "validVersions", "at most %d versions", VERSIONS_MAX);
    resolve(m, m->shapes[0], all, done, out);

    int first = table_add(TABLE_VERSIONS, "", 0);
    for (int v = m->valid.min; v <= m->valid.max; v++)
        (void)table_add(TABLE_VERSIONS,
                        keep_format("    %d,\n", all[0].numbers[all[0].of_version[v]]), 1);
    return first;
}
