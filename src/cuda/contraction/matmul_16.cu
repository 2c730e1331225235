/* Matrix products of f16 and bf16 that the schedules of gemm16.h do not take (matmul_products.c), on the tensor cores of
 * Hopper, a warp for each tile of 16 by 8.
 *
 * A step of the chain (numerics/chain.h) is one mma.sync.m16n8k16 there, and nowhere else: other
 * generations add up in other ways, so cuda/contraction/matmul.c asks for these kernels on compute
 * capability 9.0 alone. A k behind the last is a product of zeros, as in the definition. Plain:
 * operands go from global memory to registers, with any strides. */
#include "cuda/common/index.cuh"
#include "cuda/common/kernel.cuh"
#include "cuda/contraction/contraction_parameters.h"
#include "numerics/chain.h"
#include "numerics/convert.h"

#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
#define TENSOR_CORES 1
#else
#define TENSOR_CORES 0
#endif

/* Where a warp's tile lies. */
typedef struct tile_place {
    int64_t batch, row, column; /* of its first element */
    int64_t a, b;               /* the batch's matrices, in elements */
} tile_place;

SB_CUDA_FUNCTION tile_place find_tile(const sb_cuda_any_matmul *p, int64_t index) {
    tile_place at;
    at.batch = index;
    at.column = sb_cuda_take(&at.batch, (p->n + 7) / 8) * 8;
    at.row = sb_cuda_take(&at.batch, (p->m + 15) / 16) * 16;
    at.a = at.b = 0;
    int64_t rest = at.batch;
    SB_CUDA_KEEP_LOOP
    for (int d = p->rank - 1; d >= 0; d--) {
        int64_t number = sb_cuda_take(&rest, p->dims[d]);
        at.a += number * p->a_steps[d];
        at.b += number * p->b_steps[d];
    }
    return at;
}

#if TENSOR_CORES
/* Two neighbouring k of a line of an operand; zeros where there are none. */
SB_CUDA_FUNCTION uint32_t load_pair(const uint16_t *line, bool inside, int64_t k, int64_t step, int64_t count) {
    uint32_t low = inside && k < count ? line[k * step] : 0;
    uint32_t high = inside && k + 1 < count ? line[(k + 1) * step] : 0;
    return low | high << 16;
}

#define STEP(type)                                                                                                     \
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32." type "." type ".f32 {%0,%1,%2,%3}, "                         \
                 "{%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"                                                              \
                 : "+f"(sums[0]), "+f"(sums[1]), "+f"(sums[2]), "+f"(sums[3])                                          \
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]))

/* The chains of the thread's four elements: rows `row` and `row` + 8 of two neighbouring columns.
 * Its operands are those of row lane / 4 of A, and of column lane / 4 of B. */
#define CHAINS(suffix, type)                                                                                           \
    do {                                                                                                               \
        const int64_t a_row = tile.row + lane / 4, b_column = tile.column + lane / 4;                                  \
        const uint16_t *upper = (const uint16_t *)p->a + tile.a + a_row * p->a_row;                                    \
        const uint16_t *lower = upper + 8 * p->a_row;                                                                  \
        const uint16_t *right = (const uint16_t *)p->b + tile.b + b_column * p->b_column;                              \
        const bool up = a_row < p->m, low = a_row + 8 < p->m, in = b_column < p->n;                                    \
        SB_CUDA_KEEP_LOOP                                                                                              \
        for (int64_t k = lane % 4 * 2; k < (depth + 15) / 16 * 16; k += 16) {                                          \
            uint32_t a[4] = {load_pair(upper, up, k, p->a_k, depth), load_pair(lower, low, k, p->a_k, depth),          \
                             load_pair(upper, up, k + 8, p->a_k, depth), load_pair(lower, low, k + 8, p->a_k, depth)}; \
            uint32_t b[2] = {load_pair(right, in, k, p->b_k, depth), load_pair(right, in, k + 8, p->b_k, depth)};      \
            STEP(type);                                                                                                \
        }                                                                                                              \
    } while (0)
#else
/* Elsewhere the same elements by the definition. */
#define CHAINS(suffix, type)                                                                                           \
    do {                                                                                                               \
        for (int i = 0; i < 4; i++) {                                                                                  \
            const int64_t row = tile.row + lane / 4 + i / 2 * 8;                                                       \
            const int64_t column = tile.column + lane % 4 * 2 + i % 2;                                                 \
            if (row < p->m && column < p->n)                                                                           \
                sums[i] =                                                                                              \
                    sb_chain16_##suffix((const uint16_t *)p->a + tile.a + row * p->a_row, p->a_k,                      \
                                        (const uint16_t *)p->b + tile.b + column * p->b_column, p->b_k, depth, 0.0f);  \
        }                                                                                                              \
    } while (0)
#endif

#define PRODUCT(suffix, type)                                                                                          \
    SB_CUDA_KERNEL(sb_cuda_matmul_16_##suffix, sb_cuda_any_matmul, p) {                                                \
        const int lane = (int)threadIdx.x % 32, warps = (int)blockDim.x / 32;                                          \
        const int64_t depth = sb_cuda_used(p->used_k, p->k);                                                           \
        const int64_t tiles = p->elements / (p->m * p->n) * ((p->m + 15) / 16) * ((p->n + 7) / 8);                     \
        for (int64_t index = (int64_t)blockIdx.x * warps + (int)threadIdx.x / 32; index < tiles;                       \
             index += (int64_t)gridDim.x * warps) {                                                                    \
            const tile_place tile = find_tile(p, index);                                                               \
            if (tile.row >= sb_cuda_used(p->used_m, p->m) || tile.column >= sb_cuda_used(p->used_n, p->n))             \
                continue;                                                                                              \
            float sums[4] = {0, 0, 0, 0};                                                                              \
            CHAINS(suffix, type);                                                                                      \
            for (int i = 0; i < 4; i++) {                                                                              \
                const int64_t row = tile.row + lane / 4 + i / 2 * 8;                                                   \
                const int64_t column = tile.column + lane % 4 * 2 + i % 2;                                             \
                if (row >= p->m || column >= p->n)                                                                     \
                    continue;                                                                                          \
                float value = p->alpha != 1.0f ? p->alpha * sums[i] : sums[i];                                         \
                if (p->addend) {                                                                                       \
                    const uint16_t *addend = (const uint16_t *)p->addend;                                              \
                    float other = sb_##suffix##_to_f32(addend[row * p->addend_row + column * p->addend_column]);       \
                    value = value + (p->beta != 1.0f ? p->beta * other : other);                                       \
                }                                                                                                      \
                ((uint16_t *)p->y)[(tile.batch * p->m + row) * p->n + column] = sb_##suffix##_from_f32(value);         \
            }                                                                                                          \
        }                                                                                                              \
    }
PRODUCT(f16, "f16")
PRODUCT(bf16, "bf16")
