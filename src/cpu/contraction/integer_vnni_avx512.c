/* The tiles of integer products for processors that multiply and add pairs of 16 bits in one instruction of AVX-512. */
#define SB_ISA_avx512 1
#define SB_INTEGER_VNNI 1
#define SB_INTEGER_MULTIPLY sb_integer_multiply_avx512_vnni
#include "cpu/contraction/integer_tile.h"
