/* page.h - the reference page of an API in one version: the smallest request and response byte for
 * byte, with tree and schema. page_text prints it for a terminal, page_html.h for a browser. */
#pragma once

#include "text/frame.h"
#include "text/tree.h"

struct page_side {
    struct frame_kind kind;
    struct view frame; /* The sample instance. */
    struct node_list nodes;
};

struct page {
    const struct wire_api *api;
    int16_t version;
    struct page_side request, response;
};

/* The facts block: pairs of a name and a value, in the order of the page. */
#define PAGE_FACTS 8
struct page_fact {
    const char *name;
    const char *value;
};

/* Build both samples and their nodes in the arena. The API must have the version. False: the arena
 * is exhausted. */
MUST_USE bool page_build(struct page *page,
                         const struct wire_api *api,
                         int16_t version,
                         struct arena *arena);

/* The eight facts, their texts in the arena. */
void page_facts(const struct page *page, struct arena *arena, struct page_fact facts[PAGE_FACTS]);

/* One paragraph on what the page shows, true for this version. */
void page_lead(struct out *out, const struct page *page);

/* "HeartbeatRequest v4, request header v2, 23 bytes on the wire" */
void page_heading(struct out *out, const struct page_side *side);

/* The whole page as text. Cost: O(bytes of the page). */
void page_text(struct out *out, const struct page *page, const struct tree_style *style);
