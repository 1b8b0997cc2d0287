/* schemac_schema.c - from a message's JSON file to its model, strictly: an unknown key, a type that
 * is none, a version outside the message is an error with file and field. */
#include "schemac.h"

#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

static const struct {
    const char *name;
    enum type type;
} type_names[] = {
    {"bool",    TYPE_BOOL   },
    {"int8",    TYPE_INT8   },
    {"int16",   TYPE_INT16  },
    {"uint16",  TYPE_UINT16 },
    {"int32",   TYPE_INT32  },
    {"uint32",  TYPE_UINT32 },
    {"int64",   TYPE_INT64  },
    {"float64", TYPE_FLOAT64},
    {"uuid",    TYPE_UUID   },
    {"string",  TYPE_STRING },
    {"bytes",   TYPE_BYTES  },
    {"records", TYPE_RECORDS},
};

static const char *text_of(struct json_object *object, const char *key)
{
    struct json_object *value;
    if (!json_object_object_get_ex(object, key, &value)) return NULL;
    return value == NULL ? "null" : json_object_get_string(value);
}

/* A whole number that is not negative; -1: there is none. */
static int number_of(const char *file, struct json_object *object, const char *key)
{
    struct json_object *value;
    if (!json_object_object_get_ex(object, key, &value)) return -1;
    if (!json_object_is_type(value, json_type_int) || json_object_get_int64(value) < 0 ||
        json_object_get_int64(value) > VERSION_OPEN)
        fail(file, key, "is no number from 0 to %d", VERSION_OPEN);
    return json_object_get_int(value);
}

static bool flag_of(struct json_object *object, const char *key)
{
    const char *text = text_of(object, key);
    return text != NULL && strcmp(text, "true") == 0;
}

static struct versions parse_versions(const char *file, const char *field, const char *text)
{
    struct versions none = {1, 0};
    if (text == NULL || strcmp(text, "none") == 0) return none;
    char *end;
    struct versions v;
    v.min = v.max = (int)strtol(text, &end, 10);
    if (end == text) fail(file, field, "\"%s\" is not a version range", text);
    if (strcmp(end, "+") == 0) {
        v.max = VERSION_OPEN;
    } else if (*end == '-') {
        const char *upper = end + 1;
        v.max = (int)strtol(upper, &end, 10);
        if (end == upper || *end != '\0') fail(file, field, "\"%s\" is not a version range", text);
    } else if (*end != '\0') {
        fail(file, field, "\"%s\" is not a version range", text);
    }
    return v;
}

static struct shape *find_shape(const struct message *m, const char *name)
{
    for (int i = 1; i < m->shape_count; i++)
        if (strcmp(m->shapes[i]->name, name) == 0) return m->shapes[i];
    return NULL;
}

static struct shape *add_shape(struct message *m, const char *name, const char *c_name)
{
    struct shape *shape = keep(sizeof(*shape));
    shape->name = name;
    shape->c_name = c_name;
    shape->index = m->shape_count;
    shape->versions = (struct versions){0, VERSION_OPEN};
    m->shapes = realloc(m->shapes, sizeof(m->shapes[0]) * (size_t)(m->shape_count + 1));
    if (m->shapes == NULL) fail(m->file, NULL, "out of memory");
    m->shapes[m->shape_count++] = shape;
    return shape;
}

static struct shape *add_nested(struct message *m, const char *name)
{
    if (find_shape(m, name) != NULL) fail(m->file, name, "this struct is there twice");
    return add_shape(m, name, keep_format("%s_%s", m->snake, snake_case(name)));
}

static void parse_fields(struct message *m, struct shape *shape, struct json_object *list);

static void parse_type(struct message *m, struct field *f, struct json_object *object)
{
    const char *text = f->type_text;
    if (strncmp(text, "[]", 2) == 0) {
        f->array = true;
        text += 2;
    }
    for (size_t i = 0; i < sizeof(type_names) / sizeof(type_names[0]); i++) {
        if (strcmp(type_names[i].name, text) == 0) {
            f->type = type_names[i].type;
            return;
        }
    }
    if (text[0] < 'A' || text[0] > 'Z') fail(m->file, f->name, "no type \"%s\"", f->type_text);
    f->type = TYPE_STRUCT;
    struct json_object *fields;
    if (json_object_object_get_ex(object, "fields", &fields)) {
        f->shape = add_nested(m, text);
        f->shape->versions = f->versions;
        parse_fields(m, f->shape, fields);
    } else {
        f->shape = find_shape(m, text);
        if (f->shape == NULL) fail(m->file, f->name, "no struct \"%s\"", text);
    }
}

