/* The chains of contractions. The 16-bit one is compared with an evaluation in big integers written
 * from the formula, and, where a file of vectors recorded on a GPU is given, with the hardware. */
#include "chain.h"
#include "convert.h"
#include "minmax.h"
#include "reference.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <gmp.h>
#include <math.h>
#include <stdio.h>

typedef enum kind { BF16, F16 } kind;

static double value_of(uint16_t bits, kind type) {
    return type == BF16 ? sb_bf16_to_f64(bits) : sb_f16_to_f64(bits);
}

/* The exponent of the stored format: a subnormal has that of the smallest normal number. */
static int stored_exponent(double value, int lowest) {
    return fabs(value) < ldexp(1.0, lowest) ? lowest : ilogb(value);
}

/* trunc(value * 2^(bits-E)) added to `sum`. All values are multiples of 2^-300. */
static void add_truncated(mpz_t sum, double value, int largest, int bits) {
    mpz_t term;
    mpz_init(term);
    mpz_set_d(term, ldexp(value, 300));
    mpz_tdiv_q_2exp(term, term, (mp_bitcnt_t)(300 - bits + largest));
    mpz_add(sum, sum, term);
    mpz_clear(term);
}

/* d truncated toward zero to f32; beyond the range to infinity. */
static float truncate_to_f32(double d) {
    if (fabs(d) >= 0x1p128) {
        return d > 0.0 ? INFINITY : -INFINITY;
    }
    float nearest = fmin(fabs(d), 0x1.fffffep127) == fabs(d) ? (float)d : copysignf(0x1.fffffep127f, (float)d);
    return fabs((double)nearest) > fabs(d) ? nextafterf(nearest, 0.0f) : nearest;
}

/* 16 products and the accumulator, aligned to 25 bits. */
static float by_big_integers(const uint16_t *a, const uint16_t *b, float accumulator, kind type) {
    const int bits = 25;
    int lowest = type == BF16 ? -126 : -14;
    int largest = -133;
    if (accumulator != 0.0f) {
        largest = (int)fmax(largest, stored_exponent((double)accumulator, -126));
    }
    for (int k = 0; k < 16; k++) {
        double x = value_of(a[k], type), y = value_of(b[k], type);
        if (x != 0.0 && y != 0.0) {
            int exponent = stored_exponent(x, lowest) + stored_exponent(y, lowest);
            largest = exponent > largest ? exponent : largest;
        }
    }
    mpz_t sum;
    mpz_init(sum);
    add_truncated(sum, (double)accumulator, largest, bits);
    for (int k = 0; k < 16; k++) {
        add_truncated(sum, value_of(a[k], type) * value_of(b[k], type), largest, bits);
    }
    double exact = ldexp(mpz_get_d(sum), largest - bits);
    mpz_clear(sum);
    /* Adding +0 drops the sign of a zero and changes nothing else. */
    return truncate_to_f32(exact) + 0.0f;
}

static float step(const uint16_t *a, const uint16_t *b, float accumulator, kind type) {
    return type == BF16 ? sb_chain16_step_bf16(a, b, accumulator) : sb_chain16_step_f16(a, b, accumulator);
}

static uint16_t store(float value, kind type) {
    return type == BF16 ? sb_bf16_from_f32(value) : sb_f16_from_f32(value);
}

/* Numbers whose products have exponents around the floor of -133. */
enum { TINY = -1 };

static double tiny(uint64_t bits) {
    double magnitude = ldexp(1.0 + (double)(bits >> 40) * 0x1p-24, (int)(bits % 12) - 80);
    return (bits >> 33 & 1) ? -magnitude : magnitude;
}

