/* explain.c - `dohle explain ...`: ask a running node why something is as it is. */
#include "cli/ask.h"

#include <ctype.h>
#include <stdio.h>

/* Append `text` percent-encoded. False: the path is full. */
static bool append(char *path, const char *text)
{
    size_t at = strlen(path);
    for (; *text != '\0'; text++) {
        unsigned char c = (unsigned char)*text;
        bool plain = isalnum(c) || strchr("-._~", c) != NULL;
        if (at + 4 > ASK_PATH_BYTES) return false;
        at += (size_t)snprintf(path + at, 4, plain ? "%c" : "%%%02X", c);
    }
    return true;
}

/* Ask for `/explain/WHAT/WORD...` with the command's words. */
static int ask(struct cli *cli, const char *what, uint32_t words)
{
    char path[ASK_PATH_BYTES] = "";
    struct ask_target target;
    enum cli_exit code = ask_where(cli, &target);
    if (code != CLI_OK) return (int)code;
    (void)snprintf(path, sizeof(path), "/explain/%s%s", cli_has(cli, "json") ? "" : "text/", what);
    for (uint32_t i = 0; i < words; i++) {
        bool fits = strlen(path) + 2 < sizeof(path);
        if (fits) (void)snprintf(path + strlen(path), 2, "/");
        if (!fits || !append(path, cli->words[i]))
            return cli_fail(cli, CLI_USAGE, "the ids are too long");
    }
    int status = ask_get(&target, path, &cli->out);
    if (status < 0) {
        (void)cli_fail(cli, CLI_FAILED, "no node answers at %s: %s", target.text,
                       strerror(-status));
        cli_hint(cli, "--data names the data directory of a node on this machine, --http its "
                      "dohle.http.listener");
        return CLI_FAILED;
    }
    return status == 200 ? CLI_OK : CLI_FAILED;
}

static int run_member(struct cli *cli)
{
    return ask(cli, "member", 2);
}

static int run_broker(struct cli *cli)
{
    return ask(cli, "broker", 1);
}

static const struct cli_option options[] = {
    ASK_OPTIONS,
    CLI_FLAG("json", 0, "one line of JSON instead of text"),
    CLI_OPTIONS_END,
};

extern const struct cli_command command_explain_member;
const struct cli_command command_explain_member = {
    .name = "explain member",
    .group = CLI_LOOK,
    .summary = "why is a member in its group, or not any more?",
    .arguments = "GROUP MEMBER [--json] [--data DIR | --http ADDRESS:PORT]",
    .about =
        "Tells what a running node knows of a member of a group: whether it is one, its last "
        "contact and when its session ends; why and when it was removed or fenced; what "
        "happened to the group before and after, as far as the node remembers. Its memory begins "
        "when it loaded the group from __consumer_offsets: of the time before, only what is in "
        "there is told.\n\n"
        "MEMBER is the member's id, as `dohle group describe` and Kafka's tools show it. Exit code "
        "1 if there is no such group.",
    .options = options,
    .words_min = 2,
    .words_max = 2,
    .run = run_member,
};

extern const struct cli_command command_explain_broker;
const struct cli_command command_explain_broker = {
    .name = "explain broker",
    .group = CLI_LOOK,
    .summary = "why is a broker fenced, or not?",
    .arguments = "ID [--json] [--data DIR | --http ADDRESS:PORT]",
    .about =
        "Tells what a running controller knows of a broker: its state, since when and why; what is "
        "missing before it is unfenced or may stop; its epoch and directories, what it leads; its "
        "last heartbeats and when its session ends. The memory of heartbeats and reasons begins "
        "when the controller became active: of the time before, only what the metadata log proves "
        "is told.\n\n"
        "Exit code 1 if no such broker is registered.",
    .options = options,
    .words_min = 1,
    .words_max = 1,
    .run = run_broker,
};
