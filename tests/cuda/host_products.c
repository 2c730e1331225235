/* wgmma on the host: a warpgroup's threads put products into batches, which are computed when the schedule says, at the
 * latest before anybody who waits for them goes on. Then operands are read from shared memory by their descriptors, and
 * the threads' sums are read and written: whatever was done too early to either shows.
 *
 * A product continues each chain by one step of 16 k, as numerics/chain.h defines it. */
#include "host_engines.h"

#include <stdio.h>
#include <string.h>

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

typedef int32_t eight __attribute__((vector_size(32)));
typedef uint32_t unsigned_eight __attribute__((vector_size(32)));

/* A line of an operand: a row of A, a column of B. */
typedef struct line {
    uint16_t k[STEP];
    eight significands[2], exponents[2]; /* of finite ones */
    bool is_zero, is_finite, has_nan;
} line;

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

static void take_apart(line *line, bool is_f16) {
    const sb_chain16_format format = is_f16 ? sb_chain16_format_f16() : sb_chain16_format_bf16();
    uint16_t infinity = is_f16 ? 0x7c00 : 0x7f80;
    line->is_zero = line->is_finite = true;
    line->has_nan = false;
    for (unsigned k = 0; k < STEP; k++) {
        uint16_t magnitude = line->k[k] & 0x7fff;
        line->is_zero &= magnitude == 0;
        line->is_finite &= magnitude < infinity;
        line->has_nan |= magnitude > infinity;
        const sb_chain16_part part = sb_chain16_unpack(line->k[k], format);
        line->significands[k / 8][k % 8] = part.significand;
        line->exponents[k / 8][k % 8] = part.exponent;
    }
}

static void read_operand(const host_block *block, uint64_t descriptor, bool mn_major, bool is_f16, unsigned count,
                         line *lines) {
    const bool is_plain = descriptor >> 62 == 0 && count == 8 && !mn_major;
    if ((descriptor >> 62 != 1 && !is_plain) || (descriptor >> 46 & 0xffff) != 0)
        host_refuse("a matrix's descriptor is not for the 128-byte swizzle: %llx", (unsigned long long)descriptor);
    for (unsigned number = 0; number < count; number++) {
        for (unsigned k = 0; k < STEP; k++) {
            uint32_t address = field(descriptor, 0) + (is_plain ? plain_offset_of(descriptor, number, k)
                                                                : offset_of(descriptor, mn_major, number, k));
            if (!is_plain && host_planted != HOST_PLANT_MATRIX_SWIZZLE)
                address = host_swizzle_128(address);
            memcpy(&lines[number].k[k], host_dynamic_shared(block, address, 2), 2);
        }
        take_apart(&lines[number], is_f16);
    }
}

/* The rows that the threads of a warpgroup hold: wgmma.cuh. */
static void read_left(const uint32_t *const *left, bool is_f16, line *lines) {
    for (unsigned row = 0; row < ROWS; row++) {
        for (unsigned k = 0; k < STEP; k++) {
            const uint32_t *pairs = left[row / 16 * 32 + row % 8 * 4 + k % 8 / 2];
            lines[row].k[k] = (uint16_t)(pairs[row % 16 / 8 + k / 8 * 2] >> 16 * (k % 2));
        }
        take_apart(&lines[row], is_f16);
    }
}

/* ---- computing ---- */

/* What of `value` the mask has, and of `other` what it has not. */
#define CHOOSE(mask, value, other) (((value) & (mask)) | ((other) & ~(mask)))

/* sb_chain16_align of eight terms: each becomes itself * 2^(its shift). */
static inline __attribute__((always_inline)) void align(eight *terms, const eight *by) {
    const eight shifts = *by, sign = *terms >> 31, magnitudes = (*terms ^ sign) - sign;
    const eight left = shifts & 31 & (shifts > 0), right = -shifts & (shifts < 0);
    const eight aligned =
        (eight)((unsigned_eight)(magnitudes << left) >> (unsigned_eight)CHOOSE(right > 31, 31, right));
    *terms = (aligned ^ sign) - sign;
}

