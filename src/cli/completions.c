/* completions.c - `dohle completions`: what bash and zsh need to complete command lines, made from
 * the same tables as the help. Words that name a message are completed by all names that there are.
 */
#include "cli/cli.h"
#include "wire/form.h"

#include <string.h>

/* What a word or the value of an option is, by how it is called in the tables. */
enum subject { SUBJECT_NONE, SUBJECT_API, SUBJECT_MESSAGE, SUBJECT_FILE, SUBJECT_FOLDER };

static enum subject subject_of(const char *name)
{
    static const struct {
        const char *name;
        enum subject subject;
    } known[] = {
        {"API",        SUBJECT_API    },
        {"MESSAGE",    SUBJECT_MESSAGE},
        {"API|RECORD", SUBJECT_MESSAGE},
        {"RECORD",     SUBJECT_MESSAGE},
        {"FILE",       SUBJECT_FILE   },
        {"HEX|FILE|-", SUBJECT_FILE   },
        {"DIR",        SUBJECT_FOLDER }
    };
    for (size_t i = 0; name != NULL && i < ARRAY_SIZE(known); i++)
        if (strcmp(known[i].name, name) == 0) return known[i].subject;
    return SUBJECT_NONE;
}

/* The subject of the command's first word that is no option, by its usage. */
static enum subject word_subject(const struct cli_command *command)
{
    char word[32];
    int depth = 0;

    if (command->words_max == 0) return SUBJECT_NONE;
    for (const char *at = command->arguments; *at != '\0' && *at != '\n';) {
        size_t size = strcspn(at, " \n");
        depth += at[0] == '[';
        if (depth == 0 && size < sizeof(word)) {
            memcpy(word, at, size);
            word[size] = '\0';
            if (subject_of(word) != SUBJECT_NONE) return subject_of(word);
        }
        depth -= at[size - 1] == ']';
        at += size;
        at += *at == ' ';
    }
    return SUBJECT_NONE;
}

static void put_names(struct out *out, bool messages)
{
    uint32_t count;
    const struct wire_api *apis = wire_apis(&count);

    for (uint32_t i = 0; i < count; i++)
        out_format(out, "%s%s", i == 0 ? "" : " ", apis[i].name);
    const struct wire_message *const *all = wire_messages(&count);
    for (uint32_t i = 0; i < count && messages; i++)
        out_format(out, " %s", all[i]->name);
}

static void put_choices(struct out *out, const char *choices)
{
    for (; *choices != '\0'; choices++)
        out_char(out, *choices == '|' ? ' ' : *choices);
}

/* First words that can stand behind `dohle`: commands of one word, and families. */
static bool is_first_word(const struct cli_command *command)
{
    return strchr(command->name, ' ') == NULL;
}

static bool in_family(const struct cli_command *command, const struct cli_family *family)
{
    size_t size = strlen(family->name);
    return strncmp(command->name, family->name, size) == 0 && command->name[size] == ' ';
}

/* ---- bash ------------------------------------------------------------------------------------ */

static void bash_subject(struct out *out, enum subject subject)
{
    switch (subject) {
    case SUBJECT_API: out_text(out, "_dohle_words \"$_dohle_apis\""); break;
    case SUBJECT_MESSAGE: out_text(out, "_dohle_words \"$_dohle_messages\""); break;
    case SUBJECT_FILE: out_text(out, "compopt -o default"); break;
    case SUBJECT_FOLDER: out_text(out, "compopt -o dirnames"); break;
    case SUBJECT_NONE: out_text(out, ":"); break;
    }
}

static void bash_option_names(struct out *out, const struct cli_option *option)
{
    if (option->letter != 0) out_format(out, "-%c|", option->letter);
    out_format(out, "--%s", option->name);
}

