/* StringConcat, StringSplit and RegexFullMatch: values by hand, what is refused, and allocations that fail. Also text in operators
 * that fill up with zeros. */
#include "ops/definition_cases.h"
#include "support/failing.h"

/* ---- tensors of text ---- */

static sb_tensor *words(int rank, const int64_t *dims, const char *const *texts) {
    sb_string entries[32];
    sb_tensor *tensor;
    int64_t count = 1;
    for (int d = 0; d < rank; d++)
        count *= dims[d];
    for (int64_t i = 0; i < count; i++)
        entries[i] = (sb_string){texts[i], strlen(texts[i])};
    assert_int_equal(sb_tensor_from_strings(rank, dims, entries, &tensor, NULL), SB_OK);
    return tensor;
}

static sb_tensor *word(const char *text, size_t bytes) {
    const sb_string entry = {text, bytes};
    sb_tensor *tensor;
    assert_int_equal(sb_tensor_from_strings(1, (int64_t[]){1}, &entry, &tensor, NULL), SB_OK);
    return tensor;
}

static node_runner text_node(const char *op, int outputs, sb_tensor *first, sb_tensor *second) {
    return (node_runner){.op = op,
                         .version = 20,
                         .input_count = second != NULL ? 2 : 1,
                         .output_count = outputs,
                         .inputs = {first, second}};
}

static void check_words(const sb_tensor *tensor, int rank, const int64_t *dims, const char *const *texts) {
    int64_t count = 1;
    assert_int_equal(tensor->dtype, SB_STRING);
    assert_int_equal(tensor->rank, rank);
    for (int d = 0; d < rank; d++) {
        assert_int_equal(tensor->dims[d], dims[d]);
        count *= dims[d];
    }
    for (int64_t i = 0; i < count; i++) {
        sb_string text = ((const sb_string *)(const void *)tensor->data)[i];
        if (text.bytes != strlen(texts[i]) || memcmp(text.data, texts[i], text.bytes) != 0)
            fail_msg("text %d is \"%.*s\", not \"%s\"", (int)i, (int)text.bytes, text.data, texts[i]);
    }
}

/* ---- StringConcat ---- */

static void concatenates(void **unused) {
    node_runner runner =
        text_node("StringConcat", 1, words(2, (int64_t[]){2, 1}, (const char *const[]){"a", "\xc3\xa9"}),
                  words(1, (int64_t[]){3}, (const char *const[]){"x", "", "yz"}));
    sb_value outputs[NODE_OUTPUTS] = {{0}};
    node_must_run(&runner, SB_ISA_BEST, outputs);
    node_clear(&runner); /* the output must not need the inputs */
    check_words(outputs[0].tensor, 2, (int64_t[]){2, 3},
                (const char *const[]){"ax", "a", "ayz", "\xc3\xa9x", "\xc3\xa9", "\xc3\xa9yz"});
    release_outputs(outputs);
    runner = text_node("StringConcat", 1, words(2, (int64_t[]){0, 1}, NULL),
                       words(1, (int64_t[]){1}, (const char *const[]){"x"}));
    node_must_run(&runner, SB_ISA_BEST, outputs);
    check_words(outputs[0].tensor, 2, (int64_t[]){0, 1}, NULL);
    release_outputs(outputs);
    node_clear(&runner);
}

/* ---- StringSplit ---- */

typedef struct split_case {
    const char *text, *delimiter; /* NULL: no attribute */
    int64_t most;                 /* INT64_MIN: no attribute */
    int count;
    const char *parts[6];
} split_case;

#define ALL INT64_MIN

