/* configc.c - compiles schema/configs.json into C.
 *
 *   configc SCHEMA_DIR OUTPUT_DIR
 *
 * Writes OUTPUT_DIR/config_table.h and config_table.c: the table of core/config.h, by scope and
 * name. Refuses what the table cannot mean: an unknown key or type, a missing meaning, two entries
 * with one name, entries out of order. */
#include <json-c/json.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "output.h"

struct choice {
    const char *text;
    const char *name;
};

static const struct choice types[] = {
    {"boolean",  "CONFIG_BOOLEAN" },
    {"string",   "CONFIG_STRING"  },
    {"int",      "CONFIG_INT"     },
    {"short",    "CONFIG_SHORT"   },
    {"long",     "CONFIG_LONG"    },
    {"double",   "CONFIG_DOUBLE"  },
    {"list",     "CONFIG_LIST"    },
    {"class",    "CONFIG_CLASS"   },
    {"password", "CONFIG_PASSWORD"},
    {NULL,       NULL             }
};
static const struct choice scopes[] = {
    {"broker",         "CONFIG_BROKER"        },
    {"topic",          "CONFIG_TOPIC"         },
    {"group",          "CONFIG_GROUP"         },
    {"client-metrics", "CONFIG_CLIENT_METRICS"},
    {NULL,             NULL                   }
};
static const struct choice dynamics[] = {
    {"no",           "CONFIG_READ_ONLY"   },
    {"per-broker",   "CONFIG_PER_BROKER"  },
    {"cluster-wide", "CONFIG_CLUSTER_WIDE"},
    {NULL,           NULL                 }
};
static const struct choice honours[] = {
    {"no",     "CONFIG_IGNORED" },
    {"partly", "CONFIG_PARTLY"  },
    {"yes",    "CONFIG_HONOURED"},
    {NULL,     NULL             }
};
static const struct choice forms[] = {
    {"any",        "CONFIG_FORM_ANY"       },
    {"replicas",   "CONFIG_FORM_REPLICAS"  },
    {"reset",      "CONFIG_FORM_RESET"     },
    {"distinct",   "CONFIG_FORM_DISTINCT"  },
    {"unreserved", "CONFIG_FORM_UNRESERVED"},
    {NULL,         NULL                    }
};

static const char *const keys[] = {"name",     "scope",    "type",   "default",   "meaning",
                                   "synonyms", "values",   "min",    "max",       "dynamic",
                                   "honoured", "form",     "except", "non-empty", "ignore-case",
                                   "required", "internal", "own"};

static void fail(const char *name, const char *what)
{
    fprintf(stderr, "configc: %s: %s\n", name, what);
    exit(1);
}

static const char *text_or(struct json_object *entry, const char *key, const char *standard)
{
    struct json_object *value = NULL;
    if (!json_object_object_get_ex(entry, key, &value)) return standard;
    return json_object_get_string(value);
}

static const char *name_of(struct json_object *entry)
{
    const char *name = text_or(entry, "name", NULL);
    if (name == NULL) fail(json_object_to_json_string(entry), "an entry has no name");
    return name;
}

static const char *choice_of(struct json_object *entry,
                             const char *key,
                             const struct choice *choices,
                             const char *standard)
{
    const char *text = text_or(entry, key, standard);
    if (text == NULL) fail(name_of(entry), "a key is missing");
    for (; choices->text != NULL; choices++)
        if (strcmp(choices->text, text) == 0) return choices->name;
    fail(name_of(entry), "a value is not one of the choices");
    return NULL;
}

static void check_keys(struct json_object *entry)
{
    json_object_object_foreach(entry, key, value)
    {
        size_t i = 0;
        (void)value;
        while (i < sizeof(keys) / sizeof(keys[0]) && strcmp(keys[i], key) != 0)
            i++;
        if (i == sizeof(keys) / sizeof(keys[0])) fail(name_of(entry), "an unknown key");
    }
}

static void write_text(FILE *out, const char *text)
{
    if (text == NULL) {
        fputs("NULL", out);
        return;
    }
    fputc('"', out);
    for (; *text != '\0'; text++) {
        if (*text == '"' || *text == '\\') fputc('\\', out);
        fputc(*text, out);
    }
    fputc('"', out);
}

/* A list of texts as a NULL-terminated compound literal. */
static void write_list(FILE *out, struct json_object *entry, const char *key)
{
    struct json_object *list = NULL;
    if (!json_object_object_get_ex(entry, key, &list)) {
        fputs("NULL", out);
        return;
    }
    fputs("(const char *const[]){", out);
    for (size_t i = 0; i < json_object_array_length(list); i++) {
        write_text(out, json_object_get_string(json_object_array_get_idx(list, i)));
        fputs(", ", out);
    }
    fputs("NULL}", out);
}

