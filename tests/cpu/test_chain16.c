/* The 16-bit chain's kernels against the reference of src/numerics/chain.h, bit for bit, on every
 * instruction set that this machine has. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/allocation.h"
#include "cpu/contraction/chain16.h"
#include "numerics/chain.h"
#include "numerics/convert.h"

static uint64_t seed = 1;

static uint32_t random_bits(void) {
    seed ^= seed << 13;
    seed ^= seed >> 7;
    seed ^= seed << 17;
    return (uint32_t)(seed >> 32);
}

static int random_between(int low, int high) {
    return low + (int)(random_bits() % (uint32_t)(high - low + 1));
}

/* What the elements of a matrix look like. */
typedef enum distribution {
    NORMAL,           /* sums of uniforms: what networks hold */
    SMALL_INTEGERS,   /* -4 to 4: ties of exponents, exact cancellation, zeros */
    LARGEST_FRACTION, /* fractions near 2 with one exponent: the sum of products near 2^31 */
    POSITIVE_LARGEST, /* the same without a sign */
    SUBNORMAL,        /* zeros and subnormals */
    SPARSE,           /* nine zeros in ten, of both signs */
    ZERO_BLOCKS,      /* whole groups of 16 along k that are zero */
    MODERATE,         /* exponents over 40 binary orders, or all that f16 has */
    WIDE,             /* every finite pattern */
    HUGE_VALUES,      /* the largest exponents: sums overflow */
    TINY_VALUES,      /* the smallest: everything near the floor of E */
    SPECIAL,          /* normal ones with a few infinities and NaN */
    CROSSED,          /* where one side is huge the other is zero; elsewhere both are small */
    ANY_BITS,
    DISTRIBUTIONS
} distribution;

static uint16_t from_f32(sb_dtype dtype, float value) {
    return dtype == SB_BF16 ? sb_bf16_from_f32(value) : sb_f16_from_f32(value);
}

static uint16_t with_exponent(sb_dtype dtype, int low, int high) {
    int fraction_bits = dtype == SB_BF16 ? 7 : 10, largest = dtype == SB_BF16 ? 254 : 30;
    low = low < 0 ? 0 : low;
    high = high > largest ? largest : high;
    int fraction = (int)(random_bits() >> 8) & ((1 << fraction_bits) - 1);
    int bits = random_between(low, high) << fraction_bits | fraction;
    return (uint16_t)(bits | (int)(random_bits() & 0x8000));
}

static uint16_t element(sb_dtype dtype, distribution kind, int64_t k, bool left) {
    bool brain = dtype == SB_BF16;
    float normal = 0.0f;
    switch (kind) {
    case NORMAL:
    case SPECIAL:
        if (kind == SPECIAL && random_bits() % 200 == 0)
            return (uint16_t)((brain ? 0x7f80 : 0x7c00) + (random_bits() % 2) * 3 + (random_bits() & 0x8000));
        for (int i = 0; i < 6; i++)
            normal += (float)random_between(-1000, 1000) * 0.001f;
        return from_f32(dtype, normal);
    case SMALL_INTEGERS:
        return from_f32(dtype, (float)random_between(-4, 4));
    case LARGEST_FRACTION:
    case POSITIVE_LARGEST:
        return (uint16_t)(0x3fff - random_bits() % 2 +
                          (kind == POSITIVE_LARGEST ? 0 : 0x8000 * (random_bits() % 64 == 0)));
    case SUBNORMAL:
        return with_exponent(dtype, 0, 0) & (random_bits() % 4 ? 0xffff : 0x8000);
    case SPARSE:
        return random_bits() % 10 ? (uint16_t)(random_bits() & 0x8000) : with_exponent(dtype, 0, 254);
    case ZERO_BLOCKS:
        return k / 16 % 3 != 1 ? 0 : with_exponent(dtype, brain ? 120 : 10, brain ? 134 : 20);
    case MODERATE:
        return with_exponent(dtype, brain ? 107 : 0, brain ? 147 : 30);
    case WIDE:
        return with_exponent(dtype, 0, 254);
    case HUGE_VALUES:
        return with_exponent(dtype, brain ? 180 : 25, 254);
    case TINY_VALUES:
        return with_exponent(dtype, 0, brain ? 70 : 3);
    case CROSSED:
        if (k % 3 == 2)
            return with_exponent(dtype, 0, brain ? 120 : 10);
        return (k % 3 == 0) == left ? with_exponent(dtype, brain ? 170 : 20, 254) : 0;
    default:
        return (uint16_t)random_bits();
    }
}

