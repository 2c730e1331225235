#include "answer_text.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

sb_status run_out(sb_error *error) {
    error->status = SB_ERROR_OUT_OF_MEMORY;
    snprintf(error->message, sizeof error->message, "out of memory");
    return SB_ERROR_OUT_OF_MEMORY;
}

sb_status begin_answer_text(const sb_tokenizer *tokenizer, const stop_texts *stops, answer_text *answer,
                            sb_error *error) {
    *answer = (answer_text){.watch = {.stops = stops}};
    return tokenizer != NULL ? sb_decode_stream_create(tokenizer, true, &answer->stream, error) : SB_OK;
}

static sb_status add_text(answer_text *answer, const char *text, size_t bytes, sb_error *error) {
    if (answer->bytes + bytes + 1 > answer->room) {
        size_t room = 2 * answer->room + bytes + 64;
        char *more = realloc(answer->text, room);
        if (more == NULL)
            return run_out(error);
        answer->text = more;
        answer->room = room;
    }
    memcpy(answer->text + answer->bytes, text, bytes);
    answer->bytes += bytes;
    answer->text[answer->bytes] = '\0';
    return SB_OK;
}

sb_status push_answer_text(answer_text *answer, const sb_llm_token *token, size_t *before, sb_error *error) {
    const char *text;
    size_t bytes;
    *before = answer->bytes;
    if (answer->stream == NULL || token->stops)
        return SB_OK;
    sb_status status = sb_decode_stream_push(answer->stream, token->token, &text, &bytes, error);
    if (status != SB_OK)
        return status;
    return watch_text(&answer->watch, text, bytes, &text, &bytes) ? add_text(answer, text, bytes, error)
                                                                  : run_out(error);
}

sb_status finish_answer_text(answer_text *answer, size_t *before, sb_error *error) {
    const char *text;
    size_t bytes;
    *before = answer->bytes;
    if (answer->stream == NULL)
        return SB_OK;
    sb_status status = sb_decode_stream_finish(answer->stream, &text, &bytes, error);
    if (status != SB_OK)
        return status;
    return watch_last(&answer->watch, text, bytes, &text, &bytes) ? add_text(answer, text, bytes, error)
                                                                  : run_out(error);
}

void free_answer_text(answer_text *answer) {
    sb_decode_stream_destroy(answer->stream);
    free_watch(&answer->watch);
    free(answer->text);
    *answer = (answer_text){0};
}
