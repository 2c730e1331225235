/* What a warp does with matrices of 16 bits: fetching them from shared memory (ldmatrix) and m16n8k16, which on compute
 * capability 9.0 is a step of the chain (numerics/chain.h). On the host functions of tests/cuda do the same.
 *
 * Threads hold, with row = lane / 4 and pair = lane % 4 * 2: of A, 16 x 16, words (row, pair), (row + 8, pair), (row, pair + 8)
 * and (row + 8, pair + 8), each with its right neighbour; of B, 16 x 8, words (pair, row) and (pair + 8, row), each with the
 * one below; of the sums, (row, pair), (row, pair + 1), (row + 8, pair) and (row + 8, pair + 1). */
#ifndef SB_CUDA_ATTENTION_WARP_PRODUCTS_CUH
#define SB_CUDA_ATTENTION_WARP_PRODUCTS_CUH

#include "cuda/common/halves.cuh"

#if defined(__CUDACC__)
/* The shared memory that the launch asks for. */
#define SB_CUDA_DYNAMIC_SHARED(name) extern __shared__ __align__(16) unsigned char name[]
/* Code apart, whose registers do not count where it is called seldom. */
#define SB_CUDA_APART static __device__ __noinline__
#else
#define SB_CUDA_APART static
#endif

/* Four matrices of 8 x 8, whose rows of 16 bytes are at the addresses that threads 0 to 7, 8 to 15, … give; `transposed`,
 * each thread gets elements of columns. */
SB_CUDA_FUNCTION void sb_fetch_matrices(uint32_t *matrices, const void *row, bool transposed) {
#if defined(__CUDACC__)
    const uint32_t address = (uint32_t)__cvta_generic_to_shared(row);
    if (transposed)
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
    host_fetch_matrices(matrices, row, transposed);
#endif
}

/* sums += A · B, of 16 k. */
template <int HALF> SB_CUDA_FUNCTION void sb_multiply_warp(float *sums, const uint32_t *a, const uint32_t *b) {
#if defined(__CUDACC__)
    if (HALF == SB_CUDA_BF16)
        asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
            : "+f"(sums[0]), "+f"(sums[1]), "+f"(sums[2]), "+f"(sums[3])
            : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
    else
        asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
            : "+f"(sums[0]), "+f"(sums[1]), "+f"(sums[2]), "+f"(sums[3])
            : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
#else
    host_multiply_warp(sums, a, b, HALF == SB_CUDA_F16);
#endif
}

/* Eight elements to shared memory while the thread goes on, or zeros where not `wanted`; `from` is an address in any case. */
SB_CUDA_FUNCTION void sb_copy_eight(void *to, const void *from, bool wanted) {
#if defined(__CUDACC__)
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"((uint32_t)__cvta_generic_to_shared(to)),
                 "l"(from), "r"(wanted ? 16 : 0)
                 : "memory");
#else
    host_begin_copy(to, wanted ? from : NULL, 16);
#endif
}

#endif