static float initial_value(void) {
    switch (random_bits() % 16) {
    case 0:
        return -0.0f;
    case 1:
        return 0.0f;
    case 2: /* subnormal */
        return sb_bits_to_f32((random_bits() & 0x807fffffu));
    case 3: /* anything */
        return sb_bits_to_f32(random_bits());
    case 4: /* huge */
        return sb_bits_to_f32(0x7f000000u | (random_bits() & 0x807fffffu));
    default: /* 2^-3 to 2^4 */
        return sb_bits_to_f32((random_bits() & 0x807fffffu) | (uint32_t)random_between(124, 131) << 23);
    }
}

static uint32_t canonical(float value) {
    return value != value ? 0x7fc00000u : sb_bits_from_f32(value);
}

static void *allocate(size_t bytes) {
    void *block = sb_allocate(bytes);
    assert_non_null(block);
    memset(block, 0xa5, bytes);
    return block;
}

static uint16_t *matrix(sb_dtype dtype, distribution kind, int64_t rows, int64_t columns, bool k_runs_down) {
    uint16_t *elements = allocate((size_t)(rows * columns) * 2 + 2);
    for (int64_t i = 0; i < rows; i++) {
        for (int64_t j = 0; j < columns; j++)
            elements[i * columns + j] = element(dtype, kind, k_runs_down ? i : j, !k_runs_down);
    }
    return elements;
}

/* The reference of a whole product of row-major matrices. */
static float *reference(sb_dtype dtype, int64_t m, int64_t n, int64_t k, const uint16_t *a, const uint16_t *b,
                        const float *initial) {
    float *c = allocate((size_t)(m * n) * sizeof *c);
    sb_chain16_format format = dtype == SB_BF16 ? sb_chain16_format_bf16() : sb_chain16_format_f16();
    for (int64_t i = 0; i < m; i++) {
        for (int64_t j = 0; j < n; j++)
            c[i * n + j] = sb_chain16(a + i * k, 1, b + j, n, k, initial ? initial[i * n + j] : 0.0f, format);
    }
    return c;
}

static uint16_t *packed(int64_t k, int64_t n, const uint16_t *b, int64_t k_stride, int64_t column_stride) {
    size_t bytes = sb_chain16_packed_bytes(k, n);
    assert_true(bytes > 0);
    uint16_t *result = allocate(bytes);
    /* Panel by panel, as threads would share it. */
    for (int64_t first = 0; first < n; first += SB_CHAIN16_PANEL) {
        int64_t end = first + SB_CHAIN16_PANEL < n ? first + SB_CHAIN16_PANEL : n;
        sb_chain16_pack_b(k, n, b, k_stride, column_stride, first, end, result);
    }
    return result;
}

static void run(sb_isa isa, const sb_chain16_args *args, int64_t m0, int64_t m1, int64_t n0, int64_t n1) {
    size_t bytes = sb_chain16_workspace_bytes(args);
    assert_true(bytes > 0);
    void *workspace = allocate(bytes);
    sb_chain16_run(sb_chain16_kernels_of(isa), args, m0, m1, n0, n1, workspace);
    sb_free(workspace);
}

static int available(sb_isa *isas) {
    int count = 0;
    for (int isa = SB_ISA_SCALAR; isa <= SB_ISA_AVX512; isa++) {
        sb_isa resolved;
        if (sb_isa_resolve((sb_isa)isa, &resolved, NULL) == SB_OK)
            isas[count++] = resolved;
    }
    return count;
}

static void assert_same(const float *expected, const float *got, int64_t m, int64_t n, const char *what) {
    for (int64_t i = 0; i < m * n; i++) {
        if (canonical(expected[i]) != canonical(got[i]))
            fail_msg("%s: element (%lld, %lld) is %a (%08x), should be %a (%08x)", what, (long long)(i / n),
                     (long long)(i % n), (double)got[i], sb_bits_from_f32(got[i]), (double)expected[i],
                     sb_bits_from_f32(expected[i]));
    }
}

