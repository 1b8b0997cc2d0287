/* regex.h - regular expressions of subscriptions, over RE2: time linear in the text, whatever the
 * expression is.
 *
 * Kafka uses RE2/J, which has RE2's syntax: an expression means the same here. The shim is the one
 * C++ file of the program (RE2 has no C interface). Its memory is the process's, bounded by RE2 to
 * 8 MiB for one expression; it lives for one call. */
#pragma once

#ifdef __cplusplus
extern "C" {
#endif

#include "base/arena.h"

struct regex; /* A compiled expression. */

/* Compile it: NULL if it is not an expression; then `*fault` says why, in the arena. Free it. */
struct regex *regex_new(struct arena *arena, struct view text, struct view *fault);

/* Does the whole of `name` match? O(name). */
bool regex_matches(const struct regex *regex, struct view name);

/* Returns NULL; of NULL, nothing happens. */
struct regex *regex_free(struct regex *regex);

#ifdef __cplusplus
}
#endif
