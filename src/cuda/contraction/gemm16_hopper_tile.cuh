/* What the kernels of gemm16_hopper.cuh share: the order of tiles, and the ways of results out of
 * registers that are not bulk stores. */
#ifndef SB_CUDA_CONTRACTION_GEMM16_HOPPER_TILE_CUH
#define SB_CUDA_CONTRACTION_GEMM16_HOPPER_TILE_CUH

#include "cuda/contraction/gemm16_hopper_parameters.h"
#include "cuda/contraction/hopper.cuh"
#include "numerics/chain.h"
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

/* Has it worked out here: the compiler would do so where it is used. */
SB_CUDA_FUNCTION void sb_gemm16_keep_place(sb_gemm16_place *place) {
    asm volatile("" : "+r"(place->batch), "+r"(place->m), "+r"(place->n));
}

/* Two results rounded to one register, and then their NaNs, which are 7fff, made the contract's 7fc0 or 7e00. */
#define SB_GEMM16_PACK(suffix, type, excess)                                                                           \
    SB_CUDA_FUNCTION uint32_t sb_round_pair_##suffix(float low, float high) {                                          \
        uint32_t pair;                                                                                                 \
        asm("cvt.rn." type "x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(high), "f"(low));                                   \
        return pair;                                                                                                   \
    }                                                                                                                  \
    SB_CUDA_FUNCTION uint32_t sb_canonical_pair_##suffix(uint32_t pair) {                                              \
        return pair - ((((pair & 0x7fff7fffu) + 0x00010001u) & 0x80008000u) >> 15) * excess;                           \
    }
SB_GEMM16_PACK(bf16, "bf16", 0x3fu)
SB_GEMM16_PACK(f16, "f16", 0x1ffu)

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

SB_CUDA_FUNCTION sb_gemm16_corner sb_gemm16_corner_of(const sb_gemm16_hopper *p, int batch, int m, int n) {
    const int row = m + sb_gemm16_sum_row(0), column = n + sb_gemm16_sum_column(0);
    const int bytes = p->storing & SB_GEMM16_WIDE ? 4 : 2;
    sb_gemm16_corner corner;
    corner.row_bytes = p->row_stride * bytes;
    corner.column_bytes = p->column_stride * bytes;
    corner.first = (char *)p->product.c.data + batch * p->product.c.batch_stride * bytes + row * corner.row_bytes +
                   column * corner.column_bytes;
    corner.rows = (int)p->rows - row;
    corner.columns = (int)p->columns - column;
    corner.storing = p->storing;
    return corner;
}

/* Has it worked out here: the compiler would do so where it is used. */
SB_CUDA_FUNCTION void sb_gemm16_keep_corner(sb_gemm16_corner *corner) {
    asm volatile(""
                 : "+l"(corner->first), "+l"(corner->row_bytes), "+l"(corner->column_bytes), "+r"(corner->rows),
                   "+r"(corner->columns), "+r"(corner->storing));
}

/* The address of sum i, and whether there is such an element. */
SB_CUDA_FUNCTION void *sb_gemm16_sum_address(const sb_gemm16_corner *corner, int i) {
    return corner->first + i / 2 % 2 * 8 * corner->row_bytes + (i / 4 * 8 + i % 2) * corner->column_bytes;
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
            char *at = (char *)sb_gemm16_sum_address(corner, i), *next = at + corner->column_bytes;                    \
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
#else
/* A product by its definition, for the host; no other device is ever given one of these kernels. */
#if defined(__CUDACC__)
#define SB_GEMM16_DEFINE(suffix)                                                                                       \
    SB_CUDA_FUNCTION void sb_gemm16_define_##suffix(const sb_gemm16 *p) {                                              \
        __trap();                                                                                                      \
    }
#else
#define SB_GEMM16_DEFINE(suffix)                                                                                       \
    /* The chain of a line of A and one of B, in the groups of a row map if there is one. */                           \
    SB_CUDA_FUNCTION float sb_gemm16_define_chain_##suffix(const sb_gemm16 *p, const uint16_t *a, const uint16_t *b,   \
                                                           float chain) {                                              \
        const int64_t a_step = p->a.k_stride, b_step = p->b.k_stride;                                                  \
        if (!p->groups)                                                                                                \
            return sb_chain16_##suffix(a, a_step, b, b_step, p->k, chain);                                             \
        for (int64_t g = 0; g < p->group_count; g++)                                                                   \
            chain = sb_chain16_##suffix(a + p->groups[g].row * a_step, a_step, b + p->groups[g].row * b_step, b_step,  \
                                        p->groups[g].count, chain);                                                    \
        return chain;                                                                                                  \
    }                                                                                                                  \
    SB_CUDA_FUNCTION void sb_gemm16_define_##suffix(const sb_gemm16 *p) {                                              \
        const sb_gemm16_output *c = &p->c;                                                                             \
        SB_CUDA_EACH(index, p->batches * p->m * p->n) {                                                                \
            const int64_t column = index % p->n, row = index / p->n % p->m, batch = index / p->n / p->m;               \
            const int64_t at = batch * c->batch_stride + row * c->row_stride + column * c->column_stride;              \
            const uint16_t *a = p->a.data + batch * p->a.batch_stride + row * p->a.line_stride;                        \
            const uint16_t *b = p->b.data + batch * p->b.batch_stride;                                                 \
            const int64_t gate_column = sb_gemm_gate_column(&p->epilogue, column);                                     \
            const float start = c->accumulate ? ((const float *)c->data)[at] : 0.0f;                                   \
            const float gate = sb_gemm16_define_chain_##suffix(p, a, b + gate_column * p->b.line_stride, start);       \
            float value = 0.0f;                                                                                        \
            if (p->gate != SB_GATE_NONE)                                                                               \
                value = sb_gemm16_define_chain_##suffix(                                                               \
                    p, a, b + sb_gemm_value_column(&p->epilogue, column) * p->b.line_stride, start);                   \
            sb_gemm_store(&p->epilogue, c->data, at,                                                                   \
                          sb_gemm_epilogue_apply(&p->epilogue, batch, row, column, gate, value));                      \
        }                                                                                                              \
    }
#endif
SB_GEMM16_DEFINE(bf16)
SB_GEMM16_DEFINE(f16)
#define SB_GEMM16_DEFINED_KERNEL(name) SB_CUDA_KERNEL(name, sb_gemm16_hopper, p)
#endif

#endif
