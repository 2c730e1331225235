#include "messages.h"

#include <stdio.h>
#include <string.h>

const char *message_role(const json_t *message) {
    const char *role = json_string_value(json_object_get(message, "role"));
    return role != NULL ? role : "";
}

bool check_messages(const json_t *messages, char why[MESSAGES_WHY_BYTES]) {
    if (!json_is_array(messages)) {
        snprintf(why, MESSAGES_WHY_BYTES, "\"messages\": a list of messages is expected");
        return false;
    }
    for (size_t i = 0; i < json_array_size(messages); i++) {
        const json_t *message = json_array_get(messages, i), *content = json_object_get(message, "content");
        const char *wrong = NULL;
        if (!json_is_object(message))
            wrong = ": an object with \"role\" and \"content\" is expected";
        else if (*message_role(message) == '\0')
            wrong = ".role: a text such as \"user\" is expected";
        else if (!json_is_string(content) && !json_is_array(content) && !json_is_null(content))
            wrong = ".content: a text is expected (or a list or null, for templates that take them)";
        if (wrong != NULL) {
            snprintf(why, MESSAGES_WHY_BYTES, "\"messages\"[%zu]%s", i, wrong);
            return false;
        }
    }
    return true;
}

bool parse_messages(const char *text, size_t bytes, json_t **messages, char why[MESSAGES_WHY_BYTES]) {
    json_error_t error;
    json_t *object = json_loadb(text, bytes, JSON_REJECT_DUPLICATES, &error);
    bool fits = false;
    *messages = NULL;
    if (object == NULL)
        snprintf(why, MESSAGES_WHY_BYTES, "line %d, column %d: %.120s", error.line, error.column, error.text);
    else if (!json_is_object(object) || json_object_size(object) != 1 || json_object_get(object, "messages") == NULL)
        snprintf(why, MESSAGES_WHY_BYTES,
                 "an object with \"messages\" and nothing else is expected, as /save writes it");
    else
        fits = check_messages(json_object_get(object, "messages"), why);
    if (fits)
        *messages = json_incref(json_object_get(object, "messages"));
    json_decref(object);
    return fits;
}
