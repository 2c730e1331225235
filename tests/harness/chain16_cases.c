/* The CPU's products of f16 and bf16 on raw pointers, chains of groups of sixteen: every instruction set against the
 * reference chain of src/numerics/chain.h. What elements are like is chosen for what that chain does: align products in
 * a group to the largest exponent and cut what is below, up to sums past 2^31 units. */
#include "base/allocation.h"
#include "cpu/contraction/chain16_kernels.h"
#include "harness/cpu_raw.h"
#include "harness/harness.h"
#include "numerics/chain.h"
#include "ops/real.h"

/* What the elements of a matrix look like. */
typedef enum pattern {
    NORMAL,           /* sums of uniforms: what networks hold */
    SMALL_INTEGERS,   /* -4 to 4: ties of exponents, exact cancellation, zeros */
    LARGEST_FRACTION, /* fractions near 2 with one exponent: the sum of products near 2^31 */
    POSITIVE_LARGEST, /* the same without a sign */
    SUBNORMAL,        /* zeros and subnormals */
    SPARSE,           /* nine zeros in ten, of both signs */
    ZERO_BLOCKS,      /* whole groups of 16 along k that are zero */
    MODERATE,         /* exponents over 40 binary orders, or all that f16 has */
    EVERY_MAGNITUDE,  /* every finite pattern */
    HUGE_VALUES,      /* the largest exponents: sums overflow */
    TINY_VALUES,      /* the smallest: everything near the floor of E */
    WITH_SPECIALS,    /* normal ones with a few infinities and NaN */
    CROSSED,          /* where one side is huge the other is zero; elsewhere both are small */
    ANY_BITS,
    PATTERNS
} pattern;

static const char *const pattern_names[PATTERNS] = {
    "normal", "small integers", "largest fractions", "positive largest", "subnormal",
    "sparse", "zero blocks",    "moderate",          "every magnitude",  "huge",
    "tiny",   "with specials",  "crossed",           "any bits"};

/* ---- elements ---- */

static uint16_t half_of(sb_dtype dtype, float value) {
    uint16_t half;
    sb_real_store_f32(dtype, &half, 0, value);
    return half;
}

static uint16_t with_exponent(random_source *random, sb_dtype dtype, int low, int high) {
    int fraction_bits = dtype == SB_BF16 ? 7 : 10, largest = dtype == SB_BF16 ? 254 : 30;
    uint64_t bits = random_bits(random);
    high = high > largest ? largest : high;
    int fraction = (int)(bits >> 8) & ((1 << fraction_bits) - 1);
    return (uint16_t)(random_between(random, low, high) << fraction_bits | fraction | (int64_t)(bits & 0x8000));
}

static uint16_t normal_element(random_source *random, sb_dtype dtype) {
    float sum = 0.0f;
    for (int i = 0; i < 6; i++)
        sum += (float)random_between(random, -1000, 1000) * 0.001f;
    return half_of(dtype, sum);
}

static uint16_t element(random_source *random, sb_dtype dtype, pattern kind, int64_t k, bool left) {
    bool brain = dtype == SB_BF16;
    uint64_t bits = random_bits(random);
    switch (kind) {
    case WITH_SPECIALS:
        if (bits % 200 == 0)
            return (uint16_t)((brain ? 0x7f80u : 0x7c00u) + (bits >> 8) % 2 * 3 + (bits >> 16 & 0x8000));
        return normal_element(random, dtype);
    case NORMAL:
        return normal_element(random, dtype);
    case SMALL_INTEGERS:
        return half_of(dtype, (float)random_between(random, -4, 4));
    case LARGEST_FRACTION:
    case POSITIVE_LARGEST:
        return (uint16_t)(0x3fffu - bits % 2 + (kind == LARGEST_FRACTION && (bits >> 8) % 64 == 0 ? 0x8000u : 0));
    case SUBNORMAL:
        return with_exponent(random, dtype, 0, 0) & (bits % 4 != 0 ? 0xffff : 0x8000);
    case SPARSE:
        return bits % 10 != 0 ? (uint16_t)(bits >> 8 & 0x8000) : with_exponent(random, dtype, 0, 254);
    case ZERO_BLOCKS:
        return k / 16 % 3 != 1 ? 0 : with_exponent(random, dtype, brain ? 120 : 10, brain ? 134 : 20);
    case MODERATE:
        return with_exponent(random, dtype, brain ? 107 : 0, brain ? 147 : 30);
    case EVERY_MAGNITUDE:
        return with_exponent(random, dtype, 0, 254);
    case HUGE_VALUES:
        return with_exponent(random, dtype, brain ? 180 : 25, 254);
    case TINY_VALUES:
        return with_exponent(random, dtype, 0, brain ? 70 : 3);
    case CROSSED:
        if (k % 3 == 2)
            return with_exponent(random, dtype, 0, brain ? 120 : 10);
        return (k % 3 == 0) == left ? with_exponent(random, dtype, brain ? 170 : 20, 254) : 0;
    default:
        return (uint16_t)bits;
    }
}

