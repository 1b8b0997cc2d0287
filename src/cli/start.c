/* start.c - `dohle start`: read the settings, open the node, say that it is ready, serve, stop.
 *
 * SIGTERM and SIGINT drain and stop; a second one ends the process at once. The handler's only
 * state is static, as a signal carries none. */
#include "cli/start.h"
#include "cli/clock.h"
#include "cli/resident.h"
#include "cli/start_notify.h"
#include "cli/start_tap.h"

#include <errno.h>
#include <limits.h>
#include <malloc.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "base/limits.h"
#include "broker/explain.h"
#include "broker/stats.h"
#include "console/console.h"
#include "core/feature.h"
#include "io/posix.h"
#include "log/log_dir.h"
#include "sys/memory.h"

#define START_FILE_BYTES (16u * 1024u * 1024u)

/* ---- signals --------------------------------------------------------------------------------- */

static struct {
    volatile sig_atomic_t asked;
    struct node *volatile node; /* NULL while it is being opened. */
} stopping;

static void on_signal(int number)
{
    (void)number;
    if (stopping.asked++ > 0) _exit(CLI_FAILED);
    struct node *node = stopping.node;
    if (node != NULL) node_stop(node);
}

static void catch_signals(void)
{
    struct sigaction stop = {.sa_handler = on_signal}, ignore = {.sa_handler = SIG_IGN};
    sigaction(SIGTERM, &stop, NULL);
    sigaction(SIGINT, &stop, NULL);
    sigaction(SIGPIPE, &ignore, NULL);
    sigaction(SIGHUP, &ignore, NULL); /* Nothing is read again; a lost terminal is no reason. */
}

/* ---- the start ------------------------------------------------------------------------------- */

struct start {
    struct cli *cli;
    int64_t exec_us; /* When the program was executed, on the monotonic clock. */
    struct say say;
    struct say_levels levels;
    struct mem mem;
    struct arena config;
    struct settings settings;
    struct start_test test;
    const char *set[START_SETTINGS_MAX];
    uint32_t set_count;
    struct io *ios[NET_SHARDS_MAX]; /* By shard; the first one's turns are the main thread's. */
    uint32_t shard_count;
    struct node *node;
    struct console *console;
    struct start_tap tap;
};

/* What the process has computed until now lies between exec and here. */
static int64_t find_exec_us(void)
{
    return clock_us(CLOCK_MONOTONIC) - clock_us(CLOCK_PROCESS_CPUTIME_ID);
}

static enum cli_exit add_set(struct start *start, const char *text)
{
    if (start->set_count == START_SETTINGS_MAX)
        return (enum cli_exit)cli_fail(start->cli, CLI_USAGE, "more than %u settings",
                                       START_SETTINGS_MAX);
    start->set[start->set_count++] = text;
    return CLI_OK;
}

/* What --test sets; what --set says comes later and wins. */
static enum cli_exit collect_set(struct start *start)
{
    static const char *const quick[] = {
        "listeners=PLAINTEXT://127.0.0.1:0",
        "dohle.http.listener=",
        "dohle.ack.durability=replicated",
    };
    enum cli_exit code = CLI_OK;
    for (size_t i = 0; start->test.on && i < ARRAY_SIZE(quick) && code == CLI_OK; i++)
        code = add_set(start, quick[i]);
    int at = 0;
    const char *text;
    while (code == CLI_OK && (text = cli_next(start->cli, "set", &at)) != NULL)
        code = add_set(start, text);
    return code;
}

static enum cli_exit load_settings(struct start *start)
{
    struct cli *cli = start->cli;
    struct settings_source source = {.file = cli_value(cli, "config"),
                                     .data = cli_value(cli, "data"),
                                     .set = start->set,
                                     .set_count = start->set_count};
    if (start->test.on) source.data = start->test.directory;
    size_t room = 0;
    if (source.file != NULL) {
        source.text = cli_read_file(cli, source.file, START_FILE_BYTES, &room);
        if (source.text.null) return CLI_FAILED;
    }
    bool fine = settings_load(&start->settings, &source, &start->config, &start->say);
    char *text;
    memcpy(&text, &source.text.data, sizeof(text)); /* Ours to give back. */
    mem_put(cli->mem, text, room);
    if (fine) return CLI_OK;
    cli_hint(cli, "`dohle config explain NAME` tells what a setting takes");
    return CLI_FAILED;
}

