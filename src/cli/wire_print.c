/* wire_print.c - see wire_print.h. */
#include "cli/wire_print.h"
#include "text/json.h"
#include "text/tree.h"

#include <stdarg.h>

enum { FLUSH_BYTES = 64 * 1024, LINE_JSON_BYTES = 160, TREE_VALUE_BYTES = 96 };

enum cli_exit wire_print_style(struct cli *cli, enum wire_print_style *out)
{
    static const char *const names[] = {"verbose", "json", NULL};
    const char *given;
    enum cli_exit code = cli_only_one(cli, names, &given);
    *out = given == NULL ? WIRE_PRINT_LINE : given == names[0] ? WIRE_PRINT_TREE : WIRE_PRINT_JSON;
    return code;
}

void wire_print_damage(struct wire_printer *printer, const char *name, const char *format, ...)
{
    va_list arguments;
    printer->damaged_count++;
    fprintf(printer->cli->errors, "%s: ", name);
    va_start(arguments, format);
    vfprintf(printer->cli->errors, format, arguments);
    va_end(arguments);
    fputc('\n', printer->cli->errors);
}

static void put_problems(struct wire_printer *printer,
                         const struct node_list *list,
                         const char *name)
{
    struct out text;
    out_init(&text, printer->cli->mem);
    tree_problems(&text, list, name);
    fwrite(text.text == NULL ? "" : text.text, 1, text.size_bytes, printer->cli->errors);
    out_free(&text);
}

/* The correlation id, where the frame is long enough to have one. */
static bool correlation(const struct wire_printed *in, int32_t *id)
{
    bool request = in->kind == NULL || in->kind->message->kind == WIRE_REQUEST;
    uint32_t at = request ? 8 : 4;
    if (in->frame.size < at + 4) return false;
    *id = (int32_t)load_be32(in->frame.data + at);
    return true;
}

/* The body's JSON, cut where the line would get too long. */
static void put_body(struct out *out, struct view json)
{
    const char *start = NULL;
    const char *text = (const char *)json.data;
    for (uint32_t i = 0; i + 7 < json.size && start == NULL; i++)
        if (memcmp(text + i, "\"body\":", 7) == 0) start = text + i + 7;
    if (start == NULL) return;
    size_t size = json.size - (size_t)(start - text) - 1;
    size_t shown = size;
    if (size > LINE_JSON_BYTES) {
        shown = LINE_JSON_BYTES;
        while (shown > 0 && ((uint8_t)start[shown] & 0xc0) == 0x80)
            shown--;
    }
    out_text(out, "  ");
    out_bytes(out, start, shown);
    if (shown < size) out_text(out, "...");
}

static void put_line(struct wire_printer *printer, const struct wire_printed *in)
{
    struct out *out = &printer->cli->out;
    int32_t id;

    out_text(out, in->prefix);
    if (in->kind == NULL) {
        struct frame_head head;
        if (!frame_head(in->frame, &head)) {
            out_format(out, "? %u byte%s\n", in->frame.size, in->frame.size == 1 ? "" : "s");
            return;
        }
        out_format(out, "request key %d v%d", head.api_key, head.version);
    } else {
        out_format(out, "%s %s v%d",
                   in->kind->message->kind == WIRE_REQUEST ? "request " : "response",
                   in->kind->api == NULL ? in->kind->message->name : in->kind->api->name,
                   in->kind->version);
    }
    if (correlation(in, &id)) out_format(out, "  #%d", id);
    out_format(out, "  %u bytes", in->frame.size);
    if (in->kind != NULL && in->kind->header_version >= 0) {
        struct out json;
        out_init(&json, printer->cli->mem);
        (void)json_frame(&json, in->kind, in->frame);
        put_body(out, out_so_far(&json));
        out_free(&json);
    }
    out_char(out, '\n');
}

