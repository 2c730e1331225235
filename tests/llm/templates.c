/* Renders templates, for scripts: each line of the input is an object of JSON with "template" and "variables", and each line
 * of the output one with "text", or with "status" and "error". The date is the 4th of July 2031, 08:05:09. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>
#include <samebit/llm.h>

static json_t *render(const json_t *given) {
    static const sb_llm_date date = {2031, 7, 4, 8, 5, 9};
    const json_t *source = json_object_get(given, "template");
    char *variables = json_dumps(json_object_get(given, "variables"), JSON_ENCODE_ANY), *text = NULL;
    size_t bytes = 0;
    sb_chat_template *parsed = NULL;
    sb_error error = {0};
    json_t *result;
    sb_status status = sb_chat_template_create(json_string_value(source), json_string_length(source), &parsed, &error);
    if (status == SB_OK)
        status = sb_chat_template_render(parsed, variables, strlen(variables), &date, &text, &bytes, &error);
    if (status == SB_OK)
        result = json_pack("{s:s%}", "text", text, bytes);
    else
        result = json_pack("{s:s,s:s}", "status", sb_status_name(status), "error", error.message);
    sb_llm_free(text);
    sb_chat_template_free(parsed);
    free(variables);
    return result;
}

int main(void) {
    char *line = NULL;
    size_t capacity = 0;
    ssize_t bytes;
    while ((bytes = getline(&line, &capacity, stdin)) > 0) {
        json_error_t why;
        json_t *given = json_loadb(line, (size_t)bytes, JSON_ALLOW_NUL, &why);
        if (given == NULL) {
            fprintf(stderr, "%s\n", why.text);
            return 1;
        }
        json_t *result = render(given);
        json_dumpf(result, stdout, JSON_COMPACT);
        printf("\n");
        fflush(stdout);
        json_decref(result);
        json_decref(given);
    }
    free(line);
    return 0;
}
