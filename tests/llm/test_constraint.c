/* Constraints: right texts pass in any tokens, wrong ones do not, masks are what trying every token gives, texts at random are right. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "constraint/constraint.h"
#include "constraint/grammar.h"
#include "constraint_checker.h"
#include "constraint_tokens.h"
#include "support/failing.h"
#include "support/must.h"

static sb_tokenizer *tokenizer;
static json_t *cases;

static int begin(void **unused) {
    (void)unused;
    json_error_t why;
    sb_error error = {SB_OK, ""};
    cases = json_load_file(CONSTRAINT_CASES, 0, &why);
    tokenizer = make_constraint_tokenizer(&error);
    if (cases == NULL || tokenizer == NULL)
        fprintf(stderr, "%s%s\n", cases == NULL ? why.text : "", error.message);
    return cases == NULL || tokenizer == NULL;
}

static int end(void **unused) {
    (void)unused;
    sb_tokenizer_release(tokenizer);
    json_decref(cases);
    return 0;
}

static const char *name_of(const json_t *entry) {
    return json_string_value(json_object_get(entry, "name"));
}

static sb_llm_constraint *constraint_of(const json_t *schema) {
    char *text = json_dumps(schema, JSON_ENCODE_ANY);
    sb_llm_constraint *constraint;
    assert_non_null(text);
    MUST(sb_llm_constraint_create(tokenizer, text, strlen(text), &constraint, error));
    free(text);
    return constraint;
}

/* ---- texts ---- */

/* A token with which the text goes on, at random among all that fit it. */
static int64_t draw_token(random_source *random, const char *text, size_t left, size_t *bytes) {
    int64_t found[CONSTRAINT_VOCABULARY], count = 0;
    for (int64_t token = 0; token < CONSTRAINT_VOCABULARY - 2; token++) {
        size_t own;
        const char *piece = constraint_token(token, &own);
        if (own <= left && memcmp(piece, text, own) == 0)
            found[count++] = token;
    }
    assert_true(count > 0);
    int64_t token = found[random_between(random, 0, count - 1)];
    constraint_token(token, bytes);
    return token;
}

/* Whether the text passes, cut at random into tokens. */
static bool passes(sb_llm_constraint *constraint, random_source *random, const char *text, size_t bytes) {
    sb_llm_constraint_state *state;
    sb_error error;
    bool right = true;
    MUST(sb_llm_constraint_begin(constraint, &state, error));
    for (size_t at = 0, more; at < bytes && right; at += more) {
        int64_t token = draw_token(random, text + at, bytes - at, &more);
        sb_status status = sb_llm_constraint_accept(state, token, &error);
        right = status == SB_OK;
        if (!right)
            assert_int_equal(status, SB_ERROR_INVALID_ARGUMENT);
    }
    right = right && sb_llm_constraint_is_complete(state);
    sb_llm_constraint_end(state);
    return right;
}

static void check_texts(const json_t *entry, const char *kind, bool wanted, random_source *random) {
    sb_llm_constraint *constraint = constraint_of(json_object_get(entry, "schema"));
    const json_t *texts = json_object_get(entry, kind);
    for (size_t i = 0; i < json_array_size(texts); i++) {
        const json_t *text = json_array_get(texts, i);
        for (int way = 0; way < 20; way++) {
            if (passes(constraint, random, json_string_value(text), json_string_length(text)) != wanted)
                fail_msg("%s: '%s' %s", name_of(entry), json_string_value(text), wanted ? "does not pass" : "passes");
        }
    }
    sb_llm_constraint_release(constraint);
}

static void test_texts(void **unused) {
    (void)unused;
    random_source random = {7};
    assert_true(json_array_size(cases) >= 60);
    for (size_t i = 0; i < json_array_size(cases); i++) {
        check_texts(json_array_get(cases, i), "valid", true, &random);
        check_texts(json_array_get(cases, i), "invalid", false, &random);
    }
}

/* ---- texts at random ---- */

