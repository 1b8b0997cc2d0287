/* page_site.c - what a site has beside the pages: head and foot of each, the index, the search. */
#include "gen/errors.h"
#include "text/page_html.h"
#include "text/page_parts.h"
#include "text/schema.h"

enum { PATH_BYTES = 512 };

void page_html_head(struct out *out, const char *title, bool alone)
{
    struct page_asset assets[PAGE_ASSETS];

    page_assets(assets);
    out_format(out,
               "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
               "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
               "<meta name=\"color-scheme\" content=\"light dark\">\n<title>%s</title>\n",
               title);
    if (alone) {
        out_text(out, "<style>\n");
        out_view(out, assets[0].bytes);
        out_text(out, "</style>\n</head>\n<body>\n");
    } else {
        out_text(
            out,
            "<link rel=\"stylesheet\" href=\"wire.css\">\n"
            "<script>try{document.documentElement.dataset.theme="
            "localStorage.getItem('theme')||''}catch(e){}</script>\n"
            "</head>\n<body>\n<header class=\"top\"><a class=\"home\" href=\"index.html\">"
            "All Kafka APIs</a><label class=\"search\"><span>Search</span><input id=\"q\" "
            "type=\"search\" placeholder=\"API, field, record, error &hellip;\" autocomplete=\"off\" "
            "spellcheck=\"false\" aria-controls=\"hits\"><kbd>/</kbd></label>"
            "<button id=\"theme\" type=\"button\" title=\"Light or dark\">"
            "<span aria-hidden=\"true\">&#9680;</span><span class=\"hide\">Light or dark"
            "</span></button></header>\n<div id=\"hits\" hidden></div>\n");
    }
}

void page_html_foot(struct out *out, bool alone)
{
    struct page_asset assets[PAGE_ASSETS];

    page_assets(assets);
    out_text(out,
             "<footer>Names, types and versions are those of Apache Kafka 4.4 and 3.9; the words "
             "are Dohle's. Apache Kafka is a trademark of the Apache Software Foundation, which "
             "has no part in this.</footer>\n");
    if (alone) {
        out_text(out, "<script>\n");
        out_view(out, assets[1].bytes);
        out_text(out, "</script>\n");
    } else {
        out_text(out, "<script src=\"search.js\" defer></script>\n"
                      "<script src=\"wire.js\" defer></script>\n");
    }
    out_text(out, "</body>\n</html>\n");
}

/* ---- the index ------------------------------------------------------------------------------- */

static void put_versions(struct out *out, const struct page_subject *subject)
{
    const struct wire_api *api = subject->api;
    for (int16_t v = subject->message->version_min; v <= subject->message->version_max; v++) {
        bool served = api == NULL || (v >= api->served_min && v <= api->served_max);
        out_text(out, "<a href=\"");
        page_file_name(out, subject, v);
        out_format(out, "\"%s>%d</a> ", served ? "" : " class=\"old\"", v);
    }
}

static void put_range(struct out *out, int16_t min, int16_t max)
{
    if (min > max) {
        out_text(out, "none");
    } else {
        out_format(out, min == max ? "%d" : "%d&ndash;%d", min, max);
    }
}

static void put_flexible(struct out *out, const struct wire_message *message)
{
    if (message->flexible_min > message->version_max) {
        out_text(out, "none");
    } else {
        out_format(out, "%d+", message->flexible_min);
    }
}

static void put_api(struct out *out, const struct wire_api *api)
{
    struct page_subject subject = {api, api->request};
    out_format(out, "<tr id=\"%s\"><td class=\"key\">%d</td><th scope=\"row\"><a href=\"",
               api->name, api->key);
    page_file_name(out, &subject, api->request->version_max);
    out_format(out, "\">%s</a></th><td class=\"about\">", api->name);
    out_html(out, view_of_string(api->request->about));
    out_text(out, "</td><td class=\"versions\">");
    put_versions(out, &subject);
    out_text(out, "</td><td class=\"served\">");
    put_range(out, api->served_min, api->served_max);
    out_text(out, "</td><td>");
    put_flexible(out, api->request);
    out_text(out, "</td><td>");
    if (api->listeners & WIRE_BROKER) out_text(out, "broker ");
    if (api->listeners & WIRE_CONTROLLER) out_text(out, "controller");
    out_text(out, "</td></tr>\n");
}

static bool is_rpc(const struct wire_message *message)
{
    return message->kind == WIRE_REQUEST || message->kind == WIRE_RESPONSE;
}

static void put_message(struct out *out, const struct wire_message *message)
{
    struct page_subject subject = {NULL, message};
    out_format(out, "<tr id=\"%s\"><td class=\"key\">", message->name);
    if (message->api_key >= 0) out_format(out, "%d", message->api_key);
    out_text(out, "</td><th scope=\"row\"><a href=\"");
    page_file_name(out, &subject, message->version_max);
    out_format(out, "\">%s</a></th><td class=\"about\">", message->name);
    out_html(out, view_of_string(message->about));
    out_text(out, "</td><td class=\"versions\">");
    put_versions(out, &subject);
    out_text(out, "</td><td>");
    put_flexible(out, message);
    out_text(out, "</td></tr>\n");
}

