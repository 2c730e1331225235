/* The 16-bit chain with AVX-512 F, BW, DQ, VL: 64 columns per tile. */
#include "cpu/contraction/chain16_lanes_avx512.h"

#include "cpu/contraction/chain16_vector.h"

#include "cpu/contraction/chain16_near.h"
#include "cpu/contraction/chain16_sweep.h"

#define KERNELS(its_name, near_kernels)                                                                                \
    {                                                                                                                  \
        .name = its_name, .f32 = &sb_gemm_f32_kernels_avx512, .columns = COLUMNS, .expand_a = expand_a,                \
        .expand_b = expand_b, .step = step, .sweep = sweep, .round = sb_chain16_round, .near = near_kernels            \
    }

const sb_chain16_kernels sb_chain16_kernels_avx512 = KERNELS("avx512", &sb_chain16_near_avx512);
const sb_chain16_kernels sb_chain16_kernels_avx512_bf16 = KERNELS("avx512 with bf16", &sb_chain16_near_pairs_avx512);
