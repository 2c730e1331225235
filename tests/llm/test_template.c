/* Chat templates: the recorded cases, what is refused and how, limits, memory that runs out, checkpoints. What jinja2 makes
 * of more templates is compared by make_template_cases.py. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "support/failing.h"
#include "support/folder.h"
#include "support/must.h"
#include "template/template.h"
#include "tiny_models.h"

static const sb_llm_date date = {2031, 7, 4, 8, 5, 9};

/* ---- recorded ---- */

static sb_status render(const char *source, size_t source_bytes, const char *variables, char **text, size_t *bytes,
                        sb_error *error) {
    sb_chat_template *made;
    sb_status status = sb_chat_template_create(source, source_bytes, &made, error);
    if (status != SB_OK)
        return status;
    status = sb_chat_template_render(made, variables, strlen(variables), &date, text, bytes, error);
    sb_chat_template_free(made);
    return status;
}

static void check_recorded(const json_t *recorded) {
    const json_t *source = json_object_get(recorded, "template"), *wanted = json_object_get(recorded, "text");
    char *variables = json_dumps(json_object_get(recorded, "variables"), 0), *text = NULL;
    size_t bytes = 0;
    sb_error error = {0};
    assert_non_null(variables);
    sb_status status = render(json_string_value(source), json_string_length(source), variables, &text, &bytes, &error);
    if ((status == SB_OK) != json_is_string(wanted))
        fail_msg("%s: %s", json_string_value(source), error.message);
    if (status == SB_OK && (bytes != json_string_length(wanted) ||
                            memcmp(text, json_string_value(wanted), bytes) != 0 || text[bytes] != '\0'))
        fail_msg("%s: '%s' instead of '%s'", json_string_value(source), text, json_string_value(wanted));
    sb_llm_free(text);
    free(variables);
}

static void test_recorded(void **unused) {
    (void)unused;
    json_error_t why;
    json_t *cases = json_load_file(TEMPLATE_CASES, JSON_ALLOW_NUL, &why), *one;
    size_t index;
    assert_true(json_array_size(cases) > 100);
    json_array_foreach(cases, index, one) check_recorded(one);
    json_decref(cases);
}

/* ---- refusals ---- */

static void refuse(const char *source, sb_status status, const char *says) {
    char *text = NULL;
    size_t bytes;
    sb_error error = {0};
    sb_status got =
        render(source, strlen(source), "{\"s\":\"text\",\"d\":{\"a\":1},\"l\":[1,2]}", &text, &bytes, &error);
    if (got != status)
        fail_msg("'%s': %s, %s", source, sb_status_name(got), got == SB_OK ? text : error.message);
    ASSERT_SAYS(error, says);
    assert_int_equal(error.status, status);
}

