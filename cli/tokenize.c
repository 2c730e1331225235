/* samebit tokenize: text to tokens, and back. */
#include <stdlib.h>
#include <string.h>

#include "commands.h"
#include "text.h"
#include "tokenizing.h"

const option tokenize_options[] = {
    {"decode", NULL, false, "TEXT is token ids with commas or white space between: print their text"},
    {"skip-special", NULL, false, "With --decode, leave special tokens out"},
    ENCODING_OPTIONS,
    {"json", NULL, false, "Print the tokens with their spelling, or the text, as JSON"},
    {0},
};

static json_t *token_json(const sb_tokenizer *tokenizer, int64_t id) {
    size_t bytes = 0;
    const char *piece = sb_tokenizer_token(tokenizer, id, &bytes);
    return json_pack("{s:I, s:o, s:b}", "token", (json_int_t)id, "piece",
                     piece != NULL ? json_stringn(piece, bytes) : json_null(), "special",
                     (int)sb_tokenizer_is_special(tokenizer, id));
}

static int print_tokens(const arguments *arguments, const sb_tokenizer *tokenizer, const int64_t *ids, int64_t count) {
    bool as_json = has_option(arguments, "json");
    json_t *tokens = as_json ? json_array() : NULL;
    for (int64_t i = 0; i < count; i++) {
        if (as_json)
            json_array_append_new(tokens, token_json(tokenizer, ids[i]));
        else
            printf("%s%lld", i != 0 ? "," : "", (long long)ids[i]);
    }
    if (!as_json) {
        printf("\n");
        return EXIT_RIGHT;
    }
    return print_json_value(stdout, json_pack("{s:o, s:I}", "tokens", tokens, "count", (json_int_t)count))
               ? EXIT_RIGHT
               : EXIT_FAILED;
}

static int print_text(const arguments *arguments, const sb_tokenizer *tokenizer, const int64_t *ids, int64_t count) {
    sb_error error;
    char *text;
    size_t bytes;
    bool printed = true;
    for (int64_t i = 0; i < count; i++) {
        if (sb_tokenizer_token(tokenizer, ids[i], &bytes) == NULL) {
            fprintf(stderr, "samebit: no token has the id %lld: ids go up to %lld\n", (long long)ids[i],
                    (long long)sb_tokenizer_vocabulary(tokenizer) - 1);
            return EXIT_FAILED;
        }
    }
    if (sb_tokenizer_decode(tokenizer, ids, (size_t)count, has_option(arguments, "skip-special"), &text, &bytes,
                            &error) != SB_OK)
        return report(&error);
    if (has_option(arguments, "json"))
        printed = print_json_value(stdout, json_pack("{s:s%}", "text", text, bytes));
    else
        fwrite(text, 1, bytes, stdout);
    sb_llm_free(text);
    return printed ? EXIT_RIGHT : EXIT_FAILED;
}

int run_tokenize(const arguments *arguments) {
    sb_tokenizer *tokenizer;
    sb_error error;
    const char *argument = arguments->positional_count > 1 ? arguments->positional[1] : "-";
    char *text = NULL;
    size_t bytes;
    int64_t *ids = NULL, count;
    bool decode = has_option(arguments, "decode");
    if (has_option(arguments, "skip-special") && !decode)
        return usage_error("--skip-special is for --decode");
    if (decode && (has_option(arguments, "bare") || has_option(arguments, "plain")))
        return usage_error("--bare and --plain are for texts, not for --decode");
    if (sb_tokenizer_open(arguments->positional[0], &tokenizer, &error) != SB_OK)
        return report(&error);
    int code = decode ? read_text_argument(argument, &text, &bytes)
                      : encode_argument(arguments, tokenizer, argument, &ids, &count);
    if (decode && code == EXIT_RIGHT)
        code = read_token_ids("--decode", text, bytes, &ids, &count);
    if (code == EXIT_RIGHT)
        code = decode ? print_text(arguments, tokenizer, ids, count) : print_tokens(arguments, tokenizer, ids, count);
    free(text);
    free(ids);
    sb_tokenizer_release(tokenizer);
    return code;
}
