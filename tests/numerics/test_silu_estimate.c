/* SiLU's estimate (silu_estimate.h) against its definition, with the worst that the two approximations may give:
 *
 *     test_numerics_silu_estimate [--all]
 *
 * looks at every 1009th argument, or at all. */
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
    double exact = exp2((double)sb_silu_estimate_argument(x));
    float h = exact < 0x1p-126 ? 0.0f : worst(exact, SB_SILU_POWER_ERROR, power_sign);
    double sum = (double)sb_silu_estimate_sum(h);
    return sb_silu_estimate(x, h, worst(1.0 / sum, SB_SILU_RECIPROCAL_ERROR, reciprocal_sign));
}

/* Factors of either sign with all kinds of last bits, and 1. */
static float factor_of(uint32_t index) {
    uint32_t bits = index * 2654435761u;
    return index % 4 == 0 ? 1.0f
                          : sb_bits_to_f32((bits & 0x80000000u) | (120 + (bits >> 27 & 15)) << 23 | (bits & 0x7fffffu));
}

/* How many estimates of x are not as near to what is defined as the bound, divided by `narrower`, says. Where the estimate or its
 * ends are not finite, the ends do not round to the same number, so the definition is evaluated (NaN apart, which it is too). */
static int missed(float x, uint32_t index, float narrower) {
    const float factor = factor_of(index), defined = x * sb_sigmoid_f32(x) * factor;
    int count = 0;
    for (int sides = 0; sides < 4; sides++) {
        const float y = estimate(x, sides & 1 ? 1 : -1, sides & 2 ? 1 : -1) * factor;
        const float bound = sb_silu_estimate_bound(x, y, factor) / narrower;
        if (isfinite(y + bound) && isfinite(y - bound))
            count += !(y - bound <= defined && defined <= y + bound) ||
                     (signbit(y) != signbit(defined) && y == 0.0f && defined == 0.0f);
        else if (isnan(y))
            count += !isnan(defined);
        else
            count += isfinite(y - bound) || isfinite(y + bound) ? 0 : !isinf(y);
    }
    return count;
}

static void the_definition_lies_within_the_bound(void **state) {
    (void)state;
    uint64_t wrong = 0;
    float first = 0.0f;
    for (uint64_t bits = 0; bits < UINT64_C(0x100000000); bits += step) {
        float x = sb_bits_to_f32((uint32_t)bits);
        if (missed(x, (uint32_t)bits, 1.0f) != 0 && wrong++ == 0)
            first = x;
    }
    if (wrong != 0)
        fail_msg("%llu arguments, the first of them %a, have estimates that are further from the definition than their "
                 "bounds",
                 (unsigned long long)wrong, (double)first);
}

/* So that the bound is no wider than it has to be. */
static void a_narrower_bound_would_not_do(void **state) {
    (void)state;
    int wrong = 0;
    for (uint32_t index = 0; index < 100000; index++)
        wrong += missed(-16.0f + (float)index * 0x1p-17f, index, 3.0f) != 0;
    assert_true(wrong > 0);
}

/* Around what is subnormal, zero or not finite, whatever the step. */
static void the_ends_are_within_the_bound(void **state) {
    (void)state;
    const float ends[] = {NAN,       INFINITY,        -INFINITY,       0.0f, -0.0f, 0x1p-149f, -0x1p-149f,
                          0x1p-126f, 0x1.fffffep127f, -0x1.fffffep127f};
    for (uint32_t i = 0; i < sizeof ends / sizeof ends[0]; i++)
        assert_int_equal(missed(ends[i], i, 1.0f), 0);
    for (uint32_t index = 0; index < 400000; index++)
        assert_int_equal(missed(-80.0f - (float)index * 0x1p-13f, index, 1.0f), 0);
}

int main(int count, char **arguments) {
    if (count > 1 && strcmp(arguments[1], "--all") == 0)
        step = 1;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_definition_lies_within_the_bound),
        cmocka_unit_test(a_narrower_bound_would_not_do),
        cmocka_unit_test(the_ends_are_within_the_bound),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