static void test_random_texts(void **unused) {
    (void)unused;
    static char text[1 << 20];
    random_source random = {11};
    int complete = 0;
    for (size_t i = 0; i < json_array_size(cases); i++) {
        const json_t *entry = json_array_get(cases, i), *schema = json_object_get(entry, "schema");
        sb_llm_constraint *constraint = constraint_of(schema);
        for (int round = 0; round < 20; round++) {
            size_t bytes;
            sb_error error;
            json_error_t why;
            if (!draw_text(constraint, &random, text, sizeof text, &bytes, (size_t)random_between(&random, 0, 200),
                           &error))
                fail_msg("%s: %s: %.300s", name_of(entry), error.message, text);
            json_t *value = json_loadb(text, bytes, JSON_DECODE_ANY, &why);
            if (value == NULL)
                fail_msg("%s: %s: %.300s", name_of(entry), why.text, text);
            if (!is_right(schema, schema, value))
                fail_msg("%s: wrong by the schema: %.300s", name_of(entry), text);
            json_decref(value);
            complete++;
        }
        sb_llm_constraint_release(constraint);
    }
    assert_true(complete >= 1200);
}

/* The checker itself finds what is wrong: of the texts that do not pass, those that are JSON and not merely written in another way. */
static void test_checker(void **unused) {
    (void)unused;
    int wrong = 0;
    for (size_t i = 0; i < json_array_size(cases); i++) {
        const json_t *entry = json_array_get(cases, i), *schema = json_object_get(entry, "schema");
        for (size_t j = 0; j < json_array_size(json_object_get(entry, "invalid")); j++) {
            const json_t *text = json_array_get(json_object_get(entry, "invalid"), j);
            json_t *value = json_loads(json_string_value(text), JSON_DECODE_ANY, NULL);
            wrong += value != NULL && !is_right(schema, schema, value);
            json_decref(value);
        }
        for (size_t j = 0; j < json_array_size(json_object_get(entry, "valid")); j++) {
            const char *text = json_string_value(json_array_get(json_object_get(entry, "valid"), j));
            json_t *value = json_loads(text, JSON_DECODE_ANY, NULL);
            if (value == NULL || !is_right(schema, schema, value))
                fail_msg("%s: the checker says that '%s' is wrong", name_of(entry), text);
            json_decref(value);
        }
    }
    assert_true(wrong >= 100);
}

/* ---- masks ---- */

/* How many tokens pass by the mask and not by trying them, or the other way round. */
static int compare_mask(const sb_llm_constraint_state *state, const uint64_t *bits) {
    int differing = 0;
    for (int64_t token = 0; token < CONSTRAINT_VOCABULARY; token++) {
        sb_llm_constraint_state *tried;
        bool by_mask = (bits[token / 64] >> token % 64 & 1) != 0, by_hand;
        MUST(sb_llm_constraint_copy(state, &tried, error));
        by_hand = token == constraint_stop ? sb_llm_constraint_is_complete(tried)
                                           : sb_llm_constraint_accept(tried, token, NULL) == SB_OK;
        differing += by_mask != by_hand;
        sb_llm_constraint_end(tried);
    }
    return differing;
}

/* Follows a text at random, up to 40 tokens, and compares each mask; with `spoil` one bit of it is changed before. */
static int follow_masks(sb_llm_constraint *constraint, random_source *random, bool spoil) {
    uint64_t bits[CONSTRAINT_VOCABULARY / 64 + 1];
    sb_llm_constraint_state *state;
    int differing = 0;
    MUST(sb_llm_constraint_begin(constraint, &state, error));
    for (int step = 0; step < 40; step++) {
        int64_t allowed, counted = 0, token = 0;
        MUST(sb_constraint_bits(state, bits, CONSTRAINT_VOCABULARY, 1, &constraint_stop, &allowed, error));
        for (size_t i = 0; i < sizeof bits / sizeof *bits; i++)
            counted += __builtin_popcountll(bits[i]);
        assert_int_equal(counted, allowed);
        if (allowed == 0)
            fail_msg("no token can come next");
        if (spoil)
            bits[random_between(random, 0, 255) / 64] ^= UINT64_C(1) << random_between(random, 0, 63);
        differing += compare_mask(state, bits);
        if (spoil)
            break;
        int64_t chosen = random_between(random, 0, allowed - 1);
        while ((bits[token / 64] >> token % 64 & 1) == 0 || chosen-- > 0)
            token++;
        if (token == constraint_stop)
            break;
        MUST(sb_llm_constraint_accept(state, token, error));
    }
    sb_llm_constraint_end(state);
    return differing;
}

