/* A conversation as text, by a checkpoint's chat template. */
#ifndef CLI_CHAT_H
#define CLI_CHAT_H

#include <jansson.h>

#include "support.h"

#define CHAT_OPTIONS                                                                                                   \
    {"chat", NULL, false,                                                                                              \
     "The prompt is what a user says: the checkpoint's chat template writes it as the model was trained on. Without "  \
     "--prompt a conversation, whose messages are read line by line"},                                                 \
        {"system", "TEXT", false, "With --chat: what the conversation begins with"},                                   \
        {"conversation", "FILE", false, "With --chat: go on with the messages of FILE, as /save writes them"}, {       \
        "date", "YYYY-MM-DD", false,                                                                                   \
            "With --chat, and for messages of --batch: the day that templates may write; today by default"             \
    }

/** Whether options of a conversation are given that belong together; prints what is wrong. */
bool check_chat(const arguments *arguments);

/** Whether --chat is given without a prompt. */
bool is_conversation(const arguments *arguments);

/** The date that --date says, or today's at no time of day: a template that writes the time would give other tokens in each second.
 * False after printing what is wrong. */
bool read_chat_date(const arguments *arguments, sb_llm_date *date);

/** Reads the messages of a file, which may be none, to which the caller has a reference. Exit codes as in options.h, after printing what is
 * wrong; so below. */
int read_conversation(const char *path, json_t **messages);
/** A list of messages, with those of --conversation or what --system says. */
int begin_chat(const arguments *arguments, json_t **messages);
/** Adds a message. False where it is not UTF-8, or memory ran out. */
bool add_chat_message(json_t *messages, const char *role, const char *text, size_t bytes);

/** The text of a conversation up to where the answer begins. `*text` is to be freed by sb_llm_free. */
sb_status write_chat(const sb_chat_template *chat, const sb_llm_date *date, json_t *messages, char **text,
                     size_t *bytes, sb_error *error);

#endif
