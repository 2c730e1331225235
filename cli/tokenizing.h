/* Texts and token ids from the command line: what `generate`, `tokenize` and `perplexity` have in common. */
#ifndef CLI_TOKENIZING_H
#define CLI_TOKENIZING_H

#include "support.h"

#define ENCODING_OPTIONS                                                                                               \
    {"bare", NULL, false, "Put no token before or behind the text, such as the one that texts begin with"}, {          \
        "plain", NULL, false, "Special tokens that are written in the text are text too"                               \
    }

/** Reads ids with commas or white space between them into fresh memory. `name` stands for them in messages. Exit codes as
 * in options.h, after printing what is wrong; so below. */
int read_token_ids(const char *name, const char *text, size_t bytes, int64_t **ids, int64_t *count);

/** What an argument says: the argument itself, or for "-" what standard input has. `*text` is fresh memory. */
int read_text_argument(const char *argument, char **text, size_t *bytes);

/** What a file holds, for "-" what standard input has. `*text` is fresh memory, with a NUL behind its bytes. */
int read_text_file(const char *path, char **text, size_t *bytes);

/** The tokens of a text, in fresh memory. */
int encode_text(const sb_tokenizer *tokenizer, const sb_encode_options *options, const char *text, size_t bytes,
                int64_t **ids, int64_t *count);

/** The tokens of what an argument says, by --bare and --plain, in fresh memory. */
int encode_argument(const arguments *arguments, const sb_tokenizer *tokenizer, const char *argument, int64_t **ids,
                    int64_t *count);

#endif