/* What jinja2 understands and this does not is said by name, with its line. */
static void test_not_understood(void **unused) {
    (void)unused;
    static const char *const statements[] = {"with x = 1",      "filter upper", "call f()", "include 'a'",
                                             "import 'a' as b", "extends 'a'",  "block b",  "print 1",
                                             "autoescape true", "trans"};
    for (size_t i = 0; i < sizeof statements / sizeof *statements; i++) {
        char source[80], says[80];
        snprintf(source, sizeof source, "\n{%% %s %%}", statements[i]);
        snprintf(says, sizeof says, "line 2: the statement '%.*s' is not", (int)strcspn(statements[i], " "),
                 statements[i]);
        refuse(source, SB_ERROR_UNSUPPORTED, says);
    }
    refuse("a\n{{ s|urlize }}", SB_ERROR_UNSUPPORTED, "line 2: the filter 'urlize' is not understood");
    refuse("{{ [1]|map('pprint')|list }}", SB_ERROR_UNSUPPORTED, "the filter 'pprint'");
    refuse("{{ s is upper }}", SB_ERROR_UNSUPPORTED, "the test 'upper'");
    refuse("{{ l|select('sortof')|list }}", SB_ERROR_UNSUPPORTED, "the test 'sortof'");
    refuse("\n\n{{ s.zfill(3) }}", SB_ERROR_UNSUPPORTED, "line 3: the method 'zfill'");
    refuse("{{ s.format(1) }}", SB_ERROR_UNSUPPORTED, "the method 'format'");
    refuse("{{ d.copy() }}", SB_ERROR_UNSUPPORTED, "the method 'copy'");
    refuse("{{ (1).bit_length() }}", SB_ERROR_UNSUPPORTED, "the method 'bit_length'");
    refuse("{{ s.upper }}", SB_ERROR_UNSUPPORTED, "type method has no text");
    refuse("{{ cycler(1) }}", SB_ERROR_UNSUPPORTED, "the function 'cycler'");
    refuse("{% for x in l recursive %}{% endfor %}", SB_ERROR_UNSUPPORTED, "'recursive' loops");
    refuse("{% for x in l %}{{ loop.cycle(1) }}{% endfor %}", SB_ERROR_UNSUPPORTED, "attribute of loop 'cycle'");
    refuse("{% macro f() %}{{ caller() }}{% endmacro %}", SB_ERROR_UNSUPPORTED, "special variable 'caller'");
    refuse("{{ range(*l) }}", SB_ERROR_UNSUPPORTED, "'*' before an argument");
    refuse("{% set x | upper %}{% endset %}", SB_ERROR_UNSUPPORTED, "set block");
    refuse("{{ '%s' % s }}", SB_ERROR_UNSUPPORTED, "formats a text");
    refuse("{{ s|trim(width=3) }}", SB_ERROR_UNSUPPORTED,
           "the filter 'trim' takes the arguments (chars); argument 1, width");
    refuse("{{ 9223372036854775807 + 1 }}", SB_ERROR_UNSUPPORTED, "beyond 64 bits");
    refuse("{{ 99999999999999999999 }}", SB_ERROR_UNSUPPORTED, "beyond 64 bits");
    refuse("{{ '\\ud800' }}", SB_ERROR_UNSUPPORTED, "no character");
    refuse("{{ '\\U8001f600' }}", SB_ERROR_UNSUPPORTED, "no character");
    refuse("{{ '\\N{BULLET}' }}", SB_ERROR_UNSUPPORTED, "\\N");
    refuse("{{ strftime_now('%c') }}", SB_ERROR_UNSUPPORTED, "'%c'");
    refuse("{{ strftime_now('%') }}", SB_ERROR_UNSUPPORTED, "'%'");
    refuse("{{ l|sort(attribute='a,b') }}", SB_ERROR_UNSUPPORTED, "several attributes");
    refuse("{{ 2.0 ** 2 }}", SB_ERROR_UNSUPPORTED, "'**' of floats");
    refuse("{{ ('<'|e).strip() }}", SB_ERROR_UNSUPPORTED, "'strip' of a text that has been escaped");
    refuse("{{ s|int(base=16) }}", SB_ERROR_UNSUPPORTED, "a base other than 10");
    refuse("{{ '\u0664'|int }}", SB_ERROR_UNSUPPORTED, "digits beyond 0 to 9");
}

static void test_failures(void **unused) {
    (void)unused;
    refuse("{{ raise_exception('no ' ~ s) }}", SB_ERROR_INVALID_ARGUMENT, "line 1: it refuses: no text");
    refuse("{{\n\n q.a }}", SB_ERROR_INVALID_ARGUMENT, "line 3: 'q' is undefined");
    refuse("{{ s.q.r }}", SB_ERROR_INVALID_ARGUMENT, "no member 'q'");
    refuse("{{ l.append(1) }}", SB_ERROR_INVALID_ARGUMENT, "'append', which belongs to Python or changes");
    refuse("{{ s.__class__.x }}", SB_ERROR_INVALID_ARGUMENT, "'__class__'");
    refuse("{% set ns = namespace(_x=1) %}", SB_ERROR_INVALID_ARGUMENT, "begin with '_'");
    refuse("{% set ns = namespace() %}{% set ns._x = 1 %}", SB_ERROR_INVALID_ARGUMENT, "begin with '_'");
    refuse("\n{% if s %}\n\n", SB_ERROR_INVALID_FILE,
           "elif else endif is expected where there is the end of the template");
    refuse("\xff", SB_ERROR_INVALID_FILE, "byte 0: no UTF-8");
    refuse("{{ é }}", SB_ERROR_INVALID_FILE, "no meaning inside a tag");
}

