/* page_site.c - what a site has beside the pages: head and foot of each, the index, the search. */
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
        out_text(out,
                 "<link rel=\"stylesheet\" href=\"wire.css\">\n"
                 "<script>try{document.documentElement.dataset.theme="
                 "localStorage.getItem('theme')||''}catch(e){}</script>\n"
                 "</head>\n<body>\n<header class=\"top\"><a class=\"home\" href=\"index.html\">"
                 "All Kafka APIs</a><label class=\"search\"><span>Search</span><input id=\"q\" "
                 "type=\"search\" placeholder=\"API, field, key &hellip;\" autocomplete=\"off\" "
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

static void put_versions(struct out *out, const struct wire_api *api)
{
    for (int16_t v = api->request->version_min; v <= api->request->version_max; v++) {
        bool served = v >= api->served_min && v <= api->served_max;
        out_text(out, "<a href=\"");
        page_file_name(out, api, v);
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

static void put_api(struct out *out, const struct wire_api *api)
{
    out_format(out, "<tr id=\"%s\"><td class=\"key\">%d</td><th scope=\"row\"><a href=\"",
               api->name, api->key);
    page_file_name(out, api, api->request->version_max);
    out_format(out, "\">%s</a></th><td class=\"about\">", api->name);
    out_html(out, view_of_string(api->request->about));
    out_text(out, "</td><td class=\"versions\">");
    put_versions(out, api);
    out_text(out, "</td><td class=\"served\">");
    put_range(out, api->served_min, api->served_max);
    if (api->request->flexible_min > api->request->version_max) {
        out_text(out, "</td><td>none");
    } else {
        out_format(out, "</td><td>%d+", api->request->flexible_min);
    }
    out_text(out, "</td><td>");
    if (api->listeners & WIRE_BROKER) out_text(out, "broker ");
    if (api->listeners & WIRE_CONTROLLER) out_text(out, "controller");
    out_text(out, "</td></tr>\n");
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
        "grey are those that Apache Kafka 3.9 still knew and 4.4 does not serve any more.</p>\n"
        "<div class=\"scroll\"><table class=\"apis\"><thead><tr><th scope=\"col\">key</th>"
        "<th scope=\"col\">API</th><th scope=\"col\">what it is for</th>"
        "<th scope=\"col\">versions</th><th scope=\"col\">in 4.4</th>"
        "<th scope=\"col\">flexible</th><th scope=\"col\">listeners</th></tr></thead>\n<tbody>\n",
        count);
    for (uint32_t i = 0; i < count; i++)
        put_api(out, &apis[i]);
    out_text(out, "</tbody></table></div>\n</main>\n");
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
    char path[PATH_BYTES];
};

static void put_field(struct search *search, const struct wire_field *field, int16_t last)
{
    bool tagged = search->tagged || wire_versions_have(field->tagged, last);

    out_text(search->out, search->first ? "[" : ",[");
    search->first = false;
    out_format(search->out, "\"%s%s\",", tagged ? "s." : "", search->path);
    out_quoted(search->out, view_of_string(field->about == NULL ? "" : field->about));
    if (last != search->newest) out_format(search->out, ",%d", last);
    out_char(search->out, ']');
}

static void put_struct(struct search *search, const struct wire_struct *shape)
{
    for (uint16_t i = 0; i < shape->field_count; i++) {
        const struct wire_field *field = &shape->fields[i];
        const struct {
            int16_t last, since;
            bool tagged;
        } outer = {search->last, search->since, search->tagged};
        int16_t last = MIN(search->last, field->versions.max);
        int16_t since = MAX(search->since, field->versions.min);
        size_t old = strlen(search->path), name = strlen(field->name);
        if (since > last) continue;
        assert(old + name + 2 < PATH_BYTES);
        search->path[old] = '.';
        memcpy(search->path + old + 1, field->name, name + 1);
        put_field(search, field, last);
        if (field->shape != NULL) {
            search->tagged = outer.tagged || wire_versions_have(field->tagged, last);
            search->last = last;
            search->since = since;
            put_struct(search, field->shape);
            search->tagged = outer.tagged;
            search->last = outer.last;
            search->since = outer.since;
        }
        search->path[old] = '\0';
    }
}

void page_html_search(struct out *out)
{
    uint32_t count;
    const struct wire_api *apis = wire_apis(&count);

    out_text(out, "window.WIRE=[\n");
    for (uint32_t i = 0; i < count; i++) {
        const struct wire_api *api = &apis[i];
        int16_t newest = api->request->version_max;
        struct search search = {.out = out, .newest = newest, .last = newest, .first = true};
        out_format(out, "[\"%s\",%d,%d,", api->name, api->key, newest);
        out_quoted(out, view_of_string(api->request->about));
        out_text(out, ",[");
        memcpy(search.path, "request", 8);
        put_struct(&search, api->request->shape);
        memcpy(search.path, "response", 9);
        put_struct(&search, api->response->shape);
        out_text(out, i + 1 == count ? "]]\n" : "]],\n");
    }
    out_text(out, "];\n");
}
