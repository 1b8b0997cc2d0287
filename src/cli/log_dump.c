/* log_dump.c - `dohle log dump`: what is in the files of a log, and what is wrong with them. */
#include "cli/log_dump.h"

#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <sys/stat.h>

#define VALUE_SHOWN_BYTES 1024
#define FOLDER_DEPTH_MAX  3 /* A log directory, its partitions. */

static const struct cli_option options[] = {
    {"batches", 'b', NULL,     NULL, "batches only, not their records"                          },
    {"json",    'j', NULL,     NULL, "one JSON object a line"                                   },
    {"verify",  'v', NULL,     NULL, "say only what is wrong, and how many files were looked at"},
    {"from",    'f', "OFFSET", NULL, "leave out batches and records below this offset"          },
    {"to",      't', "OFFSET", NULL, "leave out batches and records above this offset"          },
    {"value",   0,   "BYTES",  NULL, "how much of a key or value is shown (1024; 0: all of it)" },
    {NULL,      0,   NULL,     NULL, NULL                                                       },
};

/* ---- one file
 * -------------------------------------------------------------------------------------- */

typedef void dumper(struct dump *dump, struct dump_file *file);

/* By the end of the name, behind which .deleted, .cleaned and .swap may stand. */
static const struct {
    const char *suffix;
    const char *what;
    dumper *print;
} kinds[] = {
    {".log",                    "segment",               dump_segment     },
    {".index",                  "offset index",          dump_offset_index},
    {".timeindex",              "time index",            dump_time_index  },
    {".txnindex",               "transaction index",     dump_txn_index   },
    {".snapshot",               "producer snapshot",     dump_snapshot    },
    {".checkpoint",             "metadata snapshot",     dump_segment     },
    {"leader-epoch-checkpoint", "leader epochs",         dump_epochs      },
    {"-offset-checkpoint",      "offset checkpoint",     dump_offsets     },
    {"meta.properties",         "identity of the node",  dump_properties  },
    {"partition.metadata",      "identity of the topic", dump_properties  },
    {"quorum-state",            "state of the quorum",   dump_properties  },
    {".kafka_cleanshutdown",    "clean shutdown mark",   dump_properties  },
};

/* Index among the kinds, or -1. */
static int kind_of(const char *name)
{
    static const char *const tails[] = {".deleted", ".cleaned", ".swap"};
    size_t size = strlen(name);
    for (size_t i = 0; i < ARRAY_SIZE(tails); i++) {
        size_t tail = strlen(tails[i]);
        if (size > tail && strcmp(name + size - tail, tails[i]) == 0) size -= tail;
    }
    for (size_t i = 0; i < ARRAY_SIZE(kinds); i++) {
        size_t suffix = strlen(kinds[i].suffix);
        if (size >= suffix && memcmp(name + size - suffix, kinds[i].suffix, suffix) == 0)
            return (int)i;
    }
    return -1;
}

bool dump_is_known(const char *name)
{
    return kind_of(name) >= 0;
}

void dump_summary(struct dump *dump)
{
    struct out *out = dump->out;
    if (dump->json) {
        out_format(out, "{\"type\":\"summary\",\"partitions\":%u,\"files\":%u,\"problems\":%u}\n",
                   dump->partitions, dump->files, dump->problems);
        return;
    }
    if (dump->partitions > 0)
        out_format(out, "%u partition%s, ", dump->partitions, dump->partitions == 1 ? "" : "s");
    out_format(out, "%u file%s, %u problem%s\n", dump->files, dump->files == 1 ? "" : "s",
               dump->problems, dump->problems == 1 ? "" : "s");
}

static void print_head(struct dump *dump, const struct dump_file *file, const char *what)
{
    if (dump->quiet) return;
    dump_line(dump, "file", "#");
    if (dump->json) {
        dump_text(dump, "path", file->path);
        dump_text(dump, "kind", what);
    } else {
        out_format(dump->out, " %s: %s,", file->path, what);
    }
    if (file->topic[0] != '\0') {
        dump_text(dump, "topic", file->topic);
        dump_number(dump, "partition", file->partition);
    }
    dump_number(dump, "bytes", file->bytes.size);
    dump_end(dump);
}

void dump_one(struct dump *dump, struct dump_file *file)
{
    int kind = kind_of(file->name);
    assert(kind >= 0);
    dump->files++;
    print_head(dump, file, kinds[kind].what);
    kinds[kind].print(dump, file);
}