static void test_dates(void **unused) {
    (void)unused;
    static const sb_llm_date wrong[] = {
        {2023, 2, 29, 0, 0, 0}, {2024, 13, 1, 0, 0, 0}, {999, 1, 1, 0, 0, 0}, {2024, 1, 1, 24, 0, 0}};
    static const char source[] = "{{ strftime_now('%a %j') }}";
    static const struct {
        sb_llm_date date;
        const char *text;
    } right[] = {
        {{2024, 2, 29, 0, 0, 0}, "Thu 060"}, {{1900, 3, 1, 0, 0, 0}, "Thu 060"}, {{2000, 12, 31, 0, 0, 0}, "Sun 366"}};
    sb_chat_template *made;
    sb_error error = {0};
    char *text;
    size_t bytes;
    MUST(sb_chat_template_create(source, strlen(source), &made, error));
    assert_int_equal(sb_chat_template_render(made, "{}", 2, NULL, &text, &bytes, &error), SB_ERROR_INVALID_ARGUMENT);
    ASSERT_SAYS(error, "asks for the date, and none was given");
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        assert_int_equal(sb_chat_template_render(made, "{}", 2, &wrong[i], &text, &bytes, &error),
                         SB_ERROR_INVALID_ARGUMENT);
    for (size_t i = 0; i < sizeof right / sizeof *right; i++) {
        MUST(sb_chat_template_render(made, "{}", 2, &right[i].date, &text, &bytes, error));
        assert_string_equal(text, right[i].text);
        sb_llm_free(text);
    }
    assert_int_equal(sb_chat_template_render(made, "[1]", 3, NULL, &text, &bytes, &error), SB_ERROR_INVALID_ARGUMENT);
    assert_int_equal(sb_chat_template_render(made, "{", 1, NULL, &text, &bytes, &error), SB_ERROR_INVALID_ARGUMENT);
    ASSERT_SAYS(error, "are no JSON, byte 1");
    sb_chat_template_free(made);
}

/* ---- limits ---- */

/* `piece` so many times, and a middle, and `end` as often. */
static char *nest(const char *piece, const char *middle, const char *end, size_t times) {
    tiny_bytes text = {0};
    for (size_t i = 0; i < times; i++)
        tiny_add(&text, piece, strlen(piece));
    tiny_add(&text, middle, strlen(middle));
    for (size_t i = 0; i < times; i++)
        tiny_add(&text, end, strlen(end));
    tiny_add(&text, "", 1);
    return text.data;
}

static void refuse_nested(const char *piece, const char *middle, const char *end, size_t times) {
    char *source = nest(piece, middle, end, times);
    refuse(source, SB_ERROR_LIMIT, "");
    free(source);
}

