/* Rows of tiles by warpgroups that only the definition can compute (attention16_prefill.cuh), of which there are seldom any.
 * Compiled for 90a alone. A module for each of bf16, f16. */
#include "cuda/attention/attention16.cuh"
#include "cuda/attention/attention16_prefill_parameters.h"

/* Rows of the warp of a tile that has word `index`. */
template <class E>
SB_CUDA_FUNCTION void compute_rows(const sb_cuda_attention16_tiles *p, int64_t index,
                                   sb_attention_scratch<E, sb_attention_real_f32> *scratch) {
    const int64_t number = index / SB_CUDA_ATTENTION16_PREFILL_WARPS;
    sb_attention16_tile tile;
    if (p->attention.pages.table != NULL)
        sb_attention16_find_paged_tile(&p->attention, number, p->rows, &tile);
    else
        tile = sb_attention16_find_tile(&p->attention, number, p->rows);
    const int first = (int)(index % SB_CUDA_ATTENTION16_PREFILL_WARPS % p->row_warps) * 16, left = p->rows - first;
    tile.first_row += first;
    sb_attention16_again<E>(&p->attention, &tile, left < 16 ? left : 16, scratch);
}

/* A block of threads looks at as many words at once, a grid apart, so that those of a tile go to several blocks. Mostly none is set. */
template <int HALF> SB_CUDA_FUNCTION void compute_again(const sb_cuda_attention16_tiles *p) {
    typedef typename sb_attention16_element<HALF>::type E;
    SB_CUDA_SHARED sb_attention_scratch<E, sb_attention_real_f32> scratch;
    SB_CUDA_SHARED int32_t words[THREADS], is_any;
    const int64_t count = p->tiles * SB_CUDA_ATTENTION16_PREFILL_WARPS, grid = gridDim.x;
    SB_CUDA_KEEP_LOOP
    for (int64_t first = blockIdx.x; first < count; first += grid * THREADS) {
        const int64_t own = first + grid * (int)threadIdx.x;
        const int32_t word = own < count ? p->again[own] : 0;
        is_any = false;
        SB_CUDA_BARRIER();
        if (word != 0)
            is_any = true;
        words[threadIdx.x] = word;
        SB_CUDA_BARRIER();
        SB_CUDA_KEEP_LOOP
        for (int i = 0; is_any && i < THREADS; i++)
            if (words[i] != 0)
                compute_rows<E>(p, first + grid * i, &scratch);
        SB_CUDA_BARRIER();
    }
}

#define AGAIN(name, half)                                                                                              \
    SB_CUDA_BLOCK_KERNEL_BOUNDED(sb_cuda_attention16_again_##name, sb_cuda_attention16_tiles, p, THREADS, 2) {         \
        compute_again<half>(p);                                                                                        \
    }
/* The host has both modules in one. */
#if defined(SB_MODULE_f16) || !defined(__CUDACC__)
AGAIN(f16, SB_CUDA_F16)
#endif
#if defined(SB_MODULE_bf16) || !defined(__CUDACC__)
AGAIN(bf16, SB_CUDA_BF16)
#endif