static void dump_path(struct dump *dump, const char *path)
{
    struct dump_file file;
    if (!dump_file_open(dump, path, &file)) return;
    dump_one(dump, &file);
    dump_file_close(&file);
}

/* ---- folders
 * -------------------------------------------------------------------------------------- */

static int is_entry(const struct dirent *entry)
{
    return strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0;
}

static void dump_folder(struct dump *dump, const char *path, int depth);

/* A file or folder; in a folder, files of no known kind are passed over. */
static void dump_entry(struct dump *dump, const char *path, int depth)
{
    struct stat stat_of;
    if (stat(path, &stat_of) != 0) {
        (void)cli_fail(dump->cli, CLI_FAILED, "could not open \"%s\": %s", path, strerror(errno));
        dump->problems++;
        return;
    }
    if (S_ISDIR(stat_of.st_mode)) {
        if (depth < FOLDER_DEPTH_MAX) dump_folder(dump, path, depth);
        return;
    }
    const char *slash = strrchr(path, '/');
    if (kind_of(slash == NULL ? path : slash + 1) >= 0) {
        dump_path(dump, path);
    } else if (depth == 0) {
        (void)cli_fail(dump->cli, CLI_FAILED, "\"%s\" is no file of a log by its name", path);
        cli_hint(dump->cli, "names are those of Kafka: %s", "00000000000000000000.log");
        dump->problems++;
    }
}

static void dump_folder(struct dump *dump, const char *path, int depth)
{
    struct dirent **entries;
    int count = scandir(path, &entries, is_entry, alphasort);
    if (count < 0) {
        (void)cli_fail(dump->cli, CLI_FAILED, "could not list \"%s\": %s", path, strerror(errno));
        dump->problems++;
        return;
    }
    size_t size = strlen(path);
    while (size > 1 && path[size - 1] == '/')
        size--;
    for (int i = 0; i < count; i++) {
        char whole[4096];
        int used = snprintf(whole, sizeof(whole), "%.*s/%s", (int)size, path, entries[i]->d_name);
        if (used > 0 && (size_t)used < sizeof(whole)) dump_entry(dump, whole, depth + 1);
        free(entries[i]);
    }
    free(entries);
}

/* ---- the command
 * ----------------------------------------------------------------------------------- */

static enum cli_exit read_options(struct dump *dump)
{
    struct cli *cli = dump->cli;
    struct cli_range offsets = {0, INT64_MAX};
    long long from = 0, to = INT64_MAX, value = VALUE_SHOWN_BYTES;
    enum cli_exit code = cli_integer(cli, "from", offsets, &from);
    if (code == CLI_OK) code = cli_integer(cli, "to", offsets, &to);
    if (code == CLI_OK) code = cli_integer(cli, "value", (struct cli_range){0, INT32_MAX}, &value);
    dump->offset_min = from;
    dump->offset_max = to;
    dump->value_limit = (uint32_t)value;
    dump->json = cli_has(cli, "json");
    dump->batches_only = cli_has(cli, "batches");
    dump->quiet = cli_has(cli, "verify");
    return code;
}

static int run(struct cli *cli)
{
    struct dump dump = {.cli = cli, .out = &cli->out};
    enum cli_exit code = read_options(&dump);
    if (code != CLI_OK) return (int)code;

    compress_work_init(&dump.work, cli->mem);
    for (int i = 0; i < cli->word_count; i++)
        dump_entry(&dump, cli->words[i], 0);
    compress_work_free(&dump.work);
    if (dump.quiet) dump_summary(&dump);
    return dump.problems == 0 ? CLI_OK : CLI_FAILED;
}

const struct cli_command command_log_dump = {
    .name = "log dump",
    .group = CLI_LOOK,
    .summary = "print what is in a log's files: batches, records, indexes, snapshots, checkpoints",
    .arguments = "FILE|DIR... [--batches] [--json] [--verify] [--from OFFSET] [--to OFFSET]",
    .about =
        "Reads the files of Apache Kafka's format by their names, in a folder all of them, and "
        "changes nothing; the server may be running. Records of Kafka's own topics (offsets, "
        "groups, transactions, share groups, cluster metadata) are decoded.\n\n"
        "Batches and records are printed with the names that Kafka's own dump tool has. What is "
        "wrong - checksums, lengths, counts, order, indexes that do not match their segment - is "
        "printed as a line that begins with PROBLEM, and the command fails.\n\n"
        "With --verify nothing but problems is printed.",
    .options = options,
    .words_min = 1,
    .words_max = CLI_WORDS_MAX,
    .run = run,
};
