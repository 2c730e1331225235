/* What kernels without an interpreter take for granted: formulas that are right for values of 16 bits. The programs themselves
 * are cases of the harness (fixed_cases.c). */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "cuda/elementwise/fixed_formulas.h"
#include "numerics/convert.h"

static void check_quotient(uint16_t first, uint16_t second) {
    float x = sb_f16_to_f32(first), y = sb_f16_to_f32(second);
    float expected = sb_div_f32(x, y), found = sb_cuda_quotient_f16(x, y, sb_div_f32(1, y));
    bool same = expected == expected ? sb_bits_from_f32(expected) == sb_bits_from_f32(found) : found != found;
    if (!same)
        fail_msg("0x%04x / 0x%04x gives %a in place of %a", first, second, (double)found, (double)expected);
}

/* All pairs of significands. */
static void test_significands(void **unused) {
    for (int x = 0; x < 1024; x++) {
        for (int y = 0; y < 1024; y++)
            check_quotient((uint16_t)(0x3c00 + x), (uint16_t)(0x3c00 + y));
    }
}

/* Every value by some, and by those at the ends: zeros, subnormals, infinities, NaN. */
static void test_ends(void **unused) {
    static const uint16_t divisors[] = {0x0000, 0x8000, 0x0001, 0x8001, 0x0002, 0x03ff, 0x0400, 0x8401, 0x3c00,
                                        0xbc00, 0x3da8, 0x4200, 0x7bff, 0xfbff, 0x7c00, 0xfc00, 0x7e00, 0xfe01};
    for (unsigned d = 0; d < sizeof divisors / sizeof divisors[0]; d++) {
        for (unsigned x = 0; x <= 0xffff; x++) {
            check_quotient((uint16_t)x, divisors[d]);
            check_quotient(divisors[d], (uint16_t)x);
        }
    }
}

/* Every value. */
static void test_erf(void **unused) {
    for (unsigned bits = 0; bits <= 0xffff; bits++) {
        float x = sb_f16_to_f32((uint16_t)bits);
        if (sb_f16_from_f32(sb_erf_f32(x)) != sb_f16_from_f32(sb_cuda_erf_16(x)))
            fail_msg("the error function of %a in f16", (double)x);
        x = sb_bf16_to_f32((uint16_t)bits);
        if (sb_bf16_from_f32(sb_erf_f32(x)) != sb_bf16_from_f32(sb_cuda_erf_16(x)))
            fail_msg("the error function of %a in bf16", (double)x);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_significands), cmocka_unit_test(test_ends),
                                       cmocka_unit_test(test_erf)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
