/* wgmma on the host: a warpgroup's threads put products into batches, which are computed when the schedule says, at the
 * latest before anybody who waits for them goes on. Then operands are read from shared memory by their descriptors, and
 * the threads' sums are read and written: whatever was done too early to either shows.
 *
 * A product continues each chain by one step of 16 k, as numerics/chain.h defines it. */
#include "host_engines.h"

#include <stdio.h>
#include <string.h>
#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include "numerics/chain.h"

enum {
    GROUP_THREADS = 128,
    GROUPS = HOST_MOST_THREADS / GROUP_THREADS,
    MOST_PRODUCTS = 16, /* of sums of their own each, where a warpgroup multiplies several times 64 rows */
    MOST_BATCHES = 4,
    ROWS = 64
};
enum { MOST_COLUMNS = 256, STEP = SB_CHAIN16_GROUP };

typedef struct batch {
    host_product products[MOST_PRODUCTS];
    unsigned count;
    unsigned committed; /* threads that have; when all have, it can be computed */
    float *sums[MOST_PRODUCTS][GROUP_THREADS];
    const uint32_t *left[MOST_PRODUCTS][GROUP_THREADS];
    uint64_t ticket;
} batch;

typedef struct warpgroup {
    batch batches[MOST_BATCHES]; /* number n is at n % MOST_BATCHES */
    uint64_t done;               /* batches that are computed */
    uint64_t committed[GROUP_THREADS];
    unsigned in_batch[GROUP_THREADS];
    bool fenced[GROUP_THREADS];
} warpgroup;
static warpgroup groups[GROUPS];

static warpgroup *group_of(const host_thread *thread) {
    return &groups[(thread->block->rank * blockDim.x + thread->index) / GROUP_THREADS];
}

static unsigned lane_of(const host_thread *thread) {
    return thread->index % GROUP_THREADS;
}

/* ---- operands ---- */

/* The exponent of a zero, which thereby never is the largest. */
#define EXPONENT_OF_ZERO (-4096)

/* The lines of an operand, which are rows of A or columns of B; what belongs to one k of neighbouring lines lies side by side. */
typedef struct operand {
    int32_t significands[STEP][MOST_COLUMNS] __attribute__((aligned(32))); /* of finite ones */
    int32_t exponents[STEP][MOST_COLUMNS] __attribute__((aligned(32)));
    uint16_t k[MOST_COLUMNS][STEP];
    bool is_zero[MOST_COLUMNS], is_finite[MOST_COLUMNS], has_nan[MOST_COLUMNS];
    int32_t is_special[MOST_COLUMNS] __attribute__((aligned(32))); /* all bits of one that is not finite */
    bool are_zero[MOST_COLUMNS / 8];                               /* eight lines each */
} operand;

static uint32_t field(uint64_t descriptor, int first) {
    return (uint32_t)(descriptor >> first & 0x3fff) << 4;
}

/* Where element k of a line is, from the matrix's beginning on. Groups of 8 lie `stride` apart, of lines or, where the
 * lines lie side by side, of k; then groups of 64 lines lie `leading` apart. */
static uint32_t offset_of(uint64_t descriptor, bool mn_major, unsigned number, unsigned k) {
    uint32_t leading = field(descriptor, 16), stride = field(descriptor, 32);
    leading = host_planted == HOST_PLANT_MATRIX_LEADING ? leading / 2 : leading;
    stride = host_planted == HOST_PLANT_MATRIX_STRIDE ? stride / 2 : stride;
    if (mn_major)
        return number / 64 * leading + k / 8 * stride + k % 8 * 128 + number % 64 * 2;
    return number / 8 * stride + number % 8 * 128 + k * 2;
}

/* The same without a swizzle, of eight lines: pieces of 16 bytes, of which those of the next eight k lie `leading` further. */
static uint32_t plain_offset_of(uint64_t descriptor, unsigned number, unsigned k) {
    return number * 16 + k / 8 * field(descriptor, 16) + k % 8 * 2;
}

static void take_apart(operand *operand, unsigned number, bool is_f16) {
    const sb_chain16_format format = is_f16 ? sb_chain16_format_f16() : sb_chain16_format_bf16();
    uint16_t infinity = is_f16 ? 0x7c00 : 0x7f80;
    bool is_zero = true, is_finite = true, has_nan = false;
    for (unsigned k = 0; k < STEP; k++) {
        uint16_t magnitude = operand->k[number][k] & 0x7fff;
        is_zero &= magnitude == 0;
        is_finite &= magnitude < infinity;
        has_nan |= magnitude > infinity;
        const sb_chain16_part part = sb_chain16_unpack(operand->k[number][k], format);
        operand->significands[k][number] = part.significand;
        operand->exponents[k][number] = part.significand != 0 ? part.exponent : EXPONENT_OF_ZERO;
    }
    operand->is_zero[number] = is_zero;
    operand->is_finite[number] = is_finite;
    operand->has_nan[number] = has_nan;
    operand->are_zero[number / 8] = is_zero && (number % 8 == 0 || operand->are_zero[number / 8]);
    operand->is_special[number] = is_finite ? 0 : -1;
}

