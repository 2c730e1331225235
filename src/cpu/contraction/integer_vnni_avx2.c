/* The tiles of integer products for processors that multiply and add pairs of 16 bits in one instruction of AVX. */
#define SB_ISA_avx2 1
#define SB_INTEGER_VNNI 1
#define SB_INTEGER_MULTIPLY sb_integer_multiply_avx2_vnni
#include "cpu/contraction/integer_tile.h"
