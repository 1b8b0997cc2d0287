/* settings.c - see settings.h. */
#include "cli/settings.h"

#include <float.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "core/config.h"
#include "core/join.h"

/* With no file and no --data: here, where the user sees it, and not under /tmp. */
#define SETTINGS_DATA_DIR "dohle-data"

/* ---- saying what is wrong -------------------------------------------------------------------- */

/* "server.properties:12: " or "--set: ". */
static void place(const struct settings *settings,
                  const struct property *property,
                  char *out,
                  size_t size)
{
    if (property == NULL)
        out[0] = '\0';
    else if (property->line == 0)
        (void)snprintf(out, size, "--set: ");
    else
        (void)snprintf(out, size, "%s:%u: ", settings->file, property->line);
}

static void say_about(const struct settings *settings,
                      enum say_level level,
                      const struct property *property,
                      const char *message)
{
    char where[512], name[128], value[256];
    place(settings, property, where, sizeof(where));
    say(settings->say, level, SAY_IN_CONFIG, "%s%s = \"%s\": %s", where,
        say_bytes(property->name, name, sizeof(name)),
        say_bytes(property->value, value, sizeof(value)), message);
}

void settings_fault(struct settings *settings, const char *name, const char *format, ...)
{
    char message[512];
    va_list list;
    va_start(list, format);
    (void)vsnprintf(message, sizeof(message), format, list);
    va_end(list);
    settings->wrong = true;
    const struct property *property = properties_find(&settings->given, view_of_string(name));
    if (property != NULL)
        say_about(settings, SAY_ERROR, property, message);
    else
        say(settings->say, SAY_ERROR, SAY_IN_CONFIG, "%s: %s", name, message);
}

/* ---- names and values ------------------------------------------------------------------------ */

static const char *const type_names[] = {
    [CONFIG_BOOLEAN] = "true or false", [CONFIG_STRING] = "text",
    [CONFIG_INT] = "a whole number",    [CONFIG_SHORT] = "a whole number",
    [CONFIG_LONG] = "a whole number",   [CONFIG_DOUBLE] = "a number",
    [CONFIG_LIST] = "a list",           [CONFIG_CLASS] = "a class name",
    [CONFIG_PASSWORD] = "text",
};

static void describe_allowed(const struct config_def *def, char *out, size_t size)
{
    size_t at = (size_t)snprintf(out, size, "must be ");
    for (uint32_t i = 0; def->values[i] != NULL && at < size; i++)
        at += (size_t)snprintf(out + at, size - at, "%s%s", i == 0 ? "" : ", ", def->values[i]);
}

static void describe_range(const struct config_def *def, char *out, size_t size)
{
    const char *hole = def->not_zero ? ", and not 0" : "";
    if (def->max >= DBL_MAX)
        (void)snprintf(out, size, "must be at least %.15g%s", def->min, hole);
    else if (def->min <= -DBL_MAX)
        (void)snprintf(out, size, "must be at most %.15g%s", def->max, hole);
    else
        (void)snprintf(out, size, "must be from %.15g to %.15g%s", def->min, def->max, hole);
}

static void describe_fault(const struct config_def *def,
                           enum config_fault fault,
                           char *out,
                           size_t size)
{
    switch (fault) {
    case CONFIG_E_RANGE: describe_range(def, out, size); return;
    case CONFIG_E_VALUE:
        if (def->values != NULL)
            describe_allowed(def, out, size);
        else
            (void)snprintf(out, size, "does not have the form of this setting");
        return;
    case CONFIG_E_EMPTY:
        (void)snprintf(out, size, "must not be empty, nor have empty items");
        return;
    case CONFIG_E_LONG: (void)snprintf(out, size, "is longer than 32767 characters"); return;
    case CONFIG_E_NULL: (void)snprintf(out, size, "needs a value"); return;
    case CONFIG_E_PARSE:
    case CONFIG_OK: (void)snprintf(out, size, "is not %s", type_names[def->type]); return;
    }
}

/* listener.name.NAME.K is known if K is. */
static struct view base_name(struct view name)
{
    static const char prefix[] = "listener.name.";
    const uint32_t size = sizeof(prefix) - 1;
    if (name.size <= size || memcmp(name.data, prefix, size) != 0) return name;
    for (uint32_t i = size; i < name.size; i++)
        if (name.data[i] == '.') return view_of(name.data + i + 1, name.size - i - 1);
    return name;
}

