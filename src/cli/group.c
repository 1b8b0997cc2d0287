/* group.c - `dohle group list` and `dohle group delete`. */
#include <stdlib.h>

#include "cli/talk.h"

#include "gen/delete_groups_request.h"
#include "gen/delete_groups_response.h"
#include "gen/list_groups_request.h"
#include "gen/list_groups_response.h"
#include "gen/metadata_response.h"

/* ---- list -------------------------------------------------------------------------------------
 */

static int by_id(const void *a, const void *b)
{
    const struct list_groups_response_listed_group *one = a, *two = b;
    return view_compare(one->group_id, two->group_id);
}

static void list_print(struct cli *cli, const struct list_groups_response_listed_group *group)
{
    struct out *out = &cli->out;
    if (cli_has(cli, "json")) {
        out_text(out, "{\"group\":");
        out_quoted(out, group->group_id);
        out_text(out, ",\"type\":");
        out_quoted(out, group->group_type);
        out_text(out, ",\"protocolType\":");
        out_quoted(out, group->protocol_type);
        out_text(out, ",\"state\":");
        out_quoted(out, group->group_state);
        out_text(out, "}\n");
        return;
    }
    out_view(out, group->group_id);
    out_column(out, 40);
    out_char(out, ' ');
    out_view(out, group->group_type);
    out_column(out, 52);
    out_view(out, group->group_state);
    out_char(out, '\n');
}

static int16_t list_error(const void *answer)
{
    return ((const struct list_groups_response *)answer)->error_code;
}

static int list(struct talk *talk)
{
    struct list_groups_response_listed_group *all = NULL;
    size_t count = 0;
    for (int32_t i = 0; i < talk->metadata->brokers.count; i++) {
        struct dial *dial = talk_broker(talk, talk->metadata->brokers.items[i].node_id);
        struct list_groups_request *ask = talk_new(talk, &wire_list_groups_request);
        if (dial == NULL) return CLI_FAILED;
        const struct list_groups_response *answer = talk_ask(
            talk, dial, &(struct talk_question){&wire_list_groups_request, ask, 5, list_error});
        if (answer == NULL) return CLI_FAILED;
        if (answer->error_code != KAFKA_NONE)
            return talk_fail(talk, "the list of groups", answer->error_code);
        size_t more = (size_t)MAX(answer->groups.count, 0);
        struct list_groups_response_listed_group *grown =
            talk_get(talk, (count + more) * sizeof(*grown));
        if (grown == NULL) return CLI_FAILED;
        if (count > 0) memcpy(grown, all, count * sizeof(*grown));
        if (more > 0) memcpy(grown + count, answer->groups.items, more * sizeof(*grown));
        all = grown;
        count += more;
    }
    if (count > 0) qsort(all, count, sizeof(*all), by_id);
    for (size_t i = 0; i < count; i++)
        list_print(talk->cli, &all[i]);
    if (count == 0 && !cli_has(talk->cli, "json")) fputs("no groups\n", talk->cli->errors);
    return CLI_OK;
}

static int run_list(struct cli *cli)
{
    struct talk talk;
    int code = (int)talk_open(cli, &talk);
    if (code == CLI_OK) code = list(&talk);
    talk_close(&talk);
    return code;
}

/* ---- delete -----------------------------------------------------------------------------------
 */

static int16_t delete_error(const void *answer)
{
    const struct delete_groups_response *deleted = answer;
    return deleted->results.count == 1 ? deleted->results.items[0].error_code : (int16_t)KAFKA_NONE;
}

static int delete_one(struct talk *talk, const char *name)
{
    char what[320];
    int32_t id;
    struct view names = view_of_string(name);
    struct dial *dial = talk_coordinator(talk, name, &id);
    struct delete_groups_request *ask = talk_new(talk, &wire_delete_groups_request);
    if (dial == NULL || ask == NULL) return CLI_FAILED;
    ask->groups_names.items = &names;
    ask->groups_names.count = 1;
    const struct delete_groups_response *answer = talk_ask(
        talk, dial, &(struct talk_question){&wire_delete_groups_request, ask, 2, delete_error});
    if (answer == NULL || answer->results.count != 1) return CLI_FAILED;
    (void)snprintf(what, sizeof(what), "group \"%s\"", name);
    if (answer->results.items[0].error_code != KAFKA_NONE)
        return talk_fail(talk, what, answer->results.items[0].error_code);
    if (cli_has(talk->cli, "json")) {
        out_text(&talk->cli->out, "{\"group\":");
        out_quoted(&talk->cli->out, names);
        out_text(&talk->cli->out, ",\"done\":\"deleted\"}\n");
    } else {
        out_format(&talk->cli->out, "deleted %s\n", what);
    }
    return CLI_OK;
}

static int run_delete(struct cli *cli)
{
    struct talk talk;
    int code = (int)talk_open(cli, &talk);
    for (int i = 0; i < cli->word_count && code != CLI_USAGE && talk.metadata != NULL; i++)
        if (delete_one(&talk, cli->words[i]) != CLI_OK) code = CLI_FAILED;
    talk_close(&talk);
    return code;
}

static const struct cli_option options[] = {TALK_OPTIONS, CLI_OPTIONS_END};

extern const struct cli_command command_group_list;
const struct cli_command command_group_list = {
    .name = "group list",
    .group = CLI_TALK,
    .summary = "all groups with their type and state",
    .arguments = "[-b HOST:PORT] [--json]",
    .options = options,
    .run = run_list,
};

extern const struct cli_command command_group_delete;
const struct cli_command command_group_delete = {
    .name = "group delete",
    .group = CLI_TALK,
    .summary = "delete groups that have no members, with their offsets",
    .arguments = "GROUP... [-b HOST:PORT] [--json]",
    .options = options,
    .words_min = 1,
    .words_max = CLI_WORDS_MAX,
    .run = run_delete,
};
