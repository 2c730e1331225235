/* Products whose k is cut into the groups of a row map, 16 rows or what a sample has left of them: four groups make a
 * stage of 64 k. Each is fetched by itself, all lines of the tile at once; rows that groups lack are overwritten with
 * zeros in shared memory, where the next sample's lie. */
#ifndef SB_CUDA_CONTRACTION_GEMM16_MAPPED_CUH
#define SB_CUDA_CONTRACTION_GEMM16_MAPPED_CUH

#include "cuda/contraction/gemm16_hopper_epilogue.cuh"

#if SB_HOPPER
#define SB_GEMM16_WHOLE_GROUPS 0x10101010u

/* Where the groups of a stage begin, as it is read: nothing is computed of it before it is used, a stage later. */
typedef struct sb_gemm16_stage_groups {
    int64_t row[4];
} sb_gemm16_stage_groups;

SB_CUDA_FUNCTION sb_gemm16_stage_groups sb_gemm16_stage_groups_of(const sb_gemm16 *p, int block) {
    sb_gemm16_stage_groups found;
    SB_CUDA_UNROLL
    for (int g = 0; g < 4; g++) {
        const int64_t index = (int64_t)block * 4 + g;
        /* Where there is none, behind all rows, where TMA finds zeros. */
        found.row[g] = p->k;
        if (index < p->group_count)
            found.row[g] = p->groups[index].row;
    }
    return found;
}

/* How many rows the groups of a stage have, a byte each. Who multiplies reads them where they lie, a stage ahead: told in shared memory,
 * they would have to be kept until all threads had read them. */
SB_CUDA_FUNCTION uint32_t sb_gemm16_counts_of(const sb_gemm16 *p, int block) {
    uint32_t counts = 0;
    SB_CUDA_UNROLL
    for (int g = 0; g < 4; g++) {
        const int64_t index = (int64_t)block * 4 + g;
        counts |= (index < p->group_count ? (uint32_t)p->groups[index].count : 16u) << 8 * g;
    }
    return counts;
}

/* A warpgroup makes zeros of the rows that groups lack, in so many chunks of 64 lines; a group lies `step` bytes behind the
 * one before. A thread has 16 bytes of one of the sixteen rows, of 128 each, in every chunk: the swizzle turns pieces within
 * rows only. What warpgroups share each of them clears, so that none waits for another. */
SB_CUDA_FUNCTION void sb_gemm16_clear_rows(uint32_t matrix, uint32_t step, int chunks, uint32_t counts) {
    const int thread = (int)threadIdx.x % 128;
    SB_CUDA_UNROLL
    for (int g = 0; g < 4; g++) {
        if (thread / 8 < (int)(counts >> 8 * g & 0xffu))
            continue;
        SB_CUDA_UNROLL
        for (int chunk = 0; chunk < chunks; chunk++)
            sb_shared_clear(matrix + (uint32_t)g * step + (uint32_t)(chunk * 2048 + thread * 16));
    }
}
#endif

#endif
