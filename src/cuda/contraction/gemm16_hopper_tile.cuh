/* What the kernels of gemm16_hopper.cuh share: the order of tiles, and the ways of results out of
 * registers that are not bulk stores. */
#ifndef SB_CUDA_CONTRACTION_GEMM16_HOPPER_TILE_CUH
#define SB_CUDA_CONTRACTION_GEMM16_HOPPER_TILE_CUH

#include "cuda/common/halves.cuh"
#include "cuda/contraction/gemm16_hopper_parameters.h"
#include "cuda/contraction/gemm16_used.cuh"
#include "cuda/contraction/hopper.cuh"
#include "numerics/convert.h"

#if SB_HOPPER
/* Tiles of clusters in bands of so many rows: those that run at the same time share what they
 * read in the second-level cache. */
#define SB_GEMM16_BAND 8

typedef struct sb_gemm16_place {
    int batch, m, n; /* in tiles of clusters, and of columns */
} sb_gemm16_place;

SB_CUDA_FUNCTION sb_gemm16_place sb_gemm16_place_of(const sb_gemm16_hopper *p, int index) {
    const int of_matrix = p->row_tiles * p->column_tiles;
    sb_gemm16_place place;
    place.batch = index < of_matrix ? 0 : index / of_matrix;
    int rest = index - place.batch * of_matrix;
    /* One line of tiles needs no more divisions. */
    if (p->row_tiles == 1 || p->column_tiles == 1) {
        place.m = p->row_tiles == 1 ? 0 : rest;
        place.n = p->row_tiles == 1 ? rest : 0;
        return place;
    }
    const int band = rest / (SB_GEMM16_BAND * p->column_tiles), first = band * SB_GEMM16_BAND;
    const int left = p->row_tiles - first, rows = left < SB_GEMM16_BAND ? left : SB_GEMM16_BAND;
    rest -= first * p->column_tiles;
    place.n = rest / rows;
    place.m = first + rest - place.n * rows;
    return place;
}

/* A batch by its steps: counted apart where there are two. */
typedef struct sb_gemm16_batch {
    int inner, outer;
} sb_gemm16_batch;

SB_CUDA_FUNCTION sb_gemm16_batch sb_gemm16_batch_of(const sb_gemm16_hopper *p, int batch) {
    sb_gemm16_batch of;
    of.outer = batch < p->inner ? 0 : batch / p->inner;
    of.inner = batch - of.outer * p->inner;
    return of;
}

/* The same as an operand's tensor counts them. */
SB_CUDA_FUNCTION sb_gemm16_batch sb_gemm16_batch_in(const sb_gemm16_steps *steps, const sb_gemm16_batch *batch) {
    sb_gemm16_batch in;
    in.inner = batch->inner * steps->inner;
    in.outer = batch->outer * steps->outer;
    return in;
}

/* Has it worked out here: the compiler would do so where it is used. */
SB_CUDA_FUNCTION void sb_gemm16_keep_place(sb_gemm16_place *place) {
    SB_HOPPER_KEEP("+r"(place->batch), "+r"(place->m), "+r"(place->n));
}