/* One product on every instruction set, with and without initial sums. */
static void check_product(sb_dtype dtype, distribution left, distribution right, int64_t m, int64_t n, int64_t k) {
    uint16_t *a = matrix(dtype, left, m, k, false), *b = matrix(dtype, right, k, n, true);
    float *initial = allocate((size_t)(m * n) * sizeof *initial);
    float *c = allocate((size_t)(m * n) * sizeof *c);
    for (int64_t i = 0; i < m * n; i++)
        initial[i] = initial_value();
    uint16_t *b_packed = packed(k, n, b, n, 1);
    sb_isa isas[4];
    int count = available(isas);
    for (int continued = 0; continued < 2; continued++) {
        float *expected = reference(dtype, m, n, k, a, b, continued ? initial : NULL);
        for (int i = 0; i < count; i++) {
            char what[128];
            snprintf(what, sizeof what, "%s %s %d x %d, %lld x %lld x %lld%s", sb_isa_name(isas[i]),
                     sb_dtype_name(dtype), left, right, (long long)m, (long long)n, (long long)k,
                     continued ? " continued" : "");
            sb_chain16_args args = {.dtype = dtype,
                                    .m = m,
                                    .n = n,
                                    .k = k,
                                    .a = a,
                                    .a_row_stride = k,
                                    .a_column_stride = 1,
                                    .packed_b = b_packed,
                                    .initial = continued ? initial : NULL,
                                    .initial_row_stride = n,
                                    .initial_column_stride = 1,
                                    .c = c,
                                    .c_dtype = SB_F32,
                                    .c_row_stride = n,
                                    .c_column_stride = 1};
            memset(c, 0xff, (size_t)(m * n) * sizeof *c);
            run(isas[i], &args, 0, m, 0, n);
            assert_same(expected, c, m, n, what);
        }
        sb_free(expected);
    }
    sb_free(b_packed);
    sb_free(c);
    sb_free(initial);
    sb_free(b);
    sb_free(a);
}

static void every_distribution(void **state) {
    for (int format = 0; format < 2; format++) {
        for (int left = 0; left < DISTRIBUTIONS; left++) {
            for (int right = 0; right < DISTRIBUTIONS; right++)
                check_product(format ? SB_F16 : SB_BF16, (distribution)left, (distribution)right, 9,
                              random_between(1, 130), random_between(1, 100));
        }
    }
}

static void every_shape(void **state) {
    static const int ks[] = {0, 1, 15, 16, 17, 31, 32, 33, 48, 160};
    static const int ns[] = {0, 1, 7, 8, 9, 15, 16, 17, 31, 32, 33, 47, 48, 63, 64, 65, 100, 129};
    for (size_t i = 0; i < sizeof ks / sizeof *ks; i++) {
        for (size_t j = 0; j < sizeof ns / sizeof *ns; j++)
            check_product((i + j) % 2 ? SB_F16 : SB_BF16, j % 3 ? NORMAL : MODERATE, NORMAL, random_between(0, 7),
                          ns[j], ks[i]);
    }
    /* More rows than one block takes. */
    check_product(SB_BF16, NORMAL, NORMAL, 300, 70, 33);
}