static void put_tree(struct wire_printer *printer,
                     const struct wire_printed *in,
                     const struct node_list *list)
{
    struct tree_style style = {.color = printer->cli->color, .about_max = TREE_ABOUT_MAX};
    if (printer->frame_count > 1) out_char(&printer->cli->out, '\n');
    if (in->prefix[0] != '\0') out_format(&printer->cli->out, "%s\n", in->prefix);
    tree_print(&printer->cli->out, list, &style);
}

/* What standard error says of the frame, as a last member of its object, which ends in '}'. */
static void put_json_problems(struct out *out, const struct node_list *list)
{
    if (list->problem_count == 0 || out->size_bytes == 0) return;
    out->size_bytes--;
    out_text(out, ",\"problems\":[");
    for (uint32_t i = 0; i < list->problem_count; i++) {
        const struct node_problem *problem = &list->problems[i];
        out_format(out,
                   "%s{\"damage\":%s,\"offset\":%u,\"inflated\":%s,\"field\":", i > 0 ? "," : "",
                   problem->fault ? "true" : "false", problem->offset,
                   problem->inflated ? "true" : "false");
        out_quoted(out, view_of_string(problem->path));
        out_text(out, ",\"what\":");
        out_quoted(out, view_of_string(problem->text));
        out_char(out, '}');
    }
    out_text(out, "]}");
}

/* A record has neither frame nor header: its name says what it is. */
static void put_json_record(struct out *out,
                            const struct wire_printed *in,
                            const struct node_list *list)
{
    const struct frame_kind *kind = in->kind;
    uint32_t at;
    out_format(out, "{\"record\":\"%s\",\"version\":%d", kind->message->name, kind->version);
    if (frame_body_at(list, kind, &at)) {
        out_text(out, ",\"body\":");
        (void)json_write(out, wire_form(kind->message, kind->version),
                         view_of(in->frame.data + at, in->frame.size - at));
    }
    out_char(out, '}');
}

static void put_json(struct wire_printer *printer,
                     const struct wire_printed *in,
                     const struct node_list *list)
{
    struct out *out = &printer->cli->out;
    struct out json;

    out_init(&json, printer->cli->mem);
    if (in->kind != NULL && in->kind->header_version >= 0) {
        (void)json_frame(&json, in->kind, in->frame);
    } else if (in->kind != NULL) {
        put_json_record(&json, in, list);
    } else {
        out_text(&json, "{\"type\":\"unknown\",\"data\":\"");
        out_base64(&json, in->frame);
        out_text(&json, "\"}");
    }
    put_json_problems(&json, list);
    out_format(out, "{%s", in->json_prefix);
    if (json.size_bytes > 0) out_bytes(out, json.text + 1, json.size_bytes - 1);
    out_char(out, '\n');
    if (json.failed) out->failed = true;
    out_free(&json);
}

enum cli_exit wire_print(struct wire_printer *printer, const struct wire_printed *in)
{
    struct arena arena;
    struct node_list list;

    printer->frame_count++;
    arena_init(&arena, printer->cli->mem, 0);
    node_list_init(&list, &arena);
    list.value_limit = TREE_VALUE_BYTES;
    if (in->kind == NULL) {
        frame_unknown_nodes(&list, in->frame);
    } else {
        frame_nodes(&list, in->kind, in->frame);
    }
    switch (printer->style) {
    case WIRE_PRINT_LINE: put_line(printer, in); break;
    case WIRE_PRINT_TREE: put_tree(printer, in, &list); break;
    case WIRE_PRINT_JSON: put_json(printer, in, &list); break;
    }
    put_problems(printer, &list, in->name);
    if (node_list_faulty(&list)) printer->damaged_count++;
    bool failed = arena.failed;
    arena_free(&arena);
    if (failed) return (enum cli_exit)cli_fail(printer->cli, CLI_FAILED, "out of memory");
    return printer->cli->out.size_bytes < FLUSH_BYTES ? CLI_OK : cli_flush(printer->cli);
}