static const split_case splits[] = {
    {"a,b,,c", ",", ALL, 4, {"a", "b", "", "c"}},
    {",", ",", ALL, 2, {"", ""}},
    {"", ",", ALL, 1, {""}},
    {"abc", ",", ALL, 1, {"abc"}},
    {"aXXbXXXc", "XX", ALL, 3, {"a", "b", "Xc"}},
    {"a,b,c", ",", 1, 2, {"a", "b,c"}},
    {"a,b,c", ",", 0, 1, {"a,b,c"}},
    {"a,b,c", ",", 2, 3, {"a", "b", "c"}},
    {"a,b,c", ",", -1, 3, {"a", "b", "c"}},
    {"\xc3\xa9\xe2\x82\xac\xc3\xa9", "\xe2\x82\xac", ALL, 2, {"\xc3\xa9", "\xc3\xa9"}},
    {"", NULL, ALL, 0, {NULL}},
    {" \t\n ", NULL, ALL, 0, {NULL}},
    {"  a  b ", NULL, ALL, 2, {"a", "b"}},
    {"  a  b  c ", "", 1, 2, {"a", "b  c "}},
    {" a b ", NULL, 0, 1, {"a b "}},
    {"a\xe3\x80\x80 b\xc2\xa0"
     "c\x1f"
     "d",
     NULL,
     ALL,
     4,
     {"a", "b", "c", "d"}},
    {"a\x85 b", NULL, ALL, 2, {"a\x85", "b"}}, /* a byte that is no character is no space */
};

static void splits_texts(void **unused) {
    for (size_t i = 0; i < sizeof splits / sizeof splits[0]; i++) {
        node_runner runner = text_node("StringSplit", 2, words(0, NULL, &splits[i].text), NULL);
        sb_value outputs[NODE_OUTPUTS] = {{0}};
        if (splits[i].delimiter != NULL)
            add_text(&runner, "delimiter", splits[i].delimiter);
        if (splits[i].most != ALL)
            assert_int_equal(sb_attributes_add_ints(&runner.attributes, "maxsplit", true, 1, &splits[i].most, NULL),
                             SB_OK);
        node_must_run(&runner, SB_ISA_BEST, outputs);
        node_clear(&runner);
        int64_t count = *(const int64_t *)(const void *)outputs[1].tensor->data;
        if (count != splits[i].count)
            fail_msg("\"%s\" has %d parts, not %d", splits[i].text, (int)count, splits[i].count);
        check_words(outputs[0].tensor, 1, &count, splits[i].parts);
        release_outputs(outputs);
    }
}

static void fills_up(void **unused) {
    sb_value outputs[NODE_OUTPUTS] = {{0}};
    node_runner runner =
        text_node("StringSplit", 2, words(2, (int64_t[]){1, 3}, (const char *const[]){"a", "b c d", ""}), NULL);
    node_must_run(&runner, SB_ISA_BEST, outputs);
    check_words(outputs[0].tensor, 3, (int64_t[]){1, 3, 3},
                (const char *const[]){"a", "", "", "b", "c", "d", "", "", ""});
    assert_memory_equal(outputs[1].tensor->data, ((const int64_t[]){1, 3, 0}), 3 * sizeof(int64_t));
    release_outputs(outputs);
    node_clear(&runner);
    runner = text_node("StringSplit", 2, words(2, (int64_t[]){2, 0}, NULL), NULL);
    node_must_run(&runner, SB_ISA_BEST, outputs);
    check_words(outputs[0].tensor, 3, (int64_t[]){2, 0, 0}, NULL);
    release_outputs(outputs);
    node_clear(&runner);
    int64_t ones[SB_MAX_RANK];
    for (int d = 0; d < SB_MAX_RANK; d++)
        ones[d] = 1;
    expect_refusal(text_node("StringSplit", 1, words(SB_MAX_RANK, ones, (const char *const[]){"a"}), NULL),
                   SB_ERROR_SHAPE, "the output would have one more");
}

/* ---- RegexFullMatch ---- */

typedef struct match_case {
    const char *pattern, *text;
    bool matches;
} match_case;

