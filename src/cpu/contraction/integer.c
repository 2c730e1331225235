/* Packing the right sides of integer products. */
#include "cpu/contraction/integer.h"

#include <string.h>

size_t sb_integer_panel_bytes(const sb_integer_form *form, int64_t k) {
    int64_t bytes;
    if (__builtin_mul_overflow(sb_integer_words(form, k), form->panel * form->together, &bytes) ||
        __builtin_add_overflow(bytes, form->panel * (int64_t)sizeof(uint32_t), &bytes))
        return 0;
    return (size_t)bytes;
}

size_t sb_integer_packed_bytes(const sb_integer_form *form, int64_t k, int64_t n) {
    size_t bytes;
    return __builtin_mul_overflow(sb_integer_panel_bytes(form, k), (size_t)sb_integer_panels(form, n), &bytes) ? 0
                                                                                                               : bytes;
}

static void pack_panel(const sb_integer_form *form, const sb_integer_right *right, int64_t first, uint8_t *to) {
    const int64_t together = form->together, word = form->panel * together;
    const int64_t left = right->n - first, columns = left < form->panel ? left : form->panel;
    const uint8_t *b = (const uint8_t *)right->b + first * right->column_stride;
    const uint8_t sign = right->dtype == SB_U8 ? 0x80 : 0;
    uint32_t sums[SB_INTEGER_PANEL] = {0};
    memset(to, 0, (size_t)(sb_integer_words(form, right->k) * word));
    for (int64_t i = 0; i < right->k; i++) {
        const uint8_t *row = b + i * right->k_stride;
        uint8_t *place = to + i / together * word + i % together;
        for (int64_t j = 0; j < columns; j++) {
            const uint8_t byte = row[j * right->column_stride] ^ sign;
            place[j * together] = byte;
            sums[j] += (uint32_t)(int8_t)byte;
        }
    }
    memcpy(to + sb_integer_words(form, right->k) * word, sums, (size_t)form->panel * sizeof *sums);
}

void sb_integer_pack(const sb_integer_form *form, const sb_integer_right *right, int64_t begin, int64_t end,
                     uint8_t *packed) {
    const size_t bytes = sb_integer_panel_bytes(form, right->k);
    for (int64_t panel = begin; panel < end; panel++)
        pack_panel(form, right, panel * form->panel, packed + (size_t)panel * bytes);
}

const sb_integer_form *sb_integer_form_of(sb_isa isa) {
#if SB_HAS_X86_KERNELS
    bool fours = sb_isa_adds_products(isa);
    if (isa == SB_ISA_AVX512)
        return fours ? &sb_integer_fours_avx512 : &sb_integer_pairs_avx512;
    if (isa == SB_ISA_AVX2)
        return fours ? &sb_integer_fours_avx2 : &sb_integer_pairs_avx2;
#endif
    (void)isa;
    return &sb_integer_pairs_scalar;
}