static float initial_value(random_source *random) {
    uint32_t bits = (uint32_t)random_bits(random);
    switch (random_between(random, 0, 15)) {
    case 0:
        return -0.0f;
    case 1:
        return 0.0f;
    case 2: /* subnormal */
        return sb_bits_to_f32(bits & 0x807fffffu);
    case 3: /* anything */
        return sb_bits_to_f32(bits);
    case 4: /* huge */
        return sb_bits_to_f32(0x7f000000u | (bits & 0x807fffffu));
    default: /* 2^-3 to 2^4 */
        return sb_bits_to_f32((bits & 0x807fffffu) | (uint32_t)random_between(random, 124, 131) << 23);
    }
}

/* ---- products of row-major matrices ---- */

typedef struct product {
    sb_tensor *a, *b, *initial; /* f32[m,n] for the last */
    int64_t m, n, k;
} product;

static sb_tensor *matrix(random_source *random, sb_dtype dtype, pattern kind, int64_t rows, int64_t columns,
                         bool k_runs_down) {
    sb_tensor *tensor = NULL;
    MUST(sb_tensor_create(dtype, 2, (int64_t[]){rows, columns}, &tensor, error));
    for (int64_t i = 0; i < rows * columns; i++)
        ((uint16_t *)(void *)tensor->data)[i] =
            element(random, dtype, kind, k_runs_down ? i / columns : i % columns, !k_runs_down);
    return tensor;
}

static product make_product(harness *h, sb_dtype dtype, pattern left, pattern right, int64_t m, int64_t n, int64_t k) {
    product p = {.a = matrix(&h->random, dtype, left, m, k, false),
                 .b = matrix(&h->random, dtype, right, k, n, true),
                 .m = m,
                 .n = n,
                 .k = k};
    MUST(sb_tensor_create(SB_F32, 2, (int64_t[]){m, n}, &p.initial, error));
    for (int64_t i = 0; i < m * n; i++)
        floats_of(p.initial)[i] = initial_value(&h->random);
    return p;
}

static void release_product(product *p) {
    sb_tensor_release(p->a);
    sb_tensor_release(p->b);
    sb_tensor_release(p->initial);
}

static const uint16_t *halves_of(const sb_tensor *tensor) {
    return (const uint16_t *)(const void *)tensor->data;
}

/* The whole product, element by element. */
static sb_tensor *reference(const product *p, bool continued) {
    sb_chain16_format format = p->a->dtype == SB_BF16 ? sb_chain16_format_bf16() : sb_chain16_format_f16();
    sb_tensor *c = NULL;
    MUST(sb_tensor_create(SB_F32, 2, (int64_t[]){p->m, p->n}, &c, error));
    for (int64_t i = 0; i < p->m * p->n; i++)
        floats_of(c)[i] = sb_chain16(halves_of(p->a) + i / p->n * p->k, 1, halves_of(p->b) + i % p->n, p->n, p->k,
                                     continued ? floats_of(p->initial)[i] : 0.0f, format);
    return c;
}

/* Panel by panel, as threads would share it. */
static uint16_t *packed(int64_t k, int64_t n, const uint16_t *b, int64_t k_stride, int64_t column_stride) {
    size_t bytes = sb_chain16_packed_bytes(k, n);
    assert_true(bytes > 0);
    uint16_t *result = raw_block(bytes);
    for (int64_t first = 0; first < n; first += SB_CHAIN16_PANEL) {
        int64_t end = first + SB_CHAIN16_PANEL < n ? first + SB_CHAIN16_PANEL : n;
        sb_chain16_pack_b(k, n, b, k_stride, column_stride, first, end, result);
    }
    return result;
}

