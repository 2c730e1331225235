/* Reductions of integers and truth values: modulo 2^64 ("exact"), where the order does not matter;
 * or in f64 ("number"), in the order of the contract. One kernel for all integer types, since few
 * models reduce them: the type is a parameter. Threads meet at every SB_CUDA_BARRIER. */
#include "cuda/rows/reduce.cuh"
#include "ops/number.h"

#define LOAD(p, data, index) sb_number_load((sb_dtype)(p)->dtype, (data), (index))
#define STORE(p, data, value) sb_number_store((sb_dtype)(p)->dtype, (data), 0, (value))
#define MAP_SAME(value, shift, p) (value)
#define MAP_EXP(value, shift, p) sb_exp_f64((value) - (shift))
SB_CUDA_REDUCTION(sum, SUM, SUM, 0, number, double, f64, LOAD, STORE, MAP_SAME, SB_CUDA_SHIFT_NONE)
SB_CUDA_REDUCTION(squares, SQUARES, SUM, 0, number, double, f64, LOAD, STORE, MAP_SAME, SB_CUDA_SHIFT_NONE)
SB_CUDA_REDUCTION(exponentials, SUM, SUM, 0, number, double, f64, LOAD, STORE, MAP_EXP, SB_CUDA_SHIFT_HIGHEST)

SB_CUDA_FUNCTION int is_signed(int32_t dtype) {
    return dtype == SB_S8 || dtype == SB_S16 || dtype == SB_S32 || dtype == SB_S64;
}

/* An element as the bits of a 64-bit integer of its own signedness. */
SB_CUDA_FUNCTION uint64_t load_bits(int32_t dtype, const char *data) {
    switch (dtype) {
    case SB_BOOL:
    case SB_U8:
        return *(const uint8_t *)(const void *)data;
    case SB_U16:
        return *(const uint16_t *)(const void *)data;
    case SB_U32:
        return *(const uint32_t *)(const void *)data;
    case SB_S8:
        return (uint64_t)(int64_t) * (const int8_t *)(const void *)data;
    case SB_S16:
        return (uint64_t)(int64_t) * (const int16_t *)(const void *)data;
    case SB_S32:
        return (uint64_t)(int64_t) * (const int32_t *)(const void *)data;
    default:
        return *(const uint64_t *)(const void *)data;
    }
}

SB_CUDA_FUNCTION void store_bits(int32_t dtype, char *data, uint64_t bits) {
    switch (dtype) {
    case SB_BOOL:
    case SB_U8:
    case SB_S8:
        *(uint8_t *)(void *)data = (uint8_t)bits;
        break;
    case SB_U16:
    case SB_S16:
        *(uint16_t *)(void *)data = (uint16_t)bits;
        break;
    case SB_U32:
    case SB_S32:
        *(uint32_t *)(void *)data = (uint32_t)bits;
        break;
    default:
        *(uint64_t *)(void *)data = bits;
        break;
    }
}

SB_CUDA_FUNCTION int bits_of(int32_t dtype) {
    switch (dtype) {
    case SB_U8:
    case SB_S8:
        return 8;
    case SB_U16:
    case SB_S16:
        return 16;
    case SB_U32:
    case SB_S32:
        return 32;
    default:
        return 64;
    }
}

/* What joining begins with: for a maximum the least value of the type. */
SB_CUDA_FUNCTION uint64_t neutral(const sb_cuda_row_reduction *p) {
    int least = p->kind == SB_CUDA_INTEGER_MAX, bits = bits_of(p->dtype);
    if (p->kind == SB_CUDA_INTEGER_PROD)
        return 1;
    if (p->kind != SB_CUDA_INTEGER_MAX && p->kind != SB_CUDA_INTEGER_MIN)
        return 0;
    if (p->dtype == SB_BOOL)
        return least ? 0 : 1;
    if (!is_signed(p->dtype))
        return least ? 0 : UINT64_MAX >> (64 - bits);
    return least ? ~(uint64_t)0 << (bits - 1) : UINT64_MAX >> (65 - bits);
}

SB_CUDA_FUNCTION uint64_t join(const sb_cuda_row_reduction *p, uint64_t left, uint64_t right) {
    int above = is_signed(p->dtype) ? (int64_t)right > (int64_t)left : right > left;
    switch (p->kind) {
    case SB_CUDA_INTEGER_MAX:
        return above ? right : left;
    case SB_CUDA_INTEGER_MIN:
        return above ? left : right;
    case SB_CUDA_INTEGER_PROD:
        return left * right;
    default:
        return left + right;
    }
}