/* As RE2 answers. */
static const match_case matches[] = {
    {"", "", true},
    {"", "a", false},
    {"abc", "abc", true},
    {"abc", "abcd", false},
    {"abc", "xabc", false},
    {"a|ab", "ab", true}, /* the whole text decides, not the first way */
    {"a*?", "aaa", true},
    {"(?U)a+", "aaa", true},
    {"x{2,3}", "xx", true},
    {"x{2,3}", "xxxx", false},
    {"x{0}", "", true},
    {"x{,2}", "x{,2}", true}, /* no count */
    {"x{01}", "x{01}", true},
    {"{", "{", true},
    {".", "\n", false},
    {"(?s).", "\n", true},
    {".", "\xc3\xa9", true}, /* a character, not a byte */
    {"..", "\xc3\xa9", false},
    {"a$", "a\n", false},
    {"(?m)a$\n", "a\n", true},
    {"(?m)\n^", "\n", true},
    {"a\n^b", "a\nb", false},
    {"(?m)a\n^b", "a\nb", true},
    {"\\Aa\\z", "a", true},
    {"^*a", "a", true},
    {"\\bab\\b", "ab", true},
    {"a\\Bb", "ab", true},
    {"\\b\xc3\xa9", "\xc3\xa9", false}, /* words are of ASCII */
    {"\\s", "\v", false},
    {"[[:space:]]", "\v", true},
    {"\\v", "\v", true},
    {"\\v", "\n", false},
    {"\\d", "\xd9\xa1", false}, /* an Arabic digit */
    {"\\p{Nd}", "\xd9\xa1", true},
    {"\\pN", "7", true},
    {"\\PN", "7", false},
    {"\\p{^N}", "x", true},
    {"\\p{Greek}", "\xce\xb1", true},
    {"[^\\p{Greek}]", "\xce\xb1", false},
    {"\\pC", "\x01", true},
    {"\\pC", "\xcd\xb8", false}, /* U+0378, which is not assigned */
    {"\\PC", "\xcd\xb8", true},
    {"\\w", "\xc3\xa9", false},
    {"\\W", "\xc3\xa9", true},
    {"(?i)\\w", "\xe2\x84\xaa", true}, /* the sign of kelvin is a k */
    {"(?i)\\W", "\xe2\x84\xaa", false},
    {"(?i)[\\W]", "k", false},
    {"(?i)[^k]", "K", false},
    {"(?i)stra\xc3\x9f"
     "e",
     "STRA\xc3\x9f"
     "E",
     true},
    {"(?i)\xce\xb1", "\xce\x91", true},
    {"(?i:a)b", "Ab", true},
    {"(?i:a)b", "AB", false},
    {"((?i)a)b", "Ab", true},
    {"((?i)a)b", "AB", false},
    {"a(?i)b|c", "C", true}, /* to the end of the group */
    {"(?i)a(?-i)b", "Ab", true},
    {"(?i)a(?-i)b", "AB", false},
    {"[a-c]", "b", true},
    {"[]a]", "]", true},
    {"[^]a]", "]", false},
    {"[a-]", "-", true},
    {"[--/]", ".", true},
    {"[[:^alpha:]]", "1", true},
    {"[[:word:]-]+", "a_-1", true},
    {"[\\d\\-x]+", "1-x", true},
    {"[^\\x00-\\x{10FFFF}]", "a", false},
    {"[[]", "[", true},
    {"[[:a]", ":", true},
    {"\\Qa*\\E+", "a**", true},
    {"\\Q\\", "\\", true},
    {"\\x41\\x{1F600}\\101\\0",
     "A\xf0\x9f\x98\x80"
     "A",
     false},
    {"\\x41\\x{1F600}\\101",
     "A\xf0\x9f\x98\x80"
     "A",
     true},
    {"\\a\\f\\t\\n\\r", "\a\f\t\n\r", true},
    {"\\.\\-\\/\\#", ".-/#", true},
    {"(?P<name>a)(?<other>b)(c)", "abc", true},
    {"(|a)*b", "aab", true},
    {"()*", "", true},
    {"(a?){40}a{40}", "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", true},
    {"(a*)*b", "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaac", false},
    {"(x+x+)+y", "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx", false},
    {".*", "\xff", false}, /* no UTF-8 */
    {"[^a]*", "b\xc3", false},
};

