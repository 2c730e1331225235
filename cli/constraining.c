#include "constraining.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tokenizing.h"

/* ---- numbers ---- */

bool read_real(const arguments *arguments, const char *name, double least, double most, float *number) {
    const char *text = option_value(arguments, name);
    double value;
    if (text == NULL)
        return true;
    if (!parse_number(text, &value) || !(value >= least && value <= most)) {
        usage_error("--%s %s: a number from %g to %g is expected", name, text, least, most);
        return false;
    }
    *number = (float)value;
    return true;
}

bool read_penalties(const arguments *arguments, sb_llm_sampling *sampling) {
    return read_real(arguments, "repetition-penalty", 1e-6, 0x1p20, &sampling->repetition_penalty) &&
           read_real(arguments, "presence-penalty", -0x1p20, 0x1p20, &sampling->presence_penalty) &&
           read_real(arguments, "frequency-penalty", -0x1p20, 0x1p20, &sampling->frequency_penalty);
}

static int by_token(const void *left, const void *right) {
    int64_t a = ((const sb_llm_logit_bias *)left)->token, b = ((const sb_llm_logit_bias *)right)->token;
    return a < b ? -1 : a > b;
}

static bool read_bias(const char *text, sb_llm_logit_bias *bias) {
    char *end;
    double value;
    errno = 0;
    bias->token = strtoll(text, &end, 10);
    if (errno != 0 || end == text || *text < '0' || *text > '9' || *end != '=')
        return false;
    bool never = strcmp(end + 1, "-inf") == 0;
    if (!never && (!parse_number(end + 1, &value) || fabs(value) > 0x1p20))
        return false;
    bias->bias = never ? -INFINITY : (float)value;
    return true;
}

int read_biases(const arguments *arguments, sb_llm_sampling *sampling, sb_llm_logit_bias **biases) {
    int count = 0;
    while (option_value_at(arguments, "logit-bias", count) != NULL)
        count++;
    *biases = calloc((size_t)count + 1, sizeof **biases);
    if (*biases == NULL)
        return out_of_memory();
    for (int i = 0; i < count; i++) {
        const char *text = option_value_at(arguments, "logit-bias", i);
        if (!read_bias(text, &(*biases)[i]))
            return usage_error("--logit-bias %s: a token's id, = and a number within 2^20, or -inf, are expected",
                               text);
    }
    qsort(*biases, (size_t)count, sizeof **biases, by_token);
    for (int i = 1; i < count; i++) {
        if ((*biases)[i].token == (*biases)[i - 1].token)
            return usage_error("--logit-bias: token %lld has two", (long long)(*biases)[i].token);
    }
    sampling->bias_count = count;
    sampling->biases = *biases;
    return EXIT_RIGHT;
}

/* ---- constraints ---- */

bool is_constrained(const arguments *arguments) {
    return has_option(arguments, "json-schema") || has_option(arguments, "json-object");
}

/* A schema is an object, or true or false: nothing that a file would be called. */
static bool is_schema(const char *argument) {
    size_t space = strspn(argument, " \t\r\n");
    return argument[space] == '{' || strcmp(argument, "true") == 0 || strcmp(argument, "false") == 0;
}

int open_constraint(const arguments *arguments, const sb_tokenizer *tokenizer, sb_llm_constraint **constraint) {
    const char *argument = option_value(arguments, "json-schema"), *prompt = option_value(arguments, "prompt");
    char *text;
    size_t bytes;
    sb_error error;
    *constraint = NULL;
    if (!is_constrained(arguments))
        return EXIT_RIGHT;
    if (argument != NULL && has_option(arguments, "json-object"))
        return usage_error("--json-schema and --json-object are two constraints: give one");
    if (has_option(arguments, "ignore-stops"))
        return usage_error("--ignore-stops: what is behind the end of a text is not constrained");
    if (argument != NULL && prompt != NULL && strcmp(argument, "-") == 0 && strcmp(prompt, "-") == 0)
        return usage_error("--prompt and --json-schema cannot both be standard input");
    bool itself = argument == NULL || strcmp(argument, "-") == 0 || is_schema(argument);
    int code = itself ? read_text_argument(argument != NULL ? argument : SB_LLM_JSON_OBJECT, &text, &bytes)
                      : read_text_file(argument, &text, &bytes);
    if (code != EXIT_RIGHT)
        return code;
    code = sb_llm_constraint_create(tokenizer, text, bytes, constraint, &error) == SB_OK ? EXIT_RIGHT : report(&error);
    free(text);
    return code;
}
