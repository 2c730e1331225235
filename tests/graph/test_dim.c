/* Dimension expressions: the normal form, what it must never change, and how it fails. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "graph/dim.h"
#include "support/failing.h"
#include "support/random.h"

static sb_scope *scope;

static int open_scope(void **state) {
    return sb_scope_create(&scope, NULL) == SB_OK ? 0 : -1;
}

static int close_scope(void **state) {
    sb_scope_destroy(scope);
    return sb_allocation_count().live_blocks == 0 ? 0 : -1;
}

/* Short names, so that formulas read as formulas. */
static sb_dim number(int64_t value) {
    return sb_dim_constant(scope, value);
}
static sb_dim symbol(const char *name) {
    return sb_dim_symbol(scope, name);
}
static sb_dim add(sb_dim left, sb_dim right) {
    return sb_dim_add(scope, left, right);
}
static sb_dim subtract(sb_dim left, sb_dim right) {
    return sb_dim_subtract(scope, left, right);
}
static sb_dim multiply(sb_dim left, sb_dim right) {
    return sb_dim_multiply(scope, left, right);
}
static sb_dim floor_divide(sb_dim left, sb_dim right) {
    return sb_dim_floor_divide(scope, left, right);
}
static sb_dim ceiling_divide(sb_dim left, sb_dim right) {
    return sb_dim_ceiling_divide(scope, left, right);
}
static sb_dim minimum(sb_dim left, sb_dim right) {
    return sb_dim_minimum(scope, left, right);
}
static sb_dim maximum(sb_dim left, sb_dim right) {
    return sb_dim_maximum(scope, left, right);
}

static void expect(sb_dim dim, const char *text) {
    char buffer[512];
    sb_error error = {0};
    if (sb_scope_check(scope, &error) != SB_OK)
        fail_msg("%s instead of %s", error.message, text);
    assert_string_equal(sb_dim_text(dim, buffer, sizeof buffer), text);
}

static void expect_failure(sb_dim dim, sb_status status, const char *words) {
    sb_error error = {0};
    assert_null(dim);
    assert_int_equal(sb_scope_check(scope, &error), status);
    if (strstr(error.message, words) == NULL)
        fail_msg("\"%s\" does not say \"%s\"", error.message, words);
    assert_int_equal(sb_scope_check(scope, NULL), SB_OK);
}

static void test_polynomials(void **state) {
    sb_dim n = symbol("n"), m = symbol("m");
    expect(number(0), "0");
    expect(number(-7), "-7");
    expect(number(INT64_MIN), "-9223372036854775808");
    expect(n, "n");
    expect(add(n, number(1)), "n+1");
    expect(subtract(number(1), n), "-n+1");
    expect(subtract(n, n), "0");
    expect(multiply(n, number(0)), "0");
    expect(add(multiply(number(2), m), number(1)), "2*m+1");
    expect(multiply(add(n, m), add(n, m)), "m*m+2*m*n+n*n");
    expect(multiply(add(n, number(1)), subtract(n, number(1))), "n*n-1");
    assert_ptr_equal(multiply(add(n, m), add(n, m)),
                     add(multiply(n, n), add(multiply(m, multiply(n, number(2))), multiply(m, m))));
    assert_ptr_equal(symbol("n"), n);
    assert_ptr_not_equal(n, m);
}

