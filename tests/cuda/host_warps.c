/* What warps do with matrices of 16 bits on the host: ldmatrix, and mma.sync as a step of the chain for each sum
 * (src/cuda/contraction/warp_products.cuh). A warp meets once for each. */
#include <string.h>

#include "host_blocks.h"

#include "numerics/chain.h"

void host_fetch_matrices(uint32_t *matrices, const void *row, bool transposed);
/* Whether products of these are all zeros, whatever is finite in `other`: then a step leaves a chain as it is. Rows that nobody
 * uses are most of a step of decoding. */
static bool gives_zeros(const uint16_t *k, const uint16_t *other, uint16_t infinity) {
    unsigned bits = 0;
    bool is_finite = true;
    for (unsigned i = 0; i < SB_CHAIN16_GROUP; i++) {
        bits |= k[i];
        is_finite &= (other[i] & infinity) != infinity;
    }
    return (bits & 0x7fff) == 0 && is_finite;
}

void host_multiply_matrices(float *sums, const uint32_t *left, const uint32_t *right, bool is_f16);

void host_fetch_matrices(uint32_t *matrices, const void *row, bool transposed) {
    unsigned lane = host_current()->index % 32;
    const char *given = host_exchange_all(&row, sizeof row);
    for (unsigned i = 0; i < 4; i++) {
        uint16_t pair[2];
        for (unsigned j = 0; j < 2; j++) {
            unsigned line = transposed ? lane % 4 * 2 + j : lane / 4, column = transposed ? lane / 4 : lane % 4 * 2 + j;
            const char *from;
            memcpy(&from, given + (i * 8 + line) * HOST_GIVEN_BYTES, sizeof from);
            memcpy(&pair[j], from + column * sizeof pair[j], sizeof pair[j]);
        }
        memcpy(&matrices[i], pair, sizeof pair);
    }
}

/* Words `low` and `high` of what threads `first` to `first` + 3 have given: 16 k of a row or column. */
static void gather(const char *given, unsigned first, unsigned low, unsigned high, uint16_t *k) {
    for (unsigned i = 0; i < 4; i++) {
        const char *from = given + (first + i) * HOST_GIVEN_BYTES;
        memcpy(k + 2 * i, from + low * sizeof(uint32_t), sizeof(uint32_t));
        memcpy(k + 2 * i + 8, from + high * sizeof(uint32_t), sizeof(uint32_t));
    }
}

void host_multiply_matrices(float *sums, const uint32_t *left, const uint32_t *right, bool is_f16) {
    const sb_chain16_format format = is_f16 ? sb_chain16_format_f16() : sb_chain16_format_bf16();
    uint32_t words[6] = {left[0], left[1], left[2], left[3], right[0], right[1]};
    unsigned lane = host_current()->index % 32;
    const char *given = host_exchange_all(words, sizeof words);
    for (unsigned i = 0; i < 4; i++) {
        uint16_t row[SB_CHAIN16_GROUP], column[SB_CHAIN16_GROUP];
        gather(given, lane / 4 * 4, i / 2, i / 2 + 2, row);
        gather(given, (lane % 4 * 2 + i % 2) * 4, 4, 5, column);
        if (!gives_zeros(row, column, is_f16 ? 0x7c00 : 0x7f80) && !gives_zeros(column, row, is_f16 ? 0x7c00 : 0x7f80))
            sums[i] = sb_chain16_step(row, column, sums[i], format);
    }
}
