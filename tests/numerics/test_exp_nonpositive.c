/* exp of numbers that are not positive (exp_nonpositive.h) against exp:
 *
 *     test_numerics_exp_nonpositive [--all]
 *
 * looks at every 1009th argument, or at all. */
#include "exp_nonpositive.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <math.h>
#include <string.h>

static uint32_t step = 1009;

static void check(uint32_t bits) {
    const float x = sb_bits_to_f32(bits), given = x < SB_EXP_LEAST_F32 ? SB_EXP_LEAST_F32 : x;
    const float expected = sb_exp_f32(x), found = sb_exp_nonpositive_f32(given);
    if (isnan(expected) ? !isnan(found) : memcmp(&expected, &found, sizeof found) != 0)
        fail_msg("exp(%a) is %a, not %a", (double)x, (double)expected, (double)found);
}

static void it_is_exp(void **state) {
    (void)state;
    for (uint64_t bits = 0x80000000u; bits < UINT64_C(0x100000000); bits += step)
        check((uint32_t)bits);
}

/* Zeros, what is next to them, infinity, NaN, and where results are subnormal. */
static void the_ends_are_those_of_exp(void **state) {
    (void)state;
    const uint32_t ends[] = {0,           0x80000000u, 0x80000001u, 0x80800000u,
                             0xff7fffffu, 0xff800000u, 0xffc00000u, 0x7fffffffu};
    for (size_t i = 0; i < sizeof ends / sizeof ends[0]; i++)
        check(ends[i]);
    for (uint32_t i = 0; i < 300000; i++)
        check(sb_bits_from_f32(-86.0f - (float)i * 0x1p-13f));
}

int main(int count, char **arguments) {
    if (count > 1 && strcmp(arguments[1], "--all") == 0)
        step = 1;
    const struct CMUnitTest tests[] = {cmocka_unit_test(it_is_exp), cmocka_unit_test(the_ends_are_those_of_exp)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
