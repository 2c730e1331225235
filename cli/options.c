#include "options.h"

#include <errno.h>
#include <limits.h>
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

int usage_error(const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    fputs("samebit: ", stderr);
    vfprintf(stderr, format, arguments);
    fputs("\n", stderr);
    va_end(arguments);
    return EXIT_USAGE;
}

/* ---- parsing ---- */

static const option *find_in(const option *table, const char *name, size_t length) {
    for (; table != NULL && table->name != NULL; table++) {
        if (strlen(table->name) == length && memcmp(table->name, name, length) == 0)
            return table;
    }
    return NULL;
}

static const option *find_option(const command *command, const char *name, size_t length) {
    const option *found = find_in(command->options, name, length);
    return found != NULL ? found : find_in(common_options, name, length);
}

/* The letter that is short for an option of the command; NUL: none is. */
static char letter_of(const command *command, const option *option) {
    for (const char *at = command->letters; at != NULL && at[0] != '\0' && at[1] == '=';) {
        size_t length = strcspn(at + 2, ",");
        if (strlen(option->name) == length && memcmp(option->name, at + 2, length) == 0)
            return at[0];
        at += 2 + length;
        at += *at == ',';
    }
    return '\0';
}

/* The option that "-x" is short for, or NULL. */
static const option *find_short(const command *command, const char *text) {
    for (const option *option = command->options; option != NULL && option->name != NULL; option++) {
        if (text[0] == '-' && text[1] != '\0' && text[2] == '\0' && letter_of(command, option) == text[1])
            return option;
    }
    return NULL;
}

/* Where the option is given for the `index`-th time, or -1. */
static int find_given(const arguments *arguments, const char *name, int index) {
    for (int i = 0; i < arguments->option_count; i++) {
        if (strcmp(arguments->options[i]->name, name) == 0 && index-- == 0)
            return i;
    }
    return -1;
}

/* Reads one "--name", "--name=value", "--name value", or the short form of one; moves *index past what it used. */
static bool parse_option(arguments *arguments, int argc, char **argv, int *index) {
    const char *text = argv[*index] + 2, *equals = strchr(text, '='); /* of "-x" the NUL behind it */
    size_t length = equals != NULL ? (size_t)(equals - text) : strlen(text);
    const option *option = find_short(arguments->command, argv[*index]);
    if (option != NULL)
        equals = NULL;
    else
        option = find_option(arguments->command, text, length);
    if (option == NULL) {
        usage_error("%s has no option --%.*s: see 'samebit %s --help'", arguments->command->name, (int)length, text,
                    arguments->command->name);
        return false;
    }
    const char *value = NULL;
    if (option->argument == NULL && equals != NULL) {
        usage_error("--%s takes no argument", option->name);
        return false;
    }
    if (option->argument != NULL) {
        value = equals != NULL ? equals + 1 : *index + 1 < argc ? argv[++*index] : NULL;
        if (value == NULL) {
            usage_error("--%s needs an argument: --%s %s", option->name, option->name, option->argument);
            return false;
        }
    }
    if (!option->repeated && find_given(arguments, option->name, 0) >= 0) {
        usage_error("--%s is given twice", option->name);
        return false;
    }
    arguments->options[arguments->option_count] = option;
    arguments->values[arguments->option_count++] = value;
    return true;
}

bool parse_arguments(const command *command, int argc, char **argv, arguments *arguments) {
    *arguments = (struct arguments){.command = command};
    size_t room = (size_t)(argc > 0 ? argc : 1);
    arguments->positional = calloc(room, sizeof *arguments->positional);
    arguments->options = calloc(room, sizeof *arguments->options);
    arguments->values = calloc(room, sizeof *arguments->values);
    arguments->asked = calloc(room, sizeof *arguments->asked);
    if (arguments->positional == NULL || arguments->options == NULL || arguments->values == NULL ||
        arguments->asked == NULL) {
        usage_error("out of memory");
        return false;
    }
    bool only_operands = false;
    for (int i = 1; i < argc; i++) {
        if (!only_operands && strcmp(argv[i], "--") == 0)
            only_operands = true;
        else if (!only_operands && (strncmp(argv[i], "--", 2) == 0 || find_short(command, argv[i]) != NULL)) {
            if (!parse_option(arguments, argc, argv, &i))
                return false;
        } else
            arguments->positional[arguments->positional_count++] = argv[i];
    }
    if (has_option(arguments, "help"))
        return true;
    int count = arguments->positional_count;
    if (count < command->least_operands || (command->most_operands >= 0 && count > command->most_operands)) {
        usage_error("%s takes %s: see 'samebit %s --help'", command->name,
                    command->operands[0] != '\0' ? command->operands : "no operands", command->name);
        return false;
    }
    return true;
}