static void read_operand(const host_block *block, uint64_t descriptor, bool mn_major, bool is_f16, unsigned count,
                         operand *operand) {
    const bool is_plain = descriptor >> 62 == 0 && count == 8 && !mn_major;
    if ((descriptor >> 62 != 1 && !is_plain) || (descriptor >> 46 & 0xffff) != 0)
        host_refuse("a matrix's descriptor is not for the 128-byte swizzle: %llx", (unsigned long long)descriptor);
    for (unsigned number = 0; number < count; number++) {
        for (unsigned k = 0; k < STEP; k++) {
            uint32_t address = field(descriptor, 0) + (is_plain ? plain_offset_of(descriptor, number, k)
                                                                : offset_of(descriptor, mn_major, number, k));
            if (!is_plain && host_planted != HOST_PLANT_MATRIX_SWIZZLE)
                address = host_swizzle_128(address);
            memcpy(&operand->k[number][k], host_dynamic_shared(block, address, 2), 2);
        }
        take_apart(operand, number, is_f16);
    }
}

/* The rows that the threads of a warpgroup hold: wgmma.cuh. */
static void read_left(const uint32_t *const *left, bool is_f16, operand *operand) {
    for (unsigned row = 0; row < ROWS; row++) {
        for (unsigned k = 0; k < STEP; k++) {
            const uint32_t *pairs = left[row / 16 * 32 + row % 8 * 4 + k % 8 / 2];
            operand->k[row][k] = (uint16_t)(pairs[row % 16 / 8 + k / 8 * 2] >> 16 * (k % 2));
        }
        take_apart(operand, row, is_f16);
    }
}

/* ---- computing ---- */

/* The step of a chain; what needs no arithmetic is settled first, as most of tiles that stick out of C is. */
static float step(const operand *rows, unsigned row, const operand *columns, unsigned column, bool is_f16, float sum) {
    if (rows->has_nan[row] || columns->has_nan[column] || sum != sum)
        return sb_nan_f32();
    if ((rows->is_zero[row] && columns->is_finite[column]) || (columns->is_zero[column] && rows->is_finite[row]))
        return sum == 0.0f ? sb_chain16_zero() : sum;
    const sb_chain16_format format = is_f16 ? sb_chain16_format_f16() : sb_chain16_format_bf16();
    int classes = sb_chain16_class_of_accumulator(sum);
    for (unsigned k = 0; k < STEP && !(rows->is_finite[row] && columns->is_finite[column]); k++)
        classes |= sb_chain16_class_of_product(rows->k[row][k], columns->k[column][k], format);
    if (classes != 0)
        return sb_chain16_special(classes);
    return is_f16 ? sb_chain16_step_f16(rows->k[row], columns->k[column], sum)
                  : sb_chain16_step_bf16(rows->k[row], columns->k[column], sum);
}

/* A row's sums of eight columns: two each, at `place`, of four threads. */
typedef struct eight_sums {
    float *const *threads;
    unsigned place;
} eight_sums;

#if defined(__x86_64__)
#define WITH_AVX2 __attribute__((target("avx2")))
#define ALL(number) _mm256_set1_epi32(number)

/* Four sums of two integers each, times 2^(unit), truncated to f32 whose exponents are far from the ends of its range: exact in f64, of
 * which the bits that f32 has not are cleared. */
WITH_AVX2 static inline __m128 truncate_four(__m128i terms, __m128i other, __m128i unit) {
    const __m256d sum = _mm256_add_pd(_mm256_cvtepi32_pd(terms), _mm256_cvtepi32_pd(other));
    const __m256i biased = _mm256_cvtepi32_epi64(_mm_add_epi32(unit, _mm_set1_epi32(1023)));
    const __m256d power = _mm256_castsi256_pd(_mm256_slli_epi64(biased, 52));
    const __m256d kept = _mm256_and_pd(sum, _mm256_castsi256_pd(_mm256_set1_epi64x(-(INT64_C(1) << 29))));
    return _mm256_cvtpd_ps(_mm256_mul_pd(kept, power));
}