/* A finite 16-bit number whose exponent is uniform within `spread` around that of 1; any pattern for 0. */
static uint16_t random_number(uint64_t *state, kind type, int spread) {
    uint64_t bits = sb_test_random(state);
    if (spread == TINY) {
        return store((float)tiny(bits), type);
    }
    if (spread == 0) {
        uint16_t pattern = (uint16_t)bits;
        return isfinite(value_of(pattern, type)) ? pattern : 0;
    }
    double magnitude = ldexp(1.0 + (double)(bits >> 40) * 0x1p-24, (int)(bits % (uint64_t)spread) - spread / 2);
    uint16_t result = store((float)((bits >> 33 & 1) ? -magnitude : magnitude), type);
    if (!isfinite(value_of(result, type))) {
        result--; /* the largest finite number stands before the infinity */
    }
    return (bits >> 34 & 15) == 0 ? (uint16_t)(result & 0x8000) : result;
}

static float random_accumulator(uint64_t *state, int spread) {
    uint64_t bits = sb_test_random(state);
    if ((bits >> 60) == 0) {
        return 0.0f;
    }
    if (spread == TINY) {
        return (bits >> 59) < 24 ? 0.0f : sb_bits_to_f32((uint32_t)bits & 0x8000ffffu);
    }
    if (spread == 0) {
        float any = sb_bits_to_f32((uint32_t)bits);
        return isfinite(any) ? any : 0.0f;
    }
    double magnitude = ldexp(1.0 + (double)(bits >> 40) * 0x1p-24, (int)(bits % (uint64_t)spread) - spread / 2);
    return (float)((bits >> 33 & 1) ? -magnitude : magnitude);
}

static void check_against_big_integers(kind type) {
    static const int SPREADS[] = {1, 4, 12, 30, 60, 0, TINY};
    uint64_t state = type == BF16 ? 1 : 2;
    for (int trial = 0; trial < 70000; trial++) {
        int spread = SPREADS[trial % 7];
        uint16_t a[16], b[16];
        for (int k = 0; k < 16; k++) {
            a[k] = random_number(&state, type, spread);
            b[k] = random_number(&state, type, spread);
        }
        float accumulator = random_accumulator(&state, spread > 0 ? 2 * spread : spread);
        if (trial % 5 == 0) {
            /* Products that cancel exactly, then what is left of the accumulator. */
            for (int k = 0; k < 8; k++) {
                a[15 - k] = a[k];
                b[15 - k] = (uint16_t)(b[k] ^ 0x8000);
            }
        }
        float expected = by_big_integers(a, b, accumulator, type);
        float actual = step(a, b, accumulator, type);
        assert_int_equal(sb_bits_from_f32(actual), sb_bits_from_f32(expected));
        /* The order inside a group and the two operands' roles do not matter. */
        uint16_t c[16], d[16];
        for (int k = 0; k < 16; k++) {
            c[k] = a[(k * 7 + 3) % 16];
            d[k] = b[(k * 7 + 3) % 16];
        }
        assert_int_equal(sb_bits_from_f32(step(d, c, accumulator, type)), sb_bits_from_f32(actual));
    }
}

static void test_step_against_big_integers(void **unused) {
    (void)unused;
    check_against_big_integers(BF16);
    check_against_big_integers(F16);
}

typedef struct corner {
    uint16_t a0, b0, a1, b1;
    uint32_t accumulator;
    uint32_t expected;
} corner;