void free_arguments(arguments *arguments) {
    free(arguments->positional);
    free(arguments->options);
    free(arguments->values);
    free(arguments->asked);
    *arguments = (struct arguments){0};
}

bool has_option(const arguments *arguments, const char *name) {
    int found = find_given(arguments, name, 0);
    if (found >= 0)
        arguments->asked[found] = true;
    return found >= 0;
}

const char *unused_option(const arguments *arguments) {
    for (int i = 0; i < arguments->option_count; i++) {
        if (!arguments->asked[i])
            return arguments->options[i]->name;
    }
    return NULL;
}

const char *option_value_at(const arguments *arguments, const char *name, int index) {
    int found = find_given(arguments, name, index);
    if (found < 0)
        return NULL;
    arguments->asked[found] = true;
    return arguments->values[found];
}

const char *option_value(const arguments *arguments, const char *name) {
    return option_value_at(arguments, name, 0);
}

bool parse_integer(const char *text, long long least, long long most, long long *value) {
    char *end;
    if (text[0] == '\0' || text[0] == ' ')
        return false;
    errno = 0;
    *value = strtoll(text, &end, 10);
    return errno == 0 && *end == '\0' && *value >= least && *value <= most;
}

bool parse_bytes(const char *text, long long *value) {
    static const char units[] = "KMGT";
    char digits[32];
    size_t length = strlen(text);
    const char *unit = length > 0 ? strchr(units, text[length - 1]) : NULL;
    if (unit != NULL)
        length--;
    if (length >= sizeof digits)
        return false;
    memcpy(digits, text, length);
    digits[length] = '\0';
    long long number, factor = 1;
    for (ptrdiff_t power = unit != NULL ? unit - units + 1 : 0; power > 0; power--)
        factor *= 1024;
    if (!parse_integer(digits, 1, LLONG_MAX / factor, &number))
        return false;
    *value = number * factor;
    return true;
}

bool parse_number(const char *text, double *value) {
    char *end;
    if (text[0] == '\0' || text[0] == ' ')
        return false;
    *value = strtod(text, &end);
    return *end == '\0' && isfinite(*value);
}

bool parse_assignment(const char *text, char **name, const char **rest) {
    const char *equals = strchr(text, '=');
    if (equals == NULL || equals == text || equals[1] == '\0')
        return false;
    size_t length = (size_t)(equals - text);
    *name = malloc(length + 1);
    if (*name == NULL)
        return false;
    memcpy(*name, text, length);
    (*name)[length] = '\0';
    *rest = equals + 1;
    return true;
}

bool parse_tolerance(const char *text, double *absolute, double *relative) {
    char first[64];
    const char *comma = strchr(text, ',');
    if (comma == NULL || (size_t)(comma - text) >= sizeof first)
        return false;
    memcpy(first, text, (size_t)(comma - text));
    first[comma - text] = '\0';
    return parse_number(first, absolute) && parse_number(comma + 1, relative) && *absolute >= 0 && *relative >= 0;
}

/* ---- help ---- */

/* Columns of the help; where its second column begins. */
#define HELP_WIDTH 100
#define HELP_INDENT 31

/* Prints words, from column `column` on, that go on at column `indent` of the next line. */
static void print_words(FILE *file, const char *text, int column, int indent) {
    while (*text != '\0') {
        size_t bytes = strcspn(text, " ");
        int width = 0;
        for (size_t i = 0; i < bytes; i++)
            width += ((unsigned char)text[i] & 0xc0) != 0x80;
        if (column > indent && column + 1 + width > HELP_WIDTH) {
            fprintf(file, "\n%*s", indent, "");
            column = indent;
        } else if (column > indent) {
            fputc(' ', file);
            column++;
        }
        fwrite(text, 1, bytes, file);
        column += width;
        text += bytes + strspn(text + bytes, " ");
    }
    fputc('\n', file);
}

