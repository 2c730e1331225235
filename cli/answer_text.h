/* The text of an answer, as its tokens come: decoded, and no further than a text of --stop. */
#ifndef CLI_ANSWER_TEXT_H
#define CLI_ANSWER_TEXT_H

#include <samebit/llm.h>

#include "stop_texts.h"

typedef struct answer_text {
    sb_decode_stream *stream; /* NULL without a tokenizer: there is no text */
    stop_watch watch;
    char *text; /* all that has come out; NULL where nothing has */
    size_t bytes, room;
} answer_text;

/** Begins one without text. `tokenizer` may be NULL; `stops`, the caller's, may be empty. Errors: those of sb_decode_stream_create. */
sb_status begin_answer_text(const sb_tokenizer *tokenizer, const stop_texts *stops, answer_text *answer,
                            sb_error *error);
/** Takes the next new token, one that ends the text too. What is behind the first `*before` bytes of the text has come out with it;
 * nothing does behind a stop (`answer->watch.found`). Errors: those of sb_decode_stream_push; OUT_OF_MEMORY. So below. */
sb_status push_answer_text(answer_text *answer, const sb_llm_token *token, size_t *before, sb_error *error);
/** Takes out what still waits for a next token. */
sb_status finish_answer_text(answer_text *answer, size_t *before, sb_error *error);
void free_answer_text(answer_text *answer);

/** The status of memory that has run out, with its message. */
sb_status run_out(sb_error *error);

#endif