/* Sixteen products at their largest and an accumulator that carries their sum past 2^31 units. */
static void largest_sums(void **state) {
    for (int format = 0; format < 2; format++) {
        for (int sign = 0; sign < 2; sign++) {
            sb_dtype dtype = format ? SB_F16 : SB_BF16;
            uint16_t a[16], b[16 * 64], largest = 0x3fff; /* the last below 2, in both formats */
            float initial[64], c[64];
            for (int i = 0; i < 16; i++)
                a[i] = largest;
            for (int i = 0; i < 16 * 64; i++)
                b[i] = sign ? (uint16_t)(largest | 0x8000) : largest;
            for (int j = 0; j < 64; j++)
                initial[j] = (sign ? -1.0f : 1.0f) * 0.0625f * (float)(j - 8);
            float *expected = reference(dtype, 1, 64, 16, a, b, initial);
            uint16_t *b_packed = packed(16, 64, b, 64, 1);
            sb_isa isas[4];
            int count = available(isas);
            for (int i = 0; i < count; i++) {
                sb_chain16_args args = {.dtype = dtype,
                                        .m = 1,
                                        .n = 64,
                                        .k = 16,
                                        .a = a,
                                        .a_row_stride = 16,
                                        .a_column_stride = 1,
                                        .packed_b = b_packed,
                                        .initial = initial,
                                        .initial_row_stride = 64,
                                        .initial_column_stride = 1,
                                        .c = c,
                                        .c_dtype = SB_F32,
                                        .c_row_stride = 64,
                                        .c_column_stride = 1};
                run(isas[i], &args, 0, 1, 0, 64);
                assert_same(expected, c, 1, 64, sb_isa_name(isas[i]));
            }
            sb_free(b_packed);
            sb_free(expected);
        }
    }
}

typedef struct operand {
    const uint16_t *a;
    int64_t k;
    float bias;
} operand;

static void gather_row(void *context, int64_t row, int64_t k, int64_t count, uint16_t *out) {
    const operand *operand = context;
    memcpy(out, operand->a + row * operand->k + k, (size_t)count * sizeof *out);
}

static void add_bias(void *context, float *row, int64_t m, int64_t n, int64_t count) {
    const operand *operand = context;
    for (int64_t j = 0; j < count; j++)
        row[j] = row[j] + (operand->bias * (float)m + (float)(n + j));
}

/* Rectangles of any cut, transposed operands with strides of both signs, gathered rows, an
 * epilogue, and C in every dtype and both directions, all give what the plain product gives. */
static void views_and_cuts(void **state) {
    enum { M = 37, N = 150, K = 45 };
    for (int trial = 0; trial < 36; trial++) {
        sb_dtype dtype = trial % 2 ? SB_F16 : SB_BF16;
        sb_dtype c_dtype = trial % 3 == 0 ? SB_F32 : trial % 3 == 1 ? SB_BF16 : SB_F16;
        bool transposed = trial & 1, gathered = trial & 4;
        int64_t row_strides[] = {N, 1, 2 * N + 3}, column_strides[] = {1, M, 2};
        int layout = trial / 3 % 3;
        uint16_t *a = matrix(dtype, NORMAL, M, K, false), *b = matrix(dtype, NORMAL, K, N, true);
        float *expected = reference(dtype, M, N, K, a, b, NULL);
        uint16_t *a_view = allocate(M * K * 2), *b_view = allocate(N * K * 2);
        for (int i = 0; i < M; i++) {
            for (int k = 0; k < K; k++)
                a_view[k * M + (M - 1 - i)] = a[i * K + k];
        }
        for (int j = 0; j < N; j++) {
            for (int k = 0; k < K; k++)
                b_view[(N - 1 - j) * K + k] = b[k * N + j];
        }
        const uint16_t *b_from = transposed ? b_view + (N - 1) * K : b;
        int64_t b_row_stride = transposed ? 1 : N, b_column_stride = transposed ? -K : 1;
        uint16_t *b_packed = packed(K, N, b_from, b_row_stride, b_column_stride);
        float shift[N];
        for (int j = 0; j < N; j++)
            shift[j] = (float)(j % 7) - 3.0f;
        operand context = {a, K, 0.25f};
        const sb_epilogue epilogue = {2,
                                      {{.kind = SB_EPILOGUE_CALL, .call = add_bias, .context = &context},
                                       {.kind = SB_EPILOGUE_ADD_COLUMNS, .vector = shift}}};
        uint32_t *c = allocate(M * (2 * N + 3) * sizeof *c);
        sb_isa isas[4];
        int count = available(isas);
        /* The last turn is the definition's own. */
        for (int i = 0; i <= count; i++) {
            sb_chain16_args args = {.dtype = dtype,
                                    .m = M,
                                    .n = N,
                                    .k = K,
                                    .a = gathered     ? NULL
                                         : transposed ? a_view + M - 1
                                                      : a,
                                    .a_row_stride = transposed ? -1 : K,
                                    .a_column_stride = transposed ? M : 1,
                                    .gather = gathered ? gather_row : NULL,
                                    .gather_context = &context,
                                    .packed_b = trial % 4 < 2 ? b_packed : NULL,
                                    .b = b_from,
                                    .b_row_stride = b_row_stride,
                                    .b_column_stride = b_column_stride,
                                    .epilogue = &epilogue,
                                    .c = c,
                                    .c_dtype = c_dtype,
                                    .c_row_stride = row_strides[layout],
                                    .c_column_stride = column_strides[layout]};
            memset(c, 0xff, M * (2 * N + 3) * sizeof *c);
            int row_cut = random_between(0, M), column_cut = random_between(0, N);
            if (i == count) {
                sb_chain16_reference(&args, 0, row_cut, 0, N);
                sb_chain16_reference(&args, row_cut, M, 0, N);
            } else {
                run(isas[i], &args, 0, row_cut, 0, column_cut);
                run(isas[i], &args, row_cut, M, 0, column_cut);
                run(isas[i], &args, 0, row_cut, column_cut, N);
                run(isas[i], &args, row_cut, M, column_cut, N);
            }
            for (int row = 0; row < M; row++) {
                for (int j = 0; j < N; j++) {
                    float sum = expected[row * N + j] + (context.bias * (float)row + (float)j);
                    sum = sum + shift[j];
                    int64_t at = row * args.c_row_stride + j * args.c_column_stride;
                    if (c_dtype == SB_F32)
                        assert_int_equal(c[at], sb_bits_from_f32(sum));
                    else
                        assert_int_equal(((uint16_t *)c)[at], from_f32(c_dtype, sum));
                }
            }
        }
        sb_free(c);
        sb_free(b_packed);
        sb_free(b_view);
        sb_free(a_view);
        sb_free(expected);
        sb_free(b);
        sb_free(a);
    }
}

