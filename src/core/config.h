/* config.h - the table of configuration names, and the rules for their values.
 *
 * schema/configs.json is the one place that knows a setting; tools/configc.c compiles it into
 * gen/config_table.c. The controller checks topic and broker overrides with it, the server reads
 * server.properties by it, DescribeConfigs and `dohle config` print it.
 *
 * A value is text as it was given, and stays so; it is parsed where it is used. Pure. */
#pragma once

#include "base/arena.h"
#include "base/view.h"

/* Kafka's ids of types in DescribeConfigs. */
enum config_type {
    CONFIG_BOOLEAN = 1,
    CONFIG_STRING = 2,
    CONFIG_INT = 3,
    CONFIG_SHORT = 4,
    CONFIG_LONG = 5,
    CONFIG_DOUBLE = 6,
    CONFIG_LIST = 7,
    CONFIG_CLASS = 8,
    CONFIG_PASSWORD = 9
};

enum config_scope { CONFIG_BROKER, CONFIG_TOPIC, CONFIG_GROUP, CONFIG_CLIENT_METRICS };

/* Where a broker setting can be changed while the broker runs. */
enum config_dynamic {
    CONFIG_READ_ONLY,   /* Only in the file. */
    CONFIG_PER_BROKER,  /* On one broker. */
    CONFIG_CLUSTER_WIDE /* On one broker, or as the default of all. */
};

/* Does Dohle do what the setting says? */
enum config_honoured {
    CONFIG_IGNORED, /* Taken and stored, without effect. */
    CONFIG_PARTLY,  /* See the meaning. */
    CONFIG_HONOURED
};

/* The form of a text value, beyond its type. */
enum config_form {
    CONFIG_FORM_ANY,
    CONFIG_FORM_REPLICAS,  /* `*` alone, or items partition:broker. */
    CONFIG_FORM_RESET,     /* latest, earliest, or by_duration: and an ISO 8601 duration. */
    CONFIG_FORM_DISTINCT,  /* A list without an item twice. */
    CONFIG_FORM_UNRESERVED /* A text that does not begin with two underscores. */
};

#define CONFIG_UNBOUNDED __builtin_inf()

struct config_def {
    const char *name;
    const char *default_text;    /* NULL: none (Kafka's null). */
    const char *meaning;         /* In our words, a sentence or two. */
    const char *const *synonyms; /* Of a topic setting: the broker settings that give its default,
                                    the dynamic one first; NULL-terminated. NULL: none. */
    const char *const *values;   /* The only values (of a list: items) allowed; NULL: any. */
    double min; /* Of numbers; both bounds are inclusive. CONFIG_UNBOUNDED: none. */
    double max;
    uint8_t type;     /* enum config_type */
    uint8_t scope;    /* enum config_scope */
    uint8_t dynamic;  /* enum config_dynamic */
    uint8_t honoured; /* enum config_honoured */
    uint8_t form;     /* enum config_form */
    bool not_zero;    /* A number that must not be 0, though it lies within the bounds. */
    bool not_empty;   /* A list or text that must not be empty. */
    bool any_case;    /* `values` are compared without case. */
    bool required;    /* Kafka has no default: somebody must set it (Dohle has its own). */
    bool internal;    /* Not shown by DescribeConfigs. */
    bool own;         /* Dohle's, not Kafka's. */
};

/* The setting, or NULL. Names are compared exactly. O(log n). */
const struct config_def *config_find(enum config_scope scope, struct view name);

/* All settings of a scope, by name. */
const struct config_def *config_all(enum config_scope scope, uint32_t *count);

/* The setting whose name is nearest to one that does not exist, or NULL if none is near: for
 * warnings. O(settings). */
const struct config_def *config_nearest(enum config_scope scope, struct view name);

enum config_fault {
    CONFIG_OK = 0,
    CONFIG_E_PARSE, /* Not a value of its type. */
    CONFIG_E_RANGE, /* A number outside [min, max]. */
    CONFIG_E_VALUE, /* Text that is not among the allowed, or does not have the form. */
    CONFIG_E_EMPTY, /* An empty item in a list, or nothing at all where that is not allowed. */
    CONFIG_E_LONG,  /* More than 32,767 characters. */
    CONFIG_E_NULL   /* No value where there must be one. */
};

/* Check one value by its definition: type, range, form. */
MUST_USE enum config_fault config_check(const struct config_def *def, struct view value);

/* Are there spaces around it? A broker's number in a resource's name has none. */
bool config_spaced(struct view text);

/* A valid value as it is shown: numbers and lists without the spaces around them, a boolean in
 * small letters. */
struct view config_shown(const struct config_def *def, struct view value);

/* Parsed values. False: the text is not one. Spaces around are ignored, as by Kafka. */
MUST_USE bool config_parse_bool(struct view text, bool *out);
MUST_USE bool config_parse_int64(struct view text, int64_t *out);
MUST_USE bool config_parse_double(struct view text, double *out);

/* Begin to walk a list: what config_list_next() goes on from. Null for an empty or null value,
 * which has no items. */
struct view config_list(struct view text);

/* The next item, trimmed; false at the end. An empty item comes as the empty view. */
bool config_list_next(struct view *rest, struct view *item);

/* Is the text one of the list's items? */
bool config_list_has(struct view list, struct view item);

/* Looks up a value by name; the null view if it is not set. */
typedef struct view config_lookup(void *context, struct view name);

/* Rules that bind several settings of one topic, asked with `lookup` over the
 * effective values. Returns NULL, or the rule that is broken, in words (constant). */
const char *config_check_topic(config_lookup *lookup, void *context);
