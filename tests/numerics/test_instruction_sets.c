/* The elementary functions compiled for other instruction sets, where the loops vectorise and fma
 * is an instruction, against the baseline build: equal bits, NaNs being one value. SB_TEST_STRIDE
 * (default 1009) is the step over the 2^32 inputs; 1 covers all. */
#include "elementary_host.h"
#include "functions.h"
#include "minmax.h"
#include "reference.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <stdlib.h>

/* elementary_host.c again, renamed on the compiler's command line. */
void sb_host_evaluate_f32_avx2(int function, const float *x, float *y, int count);
void sb_host_evaluate_f64_avx2(int function, const double *x, double *y, int count);
void sb_host_evaluate_f32_avx512(int function, const float *x, float *y, int count);
void sb_host_evaluate_f64_avx512(int function, const double *x, double *y, int count);

enum { BLOCK = 4096, SAMPLES_F64 = 16 };

#define NAME(name, exact, lowest, highest) #name,
static const char *const NAMES[] = {SB_TEST_FUNCTIONS(NAME)};
enum { FUNCTION_COUNT = sizeof NAMES / sizeof NAMES[0] };

typedef void (*evaluate_f32)(int function, const float *x, float *y, int count);
typedef void (*evaluate_f64)(int function, const double *x, double *y, int count);

static uint64_t stride(void) {
    const char *text = getenv("SB_TEST_STRIDE");
    long value = text != NULL ? strtol(text, NULL, 10) : 0;
    return value > 0 ? (uint64_t)value : 1009;
}

static void compare_f32(evaluate_f32 other) {
    static float x[BLOCK], expected[BLOCK], actual[BLOCK];
    uint64_t step = stride();
    for (int function = 0; function < FUNCTION_COUNT; function++) {
        for (uint64_t start = 0; start < UINT64_C(0x100000000); start += step * BLOCK) {
            for (uint64_t index = 0; index < BLOCK; index++) {
                x[index] = sb_bits_to_f32((uint32_t)(start + index * step));
            }
            sb_host_evaluate_f32(function, x, expected, BLOCK);
            other(function, x, actual, BLOCK);
            for (int index = 0; index < BLOCK; index++) {
                if (sb_bits_canonical_f32(expected[index]) != sb_bits_canonical_f32(actual[index])) {
                    fail_msg("%s(%a): %a instead of %a", NAMES[function], (double)x[index], (double)actual[index],
                             (double)expected[index]);
                }
            }
        }
    }
}

static void compare_f64(evaluate_f64 other) {
    static double x[BLOCK], expected[BLOCK], actual[BLOCK];
    uint64_t state = 3;
    for (int function = 0; function < FUNCTION_COUNT; function++) {
        for (int block = 0; block < SAMPLES_F64; block++) {
            for (int index = 0; index < BLOCK; index++) {
                uint64_t bits = sb_test_random(&state);
                uint64_t ordinary = (bits & 0x800fffffffffffffu) | (1003 + bits % 31) << 52;
                x[index] = sb_bits_to_f64(block % 2 == 0 ? bits : ordinary);
            }
            sb_host_evaluate_f64(function, x, expected, BLOCK);
            other(function, x, actual, BLOCK);
            for (int index = 0; index < BLOCK; index++) {
                if (sb_bits_canonical_f64(expected[index]) != sb_bits_canonical_f64(actual[index])) {
                    fail_msg("%s(%a): %a instead of %a", NAMES[function], x[index], actual[index], expected[index]);
                }
            }
        }
    }
}

static void test_avx2(void **unused) {
    (void)unused;
    if (!__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("fma")) {
        skip();
    }
    compare_f32(sb_host_evaluate_f32_avx2);
    compare_f64(sb_host_evaluate_f64_avx2);
}

static void test_avx512(void **unused) {
    (void)unused;
    if (!__builtin_cpu_supports("avx512f") || !__builtin_cpu_supports("avx512bw") ||
        !__builtin_cpu_supports("avx512dq") || !__builtin_cpu_supports("avx512vl")) {
        skip();
    }
    compare_f32(sb_host_evaluate_f32_avx512);
    compare_f64(sb_host_evaluate_f64_avx512);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_avx2),
        cmocka_unit_test(test_avx512),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