static void run(const sb_chain16_kernels *kernels, const sb_chain16_args *args, int64_t m0, int64_t m1, int64_t n0,
                int64_t n1) {
    size_t bytes = sb_chain16_workspace_bytes(args);
    assert_true(bytes > 0);
    void *workspace = raw_block(bytes);
    sb_chain16_run(kernels, args, m0, m1, n0, n1, workspace);
    sb_free(workspace);
}

/* Of every instruction set that this machine has, and of AVX-512 without the processor's multiply-adds of bf16. */
static int available(const sb_chain16_kernels **kernels) {
    int count = 0;
    for (int isa = SB_ISA_SCALAR; isa <= SB_ISA_AVX512; isa++) {
        sb_isa resolved;
        if (sb_isa_resolve((sb_isa)isa, &resolved, NULL) == SB_OK)
            kernels[count++] = sb_chain16_kernels_of(resolved);
    }
#if SB_HAS_X86_KERNELS
    if (kernels[count - 1] == &sb_chain16_kernels_avx512_bf16)
        kernels[count++] = &sb_chain16_kernels_avx512;
#endif
    return count;
}

/* What becomes of a product's chains. */
typedef enum use { KEPT, CONTINUED, ROUNDED, USES } use;
static const char *const use_names[USES] = {"", ", continued", ", rounded"};

static sb_tensor *expect(const product *p, use use) {
    sb_tensor *sums = reference(p, use == CONTINUED), *rounded;
    if (use != ROUNDED)
        return sums;
    MUST(sb_tensor_create(p->a->dtype, 2, (int64_t[]){p->m, p->n}, &rounded, error));
    for (int64_t i = 0; i < p->m * p->n; i++)
        sb_real_store_f32(p->a->dtype, rounded->data, i, floats_of(sums)[i]);
    sb_tensor_release(sums);
    return rounded;
}

/* By one instruction set, with and without initial sums, and rounded. */
static void run_product(harness *h, const sb_chain16_kernels *kernels, const product *p, const uint16_t *b_packed) {
    sb_tensor *inputs[] = {p->a, p->b, p->initial};
    for (use use = 0; use < USES; use++) {
        sb_tensor *expected = expect(p, use), *found;
        char what[96];
        MUST(sb_tensor_create(expected->dtype, 2, expected->dims, &found, error));
        memset(found->data, 0xff, (size_t)(p->m * p->n) * sb_dtype_size(found->dtype));
        sb_chain16_args args = {.dtype = p->a->dtype,
                                .m = p->m,
                                .n = p->n,
                                .k = p->k,
                                .a = halves_of(p->a),
                                .a_row_stride = p->k,
                                .a_column_stride = 1,
                                .packed_b = b_packed,
                                .initial = use == CONTINUED ? floats_of(p->initial) : NULL,
                                .initial_row_stride = p->n,
                                .initial_column_stride = 1,
                                .c = found->data,
                                .c_dtype = found->dtype,
                                .c_row_stride = p->n,
                                .c_column_stride = 1};
        run(kernels, &args, 0, p->m, 0, p->n);
        snprintf(what, sizeof what, "product in groups of 16 by %s%s", kernels->name, use_names[use]);
        harness_compare(h, what, expected, found, inputs, 3);
        sb_tensor_release(expected);
        sb_tensor_release(found);
    }
}

/* Takes the product. */
static void check_product(harness *h, const char *what, product p) {
    sb_tensor *inputs[] = {p.a, p.b, p.initial};
    if (harness_wants(h, what, inputs, 3) && (h->sides & HARNESS_CPU) != 0) {
        uint16_t *b_packed = packed(p.k, p.n, halves_of(p.b), p.n, 1);
        const sb_chain16_kernels *kernels[5];
        int count = available(kernels);
        for (int i = 0; i < count; i++)
            run_product(h, kernels[i], &p, b_packed);
        sb_free(b_packed);
    }
    release_product(&p);
    harness_next(h);
}

static void check_patterns(harness *h, sb_dtype dtype, pattern left, pattern right, int64_t m, int64_t n, int64_t k) {
    char what[96];
    snprintf(what, sizeof what, "product in groups of 16, %s by %s", pattern_names[left], pattern_names[right]);
    check_product(h, what, make_product(h, dtype, left, right, m, n, k));
}