static void test_masks(void **unused) {
    (void)unused;
    random_source random = {13};
    for (size_t i = 0; i < json_array_size(cases); i++) {
        sb_llm_constraint *constraint = constraint_of(json_object_get(json_array_get(cases, i), "schema"));
        for (int round = 0; round < 4; round++) {
            int differing = follow_masks(constraint, &random, false);
            if (differing != 0)
                fail_msg("%s: %d tokens differ", name_of(json_array_get(cases, i)), differing);
        }
        assert_int_equal(follow_masks(constraint, &random, true), 1);
        sb_llm_constraint_release(constraint);
    }
}

/* As deep as may be: where no level is free, what would need one is masked, and the text can end. */
static void test_depth(void **unused) {
    (void)unused;
    static const char *const schemas[] = {"true", "{\"type\":\"array\",\"items\":{\"$ref\":\"#\"},\"minItems\":0}",
                                          "{\"type\":\"object\",\"properties\":{\"a\":{\"anyOf\":[{\"$ref\":\"#\"},{"
                                          "\"type\":\"object\",\"properties\":{\"b\":"
                                          "{\"type\":\"array\",\"items\":{\"type\":\"string\"},\"minItems\":1}},"
                                          "\"required\":[\"b\"],\"additionalProperties\":false}]}},"
                                          "\"required\":[\"a\"],\"additionalProperties\":false}"};
    for (size_t i = 0; i < sizeof schemas / sizeof *schemas; i++) {
        json_t *schema = json_loads(schemas[i], JSON_DECODE_ANY, NULL);
        sb_llm_constraint *constraint = constraint_of(schema);
        sb_llm_constraint_state *state;
        const char *open = i == 2 ? "{\"a\":" : "[";
        bool opens = true;
        int depth = 0;
        sb_error error;
        MUST(sb_llm_constraint_begin(constraint, &state, error));
        for (; opens && depth < 1000; depth += opens) {
            for (const char *c = open; *c != '\0' && opens; c++)
                opens = sb_llm_constraint_accept(state, (unsigned char)*c, &error) == SB_OK;
        }
        assert_in_range(depth, SB_MOST_NESTING - 6, SB_MOST_NESTING);
        for (int step = 0; !sb_llm_constraint_is_complete(state); step++) {
            float logits[CONSTRAINT_VOCABULARY];
            int64_t allowed, token;
            sb_llm_sampling greedy = SB_LLM_SAMPLING_DEFAULT;
            for (int t = 0; t < CONSTRAINT_VOCABULARY; t++)
                logits[t] = (float)(t < 256 && strchr("\"}]b:[{", t) != NULL && t != 0) +
                            (float)(t == ']' || t == '}') + (float)(2 * (t == '"'));
            MUST(sb_llm_constraint_mask(state, logits, CONSTRAINT_VOCABULARY, 1, &constraint_stop, &allowed, error));
            if (allowed == 0 || step == 5000)
                fail_msg("schema %zu, depth %d: %lld tokens can come next in step %d", i, depth, (long long)allowed,
                         step);
            if (step % 100 == 0 || step < 5) {
                uint64_t bits[CONSTRAINT_VOCABULARY / 64 + 1];
                MUST(sb_constraint_bits(state, bits, CONSTRAINT_VOCABULARY, 1, &constraint_stop, &allowed, error));
                assert_int_equal(compare_mask(state, bits), 0);
            }
            MUST(sb_llm_sample(logits, CONSTRAINT_VOCABULARY, &greedy, 0, &token, error));
            MUST(sb_llm_constraint_accept(state, token, error));
        }
        sb_llm_constraint_end(state);
        sb_llm_constraint_release(constraint);
        json_decref(schema);
    }
}