static void print_options(FILE *file, const command *command, const option *table) {
    for (; table != NULL && table->name != NULL; table++) {
        char left[64], help[512], letter[8] = "";
        if (letter_of(command, table) != '\0')
            snprintf(letter, sizeof letter, "-%c, ", letter_of(command, table));
        snprintf(left, sizeof left, "%s--%s%s%s", letter, table->name, table->argument != NULL ? " " : "",
                 table->argument != NULL ? table->argument : "");
        snprintf(help, sizeof help, "%s%s", table->help, table->repeated ? " (may be repeated)" : "");
        fprintf(file, "  %-28s ", left);
        print_words(file, help, HELP_INDENT, HELP_INDENT);
    }
}

void print_command_help(FILE *file, const command *command) {
    fprintf(file, "usage: samebit %s%s%s [options]\n\n%s.\n\n", command->name, command->operands[0] != '\0' ? " " : "",
            command->operands, command->summary);
    print_words(file, command->description, 0, 0);
    fputs("\noptions:\n", file);
    print_options(file, command, command->options);
    print_options(file, command, common_options);
}

void print_help(FILE *file) {
    fputs("usage: samebit COMMAND …\n\n"
          "Runs neural networks with every output bit specified.\n\ncommands:\n",
          file);
    for (const command *command = commands; command->name != NULL; command++)
        fprintf(file, "  %-14s %s\n", command->name, command->summary);
    fputs("\n'samebit COMMAND --help' tells a command's options; 'man samebit' tells everything.\n", file);
}

/* Text for scdoc, in which some characters mark emphasis. */
static void print_manual_text(FILE *file, const char *text) {
    for (; *text != '\0'; text++) {
        if (strchr("*_\\#<>`[]~", *text) != NULL)
            fputc('\\', file);
        fputc(*text, file);
    }
}

static void print_manual_options(FILE *file, const command *command, const option *table) {
    for (; table != NULL && table->name != NULL; table++) {
        char letter = command != NULL ? letter_of(command, table) : '\0';
        if (letter != '\0')
            fprintf(file, "*-%c*, ", letter);
        fprintf(file, "*--%s*", table->name);
        if (table->argument != NULL) {
            fputs(" _", file);
            print_manual_text(file, table->argument);
            fputs("_", file);
        }
        fputs("\n\t", file);
        print_manual_text(file, table->help);
        fprintf(file, ".%s\n\n", table->repeated ? " May be repeated." : "");
    }
}

void print_manual(FILE *file) {
    fputs("samebit(1)\n\n# NAME\n\nsamebit - runs neural networks with every output bit specified\n\n"
          "# SYNOPSIS\n\n",
          file);
    for (const command *command = commands; command->name != NULL; command++)
        fprintf(file, "*samebit %s* %s [_options_]++\n", command->name, command->operands);
    fputs("*samebit --version*\n\n# DESCRIPTION\n\n"
          "samebit runs ONNX models. The same model and input give the same bits on any machine, "
          "with any number of "
          "threads and any instruction set.\n\n# COMMANDS\n\n",
          file);
    for (const command *command = commands; command->name != NULL; command++) {
        fprintf(file, "## samebit %s %s\n\n", command->name, command->operands);
        print_manual_text(file, command->summary);
        fputs(". ", file);
        print_manual_text(file, command->description);
        fputs("\n\n", file);
        print_manual_options(file, command, command->options);
    }
    fputs("# COMMON OPTIONS\n\n", file);
    print_manual_options(file, NULL, common_options);
    fputs("# EXIT STATUS\n\n"
          "*0*\n\tDone, and nothing was found wrong.\n\n"
          "*1*\n\tDone, but a comparison or a conformance case failed, or something is not as a receipt says.\n\n"
          "*2*\n\tThe command line could not be understood, or *verify* cannot use its receipt or key.\n\n"
          "*3*\n\tA file, a model or a run failed; the message says where and what to do.\n\n"
          "*130*\n\tCtrl-C ended a run, before its next node or iteration; a second Ctrl-C does "
          "not wait for that.\n",
          file);
}

/* ---- completions ---- */

static void print_bash(FILE *file) {
    fputs("# bash completion for samebit\n_samebit() {\n"
          "    local word=${COMP_WORDS[COMP_CWORD]} options=\n"
          "    if ((COMP_CWORD == 1)); then\n        COMPREPLY=($(compgen -W \"",
          file);
    for (const command *command = commands; command->name != NULL; command++)
        fprintf(file, "%s ", command->name);
    fputs("--help --version\" -- \"$word\"))\n        return\n    fi\n    case ${COMP_WORDS[1]} in\n", file);
    for (const command *command = commands; command->name != NULL; command++) {
        fprintf(file, "    %s) options=\"", command->name);
        for (const option *option = command->options; option->name != NULL; option++) {
            if (letter_of(command, option) != '\0')
                fprintf(file, "-%c ", letter_of(command, option));
            fprintf(file, "--%s ", option->name);
        }
        fputs("\" ;;\n", file);
    }
    fputs("    esac\n    if [[ $word == -* ]]; then\n        COMPREPLY=($(compgen -W \"$options", file);
    for (const option *option = common_options; option->name != NULL; option++)
        fprintf(file, " --%s", option->name);
    fputs("\" -- \"$word\"))\n    else\n        COMPREPLY=($(compgen -f -- \"$word\"))\n    fi\n}\n"
          "complete -o filenames -F _samebit samebit\n",
          file);
}

