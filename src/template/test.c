/* Tests: what stands behind `is`, or selects items. */
#include "base/allocation.h"
#include "template/value.h"

/* ---- of which kind ---- */

#define TEST(name, condition)                                                                                          \
    static sb_status test_##name(sb_jinja *jinja, sb_jinja_value self, const sb_jinja_value *arguments,                \
                                 sb_jinja_value *result) {                                                             \
        *result = sb_jinja_boolean(condition);                                                                         \
        return SB_OK;                                                                                                  \
    }

static bool is_sequence(sb_jinja_value value) {
    return value.kind == SB_JINJA_UNDEFINED || value.kind == SB_JINJA_TEXT || value.kind == SB_JINJA_LIST ||
           value.kind == SB_JINJA_TUPLE || value.kind == SB_JINJA_DICT || value.kind == SB_JINJA_RANGE;
}

static bool is_callable(sb_jinja_value value) {
    return value.kind == SB_JINJA_UNDEFINED || value.kind == SB_JINJA_FUNCTION || value.kind == SB_JINJA_METHOD ||
           value.kind == SB_JINJA_MACRO || value.kind == SB_JINJA_LOOP;
}

TEST(defined, self.kind != SB_JINJA_UNDEFINED)
TEST(undefined, self.kind == SB_JINJA_UNDEFINED)
TEST(none, self.kind == SB_JINJA_NONE)
TEST(boolean, self.kind == SB_JINJA_BOOLEAN)
TEST(true, self.kind == SB_JINJA_BOOLEAN && self.boolean)
TEST(false, self.kind == SB_JINJA_BOOLEAN && !self.boolean)
TEST(integer, self.kind == SB_JINJA_INTEGER)
TEST(float, self.kind == SB_JINJA_REAL)
TEST(number, sb_jinja_is_number(self))
TEST(string, self.kind == SB_JINJA_TEXT)
TEST(mapping, self.kind == SB_JINJA_DICT)
TEST(sequence, is_sequence(self))
TEST(iterable,
     is_sequence(self) || self.kind == SB_JINJA_VIEW || self.kind == SB_JINJA_ITERATOR || self.kind == SB_JINJA_LOOP)
TEST(callable, is_callable(self))
TEST(escaped, self.kind == SB_JINJA_TEXT && self.detail != 0)

/* ---- of which value ---- */

static sb_status test_equal(sb_jinja *jinja, sb_jinja_value self, const sb_jinja_value *arguments,
                            sb_jinja_value *result) {
    bool equal;
    SB_TRY(sb_jinja_equal(jinja, self, arguments[0], &equal));
    *result = sb_jinja_boolean(equal);
    return SB_OK;
}

static sb_status test_different(sb_jinja *jinja, sb_jinja_value self, const sb_jinja_value *arguments,
                                sb_jinja_value *result) {
    SB_TRY(test_equal(jinja, self, arguments, result));
    *result = sb_jinja_boolean(!result->boolean);
    return SB_OK;
}

static sb_status test_in(sb_jinja *jinja, sb_jinja_value self, const sb_jinja_value *arguments,
                         sb_jinja_value *result) {
    bool contains;
    SB_TRY(sb_jinja_contains(jinja, arguments[0], self, &contains));
    *result = sb_jinja_boolean(contains);
    return SB_OK;
}

/* Whether the order of the two is one of those between `least` and `most`. */
static sb_status test_order(sb_jinja *jinja, sb_jinja_value self, sb_jinja_value other, const char *sign, int lowest,
                            int highest, sb_jinja_value *result) {
    int order;
    SB_TRY(sb_jinja_compare(jinja, self, other, sign, &order));
    *result = sb_jinja_boolean(order >= lowest && order <= highest);
    return SB_OK;
}

static sb_status test_less(sb_jinja *jinja, sb_jinja_value self, const sb_jinja_value *arguments,
                           sb_jinja_value *result) {
    return test_order(jinja, self, arguments[0], "<", -1, -1, result);
}

static sb_status test_at_most(sb_jinja *jinja, sb_jinja_value self, const sb_jinja_value *arguments,
                              sb_jinja_value *result) {
    return test_order(jinja, self, arguments[0], "<=", -1, 0, result);
}

static sb_status test_greater(sb_jinja *jinja, sb_jinja_value self, const sb_jinja_value *arguments,
                              sb_jinja_value *result) {
    return test_order(jinja, self, arguments[0], ">", 1, 1, result);
}