static void sizes_that_do_not_fit(void **state) {
    assert_int_equal(sb_chain16_packed_bytes(INT64_MAX, 4), 0);
    assert_int_equal(sb_chain16_packed_bytes(4, INT64_MAX), 0);
    assert_int_equal(sb_chain16_packed_bytes((int64_t)1 << 40, (int64_t)1 << 40), 0);
    assert_true(sb_chain16_packed_bytes(0, 0) > 0);
    assert_true(sb_chain16_packed_bytes(17, 65) >= 32 * 128 * 2);
    sb_chain16_args args = {.m = 4, .n = 4, .k = INT64_MAX};
    assert_int_equal(sb_chain16_workspace_bytes(&args), 0);
    args.packed_b = (const uint16_t *)(const void *)&args;
    assert_int_equal(sb_chain16_workspace_bytes(&args), 0);
    args.k = 0;
    assert_true(sb_chain16_workspace_bytes(&args) > 0);
}

static void splits_cover(void **state) {
    for (int trial = 0; trial < 500; trial++) {
        int64_t m = random_between(0, 400), n = random_between(0, 2000);
        int threads = random_between(1, 16);
        sb_gemm_split split = sb_chain16_split(m, n, threads);
        int64_t area = 0;
        assert_true(split.n_parts <= 1 || split.n_step % SB_CHAIN16_PANEL == 0);
        for (int64_t i = 0; i < split.m_parts * split.n_parts; i++) {
            int64_t m0, m1, n0, n1;
            sb_gemm_split_rectangle(&split, i, &m0, &m1, &n0, &n1);
            assert_true(0 <= m0 && m0 < m1 && m1 <= m && 0 <= n0 && n0 < n1 && n1 <= n);
            area += (m1 - m0) * (n1 - n0);
        }
        assert_int_equal(area, m * n);
        /* Where there is enough to do, every thread has something. */
        assert_true(n < 64 * 16 || m < 1 || split.m_parts * split.n_parts >= threads);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_distribution), cmocka_unit_test(every_shape),           cmocka_unit_test(largest_sums),
        cmocka_unit_test(views_and_cuts),     cmocka_unit_test(sizes_that_do_not_fit), cmocka_unit_test(splits_cover),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
