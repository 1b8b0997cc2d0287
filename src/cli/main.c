/* main.c - the `dohle` program: find the command that is meant, run it, write what it printed.
 *
 * A command's name may be two words (`wire show`); the longest name that fits is taken. */
#include "cli/cli.h"
#include "cli/version.h"
#include "sys/memory.h"
#include "text/nearest.h"

#include <stdlib.h>
#include <unistd.h>

/* Memory of one run of a command: more than the largest input times what its text may take. */
#define CLI_MEMORY_MAX (4ull * 1024 * 1024 * 1024)

/* Words of `name` that the arguments begin with: all of them, or 0. */
static int words_matched(const char *name, int argc, char **argv)
{
    int words = 0;
    while (*name != '\0') {
        size_t size = strcspn(name, " ");
        if (words == argc || strlen(argv[words]) != size) return 0;
        if (memcmp(argv[words], name, size) != 0) return 0;
        words++;
        name += size;
        name += *name == ' ';
    }
    return words;
}

static const struct cli_command *find_command(int argc, char **argv, int *used)
{
    const struct cli_command *found = NULL;
    *used = 0;
    for (int i = 0; i < cli_command_count; i++) {
        int words = words_matched(cli_commands[i]->name, argc, argv);
        if (words > *used) {
            *used = words;
            found = cli_commands[i];
        }
    }
    return found;
}

static const struct cli_family *find_family(const char *name)
{
    for (int i = 0; i < cli_family_count; i++)
        if (strcmp(cli_families[i].name, name) == 0) return &cli_families[i];
    return NULL;
}

/* No command has this name: say so with the nearest that has one. */
static int unknown_command(int argc, char **argv)
{
    char wanted[200];
    const struct cli_family *family = find_family(argv[0]);
    bool two = family != NULL && argc > 1;

    snprintf(wanted, sizeof(wanted), "%s%s%s", argv[0], two ? " " : "", two ? argv[1] : "");
    struct nearest nearest = nearest_to(view_of_string(wanted));
    for (int i = 0; i < cli_command_count; i++)
        nearest_offer(&nearest, cli_commands[i]->name);
    for (int i = 0; i < cli_family_count; i++)
        nearest_offer(&nearest, cli_families[i].name);

    fprintf(stderr, "dohle: there is no command \"%s\"\n", wanted);
    if (nearest.best != NULL) {
        fprintf(stderr, "hint: did you mean `dohle %s`?\n", nearest.best);
    } else {
        fprintf(stderr, "hint: `dohle` alone lists them\n");
    }
    return CLI_USAGE;
}

static bool asks_for_help(int argc, char **argv)
{
    for (int i = 0; i < argc && strcmp(argv[i], "--") != 0; i++)
        if (strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0) return true;
    return false;
}

static int run_command(struct cli *cli, int argc, char **argv)
{
    enum cli_exit code = cli_parse(cli, argc, argv);
    if (code != CLI_OK) return (int)code;
    int result = cli->command->run(cli);
    enum cli_exit written = cli_flush(cli);
    return result != CLI_OK ? result : (int)written;
}

static int print_help(struct cli *cli, int argc, char **argv)
{
    static const struct cli_command help = {.name = "help"};
    int used;

    cli->command = &help;
    if (argc == 0) {
        cli_screen(&cli->out);
        return (int)cli_flush(cli);
    }
    const struct cli_command *command = find_command(argc, argv, &used);
    const struct cli_family *family = find_family(argv[0]);
    if (command != NULL) {
        cli_command_help(&cli->out, command);
    } else if (family != NULL && argc == 1) {
        cli_family_help(&cli->out, family);
    } else {
        return unknown_command(argc, argv);
    }
    return (int)cli_flush(cli);
}

static int dispatch(struct cli *cli, int argc, char **argv)
{
    int used;

    if (argc == 0) return print_help(cli, 0, argv);
    if (strcmp(argv[0], "--version") == 0) {
        printf("dohle %s (speaks the protocol of Apache Kafka %s)\n", DOHLE_VERSION,
               DOHLE_KAFKA_VERSION);
        return CLI_OK;
    }
    if (strcmp(argv[0], "help") == 0) return print_help(cli, argc - 1, argv + 1);
    if (strcmp(argv[0], "--help") == 0 || strcmp(argv[0], "-h") == 0)
        return print_help(cli, 0, argv);

    const struct cli_command *command = find_command(argc, argv, &used);
    bool family_alone =
        command == NULL && find_family(argv[0]) != NULL && (argc == 1 || asks_for_help(2, argv));
    if (family_alone) return print_help(cli, 1, argv);
    if (command == NULL) return unknown_command(argc, argv);
    if (asks_for_help(argc - used, argv + used)) return print_help(cli, argc, argv);
    cli->command = command;
    return run_command(cli, argc - used, argv + used);
}

int main(int argc, char **argv)
{
    struct mem mem;
    memory_init(&mem, CLI_MEMORY_MAX);
    struct cli cli = {.mem = &mem, .errors = stderr};
    cli.color = isatty(STDOUT_FILENO) == 1 && getenv("NO_COLOR") == NULL;
    out_init(&cli.out, &mem);
    int code = dispatch(&cli, argc - 1, argv + 1);
    out_free(&cli.out);
    return code;
}
