/* The reduction order against a literal transcription of its specification, where lanes carry a
 * flag for "has an element". */
#include "minmax.h"
#include "reduce.h"
#include "reference.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <math.h>
#include <stdbool.h>

enum { LARGEST = 13000 };

typedef struct lane_f32 {
    bool present;
    float value;
} lane_f32;

static float transcribed_block_f32(const float *x, int64_t count, bool squares) {
    lane_f32 lanes[256] = {{false, 0.0f}};
    for (int64_t i = 0; i < count; i++) {
        lane_f32 *lane = &lanes[i % 256];
        if (squares) {
            lane->value = lane->present ? fmaf(x[i], x[i], lane->value) : x[i] * x[i];
        } else {
            lane->value = lane->present ? lane->value + x[i] : x[i];
        }
        lane->present = true;
    }
    for (int half = 128; half >= 1; half /= 2) {
        for (int j = 0; j < half; j++) {
            if (lanes[j + half].present) {
                lanes[j].value += lanes[j + half].value;
                lanes[j + half].present = false;
            }
        }
    }
    return lanes[0].value;
}

static float transcribed_f32(const float *x, int64_t count, bool squares) {
    bool any = false;
    float total = 0.0f;
    for (int64_t start = 0; start < count; start += 4096) {
        int64_t size = count - start > 4096 ? 4096 : count - start;
        float block = transcribed_block_f32(x + start, size, squares);
        total = any ? total + block : block;
        any = true;
    }
    return total;
}

static double transcribed_f64(const double *x, int64_t count, bool squares) {
    double total = 0.0;
    for (int64_t start = 0; start < count; start += 4096) {
        double lanes[256];
        int64_t present = 0;
        for (int64_t i = start; i < count && i < start + 4096; i++) {
            int64_t j = (i - start) % 256;
            double first = squares ? x[i] * x[i] : x[i];
            double next = squares ? fma(x[i], x[i], lanes[j]) : lanes[j] + x[i];
            lanes[j] = j < present ? next : first;
            present = j < present ? present : j + 1;
        }
        for (int64_t half = 128; half >= 1; half /= 2) {
            for (int64_t j = half; j < present && j < 2 * half; j++) {
                lanes[j - half] += lanes[j];
            }
            present = present < half ? present : half;
        }
        total = start == 0 ? lanes[0] : total + lanes[0];
    }
    return total;
}

static const int64_t SIZES[] = {0,   1,    2,    3,    5,    127,  128,  129,  255,  256,  257,  300,   511,   512,
                                513, 1000, 4095, 4096, 4097, 4100, 4352, 8191, 8192, 8193, 9000, 12288, 12289, LARGEST};
enum { SIZE_COUNT = sizeof SIZES / sizeof SIZES[0] };

static void assert_same(float actual, float expected) {
    assert_int_equal(sb_bits_canonical_f32(actual), sb_bits_canonical_f32(expected));
}

static void assert_same_f64(double actual, double expected) {
    assert_true(sb_bits_canonical_f64(actual) == sb_bits_canonical_f64(expected));
}

/* Values of very different size, so that any other order gives other bits. */
static void fill(float *x, double *y, uint64_t seed) {
    uint64_t state = seed;
    for (int i = 0; i < LARGEST; i++) {
        uint64_t bits = sb_test_random(&state);
        y[i] = ldexp((double)(int64_t)bits, -63 - (int)(bits % 30));
        x[i] = (float)y[i];
    }
}

static void check_sizes(const float *x, const double *y) {
    for (int index = 0; index < SIZE_COUNT; index++) {
        int64_t count = SIZES[index];
        float sum = transcribed_f32(x, count, false);
        assert_same(sb_sum_f32(x, 1, count), sum);
        assert_same(sb_sum_of_squares_f32(x, 1, count), transcribed_f32(x, count, true));
        assert_same(sb_mean_f32(x, 1, count), sum / (float)count);
        double wide = transcribed_f64(y, count, false);
        assert_same_f64(sb_sum_f64(y, 1, count), wide);
        assert_same_f64(sb_sum_of_squares_f64(y, 1, count), transcribed_f64(y, count, true));
        assert_same_f64(sb_mean_f64(y, 1, count), wide / (double)count);
    }
}

