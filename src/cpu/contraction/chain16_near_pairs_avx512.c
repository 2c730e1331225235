/* Near products by the processor's multiply-adds of pairs of bf16, which round behind each of the two, the odd one's first. */
#include "cpu/contraction/chain16_lanes_avx512.h"

#define PARTS 1
#define part_of(pairs, part) (pairs)
#define multiply_add(sum, a, b) _mm512_dpbf16_ps(sum, (__m512bh)(a), (__m512bh)(b))
#define SUM_VECTORS 4

#include "cpu/contraction/chain16_near_vector.h"

#include "cpu/contraction/chain16_near_pick_avx512.h"

#define MOST_GROUPS 1024
#include "cpu/contraction/chain16_near_chains.h"

const sb_chain16_near sb_chain16_near_pairs_avx512 = KERNELS;
