/* Reductions of rows that lie side by side, compiled once per instruction set: lanes of vectors are rows.
 *
 * The 256 lanes of the order of sums are elements of a row, which lie apart. Up to 256 elements are folded as they are read, from
 * eight places at a time: lane j of 32 is lanes j, j + 32, ... j + 224 in the order of folding by halves, and then lane j of 4
 * the same of 32. What is written on the way is an eighth of what is read; as lanes in memory that are folded afterwards, it was all
 * of it twice. Longer rows go through lanes in memory first. A lane without an element holds what changes nothing: -0, or 1. */
#include <stdbool.h>

#include "base/isa.h"
#include "cpu/rows/reduce_rows.h"
#include "cpu/simd_16.h"
#include "numerics/reduce.h"

/* Columns that are reduced at once, side by side: of short rows, and of those whose 256 lanes are to stay in a cache. */
#define VECTORS (64 / SB_VF_LANES)
#define LONG_VECTORS (32 / SB_VF_LANES)

/* How an element starts a lane, how a later one joins it, and how lanes are joined. `kind` is a constant. */
SB_VF_INLINE vf first_of(sb_reduce_kind kind, vf value) {
    return kind == SB_REDUCE_SQUARES ? vf_mul(value, value) : kind == SB_REDUCE_ABSOLUTE ? vf_abs(value) : value;
}

SB_VF_INLINE vf next_of(sb_reduce_kind kind, vf value, vf lane) {
    return kind == SB_REDUCE_SQUARES    ? vf_fma(value, value, lane)
           : kind == SB_REDUCE_ABSOLUTE ? vf_add(lane, vf_abs(value))
           : kind == SB_REDUCE_PRODUCT  ? vf_mul(lane, value)
                                        : vf_add(lane, value);
}

SB_VF_INLINE vf joined(sb_reduce_kind kind, vf lane, vf other) {
    return kind == SB_REDUCE_PRODUCT ? vf_mul(lane, other) : vf_add(lane, other);
}

/* `count` lanes (1 to 8) that are folded by halves. */
SB_VF_INLINE vf fold(sb_reduce_kind kind, int count, vf *lanes) {
    if (count > 4) {
        for (int i = 0; i < 4; i++)
            lanes[i] = joined(kind, lanes[i], lanes[i + 4]);
    }
    if (count > 2) {
        lanes[0] = joined(kind, lanes[0], lanes[2]);
        lanes[1] = joined(kind, lanes[1], lanes[3]);
    }
    return count > 1 ? joined(kind, lanes[0], lanes[1]) : lanes[0];
}

/* Where a block of elements, or lanes of it, lies: strides in elements. */
typedef struct block {
    const void *x;
    int64_t stride;
    int count, taken; /* elements, and columns of the only vector if there is one */
} block;

/* Lanes j, j + apart, ... of `from`, of which there are up to 8, into lane j of `to`, for j below `apart`. Elements start lanes if
 * they are `fresh`. */
SB_VF_INLINE void fold_eight(sb_reduce_kind kind, sb_dtype dtype, bool fresh, int vectors, const block *from, int apart,
                             float *to) {
    const vf nothing = vf_set(kind == SB_REDUCE_PRODUCT ? 1.0f : -0.0f);
    for (int j = 0; j < apart && j < from->count; j++) {
        const int count = (from->count - j + apart - 1) / apart;
        for (int v = 0; v < vectors; v++) {
            vf lanes[8];
            SB_UNROLL
            for (int k = 0; k < 8; k++) {
                lanes[k] = nothing;
                if (k < count) {
                    lanes[k] = vf_load_as(dtype, from->x, (j + k * apart) * from->stride + v * SB_VF_LANES,
                                          vectors == 1 ? from->taken : SB_VF_LANES);
                    lanes[k] = fresh ? first_of(kind, lanes[k]) : lanes[k];
                }
            }
            vf_store(to + (j * vectors + v) * SB_VF_LANES, fold(kind, count, lanes));
        }
    }
}