static void bash_command(struct out *out, const struct cli_command *command)
{
    out_format(out, "        \"%s\")\n            case $prev in\n", command->name);
    for (const struct cli_option *o = command->options; o != NULL && o->name != NULL; o++) {
        if (o->value == NULL) continue;
        out_text(out, "                ");
        bash_option_names(out, o);
        out_text(out, ") ");
        if (o->choices != NULL) {
            out_text(out, "_dohle_words \"");
            put_choices(out, o->choices);
            out_char(out, '"');
        } else {
            bash_subject(out, subject_of(o->value));
        }
        out_text(out, "; return ;;\n");
    }
    out_text(out, "            esac\n            if [[ $cur == -* ]]; then _dohle_words \"--help");
    for (const struct cli_option *o = command->options; o != NULL && o->name != NULL; o++)
        out_format(out, " --%s", o->name);
    out_text(out, "\"; else ");
    bash_subject(out, word_subject(command));
    out_text(out, "; fi ;;\n");
}

static void first_words(struct out *out)
{
    out_text(out, "help");
    for (int i = 0; i < cli_command_count; i++)
        if (is_first_word(cli_commands[i])) out_format(out, " %s", cli_commands[i]->name);
    for (int i = 0; i < cli_family_count; i++)
        out_format(out, " %s", cli_families[i].name);
}

static void family_words(struct out *out, const struct cli_family *family)
{
    bool any = false;
    for (int i = 0; i < cli_command_count; i++) {
        if (!in_family(cli_commands[i], family)) continue;
        out_format(out, "%s%s", any ? " " : "", cli_commands[i]->name + strlen(family->name) + 1);
        any = true;
    }
}

static void bash(struct out *out)
{
    out_text(out,
             "# bash completion for dohle: source it, or put it into bash-completion's folder.\n"
             "_dohle_apis=\"");
    put_names(out, false);
    out_text(out, "\"\n_dohle_messages=\"");
    put_names(out, true);
    out_text(out,
             "\"\n_dohle_words() { mapfile -t COMPREPLY < <(compgen -W \"$1\" -- \"$cur\"); }\n"
             "_dohle() {\n"
             "    local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD-1]} first=1\n"
             "    COMPREPLY=()\n"
             "    [[ ${COMP_WORDS[1]} == help ]] && first=2\n"
             "    if ((COMP_CWORD == first)); then\n        _dohle_words \"");
    first_words(out);
    out_text(out, " --version --help\"\n        return\n    fi\n"
                  "    local command=${COMP_WORDS[first]} next=${COMP_WORDS[first+1]}\n"
                  "    case $command in\n");
    for (int i = 0; i < cli_family_count; i++) {
        out_format(out,
                   "        %s)\n            if ((COMP_CWORD == first + 1)); then _dohle_words \"",
                   cli_families[i].name);
        family_words(out, &cli_families[i]);
        out_text(out, "\"; return; fi\n            command+=\" $next\" ;;\n");
    }
    out_text(out, "    esac\n    ((first == 2)) && return\n    case $command in\n");
    for (int i = 0; i < cli_command_count; i++)
        bash_command(out, cli_commands[i]);
    out_text(out, "    esac\n}\ncomplete -F _dohle dohle\n");
}

/* ---- zsh ------------------------------------------------------------------------------------- */

/* Text inside single quotes of an _arguments specification. */
static void zsh_text(struct out *out, const char *text)
{
    for (; *text != '\0'; text++) {
        if (*text == '\'') {
            out_text(out, "'\\''");
        } else {
            if (strchr("[]:\\", *text) != NULL) out_char(out, '\\');
            out_char(out, *text);
        }
    }
}

static void zsh_subject(struct out *out, enum subject subject)
{
    switch (subject) {
    case SUBJECT_API: out_text(out, "($_dohle_apis)"); break;
    case SUBJECT_MESSAGE: out_text(out, "($_dohle_messages)"); break;
    case SUBJECT_FILE: out_text(out, "_files"); break;
    case SUBJECT_FOLDER: out_text(out, "_files -/"); break;
    case SUBJECT_NONE: out_char(out, ' '); break;
    }
}

/* One specification; what names a variable stands in double quotes so that it is filled in. */
static void zsh_option(struct out *out, const struct cli_option *o)
{
    enum subject subject = subject_of(o->value);
    out_text(out, " \\\n                '");
    if (o->letter != 0) {
        out_format(out, "(-%c --%s)'{-%c,--%s}'[", o->letter, o->name, o->letter, o->name);
    } else {
        out_format(out, "--%s[", o->name);
    }
    zsh_text(out, o->about);
    out_char(out, ']');
    if (o->value != NULL) {
        out_char(out, ':');
        zsh_text(out, o->value);
        out_char(out, ':');
        if (o->choices != NULL) {
            out_char(out, '(');
            put_choices(out, o->choices);
            out_char(out, ')');
        } else if (subject == SUBJECT_API || subject == SUBJECT_MESSAGE) {
            out_text(out, "'\"");
            zsh_subject(out, subject);
            out_text(out, "\"'");
        } else {
            zsh_subject(out, subject);
        }
    }
    out_char(out, '\'');
}

