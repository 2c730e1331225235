/* Any bytes as a chat template, and behind the byte 0x1e the JSON of its variables: refused with a report, or a text of UTF-8
 * that is the same every time. */
#include <string.h>

#include <utf8proc.h>

#include "base/allocation.h"
#include "fuzz/fuzz.h"
#include "template/template.h"

/* Fewer than there are for users: a template that takes all of them is slow under sanitizers. */
#define STEPS 200000

static void check_text(const char *text, size_t bytes) {
    FUZZ_CHECK(text[bytes] == '\0');
    for (size_t at = 0; at < bytes;) {
        utf8proc_int32_t point;
        utf8proc_ssize_t step =
            utf8proc_iterate((const utf8proc_uint8_t *)text + at, (utf8proc_ssize_t)(bytes - at), &point);
        FUZZ_CHECK(step > 0);
        at += (size_t)step;
    }
}

static void render(const sb_jinja_template *parsed, const json_t *variables) {
    static const sb_llm_date date = {2031, 7, 4, 8, 5, 9};
    char *texts[2] = {NULL, NULL};
    size_t bytes[2];
    for (int i = 0; i < 2; i++) {
        sb_error error = {0};
        sb_status status = sb_jinja_render(parsed, variables, &date, STEPS, &texts[i], &bytes[i], &error);
        FUZZ_CHECK(status == SB_OK || (error.status == status && error.message[0] != '\0'));
        FUZZ_CHECK((status == SB_OK) == (texts[i] != NULL));
    }
    FUZZ_CHECK((texts[0] == NULL) == (texts[1] == NULL));
    if (texts[0] != NULL) {
        FUZZ_CHECK(bytes[0] == bytes[1] && memcmp(texts[0], texts[1], bytes[0]) == 0);
        check_text(texts[0], bytes[0]);
    }
    sb_free(texts[0]);
    sb_free(texts[1]);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    const uint8_t *mark = size != 0 ? memchr(data, 0x1e, size) : NULL;
    size_t source = mark != NULL ? (size_t)(mark - data) : size;
    int64_t before = sb_allocation_count().live_blocks;
    sb_error error = {0};
    sb_jinja_template *parsed = NULL;
    sb_status status = sb_jinja_parse((const char *)data, source, &parsed, &error);
    FUZZ_CHECK(status == SB_OK || (error.status == status && error.message[0] != '\0'));
    if (status == SB_OK) {
        json_t *variables =
            mark != NULL ? json_loadb((const char *)mark + 1, size - source - 1, JSON_ALLOW_NUL, NULL) : NULL;
        if (variables == NULL)
            variables = json_object();
        render(parsed, variables);
        json_decref(variables);
    }
    sb_jinja_free(parsed);
    FUZZ_CHECK(sb_allocation_count().live_blocks == before);
    return 0;
}
