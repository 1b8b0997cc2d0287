/* commands.c - the list of all commands. To add one: write its file, declare it here, put it in the
 * list at its place on the screen. */
#include "cli/cli.h"

extern const struct cli_command command_check_broker_liveness;
extern const struct cli_command command_check_liveness;
extern const struct cli_command command_cluster_brokers;
extern const struct cli_command command_cluster_describe;
extern const struct cli_command command_cluster_quorum;
extern const struct cli_command command_config_explain;
extern const struct cli_command command_config_list;
extern const struct cli_command command_consume;
extern const struct cli_command command_doctor;
extern const struct cli_command command_explain_broker;
extern const struct cli_command command_explain_member;
extern const struct cli_command command_group_delete;
extern const struct cli_command command_group_describe;
extern const struct cli_command command_group_list;
extern const struct cli_command command_group_reset_offsets;
extern const struct cli_command command_log_check;
extern const struct cli_command command_log_dump;
extern const struct cli_command command_man;
extern const struct cli_command command_produce;
extern const struct cli_command command_ready;
extern const struct cli_command command_start;
extern const struct cli_command command_completions;
extern const struct cli_command command_topic_alter;
extern const struct cli_command command_topic_create;
extern const struct cli_command command_topic_delete;
extern const struct cli_command command_topic_describe;
extern const struct cli_command command_topic_list;
extern const struct cli_command command_wire_decode;
extern const struct cli_command command_wire_encode;
extern const struct cli_command command_wire_diff;
extern const struct cli_command command_wire_list;
extern const struct cli_command command_wire_page;
extern const struct cli_command command_wire_show;
extern const struct cli_command command_wire_site;
extern const struct cli_command command_wire_tap;

/* One a line, in the order of the screen. */
/* clang-format off */
const struct cli_command *const cli_commands[] = {
    &command_start,
    &command_ready,
    &command_config_list,
    &command_config_explain,
    &command_produce,
    &command_consume,
    &command_topic_create,
    &command_topic_list,
    &command_topic_describe,
    &command_topic_alter,
    &command_topic_delete,
    &command_cluster_describe,
    &command_cluster_brokers,
    &command_cluster_quorum,
    &command_group_list,
    &command_group_describe,
    &command_group_reset_offsets,
    &command_group_delete,
    &command_explain_broker,
    &command_explain_member,
    &command_log_check,
    &command_log_dump,
    &command_wire_list,
    &command_wire_show,
    &command_wire_page,
    &command_wire_decode,
    &command_wire_encode,
    &command_wire_diff,
    &command_wire_tap,
    &command_wire_site,
    &command_doctor,
    &command_check_liveness,
    &command_check_broker_liveness,
    &command_completions,
    &command_man,
};
const int cli_command_count = ARRAY_SIZE(cli_commands);

const struct cli_family cli_families[] = {
    {"config", CLI_RUN, "the settings: list all, explain one"},
    {"topic", CLI_TALK, "topics: create, list, describe, alter, delete"},
    {"group", CLI_TALK, "groups: list, describe, reset their offsets, delete"},
    {"cluster", CLI_TALK, "the cluster: describe it, its brokers, its quorum"},
    {"explain", CLI_LOOK, "why is it so? ask a running node"},
    {"log", CLI_LOOK, "a log's files: dump them, check them"},
    {"wire", CLI_LOOK, "Kafka's messages byte for byte: show, decode, encode, diff, tap, pages"},
    {"check", CLI_CHECK, "does a running server do what Apache Kafka does?"},
};
/* clang-format on */
const int cli_family_count = ARRAY_SIZE(cli_families);