static void zsh_command(struct out *out, const struct cli_command *command)
{
    enum subject subject = word_subject(command);
    out_format(out, "        \"%s\")\n            _arguments '--help[tell all about it]'",
               command->name);
    for (const struct cli_option *o = command->options; o != NULL && o->name != NULL; o++)
        zsh_option(out, o);
    if (subject != SUBJECT_NONE) {
        out_text(out, " \\\n                \"*: :");
        zsh_subject(out, subject);
        out_char(out, '"');
    }
    out_text(out, " ;;\n");
}

static void zsh_entry(struct out *out, const char *name, const char *summary)
{
    out_text(out, " '");
    out_text(out, name);
    out_char(out, ':');
    zsh_text(out, summary);
    out_char(out, '\'');
}

static void zsh(struct out *out)
{
    out_text(
        out,
        "#compdef dohle\n# zsh completion for dohle: put it into a folder of $fpath as _dohle.\n"
        "_dohle_apis=\"");
    put_names(out, false);
    out_text(out, "\"\n_dohle_messages=\"");
    put_names(out, true);
    out_text(out,
             "\"\n_dohle() {\n    local -a entries\n"
             "    if ((CURRENT == 2)); then\n        entries=('help:tell all about a command'");
    for (int i = 0; i < cli_command_count; i++)
        if (is_first_word(cli_commands[i]))
            zsh_entry(out, cli_commands[i]->name, cli_commands[i]->summary);
    for (int i = 0; i < cli_family_count; i++)
        zsh_entry(out, cli_families[i].name, cli_families[i].summary);
    out_text(out,
             ")\n        _describe command entries\n        return\n    fi\n"
             "    local command=$words[2]\n"
             "    if [[ $command == help ]]; then shift words; ((CURRENT--)); _dohle; return; fi\n"
             "    case $command in\n");
    for (int i = 0; i < cli_family_count; i++) {
        const struct cli_family *family = &cli_families[i];
        out_format(out,
                   "        %s)\n            if ((CURRENT == 3)); then\n                entries=(",
                   family->name);
        for (int j = 0; j < cli_command_count; j++)
            if (in_family(cli_commands[j], family))
                zsh_entry(out, cli_commands[j]->name + strlen(family->name) + 1,
                          cli_commands[j]->summary);
        out_text(
            out,
            ")\n                _describe command entries\n                return\n            fi\n"
            "            command+=\" $words[3]\"\n            shift words; ((CURRENT--)) ;;\n");
    }
    out_text(out, "    esac\n    shift words; ((CURRENT--))\n    case $command in\n");
    for (int i = 0; i < cli_command_count; i++)
        zsh_command(out, cli_commands[i]);
    out_text(out, "    esac\n}\n_dohle \"$@\"\n");
}

static int run(struct cli *cli)
{
    if (strcmp(cli->words[0], "bash") == 0) {
        bash(&cli->out);
    } else if (strcmp(cli->words[0], "zsh") == 0) {
        zsh(&cli->out);
    } else {
        return cli_fail(cli, CLI_USAGE, "there are completions for bash and zsh, not \"%s\"",
                        cli->words[0]);
    }
    return CLI_OK;
}

const struct cli_command command_completions = {
    .name = "completions",
    .group = CLI_CHECK,
    .summary = "completions of command lines for bash or zsh",
    .arguments = "bash|zsh",
    .about = "  source <(dohle completions bash)            # now\n"
             "  dohle completions bash > ~/.local/share/bash-completion/completions/dohle\n"
             "  dohle completions zsh > ~/.zfunc/_dohle     # with ~/.zfunc in fpath",
    .words_min = 1,
    .words_max = 1,
    .run = run,
};