/* The node's id: as set, else as a directory has it, else 1. */
static int32_t choose_node_id(const struct start *start)
{
    const struct settings *settings = &start->settings;
    if (settings->node_id >= 0) return settings->node_id;
    for (uint32_t i = 0; i < settings->log_dir_count; i++) {
        struct log_meta meta;
        if (log_meta_read(start->ios[0], settings->log_dirs[i], &meta) == LOG_META_OK &&
            meta.node_id >= 0)
            return meta.node_id;
    }
    return 1;
}

/* --cluster-id, NULL without; `*fine` false: said what is wrong. It stands in meta.properties. */
static const char *choose_cluster_id(const struct start *start, bool *fine)
{
    static const char letters[] =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-.";
    const char *id = cli_value(start->cli, "cluster-id");
    size_t size = id == NULL ? 1 : strlen(id);
    *fine = size > 0 && size < LOG_CLUSTER_ID_MAX && (id == NULL || strspn(id, letters) == size);
    if (!*fine)
        (void)cli_fail(start->cli, CLI_USAGE,
                       "--cluster-id takes 1 to %u letters, digits, '_', '-' and '.', not \"%s\"",
                       LOG_CLUSTER_ID_MAX - 1, id);
    return id;
}

/* --release-version as a level, 0 without; -1: said what is wrong. */
static int16_t choose_metadata_version(const struct start *start)
{
    const char *release = cli_value(start->cli, "release-version");
    if (release == NULL) return 0;
    int16_t level = feature_metadata_level(view_of_string(release));
    if (level > 0) return level;
    (void)cli_fail(start->cli, CLI_USAGE, "--release-version %s is no release from 3.3 to 4.4",
                   release);
    return -1;
}

static enum cli_exit open_node(struct start *start)
{
    struct settings *settings = &start->settings;
    int16_t metadata_version = choose_metadata_version(start);
    if (metadata_version < 0) return CLI_USAGE;
    bool fine;
    const char *cluster_id = choose_cluster_id(start, &fine);
    if (!fine) return CLI_USAGE;
    struct node_options options = {
        .io = start->ios[0],
        .ios = start->ios,
        .shard_count = start->shard_count,
        .say = &start->say,
        .node_id = choose_node_id(start),
        .log_dirs = settings->log_dirs,
        .log_dir_count = settings->log_dir_count,
        .cluster_id = cluster_id,
        .metadata_version = metadata_version,
        .listener_count = settings->listener_count,
        .controller_only = settings->controller_only,
        .loopback = settings->loopback,
        .ack_replicated = view_is(settings_value(settings, "dohle.ack.durability"), "replicated"),
        .auto_create_topics = settings_switch(settings, "auto.create.topics.enable"),
        .num_partitions = (int32_t)settings_number(settings, "num.partitions"),
        .default_replication = (int16_t)settings_number(settings, "default.replication.factor"),
        .rack = settings_value(settings, "broker.rack"),
        .setting = settings_given,
        .setting_context = settings,
    };
    memcpy(options.listeners, settings->listeners, sizeof(options.listeners));
    settings->node_id = options.node_id;
    if (node_open(&options, &start->node) == 0) return CLI_OK;
    start->node = NULL;
    return CLI_FAILED; /* It has said why. */
}

/* Pages that a shard writes; `dohle explain` asks for them. */
static const struct console_page pages[] = {
    {"/explain/broker/",      "application/json; charset=utf-8", explain_broker_json},
    {"/explain/text/broker/", "text/plain; charset=utf-8",       explain_broker_text},
    {"/explain/member/",      "application/json; charset=utf-8", explain_member_json},
    {"/explain/text/member/", "text/plain; charset=utf-8",       explain_member_text},
};

