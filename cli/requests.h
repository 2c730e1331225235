/* Requests to generate, as a file has them: an object of JSON on each line. */
#ifndef CLI_REQUESTS_H
#define CLI_REQUESTS_H

#include <samebit/llm.h>

#include "messages.h"
#include "stop_texts.h"

#define REQUEST_WHY_BYTES MESSAGES_WHY_BYTES

typedef struct request {
    int64_t line;     /* of the file, from 1 */
    char *prompt;     /* a text, */
    json_t *messages; /* or a conversation, of one message or more, */
    int64_t *tokens;  /* or the prompt's tokens; the others are NULL */
    int64_t token_count;
    int64_t limit, samples;
    bool ignore_stops;
    sb_llm_sampling sampling;
    stop_texts stops;
} request;

/** Reads a line, `bytes` of UTF-8: what it does not say is as in `defaults`. False with `why`, when nothing is to be freed. */
bool read_request(const char *line, size_t bytes, const request *defaults, request *made, char why[REQUEST_WHY_BYTES]);
void free_request(request *request);

#endif