static void test_divisions(void **state) {
    sb_dim n = symbol("n"), m = symbol("m"), k = symbol("k"), r = symbol("r");
    expect(floor_divide(number(7), number(2)), "3");
    expect(floor_divide(number(-7), number(2)), "-4");
    expect(ceiling_divide(number(-7), number(2)), "-3");
    expect(floor_divide(number(7), number(-2)), "-4");
    expect(ceiling_divide(number(7), number(-2)), "-3");
    expect(floor_divide(number(INT64_MIN), number(3)), "-3074457345618258603");
    expect(floor_divide(multiply(number(2), n), number(2)), "n");
    expect(floor_divide(subtract(add(n, number(3)), number(3)), number(1)), "n");
    expect(floor_divide(multiply(n, number(6)), multiply(n, number(2))), "3");
    expect(floor_divide(n, n), "1");
    expect(floor_divide(add(multiply(k, multiply(m, n)), r), m), "k*n+floor(r/m)");
    expect(floor_divide(floor_divide(n, number(2)), number(3)), "floor(n/6)");
    expect(floor_divide(multiply(number(4), n), number(10)), "floor(2*n/5)");
    expect(floor_divide(add(multiply(number(4), n), number(15)), number(10)), "floor((2*n+2)/5)+1");
    expect(floor_divide(n, multiply(number(2), m)), "floor(n/(2*m))");
    expect(floor_divide(n, add(m, number(1))), "floor(n/(m+1))");
    expect(ceiling_divide(n, number(2)), "floor((n+1)/2)");
    expect(ceiling_divide(multiply(n, number(4)), number(2)), "2*n");
    expect(ceiling_divide(n, m), "floor((n-1)/m)+1");
    /* A convolution of kernel 3, padding 1, stride 2, and what the same network says with kernel 1. */
    assert_ptr_equal(add(floor_divide(subtract(add(n, number(2)), number(3)), number(2)), number(1)),
                     add(floor_divide(subtract(n, number(1)), number(2)), number(1)));
    assert_ptr_equal(ceiling_divide(n, number(2)), add(floor_divide(subtract(n, number(1)), number(2)), number(1)));
    /* Two of them behind each other. */
    sb_dim half = ceiling_divide(n, number(2));
    expect(ceiling_divide(half, number(2)), "floor((n+3)/4)");
    assert_ptr_equal(ceiling_divide(half, number(2)), ceiling_divide(n, number(4)));
    /* Heads of an attention: the whole over the heads, times the heads. */
    sb_dim hidden = multiply(number(768), n);
    expect(multiply(floor_divide(hidden, number(12)), number(12)), "768*n");
    /* Polynomials. */
    expect(floor_divide(add(multiply(n, n), multiply(number(3), n)), add(n, number(3))), "n");
    expect(floor_divide(subtract(multiply(n, n), multiply(m, m)), subtract(n, m)), "m+n");
    expect(floor_divide(add(multiply(n, m), add(n, number(5))), add(m, number(1))), "n+floor(5/(m+1))");
    expect(floor_divide(n, add(n, number(1))), "0");
    expect(floor_divide(add(n, number(1)), add(n, number(2))), "0");
    expect(floor_divide(multiply(n, m), multiply(n, k)), "floor(m/k)");
}

static void test_extremes(void **state) {
    sb_dim n = symbol("n"), m = symbol("m"), k = symbol("k");
    expect(maximum(n, number(0)), "n");
    expect(minimum(n, number(0)), "0");
    expect(minimum(n, add(n, number(1))), "n");
    expect(maximum(number(1), n), "max(n,1)");
    expect(minimum(n, n), "n");
    expect(maximum(n, maximum(m, maximum(k, n))), "max(k,m,n)");
    assert_ptr_equal(maximum(n, maximum(m, k)), maximum(maximum(k, n), m));
    expect(minimum(number(3), minimum(n, number(2))), "min(n,2)");
    expect(maximum(number(3), number(-4)), "3");
    expect(maximum(maximum(n, m), add(n, number(2))), "max(m,n+2)");
    expect(maximum(floor_divide(n, number(2)), n), "n");
    expect(minimum(floor_divide(n, number(2)), n), "floor(n/2)");
    expect(maximum(n, minimum(n, m)), "n");
    expect(minimum(n, maximum(n, m)), "n");
    /* Slices: to the end, the last element, all but the last, from the third on. */
    expect(minimum(n, number(INT64_MAX)), "n");
    expect(maximum(n, number(INT64_MIN)), "n");
    expect(subtract(n, maximum(subtract(n, number(1)), number(0))), "min(n,1)");
    expect(maximum(subtract(n, number(1)), number(0)), "max(n-1,0)");
    expect(maximum(subtract(n, minimum(n, number(3))), number(0)), "max(n-3,0)");
    sb_dim halves = ceiling_divide(subtract(n, minimum(n, number(3))), number(2));
    assert_ptr_equal(maximum(halves, number(0)), halves);
    expect(add(minimum(n, m), number(2)), "min(m,n)+2");
    expect(add(maximum(n, m), multiply(minimum(n, number(4)), number(-2))), "-2*min(n,4)+max(m,n)");
}

static void test_text(void **state) {
    expect(symbol("batch.size#2"), "batch.size#2");
    expect(multiply(number(2), symbol("past + 1")), "2*'past + 1'");
    expect(symbol("2n"), "'2n'");
    expect(symbol("it's\n\\"), "'it\\'s\\x0a\\\\'");
    char buffer[6];
    sb_dim long_one = add(symbol("sequence"), symbol("batch"));
    assert_string_equal(sb_dim_text(long_one, buffer, sizeof buffer), "batch");
    assert_string_equal(sb_dim_text(long_one, buffer, 1), "");
    buffer[0] = 'x';
    assert_ptr_equal(sb_dim_text(long_one, buffer, 0), buffer);
    assert_int_equal(buffer[0], 'x');
    assert_string_equal(sb_dim_text(NULL, buffer, sizeof buffer), "?");
}