/* After the node, which locks the directory, so that the socket there is ours. */
static enum cli_exit open_console(struct start *start)
{
    struct settings *settings = &start->settings;
    static const char setting[] = "dohle.http.listener";
    char path[PATH_MAX + 16];
    (void)snprintf(path, sizeof(path), "%s/dohle.sock", settings->log_dirs[0]);
    struct console_options options = {
        .say = &start->say,
        .address = (const char *)settings_value(settings, setting).data,
        .address_is_default = settings_given(settings, VIEW("dohle.http.listener")).null,
        .socket_path = path,
        .pages = pages,
        .page_count = ARRAY_SIZE(pages),
    };
    if (console_start(&options, &start->console) != 0) return CLI_FAILED; /* It has said why. */
    if (console_address(start->console)[0] != '\0')
        say(&start->say, SAY_INFO, SAY_IN_START, "health and metrics on http://%s",
            console_address(start->console));
    return CLI_OK;
}

/* ---- the ready line -------------------------------------------------------------------------- */

static void put_addresses(struct start *start, const struct io_address *address)
{
    struct out *out = &start->cli->out;
    bool six = strchr(address->host, ':') != NULL;
    out_format(out, six ? "[%s]:%u" : "%s:%u", address->host, address->port);
    if (start->settings.loopback) out_format(out, " and [::1]:%u", address->port);
}

static double ready_ms(const struct start *start)
{
    return (double)(clock_us(CLOCK_MONOTONIC) - start->exec_us) / 1000.0;
}

static void put_ready(struct start *start)
{
    struct out *out = &start->cli->out;
    struct io_address address;
    node_address(start->node, &address);
    out_text(out, "dohle is ready: ");
    put_addresses(start, &address);
    out_format(out, ", node %d, in %s", start->settings.node_id, start->settings.log_dirs[0]);
    out_format(out, ", %.1f ms\n", ready_ms(start));
}

/* Lines that somebody who waits for another server's wants to see. */
static void put_ready_lines(struct start *start)
{
    const char *text;
    int at = 0;
    while ((text = cli_next(start->cli, "ready-line", &at)) != NULL)
        out_format(&start->cli->out, "%s\n", text);
}

static void put_ends(struct out *out, const struct start_test *test)
{
    out_text(out, ",\"ends\":[\"SIGTERM\"");
    if (test->watches_input) out_text(out, ",\"end of standard input\"");
    if (test->parent_fd >= 0) out_format(out, ",\"end of process %d\"", test->parent);
    out_text(out, "]");
}

static void put_ready_json(struct start *start)
{
    struct out *out = &start->cli->out;
    struct io_address address;
    node_address(start->node, &address);
    out_format(out, "{\"ready\":true,\"bootstrap\":\"%s:%u\",\"port\":%u,\"pid\":%d,\"node\":%d",
               address.host, address.port, address.port, (int)getpid(), start->settings.node_id);
    out_text(out, ",\"cluster\":");
    out_quoted(out, node_cluster_id(start->node));
    out_text(out, ",\"data\":");
    out_quoted(out, view_of_string(start->settings.log_dirs[0]));
    out_text(out, ",\"data_removed_at_exit\":true,\"durability\":");
    out_quoted(out, view_is(settings_value(&start->settings, "dohle.ack.durability"), "replicated")
                        ? VIEW("page cache")
                        : VIEW("sync"));
    out_text(out, ",\"topics\":{");
    for (uint32_t i = 0; i < start->test.topic_count; i++) {
        const struct start_topic *topic = &start->test.topics[i];
        if (i > 0) out_char(out, ',');
        out_quoted(out, view_of(topic->name, topic->name_size));
        out_format(out, ":%d", topic->partitions);
    }
    out_char(out, '}');
    put_ends(out, &start->test);
    out_format(out, ",\"ms\":%.1f}\n", ready_ms(start));
}

/* ---- serving --------------------------------------------------------------------------------- */

