/* Integer products for processors with dot products of four elements of 8 bits in AVX-512. */
#define SB_ISA_avx512 1
#define SB_INTEGER_FORM sb_integer_fours_avx512
#include "cpu/contraction/integer_fours.h"
