/* Near products with AVX2, which has no permutation of 64 halves: elements that lie anywhere are put side by side by turning squares. */
#include "cpu/contraction/chain16_lanes_avx2.h"

#define PARTS 2
#define part_of(pairs, part) ((part) == 0 ? i_shift_left(pairs, 16) : i_and(pairs, i_set((int)0xffff0000u)))
#define multiply_add(sum, a, b) f_fma(f_from_bits(a), f_from_bits(b), sum)
#define SUM_VECTORS 2

#include "cpu/contraction/chain16_near_vector.h"

/* Eight lines of twice eight halves: column j of the left square goes to the left of to[j], of the right one to its right. */
static inline void turn_eights(const integers *from, integers *to) {
    integers pairs[8], fours[8];
    _Pragma("GCC unroll 4") for (int i = 0; i < 4; i++) {
        pairs[2 * i] = _mm256_unpacklo_epi16(from[2 * i], from[2 * i + 1]);
        pairs[2 * i + 1] = _mm256_unpackhi_epi16(from[2 * i], from[2 * i + 1]);
    }
    _Pragma("GCC unroll 2") for (int i = 0; i < 2; i++) {
        _Pragma("GCC unroll 2") for (int j = 0; j < 2; j++) {
            fours[4 * i + 2 * j] = _mm256_unpacklo_epi32(pairs[4 * i + j], pairs[4 * i + j + 2]);
            fours[4 * i + 2 * j + 1] = _mm256_unpackhi_epi32(pairs[4 * i + j], pairs[4 * i + j + 2]);
        }
    }
    _Pragma("GCC unroll 4") for (int i = 0; i < 4; i++) {
        to[2 * i] = _mm256_unpacklo_epi64(fours[i], fours[i + 4]);
        to[2 * i + 1] = _mm256_unpackhi_epi64(fours[i], fours[i + 4]);
    }
}

/* A square of 16 lines of 16 halves. */
static inline void turn_square(const integers *from, integers *to) {
    integers upper[8], lower[8];
    turn_eights(from, upper);
    turn_eights(from + 8, lower);
    _Pragma("GCC unroll 8") for (int i = 0; i < 8; i++) {
        to[i] = _mm256_permute2x128_si256(upper[i], lower[i], 0x20);
        to[i + 8] = _mm256_permute2x128_si256(upper[i], lower[i], 0x31);
    }
}

/* A group of A's rows where they lie, and of all columns of a panel, in their places, one behind the other. */
typedef struct group_source {
    const uint16_t *const *rows;
    int64_t first;
    integers columns[PANEL];
} group_source;

static inline void enter_group(group_source *source, const sb_chain16_near_rows *a, const uint16_t *panel,
                               int64_t group) {
    source->rows = a->lines;
    source->first = group * GROUP;
    panel += group * GROUP * PANEL;
    for (int place = 0; place < PANEL; place += GROUP) {
        integers lines[GROUP];
        for (int k = 0; k < GROUP; k++)
            lines[k] = i_load(panel + k * PANEL + place);
        turn_square(lines, source->columns + place);
    }
}

/* All k at once, with the first. */
static inline void choose_k(const group_source *source, const uint16_t *rows, const uint16_t *columns, int k,
                            chosen *to) {
    if (k != 0)
        return;
    integers left[GROUP], right[GROUP];
    for (int lane = 0; lane < GROUP; lane++) {
        left[lane] = i_load(source->rows[sb_chain16_at_place(rows[lane])] + source->first);
        right[lane] = source->columns[columns[lane]];
    }
    turn_square(left, to->a);
    turn_square(right, to->b);
    _Pragma("GCC unroll 16") for (int i = 0; i < GROUP; i++) take_fields(to->a[i], to->b[i], to);
}

#define MOST_GROUPS 256
#include "cpu/contraction/chain16_near_chains.h"

const sb_chain16_near sb_chain16_near_avx2 = KERNELS;