static void test_order(void **unused) {
    (void)unused;
    static float x[LARGEST];
    static double y[LARGEST];
    for (uint64_t seed = 0; seed < 8; seed++) {
        fill(x, y, seed);
        check_sizes(x, y);
    }
}

/* The order must matter for these data, or the test above could not fail. */
static void test_order_is_observable(void **unused) {
    (void)unused;
    static float x[LARGEST];
    static double y[LARGEST];
    fill(x, y, 3);
    float sequential = 0.0f;
    for (int i = 0; i < LARGEST; i++) {
        sequential += x[i];
    }
    assert_true(sequential != sb_sum_f32(x, 1, LARGEST));
}

static void test_special_values(void **unused) {
    (void)unused;
    static float x[LARGEST];
    static double y[LARGEST];
    const float specials[] = {NAN, INFINITY, -INFINITY, -0.0f, 0x1p-149f, 0x1.fffffep127f};
    for (int index = 0; index < 6; index++) {
        fill(x, y, 11);
        for (int i = index; i < LARGEST; i += 1111) {
            x[i] = specials[index];
            y[i] = (double)specials[index];
        }
        check_sizes(x, y);
    }
    /* Skipping absent lanes keeps a negative zero; nothing sums to +0. */
    float negative_zero[700];
    for (int i = 0; i < 700; i++) {
        negative_zero[i] = -0.0f;
    }
    assert_int_equal(sb_bits_from_f32(sb_sum_f32(negative_zero, 1, 700)), 0x80000000);
    assert_int_equal(sb_bits_from_f32(sb_sum_f32(negative_zero, 1, 1)), 0x80000000);
    assert_int_equal(sb_bits_from_f32(sb_sum_f32(negative_zero, 1, 0)), 0);
    assert_true(isnan(sb_mean_f32(negative_zero, 1, 0)));
}

static void test_strides(void **unused) {
    (void)unused;
    static float x[LARGEST], spread[3 * LARGEST], reversed[LARGEST];
    static double y[LARGEST];
    fill(x, y, 21);
    for (int i = 0; i < LARGEST; i++) {
        spread[3 * i] = x[i];
        spread[3 * i + 1] = spread[3 * i + 2] = NAN;
        reversed[LARGEST - 1 - i] = x[i];
    }
    float sum = sb_sum_f32(x, 1, LARGEST);
    assert_same(sb_sum_f32(spread, 3, LARGEST), sum);
    assert_same(sb_sum_f32(reversed + LARGEST - 1, -1, LARGEST), sum);
    assert_same(sb_sum_f32(x, 0, 4), 4.0f * x[0]);
}

typedef struct shifted {
    const float *data;
    float offset;
} shifted;

static float load_shifted(shifted values, int64_t index) {
    return values.data[index] - values.offset;
}

SB_DEFINE_SUM_F32(sum_shifted, shifted, load_shifted)
SB_DEFINE_SUM_OF_SQUARES_F32(sum_of_squares_shifted, shifted, load_shifted)

static void test_transformed_values(void **unused) {
    (void)unused;
    static float x[LARGEST], moved[LARGEST];
    static double y[LARGEST];
    fill(x, y, 31);
    for (int i = 0; i < LARGEST; i++) {
        moved[i] = x[i] - 0.37f;
    }
    shifted values = {x, 0.37f};
    assert_same(sum_shifted(values, LARGEST), sb_sum_f32(moved, 1, LARGEST));
    assert_same(sum_of_squares_shifted(values, LARGEST), sb_sum_of_squares_f32(moved, 1, LARGEST));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_order),
        cmocka_unit_test(test_order_is_observable),
        cmocka_unit_test(test_special_values),
        cmocka_unit_test(test_strides),
        cmocka_unit_test(test_transformed_values),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
