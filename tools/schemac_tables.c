/* schemac_tables.c - the tables that all messages share: rows are gathered while the messages are
 * written, and are named by their number.
 *
 * A pointer in a table would be relocated when the program starts; numbers leave the page in the
 * file. What has to be an address (defaults, code) is in small tables of pointers. */
#include "schemac.h"

#include "output.h"

#include <string.h>

#define TEXTS_MAX 16384

static struct {
    const char *declaration;
    const char *first; /* A row that stands for none, or NULL. */
    FILE *rows;
    char *text;
    size_t size;
    int count;
} tables[] = {
    [TABLE_FIELDS] = {.declaration = "struct wire_field wire_fields[]"        },
    [TABLE_DEFAULTS] = {.declaration = "void *const wire_defaults_of[]",          .first = "NULL"},
    [TABLE_OPS] = {.declaration = "struct wire_op wire_ops[]"                                                       },
    [TABLE_FIXED] = {.declaration = "struct wire_fixed wire_fixed_fields[]"},
    [TABLE_TAGGED] = {.declaration = "struct wire_tagged wire_tagged_fields[]"                                                       },
    [TABLE_CODES] = {.declaration = "struct wire_code *const wire_codes[]", .first = "NULL"},
    [TABLE_FORMS] = {.declaration = "struct wire_form wire_forms[]"                                        },
    [TABLE_VERSIONS] = {.declaration = "uint16_t wire_form_numbers[]"          },
    [TABLE_SHAPES] = {.declaration = "struct wire_struct *const wire_shapes[]",            .first = "NULL"},
    [TABLE_NOTES] = {.declaration = "uint32_t wire_notes[]"},
    [TABLE_EXTERN] = {.declaration = NULL                                                       },
};

#define TABLE_COUNT (int)(sizeof(tables) / sizeof(tables[0]))

int table_add(enum table table, const char *rows, int count)
{
    int at = tables[table].count;
    if (tables[table].rows == NULL) {
        tables[table].rows = open_memstream(&tables[table].text, &tables[table].size);
        if (tables[table].rows == NULL) fail("schemac", NULL, "out of memory");
        if (tables[table].first != NULL) {
            fprintf(tables[table].rows, "    %s,\n", tables[table].first);
            at = 1;
        }
    }
    fputs(rows, tables[table].rows);
    tables[table].count = at + count;
    if (at + count > UINT16_MAX) fail("schemac", NULL, "more rows than 16 bits can name");
    return at;
}

static struct {
    const char *list[TEXTS_MAX];
    int places[TEXTS_MAX];
    int count;
    int end; /* Where the next one will lie. */
} texts = {.end = 1};

int text_place(const char *text)
{
    if (text == NULL) return 0;
    for (int i = 0; i < texts.count; i++)
        if (strcmp(texts.list[i], text) == 0) return texts.places[i];
    if (texts.count == TEXTS_MAX) fail("schemac", NULL, "more than %d texts", TEXTS_MAX);
    texts.list[texts.count] = text;
    int place = texts.places[texts.count++] = texts.end;
    texts.end += (int)strlen(text) + 1;
    return place;
}

static void emit_texts(FILE *out)
{
    fprintf(out, "const char wire_texts[] =\n    \"\\0\"\n");
    for (int i = 0; i < texts.count; i++) {
        fprintf(out, "    ");
        emit_string(out, texts.list[i]);
        fprintf(out, " \"\\0\"\n");
    }
    fprintf(out, "    ;\n");
}

void emit_shared(struct message **messages, int count, const char *path)
{
    struct output output = output_open("%s", path);
    FILE *out = output.file;
    fprintf(out, "/* Made by schemac: the tables that all messages share. */\n"
                 "#include \"wire/form.h\"\n\n");
    for (int i = 0; i < count; i++)
        fprintf(out, "#include \"gen/%s.h\"\n", messages[i]->snake);
    fprintf(out, "\n%s\n", span_macro);
    for (int i = TABLE_COUNT - 1; i >= 0; i--) {
        (void)table_add((enum table)i, "", 0);
        fclose(tables[i].rows);
        if (tables[i].declaration == NULL)
            fprintf(out, "%s\n", tables[i].text);
        else
            fprintf(out, "const %s = {\n%s};\n\n", tables[i].declaration, tables[i].text);
    }
    emit_texts(out);
    output_close(&output);
}