/* The end may come where the text is complete alone, and rows of logits beyond the tokenizer's tokens never. */
static void test_stops(void **unused) {
    (void)unused;
    sb_llm_constraint *constraint;
    sb_llm_constraint_state *state;
    float logits[CONSTRAINT_VOCABULARY + 100] = {0};
    int64_t allowed, stops[] = {constraint_stop, CONSTRAINT_VOCABULARY + 50, 'a', -1, 1 << 20};
    MUST(sb_llm_constraint_create(tokenizer, "{\"type\":\"boolean\"}", 18, &constraint, error));
    MUST(sb_llm_constraint_begin(constraint, &state, error));
    MUST(sb_llm_constraint_mask(state, logits, CONSTRAINT_VOCABULARY + 100, 5, stops, &allowed, error));
    assert_true(logits['t'] == 0 && logits['a'] == -INFINITY && logits[constraint_stop] == -INFINITY);
    assert_true(logits[CONSTRAINT_VOCABULARY + 99] == -INFINITY && logits[CONSTRAINT_VOCABULARY + 50] == -INFINITY);
    assert_int_equal(allowed, 5); /* t, tr, true, f and false */
    for (const char *c = "true"; *c != '\0'; c++)
        MUST(sb_llm_constraint_accept(state, *c, error));
    memset(logits, 0, sizeof logits);
    MUST(sb_llm_constraint_mask(state, logits, CONSTRAINT_VOCABULARY + 100, 5, stops, &allowed, error));
    assert_int_equal(allowed, 3);
    assert_true(logits[constraint_stop] == 0 && logits[CONSTRAINT_VOCABULARY + 50] == 0 && logits['a'] == 0);
    memset(logits, 0, sizeof logits);
    MUST(sb_llm_constraint_mask(state, logits, 100, 0, NULL, &allowed, error));
    assert_int_equal(allowed, 0);
    sb_error error;
    assert_int_equal(sb_llm_constraint_accept(state, constraint_stop, &error), SB_ERROR_INVALID_ARGUMENT);
    ASSERT_SAYS(error, "cannot come next by the schema");
    assert_int_equal(sb_llm_constraint_accept(state, -1, &error), SB_ERROR_INVALID_ARGUMENT);
    assert_int_equal(sb_llm_constraint_mask(state, logits, 0, 0, NULL, &allowed, &error), SB_ERROR_INVALID_ARGUMENT);
    sb_llm_constraint_end(state);
    sb_llm_constraint_release(constraint);
}

/* ---- refusals ---- */

static void refuse(const char *schema, sb_status status, const char *says) {
    sb_llm_constraint *constraint = NULL;
    sb_error error = {SB_OK, ""};
    sb_status got = sb_llm_constraint_create(tokenizer, schema, strlen(schema), &constraint, &error);
    if (got != status)
        fail_msg("%.200s: status %d, '%s', instead of %d", schema, (int)got, error.message, (int)status);
    ASSERT_SAYS(error, says);
}

