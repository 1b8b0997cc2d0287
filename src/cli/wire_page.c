/* wire_page.c - `dohle wire page`: the reference page of one API or record in one version. */
#include "cli/wire.h"
#include "text/page_html.h"

#include <string.h>

static int run(struct cli *cli)
{
    struct page_subject subject;
    struct wire_choice choice;
    const char *format = cli_value(cli, "format");
    bool html = format != NULL && strcmp(format, "html") == 0;
    int16_t version;
    struct arena arena;
    struct page page;

    enum cli_exit code = wire_choose(cli, cli->words[0], &choice);
    if (code != CLI_OK) return (int)code;
    subject = (struct page_subject){choice.api, choice.messages[0]};
    if (subject.api != NULL) subject.message = subject.api->request; /* A response has no page. */
    code = wire_choose_version(cli, subject.message, &version);
    if (code != CLI_OK) return (int)code;
    arena_init(&arena, cli->mem, 0);
    if (!page_build(&page, &subject, version, &arena)) {
        arena_free(&arena);
        return cli_fail(cli, CLI_FAILED, "out of memory");
    }
    struct tree_style style = {.color = cli->color, .about_max = TREE_ABOUT_MAX};
    if (html) {
        page_html(&cli->out, &page, true);
    } else {
        page_text(&cli->out, &page, &style);
    }
    arena_free(&arena);
    return CLI_OK;
}

static const struct cli_option options[] = {
    CLI_OPTION("version", 'V', "N", "Version of the messages; the newest if not given."),
    CLI_CHOICE("format", 'f', "FORMAT", "text|html", "How to print it; the default is text."),
    CLI_OPTIONS_END,
};

const struct cli_command command_wire_page = {
    .name = "wire page",
    .group = CLI_LOOK,
    .summary = "the reference page of an API or record: facts, bytes, tree, schema",
    .arguments = "API|RECORD [--version N] [--format text|html]",
    .about =
        "The page of one version shows the API or record as it stood when that version was the newest: "
        "what came later is left out. `dohle wire site` writes the pages of all.",
    .options = options,
    .words_min = 1,
    .words_max = 1,
    .run = run,
};
