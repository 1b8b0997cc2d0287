/* log_dump_line.c - lines of named values as text or JSON; mapped files. See log_dump.h. */
#include "cli/log_dump.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define FLUSH_BYTES (256u * 1024u)

/* ---- files
 * ---------------------------------------------------------------------------------------- */

/* Topic and partition from the folder's name "TOPIC-N", or "TOPIC-N.UUID-delete". */
static void name_partition(struct dump_file *file)
{
    char folder[sizeof(file->topic)] = "";
    char real[4096];
    const char *path = realpath(file->path, real) != NULL ? real : file->path;
    const char *end = strrchr(path, '/');
    if (end == NULL) return;
    const char *start = end;
    while (start > path && start[-1] != '/')
        start--;
    size_t size = (size_t)(end - start);
    if (size == 0 || size >= sizeof(folder)) return;
    memcpy(folder, start, size);
    static const char *const asides[] = {"-delete", "-stray", "-future"};
    for (size_t i = 0; i < ARRAY_SIZE(asides); i++) {
        char *tail = strrchr(folder, '.');
        if (tail != NULL && strstr(tail, asides[i]) != NULL) *tail = '\0';
    }
    char *dash = strrchr(folder, '-');
    if (dash == NULL || dash == folder || dash[1] < '0' || dash[1] > '9') return;
    char *rest;
    long number = strtol(dash + 1, &rest, 10);
    if (*rest != '\0' || number < 0 || number > INT32_MAX) return;
    file->partition = (int32_t)number;
    *dash = '\0';
    memcpy(file->topic, folder, sizeof(folder));
}

bool dump_file_open(struct dump *dump, const char *path, struct dump_file *out)
{
    *out = (struct dump_file){.path = path, .partition = -1};
    const char *slash = strrchr(path, '/');
    out->name = slash == NULL ? path : slash + 1;
    if (out->name[0] >= '0' && out->name[0] <= '9') out->number = strtoll(out->name, NULL, 10);
    name_partition(out);

    struct stat stat;
    int file = open(path, O_RDONLY | O_CLOEXEC);
    if (file < 0 || fstat(file, &stat) != 0) {
        (void)cli_fail(dump->cli, CLI_FAILED, "could not open \"%s\": %s", path, strerror(errno));
        if (file >= 0) (void)close(file);
        dump->problems++;
        return false;
    }
    void *bytes = NULL;
    if (stat.st_size > 0 && stat.st_size <= (off_t)UINT32_MAX)
        bytes = mmap(NULL, (size_t)stat.st_size, PROT_READ, MAP_SHARED, file, 0);
    (void)close(file);
    if (stat.st_size > (off_t)UINT32_MAX || bytes == MAP_FAILED) {
        (void)cli_fail(dump->cli, CLI_FAILED, "could not read \"%s\": %s", path,
                       bytes == MAP_FAILED ? strerror(errno) : "larger than 4 GiB");
        dump->problems++;
        return false;
    }
    out->bytes = view_of(bytes, (uint32_t)stat.st_size);
    return true;
}

void dump_file_close(struct dump_file *file)
{
    if (file->bytes.size > 0) (void)munmap((void *)(uintptr_t)file->bytes.data, file->bytes.size);
    file->bytes = VIEW_EMPTY;
}

bool dump_file_sibling(struct dump *dump,
                       const struct dump_file *file,
                       const char *suffix,
                       struct dump_file *out)
{
    char path[4096];
    const char *dot = strchr(file->name, '.');
    if (dot == NULL) return false;
    const char *next = strchr(dot + 1, '.'); /* ".deleted" and the like stay. */
    int stem = (int)(dot - file->path);
    int size = snprintf(path, sizeof(path), "%.*s.%s%s", stem, file->path, suffix,
                        next == NULL ? "" : next);
    if (size < 0 || (size_t)size >= sizeof(path) || access(path, F_OK) != 0) return false;
    bool opened = dump_file_open(dump, path, out);
    out->path = file->path; /* The buffer goes; problems are said of the asking file. */
    out->name = file->name;
    return opened;
}

/* ---- lines
 * ---------------------------------------------------------------------------------------- */

static bool silent(const struct dump *dump)
{
    return dump->quiet && !dump->problem_line;
}

void dump_line(struct dump *dump, const char *type, const char *mark)
{
    dump->first = true;
    if (silent(dump)) return;
    if (dump->json) {
        out_format(dump->out, "{\"type\":\"%s\"", type);
    } else if (mark[0] != '\0') {
        out_text(dump->out, mark);
        dump->first = false;
    }
}

void dump_name(struct dump *dump, const char *name)
{
    if (silent(dump)) return;
    if (dump->json) {
        out_format(dump->out, ",\"%s\":", name);
        return;
    }
    out_format(dump->out, "%s%s: ", dump->first ? "" : " ", name);
    dump->first = false;
}

void dump_number(struct dump *dump, const char *name, int64_t value)
{
    if (silent(dump)) return;
    dump_name(dump, name);
    out_format(dump->out, "%lld", (long long)value);
}

void dump_text(struct dump *dump, const char *name, const char *value)
{
    if (silent(dump)) return;
    dump_name(dump, name);
    if (dump->json)
        out_quoted(dump->out, view_of_string(value));
    else
        out_text(dump->out, value);
}

void dump_bool(struct dump *dump, const char *name, bool value)
{
    if (silent(dump)) return;
    dump_name(dump, name);
    out_text(dump->out, value ? "true" : "false");
}

void dump_bytes(struct dump *dump, const char *name, struct view value)
{
    if (silent(dump)) return;
    if (dump->json && !value.null && !out_is_utf8(value)) {
        out_format(dump->out, ",\"%sBase64\":\"", name);
        out_base64(dump->out, value);
        out_char(dump->out, '"');
        return;
    }
    dump_name(dump, name);
    if (value.null) {
        out_text(dump->out, "null");
    } else if (dump->json) {
        out_quoted(dump->out, value);
    } else {
        bool cut = dump->value_limit > 0 && value.size > dump->value_limit;
        out_literal(dump->out, cut ? view_of(value.data, dump->value_limit) : value);
        if (cut) out_text(dump->out, "...");
    }
}

void dump_end(struct dump *dump)
{
    if (silent(dump)) return;
    if (dump->json) out_char(dump->out, '}');
    out_char(dump->out, '\n');
}

void dump_problem(struct dump *dump, struct dump_file *file, int64_t at, const char *format, ...)
{
    char text[512];
    va_list arguments;
    va_start(arguments, format);
    (void)vsnprintf(text, sizeof(text), format, arguments);
    va_end(arguments);

    file->problems++;
    dump->problems++;
    dump->problem_line = true;
    dump_line(dump, "problem", "PROBLEM");
    if (dump->json || dump->quiet) dump_text(dump, "file", file->path);
    if (at >= 0) dump_number(dump, "position", at);
    dump_text(dump, "text", text);
    dump_end(dump);
    dump->problem_line = false;
}

bool dump_flush(struct dump *dump)
{
    if (dump->out->size_bytes < FLUSH_BYTES) return true;
    return cli_flush(dump->cli) == CLI_OK;
}
