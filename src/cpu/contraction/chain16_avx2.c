/* The 16-bit chain with AVX2: 32 columns per tile. */
#include "cpu/contraction/chain16_lanes_avx2.h"

#include "cpu/contraction/chain16_vector.h"

#include "cpu/contraction/chain16_near.h"
#include "cpu/contraction/chain16_sweep.h"

const sb_chain16_kernels sb_chain16_kernels_avx2 = {
    .name = "avx2",
    .f32 = &sb_gemm_f32_kernels_avx2,
    .columns = COLUMNS,
    .expand_a = expand_a,
    .expand_b = expand_b,
    .step = step,
    .sweep = sweep,
    .round = sb_chain16_round,
    .near = &sb_chain16_near_avx2,
};