/* sb_chain16_step of finite numbers that are taken apart already. */
static inline __attribute__((always_inline)) float finite_step(const line *row, const line *column, float sum,
                                                               int32_t fraction_bits) {
    eight products[2], exponents[2], raised[2];
    const uint32_t bits = sb_bits_from_f32(sum);
    const int32_t stored = (int32_t)(bits >> 23 & 0xffu);
    const int32_t magnitude = (int32_t)(bits & 0x007fffffu) | (stored != 0 ? 0x00800000 : 0);
    const int32_t exponent = (stored != 0 ? stored : 1) - 127;
    for (unsigned half = 0; half < 2; half++) {
        products[half] = row->significands[half] * column->significands[half];
        exponents[half] = row->exponents[half] + column->exponents[half];
        raised[half] = CHOOSE(products[half] != 0, exponents[half], SB_CHAIN16_EXPONENT_FLOOR);
    }
    const eight both = CHOOSE(raised[0] > raised[1], raised[0], raised[1]);
    int32_t largest = sb_chain16_raise(SB_CHAIN16_EXPONENT_FLOOR, magnitude, exponent);
    for (unsigned i = 0; i < 8; i++)
        largest = both[i] > largest ? both[i] : largest;
    const int32_t unit = largest - SB_CHAIN16_ALIGNMENT_BITS, own = unit + 2 * fraction_bits;
    for (unsigned half = 0; half < 2; half++) {
        exponents[half] -= own;
        align(&products[half], &exponents[half]);
    }
    const eight terms = products[0] + products[1];
    int64_t total = sb_chain16_align(bits >> 31 != 0 ? -magnitude : magnitude, exponent - unit - 23);
    int32_t of_terms = 0; /* 16 below 2^27 */
    for (unsigned i = 0; i < 8; i++)
        of_terms += terms[i];
    return sb_chain16_truncate(total + of_terms, unit);
}

/* The step of a chain; what needs no arithmetic is settled first, as most of tiles that stick out of C is. */
static inline __attribute__((always_inline)) float step(const line *row, const line *column, bool is_f16, float sum) {
    if (row->has_nan || column->has_nan || sum != sum)
        return sb_nan_f32();
    if ((row->is_zero && column->is_finite) || (column->is_zero && row->is_finite))
        return sum == 0.0f ? sb_chain16_zero() : sum;
    if (row->is_finite && column->is_finite && sb_chain16_class_of_accumulator(sum) == 0)
        return finite_step(row, column, sum, is_f16 ? 10 : 7);
    return is_f16 ? sb_chain16_step_f16(row->k, column->k, sum) : sb_chain16_step_bf16(row->k, column->k, sum);
}

/* The thread's sum of a row and a column: wgmma.cuh. */
static inline float *sum_of(float *const *sums, unsigned row, unsigned column) {
    unsigned thread = row / 16 * 32 + row % 8 * 4 + column % 8 / 2;
    return &sums[thread][column / 8 * 4 + row % 16 / 8 * 2 + column % 2];
}

static inline __attribute__((always_inline)) void multiply_lines(const host_product *product, const line *rows,
                                                                 const line *columns, float *const *sums) {
    for (unsigned row = 0; row < ROWS; row++) {
        for (unsigned column = 0; column < product->columns; column++) {
            float *sum = sum_of(sums, row, column);
            *sum = step(&rows[row], &columns[column], product->is_f16, product->adds ? *sum : 0.0f);
        }
    }
}

/* Nearly all the time of the tests goes by here. */
static void multiply_plainly(const host_product *product, const line *rows, const line *columns, float *const *sums) {
    multiply_lines(product, rows, columns, sums);
}

#if defined(__x86_64__)
__attribute__((target("avx2"))) static void multiply_with_avx2(const host_product *product, const line *rows,
                                                               const line *columns, float *const *sums) {
    multiply_lines(product, rows, columns, sums);
}
#endif

static void compute(const host_block *block, const host_product *product, float *const *sums,
                    const uint32_t *const *left) {
    static line rows[ROWS], columns[MOST_COLUMNS];
    if (product->has_left)
        read_left(left, product->is_f16, rows);
    else
        read_operand(block, product->a, product->a_mn_major, product->is_f16, ROWS, rows);
    read_operand(block, product->b, product->b_mn_major, product->is_f16, product->columns, columns);
#if defined(__x86_64__)
    if (__builtin_cpu_supports("avx2")) {
        multiply_with_avx2(product, rows, columns, sums);
        return;
    }
#endif
    multiply_plainly(product, rows, columns, sums);
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
