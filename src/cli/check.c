/* check.c - `dohle check SUITE HOST:PORT`: give a running server a suite of rows. */
#include "check/check.h"

#include <stdio.h>

#include "cli/cli.h"

#define HOST_BYTES 256

/* "host:port", "[::1]:port"; CLI_USAGE: it is neither. `host` holds HOST_BYTES. */
static enum cli_exit split(struct cli *cli, const char *text, char *host, const char **port)
{
    const char *colon = strrchr(text, ':');
    if (colon == NULL || colon == text || colon[1] == '\0' || colon - text >= HOST_BYTES)
        return (enum cli_exit)cli_fail(cli, CLI_USAGE, "\"%s\" is no HOST:PORT", text);
    bool brackets = text[0] == '[' && colon[-1] == ']';
    (void)snprintf(host, HOST_BYTES, "%.*s", (int)(colon - text) - (brackets ? 2 : 0),
                   text + (brackets ? 1 : 0));
    *port = colon + 1;
    return CLI_OK;
}

static int run_suite(struct cli *cli,
                     const struct check_suite *suite,
                     const struct check_wish *wish)
{
    char host[HOST_BYTES];
    struct check_target target = {.host = host};
    struct check_report report;

    enum cli_exit code = split(cli, cli->words[0], host, &target.port);
    if (code != CLI_OK) return (int)code;
    bool ran = check_suite_run(suite, &target, wish, cli->mem, &report);
    if (!ran) code = (enum cli_exit)cli_fail(cli, CLI_FAILED, "%s", report.trouble);
    if (ran && cli_has(cli, "json")) check_report_json(&cli->out, &report);
    if (ran && !cli_has(cli, "json")) check_report_text(&cli->out, &report);
    if (ran && report.failed > 0) code = CLI_FAILED;
    if (ran && report.count == 0)
        code = (enum cli_exit)cli_fail(cli, CLI_USAGE, "no row has this in its name");
    check_report_free(&report, cli->mem);
    return (int)code;
}

static int run_liveness(struct cli *cli)
{
    struct check_wish wish = {
        .only = cli_value(cli, "only"),
        .restart = cli_value(cli, "restart"),
        .lengthy = cli_has(cli, "long"),
    };
    return run_suite(cli, &check_liveness, &wish);
}

static int run_broker_liveness(struct cli *cli)
{
    struct check_wish wish = {.only = cli_value(cli, "only")};
    return run_suite(cli, &check_broker_liveness, &wish);
}

static const struct cli_option options[] = {
    CLI_FLAG("json", 0, "One line of JSON instead of the table."),
    CLI_OPTION("only", 0, "TEXT", "Only the rows whose name has this in it."),
    CLI_OPTIONS_END,
};

static const struct cli_option liveness_options[] = {
    CLI_FLAG("json", 0, "One line of JSON instead of the table."),
    CLI_FLAG("long", 0, "Rows that take more than two minutes too."),
    CLI_OPTION("only", 0, "TEXT", "Only the rows whose name has this in it."),
    CLI_OPTION("restart",
               0,
               "COMMAND",
               "A shell's command that restarts the server, for rows about it."),
    CLI_OPTIONS_END,
};

extern const struct cli_command command_check_liveness;
const struct cli_command command_check_liveness = {
    .name = "check liveness",
    .group = CLI_CHECK,
    .summary = "do a server's groups live and die as Apache Kafka's?",
    .arguments = "HOST:PORT [--json] [--long] [--only TEXT] [--restart COMMAND]",
    .about =
        "Gives any Kafka-compatible server the rows of Heartbeat's rules in all versions: who is "
        "alive, who is unknown, fenced or of another generation, in every state of a group; what "
        "keeps a member and what ends it, on time; joins, syncs, leaves, static members; consumer "
        "groups (KIP-848), alone and with classic members.\n\n"
        "What Apache Kafka 4.4 does with its default settings is what is expected; rows about the "
        "size of groups, about rights and about other brokers ask a server that is set so. The rows run "
        "side by side, each in a group of its own whose name begins with dohle-check; they leave "
        "empty groups behind, which the server drops by itself. The "
        "command of --restart, such as 'systemctl restart kafka', is run once, behind all others; it "
        "is to stop the server in an orderly way.\n\n"
        "Exit code 0 if no row failed, else 1. A row that cannot be run on this server is skipped "
        "and says why.",
    .options = liveness_options,
    .words_min = 1,
    .words_max = 1,
    .run = run_liveness,
};

extern const struct cli_command command_check_broker_liveness;
const struct cli_command command_check_broker_liveness = {
    .name = "check broker-liveness",
    .group = CLI_CHECK,
    .summary = "does a controller keep its brokers as Apache Kafka's does?",
    .arguments = "HOST:PORT [--json] [--only TEXT]",
    .about =
        "Gives a KRaft controller's listener scripted brokers that register, beat, fall silent, "
        "shut down, come back as another process, report dead and cordoned directories: the "
        "transition table of BrokerHeartbeat in all versions, its errors, sessions, the rules of "
        "registration.\n\n"
        "What Apache Kafka 4.4 does with its default settings is what is expected. The rows run "
        "side by side with brokers whose ids begin at 1000000000, and topics whose names begin "
        "with dohle-check; both are taken away at the end. Clients of the cluster see them for a "
        "moment: not for a cluster that others work with.\n\n"
        "Exit code 0 if no row failed, else 1. A row that cannot be run on this controller is "
        "skipped and says why.",
    .options = options,
    .words_min = 1,
    .words_max = 1,
    .run = run_broker_liveness,
};
