/* metricc.c - compiles schema/metrics.json into C.
 *
 *   metricc SCHEMA_DIR OUTPUT_DIR
 *
 * Writes OUTPUT_DIR/metrics.h (enum metric) and OUTPUT_DIR/metrics.c (the table of net/metrics.h).
 */
#include <ctype.h>
#include <json-c/json.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "output.h"

static const char *text_of(struct json_object *entry, const char *key)
{
    struct json_object *value = NULL;
    if (!json_object_object_get_ex(entry, key, &value)) {
        fprintf(stderr, "metricc: an entry has no %s: %s\n", key,
                json_object_to_json_string(entry));
        exit(1);
    }
    return json_object_get_string(value);
}

static void write_header(FILE *out, struct json_object *metrics)
{
    fputs("/* metrics.h - made by tools/metricc from schema/metrics.json. */\n#pragma once\n\n"
          "enum metric {\n",
          out);
    for (size_t i = 0; i < json_object_array_length(metrics); i++) {
        const char *name = text_of(json_object_array_get_idx(metrics, i), "name");
        fputs("    METRIC_", out);
        for (const char *at = name; *at != '\0'; at++)
            fputc(toupper((unsigned char)*at), out);
        fputs(",\n", out);
    }
    fputs("    METRIC_COUNT\n};\n", out);
}

static void write_table(FILE *out, struct json_object *metrics)
{
    fputs("/* metrics.c - made by tools/metricc from schema/metrics.json. */\n"
          "#include \"net/metrics.h\"\n\nconst struct metric_def metric_defs[METRIC_COUNT] = {\n",
          out);
    for (size_t i = 0; i < json_object_array_length(metrics); i++) {
        struct json_object *entry = json_object_array_get_idx(metrics, i);
        const char *kind = text_of(entry, "kind");
        if (strcmp(kind, "counter") != 0 && strcmp(kind, "gauge") != 0) {
            fprintf(stderr, "metricc: unknown kind: %s\n", kind);
            exit(1);
        }
        struct json_object *about = json_object_new_string(text_of(entry, "about"));
        fprintf(out, "    {\"%s\", %s, \"%s\", %s},\n", text_of(entry, "name"),
                kind[0] == 'c' ? "METRIC_COUNTER" : "METRIC_GAUGE", text_of(entry, "unit"),
                json_object_to_json_string_ext(about, JSON_C_TO_STRING_NOSLASHESCAPE));
        json_object_put(about);
    }
    fputs("};\n", out);
}

int main(int argc, char **argv)
{
    if (argc != 3) {
        fputs("usage: metricc SCHEMA_DIR OUTPUT_DIR\n", stderr);
        return 2;
    }
    char path[4096];
    if (snprintf(path, sizeof(path), "%s/metrics.json", argv[1]) >= (int)sizeof(path)) return 1;
    struct json_object *root = json_object_from_file(path), *metrics = NULL;
    if (root == NULL || !json_object_object_get_ex(root, "metrics", &metrics)) {
        fprintf(stderr, "metricc: %s: %s\n", path, json_util_get_last_err());
        return 1;
    }
    struct output header = output_open("%s/metrics.h", argv[2]);
    write_header(header.file, metrics);
    output_close(&header);
    struct output table = output_open("%s/metrics.c", argv[2]);
    write_table(table.file, metrics);
    output_close(&table);
    json_object_put(root);
    return 0;
}
