/* Elements of 2, 4 and 6 bits as ONNX's files have them: one stream of bits, the first element in the lowest bits of the
 * first byte. */
#include <string.h>

#include "onnx/tensor.h"

size_t sb_packed_bytes(sb_dtype dtype, int64_t elements) {
    /* The sizes of tensors are checked for a byte an element, and no more bits than that are packed. */
    size_t count = (size_t)elements, bits = (size_t)sb_dtype_bits(dtype);
    return bits >= 8 || bits == 0 ? count * sb_dtype_size(dtype) : count / 8 * bits + (count % 8 * bits + 7) / 8;
}

void sb_unpack(sb_dtype dtype, int64_t elements, const void *packed, void *unpacked) {
    const uint8_t *from = packed;
    uint8_t *to = unpacked;
    unsigned held = 0;
    int bits = sb_dtype_bits(dtype), count = 0;
    for (int64_t i = 0; i < elements; i++) {
        if (count < bits) {
            held |= (unsigned)*from++ << count;
            count += 8;
        }
        to[i] = (uint8_t)(held & ((1u << bits) - 1u));
        held >>= bits;
        count -= bits;
    }
}

void sb_pack(sb_dtype dtype, int64_t elements, const void *unpacked, void *packed) {
    const uint8_t *from = unpacked;
    uint8_t *to = packed;
    unsigned held = 0;
    int bits = sb_dtype_bits(dtype), count = 0;
    for (int64_t i = 0; i < elements; i++) {
        held |= (from[i] & ((1u << bits) - 1u)) << count;
        for (count += bits; count >= 8; count -= 8, held >>= 8)
            *to++ = (uint8_t)held;
    }
    if (count > 0)
        *to = (uint8_t)held;
}
