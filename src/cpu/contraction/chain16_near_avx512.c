/* Near products where the processor multiplies f32 only. */
#include "cpu/contraction/chain16_lanes_avx512.h"

#define PARTS 2
#define part_of(pairs, part) ((part) == 0 ? i_shift_left(pairs, 16) : i_and(pairs, i_set((int)0xffff0000u)))
#define multiply_add(sum, a, b) f_fma(f_from_bits(a), f_from_bits(b), sum)
#define SUM_VECTORS 4

#include "cpu/contraction/chain16_near_vector.h"

#include "cpu/contraction/chain16_near_pick_avx512.h"

#define MOST_GROUPS 1024
#include "cpu/contraction/chain16_near_chains.h"

const sb_chain16_near sb_chain16_near_avx512 = KERNELS;