static void check_property(struct settings *settings, const struct property *property)
{
    char message[512], nearest_name[128];
    if (property->replaced_line != 0 && property->line != 0) {
        (void)snprintf(message, sizeof(message), "replaces the value of line %u",
                       property->replaced_line);
        say_about(settings, SAY_WARN, property, message);
    }
    const struct config_def *def = config_find(CONFIG_BROKER, property->name);
    if (def == NULL) def = config_find(CONFIG_BROKER, base_name(property->name));
    if (def == NULL) {
        const struct config_def *nearest = config_nearest(CONFIG_BROKER, property->name);
        if (nearest == NULL)
            (void)snprintf(message, sizeof(message), "is not a known setting, it has no effect");
        else
            (void)snprintf(
                message, sizeof(message), "is not a known setting, it has no effect; is %s meant?",
                say_bytes(view_of_string(nearest->name), nearest_name, sizeof(nearest_name)));
        say_about(settings, SAY_WARN, property, message);
        return;
    }
    enum config_fault fault = config_check(def, property->value);
    if (fault == CONFIG_OK) return;
    describe_fault(def, fault, message, sizeof(message));
    settings->wrong = true;
    say_about(settings, SAY_ERROR, property, message);
}

/* ---- asking ---------------------------------------------------------------------------------- */

struct view settings_given(void *context, struct view name)
{
    const struct settings *settings = context;
    const struct property *property = properties_find(&settings->given, name);
    return property == NULL ? VIEW_NULL : property->value;
}

struct view settings_value(const struct settings *settings, const char *name)
{
    const struct property *property = properties_find(&settings->given, view_of_string(name));
    if (property != NULL) return property->value;
    const struct config_def *def = config_find(CONFIG_BROKER, view_of_string(name));
    assert(def != NULL);
    return view_of_string(def->default_text);
}

int64_t settings_number(const struct settings *settings, const char *name)
{
    int64_t number = 0;
    bool parsed = config_parse_int64(settings_value(settings, name), &number);
    assert(parsed);
    return number;
}

bool settings_switch(const struct settings *settings, const char *name)
{
    bool on = false;
    bool parsed = config_parse_bool(settings_value(settings, name), &on);
    assert(parsed);
    return on;
}

static bool is_given(const struct settings *settings, const char *name)
{
    return properties_find(&settings->given, view_of_string(name)) != NULL;
}

/* ---- settings that belong together ----------------------------------------------------------- */

static void check_ids(struct settings *settings)
{
    settings->node_id = -1;
    if (is_given(settings, "node.id"))
        settings->node_id = (int32_t)settings_number(settings, "node.id");
    if (!is_given(settings, "broker.id")) return;
    int64_t broker_id = settings_number(settings, "broker.id");
    if (broker_id < 0) return;
    if (settings->node_id >= 0 && broker_id != settings->node_id)
        settings_fault(settings, "broker.id", "is not node.id, which is %d", settings->node_id);
    settings->node_id = (int32_t)broker_id;
}

/* A broker part of ours has its controller in the same process; a controller may stand alone. */
static void check_roles(struct settings *settings)
{
    struct view roles = settings_given(settings, VIEW("process.roles"));
    if (!roles.null && !config_list_has(roles, VIEW("controller")))
        settings_fault(settings, "process.roles",
                       "a broker without a controller is not served: controller or "
                       "broker,controller");
    settings->controller_only = !roles.null && !config_list_has(roles, VIEW("broker"));
    static const char *const quorums[] = {"controller.quorum.voters",
                                          "controller.quorum.bootstrap.servers"};
    for (size_t i = 0; i < ARRAY_SIZE(quorums); i++) {
        struct view rest = settings_given(settings, view_of_string(quorums[i])), item;
        uint32_t count = 0;
        while (!rest.null && config_list_next(&rest, &item))
            count++;
        if (count > 1)
            settings_fault(settings, quorums[i], "a quorum of more than this node is not served");
    }
}

static void check_limits(struct settings *settings)
{
    int64_t budget = settings_number(settings, "queued.max.request.bytes");
    if (budget > 0 && budget < settings_number(settings, "socket.request.max.bytes"))
        settings_fault(settings, "queued.max.request.bytes",
                       "must not be less than socket.request.max.bytes, which is %lld",
                       (long long)settings_number(settings, "socket.request.max.bytes"));
    if (settings_number(settings, "max.connections.per.ip") == 0 &&
        settings_value(settings, "max.connections.per.ip.overrides").size == 0)
        settings_fault(settings, "max.connections.per.ip",
                       "may only be 0 together with max.connections.per.ip.overrides");
}

/* The path made absolute, in the arena. */
static const char *absolute(struct settings *settings, struct view path)
{
    char folder[PATH_MAX] = "";
    bool relative = path.size == 0 || path.data[0] != '/';
    if (relative && getcwd(folder, sizeof(folder)) == NULL) {
        settings_fault(settings, "log.dirs", "the working directory is gone");
        return "";
    }
    size_t room = strlen(folder) + 1 + path.size + 1;
    char *text = arena_get(settings->config, room);
    if (text == NULL) return "";
    (void)snprintf(text, room, "%s%s%.*s", folder, relative ? "/" : "", (int)path.size,
                   (const char *)path.data);
    return text;
}