struct shard_thread {
    pthread_t thread;
    struct node *node;
    uint32_t index;
};

static void *shard_main(void *argument)
{
    struct shard_thread *thread = argument;
    node_run_shard(thread->node, thread->index);
    return NULL;
}

/* Until the node is stopped; then the other shards' threads have ended, too. */
static enum cli_exit run_shards(struct start *start)
{
    struct shard_thread threads[NET_SHARDS_MAX];
    uint32_t started = 1;
    int error = 0;
    for (; started < start->shard_count && error == 0; started += error == 0) {
        threads[started] = (struct shard_thread){.node = start->node, .index = started};
        error = pthread_create(&threads[started].thread, NULL, shard_main, &threads[started]);
    }
    if (error != 0) node_stop(start->node);
    node_run(start->node);
    for (uint32_t i = 1; i < started; i++)
        pthread_join(threads[i].thread, NULL);
    if (error == 0) return CLI_OK;
    return (enum cli_exit)cli_fail(start->cli, CLI_FAILED, "no thread for a shard: %s",
                                   strerror(error));
}

static enum cli_exit serve(struct start *start)
{
    stopping.node = start->node;
    console_attach(start->console, stats_shard(start->node));
    if (stopping.asked > 0) node_stop(start->node);
    if (start->test.on) {
        if (!start_test_topics(&start->test, start->node, &start->say)) return CLI_FAILED;
        if (!start_test_watch(&start->test, start->node))
            return (enum cli_exit)cli_fail(start->cli, CLI_FAILED, "no thread to watch the parent");
        put_ready_json(start);
    } else {
        put_ready(start);
    }
    put_ready_lines(start);
    enum cli_exit code = cli_flush(start->cli);
    if (code != CLI_OK) return code;
    start_notify("READY=1");
    (void)resident_let_go(); /* Most of what is mapped now only the start needed. */
    code = run_shards(start);
    start_notify("STOPPING=1");
    if (code != CLI_OK) return code;
    say(&start->say, SAY_INFO, SAY_IN_START, "stopping: %s",
        "requests are answered, logs are synced");
    return CLI_OK;
}

/* What the program takes beside the node's memory: itself, its libraries, its threads' stacks. */
#define START_OWN_BYTES (24 * 1024 * 1024)

/* dohle.memory.max: the node's memory ends below it, and malloc gives back what is free. */
static void limit_memory(struct start *start)
{
    int64_t most = settings_number(&start->settings, "dohle.memory.max");
    memory_init(&start->mem, 0);
    if (most == 0) return;
    memory_init(&start->mem, (uint64_t)MAX(most - START_OWN_BYTES, START_OWN_BYTES));
    (void)mallopt(M_ARENA_MAX, 1);
    (void)mallopt(M_MMAP_THRESHOLD, 64 * 1024);
    (void)mallopt(M_TRIM_THRESHOLD, 256 * 1024);
}

static enum cli_exit run_node(struct start *start)
{
    limit_memory(start);
    start->shard_count = (uint32_t)settings_number(&start->settings, "dohle.shards");
    enum cli_exit code = start_tap_begin(start->cli, &start->tap);
    for (uint32_t i = 0; i < start->shard_count && code == CLI_OK; i++) {
        start->ios[i] = posix_new(&start->mem);
        if (start->ios[i] == NULL)
            code = (enum cli_exit)cli_fail(start->cli, CLI_FAILED, "no event loop: %s",
                                           strerror(errno));
        else
            start_tap_add(&start->tap, start->ios[i]);
        /* Its directory goes when it ends; who asked for sync gets it. */
        if (code == CLI_OK && start->test.on &&
            view_is(settings_value(&start->settings, "dohle.ack.durability"), "replicated"))
            posix_forgo_sync(start->ios[i]);
    }
    if (code == CLI_OK) code = open_node(start);
    if (code == CLI_OK) code = open_console(start);
    if (code == CLI_OK) code = serve(start);
    stopping.node = NULL;
    start->console = console_stop(start->console);
    if (start->node != NULL) start->node = node_close(start->node);
    start_tap_end(&start->tap);
    for (uint32_t i = 0; i < start->shard_count; i++)
        if (start->ios[i] != NULL) io_free(start->ios[i]);
    return code;
}

