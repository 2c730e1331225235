/* Writes texts at random under the schemas of a file of cases, for a validator to look at.
 *
 *     llm_constraints CASES.json COUNT     a line of JSON for each text: {"case": NAME, "text": …} */
#include "constraint_tokens.h"

static int fail(const char *name, const sb_error *error) {
    fprintf(stderr, "%s: %s\n", name, error->message);
    return 1;
}

static int write_texts(const sb_tokenizer *tokenizer, const json_t *entry, int count, random_source *random) {
    static char text[1 << 20];
    const char *name = json_string_value(json_object_get(entry, "name"));
    char *schema = json_dumps(json_object_get(entry, "schema"), JSON_ENCODE_ANY);
    sb_llm_constraint *constraint;
    sb_error error = {SB_OK, ""};
    if (schema == NULL || sb_llm_constraint_create(tokenizer, schema, strlen(schema), &constraint, &error) != SB_OK)
        return fail(name, &error);
    free(schema);
    for (int i = 0; i < count; i++) {
        size_t bytes;
        if (!draw_text(constraint, random, text, sizeof text, &bytes, (size_t)random_between(random, 0, 200), &error))
            return fail(name, &error);
        json_t *line = json_pack("{s:s, s:s%}", "case", name, "text", text, bytes);
        if (line == NULL || json_dumpf(line, stdout, JSON_COMPACT) != 0)
            return fail(name, &(sb_error){SB_OK, "the text is not UTF-8"});
        printf("\n");
        json_decref(line);
    }
    sb_llm_constraint_release(constraint);
    return 0;
}

int main(int argc, char **argv) {
    json_error_t why;
    sb_error error = {SB_OK, ""};
    random_source random = {1};
    json_t *cases = argc == 3 ? json_load_file(argv[1], 0, &why) : NULL;
    if (cases == NULL) {
        fprintf(stderr, "usage: llm_constraints CASES.json COUNT%s%s\n", argc == 3 ? ": " : "",
                argc == 3 ? why.text : "");
        return 2;
    }
    sb_tokenizer *tokenizer = make_constraint_tokenizer(&error);
    if (tokenizer == NULL)
        return fail("tokenizer", &error);
    int code = 0;
    for (size_t i = 0; i < json_array_size(cases) && code == 0; i++)
        code = write_texts(tokenizer, json_array_get(cases, i), atoi(argv[2]), &random);
    sb_tokenizer_release(tokenizer);
    json_decref(cases);
    return code;
}
