/* A warp's products of 16 x 8 elements over 16 k, for kernels that keep what they multiply in registers.
 *
 * On compute capability 9.0 a product is one mma.sync.m16n8k16, which is a step of the chain (numerics/chain.h) there, and
 * only there: sources that include this are compiled for 90a alone. On the host threads exchange what they hold, and compute
 * the step. All threads of the warp come to each function. */
#ifndef SB_CUDA_CONTRACTION_WARP_PRODUCTS_CUH
#define SB_CUDA_CONTRACTION_WARP_PRODUCTS_CUH

#include "cuda/common/asynchronous.cuh"
#include "cuda/common/halves.cuh"
#include "cuda/common/shuffle.cuh"
#include "numerics/chain.h"

/* Begins a copy of 16 bytes (asynchronous.cuh), of zeros where nothing is `wanted`; `from` is an address in any case. */
SB_CUDA_FUNCTION void sb_cuda_copy_16_or_zero(void *to, const void *from, bool wanted) {
#if defined(__CUDACC__)
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"((uint32_t)__cvta_generic_to_shared(to)),
                 "l"(from), "r"(wanted ? 16 : 0)
                 : "memory");
#else
    host_begin_copy(to, wanted ? from : NULL, 16);
#endif
}

/* Four matrices of 8 x 8 from shared memory, whose rows, 16 bytes each, are at what threads 0 to 7, 8 to 15, … name. A thread
 * gets of each matrix the elements 2 (t mod 4) and the next one of row t / 4; TRANSPOSED: those two rows' elements t / 4. */
template <bool TRANSPOSED> SB_CUDA_FUNCTION void sb_cuda_fetch_matrices(uint32_t *matrices, const sb_cuda_eight *row) {
#if defined(__CUDACC__)
    const uint32_t address = (uint32_t)__cvta_generic_to_shared(row);
    if (TRANSPOSED)
        asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0,%1,%2,%3}, [%4];"
                     : "=r"(matrices[0]), "=r"(matrices[1]), "=r"(matrices[2]), "=r"(matrices[3])
                     : "r"(address)
                     : "memory");
    else
        asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
                     : "=r"(matrices[0]), "=r"(matrices[1]), "=r"(matrices[2]), "=r"(matrices[3])
                     : "r"(address)
                     : "memory");
#else
    const unsigned lane = threadIdx.x % 32, warp = threadIdx.x - lane;
    for (unsigned m = 0; m < 4; m++) {
        uint16_t halves[2];
        for (unsigned i = 0; i < 2; i++) {
            const sb_cuda_eight *named = row;
            host_exchange(&named, sizeof named, warp + m * 8 + (TRANSPOSED ? lane % 4 * 2 + i : lane / 4));
            halves[i] = sb_cuda_of_eight(*named, (int)(TRANSPOSED ? lane / 4 : lane % 4 * 2 + i));
        }
        matrices[m] = halves[0] | (uint32_t)halves[1] << 16;
    }
#endif
}

/* Makes each of the warp's 128 chains take a step. With g = t / 4 and i = 2 (t mod 4), a thread holds of the left factor, in
 * pairs, row g at k = i, row g + 8 at i, row g at i + 8, row g + 8 at i + 8; of the right factor column g at k = i and i + 8;
 * and the sums of rows g, g, g + 8, g + 8 and columns i, i + 1, i, i + 1. */
template <int HALF>
SB_CUDA_FUNCTION void sb_cuda_multiply_matrices(float *sums, const uint32_t *left, const uint32_t *right) {
#if defined(__CUDACC__)
    if (HALF == SB_CUDA_F16)
        asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
            : "+f"(sums[0]), "+f"(sums[1]), "+f"(sums[2]), "+f"(sums[3])
            : "r"(left[0]), "r"(left[1]), "r"(left[2]), "r"(left[3]), "r"(right[0]), "r"(right[1]));
    else
        asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
            : "+f"(sums[0]), "+f"(sums[1]), "+f"(sums[2]), "+f"(sums[3])
            : "r"(left[0]), "r"(left[1]), "r"(left[2]), "r"(left[3]), "r"(right[0]), "r"(right[1]));
#else
    const unsigned lane = threadIdx.x % 32, warp = threadIdx.x - lane, quad = warp + lane / 4 * 4;
    uint16_t rows[2][16], columns[2][16];
    for (unsigned t = 0; t < 4; t++) {
        for (unsigned half = 0; half < 2; half++) {
            uint32_t pairs[2] = {left[2 * half], left[2 * half + 1]};
            host_exchange(pairs, sizeof pairs, quad + t);
            for (unsigned i = 0; i < 2; i++) {
                rows[i][8 * half + 2 * t] = (uint16_t)pairs[i];
                rows[i][8 * half + 2 * t + 1] = (uint16_t)(pairs[i] >> 16);
            }
        }
        for (unsigned column = 0; column < 2; column++) {
            uint32_t pairs[2] = {right[0], right[1]};
            host_exchange(pairs, sizeof pairs, warp + (lane % 4 * 2 + column) * 4 + t);
            for (unsigned half = 0; half < 2; half++) {
                columns[column][8 * half + 2 * t] = (uint16_t)pairs[half];
                columns[column][8 * half + 2 * t + 1] = (uint16_t)(pairs[half] >> 16);
            }
        }
    }
    for (int i = 0; i < 4; i++)
        sums[i] = HALF == SB_CUDA_F16 ? sb_chain16_step_f16(rows[i / 2], columns[i % 2], sums[i])
                                      : sb_chain16_step_bf16(rows[i / 2], columns[i % 2], sums[i]);
#endif
}

#endif
