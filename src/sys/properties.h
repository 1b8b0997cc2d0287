/* properties.h - the syntax of server.properties: Java's property files, read from memory.
 *
 * A logical line is `key = value`, `key: value` or `key value`; space before the key, around the
 * separator and before a continued line is dropped, space at the value's end stays. '#' and '!'
 * begin a comment where a key would begin. A backslash at the end of a line joins the next to it;
 * elsewhere \t \n \r \f, \uXXXX, and a backslash before any other character is that character.
 * A key that comes twice has its last value (and remembers the line of the first). Bytes are taken
 * as UTF-8.
 *
 * Pure but for the arena's memory. */
#pragma once

#include "base/arena.h"
#include "base/view.h"

struct property {
    struct view name;
    struct view value;      /* Never null. */
    uint32_t line;          /* Where it begins, from 1; 0: given on the command line. */
    uint32_t replaced_line; /* An earlier line that gave the same name; 0: none. */
};

struct properties {
    struct property *items; /* In the order of the file; names differ. */
    uint32_t count;
    uint32_t room;
};

enum properties_result {
    PROPERTIES_OK = 0,
    PROPERTIES_E_ESCAPE,   /* \u without four hexadecimal digits. */
    PROPERTIES_E_NUL,      /* A NUL byte. */
    PROPERTIES_E_TOO_MANY, /* More than PROPERTIES_MAX settings. */
    PROPERTIES_E_NO_MEMORY,
};

#define PROPERTIES_MAX 10000u

/* Add what the text says to `properties` (zero: empty). What is in `properties` afterwards lies in
 * `config`; the text is not needed any more. On an error `*line` tells where. */
MUST_USE enum properties_result properties_parse(struct properties *properties,
                                                 struct view text,
                                                 struct arena *config,
                                                 uint32_t *line);

/* The value of a name, or NULL. O(count). */
const struct property *properties_find(const struct properties *properties, struct view name);

/* Set a name to a value, as `--set` does; replaces what is there. Copies into `config`. */
MUST_USE enum properties_result properties_set(struct properties *properties,
                                               struct view name,
                                               struct view value,
                                               struct arena *config);
