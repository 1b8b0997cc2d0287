/* schemac_layout.c - where members lie in the generated structs, and the runs of fixed-width
 * fields.
 *
 * A run is straight code that moves some neighbouring fields between wire and struct. Runs of the
 * same types at the same distances are one function, whatever message they are from; that needs the
 * layout of the structs, which is computed here by the rules of a 64-bit ABI and asserted in the
 * generated code. */
#include "schemac.h"

#include "output.h"

#include <string.h>

const int wire_sizes[] = {1, 1, 2, 2, 4, 4, 8, 8, 16, 0, 0, 0, 0};

/* Size and alignment in C: by type, then views, arrays and pointers. */
static const int c_aligns[] = {1, 1, 2, 2, 4, 4, 8, 8, 1};

#define VIEW_SIZE    16
#define ARRAY_SIZE   16
#define POINTER_SIZE 8
#define WORD_ALIGN   8

#define RUNS_MAX 1024

static struct {
    char *signatures[RUNS_MAX];
    int count;
} runs;

static int round_up(int n, int align)
{
    return (n + align - 1) / align * align;
}

static int place(struct shape *shape, int size, int align)
{
    int offset = round_up(shape->c_size, align);
    shape->c_size = offset + size;
    if (align > shape->c_align) shape->c_align = align;
    return offset;
}

static void layout_shape(const struct message *m, struct shape *shape)
{
    if (shape->c_size > 0) return;
    shape->c_align = 1;
    for (int i = 0; i < shape->field_count; i++) {
        struct field *f = &shape->fields[i];
        if (f->shape != NULL) layout_shape(m, f->shape);
        if (f->array)
            f->c_offset = place(shape, ARRAY_SIZE, WORD_ALIGN);
        else if (field_is_pointer(f))
            f->c_offset = place(shape, POINTER_SIZE, WORD_ALIGN);
        else if (f->type == TYPE_STRUCT)
            f->c_offset = place(shape, f->shape->c_size, f->shape->c_align);
        else if (wire_sizes[f->type] > 0)
            f->c_offset = place(shape, wire_sizes[f->type], c_aligns[f->type]);
        else
            f->c_offset = place(shape, VIEW_SIZE, WORD_ALIGN);
    }
    if (m->flexible.min <= m->flexible.max) (void)place(shape, VIEW_SIZE, WORD_ALIGN);
    if (shape->c_size == 0) (void)place(shape, 1, 1);
    shape->c_size = round_up(shape->c_size, shape->c_align);
}

void layout_message(struct message *m)
{
    for (int i = 0; i < m->shape_count; i++)
        layout_shape(m, m->shapes[i]);
}

int run_number(const struct shape *shape, const int *fields, int count)
{
    static const char letters[] = "bchhiilld"; /* Types that are moved alike have one letter. */
    char *signature = "";
    int first = shape->fields[fields[0]].c_offset;
    for (int i = 0; i < count; i++) {
        const struct field *f = &shape->fields[fields[i]];
        signature = keep_format("%s %c%d", signature, letters[f->type], f->c_offset - first);
    }
    for (int i = 0; i < runs.count; i++)
        if (strcmp(runs.signatures[i], signature) == 0) return i;
    if (runs.count == RUNS_MAX) fail("schemac", NULL, "more than %d kinds of runs", RUNS_MAX);
    runs.signatures[runs.count] = signature;
    return runs.count++;
}

void run_moves(FILE *out, int number, const char *verb, const char *memory)
{
    const char *signature = runs.signatures[number];
    static const char marks[][2][16] = {
        {"b", "WIRE_BOOL" },
        {"c", "WIRE_INT8" },
        {"h", "WIRE_INT16"},
        {"i", "WIRE_INT32"},
        {"l", "WIRE_INT64"},
        {"d", "WIRE_UUID" }
    };
    static const int sizes[] = {1, 1, 2, 4, 8, 16};
    int at = 0, offset, used;
    char letter;
    for (; sscanf(signature, " %c%d%n", &letter, &offset, &used) == 2; signature += used) {
        for (int i = 0; i < 6; i++) {
            if (marks[i][0][0] != letter) continue;
            fprintf(out, "    wire_%s_fixed(at + %d, %s, %s + %d);\n", verb, at, marks[i][1],
                    memory, offset);
            at += sizes[i];
        }
    }
}

void emit_runs(const char *dir)
{
    struct output output = output_open("%s/runs.c", dir);
    FILE *out = output.file;
    fprintf(out,
            "/* Made by schemac: b bool, c int8, h int16, i int32, l int64, d uuid, each with its "
            "distance from the first. */\n"
            "#include \"wire/read.h\"\n#include \"wire/write.h\"\n");
    for (int i = 0; i < runs.count; i++) {
        fprintf(out, "\n/*%s */\nstatic void read%d(const uint8_t *at, uint8_t *out)\n{\n",
                runs.signatures[i], i);
        run_moves(out, i, "read", "out");
        fprintf(out, "}\n\nstatic void write%d(uint8_t *at, const uint8_t *in)\n{\n", i);
        run_moves(out, i, "write", "in");
        fprintf(out, "}\n");
    }
    fprintf(out, "\nconst struct wire_run wire_runs[] = {\n");
    for (int i = 0; i < runs.count; i++)
        fprintf(out, "    {read%d, write%d},\n", i, i);
    fprintf(out, "};\n");
    output_close(&output);
}
