/* The answer to a conversation so far: what the cache has of it is kept, and the rest is run. */
#ifndef CLI_ANSWERING_H
#define CLI_ANSWERING_H

#include <signal.h>

#include "answer_text.h"
#include "chat.h"

typedef struct answering {
    sb_llm_session *session;
    const sb_tokenizer *tokenizer;
    sb_chat_template *chat;
    sb_llm_date date;
    const stop_texts *stops;
    sb_llm_generation generation;
    const volatile sig_atomic_t *interrupted; /* above 0: the answer ends */
    int64_t *tokens; /* the first of which are behind the session's sequence, as many as that has */
    size_t count, room;
    answer_text text; /* of the answer in progress */
} answering;

/** What came of an answer. */
typedef struct answered {
    bool cut_off; /* by an interrupt */
    int64_t kept; /* tokens of the prompt that the cache had */
    sb_llm_result result;
} answered;

/** Answers the messages, on stdout as it comes; the text is `a->text.text` until the next call (NULL: there is none). Errors: those of the
 * template, the tokenizer and sb_llm_generate; an interrupt is none. */
sb_status answer_messages(answering *a, json_t *messages, answered *what, sb_error *error);
/** Frees what it has made. */
void end_answering(answering *a);

#endif
