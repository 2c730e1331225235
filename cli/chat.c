#include "chat.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "answer_text.h"
#include "messages.h"
#include "tokenizing.h"

bool read_chat_date(const arguments *arguments, sb_llm_date *date) {
    const char *text = option_value(arguments, "date");
    int end = 0;
    *date = (sb_llm_date){0};
    if (text == NULL) {
        time_t now = time(NULL);
        struct tm today;
        localtime_r(&now, &today);
        date->year = today.tm_year + 1900;
        date->month = today.tm_mon + 1;
        date->day = today.tm_mday;
        return true;
    }
    bool is_date = strlen(text) == 10 &&
                   sscanf(text, "%4d-%2d-%2d%n", &date->year, &date->month, &date->day, &end) == 3 && end == 10 &&
                   date->year >= 1000 && date->month >= 1 && date->month <= 12 && date->day >= 1 && date->day <= 31;
    if (!is_date)
        usage_error("--date %s: a day such as 2026-02-28 is expected", text);
    return is_date;
}

bool is_conversation(const arguments *arguments) {
    return has_option(arguments, "chat") && !has_option(arguments, "prompt") && !has_option(arguments, "batch");
}

/* What has no place beside a conversation. */
static bool check_conversation(const arguments *arguments) {
    static const char *const others[] = {"tokens",       "samples",      "parallel", "pages",   "logprobs",
                                         "top-logprobs", "score-prompt", "json",     "receipt", "sign"};
    const char *schema = option_value(arguments, "json-schema");
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        if (has_option(arguments, others[i])) {
            usage_error("--%s does not go with a conversation: --chat needs --prompt for it", others[i]);
            return false;
        }
    }
    if (schema == NULL || strcmp(schema, "-") != 0)
        return true;
    usage_error("--json-schema - and a conversation cannot both be standard input");
    return false;
}

bool check_chat(const arguments *arguments) {
    sb_llm_date date;
    if (!has_option(arguments, "chat")) {
        bool batch = has_option(arguments, "batch"), dated = has_option(arguments, "date");
        if (!has_option(arguments, "system") && !has_option(arguments, "conversation") && (batch || !dated))
            return !dated || read_chat_date(arguments, &date);
        usage_error("--system, --conversation and --date are for --chat (--date also for --batch)");
        return false;
    }
    if (has_option(arguments, "system") && has_option(arguments, "conversation")) {
        usage_error("--system and --conversation: the file has the system's message, if there is one");
        return false;
    }
    if (has_option(arguments, "bare") || has_option(arguments, "plain")) {
        usage_error("--chat: what stands around a message is the template's: without --bare and --plain");
        return false;
    }
    return read_chat_date(arguments, &date) && (!is_conversation(arguments) || check_conversation(arguments));
}

bool add_chat_message(json_t *messages, const char *role, const char *text, size_t bytes) {
    return json_array_append_new(messages, json_pack("{s:s, s:s%}", "role", role, "content", text, bytes)) == 0;
}

int read_conversation(const char *path, json_t **messages) {
    char why[MESSAGES_WHY_BYTES], *text;
    size_t bytes;
    if (strcmp(path, "-") == 0)
        return usage_error("a conversation is read from a file, not from standard input");
    int code = read_text_file(path, &text, &bytes);
    if (code != EXIT_RIGHT)
        return code;
    if (!parse_messages(text, bytes, messages, why))
        code = usage_error("%s: %s", path, why);
    free(text);
    return code;
}

int begin_chat(const arguments *arguments, json_t **messages) {
    const char *system = option_value(arguments, "system"), *path = option_value(arguments, "conversation");
    if (path != NULL)
        return read_conversation(path, messages);
    *messages = json_array();
    if (*messages == NULL)
        return out_of_memory();
    if (system == NULL || add_chat_message(*messages, "system", system, strlen(system)))
        return EXIT_RIGHT;
    json_decref(*messages);
    *messages = NULL;
    return usage_error("--system has to be UTF-8");
}

sb_status write_chat(const sb_chat_template *chat, const sb_llm_date *date, json_t *messages, char **text,
                     size_t *bytes, sb_error *error) {
    json_t *all = json_pack("{s:O, s:b}", "messages", messages, "add_generation_prompt", 1);
    char *variables = all != NULL ? json_dumps(all, JSON_COMPACT) : NULL;
    json_decref(all);
    if (variables == NULL)
        return run_out(error);
    sb_status status = sb_chat_template_render(chat, variables, strlen(variables), date, text, bytes, error);
    free(variables);
    return status;
}