/* The reduction of a block of up to 256 elements, or lanes, into `y`. */
SB_VF_INLINE void fold_block(sb_reduce_kind kind, sb_dtype dtype, bool fresh, int vectors, const block *from,
                             float *y) {
    float by_32[32 * 64], by_4[4 * 64];
    const int64_t width = vectors * SB_VF_LANES;
    const block second = {by_32, width, from->count < 32 ? from->count : 32, SB_VF_LANES};
    const block third = {by_4, width, from->count < 4 ? from->count : 4, SB_VF_LANES};
    if (from->count > 32) {
        fold_eight(kind, dtype, fresh, vectors, from, 32, by_32);
        fold_eight(kind, SB_F32, false, vectors, &second, 4, by_4);
    } else {
        fold_eight(kind, dtype, fresh, vectors, from, 4, by_4);
    }
    fold_eight(kind, SB_F32, false, vectors, &third, 1, y);
}

/* A block of more than 256 elements: lanes in memory first. */
SB_VF_INLINE void long_block(sb_reduce_kind kind, sb_dtype dtype, int vectors, const block *from, float *y) {
    _Alignas(64) float lanes[SB_REDUCE_LANES * LONG_VECTORS * SB_VF_LANES];
    const int64_t width = vectors * SB_VF_LANES;
    for (int i = 0; i < from->count; i++) {
        float *lane = lanes + i % SB_REDUCE_LANES * width;
        for (int v = 0; v < vectors; v++) {
            const vf value = vf_load_as(dtype, from->x, i * from->stride + v * SB_VF_LANES,
                                        vectors == 1 ? from->taken : SB_VF_LANES);
            float *place = lane + v * SB_VF_LANES;
            vf_store(place, i < SB_REDUCE_LANES ? first_of(kind, value) : next_of(kind, value, vf_load(place)));
        }
    }
    fold_block(kind, SB_F32, false, vectors, &(block){lanes, width, SB_REDUCE_LANES, SB_VF_LANES}, y);
}

static const void *element_at(sb_dtype dtype, const void *x, int64_t index) {
    return (const char *)x + index * (dtype == SB_F32 ? 4 : 2);
}

/* Blocks of some columns, one after the other: y[w] for w below vectors * SB_VF_LANES. */
SB_VF_INLINE void sum_columns(sb_reduce_kind kind, sb_dtype dtype, int vectors, int64_t n, int taken, const void *x,
                              int64_t stride, float *y) {
    float part[64];
    for (int64_t start = 0; start < n; start += SB_REDUCE_BLOCK) {
        const int size = n - start < SB_REDUCE_BLOCK ? (int)(n - start) : SB_REDUCE_BLOCK;
        const block block = {element_at(dtype, x, start * stride), stride, size, taken};
        float *to = start == 0 ? y : part;
        if (size > SB_REDUCE_LANES)
            long_block(kind, dtype, vectors, &block, to);
        else
            fold_block(kind, dtype, true, vectors, &block, to);
        for (int v = 0; v < vectors && start > 0; v++)
            vf_store(y + v * SB_VF_LANES, joined(kind, vf_load(y + v * SB_VF_LANES), vf_load(part + v * SB_VF_LANES)));
    }
}

/* The greatest of sign * x, times sign, so that it is a minimum for a sign of -1. Maxima have no order: of one vector of columns, four
 * elements of a row at a time go to maxima of their own, as each waits some cycles for the last one. */
SB_VF_INLINE void extreme_columns(sb_reduce_kind kind, sb_dtype dtype, int vectors, int64_t n, int taken, const void *x,
                                  int64_t stride, float *y) {
    const vf signs = vf_set(kind == SB_REDUCE_MINIMUM ? -1.0f : 1.0f);
    const int at_once = vectors == 1 ? 4 : 1;
    vf most[4 * VECTORS];
    for (int v = 0; v < vectors * at_once; v++)
        most[v] = vf_set(-sb_infinity_f32());
    for (int64_t i = 0; i < n; i += at_once) {
        const int elements = n - i < at_once ? (int)(n - i) : at_once;
        SB_UNROLL
        for (int e = 0; e < at_once; e++) {
            if (e >= elements)
                break;
            for (int v = 0; v < vectors; v++) {
                const vf value =
                    vf_load_as(dtype, x, (i + e) * stride + v * SB_VF_LANES, vectors == 1 ? taken : SB_VF_LANES);
                most[e * vectors + v] = vf_max(most[e * vectors + v], vf_mul(value, signs));
            }
        }
    }
    for (int v = 0; v < vectors; v++) {
        for (int e = 1; e < at_once; e++)
            most[v] = vf_max(most[v], most[e * vectors + v]);
        vf_store(y + v * SB_VF_LANES, vf_mul(most[v], signs));
    }
}

