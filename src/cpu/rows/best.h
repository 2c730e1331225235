/* Finding the best elements of rows: what ArgMax, ArgMin, Hardmax, TopK and MaxPool with indices have in common. One table per
 * instruction set.
 *
 * Elements are compared as integers that order as they do (numerics/minmax.h), the larger the better, so that NaN and zeros of both
 * signs need no case of their own. */
#ifndef SB_CPU_ROWS_BEST_H
#define SB_CPU_ROWS_BEST_H

#include <stdbool.h>
#include <stdint.h>

#include <samebit/dtype.h>
#include <samebit/isa.h>

typedef struct sb_best_kernels {
    /* The keys of `count` numbers; with `least` those of smaller ones are larger, and those of NaN the largest either way. Keys are
     * above INT32_MIN for floats. */
    void (*real_keys)(int64_t count, const float *x, bool least, int32_t *keys);
    void (*integer_keys)(int64_t count, const int32_t *x, bool least, int32_t *keys);
    /* Where the largest of count >= 1 keys lies, the first of equal ones or the last; it goes to *best. */
    int64_t (*find)(int64_t count, const int32_t *keys, bool last, int32_t *best);
    /* Where best[w] is not larger than keys[w] (`last`), or is smaller: that becomes best[w], and `place` places[w]. */
    void (*beat)(int64_t count, const int32_t *keys, int32_t place, bool last, int32_t *best, int32_t *places);
    /* The same, never of equal ones; `place` + w * step becomes places[w]. */
    void (*beat_apart)(int64_t count, const int32_t *keys, int32_t place, int32_t step, int32_t *best, int32_t *places);
    /* parts[p * length + i] = keys[i * stride + p], for p below `stride`: all of `count` keys. */
    void (*split)(int64_t count, const int32_t *keys, int64_t stride, int32_t *parts, int64_t length);
    /* The first of `count` keys that is larger than `bound`; `count` if there is none. */
    int64_t (*above)(int64_t count, const int32_t *keys, int32_t bound);
} sb_best_kernels;

/** The table of an instruction set that sb_isa_resolve gave. */
const sb_best_kernels *sb_best_kernels_for(sb_isa isa);

/** The type with keys, f32 or s32, in which elements of `dtype` are exact; SB_DTYPE_NONE: none. */
sb_dtype sb_best_dtype(sb_dtype dtype);

#endif
