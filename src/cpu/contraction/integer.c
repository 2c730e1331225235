/* Packing the right sides of integer products. */
#include "cpu/contraction/integer.h"

size_t sb_integer_packed_bytes(int64_t k, int64_t n) {
    int64_t panels = n / SB_INTEGER_PANEL + (n % SB_INTEGER_PANEL != 0), bytes;
    if (__builtin_mul_overflow(panels, sb_integer_pairs(k), &bytes) ||
        __builtin_mul_overflow(bytes, SB_INTEGER_PANEL * 2, &bytes))
        return 0;
    return (size_t)bytes;
}

void sb_integer_pack(const void *b, int64_t k_stride, int64_t column_stride, int64_t k, int64_t n, int64_t begin,
                     int64_t end, uint8_t *packed) {
    const int64_t pairs = sb_integer_pairs(k);
    for (int64_t panel = begin; panel < end; panel++) {
        uint8_t *to = packed + panel * pairs * SB_INTEGER_PANEL * 2;
        for (int64_t p = 0; p < pairs; p++) {
            for (int64_t j = 0; j < SB_INTEGER_PANEL; j++) {
                const int64_t column = panel * SB_INTEGER_PANEL + j;
                for (int64_t i = 2 * p; i < 2 * p + 2; i++)
                    *to++ = column < n && i < k ? ((const uint8_t *)b)[i * k_stride + column * column_stride] : 0;
            }
        }
    }
}

sb_integer_multiply *sb_integer_multiply_of(sb_isa isa) {
#if SB_HAS_X86_KERNELS
    bool at_once = sb_isa_adds_products(isa);
    if (isa == SB_ISA_AVX512)
        return at_once ? sb_integer_multiply_avx512_vnni : sb_integer_multiply_avx512;
    if (isa == SB_ISA_AVX2)
        return at_once ? sb_integer_multiply_avx2_vnni : sb_integer_multiply_avx2;
#endif
    (void)isa;
    return sb_integer_multiply_scalar;
}