static void append_name(void *context, const char *name) {
    strcat(context, name);
    strcat(context, " ");
}

static void test_questions(void **state) {
    sb_dim n = symbol("n"), m = symbol("m");
    sb_dim formula = add(floor_divide(add(n, number(1)), number(3)), maximum(m, number(2)));
    int64_t value = 77;
    assert_true(sb_dim_is_constant(number(5), &value) && value == 5);
    assert_true(sb_dim_is_constant(subtract(n, n), &value) && value == 0);
    assert_true(sb_dim_is_constant(number(5), NULL));
    assert_false(sb_dim_is_constant(n, &value));
    assert_false(sb_dim_is_constant(NULL, &value));
    assert_string_equal(sb_dim_symbol_name(n), "n");
    assert_null(sb_dim_symbol_name(formula));
    assert_null(sb_dim_symbol_name(number(1)));
    assert_null(sb_dim_symbol_name(NULL));
    assert_true(sb_dim_at_least(n, 0) && !sb_dim_at_least(n, 1));
    assert_true(sb_dim_at_least(formula, 2) && !sb_dim_at_least(formula, 3));
    assert_true(sb_dim_at_least(multiply(add(n, number(2)), add(m, number(3))), 6));
    assert_false(sb_dim_at_least(subtract(n, m), -1000));
    assert_false(sb_dim_at_least(NULL, 0));
    assert_true(sb_dim_mentions(formula, "m") && !sb_dim_mentions(formula, "k"));
    char names[32] = "";
    sb_dim_visit_symbols(formula, append_name, names);
    assert_true(strcmp(names, "n m ") == 0 || strcmp(names, "m n ") == 0);

    sb_dim first = sb_dim_fresh(scope, "kept"), second = sb_dim_fresh(scope, "kept");
    assert_ptr_not_equal(first, second);
    assert_int_equal(strncmp(sb_dim_symbol_name(first), "kept", 4), 0);
    assert_non_null(sb_dim_fresh(scope, NULL));
    /* A model may use the very name that would come next. */
    sb_dim taken = symbol("kept#4");
    assert_ptr_not_equal(sb_dim_fresh(scope, "kept"), taken);
}

static void test_other_scope(void **state) {
    sb_scope *other;
    assert_int_equal(sb_scope_create(&other, NULL), SB_OK);
    /* Made in another order, with other things in between: addresses differ, formulas and texts do not. */
    sb_dim z = sb_dim_symbol(other, "z"), m = sb_dim_symbol(other, "m"), n = sb_dim_symbol(other, "n");
    sb_dim theirs = sb_dim_maximum(other, sb_dim_multiply(other, sb_dim_add(other, m, z), n),
                                   sb_dim_floor_divide(other, sb_dim_add(other, z, n), sb_dim_constant(other, 3)));
    n = symbol("n"), m = symbol("m"), z = symbol("z");
    sb_dim ours = maximum(floor_divide(add(n, z), number(3)), multiply(n, add(z, m)));
    char left[256], right[256];
    assert_string_equal(sb_dim_text(ours, left, sizeof left), sb_dim_text(theirs, right, sizeof right));
    assert_true(sb_dim_equal(ours, theirs));
    assert_false(sb_dim_equal(ours, n));
    assert_false(sb_dim_equal(theirs, n));
    assert_false(sb_dim_equal(ours, NULL));
    assert_ptr_equal(sb_dim_copy(scope, theirs), ours);
    assert_null(sb_dim_copy(scope, NULL));
    /* Operands of another scope are copied. */
    assert_ptr_equal(add(theirs, number(0)), ours);
    assert_int_equal(sb_scope_check(scope, NULL), SB_OK);
    sb_scope_destroy(other);
}