/* One table of the messages of a kind, in the order of their types, then of their names. */
static void put_messages(struct out *out, enum wire_kind kind)
{
    uint32_t count;
    const struct wire_message *const *messages = wire_messages(&count);
    int32_t type_max = -1;

    for (uint32_t i = 0; i < count; i++)
        if (messages[i]->kind == kind) type_max = MAX(type_max, messages[i]->api_key);
    for (int32_t type = -1; type <= type_max; type++)
        for (uint32_t i = 0; i < count; i++)
            if (messages[i]->kind == kind && messages[i]->api_key == type)
                put_message(out, messages[i]);
}

static void put_records(struct out *out)
{
    static const struct {
        enum wire_kind kind;
        const char *id, *title;
    } groups[] = {
        {WIRE_METADATA,          "metadata",           "Metadata records"                        },
        {WIRE_COORDINATOR_KEY,   "coordinator-keys",   "Keys of coordinators' records"           },
        {WIRE_COORDINATOR_VALUE, "coordinator-values", "Values of coordinators' records"         },
        {WIRE_DATA,              "data",               "Control records, files and embedded data"},
        {WIRE_HEADER,            "headers",            "Headers of frames"                       },
    };
    for (size_t i = 0; i < ARRAY_SIZE(groups); i++) {
        out_format(out,
                   "<h2 id=\"%s\">%s</h2>\n<div class=\"scroll\"><table class=\"apis\"><thead><tr>"
                   "<th scope=\"col\">type</th><th scope=\"col\">name</th>"
                   "<th scope=\"col\">what it is for</th><th scope=\"col\">versions</th>"
                   "<th scope=\"col\">flexible</th></tr></thead>\n<tbody>\n",
                   groups[i].id, groups[i].title);
        put_messages(out, groups[i].kind);
        out_text(out, "</tbody></table></div>\n");
    }
}

void page_html_errors(struct out *out)
{
    page_html_head(out, "Error codes", false);
    out_text(out,
             "<main class=\"index\">\n<h1>Error codes</h1>\n<p class=\"lead\">What the "
             "ErrorCode fields of the responses can say. A client may try again what is "
             "retriable, often after it has asked for fresh metadata.</p>\n"
             "<div class=\"scroll\"><table class=\"apis\"><thead><tr><th scope=\"col\">code</th>"
             "<th scope=\"col\">name</th><th scope=\"col\">what it means</th>"
             "<th scope=\"col\">try again</th></tr></thead>\n<tbody>\n");
    for (uint32_t i = 0; i < kafka_error_count; i++) {
        const struct kafka_error_row *row = &kafka_errors[i];
        out_format(out,
                   "<tr id=\"%s\"><td class=\"key\">%d</td><th scope=\"row\"><a href=\"#%s\">%s</a>"
                   "</th><td class=\"about\">",
                   row->name, row->code, row->name, row->name);
        out_html(out, view_of_string(row->message));
        out_format(out, "</td><td>%s</td></tr>\n", row->retriable ? "retriable" : "not retriable");
    }
    out_text(out, "</tbody></table></div>\n</main>\n");
    page_html_foot(out, false);
}

void page_html_index(struct out *out)
{
    uint32_t count;
    const struct wire_api *apis = wire_apis(&count);

    page_html_head(out, "All Kafka APIs", false);
    out_format(
        out,
        "<main class=\"index\">\n<h1>All Kafka APIs</h1>\n<p class=\"lead\">The %u requests of "
        "the Kafka protocol and their responses, byte for byte, in every version. Versions in "
        "grey are those that Apache Kafka 3.9 still knew and 4.4 does not serve any more. Below "
        "them: the <a href=\"#metadata\">metadata records</a>, the records of "
        "<a href=\"#coordinator-keys\">coordinators</a>, <a href=\"#data\">other data</a> and "
        "<a href=\"#headers\">headers</a>; on a page of their own the "
        "<a href=\"errors.html\">error codes</a>.</p>\n"
        "<div class=\"scroll\"><table class=\"apis\"><thead><tr><th scope=\"col\">key</th>"
        "<th scope=\"col\">API</th><th scope=\"col\">what it is for</th>"
        "<th scope=\"col\">versions</th><th scope=\"col\">in 4.4</th>"
        "<th scope=\"col\">flexible</th><th scope=\"col\">listeners</th></tr></thead>\n<tbody>\n",
        count);
    for (uint32_t i = 0; i < count; i++)
        put_api(out, &apis[i]);
    out_text(out, "</tbody></table></div>\n");
    put_records(out);
    out_text(out, "</main>\n");
    page_html_foot(out, false);
}

