/* tree.h - a list of nodes as text: object tree, byte rows, table. docs/wire.md shows each. */
#pragma once

#include "text/node.h"

struct tree_style {
    bool color;         /* ANSI colours, one for each part. */
    uint32_t about_max; /* Characters of a meaning before it is cut by "..."; 0: all of it. */
};

/* The meaning's width on the reference pages. */
#define TREE_ABOUT_MAX 78u

/* The object tree: name, type, value, [0xoffset, lengthB], meaning, in aligned columns. */
void tree_print(struct out *out, const struct node_list *list, const struct tree_style *style);

/* Byte rows of sixteen with their head, each byte's part by colour or by its letter at the right.
 */
void tree_rows(struct out *out,
               const struct node_list *list,
               struct view bytes,
               const struct tree_style *style);

/* "F frame  H rpc header ...": what the colours or letters mean. */
void tree_legend(struct out *out, const struct tree_style *style);

/* Tab-separated: depth, name, type, value, offset, length, with a head line. */
void tree_tsv(struct out *out, const struct node_list *list);

/* One line for each problem: "what: fault at 0x0010 in Topics[0].Name: ...". */
void tree_problems(struct out *out, const struct node_list *list, const char *what);