static node_runner matcher(const char *pattern, sb_tensor *text) {
    node_runner runner = text_node("RegexFullMatch", 1, text, NULL);
    add_text(&runner, "pattern", pattern);
    return runner;
}

static void matches_whole_texts(void **unused) {
    for (size_t i = 0; i < sizeof matches / sizeof matches[0]; i++) {
        node_runner runner = matcher(matches[i].pattern, word(matches[i].text, strlen(matches[i].text)));
        sb_value outputs[NODE_OUTPUTS] = {{0}};
        node_must_run(&runner, SB_ISA_BEST, outputs);
        node_clear(&runner);
        assert_int_equal(outputs[0].tensor->dtype, SB_BOOL);
        if (*outputs[0].tensor->data != (char)matches[i].matches)
            fail_msg("%s %s \"%s\"", matches[i].pattern, matches[i].matches ? "does not match" : "matches",
                     matches[i].text);
        release_outputs(outputs);
    }
}

static void matches_a_nul(void **unused) {
    node_runner runner = matcher("a.\\x00\\0", word("ab\0\0", 4));
    sb_value outputs[NODE_OUTPUTS] = {{0}};
    node_must_run(&runner, SB_ISA_BEST, outputs);
    assert_int_equal(*outputs[0].tensor->data, 1);
    release_outputs(outputs);
    node_clear(&runner);
}

/* What RE2 refuses, and the little that Samebit refuses besides. */
static void refuses_patterns(void **unused) {
    static const char *const invalid[] = {
        "(",      ")",      "a)",          "(?i",      "(?=a)",   "(?!a)",   "(?<=a)",  "(?<!a)",  "(?>a)",
        "(?#a)",  "(?P=n)", "(?P<>a)",     "(?P<n a)", "(?",      "(?i-)",   "(?--i)",  "(?z)",    "*",
        "+a",     "a|*",    "(*a)",        "a**",      "a+*",     "a*+",     "a??\?",   "a{2}{3}", "a{1001}",
        "a{2,1}", "[",      "[a",          "[]",       "[^]",     "[b-a]",   "[[:x:]]", "[a-\\d]", "\\",
        "\\1",    "(a)\\1", "\\8",         "\\Z",      "\\h",     "\\k",     "[\\b]",   "\\x",     "\\x1",
        "\\x{",   "\\x{}",  "\\x{110000}", "\\p",      "\\p{",    "\\p{}",   "\\p{Xx}", "\\pX",    "\\E",
        "(?R)",   "(?1)",   "\xff",        "(?|a)",    "\\p{L&}", "\\p{Cn}",
    };
    for (size_t i = 0; i < sizeof invalid / sizeof invalid[0]; i++) {
        node_runner runner = matcher(invalid[i], word("a", 1));
        sb_error error;
        sb_value outputs[NODE_OUTPUTS] = {{0}};
        sb_status status = node_run(&runner, SB_ISA_BEST, outputs, &error);
        if (status != SB_ERROR_INVALID_MODEL || strstr(error.message, "node node (RegexFullMatch)") == NULL)
            fail_msg("the pattern %s is not refused", invalid[i]);
        node_clear(&runner);
    }
    expect_refusal(matcher("\\C", word("a", 1)), SB_ERROR_UNSUPPORTED, "not single bytes");
    expect_refusal(matcher("(?i)\\pL", word("a", 1)), SB_ERROR_UNSUPPORTED, "without regard to case");
    expect_refusal(matcher("\\p{Klingon}", word("a", 1)), SB_ERROR_UNSUPPORTED, "the pattern cannot be compiled");
    expect_refusal(matcher("((a{1000}){1000}){1000}", word("a", 1)), SB_ERROR_UNSUPPORTED, "cannot be compiled");
    expect_refusal(text_node("RegexFullMatch", 1, word("a", 1), NULL), SB_ERROR_INVALID_MODEL, "pattern is missing");
}