WITH_AVX2 static inline void store_eight(const eight_sums *sums, __m256i eight) {
    const __m128 low = _mm_castsi128_ps(_mm256_castsi256_si128(eight));
    const __m128 high = _mm_castsi128_ps(_mm256_extracti128_si256(eight, 1));
    _mm_storel_pi((__m64 *)(void *)&sums->threads[0][sums->place], low);
    _mm_storeh_pi((__m64 *)(void *)&sums->threads[1][sums->place], low);
    _mm_storel_pi((__m64 *)(void *)&sums->threads[2][sums->place], high);
    _mm_storeh_pi((__m64 *)(void *)&sums->threads[3][sums->place], high);
}

WITH_AVX2 static inline __m128 load_four(const eight_sums *sums, unsigned first) {
    const __m128 two = _mm_loadl_pi(_mm_setzero_ps(), (const __m64 *)(const void *)&sums->threads[first][sums->place]);
    return _mm_loadh_pi(two, (const __m64 *)(const void *)&sums->threads[first + 1][sums->place]);
}

/* sb_chain16_step of a finite row and eight columns at once. The bits of those that are left as they are, as the column or the sum is
 * not finite. A product that is shifted left as far as it may be is shifted right by how much its exponent is below the largest: by 32
 * and more, to zero. */
WITH_AVX2 static int step_eight(const operand *rows, unsigned row, const operand *columns, unsigned first,
                                const host_product *product, const eight_sums *sums) {
    const int32_t fraction_bits = product->is_f16 ? 10 : 7;
    const __m256i bits =
        product->adds ? _mm256_castps_si256(_mm256_set_m128(load_four(sums, 2), load_four(sums, 0))) : ALL(0);
    const __m256i stored = _mm256_and_si256(_mm256_srli_epi32(bits, 23), ALL(0xff));
    const __m256i of_column = *(const __m256i *)(const void *)&columns->is_special[first];
    const __m256i is_special = _mm256_or_si256(of_column, _mm256_cmpeq_epi32(stored, ALL(0xff)));
    const int special = _mm256_movemask_ps(_mm256_castsi256_ps(is_special));
    if (rows->is_zero[row] || columns->are_zero[first / 8]) { /* which leaves all but -0 as it is */
        const __m256i is_not_zero = _mm256_cmpgt_epi32(_mm256_and_si256(bits, ALL(0x7fffffff)), ALL(0));
        const __m256i same = _mm256_blendv_epi8(_mm256_and_si256(bits, is_not_zero), bits, is_special);
        store_eight(sums, same);
        return special;
    }
    const __m256i hidden = _mm256_andnot_si256(_mm256_cmpeq_epi32(stored, ALL(0)), ALL(0x00800000));
    const __m256i magnitude = _mm256_or_si256(_mm256_and_si256(bits, ALL(0x007fffff)), hidden);
    const __m256i exponent = _mm256_sub_epi32(_mm256_max_epi32(stored, ALL(1)), ALL(127));
    const __m256i lowest = ALL(SB_CHAIN16_EXPONENT_FLOOR);
    __m256i largest = _mm256_blendv_epi8(exponent, lowest, _mm256_cmpeq_epi32(magnitude, ALL(0)));
    largest = _mm256_max_epi32(largest, lowest);
    __m256i products[STEP], exponents[STEP];
    for (unsigned k = 0; k < STEP; k++) {
        const __m256i *significands = (const __m256i *)(const void *)&columns->significands[k][first];
        const __m256i *of_columns = (const __m256i *)(const void *)&columns->exponents[k][first];
        /* Significands have 11 bits and a sign: the lower half of each is it, and the upper half of one factor is made zero. */
        products[k] = _mm256_madd_epi16(*significands, ALL(rows->significands[k][row] & 0xffff));
        exponents[k] = _mm256_add_epi32(*of_columns, ALL(rows->exponents[k][row]));
        largest = _mm256_max_epi32(largest, exponents[k]);
    }
    const __m128i left = _mm_cvtsi32_si128(SB_CHAIN16_ALIGNMENT_BITS - 2 * fraction_bits);
    __m256i terms = ALL(0); /* 16 below 2^27 */
    for (unsigned k = 0; k < STEP; k++) {
        const __m256i shifted = _mm256_sll_epi32(_mm256_abs_epi32(products[k]), left);
        const __m256i aligned = _mm256_srlv_epi32(shifted, _mm256_sub_epi32(largest, exponents[k]));
        terms = _mm256_add_epi32(terms, _mm256_sign_epi32(aligned, products[k]));
    }
    const __m256i shifted = _mm256_slli_epi32(magnitude, SB_CHAIN16_ALIGNMENT_BITS - 23);
    const __m256i aligned = _mm256_srlv_epi32(shifted, _mm256_sub_epi32(largest, exponent));
    const __m256i other = _mm256_sign_epi32(aligned, bits);
    const __m256i unit = _mm256_sub_epi32(largest, ALL(SB_CHAIN16_ALIGNMENT_BITS));
    const __m256i is_far =
        _mm256_or_si256(_mm256_cmpgt_epi32(ALL(-90), largest), _mm256_cmpgt_epi32(largest, ALL(100)));
    __m256i found;
    if (_mm256_movemask_epi8(_mm256_andnot_si256(is_special, is_far)) == 0) {
        const __m128 low =
            truncate_four(_mm256_castsi256_si128(terms), _mm256_castsi256_si128(other), _mm256_castsi256_si128(unit));
        const __m128 high = truncate_four(_mm256_extracti128_si256(terms, 1), _mm256_extracti128_si256(other, 1),
                                          _mm256_extracti128_si256(unit, 1));
        found = _mm256_castps_si256(_mm256_set_m128(high, low));
    } else {
        int32_t each[3][8];
        float truncated[8];
        _mm256_storeu_si256((__m256i *)(void *)each[0], terms);
        _mm256_storeu_si256((__m256i *)(void *)each[1], other);
        _mm256_storeu_si256((__m256i *)(void *)each[2], unit);
        for (unsigned i = 0; i < 8; i++)
            truncated[i] = special >> i & 1 ? 0.0f : sb_chain16_truncate((int64_t)each[0][i] + each[1][i], each[2][i]);
        found = _mm256_castps_si256(_mm256_loadu_ps(truncated));
    }
    store_eight(sums, _mm256_blendv_epi8(found, bits, is_special));
    return special;
}