HARNESS_GROUP(chain16, patterns, HARNESS_CPU) {
    for (int format = 0; format < 2; format++) {
        for (int left = 0; left < PATTERNS; left++) {
            for (int right = 0; right < PATTERNS; right++) {
                int64_t n = random_between(&h->random, 1, 130), k = random_between(&h->random, 1, 100);
                check_patterns(h, format != 0 ? SB_F16 : SB_BF16, (pattern)left, (pattern)right, 9, n, k);
            }
        }
    }
}

/* Few rows take panels as they lie, group by group where lanes are ordinary. */
HARNESS_GROUP(chain16, few_rows, HARNESS_CPU) {
    for (int format = 0; format < 2; format++) {
        for (int left = 0; left < PATTERNS; left++) {
            for (int right = 0; right < PATTERNS; right++) {
                int64_t m = random_between(&h->random, 1, 5), n = random_between(&h->random, 1, 200);
                check_patterns(h, format != 0 ? SB_F16 : SB_BF16, (pattern)left, (pattern)right, m, n,
                               random_between(&h->random, 1, 200));
            }
        }
    }
}

/* Sums of which only the rounding is wanted, of many rows and of few, over more groups than stay near and over fewer. Integers bring ties,
 * and every magnitude brings what is for the chain. */
HARNESS_GROUP(chain16, near, HARNESS_CPU) {
    static const int64_t ks[] = {64, 100, 300, 1040, 2100};
    for (int left = 0; left < PATTERNS; left++) {
        for (int right = 0; right < PATTERNS; right++) {
            int64_t m = random_between(&h->random, 3, right % 4 == 0 ? 140 : 20),
                    n = random_between(&h->random, 1, 130);
            check_patterns(h, SB_BF16, (pattern)left, (pattern)right, m, n, ks[random_between(&h->random, 0, 4)]);
        }
    }
}

/* Sums as far from their chains as they come: a first group gives a tie between two bf16, and what all others add to it, `each` products of
 * less than what a step keeps, the chain loses, and the quick sum does not. Columns have both signs and several scales. */
static void check_lost(harness *h, int64_t groups, int each, float left, float right) {
    const int64_t m = 5, n = 70, k = 16 * groups;
    product p = make_product(h, SB_BF16, NORMAL, NORMAL, m, n, k);
    uint16_t *a = (uint16_t *)(void *)p.a->data, *b = (uint16_t *)(void *)p.b->data;
    for (int64_t i = 0; i < m * k; i++) {
        const int64_t at = i % k;
        float value = at == 0 ? 1 : at == 1 ? 0x1p-8f : 0;
        if (at >= 16 && at % 16 < each)
            value = left;
        a[i] = half_of(SB_BF16, value);
    }
    for (int64_t i = 0; i < k * n; i++) {
        const int64_t j = i % n;
        const float scale = (j % 2 != 0 ? -1.0f : 1.0f) * (j % 3 == 0 ? 0x1p-20f : j % 3 == 1 ? 1 : 0x1p+9f);
        b[i] = half_of(SB_BF16, scale * (i / n < 16 ? 1 : right));
    }
    check_product(h, "sums of what a step loses", p);
}

HARNESS_GROUP(chain16, lost, HARNESS_CPU) {
    static const int64_t groups[] = {2, 7, 64, 65, 300};
    for (size_t i = 0; i < sizeof groups / sizeof *groups; i++) {
        check_lost(h, groups[i], 16, 0x1.fcp-14f, 0x1p-12f);  /* each less than 2^-25 */
        check_lost(h, groups[i], 16, 0x1.fcp-14f, -0x1p-12f); /* the same from above */
        check_lost(h, groups[i], 1, 0x1.fcp-13f, 0x1p-11f);   /* less than 2^-23: lost where the result is truncated */
    }
}

HARNESS_GROUP(chain16, shapes, HARNESS_CPU) {
    static const int ks[] = {0, 1, 15, 16, 17, 31, 32, 33, 48, 160};
    static const int ns[] = {0, 1, 7, 8, 9, 15, 16, 17, 31, 32, 33, 47, 48, 63, 64, 65, 100, 129};
    for (size_t i = 0; i < sizeof ks / sizeof *ks; i++) {
        for (size_t j = 0; j < sizeof ns / sizeof *ns; j++)
            check_patterns(h, (i + j) % 2 != 0 ? SB_F16 : SB_BF16, j % 3 != 0 ? NORMAL : MODERATE, NORMAL,
                           random_between(&h->random, 0, 7), ns[j], ks[i]);
    }
    /* More rows than one block takes. */
    check_patterns(h, SB_BF16, NORMAL, NORMAL, 300, 70, 33);
}