/* bf16, two products and an accumulator: the rules that have names in chain.h. */
static const corner CORNERS[] = {
    {0x7f80, 0x3f80, 0, 0, 0x3f800000, 0x7f800000},  /* infinity * 1 */
    {0xff80, 0x3f80, 0, 0, 0x3f800000, 0xff800000},  /* -infinity * 1 */
    {0x7f80, 0x3f80, 0xff80, 0x3f80, 0, 0x7fc00000}, /* infinity - infinity */
    {0x7f80, 0x0000, 0, 0, 0, 0x7fc00000},           /* infinity * 0 */
    {0x7fc1, 0x3f80, 0, 0, 0, 0x7fc00000},           /* NaN */
    {0, 0, 0, 0, 0x7fc00001, 0x7fc00000},            /* NaN accumulator */
    {0x3f80, 0x3f80, 0, 0, 0xff800000, 0xff800000},  /* -infinity accumulator */
    {0x7f80, 0x3f80, 0, 0, 0xff800000, 0x7fc00000},  /* infinity - infinity accumulator */
    {0x7f7f, 0x7f7f, 0, 0, 0, 0x7f800000},           /* overflow of a product */
    {0x7f7f, 0x7f7f, 0x7f7f, 0xff7f, 0x3f800000, 0}, /* huge products cancel, 1 is lost */
    {0x0000, 0x7f7f, 0, 0, 0x3f800001, 0x3f800001},  /* 0 * huge does not raise E */
    {0x3f80, 0x3f80, 0x3f80, 0xbf80, 0, 0},          /* exact cancellation */
    {0, 0, 0, 0, 0x80000000, 0},                     /* zeros only */
    {0x8000, 0x3f80, 0, 0, 0x80000000, 0},           /* negative zeros only */
    {0x0080, 0x0080, 0, 0, 0, 0},                    /* 2^-252 underflows */
    {0, 0, 0, 0, 0x00000001, 0x00000001},            /* a subnormal stays */
    {0x3f80, 0x0001, 0, 0, 0, 0x00010000},           /* 1 * the smallest bf16 */
    {0x7f7f, 0x3f80, 0x7f00, 0x3f80, 0, 0x7f800000}, /* overflow of the sum */
    {0x9a00, 0x1a00, 0, 0, 0, 0},                    /* -2^-150 truncates to +0 */
    {0x1a00, 0x1a80, 0x9800, 0x1800, 0, 0},          /* 2^-149 - 2^-158: just above the floor */
    {0x1a00, 0x1a80, 0x9780, 0x1800, 0, 1},          /* 2^-149 - 2^-159: just below it */
    {0x3f80, 0x3f80, 0, 0, 0x33000000, 0x3f800000},  /* 1 + 2^-25, truncated */
    {0x3f80, 0x3f80, 0, 0, 0xb2800000, 0x3f800000},  /* 1 - 2^-26: lost before the sum */
    {0x3f80, 0x3f80, 0, 0, 0xb3000000, 0x3f7fffff},  /* 1 - 2^-25: truncated after it */
};

static void test_corners(void **unused) {
    (void)unused;
    for (size_t index = 0; index < sizeof CORNERS / sizeof CORNERS[0]; index++) {
        const corner *item = &CORNERS[index];
        uint16_t a[16] = {item->a0, item->a1}, b[16] = {item->b0, item->b1};
        float result = sb_chain16_step_bf16(a, b, sb_bits_to_f32(item->accumulator));
        if (sb_bits_canonical_f32(result) != item->expected) {
            print_message("corner %zu: %08x instead of %08x\n", index, sb_bits_from_f32(result), item->expected);
        }
        assert_int_equal(sb_bits_canonical_f32(result), item->expected);
    }
}

/* Sixteen largest products with one sign: the sum needs 31 bits and must not wrap. */
static void test_all_products_at_maximum(void **unused) {
    (void)unused;
    uint16_t a[16], b[16];
    for (int k = 0; k < 16; k++) {
        a[k] = 0x3fff; /* 1.9921875 */
        b[k] = 0xbfff;
    }
    float accumulator = -0x1.fffffep1f;
    assert_true(sb_chain16_step_bf16(a, b, accumulator) == by_big_integers(a, b, accumulator, BF16));
    for (int k = 0; k < 16; k++) {
        a[k] = b[k] = 0x7bff; /* 65504 */
    }
    assert_true(sb_chain16_step_f16(a, b, 0x1.fffffep31f) == by_big_integers(a, b, 0x1.fffffep31f, F16));
}