static bool has_eight(void) {
    return __builtin_cpu_supports("avx2");
}
#else
static bool has_eight(void) {
    return false;
}

static int step_eight(const operand *rows, unsigned row, const operand *columns, unsigned first,
                      const host_product *product, const eight_sums *sums) {
    return 0xff;
}
#endif

/* Nearly all the time of the tests of Hopper's kernels goes by here. */
static void multiply_lines(const host_product *product, const operand *rows, const operand *columns,
                           float *const *sums) {
    const bool by_eight = has_eight();
    for (unsigned row = 0; row < ROWS; row++) {
        for (unsigned first = 0; first < product->columns; first += 8) {
            const eight_sums eight = {&sums[row / 16 * 32 + row % 8 * 4],
                                      first / 8 * 4 + row % 16 / 8 * 2}; /* wgmma.cuh */
            const bool is_quick = by_eight && rows->is_finite[row];
            int left = is_quick ? step_eight(rows, row, columns, first, product, &eight) : 0xff;
            for (unsigned i = 0; left != 0; i++, left >>= 1) {
                float *sum = &eight.threads[i / 2][eight.place + i % 2];
                if (left & 1)
                    *sum = step(rows, row, columns, first + i, product->is_f16, product->adds ? *sum : 0.0f);
            }
        }
    }
}

static void compute(const host_block *block, const host_product *product, float *const *sums,
                    const uint32_t *const *left) {
    static operand rows, columns;
    if (product->has_left)
        read_left(left, product->is_f16, &rows);
    else
        read_operand(block, product->a, product->a_mn_major, product->is_f16, ROWS, &rows);
    read_operand(block, product->b, product->b_mn_major, product->is_f16, product->columns, &columns);
    multiply_lines(product, &rows, &columns, sums);
}

static bool can_compute(const warpgroup *group) {
    return group->batches[group->done % MOST_BATCHES].committed == GROUP_THREADS;
}

static void compute_batch(unsigned index) {
    warpgroup *group = &groups[index];
    batch *batch = &group->batches[group->done % MOST_BATCHES];
    const host_block *block = host_block_of(index * GROUP_THREADS / blockDim.x);
    for (unsigned i = 0; i < batch->count; i++)
        compute(block, &batch->products[i], batch->sums[i], batch->left[i]);
    batch->count = batch->committed = 0;
    group->done++;
    host_wake_watching();
}

static unsigned index_of_ready(unsigned number) {
    for (unsigned i = 0; i < GROUPS; i++) {
        if (can_compute(&groups[i]) && number-- == 0)
            return i;
    }
    return GROUPS;
}

uint64_t host_products_ticket(unsigned i) {
    unsigned index = index_of_ready(i);
    return index < GROUPS ? groups[index].batches[groups[index].done % MOST_BATCHES].ticket : HOST_NO_WORK;
}

void host_do_products(unsigned i) {
    compute_batch(index_of_ready(i));
}

/* ---- what threads say ---- */

