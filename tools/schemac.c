/* schemac.c - main program and small things of the schema compiler.
 *
 *   schemac SCHEMA_DIR OUTPUT_DIR
 *
 * Writes OUTPUT_DIR/<message>.h for each message, tables_NN.c with their forms, runs.c with code
 * for runs of fixed-width fields, index.c with the lists of messages and APIs, errors.h, errors.c.
 */
#include "schemac.h"

#include <ctype.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define MESSAGES_PER_FILE 12

void fail(const char *file, const char *field, const char *format, ...)
{
    va_list list;
    fprintf(stderr, "schemac: %s: %s%s", file, field != NULL ? field : "",
            field != NULL ? ": " : "");
    va_start(list, format);
    vfprintf(stderr, format, list);
    va_end(list);
    fputc('\n', stderr);
    exit(1);
}

void *keep(size_t size)
{
    void *block = calloc(1, size > 0 ? size : 1);
    if (block == NULL) fail("schemac", NULL, "out of memory");
    return block;
}

char *keep_format(const char *format, ...)
{
    va_list list;
    char *text = NULL;
    va_start(list, format);
    if (vasprintf(&text, format, list) < 0) fail("schemac", NULL, "out of memory");
    va_end(list);
    return text;
}

/* Words that C has taken, and the member that we add. */
static bool is_keyword(const char *name)
{
    static const char *const words[] = {
        "auto",   "break",  "case",     "char",     "const",  "continue", "default", "do",
        "double", "else",   "enum",     "extern",   "float",  "for",      "goto",    "if",
        "inline", "int",    "long",     "register", "return", "short",    "signed",  "sizeof",
        "static", "struct", "switch",   "typedef",  "union",  "unsigned", "void",    "volatile",
        "while",  "bool",   "restrict", "typeof",   "asm",    "tags"};
    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
        if (strcmp(words[i], name) == 0) return true;
    return false;
}

char *snake_case(const char *name)
{
    size_t size = strlen(name);
    char *out = keep(2 * size + 2);
    size_t n = 0;
    for (size_t i = 0; i < size; i++) {
        bool upper = isupper((unsigned char)name[i]);
        bool after_lower = i > 0 && !isupper((unsigned char)name[i - 1]);
        bool before_lower = i + 1 < size && islower((unsigned char)name[i + 1]);
        if (upper && i > 0 && (after_lower || before_lower)) out[n++] = '_';
        out[n++] = (char)tolower((unsigned char)name[i]);
    }
    if (is_keyword(out)) out[n++] = '_';
    return out;
}

/* Number all structs, and place the names of their fields: a server looks some of those up. */
static void number_shapes(struct message **messages, int count)
{
    for (int i = 0; i < count; i++) {
        for (int j = 0; j < messages[i]->shape_count; j++) {
            struct shape *shape = messages[i]->shapes[j];
            shape->number =
                table_add(TABLE_SHAPES, keep_format("    &wire_%s_shape,\n", shape->c_name), 1);
            for (int k = 0; k < shape->field_count; k++)
                (void)text_place(shape->fields[k].name);
        }
    }
}

/* Tables of an earlier run, when there were more messages. */
static void remove_rest(const char *dir, int first)
{
    while (unlink(keep_format("%s/tables_%02d.c", dir, first)) == 0)
        first++;
}

int main(int argc, char **argv)
{
    if (argc != 3) {
        fprintf(stderr, "usage: schemac SCHEMA_DIR OUTPUT_DIR\n");
        return 2;
    }
    const char *dir = argv[2];
    mkdir(dir, 0777);

    int count = 0;
    struct message **messages = schema_read(argv[1], &count);
    for (int i = 0; i < count; i++) {
        check_message(messages[i]);
        layout_message(messages[i]);
        emit_header(messages[i], dir);
    }
    number_shapes(messages, count);
    for (int i = 0; i < count; i += MESSAGES_PER_FILE) {
        int n = count - i < MESSAGES_PER_FILE ? count - i : MESSAGES_PER_FILE;
        emit_tables(messages + i, n, keep_format("%s/tables_%02d.c", dir, i / MESSAGES_PER_FILE));
    }
    remove_rest(dir, (count + MESSAGES_PER_FILE - 1) / MESSAGES_PER_FILE);
    emit_runs(dir);
    emit_index(messages, count, keep_format("%s/index.c", dir));
    emit_shared(messages, count, keep_format("%s/tables.c", dir));
    emit_errors(argv[1], dir);
    return 0;
}
