/* Integer products for processors with dot products of four elements of 8 bits in AVX. */
#define SB_ISA_avx2 1
#define SB_INTEGER_FORM sb_integer_fours_avx2
#include "cpu/contraction/integer_fours.h"