void host_products_fence(void) {
    if (host_planted != HOST_PLANT_NO_PRODUCTS_FENCE)
        group_of(host_current())->fenced[lane_of(host_current())] = true;
}

static batch *begun_batch(warpgroup *group, unsigned lane) {
    if (group->committed[lane] - group->done >= MOST_BATCHES)
        host_refuse("more than %d batches of products are in flight", MOST_BATCHES);
    return &group->batches[group->committed[lane] % MOST_BATCHES];
}

static host_product plant_in(const host_product *given, const batch *batch, unsigned number) {
    host_product product = *given;
    product.adds |= host_planted == HOST_PLANT_CHAIN_GOES_ON;
    product.adds &= !(host_planted == HOST_PLANT_CHAIN_BEGINS && number == 0);
    if (host_planted == HOST_PLANT_MATRIX_STEP && number % 2 != 0) {
        product.a = batch->products[number - 1].a;
        product.b = batch->products[number - 1].b;
    }
    return product;
}

static bool is_same(const host_product *one, const host_product *other) {
    return one->a == other->a && one->b == other->b && one->columns == other->columns && one->adds == other->adds &&
           one->is_f16 == other->is_f16 && one->a_mn_major == other->a_mn_major &&
           one->b_mn_major == other->b_mn_major && one->has_left == other->has_left;
}

void host_multiply(float *sums, const uint32_t *left, const host_product *given) {
    const host_thread *thread = host_current();
    warpgroup *group = group_of(thread);
    unsigned lane = lane_of(thread), number = group->in_batch[lane]++;
    batch *batch = begun_batch(group, lane);
    if (!group->fenced[lane])
        host_refuse("products begin without a fence");
    if (number == MOST_PRODUCTS || given->columns > MOST_COLUMNS)
        host_refuse("a batch has more than %d products, or one of them more than 256 columns", MOST_PRODUCTS);
    const host_product product = plant_in(given, batch, number);
    batch->sums[number][lane] = sums;
    batch->left[number][lane] = left;
    if (number == batch->count && batch->committed == 0)
        batch->products[batch->count++] = product;
    else if (number >= batch->count || !is_same(&batch->products[number], &product))
        host_refuse("product %u is not that of the warpgroup's other threads", number);
}

void host_products_commit(void) {
    const host_thread *thread = host_current();
    warpgroup *group = group_of(thread);
    unsigned lane = lane_of(thread);
    batch *batch = begun_batch(group, lane);
    if (group->in_batch[lane] != batch->count)
        host_refuse("it has %u products where its warpgroup has %u", group->in_batch[lane], batch->count);
    group->in_batch[lane] = 0;
    group->fenced[lane] = false;
    group->committed[lane]++;
    if (++batch->committed == GROUP_THREADS) {
        batch->ticket = host_next_ticket();
        while (host_now.prompt_products && can_compute(group))
            compute_batch((unsigned)(group - groups));
    }
}

/* Whether `value` batches of a warpgroup are computed. */
static bool are_computed(const host_condition *condition) {
    return ((const warpgroup *)condition->object)->done >= condition->value;
}

static void describe_products(const host_condition *condition, char *text, size_t bytes) {
    const warpgroup *group = condition->object;
    snprintf(text, bytes, "batch %llu of products, to which %u threads have come", (unsigned long long)condition->value,
             group->batches[group->done % MOST_BATCHES].committed);
}

void host_products_wait(unsigned left) {
    warpgroup *group = group_of(host_current());
    uint64_t committed = group->committed[lane_of(host_current())];
    left += host_planted == HOST_PLANT_EARLY_RELEASE && left > 0;
    if (host_planted == HOST_PLANT_NO_LAST_WAIT && left == 0)
        return;
    const host_condition computed = {are_computed, describe_products, group, committed > left ? committed - left : 0,
                                     0};
    host_wait(&computed);
}

/* ---- beginning and end ---- */

void host_products_begin(void) {
    for (unsigned i = 0; i < GROUPS; i++) {
        warpgroup *group = &groups[i];
        group->done = 0;
        for (unsigned b = 0; b < MOST_BATCHES; b++)
            group->batches[b].count = group->batches[b].committed = 0;
        memset(group->committed, 0, sizeof group->committed);
        memset(group->in_batch, 0, sizeof group->in_batch);
        memset(group->fenced, 0, sizeof group->fenced);
    }
}

void host_products_end_thread(void) {
    const warpgroup *group = group_of(host_current());
    unsigned lane = lane_of(host_current());
    if (group->in_batch[lane] > 0 || group->committed[lane] > group->done)
        host_refuse("it ends with products in flight");
}
