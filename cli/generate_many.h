/* What `generate` does with many requests, or several samples of one: a line of JSON for each, in their order. */
#ifndef CLI_GENERATE_MANY_H
#define CLI_GENERATE_MANY_H

#include "requests.h"
#include "support.h"

#define MANY_OPTIONS                                                                                                   \
    {"batch", "FILE", false,                                                                                           \
     "Requests to run together, an object of JSON on each line: prompt, messages or tokens, and count, samples, "      \
     "temperature, "                                                                                                   \
     "top_k, top_p, min_p, seed, request, stop, ignore_stops where they are not those of the options; - for standard " \
     "input"},                                                                                                         \
        {"samples", "N", false,                                                                                        \
         "How many to generate from a prompt, as request --request, the next, …; 1 by default. A line of JSON each"},  \
        {"no-digest", NULL, false,                                                                                     \
         "No digests in the lines: logits then stay on a device, which chooses tokens by itself"},                     \
        {"parallel", "N", false, "The most that run at a time; 16 by default. Changes no bit"},                        \
        {"pages", "N", false,                                                                                          \
         "Pages of 16 positions for all that run; by default enough for the longest. Changes no bit"},                 \
    {                                                                                                                  \
        "cache-memory", "BYTES", false,                                                                                \
            "The most memory for keys and values, such as 500M or 2G: with --batch and --samples in place of "         \
            "--pages, "                                                                                                \
            "else a context that takes more is an error"                                                               \
    }

typedef struct request_list {
    request *all;
    int64_t count;
} request_list;

/** Reads the file of --batch: what a line does not say is as in `defaults`. Frees nothing that it has not made. Exit codes as
 * in options.h, after printing what is wrong, with the line; so below. */
int read_requests(const char *path, const request *defaults, request_list *list);
void free_requests(request_list *list);

/** Makes the folder for receipts, unless there is one of that name. */
int make_receipts_folder(const char *path);

/** Generates for all, and prints what comes of each. `tokenizer` may be NULL where no prompt and no stop is a text. Of `about` the
 * chunk, the constraint and the biases are for all of them. */
int generate_many(const arguments *arguments, sb_llm *llm, const sb_session_options *options,
                  const sb_tokenizer *tokenizer, const sb_llm_generation *about, request_list *list);

#endif
