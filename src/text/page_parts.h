/* page_parts.h - what all pages of a site begin and end with. */
#pragma once

#include "text/out.h"

/* Everything up to <main>. `alone`: style inside, no links to other pages. */
void page_html_head(struct out *out, const char *title, bool alone);

/* Everything behind </main>. */
void page_html_foot(struct out *out, bool alone);