/* ---- the search ------------------------------------------------------------------------------ */

struct search {
    struct out *out;
    int16_t newest; /* Version of the page that a hit links to, */
    int16_t last;   /* or the last that the enclosing struct is in, */
    int16_t since;  /* and the first. */
    bool first;
    bool tagged; /* Inside a tagged field: the sample has none, so the hit is in the schema. */
    const struct wire_struct *common; /* The common struct that the path is in, or NULL; */
    size_t common_at;                 /* how long the path to it is. */
    char path[PATH_BYTES];
};

static void put_field(struct search *search, const struct wire_field *field, int16_t last)
{
    bool tagged = search->tagged || wire_versions_have(field->tagged, last);

    out_text(search->out, search->first ? "[" : ",[");
    search->first = false;
    if (tagged && search->common != NULL) { /* The schema says it once, in its common struct. */
        out_format(search->out, "\"s.%.*s.common.%s%s\",", (int)strcspn(search->path, "."),
                   search->path, wire_text(search->common->name), search->path + search->common_at);
    } else {
        out_format(search->out, "\"%s%s\",", tagged ? "s." : "", search->path);
    }
    out_quoted(search->out, view_of_string(field->about == 0 ? "" : wire_text(field->about)));
    if (last != search->newest) out_format(search->out, ",%d", last);
    out_char(search->out, ']');
}

static void put_struct(struct search *search, const struct wire_struct *shape);

/* The fields of the struct that `field` is made of. */
static void put_nested(struct search *search, const struct wire_field *field, size_t path_size)
{
    struct search outer = *search;

    search->last = MIN(search->last, field->versions.max);
    search->since = MAX(search->since, field->versions.min);
    search->tagged = outer.tagged || wire_versions_have(field->tagged, search->last);
    if (wire_field_shape(field)->common) {
        search->common = wire_field_shape(field);
        search->common_at = path_size;
    }
    put_struct(search, wire_field_shape(field));
    search->last = outer.last;
    search->since = outer.since;
    search->tagged = outer.tagged;
    search->common = outer.common;
    search->common_at = outer.common_at;
}

static void put_struct(struct search *search, const struct wire_struct *shape)
{
    for (uint16_t i = 0; i < shape->field_count; i++) {
        const struct wire_field *field = wire_struct_field(shape, i);
        int16_t last = MIN(search->last, field->versions.max);
        size_t old = strlen(search->path), name = strlen(wire_text(field->name));
        if (MAX(search->since, field->versions.min) > last) continue;
        assert(old + name + 2 < PATH_BYTES);
        search->path[old] = '.';
        memcpy(search->path + old + 1, wire_text(field->name), name + 1);
        put_field(search, field, last);
        if (field->shape != 0) put_nested(search, field, old + name + 1);
        search->path[old] = '\0';
    }
}

/* One line of the index of a search: name, key, newest version, meaning, fields. */
static void put_found(struct out *out, const struct page_subject *subject)
{
    const struct wire_message *message = subject->message;
    int16_t newest = message->version_max;
    struct search search = {.out = out, .newest = newest, .last = newest, .first = true};

    out_format(out, "[\"%s\",%d,%d,", page_name(subject), message->api_key, newest);
    out_quoted(out, view_of_string(message->about));
    out_text(out, ",[");
    if (subject->api != NULL) {
        memcpy(search.path, "request", 8);
        put_struct(&search, message->shape);
        memcpy(search.path, "response", 9);
        put_struct(&search, subject->api->response->shape);
    } else {
        memcpy(search.path, message->kind == WIRE_HEADER ? "header" : "record", 7);
        put_struct(&search, message->shape);
    }
    out_text(out, "]]");
}

void page_html_search(struct out *out)
{
    uint32_t api_count, count;
    const struct wire_api *apis = wire_apis(&api_count);
    const struct wire_message *const *messages = wire_messages(&count);

    out_format(out, "window.WIRE_APIS=%u;\nwindow.WIRE=[\n", api_count);
    for (uint32_t i = 0; i < api_count; i++) {
        if (i > 0) out_text(out, ",\n");
        put_found(out, &(struct page_subject){&apis[i], apis[i].request});
    }
    for (uint32_t i = 0; i < count; i++) {
        if (is_rpc(messages[i])) continue;
        out_text(out, ",\n");
        put_found(out, &(struct page_subject){NULL, messages[i]});
    }
    out_text(out, "\n];\nwindow.WIRE_ERRORS=[\n");
    for (uint32_t i = 0; i < kafka_error_count; i++) {
        out_format(out, "%s[\"%s\",%d,", i > 0 ? ",\n" : "", kafka_errors[i].name,
                   kafka_errors[i].code);
        out_quoted(out, view_of_string(kafka_errors[i].message));
        out_text(out, "]");
    }
    out_text(out, "\n];\n");
}
