#include "cpu/contraction/integer_product_weights.h"

#include <string.h>

#include "cpu/contraction/gemm.h"
#include "cpu/contraction/gemm_block.h"
#include "numerics/convert.h"

bool sb_integer_weights_parts(sb_isa isa, const sb_integer_weights *shape, sb_integer_parts *parts) {
    const int64_t k = shape->taps * shape->channels, n = shape->columns;
    size_t single = sb_gemm_f32_packed_bytes(sb_gemm_f32_kernels(isa), k, n), integers, units, chunks;
    parts->k = k;
    parts->columns = (n + SB_INTEGER_COLUMNS - 1) / SB_INTEGER_COLUMNS * SB_INTEGER_COLUMNS;
    parts->chunk = sb_integer_chunk(shape);
    parts->chunks = (k + parts->chunk - 1) / parts->chunk;
    parts->pitch = (k + 3) / 4 * 4;
    if (single == 0 || single > SIZE_MAX / 2 ||
        __builtin_mul_overflow((size_t)parts->columns, (size_t)parts->pitch, &integers) ||
        __builtin_mul_overflow((size_t)parts->columns, sizeof(float), &units) ||
        __builtin_mul_overflow(units, (size_t)parts->chunks, &chunks))
        return false;
    parts->integers = sb_gemm_lines(single);
    return !__builtin_add_overflow(parts->integers, integers, &parts->units) &&
           !__builtin_add_overflow(parts->units, units, &parts->sums) &&
           !__builtin_add_overflow(parts->sums, chunks, &parts->norms) &&
           !__builtin_add_overflow(parts->norms, chunks, &parts->bytes);
}

typedef struct packing {
    sb_isa isa;
    const sb_integer_weights *shape;
    const float *weights;
    sb_integer_parts parts;
    char *to;
} packing;

/* Row `l` of the chains' order, at column `first`. */
static int64_t row_at(const sb_integer_weights *shape, int64_t l, int64_t first) {
    return l / shape->channels * shape->tap_stride + l % shape->channels * shape->channel_stride +
           first * shape->column_stride;
}

/* SB_INTEGER_COLUMNS columns, or what is left of them: where they begin, and of each what is added up in the chunk. */
typedef struct column_group {
    int64_t first, count;
    int32_t sums[SB_INTEGER_COLUMNS];
    float squares[SB_INTEGER_COLUMNS];
} column_group;

/* Row l of the group, of that weight in its chunk, as f32 and as integers. */
static void pack_row(const packing *to, column_group *group, int64_t l, float weight) {
    const sb_integer_parts *parts = &to->parts;
    const int64_t stride = to->shape->column_stride, panel = sb_integer_kernels_of(to->isa)->panel;
    const int64_t packed_panel = sb_gemm_f32_panel(sb_gemm_f32_kernels(to->isa));
    const float *row = to->weights + row_at(to->shape, l, group->first);
    const float *units = (const float *)(const void *)(to->to + parts->units) + group->first;
    float *single = (float *)(void *)to->to;
    int8_t *integers = (int8_t *)to->to + parts->integers;
    for (int64_t j = 0; j < group->count; j++) {
        int64_t n = group->first + j, within = n % panel, packed_within = n % packed_panel;
        int32_t integer = sb_i32_from_f32(sb_round_half_even_f32(row[j * stride] / units[j]));
        single[(n - packed_within) * parts->k + l * packed_panel + packed_within] = row[j * stride];
        integers[(n - within) * parts->pitch + (l / 4 * panel + within) * 4 + l % 4] = (int8_t)integer;
        group->sums[j] += integer;
        group->squares[j] += weight * weight * (float)(integer * integer);
    }
}

static void pack_columns(const packing *to, int64_t first) {
    const sb_integer_parts *parts = &to->parts;
    const int64_t left = to->shape->columns - first;
    column_group group = {.first = first, .count = left < SB_INTEGER_COLUMNS ? left : SB_INTEGER_COLUMNS};
    for (int64_t c = 0; c < parts->chunks; c++) {
        int64_t begin = c * parts->chunk, end = begin + parts->chunk < parts->k ? begin + parts->chunk : parts->k;
        int32_t *sums = (int32_t *)(void *)(to->to + parts->sums) + c * parts->columns + first;
        float *norms = (float *)(void *)(to->to + parts->norms) + c * parts->columns + first;
        for (int64_t l = begin; l < end; l++) {
            int64_t to_middle = l - (begin + end) / 2;
            pack_row(to, &group, l, (float)((to_middle < 0 ? -to_middle : to_middle) + SB_INTEGER_WEIGHT));
        }
        for (int64_t j = 0; j < group.count; j++) {
            sums[j] = group.sums[j];
            norms[j] = __builtin_sqrtf(group.squares[j]);
            group.squares[j] = 0;
        }
    }
}

static void pack_groups(void *context, int64_t begin, int64_t end) {
    for (int64_t group = begin; group < end; group++)
        pack_columns(context, group * SB_INTEGER_COLUMNS);
}

bool sb_integer_weights_pack(sb_isa isa, const sb_integer_weights *shape, const float *weights, sb_workers *workers,
                             void *to) {
    packing packing = {.isa = isa, .shape = shape, .weights = weights, .to = to};
    sb_integer_parts *parts = &packing.parts;
    if (!sb_integer_weights_parts(isa, shape, parts))
        return false;
    memset(to, 0, parts->bytes);
    if (!sb_integer_columns_find(weights, shape, (float *)(void *)(packing.to + parts->units)))
        return false;
    sb_workers_run(workers, parts->columns / SB_INTEGER_COLUMNS, 1, pack_groups, &packing);
    return true;
}

void sb_integer_weights_unpack(sb_isa isa, const sb_integer_weights *shape, const void *from, float *weights) {
    const int64_t panel = sb_gemm_f32_panel(sb_gemm_f32_kernels(isa)), k = shape->taps * shape->channels;
    const float *single = from;
    for (int64_t l = 0; l < k; l++) {
        for (int64_t n = 0; n < shape->columns; n++)
            weights[row_at(shape, l, n)] = single[(n - n % panel) * k + l * panel + n % panel];
    }
}
