/* Commands and their options: one table from which parsing, --help, the man page and the shell
 * completions are made. */
#ifndef CLI_OPTIONS_H
#define CLI_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

/* Exit codes, also in the man page. */
enum {
    EXIT_RIGHT = 0,        /* done, nothing wrong */
    EXIT_DIFFERENT = 1,    /* done, but a comparison or a case failed, or a receipt says something else */
    EXIT_USAGE = 2,        /* the command line cannot be understood, or what verify is to hold a model to */
    EXIT_FAILED = 3,       /* a file, a model or a run failed */
    EXIT_INTERRUPTED = 130 /* Ctrl-C ended a run; what a shell reports for it */
};

typedef struct option {
    const char *name;     /* without the dashes; NULL ends a table */
    const char *argument; /* what stands for the argument in the help, or NULL for a switch */
    bool repeated;        /* may be given more than once */
    const char *help;     /* one sentence, without a full stop */
} option;

/* A parsed command line. */
typedef struct arguments {
    const struct command *command;
    int positional_count;
    const char **positional;
    int option_count;
    const option **options; /* in the order given */
    const char **values;    /* their arguments; NULL for switches */
    bool *asked;            /* whether the command has looked for the option: one that it has not done nothing */
} arguments;

typedef struct command {
    const char *name;
    const char *operands;              /* for the usage line: "MODEL", "DIR…" */
    int least_operands, most_operands; /* most: -1 for any number */
    const char *summary;               /* one line */
    const char *description;           /* a paragraph for the man page */
    const option *options;             /* the command's own */
    const char *letters;               /* "p=prompt": -p is short for --prompt; NULL: no option is short */
    int (*run)(const arguments *arguments);
} command;

extern const command commands[]; /* ends with an entry without a name */
extern const option common_options[];

/** Parses `argv[1]…` after the command's name. On failure prints one line to stderr and returns
 * false. Release with free_arguments in both cases. */
bool parse_arguments(const command *command, int argc, char **argv, arguments *arguments);
void free_arguments(arguments *arguments);

/** Whether the switch or option was given. */
bool has_option(const arguments *arguments, const char *name);
/** The name of an option that was given and that the command has not looked for, or NULL. */
const char *unused_option(const arguments *arguments);
/** The (last) argument of an option, or NULL. */
const char *option_value(const arguments *arguments, const char *name);
/** The argument of the `index`-th occurrence of an option, or NULL. */
const char *option_value_at(const arguments *arguments, const char *name, int index);

/* Parsers of arguments. Each is strict: the whole text must be read. */
bool parse_integer(const char *text, long long least, long long most, long long *value);
/** A number of bytes from 1 to LLONG_MAX, with K, M, G or T behind it for powers of 1024. */
bool parse_bytes(const char *text, long long *value);
bool parse_number(const char *text, double *value);
/** "NAME=REST": *name is a fresh copy to free, *rest points into `text`. */
bool parse_assignment(const char *text, char **name, const char **rest);
/** "A,B" as two numbers of at least 0. */
bool parse_tolerance(const char *text, double *absolute, double *relative);

void print_help(FILE *file);
void print_command_help(FILE *file, const command *command);
/** The man page in scdoc's format. */
void print_manual(FILE *file);
/** A completion script: "bash", "zsh" or "fish"; false for any other shell. */
bool print_completion(FILE *file, const char *shell);

/** Prints "samebit: …" to stderr and returns EXIT_USAGE. */
int usage_error(const char *format, ...) __attribute__((format(printf, 1, 2)));

#endif
