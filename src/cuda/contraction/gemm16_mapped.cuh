/* Products whose k is cut into the groups of a row map, 16 rows or what a sample has left of them: four groups make a
 * stage of 64 k. Each is fetched by itself, all lines of the tile at once; rows that groups lack are overwritten with
 * zeros in shared memory, where the next sample's lie. */
#ifndef SB_CUDA_CONTRACTION_GEMM16_MAPPED_CUH
#define SB_CUDA_CONTRACTION_GEMM16_MAPPED_CUH

#include "cuda/contraction/gemm16_hopper_epilogue.cuh"

#if SB_HOPPER
#define SB_GEMM16_WHOLE_GROUPS 0x10101010u

/* Warps that make stages ready. */
#define SB_GEMM16_CLEARING_WARPS 3

/* The groups of a stage, as they are read: nothing is computed of them before they are used, a stage later. */
typedef struct sb_gemm16_stage_groups {
    sb_row_group group[4];
} sb_gemm16_stage_groups;

SB_CUDA_FUNCTION sb_gemm16_stage_groups sb_gemm16_stage_groups_of(const sb_gemm16 *p, int block) {
    sb_gemm16_stage_groups found;
    SB_CUDA_UNROLL
    for (int g = 0; g < 4; g++) {
        const int64_t index = (int64_t)block * 4 + g;
        /* Where there is none, behind all rows, where TMA finds zeros. */
        found.group[g].row = p->k;
        found.group[g].count = 16;
        if (index < p->group_count)
            found.group[g] = p->groups[index];
    }
    return found;
}

/* How many rows the groups have, a byte each. */
SB_CUDA_FUNCTION uint32_t sb_gemm16_counts_of(const sb_gemm16_stage_groups *groups) {
    return (uint32_t)groups->group[0].count | (uint32_t)groups->group[1].count << 8 |
           (uint32_t)groups->group[2].count << 16 | (uint32_t)groups->group[3].count << 24;
}

/* A warp makes zeros of the rows that groups lack, of the chunks of 64 lines that are its share. */
SB_CUDA_FUNCTION void sb_gemm16_clear_rows(uint32_t matrix, int chunks, uint32_t counts, int warp) {
    const int lane = (int)threadIdx.x % 32;
    SB_CUDA_UNROLL
    for (int g = 0; g < 4; g++) {
        const int count = (int)(counts >> 8 * g & 0xffu);
        if (count == 16)
            continue;
        SB_CUDA_KEEP_LOOP
        for (int chunk = warp; chunk < chunks; chunk += SB_GEMM16_CLEARING_WARPS) {
            /* Rows of 128 bytes, 16 bytes a lane; the swizzle turns pieces within rows only. */
            const uint32_t first = matrix + (uint32_t)((g * chunks + chunk) * 2048 + lane * 16);
            SB_CUDA_KEEP_LOOP
            for (int row = count; row + lane / 8 < 16; row += 4)
                sb_shared_clear(first + (uint32_t)row * 128);
        }
    }
}
#endif

#endif