static void check_keys(const char *file,
                       const char *field,
                       struct json_object *object,
                       const char *known)
{
    json_object_object_foreach(object, key, value)
    {
        (void)value;
        if (strstr(known, keep_format(" %s ", key)) == NULL)
            fail(file, field, "unknown key \"%s\"", key);
    }
}

static void parse_field(struct message *m, struct field *f, struct json_object *object)
{
    f->name = text_of(object, "name");
    if (f->name == NULL) fail(m->file, NULL, "a field has no name");
    check_keys(
        m->file, f->name, object,
        " name type versions taggedVersions tag nullableVersions default ignorable mapKey entityType "
        "zeroCopy about fields flexibleVersions ");
    f->snake = snake_case(f->name);
    f->about = text_of(object, "about");
    if (f->about == NULL) f->about = "";
    f->type_text = text_of(object, "type");
    if (f->type_text == NULL) fail(m->file, f->name, "has no type");
    f->entity = text_of(object, "entityType");
    f->ignorable = flag_of(object, "ignorable");
    f->map_key = flag_of(object, "mapKey");
    f->zero_copy = flag_of(object, "zeroCopy");
    f->nullable = parse_versions(m->file, f->name, text_of(object, "nullableVersions"));
    f->tagged = parse_versions(m->file, f->name, text_of(object, "taggedVersions"));
    const char *versions = text_of(object, "versions");
    f->versions = versions != NULL ? parse_versions(m->file, f->name, versions) : f->tagged;
    f->tag = number_of(m->file, object, "tag");
    if ((f->tag >= 0) != (f->tagged.min <= f->tagged.max))
        fail(m->file, f->name, "tag and taggedVersions go together");
    if (f->tag > TAG_MAX) fail(m->file, f->name, "tags go to %d", TAG_MAX);
    const char *flexible = text_of(object, "flexibleVersions");
    if (flexible != NULL && strcmp(flexible, "none") != 0)
        fail(m->file, f->name, "flexibleVersions may only be none");
    f->never_flexible = flexible != NULL;
    f->default_text = text_of(object, "default");
    struct json_object *value;
    if (json_object_object_get_ex(object, "default", &value))
        f->default_is_string = json_object_is_type(value, json_type_string);
    parse_type(m, f, object);
}

static void parse_fields(struct message *m, struct shape *shape, struct json_object *list)
{
    int count = (int)json_object_array_length(list);
    shape->fields = keep(sizeof(shape->fields[0]) * (size_t)count);
    shape->field_count = count;
    for (int i = 0; i < count; i++) {
        parse_field(m, &shape->fields[i], json_object_array_get_idx(list, (size_t)i));
        for (int j = 0; j < i; j++)
            if (strcmp(shape->fields[j].name, shape->fields[i].name) == 0)
                fail(m->file, shape->fields[i].name, "is there twice");
    }
}

static void parse_listeners(struct message *m, struct json_object *object)
{
    struct json_object *list;
    if (!json_object_object_get_ex(object, "listeners", &list)) return;
    for (size_t i = 0; i < json_object_array_length(list); i++) {
        const char *name = json_object_get_string(json_object_array_get_idx(list, i));
        if (strcmp(name, "broker") == 0)
            m->listens_broker = true;
        else if (strcmp(name, "controller") == 0)
            m->listens_controller = true;
        else if (strcmp(name, "zkBroker") == 0)
            m->listens_zk = true;
        else
            fail(m->file, NULL, "no listener \"%s\"", name);
    }
}

/* The `//` lines above the fields, without their slashes. */
static void parse_notes(struct message *m, const char *text)
{
    for (const char *line = text; line != NULL && *line != '\0';) {
        const char *end = strchr(line, '\n');
        const char *p = line + strspn(line, " \t");
        if (strncmp(p, "\"fields\"", 8) == 0) return;
        if (strncmp(p, "//", 2) == 0) {
            p += 2;
            if (*p == ' ') p++;
            int size = (int)(end != NULL ? end - p : (long)strlen(p));
            m->notes = realloc(m->notes, sizeof(m->notes[0]) * (size_t)(m->note_count + 1));
            if (m->notes == NULL) fail(m->file, NULL, "out of memory");
            m->notes[m->note_count++] = keep_format("%.*s", size, p);
        }
        line = end != NULL ? end + 1 : NULL;
    }
}

static char *read_file(const char *path)
{
    FILE *in = fopen(path, "r");
    if (in == NULL) fail(path, NULL, "cannot be opened");
    fseek(in, 0, SEEK_END);
    long size = ftell(in);
    rewind(in);
    char *text = keep((size_t)size + 1);
    if (fread(text, 1, (size_t)size, in) != (size_t)size) fail(path, NULL, "cannot be read");
    fclose(in);
    return text;
}

