/* Near products where the processor multiplies f32 only. */
#include <string.h>

#define PARTS 2
#define part_of(pairs, part)                                                                                           \
    ((part) == 0 ? _mm512_slli_epi32(pairs, 16) : _mm512_and_si512(pairs, _mm512_set1_epi32((int)0xffff0000u)))
#define multiply_add(sum, a, b) _mm512_fmadd_ps(_mm512_castsi512_ps(a), _mm512_castsi512_ps(b), sum)

#include "cpu/contraction/chain16_near_vector.h"

const sb_chain16_near sb_chain16_near_avx512 = KERNELS;
