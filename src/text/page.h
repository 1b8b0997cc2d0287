/* page.h - the reference page of an API or a record in one version: the smallest request and
 * response, or the smallest record, byte for byte, with tree and schema. page_text prints it for a
 * terminal, page_html.h for a browser. */
#pragma once

#include "text/frame.h"
#include "text/tree.h"

struct page_side {
    struct frame_kind kind;
    struct view frame; /* The sample instance. */
    struct node_list nodes;
};

/* What has a page: an API, or a message that is none (a record, a header). */
struct page_subject {
    const struct wire_api *api;         /* NULL: a message alone. */
    const struct wire_message *message; /* The request of the API, or the message. */
};

#define PAGE_SIDES 2
struct page {
    struct page_subject subject;
    int16_t version;
    struct page_side sides[PAGE_SIDES]; /* Request and response, or the message alone. */
    uint32_t side_count;
};

/* "Heartbeat", "TopicRecord". */
const char *page_name(const struct page_subject *subject);

/* "request", "response", "record" or "header". */
const char *page_side_name(const struct page_side *side);

/* The facts block: pairs of a name and a value, in the order of the page. */
#define PAGE_FACTS 8
struct page_fact {
    const char *name;
    const char *value;
};

/* Build the samples and their nodes in the arena. The subject must have the version. False: the
 * arena is exhausted. */
MUST_USE bool page_build(struct page *page,
                         const struct page_subject *subject,
                         int16_t version,
                         struct arena *arena);

/* The facts, their texts in the arena; returns how many. */
uint32_t page_facts(const struct page *page,
                    struct arena *arena,
                    struct page_fact facts[PAGE_FACTS]);

/* One paragraph on what the page shows, true for this version. */
void page_lead(struct out *out, const struct page *page);

/* "HeartbeatRequest v4, request header v2, 23 bytes on the wire"; a record: "TopicRecord v0, 21
 * bytes with what stands before it" */
void page_heading(struct out *out, const struct page_side *side);

/* The whole page as text. Cost: O(bytes of the page). */
void page_text(struct out *out, const struct page *page, const struct tree_style *style);
