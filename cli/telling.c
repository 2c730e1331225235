#include "telling.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "progress.h"
#include "text.h"

#define MOST_TOP 100

int begin_telling(const arguments *arguments, const sb_tokenizer *tokenizer, const stop_texts *stops,
                  telling *telling) {
    sb_error error;
    *telling = (struct telling){.logprobs = has_option(arguments, "logprobs"), .tokenizer = tokenizer};
    if (!read_count(arguments, "top-logprobs", 1, MOST_TOP, &telling->top))
        return EXIT_USAGE;
    if (telling->top > 0 && !has_option(arguments, "json"))
        return usage_error("--top-logprobs needs --json");
    telling->form = has_option(arguments, "json") ? TELL_JSON
                    : telling->logprobs           ? TELL_TABLE
                    : tokenizer != NULL           ? TELL_TEXT
                                                  : TELL_IDS;
    if (telling->form == TELL_JSON && (telling->tokens = json_array()) == NULL)
        return out_of_memory();
    return begin_answer_text(tokenizer, stops, &telling->answer, &error) == SB_OK ? EXIT_RIGHT : report(&error);
}

/* As many digits as tell every f32 from the others. */
static json_t *logp_json(float logp) {
    return isfinite(logp) ? json_real((double)logp) : json_null();
}

/* Prints what has come out behind the first bytes of the text. */
static void print_text(const telling *to, size_t before) {
    if (to->form != TELL_TEXT || to->answer.bytes == before)
        return;
    fwrite(to->answer.text + before, 1, to->answer.bytes - before, stdout);
    fflush(stdout);
}

/* The likeliest tokens by the model's own logits. */
static json_t *top_json(const telling *to, const sb_llm_token *token) {
    int64_t tokens[MOST_TOP];
    float logps[MOST_TOP];
    int64_t count = sb_llm_top(token->logits, to->vocabulary, to->top, tokens, logps);
    json_t *list = json_array();
    for (int64_t i = 0; i < count; i++)
        json_array_append_new(list,
                              json_pack("{s:I, s:o}", "token", (json_int_t)tokens[i], "logp", logp_json(logps[i])));
    return list;
}

static void tell_json(telling *to, const sb_llm_token *token, const char *piece, size_t piece_bytes) {
    json_t *entry = json_pack("{s:I, s:I, s:b}", "position", (json_int_t)token->position, "token",
                              (json_int_t)token->token, "given", (int)token->given);
    if (to->logprobs && token->has_logp)
        json_object_set_new(entry, "logp", logp_json(token->logp));
    if (to->top > 0 && token->logits != NULL)
        json_object_set_new(entry, "top", top_json(to, token));
    if (piece != NULL)
        json_object_set_new(entry, "piece", json_stringn(piece, piece_bytes));
    json_array_append_new(to->tokens, entry);
}

static void tell_row(const sb_llm_token *token, const char *piece) {
    printf("%lld\t%lld\t%.9g", (long long)token->position, (long long)token->token,
           token->has_logp ? (double)token->logp : 0.0);
    if (piece != NULL) {
        printf("\t");
        print_escaped(stdout, piece);
    }
    printf("\n");
    fflush(stdout);
}

sb_status tell_token(void *context, const sb_llm_token *token, bool *stop, sb_error *error) {
    telling *to = context;
    size_t bytes = 0;
    clear_progress();
    const char *piece = to->tokenizer != NULL ? sb_tokenizer_token(to->tokenizer, token->token, &bytes) : NULL;
    if (to->form == TELL_JSON)
        tell_json(to, token, piece, bytes);
    else if (to->form == TELL_TABLE)
        tell_row(token, piece);
    else if (to->form == TELL_IDS) {
        printf("%lld%s", (long long)token->token, token->stops ? "" : " ");
        fflush(stdout);
    }
    if (token->given)
        return SB_OK;
    size_t before;
    sb_status status = push_answer_text(&to->answer, token, &before, error);
    if (status == SB_OK)
        print_text(to, before);
    *stop = to->answer.watch.found;
    return status;
}

sb_status tell_rest(telling *telling, sb_error *error) {
    size_t before;
    sb_status status = finish_answer_text(&telling->answer, &before, error);
    if (status == SB_OK)
        print_text(telling, before);
    return status;
}

json_t *told_text(const telling *telling) {
    return json_stringn(telling->answer.text != NULL ? telling->answer.text : "", telling->answer.bytes);
}

void end_telling(telling *telling) {
    free_answer_text(&telling->answer);
    json_decref(telling->tokens);
}

const char *generation_end_name(sb_llm_end end, bool found) {
    static const char *const names[] = {"limit", "stop", "context", "caller", "complete"};
    return found ? names[SB_LLM_END_STOP] : names[end];
}