/* Sixteen products at their largest and an accumulator that carries their sum past 2^31 units. */
HARNESS_GROUP(chain16, largest, HARNESS_CPU) {
    for (int round = 0; round < 4; round++) {
        sb_dtype dtype = round / 2 != 0 ? SB_F16 : SB_BF16;
        product p = make_product(h, dtype, NORMAL, NORMAL, 1, 64, 16);
        const uint16_t largest = 0x3fff, sign = round % 2 != 0 ? 0x8000 : 0; /* the last below 2, in both formats */
        for (int i = 0; i < 16; i++)
            ((uint16_t *)(void *)p.a->data)[i] = largest;
        for (int i = 0; i < 16 * 64; i++)
            ((uint16_t *)(void *)p.b->data)[i] = largest | sign;
        for (int j = 0; j < 64; j++)
            floats_of(p.initial)[j] = (sign != 0 ? -1.0f : 1.0f) * 0.0625f * (float)(j - 8);
        check_product(h, sign != 0 ? "largest sums, negative" : "largest sums", p);
    }
}

/* ---- views, cuts, rows in runs, epilogues ---- */

enum { M = 37, N = 150 };

/* A row of k elements in runs of `length`. */
typedef struct gathered {
    const uint16_t *a;
    int64_t k, length;
    float bias;
} gathered;

static void point_at_runs(void *context, int64_t row, int64_t first, int64_t count, const uint16_t **runs) {
    const gathered *from = context;
    for (int64_t i = 0; i < count; i++)
        runs[i] = from->a + row * from->k + (first + i) * from->length;
}

static void add_bias(void *context, float *row, int64_t m, int64_t n, int64_t count) {
    for (int64_t j = 0; j < count; j++)
        row[j] = row[j] + (((const gathered *)context)->bias * (float)m + (float)(n + j));
}

/* A and B with their rows reversed and their dimensions exchanged. */
static uint16_t *turned(const uint16_t *from, int64_t rows, int64_t columns, bool reverse_rows) {
    uint16_t *to = raw_block((size_t)(rows * columns) * sizeof *to);
    for (int64_t i = 0; i < rows; i++) {
        for (int64_t j = 0; j < columns; j++)
            to[reverse_rows ? j * rows + (rows - 1 - i) : (columns - 1 - j) * rows + i] = from[i * columns + j];
    }
    return to;
}

/* C's elements as tensors of f32 or halves: what is expected, from the plain product; and what is in `c`. */
static void compare_cut(harness *h, const char *what, const sb_chain16_args *args, const product *p,
                        const sb_tensor *plain, const gathered *context, const float *shift) {
    sb_tensor *expected = NULL, *found = NULL, *inputs[] = {p->a, p->b};
    MUST(sb_tensor_create(args->c_dtype, 2, (int64_t[]){M, N}, &expected, error));
    for (int64_t i = 0; i < M * N; i++) {
        float sum = floats_of(plain)[i] + (context->bias * (float)(i / N) + (float)(i % N));
        sb_real_store_f32(args->c_dtype, expected->data, i, sum + shift[i % N]);
    }
    MUST(sb_tensor_wrap(args->c_dtype, 2, (int64_t[]){M, N}, (int64_t[]){args->c_row_stride, args->c_column_stride},
                        args->c, NULL, NULL, &found, error));
    harness_compare(h, what, expected, found, inputs, 2);
    sb_tensor_release(expected);
    sb_tensor_release(found);
}

/* Four rectangles at random cuts by an instruction set, or two by the reference (NULL). */
static void run_cut(random_source *random, const sb_chain16_kernels *kernels, const sb_chain16_args *args) {
    int64_t row = random_between(random, 0, M), column = random_between(random, 0, N);
    if (kernels == NULL) {
        sb_chain16_reference(args, 0, row, 0, N);
        sb_chain16_reference(args, row, M, 0, N);
        return;
    }
    run(kernels, args, 0, row, 0, column);
    run(kernels, args, row, M, 0, column);
    run(kernels, args, 0, row, column, N);
    run(kernels, args, row, M, column, N);
}