static void test_refusals(void **unused) {
    (void)unused;
    static const struct {
        const char *schema;
        sb_status status;
        const char *says;
    } refused[] = {
        {"", SB_ERROR_INVALID_FILE, "the schema is no JSON: byte"},
        {"{\"type\":\"string\"", SB_ERROR_INVALID_FILE, "the schema is no JSON: byte"},
        {"3", SB_ERROR_INVALID_FILE, "neither an object nor true or false"},
        {"false", SB_ERROR_INVALID_FILE, "no value is right by the schema"},
        {"{\"type\":\"text\"}", SB_ERROR_INVALID_FILE, "'/type' is not one of the types"},
        {"{\"type\":[]}", SB_ERROR_INVALID_FILE, "'/type' is not"},
        {"{\"enum\":[]}", SB_ERROR_INVALID_FILE, "'/enum' is not"},
        {"{\"minLength\":-1}", SB_ERROR_INVALID_FILE, "'/minLength' is not a whole number"},
        {"{\"maxItems\":1.5}", SB_ERROR_INVALID_FILE, "'/maxItems' is not a whole number"},
        {"{\"maxLength\":1e15}", SB_ERROR_LIMIT, "'/maxLength' is more than 2^31 - 1"},
        {"{\"required\":[1]}", SB_ERROR_INVALID_FILE, "'/required' is not an array of names"},
        {"{\"properties\":{\"a\":1}}", SB_ERROR_INVALID_FILE, "'/properties' is not an object of schemas"},
        {"{\"properties\":{\"a~/b\":{\"items\":{\"not\":{}}}},\"type\":\"object\"}", SB_ERROR_UNSUPPORTED,
         "the schema at '/properties/a~0~1b/items': 'not' is not supported"},
        {"{\"uniqueItems\":true}", SB_ERROR_UNSUPPORTED, "'': 'uniqueItems' is not supported"},
        {"{\"multipleOf\":0.5}", SB_ERROR_UNSUPPORTED, "'multipleOf' is not supported but for whole numbers"},
        {"{\"multipleOf\":0}", SB_ERROR_INVALID_FILE, "'/multipleOf' is not a number above 0"},
        {"{\"multipleOf\":\"2\"}", SB_ERROR_INVALID_FILE, "'/multipleOf' is not a number above 0"},
        {"{\"multipleOf\":1001}", SB_ERROR_LIMIT, "'/multipleOf' is more than 1000"},
        {"{\"allOf\":[{\"multipleOf\":31},{\"multipleOf\":37}]}", SB_ERROR_LIMIT, "least common multiple"},
        {"{\"type\":\"integer\",\"minimum\":1,\"maximum\":4,\"multipleOf\":5}", SB_ERROR_INVALID_FILE,
         "no value is right"},
        {"{\"patternProperties\":{}}", SB_ERROR_UNSUPPORTED, "'patternProperties' is not supported"},
        {"{\"if\":true}", SB_ERROR_UNSUPPORTED, "'if' is not supported"},
        {"{\"minProperties\":2}", SB_ERROR_UNSUPPORTED, "the schema at '': properties are counted by minProperties"},
        {"{\"properties\":{\"a\":{}},\"maxProperties\":1}", SB_ERROR_UNSUPPORTED, "additionalProperties is false"},
        {"{\"minProperties\":0.5}", SB_ERROR_INVALID_FILE, "'/minProperties' is not a whole number"},
        {"{\"type\":\"object\",\"minProperties\":2,\"maxProperties\":1}", SB_ERROR_INVALID_FILE, "no value is right"},
        {"{\"type\":\"object\",\"properties\":{\"a\":{}},\"additionalProperties\":false,\"minProperties\":2}",
         SB_ERROR_INVALID_FILE, "no value is right"},
        {"{\"type\":\"object\",\"required\":[\"a\"],\"maxProperties\":0}", SB_ERROR_INVALID_FILE, "no value is right"},
        {"{\"frobnicate\":1}", SB_ERROR_UNSUPPORTED, "'frobnicate' is not supported"},
        {"{\"items\":[true]}", SB_ERROR_UNSUPPORTED, "name the first items in prefixItems"},
        {"{\"format\":\"hostname\"}", SB_ERROR_UNSUPPORTED, "'hostname' is not supported; these are: date"},
        {"{\"items\":{\"$id\":\"x\"}}", SB_ERROR_UNSUPPORTED, "'$id' is not supported within a schema"},
        {"{\"$ref\":\"http://example.com\"}", SB_ERROR_UNSUPPORTED, "'/$ref' refers to 'http://example.com'"},
        {"{\"$ref\":\"#/$defs/a\"}", SB_ERROR_INVALID_FILE, "refers to '#/$defs/a', which is not there"},
        {"{\"$ref\":\"#\"}", SB_ERROR_INVALID_FILE, "refers to itself with neither a property nor an item in between"},
        {"{\"anyOf\":[{\"type\":\"null\"},{\"$ref\":\"#\"}]}", SB_ERROR_INVALID_FILE, "refers to itself"},
        {"{\"type\":\"object\",\"properties\":{\"a\":{\"$ref\":\"#\"}},\"required\":[\"a\"]}", SB_ERROR_INVALID_FILE,
         "no value is right by the schema, or none that nests"},
        {"{\"type\":\"integer\",\"minimum\":3,\"maximum\":2}", SB_ERROR_INVALID_FILE, "no value is right"},
        {"{\"type\":\"integer\",\"minimum\":1e30}", SB_ERROR_INVALID_FILE, "no value is right"},
        {"{\"type\":\"number\",\"minimum\":0.12345678901234567}", SB_ERROR_UNSUPPORTED,
         "bounds of numbers may have 15 digits"},
        {"{\"type\":\"string\",\"minLength\":3,\"maxLength\":2}", SB_ERROR_INVALID_FILE, "no value is right"},
        {"{\"type\":\"string\",\"pattern\":\"^ab$\",\"minLength\":3}", SB_ERROR_INVALID_FILE, "no value is right"},
        {"{\"const\":1,\"type\":\"string\"}", SB_ERROR_INVALID_FILE, "no value is right"},
        {"{\"oneOf\":[{\"type\":\"integer\"},{\"type\":\"number\"}]}", SB_ERROR_UNSUPPORTED,
         "'/oneOf': schemas 0 and 1 may both hold"},
        {"{\"oneOf\":[{\"type\":\"object\"},{\"type\":\"null\"},{\"type\":\"object\",\"required\":[\"a\"]}]}",
         SB_ERROR_UNSUPPORTED, "schemas 0 and 2 may both hold"},
        {"{\"type\":\"string\",\"pattern\":\"(a\"}", SB_ERROR_INVALID_FILE,
         "'/pattern': at byte 2 of the pattern, ) is missing"},
        {"{\"type\":\"string\",\"pattern\":\"a)\"}", SB_ERROR_INVALID_FILE, ") closes nothing"},
        {"{\"type\":\"string\",\"pattern\":\"*\"}", SB_ERROR_INVALID_FILE, "nothing is there to be repeated"},
        {"{\"type\":\"string\",\"pattern\":\"[b-a]\"}", SB_ERROR_INVALID_FILE, "a range ends before it begins"},
        {"{\"type\":\"string\",\"pattern\":\"[a\"}", SB_ERROR_INVALID_FILE, "] is missing"},
        {"{\"type\":\"string\",\"pattern\":\"\\\\\"}", SB_ERROR_INVALID_FILE, "nothing follows the backslash"},
        {"{\"type\":\"string\",\"pattern\":\"(a)\\\\1\"}", SB_ERROR_UNSUPPORTED, "references to groups"},
        {"{\"type\":\"string\",\"pattern\":\"a(?=b)\"}", SB_ERROR_UNSUPPORTED, "look ahead"},
        {"{\"type\":\"string\",\"pattern\":\"\\\\bword\"}", SB_ERROR_UNSUPPORTED, "\\b, \\B and \\p"},
        {"{\"type\":\"string\",\"pattern\":\"a(^b)\"}", SB_ERROR_UNSUPPORTED, "^ and $ are supported at the ends"},
        {"{\"type\":\"string\",\"pattern\":\"a{2000}\"}", SB_ERROR_LIMIT, "more than 1000 times"},
        {"{\"type\":\"string\",\"pattern\":\"((a{999}){999}){999}\"}", SB_ERROR_LIMIT, "states"},
        {"{\"type\":\"string\",\"pattern\":\"(a|b)*a(a|b){40}\"}", SB_ERROR_LIMIT, "steps to become automata"},
        {"{\"type\":\"string\",\"pattern\":\"^(a{999}){70}$\"}", SB_ERROR_LIMIT, "more than 65536 states"},
        {"{\"type\":\"string\",\"pattern\":\"a\",\"maxLength\":100000}", SB_ERROR_LIMIT, "beside a pattern or format"},
    };
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++)
        refuse(refused[i].schema, refused[i].status, refused[i].says);
}

