/* SiLU's estimate (silu_estimate.h) against its definition, with the worst that the two approximations may give:
 *
 *     test_numerics_silu_estimate [--all]
 *
 * looks at every 1009th argument, or at all. That the bound is needed is shown by one a quarter as wide. */
#include "elementary.h"
#include "logistic.h"
#include "reference.h"
#include "silu_estimate.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <math.h>
#include <stdbool.h>
#include <string.h>

/* From here on all floats are infinity in 16 bits, and so is an estimate that has become infinite. */
#define ROUNDS_TO_INFINITY 0x1.ffp127f

static uint32_t step = 1009;

/* A float that is no nearer to `exact` than the approximation's error, on the side of `sign`. */
static float worst(double exact, double error, int sign) {
    double off = exact * (1.0 + sign * error);
    float y = (float)off;
    if (sign > 0 ? (double)y < off : (double)y > off)
        y = nextafterf(y, sign > 0 ? INFINITY : -INFINITY);
    return y;
}

/* The estimate with approximations that are off to these sides. */
static float estimate(float x, int power_sign, int reciprocal_sign) {
    double exact = exp2((double)sb_silu_estimate_exponent(x));
    float power = exact < 0x1p-126 ? 0.0f : worst(exact, SB_SILU_ESTIMATE_POWER_ERROR, power_sign);
    float sum = sb_silu_estimate_sum(power);
    return x * worst(1.0 / (double)sum, SB_SILU_ESTIMATE_RECIPROCAL_ERROR, reciprocal_sign);
}

static bool lies_between(float y, float one, float other) {
    return one < other ? one <= y && y <= other : other <= y && y <= one;
}

/* Factors of either sign with all kinds of last bits. */
static float factor_of(uint32_t index) {
    uint32_t bits = index * 2654435761u;
    return sb_bits_to_f32((bits & 0x80000000u) | (120 + (bits >> 27 & 15)) << 23 | (bits & 0x7fffffu));
}

/* How many estimates of argument x do not enclose what is defined, with the bound's width divided by `narrower`. */
static int missed(float x, uint32_t index, float narrower) {
    const float lower = 1.0f - (1.0f - SB_SILU_ESTIMATE_LOWER) / narrower;
    const float upper = 1.0f + (SB_SILU_ESTIMATE_UPPER - 1.0f) / narrower;
    const float defined = x * sb_sigmoid_f32(x), factor = factor_of(index);
    int count = 0;
    for (int sides = 0; sides < 4; sides++) {
        float y = estimate(x, sides & 1 ? 1 : -1, sides & 2 ? 1 : -1);
        count += !lies_between(defined, y * lower, y * upper);
        y = y * factor;
        count += isfinite(y * upper) && fabsf(y) > 0x1p-100f &&
                 !lies_between(defined * factor, y * lower, y * upper);
    }
    return count;
}

static void the_definition_lies_within_the_bound(void **state) {
    (void)state;
    uint64_t looked_at = 0, wrong = 0;
    for (uint64_t bits = 0; bits < UINT64_C(0x100000000); bits += step) {
        float x = sb_bits_to_f32((uint32_t)bits);
        if (!sb_silu_can_be_estimated(x) || x >= ROUNDS_TO_INFINITY)
            continue;
        looked_at++;
        if (missed(x, (uint32_t)bits, 1.0f) != 0 && wrong++ == 0)
            print_error("x = %a: %a is not within the bound of an estimate\n", (double)x, (double)(x * sb_sigmoid_f32(x)));
    }
    assert_true(looked_at > 2000000000 / step);
    assert_int_equal(wrong, 0);
}

static void a_narrower_bound_would_not_do(void **state) {
    (void)state;
    int wrong = 0;
    for (uint32_t index = 0; index < 100000; index++)
        wrong += missed(-16.0f + (float)index * 0x1p-17f, index, 4.0f);
    assert_true(wrong > 0);
}

/* Infinity is an argument that can be estimated; NaN, zeros, and what is far below zero are not. */
static void the_ends_are_as_they_are_said_to_be(void **state) {
    (void)state;
    assert_true(sb_silu_can_be_estimated(INFINITY));
    assert_true(estimate(INFINITY, 1, 1) == INFINITY && estimate(INFINITY, -1, -1) == INFINITY);
    assert_true((double)sb_sigmoid_f32(INFINITY) == 1.0);
    const float others[] = {NAN, 0.0f, -0.0f, -16.0f, -INFINITY, 0x1p-101f, -0x1p-101f, 0x1p-149f};
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++)
        assert_false(sb_silu_can_be_estimated(others[i]));
}

int main(int count, char **arguments) {
    if (count > 1 && strcmp(arguments[1], "--all") == 0)
        step = 1;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_definition_lies_within_the_bound),
        cmocka_unit_test(a_narrower_bound_would_not_do),
        cmocka_unit_test(the_ends_are_as_they_are_said_to_be),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
