/* A conversation as text, by a checkpoint's chat template. */
#ifndef CLI_CHAT_H
#define CLI_CHAT_H

#include "support.h"

#define CHAT_OPTIONS                                                                                                   \
    {"chat", NULL, false,                                                                                              \
     "The prompt is what a user says: the checkpoint's chat template writes it as the model was trained on"},          \
        {"system", "TEXT", false, "With --chat: what the conversation begins with"}, {                                 \
        "date", "YYYY-MM-DD", false, "With --chat: the day that templates may write; today by default"                 \
    }

/** Whether options of a conversation are given that belong together; prints what is wrong. */
bool check_chat(const arguments *arguments);

/** The text of a conversation of what --system and the user say, up to where the answer begins. `*text` is to be freed by
 * sb_llm_free. Exit codes as in options.h, after printing what is wrong. */
int write_chat(const arguments *arguments, const char *checkpoint, const char *said, size_t said_bytes, char **text,
               size_t *bytes);

#endif