static void test_values(void **state) {
    static const char *const names[] = {"n", "m"};
    int64_t values[] = {7, 0}, value;
    sb_binding binding = {2, names, values};
    sb_dim n = symbol("n"), m = symbol("m");
    assert_true(sb_dim_evaluate(floor_divide(n, number(2)), &binding, &value) && value == 3);
    assert_false(sb_dim_evaluate(symbol("k"), &binding, &value));
    assert_false(sb_dim_evaluate(floor_divide(n, m), &binding, &value));
    assert_false(sb_dim_evaluate(NULL, &binding, &value));
    values[1] = -1;
    assert_false(sb_dim_evaluate(m, &binding, &value));
    expect_failure(sb_dim_substitute(scope, m, &binding), SB_ERROR_SHAPE, "m cannot be -1");
    values[1] = INT64_MAX;
    assert_false(sb_dim_evaluate(add(m, n), &binding, &value));
    assert_false(sb_dim_evaluate(multiply(m, n), &binding, &value));
    expect_failure(sb_dim_substitute(scope, multiply(m, n), &binding), SB_ERROR_SHAPE, "overflows");
    binding.count = 1;
    expect(sb_dim_substitute(scope, add(multiply(m, n), number(1)), &binding), "7*m+1");
    assert_null(sb_dim_substitute(scope, NULL, &binding));
}

static void test_failures(void **state) {
    sb_dim n = symbol("n"), huge = multiply(number(INT64_MAX), n);
    expect_failure(add(huge, n), SB_ERROR_SHAPE, "overflows");
    expect_failure(subtract(number(INT64_MIN), number(1)), SB_ERROR_SHAPE, "overflows");
    expect_failure(subtract(number(0), number(INT64_MIN)), SB_ERROR_SHAPE, "overflows");
    expect_failure(multiply(huge, number(2)), SB_ERROR_SHAPE, "overflows");
    expect_failure(floor_divide(number(INT64_MIN), number(-1)), SB_ERROR_SHAPE, "overflows");
    expect_failure(floor_divide(n, number(0)), SB_ERROR_SHAPE, "by 0");
    expect_failure(ceiling_divide(n, subtract(n, n)), SB_ERROR_SHAPE, "by 0");
    expect_failure(symbol(""), SB_ERROR_INVALID_ARGUMENT, "name");
    expect_failure(symbol(NULL), SB_ERROR_INVALID_ARGUMENT, "name");
    /* NULL passes through everything, and the first reason is the one that is told. */
    sb_dim failed = floor_divide(n, number(0));
    assert_null(add(failed, n));
    assert_null(subtract(n, failed));
    assert_null(multiply(failed, n));
    assert_null(floor_divide(n, failed));
    assert_null(ceiling_divide(failed, n));
    assert_null(ceiling_divide(n, failed));
    assert_null(minimum(failed, n));
    assert_null(maximum(n, failed));
    assert_null(maximum(failed, failed));
    assert_null(add(huge, n));
    expect_failure(NULL, SB_ERROR_SHAPE, "by 0");
    /* A simplification that would overflow is left out. */
    expect(floor_divide(floor_divide(n, number(INT64_MAX)), number(INT64_MAX)),
           "floor(floor(n/9223372036854775807)/9223372036854775807)");
    expect(maximum(huge, multiply(number(INT64_MIN), n)), "max(-9223372036854775808*n,9223372036854775807*n)");
}

static void test_limits(void **state) {
    sb_dim n = symbol("n"), m = symbol("m"), deep = n;
    for (int i = 0; deep != NULL && i < 10000; i++)
        deep = add(floor_divide(multiply(deep, number(2)), number(3)), m);
    expect_failure(deep, SB_ERROR_UNSUPPORTED, "nests");
    sb_dim steep = add(n, number(1));
    for (int i = 0; steep != NULL && i < 10000; i++)
        steep = multiply(steep, steep);
    expect_failure(steep, SB_ERROR_UNSUPPORTED, "multiplies");
    sb_dim wide = n, widest = n, product = n;
    for (int i = 0; wide != NULL && i < 10000; i++) {
        wide = add(wide, sb_dim_fresh(scope, "wide"));
        widest = wide != NULL ? wide : widest;
    }
    expect_failure(wide, SB_ERROR_UNSUPPORTED, "parts");
    product = multiply(widest, widest);
    expect_failure(product, SB_ERROR_UNSUPPORTED, "terms");
    sb_dim many = n;
    for (int i = 0; many != NULL && i < 10000; i++)
        many = maximum(many, sb_dim_fresh(scope, "many"));
    expect_failure(many, SB_ERROR_UNSUPPORTED, "minimum or maximum");
}

/* ---- the property: a formula has the value of the operations that made it ---- */