/* A pattern of many ways, on a text of many characters: the room for ways grows, and the work does not explode. */
static void follows_many_ways(void **unused) {
    char *text = malloc(20000);
    assert_non_null(text);
    memset(text, 'a', 20000);
    node_runner runner = matcher("(.*a.{300}|.*b.{300}|(a|aa|aaa)*)*c?", word(text, 20000));
    sb_value outputs[NODE_OUTPUTS] = {{0}};
    node_must_run(&runner, SB_ISA_BEST, outputs);
    assert_int_equal(*outputs[0].tensor->data, 1);
    release_outputs(outputs);
    node_clear(&runner);
    free(text);
}

/* ---- zeros of text ---- */

static void zeros_are_empty_text(void **unused) {
    sb_value outputs[NODE_OUTPUTS] = {{0}};
    node_runner runner =
        text_node("Trilu", 1, words(2, (int64_t[]){2, 2}, (const char *const[]){"a", "b", "c", "d"}), NULL);
    node_must_run(&runner, SB_ISA_BEST, outputs);
    check_words(outputs[0].tensor, 2, (int64_t[]){2, 2}, (const char *const[]){"a", "b", "", "d"});
    release_outputs(outputs);
    node_clear(&runner);
    sb_tensor *shape;
    assert_int_equal(sb_tensor_from_data(SB_S64, 1, (int64_t[]){1}, (const int64_t[]){4}, &shape, NULL), SB_OK);
    runner = text_node("CenterCropPad", 1, words(1, (int64_t[]){2}, (const char *const[]){"a", "b"}), shape);
    runner.constants = 2;
    node_must_run(&runner, SB_ISA_BEST, outputs);
    check_words(outputs[0].tensor, 1, (int64_t[]){4}, (const char *const[]){"", "a", "b", ""});
    release_outputs(outputs);
    node_clear(&runner);
}

/* ---- memory ---- */

static sb_status attempt(void *context) {
    const char *op = context;
    static const char *const texts[] = {"a b", "aab"};
    sb_value outputs[NODE_OUTPUTS] = {{0}};
    sb_error error;
    sb_string entries[2] = {{texts[0], 3}, {texts[1], 3}};
    node_runner runner = {.op = op, .version = 20, .output_count = strcmp(op, "StringSplit") == 0 ? 2 : 1};
    runner.input_count = strcmp(op, "StringConcat") == 0 ? 2 : 1;
    sb_status status = SB_OK;
    for (int i = 0; i < runner.input_count && status == SB_OK; i++)
        status = sb_tensor_from_strings(1, (int64_t[]){2}, entries, &runner.inputs[i], &error);
    if (status == SB_OK && strcmp(op, "RegexFullMatch") == 0) {
        static const char text[] = "(?i)[a-z]*(b|[[:alpha:]]){2,3}$";
        const sb_string pattern = {text, sizeof text - 1};
        status = sb_attributes_add_strings(&runner.attributes, "pattern", true, 1, &pattern, &error);
    }
    if (status == SB_OK)
        status = node_run(&runner, SB_ISA_BEST, outputs, &error);
    release_outputs(outputs);
    node_clear(&runner);
    return status;
}

static void no_failure_leaks(void **unused) {
    static const char *const ops[] = {"StringConcat", "StringSplit", "RegexFullMatch"};
    for (int i = 0; i < 3; i++)
        check_failing_allocations(attempt, (void *)(uintptr_t)ops[i]);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(concatenates),      cmocka_unit_test(splits_texts),
        cmocka_unit_test(fills_up),          cmocka_unit_test(matches_whole_texts),
        cmocka_unit_test(matches_a_nul),     cmocka_unit_test(refuses_patterns),
        cmocka_unit_test(follows_many_ways), cmocka_unit_test(zeros_are_empty_text),
        cmocka_unit_test(no_failure_leaks),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
