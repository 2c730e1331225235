/* Near products by the processor's multiply-adds of pairs of bf16. */
#include <string.h>

#define PARTS 1
#define part_of(pairs, part) (pairs)
#define multiply_add(sum, a, b) _mm512_dpbf16_ps(sum, (__m512bh)(a), (__m512bh)(b))

#include "cpu/contraction/chain16_near_vector.h"

const sb_chain16_near sb_chain16_near_pairs_avx512 = KERNELS;
