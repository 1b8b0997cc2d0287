/* start.h - what `dohle start` and its test mode share. */
#pragma once

#include "broker/node.h"
#include "cli/cli.h"
#include "cli/settings.h"

/* A topic asked for by --topic NAME:PARTITIONS. */
struct start_topic {
    const char *name;
    uint32_t name_size;
    int32_t partitions;
};

#define START_TOPICS_MAX   64u
#define START_SETTINGS_MAX 192u /* --set and what --test sets. */

/* --test: a private directory that goes with the process, and who ends it. */
struct start_test {
    bool on;
    char directory[128];
    struct start_topic topics[START_TOPICS_MAX];
    uint32_t topic_count;
    bool watches_input; /* Standard input is a pipe or terminal: its end is ours. */
    int parent_fd;      /* A pidfd of the parent; -1: none. */
    int32_t parent;
};

/* Make the directory, read --topic, find out who ends us. An enum cli_exit; said if not CLI_OK. */
MUST_USE enum cli_exit start_test_begin(struct cli *cli, struct start_test *test);

/* Create the topics on a node that is ready, over a socket as any client. False: it was said. */
MUST_USE bool start_test_topics(const struct start_test *test,
                                struct node *node,
                                const struct say *say);

/* Watch standard input and the parent from a thread of its own; ends the node. False: no thread. */
MUST_USE bool start_test_watch(const struct start_test *test, struct node *node);

/* Remove the directory. */
void start_test_end(const struct start_test *test);