/* ---- hostile schemas ---- */

static void repeat(char *text, size_t room, const char *open, int count, const char *middle, const char *close) {
    size_t at = 0;
    for (int i = 0; i < count; i++)
        at += (size_t)snprintf(text + at, room - at, "%s", open);
    at += (size_t)snprintf(text + at, room - at, "%s", middle);
    for (int i = 0; i < count; i++)
        at += (size_t)snprintf(text + at, room - at, "%s", close);
}

static void test_hostile(void **unused) {
    (void)unused;
    static char text[1 << 20];
    repeat(text, sizeof text, "{\"items\":", 3000, "true", "}");
    refuse(text, SB_ERROR_INVALID_FILE, "the schema is no JSON");
    repeat(text, sizeof text, "{\"type\":\"array\",\"minItems\":1,\"items\":", 300, "true", "}");
    refuse(text, SB_ERROR_INVALID_FILE, "none that nests less than 256 deep");
    repeat(text, sizeof text, "{\"anyOf\":[", 300, "true", "]}");
    refuse(text, SB_ERROR_LIMIT, "deeper in one another than 200");
    /* 2^20 ways. */
    repeat(text, sizeof text, "{\"allOf\":[{\"anyOf\":[{\"minimum\":1},{\"maximum\":2}]},", 20,
           "{\"type\":\"integer\"}", "]}");
    refuse(text, SB_ERROR_LIMIT, "");
    /* Six ways in each of 8 levels, which their first 8 bytes do not tell apart. */
    size_t at = (size_t)snprintf(text, sizeof text, "{\"$defs\":{");
    for (int i = 0; i < 8; i++) {
        at += (size_t)snprintf(text + at, sizeof text - at, "%s\"d%d\":{\"anyOf\":[", i > 0 ? "," : "", i);
        for (int j = 0; j < 6; j++)
            at += (size_t)snprintf(text + at, sizeof text - at,
                                   "%s{\"type\":\"array\",\"maxItems\":%d,\"items\":{\"$ref\":\"#/$defs/d%d\"}}",
                                   j > 0 ? "," : "", j + 1, i + 1);
        at += (size_t)snprintf(text + at, sizeof text - at, "]}");
    }
    snprintf(text + at, sizeof text - at, ",\"d8\":true},\"$ref\":\"#/$defs/d0\"}");
    sb_llm_constraint *constraint;
    sb_llm_constraint_state *state;
    sb_error error = {SB_OK, ""};
    MUST(sb_llm_constraint_create(tokenizer, text, strlen(text), &constraint, error));
    MUST(sb_llm_constraint_begin(constraint, &state, error));
    sb_status status = SB_OK;
    for (int i = 0; i < 8 && status == SB_OK; i++)
        status = sb_llm_constraint_accept(state, '[', &error);
    assert_int_equal(status, SB_ERROR_LIMIT);
    ASSERT_SAYS(error, "can go on in more than 256 ways");
    float logits[CONSTRAINT_VOCABULARY] = {0};
    int64_t allowed;
    /* The text is as it was: it can go on with something that is told apart. */
    MUST(sb_llm_constraint_mask(state, logits, CONSTRAINT_VOCABULARY, 0, NULL, &allowed, error));
    assert_true(logits['['] == 0 && logits['{'] == -INFINITY);
    MUST(sb_llm_constraint_accept(state, ']', error));
    sb_llm_constraint_end(state);
    sb_llm_constraint_release(constraint);
}

