/* A warp's products of 16 x 8 elements over 16 k, for kernels that keep what they multiply in registers.
 *
 * On compute capability 9.0 a product is one mma.sync.m16n8k16, which is a step of the chain (numerics/chain.h) there, and
 * only there: sources that include this are compiled for 90a alone. On the host threads exchange what they hold, and compute
 * the step. All threads of the warp come to each function. */
#ifndef SB_CUDA_CONTRACTION_WARP_PRODUCTS_CUH
#define SB_CUDA_CONTRACTION_WARP_PRODUCTS_CUH

#include "cuda/common/asynchronous.cuh"
#include "cuda/common/dynamic_shared.cuh"
#include "cuda/common/halves.cuh"
#include "cuda/common/shuffle.cuh"
#include "numerics/chain.h"

#if !defined(__CUDACC__)
/* What the instructions do on the host: tests/cuda/host_warps.c. */
extern "C" void host_fetch_matrices(uint32_t *matrices, const void *row, bool transposed);
extern "C" void host_multiply_matrices(float *sums, const uint32_t *left, const uint32_t *right, bool is_f16);
#endif

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
    host_fetch_matrices(matrices, row, TRANSPOSED);
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
    host_multiply_matrices(sums, left, right, HALF == SB_CUDA_F16);
#endif
}

#endif
