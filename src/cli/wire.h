/* wire.h - what the `dohle wire` commands share: finding what a name means. */
#pragma once

#include "cli/cli.h"
#include "wire/form.h"

/* What the user named: an API (both messages), one message, or a record. */
struct wire_choice {
    const struct wire_api *api; /* NULL: a record or a header. */
    const struct wire_message *messages[2];
    int count;
};

/* Find what `name` means: an API ("Heartbeat"), its key ("12"), or a message ("HeartbeatRequest").
 * Upper and lower case are one. CLI_USAGE: nothing is called so; said, with the nearest name. */
MUST_USE enum cli_exit wire_choose(struct cli *cli, const char *name, struct wire_choice *out);

/* The same, but only an API will do. */
MUST_USE enum cli_exit wire_choose_api(struct cli *cli,
                                       const char *name,
                                       const struct wire_api **out);

/* The version that --version names, or the newest; checked against what the message has. */
MUST_USE enum cli_exit wire_choose_version(struct cli *cli,
                                           const struct wire_message *message,
                                           int16_t *version);

/* "0-4", "3", "none". */
void wire_range(struct out *out, int16_t min, int16_t max);