/* ---- memory ---- */

static sb_status attempt(void *context) {
    sb_llm_constraint *constraint;
    sb_llm_constraint_state *state = NULL, *copy = NULL;
    const char *schema = context;
    float logits[CONSTRAINT_VOCABULARY] = {0};
    int64_t allowed;
    sb_error error;
    sb_status status = sb_llm_constraint_create(tokenizer, schema, strlen(schema), &constraint, &error);
    if (status != SB_OK)
        return status;
    status = sb_llm_constraint_begin(constraint, &state, &error);
    for (const char *c = "{\"a\":\"x"; *c != '\0' && status == SB_OK; c++) {
        status = sb_llm_constraint_mask(state, logits, CONSTRAINT_VOCABULARY, 0, NULL, &allowed, &error);
        if (status == SB_OK)
            status = sb_llm_constraint_accept(state, *c, &error);
    }
    if (status == SB_OK)
        status = sb_llm_constraint_copy(state, &copy, &error);
    sb_llm_constraint_end(copy);
    sb_llm_constraint_end(state);
    sb_llm_constraint_release(constraint);
    return status;
}

static void test_memory(void **unused) {
    (void)unused;
    static char schema[] =
        "{\"type\":\"object\",\"properties\":{\"a\":{\"type\":\"string\",\"pattern\":\"^x?y\",\"maxLength\":3},\"b\":"
        "{\"oneOf\":[{\"const\":[1,{\"c\":null}]},{\"type\":\"number\",\"minimum\":0}]},\"d\":{\"$ref\":\"#\"},\"e\":"
        "{\"enum\":[\"p\",2.5],\"allOf\":[{\"type\":\"string\"}]},\"f\":{\"type\":\"array\",\"maxItems\":2}}}";
    check_failing_allocations(attempt, schema);
}

