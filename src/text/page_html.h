/* page_html.h - the reference pages for a browser: one page alone, or the pages of a site.
 *
 * A page needs no server and no script: links, version switch and anchors are plain HTML. The
 * script adds search, the light and dark switch, and the tie between bytes and tree. Every row of a
 * tree has an anchor: `#request.Topics.Partitions.Index`. */
#pragma once

#include "text/page.h"

/* The assets of web/, which a site needs beside its pages. */
struct page_asset {
    const char *name; /* "wire.css" */
    struct view bytes;
};
#define PAGE_ASSETS 2
void page_assets(struct page_asset assets[PAGE_ASSETS]);

/* The name of a page's file in a site: "Heartbeat-v4.html". */
void page_file_name(struct out *out, const struct page_subject *subject, int16_t version);

/* The page. `alone`: with style and script inside and without links to other pages. */
void page_html(struct out *out, const struct page *page, bool alone);

/* The index of a site: all APIs, records and headers. */
void page_html_index(struct out *out);

/* The page of all error codes, "errors.html". */
void page_html_errors(struct out *out);

/* The site's script with all names, meanings and places that a search looks through. */
void page_html_search(struct out *out);