static void write_bound(FILE *out, struct json_object *entry, const char *key, const char *standard)
{
    struct json_object *value = NULL;
    if (json_object_object_get_ex(entry, key, &value))
        fprintf(out, "%.17g", json_object_get_double(value));
    else
        fputs(standard, out);
}

static const char *flag_of(struct json_object *entry, const char *key)
{
    struct json_object *value = NULL;
    return json_object_object_get_ex(entry, key, &value) && json_object_get_boolean(value)
               ? "true"
               : "false";
}

static void write_entry(FILE *out, struct json_object *entry)
{
    struct json_object *except = NULL;
    const char *meaning = text_or(entry, "meaning", NULL);
    if (meaning == NULL || meaning[strlen(meaning) - 1] != '.')
        fail(name_of(entry), "the meaning is missing or not a sentence");
    if (json_object_object_get_ex(entry, "except", &except) && json_object_get_int(except) != 0)
        fail(name_of(entry), "`except` can only be 0");

    fputs("    {.name = ", out);
    write_text(out, name_of(entry));
    fputs(", .default_text = ", out);
    write_text(out, text_or(entry, "default", NULL));
    fputs(",\n     .meaning = ", out);
    write_text(out, meaning);
    fputs(",\n     .synonyms = ", out);
    write_list(out, entry, "synonyms");
    fputs(", .values = ", out);
    write_list(out, entry, "values");
    fputs(", .min = ", out);
    write_bound(out, entry, "min", "-CONFIG_UNBOUNDED");
    fputs(", .max = ", out);
    write_bound(out, entry, "max", "CONFIG_UNBOUNDED");
    fprintf(out, ",\n     .type = %s, .scope = %s, .dynamic = %s, .honoured = %s, .form = %s",
            choice_of(entry, "type", types, NULL), choice_of(entry, "scope", scopes, NULL),
            choice_of(entry, "dynamic", dynamics, "no"),
            choice_of(entry, "honoured", honours, NULL), choice_of(entry, "form", forms, "any"));
    fprintf(out, ", .not_zero = %s, .not_empty = %s, .any_case = %s, .required = %s",
            except != NULL ? "true" : "false", flag_of(entry, "non-empty"),
            flag_of(entry, "ignore-case"), flag_of(entry, "required"));
    fprintf(out, ", .internal = %s, .own = %s},\n", flag_of(entry, "internal"),
            flag_of(entry, "own"));
}

static int scope_index(struct json_object *entry)
{
    const char *scope = choice_of(entry, "scope", scopes, NULL);
    int i = 0;
    while (strcmp(scopes[i].name, scope) != 0)
        i++;
    return i;
}

static void check_order(struct json_object *before, struct json_object *entry)
{
    if (scope_index(before) > scope_index(entry)) fail(name_of(entry), "its scope is out of order");
    if (scope_index(before) == scope_index(entry) && strcmp(name_of(before), name_of(entry)) >= 0)
        fail(name_of(entry), "its name is out of order");
}

int main(int argc, char **argv)
{
    char path[4096];
    if (argc != 3 ||
        snprintf(path, sizeof(path), "%s/configs.json", argv[1]) >= (int)sizeof(path)) {
        fputs("usage: configc SCHEMA_DIR OUTPUT_DIR\n", stderr);
        return 2;
    }
    struct json_object *configs = json_object_from_file(path);
    if (configs == NULL) {
        fprintf(stderr, "configc: %s\n", json_util_get_last_err());
        return 1;
    }

    struct output header = output_open("%s/config_table.h", argv[2]);
    fprintf(
        header.file,
        "/* config_table.h - made by tools/configc from schema/configs.json. */\n#pragma once\n\n"
        "#include \"core/config.h\"\n\n#define CONFIG_COUNT %zu\n\n"
        "extern const struct config_def config_table[CONFIG_COUNT];\n",
        json_object_array_length(configs));
    output_close(&header);

    struct output table = output_open("%s/config_table.c", argv[2]);
    fputs(
        "/* config_table.c - made by tools/configc from schema/configs.json. */\n"
        "#include \"gen/config_table.h\"\n\nconst struct config_def config_table[CONFIG_COUNT] = {\n",
        table.file);
    for (size_t i = 0; i < json_object_array_length(configs); i++) {
        struct json_object *entry = json_object_array_get_idx(configs, i);
        check_keys(entry);
        if (i > 0) check_order(json_object_array_get_idx(configs, i - 1), entry);
        write_entry(table.file, entry);
    }
    fputs("};\n", table.file);
    output_close(&table);
    json_object_put(configs);
    return 0;
}
