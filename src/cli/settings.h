/* settings.h - what one node was told: server.properties and --set, checked.
 *
 * The names and their rules are core/config.h's (schema/configs.json). An unknown name is a warning
 * with the nearest known one, a wrong value an error with file and line; all errors are said, not
 * only the first. Memory: in the arena `config`. Immutable after loading: any thread may read. */
#pragma once

#include "base/arena.h"
#include "base/limits.h"
#include "broker/node.h"
#include "sys/properties.h"
#include "sys/say.h"

/* Where settings come from. */
struct settings_source {
    const char *file;       /* Path of server.properties, for messages; NULL: there is none. */
    struct view text;       /* What it holds. */
    const char *data;       /* --data: stands for log.dirs. NULL: not given. */
    const char *const *set; /* --set: "name=value" each. */
    uint32_t set_count;
};

struct settings {
    struct arena *config;
    const struct say *say;
    struct properties given;
    const char *file;
    bool wrong;      /* An error was said. */
    int32_t node_id; /* -1: not given. */
    struct node_listener listeners[NODE_LISTENERS_MAX];
    uint32_t listener_count;
    bool controller_only;               /* process.roles=controller */
    bool loopback;                      /* `listeners` is not given. */
    const char *log_dirs[LOG_DIRS_MAX]; /* Absolute. */
    uint32_t log_dir_count;
};

/* Read and check. False: an error was said (or there was no memory, which is said too). */
MUST_USE bool settings_load(struct settings *settings,
                            const struct settings_source *source,
                            struct arena *config,
                            const struct say *say);

/* The value of a broker setting: as given, else its default, else null. NUL follows the bytes. */
struct view settings_value(const struct settings *settings, const char *name);

/* The same as a number or a switch, for names whose values were checked so. */
int64_t settings_number(const struct settings *settings, const char *name);
bool settings_switch(const struct settings *settings, const char *name);

/* As given, or null: what node_options.setting asks. `context` is the struct settings. */
struct view settings_given(void *context, struct view name);

/* Say that a setting is wrong: "server.properties:12: name = "value": ...". */
void settings_fault(struct settings *settings, const char *name, const char *format, ...)
    PRINTF(3, 4);

/* settings_listeners.c: the listener settings together. Fills `listeners`, the one between brokers
 * first. */
void settings_listeners(struct settings *settings);