/* The chain is its steps, the last group padded with zeros, from any strides. */
static void test_chain_is_its_steps(void **unused) {
    (void)unused;
    enum { LONGEST = 100 };
    uint64_t state = 77;
    uint16_t a[2 * LONGEST], b[3 * LONGEST];
    for (int i = 0; i < 3 * LONGEST; i++) {
        b[i] = random_number(&state, F16, 8);
        a[i % (2 * LONGEST)] = random_number(&state, F16, 8);
    }
    for (int count = 0; count <= LONGEST; count++) {
        float expected = 0.25f;
        for (int start = 0; start < count; start += 16) {
            uint16_t left[16] = {0}, right[16] = {0};
            for (int k = 0; k < 16 && start + k < count; k++) {
                left[k] = a[2 * (start + k)];
                right[k] = b[3 * (start + k)];
            }
            expected = sb_chain16_step_f16(left, right, expected);
        }
        float actual = sb_chain16_f16(a, 2, b, 3, count, 0.25f);
        assert_int_equal(sb_bits_from_f32(actual), sb_bits_from_f32(expected));
        int cut = count / 32 * 16;
        float head = sb_chain16_f16(a, 2, b, 3, cut, 0.25f);
        float resumed = sb_chain16_f16(a + 2 * cut, 2, b + 3 * cut, 3, count - cut, head);
        assert_int_equal(sb_bits_from_f32(resumed), sb_bits_from_f32(expected));
    }
}

static void test_f32_chain(void **unused) {
    (void)unused;
    float a[257], b[257];
    double c[257], d[257];
    uint64_t state = 5;
    for (int k = 0; k < 257; k++) {
        c[k] = (double)(int64_t)sb_test_random(&state) * 0x1p-63;
        d[k] = (double)(int64_t)sb_test_random(&state) * 0x1p-63;
        a[k] = (float)c[k];
        b[k] = (float)d[k];
    }
    float expected = 0.0f;
    double expected_wide = 0.0;
    for (int k = 0; k < 257; k++) {
        expected = fmaf(a[k], b[k], expected);
        expected_wide = fma(c[k], d[k], expected_wide);
    }
    assert_true(sb_chain_f32(a, 1, b, 1, 257, 0.0f) == expected);
    assert_true(sb_chain_f64(c, 1, d, 1, 257, 0.0) == expected_wide);
    float head = sb_chain_f32(a, 1, b, 1, 100, 0.0f);
    assert_true(sb_chain_f32(a + 100, 1, b + 100, 1, 157, head) == expected);
}

/* What chain16_probe writes for each recorded step. */
typedef struct recorded {
    uint32_t type; /* 0 = bf16, 1 = f16 */
    uint32_t accumulator;
    uint32_t result;
    uint16_t a[16];
    uint16_t b[16];
} recorded;

static const char *recorded_path;

static void test_recorded_hardware(void **unused) {
    (void)unused;
    if (recorded_path == NULL) {
        skip();
    }
    FILE *file = fopen(recorded_path, "rb");
    assert_non_null(file);
    char magic[8];
    assert_int_equal(fread(magic, 1, 8, file), 8);
    assert_memory_equal(magic, "IVCHAIN1", 8);
    recorded item;
    long count = 0;
    while (fread(&item, sizeof item, 1, file) == 1) {
        float result = step(item.a, item.b, sb_bits_to_f32(item.accumulator), item.type == 0 ? BF16 : F16);
        assert_int_equal(sb_bits_canonical_f32(result), sb_bits_canonical_f32(sb_bits_to_f32(item.result)));
        count++;
    }
    fclose(file);
    assert_true(count > 1000);
    print_message("%ld recorded steps\n", count);
}

int main(int count, char **arguments) {
    recorded_path = count > 1 ? arguments[1] : NULL;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_step_against_big_integers),
        cmocka_unit_test(test_corners),
        cmocka_unit_test(test_all_products_at_maximum),
        cmocka_unit_test(test_chain_is_its_steps),
        cmocka_unit_test(test_f32_chain),
        cmocka_unit_test(test_recorded_hardware),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
