/* Conversations from outside: lists of messages, as /save writes them and lines of --batch have them. */
#ifndef CLI_MESSAGES_H
#define CLI_MESSAGES_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

#define MESSAGES_WHY_BYTES 256

/** Whether it is a list of objects that have a text "role" and a "content" (a text, a list or null). What else they have is the template's
 * to look at. False with `why`, which names the message and the field. */
bool check_messages(const json_t *messages, char why[MESSAGES_WHY_BYTES]);

/** Reads {"messages": […]}, `bytes` of UTF-8. The caller has a reference to the list, which may be empty. False with `why`, which has the
 * line where the text is no JSON. */
bool parse_messages(const char *text, size_t bytes, json_t **messages, char why[MESSAGES_WHY_BYTES]);

/** The role of a message; "" where it has none. */
const char *message_role(const json_t *message);

#endif
