/* output.c - see output.h. */
#include "output.h"

#include <stdarg.h>
#include <stdbool.h>
#include <stdlib.h>
#include <unistd.h>

static void check(bool done, const struct output *output)
{
    if (done) return;
    perror(output->path);
    exit(1);
}

struct output output_open(const char *format, ...)
{
    struct output output;
    va_list arguments;
    va_start(arguments, format);
    int size = vsnprintf(output.path, sizeof(output.path), format, arguments);
    va_end(arguments);
    check(size > 0 && size < (int)sizeof(output.path), &output);
    (void)snprintf(output.fresh, sizeof(output.fresh), "%s.new", output.path);
    output.file = fopen(output.fresh, "w+");
    check(output.file != NULL, &output);
    return output;
}

static bool same_content(FILE *a, const char *path)
{
    FILE *b = fopen(path, "r");
    if (b == NULL) return false;
    rewind(a);
    int x, y;
    do {
        x = fgetc(a);
        y = fgetc(b);
    } while (x == y && x != EOF);
    fclose(b);
    return x == y;
}

void output_close(struct output *output)
{
    bool same = fflush(output->file) == 0 && same_content(output->file, output->path);
    check(!ferror(output->file) && fclose(output->file) == 0, output);
    check((same ? unlink(output->fresh) : rename(output->fresh, output->path)) == 0, output);
}