/* Prints `text` for the inside of single quotes. */
static void print_quoted(FILE *file, const char *text) {
    for (; *text != '\0'; text++) {
        if (*text == '\'')
            fputs("'\\''", file);
        else if (*text == '[' || *text == ']' || *text == ':')
            fprintf(file, "\\%c", *text);
        else
            fputc(*text, file);
    }
}

/* One form of an option: "--name=", or "-x". */
static void print_zsh_form(FILE *file, const option *option, const char *form) {
    fprintf(file, " \\\n            '%s%s[", option->repeated ? "*" : "", form);
    print_quoted(file, option->help);
    fputs("]", file);
    if (option->argument != NULL) {
        fputs(":", file);
        print_quoted(file, option->argument);
        fputs(":_files", file);
    }
    fputs("'", file);
}

static void print_zsh_options(FILE *file, const command *command, const option *table) {
    for (; table->name != NULL; table++) {
        char form[64];
        if (letter_of(command, table) != '\0') {
            snprintf(form, sizeof form, "-%c", letter_of(command, table));
            print_zsh_form(file, table, form);
        }
        snprintf(form, sizeof form, "--%s%s", table->name, table->argument != NULL ? "=" : "");
        print_zsh_form(file, table, form);
    }
}

static void print_zsh(FILE *file) {
    fputs("#compdef samebit\n_samebit() {\n    local -a commands=(\n", file);
    for (const command *command = commands; command->name != NULL; command++) {
        fprintf(file, "        '%s:", command->name);
        print_quoted(file, command->summary);
        fputs("'\n", file);
    }
    fputs("    )\n    if ((CURRENT == 2)); then\n        _describe command commands\n        "
          "return\n    fi\n"
          "    local name=$words[2]\n    shift words\n    ((CURRENT--))\n    case $name in\n",
          file);
    for (const command *command = commands; command->name != NULL; command++) {
        fprintf(file, "    %s)\n        _arguments", command->name);
        print_zsh_options(file, command, command->options);
        print_zsh_options(file, command, common_options);
        fputs(" \\\n            '*:file:_files' ;;\n", file);
    }
    fputs("    esac\n}\n_samebit \"$@\"\n", file);
}

/* Prints `text` in fish's single quotes. */
static void print_fish_quoted(FILE *file, const char *text) {
    fputc('\'', file);
    for (; *text != '\0'; text++) {
        if (*text == '\'' || *text == '\\')
            fputc('\\', file);
        fputc(*text, file);
    }
    fputs("'\n", file);
}

static void print_fish_option(FILE *file, const command *command, const char *condition, const option *option) {
    fprintf(file, "complete -c samebit -n '%s'", condition);
    if (letter_of(command, option) != '\0')
        fprintf(file, " -s %c", letter_of(command, option));
    fprintf(file, " -l %s%s -d ", option->name, option->argument != NULL ? " -r" : "");
    print_fish_quoted(file, option->help);
}

static void print_fish(FILE *file) {
    for (const command *command = commands; command->name != NULL; command++) {
        char condition[96];
        fprintf(file, "complete -c samebit -n __fish_use_subcommand -a %s -d ", command->name);
        print_fish_quoted(file, command->summary);
        snprintf(condition, sizeof condition, "__fish_seen_subcommand_from %s", command->name);
        for (const option *option = command->options; option->name != NULL; option++)
            print_fish_option(file, command, condition, option);
        for (const option *option = common_options; option->name != NULL; option++)
            print_fish_option(file, command, condition, option);
    }
}

bool print_completion(FILE *file, const char *shell) {
    if (strcmp(shell, "bash") == 0)
        print_bash(file);
    else if (strcmp(shell, "zsh") == 0)
        print_zsh(file);
    else if (strcmp(shell, "fish") == 0)
        print_fish(file);
    else
        return false;
    return true;
}
