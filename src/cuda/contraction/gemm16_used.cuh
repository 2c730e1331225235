/* Products that have room for more rows, columns and k than a run uses, by TMA and wgmma. Tiles behind the used rows and
 * columns are left out. Of k, the blocks are fetched that the used ones are in; what lies behind them in the last stage may be
 * anything, NaN too, and the warpgroups overwrite it with zeros in shared memory before they multiply it. */
#ifndef SB_CUDA_CONTRACTION_GEMM16_USED_CUH
#define SB_CUDA_CONTRACTION_GEMM16_USED_CUH

#include "cuda/contraction/gemm16_hopper_parameters.h"
#include "cuda/contraction/hopper.cuh"

#if SB_HOPPER
/* Whether anybody looks at a tile of a cluster whose first row and column of the kernel's C these are. */
SB_CUDA_FUNCTION bool sb_gemm16_is_used(const sb_gemm16_hopper *p, int row, int column) {
    return (!p->used_rows || row < *p->used_rows) && (!p->used_columns || column < *p->used_columns);
}

/* How many blocks of 64 k are fetched, one at least, and how many of them are in stages that need no zeros: all where TMA
 * has filled up the last stage. Else `cut` is the first block of the last stage, and -1 where there is none to be cut. */
typedef struct sb_gemm16_depth {
    int blocks, whole, cut;
} sb_gemm16_depth;

SB_CUDA_FUNCTION sb_gemm16_depth sb_gemm16_depth_of(const sb_gemm16_hopper *p, int boxes, bool may_cut) {
    sb_gemm16_depth depth = {p->k_blocks, p->k_blocks, -1};
    if (may_cut && SB_CUDA_SELDOM(p->product.used_k != NULL)) {
        const int k = (int)sb_cuda_used(p->product.used_k, p->product.k);
        depth.blocks = k > 0 ? (k + 63) / 64 : 1;
        depth.whole = depth.cut = (depth.blocks - 1) / boxes * boxes;
    }
    return depth;
}

/* A warpgroup makes zeros of k `first` and those behind it in a box of 64 k of so many lines. */
SB_CUDA_FUNCTION void sb_gemm16_clear_k(uint32_t box, int lines, bool mn_major, int first) {
    const int thread = (int)threadIdx.x % 128;
    if (mn_major) {
        /* Rows of 64 lines: the swizzle turns pieces of 16 bytes within rows only. */
        SB_CUDA_KEEP_LOOP
        for (int chunk = 0; chunk < lines / 64; chunk++) {
            SB_CUDA_KEEP_LOOP
            for (int piece = first * 8 + thread; piece < 64 * 8; piece += 128)
                sb_shared_clear(box + (uint32_t)(chunk * 8192 + piece * 16));
        }
        return;
    }
    SB_CUDA_KEEP_LOOP
    for (int line = thread; line < lines; line += 128) {
        SB_CUDA_KEEP_LOOP
        for (int eight = first / 8; eight < 8; eight++)
            sb_shared_keep(box + (uint32_t)(line * 128 + (eight ^ line % 8) * 16), first - eight * 8);
    }
}

/* The k of box `box` of the stage that begins with block `block` from which on none is used: 64 where all are. */
SB_CUDA_FUNCTION int sb_gemm16_used_in(const sb_gemm16_hopper *p, int block, int box) {
    const int left = (int)sb_cuda_used(p->product.used_k, p->product.k) - (block + box) * 64;
    return left < 0 ? 0 : left > 64 ? 64 : left;
}
#endif

#endif
