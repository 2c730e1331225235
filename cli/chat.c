#include "chat.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* The date that --date says, or today's at no time of day: a template that writes the time would give other tokens in each
 * second. */
static bool read_date(const arguments *arguments, sb_llm_date *date) {
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

bool check_chat(const arguments *arguments) {
    sb_llm_date date;
    if (!has_option(arguments, "chat")) {
        if (!has_option(arguments, "system") && !has_option(arguments, "date"))
            return true;
        usage_error("--system and --date are for --chat");
        return false;
    }
    if (has_option(arguments, "prompt") && !has_option(arguments, "bare") && !has_option(arguments, "plain"))
        return read_date(arguments, &date);
    usage_error("--chat needs --prompt, and what stands around it is the template's: without --bare and --plain");
    return false;
}

static json_t *message(const char *role, const char *text, size_t bytes) {
    return json_pack("{s:s, s:s%}", "role", role, "content", text, bytes);
}

/* The variables of the template as JSON, to be freed; NULL where memory is short or a text is not UTF-8. */
static char *variables_of(const arguments *arguments, const char *said, size_t said_bytes) {
    const char *system = option_value(arguments, "system");
    json_t *messages = json_array(), *all = json_pack("{s:O, s:b}", "messages", messages, "add_generation_prompt", 1);
    bool whole = all != NULL &&
                 (system == NULL || json_array_append_new(messages, message("system", system, strlen(system))) == 0) &&
                 json_array_append_new(messages, message("user", said, said_bytes)) == 0;
    char *text = whole ? json_dumps(all, JSON_COMPACT) : NULL;
    json_decref(all);
    json_decref(messages);
    return text;
}

int write_chat(const arguments *arguments, const char *checkpoint, const char *said, size_t said_bytes, char **text,
               size_t *bytes) {
    sb_chat_template *chat = NULL;
    sb_llm_date date;
    sb_error error;
    if (!read_date(arguments, &date))
        return EXIT_USAGE;
    char *variables = variables_of(arguments, said, said_bytes);
    if (variables == NULL)
        return usage_error("--prompt and --system have to be UTF-8");
    sb_status status = sb_chat_template_load(checkpoint, &chat, &error);
    if (status == SB_OK)
        status = sb_chat_template_render(chat, variables, strlen(variables), &date, text, bytes, &error);
    sb_chat_template_free(chat);
    free(variables);
    return status == SB_OK ? EXIT_RIGHT : report(&error);
}
