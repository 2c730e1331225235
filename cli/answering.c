#include "answering.h"

#include <stdlib.h>
#include <string.h>

#include "tokenizing.h"

static sb_status remember(answering *a, int64_t token, sb_error *error) {
    if (a->count == a->room) {
        size_t room = 2 * a->room + 256;
        int64_t *more = realloc(a->tokens, room * sizeof *more);
        if (more == NULL)
            return run_out(error);
        a->tokens = more;
        a->room = room;
    }
    a->tokens[a->count++] = token;
    return SB_OK;
}

static void print_behind(const answer_text *text, size_t before) {
    if (text->bytes > before)
        fwrite(text->text + before, 1, text->bytes - before, stdout);
    fflush(stdout);
}

static sb_status hear(void *context, const sb_llm_token *token, bool *stop, sb_error *error) {
    answering *a = context;
    size_t before;
    sb_status status = push_answer_text(&a->text, token, &before, error);
    if (status == SB_OK)
        status = remember(a, token->token, error);
    if (status != SB_OK)
        return status;
    print_behind(&a->text, before);
    *stop = a->text.watch.found || *a->interrupted > 0;
    return SB_OK;
}

/* The tokens of the messages' text, which sb_llm_free frees. */
static sb_status encode_messages(const answering *a, json_t *messages, int64_t **tokens, size_t *count,
                                 sb_error *error) {
    sb_encode_options options = SB_ENCODE_DEFAULT;
    char *text;
    size_t bytes;
    options.bare = true;
    sb_status status = write_chat(a->chat, &a->date, messages, &text, &bytes, error);
    if (status != SB_OK)
        return status;
    status = sb_tokenizer_encode(a->tokenizer, text, bytes, &options, tokens, count, error);
    sb_llm_free(text);
    if (status == SB_OK && *count == 0) {
        sb_llm_free(*tokens);
        snprintf(error->message, sizeof error->message, "the chat template writes nothing that has tokens");
        status = error->status = SB_ERROR_INVALID_ARGUMENT;
    }
    return status;
}

/* Cuts the sequence to what it has of the prompt, but for the last token, whose logits are wanted. */
static sb_status keep_beginning(answering *a, const int64_t *prompt, size_t count, sb_error *error) {
    size_t length = (size_t)sb_llm_session_length(a->session), same = 0;
    while (same < length && same < count - 1 && a->tokens[same] == prompt[same])
        same++;
    a->count = 0;
    sb_status status = sb_llm_session_trim(a->session, (int64_t)same, error);
    for (size_t i = 0; i < count && status == SB_OK; i++)
        status = remember(a, prompt[i], error);
    a->generation.present = (int64_t)same;
    return status;
}

static sb_status answer(answering *a, const int64_t *prompt, size_t count, answered *what, sb_error *error) {
    size_t before;
    sb_status status = keep_beginning(a, prompt, count, error);
    what->kept = a->generation.present;
    if (status == SB_OK)
        status = begin_answer_text(a->tokenizer, a->stops, &a->text, error);
    if (status != SB_OK)
        return status;
    a->generation.on_token = hear;
    a->generation.no_logits = true;
    a->generation.context = a;
    sb_llm_session_clear_interrupt(a->session);
    status = sb_llm_generate(a->session, (int64_t)count, prompt, &a->generation, &what->result, error);
    what->cut_off = status == SB_ERROR_INTERRUPTED || *a->interrupted > 0;
    if (status != SB_OK && status != SB_ERROR_INTERRUPTED)
        return status;
    status = finish_answer_text(&a->text, &before, error);
    if (status == SB_OK)
        print_behind(&a->text, before);
    return status;
}

sb_status answer_messages(answering *a, json_t *messages, answered *what, sb_error *error) {
    int64_t *prompt;
    size_t count;
    *what = (answered){0};
    free_answer_text(&a->text);
    sb_status status = encode_messages(a, messages, &prompt, &count, error);
    if (status != SB_OK)
        return status;
    status = answer(a, prompt, count, what, error);
    sb_llm_free(prompt);
    return status;
}

void end_answering(answering *a) {
    free_answer_text(&a->text);
    sb_chat_template_free(a->chat);
    sb_llm_session_destroy(a->session);
    free(a->tokens);
    *a = (answering){0};
}