SB_VF_INLINE void some_columns(sb_reduce_kind kind, sb_dtype dtype, int vectors, int64_t n, int taken, const void *x,
                               int64_t stride, float *y) {
    if (kind == SB_REDUCE_MAXIMUM || kind == SB_REDUCE_MINIMUM)
        extreme_columns(kind, dtype, vectors, n, taken, x, stride, y);
    else
        sum_columns(kind, dtype, vectors, n, taken, x, stride, y);
}

/* All columns, as many at once as can be, and the last ones vector by vector: the last of them a whole one where there are as many
 * columns, some of which are then computed twice. `kind` and `dtype` are constants. */
SB_VF_INLINE void all_columns(sb_reduce_kind kind, sb_dtype dtype, int64_t n, int64_t width, const void *x,
                              int64_t stride, float *y) {
    const int64_t at_once = (n > SB_REDUCE_LANES ? LONG_VECTORS : VECTORS) * SB_VF_LANES;
    float last[SB_VF_LANES];
    int64_t w = 0;
    for (; w + at_once <= width; w += at_once) {
        if (n > SB_REDUCE_LANES)
            some_columns(kind, dtype, LONG_VECTORS, n, 0, element_at(dtype, x, w), stride, y + w);
        else
            some_columns(kind, dtype, VECTORS, n, 0, element_at(dtype, x, w), stride, y + w);
    }
    for (; w < width; w += SB_VF_LANES) {
        if (w + SB_VF_LANES > width && width > SB_VF_LANES)
            w = width - SB_VF_LANES;
        const int taken = width < SB_VF_LANES ? (int)width : SB_VF_LANES;
        some_columns(kind, dtype, 1, n, taken, element_at(dtype, x, w), stride, last);
        memcpy(y + w, last, (size_t)taken * sizeof *y);
    }
}

#define DEFINE_COLUMNS(name, dtype)                                                                                    \
    static void name(sb_reduce_kind kind, int64_t n, int64_t width, const void *x, int64_t stride, float *y) {         \
        switch (kind) {                                                                                                \
        case SB_REDUCE_SUM:                                                                                            \
            all_columns(SB_REDUCE_SUM, dtype, n, width, x, stride, y);                                                 \
            break;                                                                                                     \
        case SB_REDUCE_SQUARES:                                                                                        \
            all_columns(SB_REDUCE_SQUARES, dtype, n, width, x, stride, y);                                             \
            break;                                                                                                     \
        case SB_REDUCE_ABSOLUTE:                                                                                       \
            all_columns(SB_REDUCE_ABSOLUTE, dtype, n, width, x, stride, y);                                            \
            break;                                                                                                     \
        case SB_REDUCE_PRODUCT:                                                                                        \
            all_columns(SB_REDUCE_PRODUCT, dtype, n, width, x, stride, y);                                             \
            break;                                                                                                     \
        case SB_REDUCE_MAXIMUM:                                                                                        \
            all_columns(SB_REDUCE_MAXIMUM, dtype, n, width, x, stride, y);                                             \
            break;                                                                                                     \
        case SB_REDUCE_MINIMUM:                                                                                        \
            all_columns(SB_REDUCE_MINIMUM, dtype, n, width, x, stride, y);                                             \
            break;                                                                                                     \
        }                                                                                                              \
    }
DEFINE_COLUMNS(columns_f32, SB_F32)
DEFINE_COLUMNS(columns_f16, SB_F16)
DEFINE_COLUMNS(columns_bf16, SB_BF16)

void SB_ISA_NAME(sb_reduce_columns)(sb_reduce_kind kind, sb_dtype dtype, int64_t n, int64_t width, const void *x,
                                    int64_t stride, float *y) {
    const float nothing = kind == SB_REDUCE_PRODUCT ? 1.0f : 0.0f;
    const bool extreme = kind == SB_REDUCE_MAXIMUM || kind == SB_REDUCE_MINIMUM;
    for (int64_t w = 0; w < width && n == 0 && !extreme; w++)
        y[w] = nothing;
    if (n == 0 && !extreme)
        return;
    if (dtype == SB_F32)
        columns_f32(kind, n, width, x, stride, y);
    else if (dtype == SB_F16)
        columns_f16(kind, n, width, x, stride, y);
    else
        columns_bf16(kind, n, width, x, stride, y);
}