SB_CUDA_FUNCTION uint64_t load_mapped(const sb_cuda_row_reduction *p, const char *first, int64_t at) {
    uint64_t value = load_bits(p->dtype, first + SB_CUDA_ROW_OFFSET(&p->rows, SB_CUDA_ROW_IN, at));
    if (p->kind == SB_CUDA_INTEGER_L1)
        return is_signed(p->dtype) && (int64_t)value < 0 ? 0 - value : value;
    return p->kind == SB_CUDA_INTEGER_SQUARES ? value * value : value;
}

SB_CUDA_FUNCTION void store_total(const sb_cuda_row_reduction *p, int64_t row, uint64_t total) {
    if (p->kind == SB_CUDA_INTEGER_MEAN) {
        uint64_t length = (uint64_t)SB_CUDA_ROWS_LENGTH(&p->rows);
        total = is_signed(p->dtype) && (int64_t)total < 0 ? 0 - (0 - total) / length : total / length;
    }
    store_bits(p->dtype, SB_CUDA_ROW_FIRST(&p->rows, SB_CUDA_ROW_OUT, row), total);
}

/* Joins what the first `width` threads of each segment of a warp have. */
SB_CUDA_FUNCTION uint64_t join_threads(const sb_cuda_row_reduction *p, uint64_t total, int width) {
    for (int half = width / 2; half > 0; half /= 2)
        total = join(p, total, sb_cuda_shuffle_down_u64(total, half, width));
    return sb_cuda_shuffle_first_u64(total, width);
}

SB_CUDA_BLOCK_KERNEL(sb_cuda_reduce_team_exact_integer, sb_cuda_row_reduction, p) {
    SB_CUDA_TEAMS(&p->rows) {
        SB_CUDA_TEAM_ROW(&p->rows);
        const char *first = SB_CUDA_ROW_FIRST(&p->rows, SB_CUDA_ROW_IN, row);
        uint64_t total = neutral(p);
        for (int at = t; at < length; at += team)
            total = join(p, total, load_mapped(p, first, at));
        total = join_threads(p, total, team);
        if (t == 0 && base + threadIdx.x / (unsigned)team < used_rows)
            store_total(p, row, total);
    }
}

SB_CUDA_BLOCK_KERNEL_BOUNDED(sb_cuda_reduce_block_exact_integer, sb_cuda_row_reduction, p, 1024, 1) {
    SB_CUDA_SHARED uint64_t warps[32];
    int64_t length = SB_CUDA_ROWS_LENGTH(&p->rows), count = SB_CUDA_ROWS_COUNT(&p->rows);
    for (int64_t item = blockIdx.x; item < count * p->parts; item += gridDim.x) {
        int64_t row = item / p->parts, begin = (item - row * p->parts) * SB_REDUCE_BLOCK;
        int64_t end = p->parts == 1 || length - begin < SB_REDUCE_BLOCK ? length : begin + SB_REDUCE_BLOCK;
        const char *first = SB_CUDA_ROW_FIRST(&p->rows, SB_CUDA_ROW_IN, row);
        uint64_t total = neutral(p);
        for (int64_t at = begin + threadIdx.x; at < end; at += blockDim.x)
            total = join(p, total, load_mapped(p, first, at));
        warps[threadIdx.x / 32] = join_threads(p, total, 32);
        SB_CUDA_BARRIER();
        if (threadIdx.x == 0) {
            total = warps[0];
            for (unsigned warp = 1; warp < blockDim.x / 32; warp++)
                total = join(p, total, warps[warp]);
            if (p->parts > 1)
                ((uint64_t *)(void *)p->totals)[item] = total;
            else
                store_total(p, row, total);
        }
        SB_CUDA_BARRIER();
    }
}

SB_CUDA_KERNEL(sb_cuda_reduce_parts_exact_integer, sb_cuda_row_reduction, p) {
    SB_CUDA_EACH(row, SB_CUDA_ROWS_COUNT(&p->rows)) {
        const uint64_t *totals = (const uint64_t *)(const void *)p->totals + row * p->parts;
        uint64_t total = totals[0];
        for (int64_t part = 1; part < p->parts; part++)
            total = join(p, total, totals[part]);
        store_total(p, row, total);
    }
}
