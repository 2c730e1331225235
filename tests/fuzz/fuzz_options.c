/* Any bytes as a command line, NUL-separated: parsed or refused, without reading past an argument's end. */
#include <math.h>
#include <string.h>

#include "../../cli/options.h"
#include "fuzz/fuzz.h"

static const option fuzz_options[] = {
    {"switch", NULL, false, "A switch"},
    {"number", "N", false, "An option"},
    {"list", "NAME=FILE", true, "An option that may be repeated"},
    {0},
};

const command commands[] = {
    {.name = "fuzz",
     .operands = "FILE…",
     .least_operands = 1,
     .most_operands = 3,
     .summary = "A command",
     .description = "A command.",
     .options = fuzz_options,
     .letters = "n=number,s=switch"},
    {0},
};

const option common_options[] = {
    {"help", NULL, false, "Help"},
    {0},
};

static void check_parsers(const char *text) {
    long long integer;
    double number, absolute, relative;
    char *name = NULL;
    const char *rest;
    if (parse_integer(text, -5, 1000000, &integer))
        FUZZ_CHECK(integer >= -5 && integer <= 1000000);
    if (parse_number(text, &number))
        FUZZ_CHECK(isfinite(number));
    if (parse_tolerance(text, &absolute, &relative))
        FUZZ_CHECK(absolute >= 0 && relative >= 0 && isfinite(absolute) && isfinite(relative));
    if (parse_assignment(text, &name, &rest)) {
        size_t length = strlen(name);
        FUZZ_CHECK(length > 0 && strlen(rest) > 0 && strlen(text) == length + 1 + strlen(rest));
        FUZZ_CHECK(memcmp(text, name, length) == 0 && text[length] == '=');
        free(name);
    }
}

/* What a parsed command line may hold. */
static void check_arguments(const arguments *arguments, int argc, bool parsed) {
    FUZZ_CHECK(arguments->positional_count + arguments->option_count < argc);
    if (parsed && !has_option(arguments, "help"))
        FUZZ_CHECK(arguments->positional_count >= 1 && arguments->positional_count <= 3);
    int numbers = 0, lists = 0;
    for (int i = 0; i < arguments->option_count; i++) {
        const option *option = arguments->options[i];
        FUZZ_CHECK((option->argument != NULL) == (arguments->values[i] != NULL));
        numbers += strcmp(option->name, "number") == 0;
        lists += strcmp(option->name, "list") == 0;
    }
    FUZZ_CHECK(numbers <= 1);
    FUZZ_CHECK(has_option(arguments, "number") == (option_value(arguments, "number") != NULL));
    FUZZ_CHECK(option_value_at(arguments, "list", lists) == NULL);
    FUZZ_CHECK(lists == 0 || option_value_at(arguments, "list", lists - 1) != NULL);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    enum { MOST = 64 };
    static FILE *nowhere;
    char *argv[MOST + 1];
    int argc = 1;
    if (nowhere == NULL)
        nowhere = fopen("/dev/null", "w");
    FUZZ_CHECK(nowhere != NULL);
    argv[0] = strdup("fuzz");
    for (size_t at = 0; at < size && argc < MOST; argc++) {
        const uint8_t *end = memchr(data + at, 0, size - at);
        size_t length = end != NULL ? (size_t)(end - (data + at)) : size - at;
        argv[argc] = strndup((const char *)data + at, length);
        FUZZ_CHECK(argv[argc] != NULL);
        at += length + 1;
    }
    arguments arguments;
    /* Refusals are printed, and a million of them are not wanted; glibc lets stderr be assigned. */
    FILE *loud = stderr;
    stderr = nowhere;
    bool parsed = parse_arguments(&commands[0], argc, argv, &arguments);
    stderr = loud;
    check_arguments(&arguments, argc, parsed);
    free_arguments(&arguments);
    for (int i = 0; i < argc; i++) {
        check_parsers(argv[i]);
        free(argv[i]);
    }
    return 0;
}