static sb_status test_at_least(sb_jinja *jinja, sb_jinja_value self, const sb_jinja_value *arguments,
                               sb_jinja_value *result) {
    return test_order(jinja, self, arguments[0], ">=", 0, 1, result);
}

static sb_status test_remainder(sb_jinja *jinja, sb_jinja_value self, sb_jinja_value divisor, int64_t remainder,
                                sb_jinja_value *result) {
    sb_jinja_value rest, wanted = sb_jinja_integer(remainder);
    SB_TRY(sb_jinja_arithmetic(jinja, '%', self, divisor, &rest));
    return test_equal(jinja, rest, &wanted, result);
}

static sb_status test_odd(sb_jinja *jinja, sb_jinja_value self, const sb_jinja_value *arguments,
                          sb_jinja_value *result) {
    return test_remainder(jinja, self, sb_jinja_integer(2), 1, result);
}

static sb_status test_even(sb_jinja *jinja, sb_jinja_value self, const sb_jinja_value *arguments,
                           sb_jinja_value *result) {
    return test_remainder(jinja, self, sb_jinja_integer(2), 0, result);
}

static sb_status test_divisible(sb_jinja *jinja, sb_jinja_value self, const sb_jinja_value *arguments,
                                sb_jinja_value *result) {
    return test_remainder(jinja, self, arguments[0], 0, result);
}

/* Python's `is`, for what it is used for: true, false, none and undefined ones, of which others are different objects. */
static sb_status test_same(sb_jinja *jinja, sb_jinja_value self, const sb_jinja_value *arguments,
                           sb_jinja_value *result) {
    sb_jinja_value other = arguments[0];
    bool single = self.kind == SB_JINJA_NONE || self.kind == SB_JINJA_BOOLEAN;
    if (!single && other.kind != SB_JINJA_NONE && other.kind != SB_JINJA_BOOLEAN)
        return sb_jinja_fail(jinja, SB_ERROR_UNSUPPORTED, "'sameas' is understood of true, false and none alone");
    *result =
        sb_jinja_boolean(self.kind == other.kind && (self.kind == SB_JINJA_NONE || self.boolean == other.boolean));
    return SB_OK;
}

static const sb_jinja_row tests[] = {
    {"!=", "other", 1, test_different, NULL},   {"<", "other", 1, test_less, NULL},
    {"<=", "other", 1, test_at_most, NULL},     {"==", "other", 1, test_equal, NULL},
    {">", "other", 1, test_greater, NULL},      {">=", "other", 1, test_at_least, NULL},
    {"boolean", "", 0, test_boolean, NULL},     {"callable", "", 0, test_callable, NULL},
    {"defined", "", 0, test_defined, NULL},     {"divisibleby", "num", 1, test_divisible, NULL},
    {"eq", "other", 1, test_equal, NULL},       {"equalto", "other", 1, test_equal, NULL},
    {"escaped", "", 0, test_escaped, NULL},     {"even", "", 0, test_even, NULL},
    {"false", "", 0, test_false, NULL},         {"float", "", 0, test_float, NULL},
    {"ge", "other", 1, test_at_least, NULL},    {"greaterthan", "other", 1, test_greater, NULL},
    {"gt", "other", 1, test_greater, NULL},     {"in", "seq", 1, test_in, NULL},
    {"integer", "", 0, test_integer, NULL},     {"iterable", "", 0, test_iterable, NULL},
    {"le", "other", 1, test_at_most, NULL},     {"lessthan", "other", 1, test_less, NULL},
    {"lt", "other", 1, test_less, NULL},        {"mapping", "", 0, test_mapping, NULL},
    {"ne", "other", 1, test_different, NULL},   {"none", "", 0, test_none, NULL},
    {"number", "", 0, test_number, NULL},       {"odd", "", 0, test_odd, NULL},
    {"sameas", "other", 1, test_same, NULL},    {"sequence", "", 0, test_sequence, NULL},
    {"string", "", 0, test_string, NULL},       {"true", "", 0, test_true, NULL},
    {"undefined", "", 0, test_undefined, NULL},
};

const sb_jinja_row *sb_jinja_find_test(const sb_jinja_text *name) {
    return sb_jinja_find_row(tests, sizeof tests / sizeof *tests, name);
}