static void run_views(harness *h, const product *p, int trial) {
    const sb_dtype c_dtypes[] = {SB_F32, SB_BF16, SB_F16};
    const int64_t row_strides[] = {N, 1, 2 * N + 3}, column_strides[] = {1, M, 2};
    bool transposed = (trial & 1) != 0, by_runs = (trial & 4) != 0;
    const int64_t lengths[] = {1, 3, p->k / 3, p->k}, k = p->k, length = lengths[trial % 4];
    uint16_t *a_view = turned(halves_of(p->a), M, k, true), *b_view = turned(halves_of(p->b), k, N, false);
    const uint16_t *b_from = transposed ? b_view + (N - 1) * k : halves_of(p->b);
    int64_t b_row_stride = transposed ? 1 : N, b_column_stride = transposed ? -k : 1;
    uint16_t *b_packed = packed(k, N, b_from, b_row_stride, b_column_stride);
    gathered context = {halves_of(p->a), k, length, 0.25f};
    float shift[N];
    for (int j = 0; j < N; j++)
        shift[j] = (float)(j % 7) - 3.0f;
    const sb_epilogue epilogue = {2,
                                  {{.kind = SB_EPILOGUE_CALL,
                                    .call = add_bias,
                                    .context = &context,
                                    .nature = trial % 2 != 0 ? SB_EPILOGUE_MONOTONE : SB_EPILOGUE_ANYTHING},
                                   {.kind = SB_EPILOGUE_ADD_COLUMNS, .vector = shift}}};
    sb_tensor *plain = reference(p, false);
    const sb_chain16_kernels *kernels[6];
    int count = available(kernels);
    kernels[count++] = NULL;
    for (int i = 0; i < count; i++) {
        void *c = raw_block(M * (2 * N + 3) * sizeof(float));
        char what[96];
        sb_chain16_args args = {.dtype = p->a->dtype,
                                .m = M,
                                .n = N,
                                .k = k,
                                .a = by_runs      ? NULL
                                     : transposed ? a_view + M - 1
                                                  : halves_of(p->a),
                                .a_row_stride = transposed ? -1 : k,
                                .a_column_stride = transposed ? M : 1,
                                .point = by_runs ? point_at_runs : NULL,
                                .point_context = &context,
                                .runs = k / length,
                                .run_length = length,
                                .packed_b = trial % 4 < 2 ? b_packed : NULL,
                                .b = b_from,
                                .b_row_stride = b_row_stride,
                                .b_column_stride = b_column_stride,
                                .epilogue = &epilogue,
                                .c = c,
                                .c_dtype = c_dtypes[trial % 3],
                                .c_row_stride = row_strides[trial / 3 % 3],
                                .c_column_stride = column_strides[trial / 3 % 3]};
        run_cut(&h->random, kernels[i], &args);
        snprintf(what, sizeof what, "product in groups of 16 by %s, cut",
                 kernels[i] == NULL ? "the reference" : kernels[i]->name);
        compare_cut(h, what, &args, p, plain, &context, shift);
        sb_free(c);
    }
    sb_tensor_release(plain);
    sb_free(b_packed);
    sb_free(b_view);
    sb_free(a_view);
}

/* Rectangles of any cut, transposed operands with strides of both signs, rows in runs, an epilogue, and C in every dtype
 * and both directions, all give what the plain product gives. */
HARNESS_GROUP(chain16, views, HARNESS_CPU) {
    for (int trial = 0; trial < 36; trial++) {
        product p = make_product(h, trial % 2 != 0 ? SB_F16 : SB_BF16, NORMAL, NORMAL, M, N, trial < 18 ? 45 : 48);
        sb_tensor *inputs[] = {p.a, p.b};
        char what[128];
        snprintf(what, sizeof what, "product in groups of 16, cut,%s%s%s C %d", (trial & 1) != 0 ? " transposed" : "",
                 (trial & 4) != 0 ? " in runs" : "", trial % 4 < 2 ? " packed" : "", trial % 9);
        if (harness_wants(h, what, inputs, 2) && (h->sides & HARNESS_CPU) != 0)
            run_views(h, &p, trial);
        release_product(&p);
        harness_next(h);
    }
}
