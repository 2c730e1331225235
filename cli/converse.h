/* `generate --chat` without a prompt: a conversation, message by message. */
#ifndef CLI_CONVERSE_H
#define CLI_CONVERSE_H

#include "stop_texts.h"
#include "support.h"

/** Reads messages and commands from standard input, line by line, and answers each message; what has been said stays in the sequence's
 * cache, so that only what is new is run. `generation` has the settings, of each answer; `stops` may be empty. Exit codes as in
 * options.h, after printing what is wrong. */
int converse(const arguments *arguments, sb_llm *llm, const sb_session_options *options, const sb_tokenizer *tokenizer,
             const stop_texts *stops, const sb_llm_generation *generation);

#endif