static void test_limits(void **unused) {
    (void)unused;
    refuse_nested("{% if 1 %}", "", "{% endif %}", 100000);
    refuse_nested("{% for x in l %}", "", "{% endfor %}", 200);
    refuse_nested("{{-1}}{{", "", "", 1 << 18); /* too long */
    char *minus = nest("-", "1 }}", "", 200000), *list = nest("[", "", "]", 150), *sum = nest("+1", " }}", "", 3000),
         source[1 << 19];
    snprintf(source, sizeof source, "{{ %s", minus);
    refuse(source, SB_ERROR_LIMIT, "nest too deep");
    snprintf(source, sizeof source, "{{ %s }}", list);
    refuse(source, SB_ERROR_LIMIT, "nest too deep");
    snprintf(source, sizeof source, "{{ 1%s", sum);
    refuse(source, SB_ERROR_LIMIT, "nest too deep");
    free(minus), free(list), free(sum);
    refuse("{{ range(1000000000) }}", SB_ERROR_LIMIT, "more than 100000 items");
    refuse("{{ range(-9223372036854775807, 9223372036854775807, 3) }}", SB_ERROR_LIMIT, "more than 100000 items");
    refuse("{% for a in range(99999) %}{% for b in range(99999) %}{% endfor %}{% endfor %}", SB_ERROR_LIMIT,
           "it takes more");
    refuse("{{ 'abcdefgh' * 100000000 }}", SB_ERROR_LIMIT, "more than 64 MiB");
    refuse("{{ [1] * 10000000000 }}", SB_ERROR_LIMIT, "");
    refuse(
        "{% set ns = namespace(x='abcdefgh' * 1000) %}{% for i in range(99) %}{% set ns.x = ns.x + ns.x %}{% endfor %}",
        SB_ERROR_LIMIT, "");
    refuse("{% set ns = namespace(x=[1, 2, 3, 4]) %}{% for i in range(99) %}{% set ns.x = ns.x + ns.x %}{% endfor %}",
           SB_ERROR_LIMIT, "MiB");
    refuse("{% macro f(n) %}{{ f(n + 1) }}{% endmacro %}{{ f(0) }}", SB_ERROR_LIMIT, "nest too deep");
    refuse("{% set ns = namespace(x=[]) %}{% for i in range(5000) %}{% set ns.x = [ns.x] %}{% endfor %}{{ ns.x }}",
           SB_ERROR_LIMIT, "nest too deep");
    refuse(
        "{% set ns = namespace(x=[]) %}{% for i in range(5000) %}{% set ns.x = [ns.x] %}{% endfor %}{{ ns.x|tojson }}",
        SB_ERROR_LIMIT, "nest too deep");
    refuse("{% set ns = namespace(x=l) %}{% for i in range(5000) %}{% set ns.x = ns.x|map('string') %}{% endfor %}{{ "
           "ns.x|list }}",
           SB_ERROR_LIMIT, "nest too deep");
    refuse("{% set ns = namespace() %}{% set ns.x = ns %}{{ ns }}", SB_ERROR_LIMIT, "nest too deep");
}

/* ---- memory ---- */

static sb_status attempt(void *context) {
    const json_t *recorded = context;
    const json_t *source = json_object_get(recorded, "template");
    sb_jinja_template *parsed;
    char *text;
    size_t bytes;
    SB_TRY(sb_jinja_parse(json_string_value(source), json_string_length(source), &parsed, NULL));
    sb_status status = sb_jinja_render(parsed, json_object_get(recorded, "variables"), &date, 0, &text, &bytes, NULL);
    if (status == SB_OK)
        sb_free(text);
    sb_jinja_free(parsed);
    return status;
}

static void test_memory(void **unused) {
    (void)unused;
    json_error_t why;
    json_t *cases = json_load_file(TEMPLATE_CASES, JSON_ALLOW_NUL, &why), *one;
    size_t index, tried = 0;
    json_array_foreach(cases, index, one) {
        if (json_is_string(json_object_get(one, "text")) && attempt(one) == SB_OK) {
            check_failing_allocations(attempt, one);
            tried++;
        }
    }
    assert_true(tried > 80);
    json_decref(cases);
}

/* ---- checkpoints ---- */

static void save(const char *name, const char *text) {
    const tiny_bytes bytes = {(char *)(uintptr_t)text, strlen(text), 0};
    tiny_save(&bytes, folder_path(name));
}

static void check_loaded(const char *path, const char *variables, const char *wanted) {
    sb_chat_template *made;
    char *text;
    size_t bytes;
    MUST(sb_chat_template_load(path, &made, error));
    MUST(sb_chat_template_render(made, variables, strlen(variables), NULL, &text, &bytes, error));
    assert_string_equal(text, wanted);
    sb_llm_free(text);
    sb_chat_template_free(made);
}

static void refuse_loading(const char *path, sb_status status, const char *says) {
    sb_chat_template *made;
    sb_error error = {0};
    assert_int_equal(sb_chat_template_load(path, &made, &error), status);
    ASSERT_SAYS(error, says);
}