/* Two results rounded to one register, and then their NaNs, which are 7fff, made the contract's 7fc0 or 7e00. */
#if defined(__CUDACC__)
#define SB_GEMM16_ROUND(suffix)                                                                                        \
    uint32_t pair;                                                                                                     \
    asm("cvt.rn." #suffix "x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(high), "f"(low));                                    \
    return pair;
#else
#define SB_GEMM16_ROUND(suffix)                                                                                        \
    return (low != low ? 0x7fffu : sb_##suffix##_from_f32(low)) |                                                      \
           (high != high ? 0x7fffu : (uint32_t)sb_##suffix##_from_f32(high)) << 16;
#endif
#define SB_GEMM16_PACK(suffix, excess)                                                                                 \
    SB_CUDA_FUNCTION uint32_t sb_round_pair_##suffix(float low, float high){                                           \
        SB_GEMM16_ROUND(suffix)} SB_CUDA_FUNCTION uint32_t sb_canonical_pair_##suffix(uint32_t pair) {                 \
        return pair - ((((pair & 0x7fff7fffu) + 0x00010001u) & 0x80008000u) >> 15) * excess;                           \
    }
/* The dtypes by the names that kernels have of them. */
enum { sb_gemm16_dtype_bf16 = SB_BF16, sb_gemm16_dtype_f16 = SB_F16 };
SB_GEMM16_PACK(bf16, 0x3fu)
SB_GEMM16_PACK(f16, 0x1ffu)

SB_CUDA_FUNCTION int sb_gemm16_sum_row(int i) {
    return (int)threadIdx.x % 128 / 32 * 16 + (int)threadIdx.x % 32 / 4 + i / 2 % 2 * 8;
}

SB_CUDA_FUNCTION int sb_gemm16_sum_column(int i) {
    return i / 4 * 8 + (int)threadIdx.x % 4 * 2 + i % 2;
}

/* Where a thread's sums lie in C, and how they get there. */
typedef struct sb_gemm16_corner {
    char *first;                     /* the address of the first one */
    int64_t row_bytes, column_bytes; /* bytes to the kernel's next row and column */
    int rows, columns;               /* that there are from the first one on; may be none */
    int storing;                     /* of the parameters */
} sb_gemm16_corner;

/* Places are computed of elements too that there are not, where strides may be any, and then not used. That wraps around
 * on the device, and is said to on the host. */
SB_CUDA_FUNCTION int64_t sb_gemm16_wrapped(int64_t count, int64_t stride) {
#if defined(__CUDACC__)
    return count * stride;
#else
    return (int64_t)((uint64_t)count * (uint64_t)stride);
#endif
}

SB_CUDA_FUNCTION char *sb_gemm16_behind(char *address, int64_t bytes) {
#if defined(__CUDACC__)
    return address + bytes;
#else
    return (char *)((uintptr_t)address + (uintptr_t)bytes);
#endif
}

SB_CUDA_FUNCTION sb_gemm16_corner sb_gemm16_corner_of(const sb_gemm16_hopper *p, int batch, int m, int n) {
    const int row = m + sb_gemm16_sum_row(0), column = n + sb_gemm16_sum_column(0);
    const int bytes = p->storing & SB_GEMM16_WIDE ? 4 : 2;
    sb_gemm16_corner corner;
    corner.row_bytes = sb_gemm16_wrapped(p->row_stride, bytes);
    corner.column_bytes = sb_gemm16_wrapped(p->column_stride, bytes);
    corner.first = sb_gemm16_behind((char *)p->product.c.data,
                                    sb_gemm16_wrapped(sb_gemm16_wrapped(batch, p->product.c.batch_stride), bytes));
    corner.first = sb_gemm16_behind(corner.first, sb_gemm16_wrapped(row, corner.row_bytes));
    corner.first = sb_gemm16_behind(corner.first, sb_gemm16_wrapped(column, corner.column_bytes));
    const int end = m + p->tile_rows;
    corner.rows = (end < (int)p->rows ? end : (int)p->rows) - row;
    corner.columns = (int)p->columns - column;
    corner.storing = p->storing;
    return corner;
}

/* Has it worked out here: the compiler would do so where it is used. */
SB_CUDA_FUNCTION void sb_gemm16_keep_corner(sb_gemm16_corner *corner) {
    SB_HOPPER_KEEP("+l"(corner->first), "+l"(corner->row_bytes), "+l"(corner->column_bytes), "+r"(corner->rows),
                   "+r"(corner->columns), "+r"(corner->storing));
}

/* The address of sum i, and whether there is such an element. */
SB_CUDA_FUNCTION void *sb_gemm16_sum_address(const sb_gemm16_corner *corner, int i) {
    char *const row = sb_gemm16_behind(corner->first, sb_gemm16_wrapped(i / 2 % 2 * 8, corner->row_bytes));
    return sb_gemm16_behind(row, sb_gemm16_wrapped(i / 4 * 8 + i % 2, corner->column_bytes));
}

SB_CUDA_FUNCTION bool sb_gemm16_has_sum(const sb_gemm16_corner *corner, int i) {
    return i / 2 % 2 * 8 < corner->rows && i / 4 * 8 + i % 2 < corner->columns;
}

/* What chains begin with that continue those of C. */
SB_CUDA_FUNCTION void sb_gemm16_begin(const sb_gemm16_corner *corner, int count, float *sums) {
    SB_CUDA_UNROLL
    for (int i = 0; i < count; i++)
        sums[i] = sb_gemm16_has_sum(corner, i) ? *(const float *)sb_gemm16_sum_address(corner, i) : 0.0f;
}

/* Results that are only rounded, from registers. What is asked of all is asked once where most go: this is the end of a
 * kernel, whose instructions come out of the cache while nothing else goes on. */
#define SB_GEMM16_STORE(suffix)                                                                                        \
    SB_CUDA_FUNCTION void sb_gemm16_store_##suffix(const sb_gemm16_corner *corner, int count, const float *sums) {     \
        if ((corner->storing & (SB_GEMM16_WIDE | SB_GEMM16_PAIRS)) == SB_GEMM16_PAIRS) {                               \
            SB_CUDA_UNROLL                                                                                             \
            for (int i = 0; i < count; i += 2) {                                                                       \
                if (sb_gemm16_has_sum(corner, i))                                                                      \
                    *(uint32_t *)sb_gemm16_sum_address(corner, i) =                                                    \
                        sb_canonical_pair_##suffix(sb_round_pair_##suffix(sums[i], sums[i + 1]));                      \
            }                                                                                                          \
            return;                                                                                                    \
        }                                                                                                              \
        SB_CUDA_UNROLL                                                                                                 \
        for (int i = 0; i < count; i += 2) {                                                                           \
            const float one = sb_gemm_canonical(sums[i]), other = sb_gemm_canonical(sums[i + 1]);                      \
            const uint32_t pair = sb_canonical_pair_##suffix(sb_round_pair_##suffix(one, other));                      \
            char *at = (char *)sb_gemm16_sum_address(corner, i), *next = sb_gemm16_behind(at, corner->column_bytes);   \
            if (!sb_gemm16_has_sum(corner, i))                                                                         \
                continue;                                                                                              \
            if (corner->storing & SB_GEMM16_WIDE) {                                                                    \
                if (corner->storing & SB_GEMM16_PAIRS) {                                                               \
                    *(float2 *)(void *)at = make_float2(one, other);                                                   \
                    continue;                                                                                          \
                }                                                                                                      \
                *(float *)(void *)at = one;                                                                            \
                if (sb_gemm16_has_sum(corner, i + 1))                                                                  \
                    *(float *)(void *)next = other;                                                                    \
            } else {                                                                                                   \
                *(uint16_t *)(void *)at = (uint16_t)pair;                                                              \
                if (sb_gemm16_has_sum(corner, i + 1))                                                                  \
                    *(uint16_t *)(void *)next = (uint16_t)(pair >> 16);                                                \
            }                                                                                                          \
        }                                                                                                              \
    }
SB_GEMM16_STORE(bf16)
SB_GEMM16_STORE(f16)
#endif

#endif
