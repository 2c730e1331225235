/* Integer products whose words are four elements of 8 bits, for the sources that say what vectors are and name the form,
 * SB_INTEGER_FORM. */
#define SB_INTEGER_FOURS 1
#include "cpu/contraction/integer_tile.h"

#define BYTES (4 * LANES)

/* Elements are added up by their products with 1. */
static uint32_t row(sb_dtype dtype, const void *a, int64_t stride, int64_t k, void *to) {
    const uint8_t sign = dtype == SB_S8 ? 0x80 : 0, *from = a;
    const vector signs = broadcast((int32_t)(sign * 0x01010101u)), ones = broadcast(0x01010101);
    uint8_t *bytes = to;
    vector sums = broadcast(0);
    uint32_t lanes[LANES], sum = 0;
    int64_t i = 0;
    for (; stride == 1 && i + BYTES <= k; i += BYTES) {
        const vector elements = load(from + i) ^ signs;
        store(bytes + i, elements);
        sums = add_products(sums, elements, ones);
    }
    store(lanes, sums);
    for (int lane = 0; lane < LANES; lane++)
        sum += lanes[lane];
    for (; i < k; i++)
        sum += bytes[i] = from[i * stride] ^ sign;
    for (; i % 4 != 0; i++)
        bytes[i] = 0;
    return sum;
}

const sb_integer_form SB_INTEGER_FORM = {4, COLUMNS, row, multiply};