static void test_folders(void **unused) {
    (void)unused;
    refuse_loading("no-such-folder", SB_ERROR_IO, "no-such-folder");
    refuse_loading(folder, SB_ERROR_UNSUPPORTED, "has no chat template");
    save("tokenizer_config.json", "{\"bos_token\": null, \"chat_template\": \"{{ bos_token is defined }}{{ tools }}{{ "
                                  "add_generation_prompt }}\"}");
    check_loaded(folder, "{}", "FalseNoneFalse");
    check_loaded(folder, "{\"add_generation_prompt\": true, \"tools\": []}", "False[]True");
    save("tokenizer_config.json",
         "{\"bos_token\": \"<s>\", \"eos_token\": {\"content\": \"</s>\"}, \"chat_template\": [{\"name\": "
         "\"tool_use\", \"template\": \"t\"}, {\"name\": \"default\", \"template\": \"{{ bos_token }}{{ eos_token "
         "}}\"}]}");
    check_loaded(folder, "{}", "<s></s>");
    check_loaded(folder, "{\"eos_token\": \"mine\"}", "<s>mine");
    save("chat_template.jinja", "file {{ eos_token }}\n");
    check_loaded(folder, "{}", "file </s>");
    save("chat_template.jinja", "\n{% nothing %}");
    refuse_loading(folder, SB_ERROR_UNSUPPORTED, "chat_template.jinja: the template, line 2: the statement 'nothing'");
    unlink(folder_path("chat_template.jinja"));
    save("tokenizer_config.json",
         "{\"chat_template\": [{\"name\": \"tool_use\", \"template\": \"t\"}, 1, {\"name\": \"default\"}]}");
    refuse_loading(folder, SB_ERROR_UNSUPPORTED, "has no chat template");
    save("tokenizer_config.json", "{\"chat_template\": ");
    refuse_loading(folder, SB_ERROR_INVALID_FILE, "tokenizer_config.json, byte");
}

static void add_key(tiny_bytes *to, const char *key, uint64_t type) {
    tiny_add_text(to, key);
    tiny_add_number(to, type, 4);
}

static void save_gguf(const char *chat_template) {
    tiny_bytes file = {0};
    tiny_add(&file, "GGUF\3\0\0\0\0\0\0\0\0\0\0\0", 16);
    tiny_add_number(&file, chat_template != NULL ? 4 : 3, 8);
    add_key(&file, "tokenizer.ggml.tokens", 9);
    tiny_add_number(&file, 8, 4);
    tiny_add_number(&file, 2, 8);
    tiny_add_text(&file, "<a>");
    tiny_add_text(&file, "<b>");
    add_key(&file, "tokenizer.ggml.bos_token_id", 4);
    tiny_add_number(&file, 1, 4);
    add_key(&file, "tokenizer.ggml.eos_token_id", 4);
    tiny_add_number(&file, 7, 4);
    if (chat_template != NULL) {
        add_key(&file, "tokenizer.chat_template", 8);
        tiny_add_text(&file, chat_template);
    }
    tiny_save(&file, folder_path("model.gguf"));
    free(file.data);
}

static void test_gguf(void **unused) {
    (void)unused;
    save_gguf("{{ bos_token }}{{ eos_token is defined }}{{ messages[0].content }}");
    check_loaded(folder_path("model.gguf"), "{\"messages\": [{\"content\": \"x\"}]}", "<b>Falsex");
    save_gguf("{% if %}");
    refuse_loading(folder_path("model.gguf"), SB_ERROR_INVALID_FILE, "model.gguf: the template, line 1");
    save_gguf(NULL);
    refuse_loading(folder_path("model.gguf"), SB_ERROR_UNSUPPORTED, "has no chat template");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_recorded),
        cmocka_unit_test(test_not_understood),
        cmocka_unit_test(test_failures),
        cmocka_unit_test(test_dates),
        cmocka_unit_test(test_limits),
        cmocka_unit_test(test_memory),
        cmocka_unit_test_setup_teardown(test_folders, folder_open, folder_close),
        cmocka_unit_test_setup_teardown(test_gguf, folder_open, folder_close),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