enum { SYMBOLS = 4, STEPS = 24, BINDINGS = 12 };
static const char *const symbol_names[SYMBOLS] = {"a", "b", "c", "d"};

typedef enum operation { NUMBER, SYMBOL, ADD, SUBTRACT, MULTIPLY, FLOOR, CEILING, MIN, MAX } operation;

typedef struct step {
    operation operation;
    int left, right; /* earlier steps; or the number; or the symbol */
} step;

static bool compute(const step *program, int at, const int64_t *values, const bool *defined, const int64_t *symbols,
                    int64_t *value) {
    const step *now = &program[at];
    if (now->operation == NUMBER || now->operation == SYMBOL) {
        *value = now->operation == NUMBER ? now->left : symbols[now->left];
        return true;
    }
    if (!defined[now->left] || !defined[now->right])
        return false;
    int64_t left = values[now->left], right = values[now->right];
    switch (now->operation) {
    case ADD:
        return !__builtin_add_overflow(left, right, value);
    case SUBTRACT:
        return !__builtin_sub_overflow(left, right, value);
    case MULTIPLY:
        return !__builtin_mul_overflow(left, right, value);
    case MIN:
        *value = left < right ? left : right;
        return true;
    case MAX:
        *value = left > right ? left : right;
        return true;
    default:
        if (right == 0)
            return false;
        *value = left / right;
        if (left % right != 0 && now->operation == FLOOR && (left < 0) != (right < 0))
            --*value;
        if (left % right != 0 && now->operation == CEILING && (left < 0) == (right < 0))
            ++*value;
        return true;
    }
}

static sb_dim build(const step *program, int at, const sb_dim *dims) {
    const step *now = &program[at];
    if (now->operation == NUMBER)
        return number(now->left);
    if (now->operation == SYMBOL)
        return symbol(symbol_names[now->left]);
    sb_dim left = dims[now->left], right = dims[now->right];
    switch (now->operation) {
    case ADD:
        return add(left, right);
    case SUBTRACT:
        return subtract(left, right);
    case MULTIPLY:
        return multiply(left, right);
    case FLOOR:
        return floor_divide(left, right);
    case CEILING:
        return ceiling_divide(left, right);
    case MIN:
        return minimum(left, right);
    default:
        return maximum(left, right);
    }
}

static step random_step(random_source *source, int at) {
    step result = {(operation)random_between(source, NUMBER, MAX), 0, 0};
    if (at < SYMBOLS)
        return (step){SYMBOL, at, 0};
    if (result.operation == SYMBOL)
        result.operation = FLOOR;
    if (result.operation == NUMBER) {
        result.left = (int)random_between(source, -6, 12);
        return result;
    }
    result.left = (int)random_between(source, 0, at - 1);
    result.right = (int)random_between(source, 0, at - 1);
    return result;
}

static void check_formula(sb_dim dim, const sb_binding *binding, const sb_binding *half, int64_t expected) {
    char text[1024];
    sb_dim_text(dim, text, sizeof text);
    int64_t value;
    if (!sb_dim_evaluate(dim, binding, &value))
        fail_msg("%s has no value instead of %lld", text, (long long)expected);
    if (value != expected)
        fail_msg("%s is %lld instead of %lld", text, (long long)value, (long long)expected);
    if (expected < INT64_MAX && sb_dim_at_least(dim, expected + 1))
        fail_msg("%s is said to be more than %lld", text, (long long)expected);
    sb_dim whole = sb_dim_substitute(scope, dim, binding);
    if (!sb_dim_is_constant(whole, &value) || value != expected)
        fail_msg("%s becomes %lld instead of %lld", text, (long long)value, (long long)expected);
    sb_dim part = sb_dim_substitute(scope, dim, half);
    if (!sb_dim_evaluate(part, binding, &value) || value != expected)
        fail_msg("%s, half bound, is %lld instead of %lld", text, (long long)value, (long long)expected);
}

/* Evaluation of intermediate terms may overflow where the direct computation does not: values are
 * kept small, and what leaves this range is not compared. */
#define SMALL (INT64_C(1) << 20)