static sb_status attempt_trie(void *context) {
    (void)context;
    sb_token_trie *trie;
    sb_status status = sb_token_trie_create(tokenizer, &trie, NULL);
    if (status == SB_OK)
        sb_token_trie_free(trie);
    return status;
}

/* Each token's bytes, and each token once in the trie, at its own text. */
static void test_trie(void **unused) {
    (void)unused;
    sb_token_trie *trie;
    bool seen[CONSTRAINT_VOCABULARY] = {false};
    check_failing_allocations(attempt_trie, NULL);
    MUST(sb_token_trie_create(tokenizer, &trie, error));
    assert_int_equal(trie->vocabulary, CONSTRAINT_VOCABULARY);
    for (int64_t token = -1; token <= CONSTRAINT_VOCABULARY; token++) {
        size_t bytes = 0;
        const char *text = token >= 0 && token < CONSTRAINT_VOCABULARY ? constraint_token(token, &bytes) : "";
        sb_span have = sb_token_trie_bytes(trie, token);
        assert_int_equal(have.bytes, bytes);
        assert_true(bytes == 0 || memcmp(have.data, text, bytes) == 0);
        uint32_t node = 0;
        for (size_t i = 0; i < bytes; i++) {
            uint32_t child = node + 1;
            while (child < trie->end[node] && trie->byte[child] != (unsigned char)text[i])
                child = trie->end[child];
            assert_true(child < trie->end[node]);
            node = child;
        }
        for (uint32_t i = trie->first_token[node]; bytes > 0 && i < trie->first_token[node + 1]; i++)
            seen[token] = seen[token] || trie->tokens[i] == token;
        assert_true(bytes == 0 || seen[token]);
    }
    assert_int_equal(trie->token_count, CONSTRAINT_VOCABULARY - 2);
    sb_token_trie_free(trie);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_texts),    cmocka_unit_test(test_random_texts), cmocka_unit_test(test_checker),
        cmocka_unit_test(test_masks),    cmocka_unit_test(test_depth),        cmocka_unit_test(test_stops),
        cmocka_unit_test(test_refusals), cmocka_unit_test(test_hostile),      cmocka_unit_test(test_memory),
        cmocka_unit_test(test_trie),
    };
    return cmocka_run_group_tests(tests, begin, end);
}