static void read_log_dirs(struct settings *settings, const struct settings_source *source)
{
    const char *name = is_given(settings, "log.dirs") ? "log.dirs" : "log.dir";
    struct view rest = settings_value(settings, name), item;
    if (source->data != NULL)
        rest = view_of_string(source->data);
    else if (source->file == NULL && !is_given(settings, name))
        rest = VIEW(SETTINGS_DATA_DIR);
    while (config_list_next(&rest, &item)) {
        if (settings->log_dir_count == LOG_DIRS_MAX) {
            settings_fault(settings, name, "more than %u directories", LOG_DIRS_MAX);
            return;
        }
        const char *path = absolute(settings, item);
        for (uint32_t i = 0; i < settings->log_dir_count; i++)
            if (strcmp(settings->log_dirs[i], path) == 0)
                settings_fault(settings, name, "names %s twice", path);
        settings->log_dirs[settings->log_dir_count++] = path;
    }
    if (settings->log_dir_count == 0) settings_fault(settings, name, "names no directory");
}

/* Where silence would be dangerous: who sets these and is served must have got what they say. */
static void check_refused(struct settings *settings)
{
    struct view name = VIEW("metadata.log.dir");
    struct view folder = settings_given(settings, name);
    if (!settings->controller_only &&
        settings_given(settings, VIEW("authorizer.class.name")).size > 0)
        settings_fault(settings, "authorizer.class.name",
                       "a broker of ours enforces no ACL yet: leave it out to serve everybody");
    if (folder.size > 0 && settings->log_dir_count > 0 &&
        strcmp(absolute(settings, folder), settings->log_dirs[0]) != 0)
        settings_fault(settings, "metadata.log.dir",
                       "the metadata log is in the first log "
                       "directory, %s, and nowhere else",
                       settings->log_dirs[0]);
}

/* One line for all that is taken without effect. */
static void tell_ignored(const struct settings *settings, const struct settings_source *source)
{
    struct view names = VIEW_EMPTY;
    for (uint32_t i = 0; i < settings->given.count; i++) {
        const struct property *property = &settings->given.items[i];
        const struct config_def *def = config_find(CONFIG_BROKER, property->name);
        if (def == NULL || def->honoured != CONFIG_IGNORED) continue;
        if (view_equal(property->value, view_of_string(def->default_text))) continue;
        names =
            JOIN(settings->config, names, names.size > 0 ? VIEW(", ") : VIEW_EMPTY, property->name);
    }
    if (names.size > 0)
        say(settings->say, SAY_INFO, SAY_IN_CONFIG,
            "taken and without effect here: %.*s; `dohle config explain NAME` tells of each",
            (int)names.size, (const char *)names.data);
    if (source->data != NULL && (is_given(settings, "log.dirs") || is_given(settings, "log.dir")))
        say(settings->say, SAY_INFO, SAY_IN_CONFIG, "log.dirs is left aside: --data %s is given",
            source->data);
}

/* ---- loading --------------------------------------------------------------------------------- */

static bool read_file(struct settings *settings, const struct settings_source *source)
{
    static const char *const words[] = {
        [PROPERTIES_E_ESCAPE] = "\\u without four hexadecimal digits",
        [PROPERTIES_E_NUL] = "a NUL byte",
        [PROPERTIES_E_TOO_MANY] = "too many settings",
        [PROPERTIES_E_NO_MEMORY] = "no memory for the file",
    };
    uint32_t line = 0;
    enum properties_result result =
        properties_parse(&settings->given, source->text, settings->config, &line);
    if (result == PROPERTIES_OK) return true;
    say(settings->say, SAY_ERROR, SAY_IN_CONFIG, "%s:%u: %s", source->file, line, words[result]);
    return false;
}

static bool read_set(struct settings *settings, const char *text)
{
    const char *sign = strchr(text, '=');
    if (sign == NULL || sign == text) {
        say(settings->say, SAY_ERROR, SAY_IN_CONFIG, "--set %s: is not name=value", text);
        return false;
    }
    enum properties_result result =
        properties_set(&settings->given, view_of(text, (uint32_t)(sign - text)),
                       view_of_string(sign + 1), settings->config);
    if (result == PROPERTIES_OK) return true;
    say(settings->say, SAY_ERROR, SAY_IN_CONFIG, "--set %s: no memory", text);
    return false;
}

bool settings_load(struct settings *settings,
                   const struct settings_source *source,
                   struct arena *config,
                   const struct say *say)
{
    *settings = (struct settings){.config = config, .say = say, .file = source->file};
    if (source->file != NULL && !read_file(settings, source)) return false;
    for (uint32_t i = 0; i < source->set_count; i++)
        if (!read_set(settings, source->set[i])) return false;
    for (uint32_t i = 0; i < settings->given.count; i++)
        check_property(settings, &settings->given.items[i]);
    if (settings->wrong) return false; /* What follows rests on values that parse. */
    check_ids(settings);
    check_roles(settings);
    check_limits(settings);
    read_log_dirs(settings, source);
    settings_listeners(settings);
    check_refused(settings);
    tell_ignored(settings, source);
    return !settings->wrong && !config->failed;
}