static int64_t compare_program(random_source *source) {
    step program[STEPS];
    sb_dim dims[STEPS] = {0};
    int64_t compared = 0;
    for (int i = 0; i < STEPS; i++) {
        program[i] = random_step(source, i);
        dims[i] = build(program, i, dims);
    }
    (void)sb_scope_check(scope, NULL);
    for (int round = 0; round < BINDINGS; round++) {
        int64_t symbols[SYMBOLS], values[STEPS] = {0};
        bool defined[STEPS] = {false};
        for (int i = 0; i < SYMBOLS; i++)
            symbols[i] = random_between(source, 0, round < 4 ? 2 : 40);
        sb_binding binding = {SYMBOLS, symbol_names, symbols}, half = {2, symbol_names, symbols};
        for (int i = 0; i < STEPS; i++) {
            defined[i] =
                compute(program, i, values, defined, symbols, &values[i]) && values[i] > -SMALL && values[i] < SMALL;
            if (!defined[i] || dims[i] == NULL)
                continue;
            check_formula(dims[i], &binding, &half, values[i]);
            compared++;
        }
    }
    return compared;
}

static void test_random_formulas(void **state) {
    random_source source = {20260101};
    int64_t compared = 0;
    for (int i = 0; i < 250; i++) {
        compared += compare_program(&source);
        if (i % 50 == 49) {
            /* A new scope now and then keeps memory small. */
            sb_scope_destroy(scope);
            assert_int_equal(sb_scope_create(&scope, NULL), SB_OK);
        }
    }
    assert_true(compared > 12000);
}

static void test_random_copies(void **state) {
    random_source source = {7};
    sb_scope *other;
    assert_int_equal(sb_scope_create(&other, NULL), SB_OK);
    for (int i = 0; i < 300; i++) {
        step program[STEPS];
        sb_dim dims[STEPS] = {0};
        for (int j = 0; j < STEPS; j++) {
            program[j] = random_step(&source, j);
            dims[j] = build(program, j, dims);
            if (dims[j] == NULL)
                continue;
            char left[512], right[512];
            sb_dim copy = sb_dim_copy(other, dims[j]);
            assert_true(sb_dim_equal(copy, dims[j]));
            assert_string_equal(sb_dim_text(copy, left, sizeof left), sb_dim_text(dims[j], right, sizeof right));
            assert_ptr_equal(sb_dim_copy(scope, copy), dims[j]);
        }
    }
    (void)sb_scope_check(scope, NULL);
    assert_int_equal(sb_scope_check(other, NULL), SB_OK);
    sb_scope_destroy(other);
}

/* ---- memory ---- */

static sb_status build_everything(void *context) {
    sb_scope *saved = scope;
    sb_status status = sb_scope_create(&scope, NULL);
    if (status != SB_OK) {
        scope = saved;
        return status;
    }
    sb_dim sum = symbol("n");
    for (int i = 0; i < 200; i++) {
        char name[16];
        snprintf(name, sizeof name, "s%d", i);
        sum = add(sum, symbol(name));
    }
    sb_dim n = symbol("n"), m = symbol("m");
    sb_dim half = floor_divide(add(n, number(3)), number(2));
    sb_dim formula = maximum(floor_divide(half, number(2)), multiply(half, add(m, number(1))));
    formula = minimum(formula, floor_divide(add(multiply(n, m), n), add(m, number(1))));
    formula = add(formula, sb_dim_fresh(scope, "kept"));
    static const char *const names[] = {"n"};
    formula = sb_dim_substitute(scope, formula, &(sb_binding){1, names, &(int64_t){6}});
    status = sb_scope_check(scope, NULL);
    assert_true((formula != NULL && sum != NULL) || status != SB_OK);
    sb_scope_destroy(scope);
    scope = saved;
    return status;
}

static void test_memory(void **state) {
    check_failing_allocations(build_everything, NULL);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_polynomials, open_scope, close_scope),
        cmocka_unit_test_setup_teardown(test_divisions, open_scope, close_scope),
        cmocka_unit_test_setup_teardown(test_extremes, open_scope, close_scope),
        cmocka_unit_test_setup_teardown(test_text, open_scope, close_scope),
        cmocka_unit_test_setup_teardown(test_questions, open_scope, close_scope),
        cmocka_unit_test_setup_teardown(test_other_scope, open_scope, close_scope),
        cmocka_unit_test_setup_teardown(test_values, open_scope, close_scope),
        cmocka_unit_test_setup_teardown(test_failures, open_scope, close_scope),
        cmocka_unit_test_setup_teardown(test_limits, open_scope, close_scope),
        cmocka_unit_test_setup_teardown(test_random_formulas, open_scope, close_scope),
        cmocka_unit_test_setup_teardown(test_random_copies, open_scope, close_scope),
        cmocka_unit_test_setup_teardown(test_memory, open_scope, close_scope),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
