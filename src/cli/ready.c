/* ready.c - `dohle ready`: ask a node over its socket whether it serves, for scripts and health
 * checks. */
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "cli/ask.h"
#include "cli/clock.h"

#define READY_PAUSE_MS 50

/* One try. True: ready. `cli->out` holds what to tell. */
static bool try_once(struct cli *cli, const struct ask_target *target)
{
    out_reset(&cli->out);
    int status = ask_get(target, "/readyz", &cli->out);
    if (status < 0)
        out_format(&cli->out, "not ready: nobody answers at %s: %s\n", target->text,
                   strerror(-status));
    return status == 200;
}

static int run(struct cli *cli)
{
    struct ask_target target;
    long long wait_s = 0;
    enum cli_exit code = cli_integer(cli, "wait", (struct cli_range){0, 86400}, &wait_s);
    if (code == CLI_OK) code = ask_where(cli, &target);
    if (code != CLI_OK) return (int)code;
    int64_t limit_ms = clock_now_ms() + 1000 * wait_s;
    bool ready = try_once(cli, &target);
    while (!ready && clock_now_ms() < limit_ms) {
        usleep(READY_PAUSE_MS * 1000);
        ready = try_once(cli, &target);
    }
    return ready ? CLI_OK : CLI_FAILED;
}

static const struct cli_option options[] = {
    ASK_OPTIONS,
    CLI_OPTION("wait", 'w', "SECONDS", "try again until it is ready, for so long"),
    CLI_OPTIONS_END,
};

extern const struct cli_command command_ready;
const struct cli_command command_ready = {
    .name = "ready",
    .group = CLI_RUN,
    .summary = "is a node ready to serve? for scripts and health checks",
    .arguments = "[--data DIR | --http ADDRESS:PORT] [--wait SECONDS]",
    .about =
        "Prints what the node says: that it is ready, or what is missing. Exit code 0 if it is "
        "ready, else 1.",
    .options = options,
    .run = run,
};