static int run(struct cli *cli)
{
    struct start start = {.cli = cli, .exec_us = find_exec_us()};
    const char *format = cli_value(cli, "log"), *level = cli_value(cli, "log-level");
    start.say = (struct say){.fd = STDERR_FILENO, .levels = &start.levels};
    start.say.json = format != NULL && strcmp(format, "json") == 0;
    say_levels_init(&start.levels, level == NULL     ? SAY_INFO
                                   : level[0] == 'd' ? SAY_DEBUG
                                   : level[0] == 'w' ? SAY_WARN
                                   : level[0] == 'e' ? SAY_ERROR
                                                     : SAY_INFO);
    catch_signals();
    arena_init(&start.config, cli->mem, 0);
    enum cli_exit code = CLI_OK;
    start.test.on = cli_has(cli, "test");
    if (!start.test.on && cli_has(cli, "topic"))
        code = (enum cli_exit)cli_fail(cli, CLI_USAGE, "--topic goes with --test");
    if (code == CLI_OK && start.test.on) code = start_test_begin(cli, &start.test);
    if (code == CLI_OK) code = collect_set(&start);
    if (code == CLI_OK) code = load_settings(&start);
    if (code == CLI_OK) code = run_node(&start);
    if (start.test.on) start_test_end(&start.test);
    arena_free(&start.config);
    return code;
}

static const struct cli_option options[] = {
    {"config",          'c', "FILE",            NULL,                    "server.properties, with Kafka's names; none is needed"  },
    {"data",            'd', "DIR",             NULL,
     "data directory, instead of log.dirs; formatted if it is empty (without both: dohle-data)"                                   },
    {"set",             's', "NAME=VALUE",      NULL,                    "one setting, stronger than the file; may be repeated"   },
    {"cluster-id",      0,   "ID",              NULL,                    "cluster id to format with (a new one is made otherwise)"},
    {"release-version", 0,   "RELEASE",         NULL,
     "metadata.version to format with, for brokers of that release: 4.2 or 4.2-IV1 (the newest otherwise)"                        },
    {"log",             0,   "FORMAT",          "text|json",             "form of the log lines on standard error"                },
    {"log-level",       0,   "LEVEL",           "debug|info|warn|error", "the least that is said"                                 },
    {"test",            't', NULL,              NULL,
     "for test suites: a private directory that is removed at exit, a free port of 127.0.0.1, the "
     "ready line as JSON; ends with standard input or the parent"                                                                 },
    {"topic",           0,   "NAME:PARTITIONS", NULL,                    "with --test: create this topic; may be repeated"        },
    {"ready-line",      0,   "TEXT",            NULL,                    "print this line too when it serves; may be repeated"    },
    {"tap",             0,   "FILE",            NULL,
     "write all that clients and server say into a capture (pcapng), for `wire decode --pcap`, tshark and Wireshark"              },
    {NULL,              0,   NULL,              NULL,                    NULL                                                     },
};

extern const struct cli_command command_start;
const struct cli_command command_start = {
    .name = "start",
    .group = CLI_RUN,
    .summary = "start a server: no configuration needed, ready in milliseconds",
    .arguments = "[--config FILE] [--data DIR] [--set NAME=VALUE]... [--test [--topic NAME:N]...]",
    .about =
        "Without `listeners` it listens on port 9092 of 127.0.0.1 and ::1. One line on standard "
        "output says when it is ready; log lines go to standard error. SIGTERM and SIGINT stop "
        "it cleanly, a second one at once.\n\n"
        "    dohle start\n"
        "    dohle start --data /var/lib/dohle --set listeners=PLAINTEXT://:9092\n"
        "    dohle start --config /etc/kafka/server.properties\n"
        "    dohle start --test --topic words:3",
    .options = options,
    .run = run,
};