static void parse_ranges(struct message *m, struct json_object *object)
{
    m->valid = parse_versions(m->file, "validVersions", text_of(object, "validVersions"));
    const char *served = text_of(object, "servedVersions");
    m->served = served != NULL ? parse_versions(m->file, "servedVersions", served) : m->valid;
    m->flexible = parse_versions(m->file, "flexibleVersions", text_of(object, "flexibleVersions"));
    m->has_deprecated = text_of(object, "deprecatedVersions") != NULL;
    m->deprecated =
        parse_versions(m->file, "deprecatedVersions", text_of(object, "deprecatedVersions"));
    m->latest_unstable = flag_of(object, "latestVersionUnstable");
}

/* Common structs may name one another: all names first, then their fields. */
static void parse_common(struct message *m, struct json_object *object)
{
    struct json_object *list, *fields;
    if (!json_object_object_get_ex(object, "commonStructs", &list)) return;
    size_t count = json_object_array_length(list);
    for (size_t i = 0; i < count; i++) {
        struct json_object *common = json_object_array_get_idx(list, i);
        struct shape *shape = add_nested(m, text_of(common, "name"));
        shape->common = true;
        shape->versions = parse_versions(m->file, shape->name, text_of(common, "versions"));
    }
    for (size_t i = 0; i < count; i++) {
        struct json_object *common = json_object_array_get_idx(list, i);
        struct shape *shape = find_shape(m, text_of(common, "name"));
        if (!json_object_object_get_ex(common, "fields", &fields))
            fail(m->file, shape->name, "has no fields");
        parse_fields(m, shape, fields);
    }
}

static struct message *parse_message(const char *path)
{
    struct message *m = keep(sizeof(*m));
    m->file = path;
    char *text = read_file(path);
    struct json_tokener *tokener = json_tokener_new();
    struct json_object *object = json_tokener_parse_ex(tokener, text, (int)strlen(text));
    if (object == NULL)
        fail(path, NULL, "not JSON at byte %zu: %s", json_tokener_get_parse_end(tokener),
             json_tokener_error_desc(json_tokener_get_error(tokener)));
    size_t end = json_tokener_get_parse_end(tokener);
    if (end + strspn(text + end, " \t\r\n") != strlen(text))
        fail(path, NULL, "something follows the object at byte %zu", end);
    json_tokener_free(tokener);
    check_keys(
        path, NULL, object,
        " apiKey type listeners name validVersions servedVersions flexibleVersions fields commonStructs "
        "deprecatedVersions latestVersionUnstable ");
    m->name = text_of(object, "name");
    m->kind = text_of(object, "type");
    if (m->name == NULL || m->kind == NULL) fail(path, NULL, "name and type are needed");
    m->snake = snake_case(m->name);
    m->api_key = number_of(path, object, "apiKey");
    parse_ranges(m, object);
    parse_listeners(m, object);
    parse_notes(m, text);

    add_shape(m, m->name, m->snake);
    parse_common(m, object);
    struct json_object *list;
    if (!json_object_object_get_ex(object, "fields", &list)) fail(path, NULL, "has no fields");
    parse_fields(m, m->shapes[0], list);
    return m;
}

static int by_name(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

struct message **schema_read(const char *dir, int *count)
{
    char *folder = keep_format("%s/messages", dir);
    DIR *d = opendir(folder);
    if (d == NULL) fail(folder, NULL, "%s", strerror(errno));
    const char **paths = NULL;
    int n = 0;
    for (struct dirent *entry; (entry = readdir(d)) != NULL;) {
        size_t size = strlen(entry->d_name);
        if (size < 5 || strcmp(entry->d_name + size - 5, ".json") != 0) continue;
        paths = realloc(paths, sizeof(paths[0]) * (size_t)(n + 1));
        if (paths == NULL) fail(folder, NULL, "out of memory");
        paths[n++] = keep_format("%s/%.*s", folder, (int)size - 5, entry->d_name);
    }
    closedir(d);
    if (n == 0) fail(folder, NULL, "holds no schema");
    qsort(paths, (size_t)n, sizeof(paths[0]), by_name);
    struct message **messages = keep(sizeof(messages[0]) * (size_t)n);
    for (int i = 0; i < n; i++) {
        messages[i] = parse_message(keep_format("%s.json", paths[i]));
        const char *stem = strrchr(paths[i], '/') + 1;
        if (strcmp(stem, messages[i]->name) != 0)
            fail(paths[i], NULL, "holds message %s", messages[i]->name);
    }
    *count = n;
    return messages;
}
