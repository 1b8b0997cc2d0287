/* config.c - `dohle config list` and `dohle config explain NAME`: every setting, from the table
 * that also checks it. */
#include "core/config.h"
#include "cli/cli.h"
#include "text/nearest.h"

#include <float.h>

static const char *const type_names[] = {
    [CONFIG_BOOLEAN] = "boolean", [CONFIG_STRING] = "string", [CONFIG_INT] = "int",
    [CONFIG_SHORT] = "short",     [CONFIG_LONG] = "long",     [CONFIG_DOUBLE] = "double",
    [CONFIG_LIST] = "list",       [CONFIG_CLASS] = "class",   [CONFIG_PASSWORD] = "password",
};
static const char *const scope_names[] = {"broker", "topic", "group", "client-metrics"};
static const char *const honoured_names[] = {"no", "partly", "yes"};
static const char *const dynamic_names[] = {"only at start", "per broker, while it runs",
                                            "for the cluster or per broker, while it runs"};

static int scope_of(const char *name)
{
    for (int i = 0; i < (int)ARRAY_SIZE(scope_names); i++)
        if (strcmp(scope_names[i], name) == 0) return i;
    return -1;
}

static bool wanted(const struct cli *cli, const struct config_def *def)
{
    if (def->internal) return false;
    if (cli_has(cli, "own") && !def->own) return false;
    return cli->word_count == 0 || strstr(def->name, cli->words[0]) != NULL;
}

static void put_row(struct out *out, const struct config_def *def)
{
    out_text(out, def->name);
    out_char(out, ' ');
    out_column(out, 52);
    out_format(out, "%s ", type_names[def->type]);
    out_column(out, 61);
    out_format(out, "%s ", honoured_names[def->honoured]);
    out_column(out, 68);
    out_text(out, def->default_text == NULL ? "-" : def->default_text);
    out_char(out, '\n');
}

static int run_list(struct cli *cli)
{
    const char *scope_text = cli_value(cli, "scope");
    int scope = scope_text == NULL ? CONFIG_BROKER : scope_of(scope_text);
    uint32_t count, shown = 0;
    const struct config_def *defs = config_all((enum config_scope)scope, &count);
    out_text(&cli->out, "NAME");
    out_column(&cli->out, 52);
    out_text(&cli->out, "TYPE     DOES   DEFAULT\n");
    for (uint32_t i = 0; i < count; i++) {
        if (!wanted(cli, &defs[i])) continue;
        put_row(&cli->out, &defs[i]);
        shown++;
    }
    if (shown == 0)
        return cli_fail(cli, CLI_FAILED, "no setting has \"%s\" in its name", cli->words[0]);
    return CLI_OK;
}

static void put_values(struct out *out, const struct config_def *def)
{
    if (def->values != NULL) {
        out_text(out, "  values    ");
        for (uint32_t i = 0; def->values[i] != NULL; i++)
            out_format(out, "%s%s", i == 0 ? "" : ", ", def->values[i]);
        out_char(out, '\n');
        return;
    }
    bool from = def->min > -DBL_MAX, to = def->max < DBL_MAX;
    if (!from && !to) return;
    out_text(out, "  range     ");
    if (from) out_format(out, "from %.15g ", def->min);
    if (to) out_format(out, "to %.15g ", def->max);
    if (def->not_zero) out_text(out, "and not 0");
    out_trim(out);
    out_char(out, '\n');
}

static void put_page(struct out *out, const struct config_def *def)
{
    out_format(out, "%s (%s setting)\n\n  ", def->name, scope_names[def->scope]);
    out_wrapped(out, def->meaning, 2, 80);
    out_format(out, "\n\n  type      %s\n  default   %s\n", type_names[def->type],
               def->default_text == NULL      ? "none"
               : def->default_text[0] == '\0' ? "empty"
                                              : def->default_text);
    put_values(out, def);
    if (def->scope == CONFIG_BROKER)
        out_format(out, "  changed   %s\n", dynamic_names[def->dynamic]);
    out_format(out, "  honoured  %s\n", honoured_names[def->honoured]);
    if (def->own) out_text(out, "  from      Dohle; Apache Kafka does not know it\n");
    if (def->synonyms != NULL) {
        out_text(out, "  default   comes from the broker's ");
        for (uint32_t i = 0; def->synonyms[i] != NULL; i++)
            out_format(out, "%s%s", i == 0 ? "" : ", ", def->synonyms[i]);
        out_char(out, '\n');
    }
}

static int run_explain(struct cli *cli)
{
    struct view name = view_of_string(cli->words[0]);
    struct nearest nearest = nearest_to(name);
    uint32_t found = 0;
    for (int scope = 0; scope < (int)ARRAY_SIZE(scope_names); scope++) {
        uint32_t count;
        const struct config_def *defs = config_all((enum config_scope)scope, &count);
        for (uint32_t i = 0; i < count; i++) {
            nearest_offer(&nearest, defs[i].name);
            if (!view_is(name, defs[i].name)) continue;
            if (found++ > 0) out_char(&cli->out, '\n');
            put_page(&cli->out, &defs[i]);
        }
    }
    if (found > 0) return CLI_OK;
    cli_fail(cli, CLI_FAILED, "there is no setting %s", cli->words[0]);
    if (nearest.best != NULL) cli_hint(cli, "did you mean %s?", nearest.best);
    return CLI_FAILED;
}

static const struct cli_option list_options[] = {
    {"scope", 0, "SCOPE", "broker|topic|group|client-metrics",
     "whose settings; broker if not said"                                                                  },
    {"own",   0, NULL,    NULL,                                "only those that Apache Kafka does not have"},
    {NULL,    0, NULL,    NULL,                                NULL                                        },
};

extern const struct cli_command command_config_list;
const struct cli_command command_config_list = {
    .name = "config list",
    .group = CLI_RUN,
    .summary = "every setting with its type, default, and whether it does something here",
    .arguments = "[PART] [--scope SCOPE] [--own]",
    .about = "Names, types and defaults are Apache Kafka's. DOES tells whether Dohle does what the "
             "setting says; one that it does not is taken and has no effect.",
    .options = list_options,
    .words_max = 1,
    .run = run_list,
};

extern const struct cli_command command_config_explain;
const struct cli_command command_config_explain = {
    .name = "config explain",
    .group = CLI_RUN,
    .summary = "all about one setting",
    .arguments = "NAME",
    .words_min = 1,
    .words_max = 1,
    .run = run_explain,
};
