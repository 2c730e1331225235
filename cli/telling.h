/* What `generate` tells of tokens as they come: their ids, their text, a table, or JSON. */
#ifndef CLI_TELLING_H
#define CLI_TELLING_H

#include <jansson.h>

#include "answer_text.h"
#include "support.h"

typedef enum telling_form { TELL_IDS, TELL_TEXT, TELL_TABLE, TELL_JSON } telling_form;

typedef struct telling {
    telling_form form;
    bool logprobs;
    long long top;                 /* so many of the likeliest tokens are told with each */
    int64_t vocabulary;            /* of the model, for that */
    const sb_tokenizer *tokenizer; /* NULL: ids are told, and no text */
    answer_text answer;            /* of the new tokens */
    json_t *tokens;                /* JSON: what was told, else NULL */
} telling;

/** Begins, with text where there is a tokenizer; `stops`, the caller's, may be empty. Exit codes as in options.h, after printing what is wrong. */
int begin_telling(const arguments *arguments, const sb_tokenizer *tokenizer, const stop_texts *stops, telling *telling);
/** An sb_llm_token_function; `context` is the telling. */
sb_status tell_token(void *context, const sb_llm_token *token, bool *stop, sb_error *error);
/** Tells what of the text still waits for a next token. */
sb_status tell_rest(telling *telling, sb_error *error);
/** The text that was told, for JSON; NULL where memory ran out. */
json_t *told_text(const telling *telling);
void end_telling(telling *telling);

/** "limit", "stop", "context", "caller"; `found` where a text of --stop has ended it, which is a stop too. */
const char *generation_end_name(sb_llm_end end, bool found);

#endif
