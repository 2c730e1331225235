/* The best of keys, compiled once per instruction set: plain loops that the compiler turns into vectors. */
#include "base/isa.h"
#include "cpu/rows/best.h"
#include "numerics/minmax.h"

static void real_keys(int64_t count, const float *restrict x, bool least, int32_t *restrict keys) {
    if (least) {
        for (int64_t i = 0; i < count; i++)
            keys[i] = ~sb_bits_order_nan_low_f32(x[i]);
    } else {
        for (int64_t i = 0; i < count; i++)
            keys[i] = sb_bits_order_f32(x[i]);
    }
}

static void integer_keys(int64_t count, const int32_t *restrict x, bool least, int32_t *restrict keys) {
    const int32_t flip = least ? -1 : 0;
    for (int64_t i = 0; i < count; i++)
        keys[i] = x[i] ^ flip;
}

/* Keys that are looked through at once for one that is known to be among them, or may be. */
#define GROUP 64

static int64_t find_first(int64_t count, const int32_t *keys, int32_t key) {
    for (int64_t begin = 0; begin < count; begin += GROUP) {
        const int64_t end = begin + GROUP < count ? begin + GROUP : count;
        int found = 0;
        for (int64_t i = begin; i < end; i++)
            found |= keys[i] == key;
        for (int64_t i = begin; found && i < end; i++) {
            if (keys[i] == key)
                return i;
        }
    }
    return 0;
}

static int64_t find(int64_t count, const int32_t *keys, bool last, int32_t *best) {
    int32_t most = keys[0];
    for (int64_t i = 1; i < count; i++)
        most = keys[i] > most ? keys[i] : most;
    *best = most;
    if (!last)
        return find_first(count, keys, most);
    int64_t at = count - 1;
    while (keys[at] != most)
        at--;
    return at;
}

static void beat(int64_t count, const int32_t *restrict keys, int32_t place, bool last, int32_t *restrict best,
                 int32_t *restrict places) {
    if (last) {
        for (int64_t w = 0; w < count; w++) {
            places[w] = keys[w] >= best[w] ? place : places[w];
            best[w] = keys[w] >= best[w] ? keys[w] : best[w];
        }
    } else {
        for (int64_t w = 0; w < count; w++) {
            places[w] = keys[w] > best[w] ? place : places[w];
            best[w] = keys[w] > best[w] ? keys[w] : best[w];
        }
    }
}

static void beat_apart(int64_t count, const int32_t *restrict keys, int32_t place, int32_t step, int32_t *restrict best,
                       int32_t *restrict places) {
    for (int64_t w = 0; w < count; w++) {
        places[w] = keys[w] > best[w] ? place + (int32_t)w * step : places[w];
        best[w] = keys[w] > best[w] ? keys[w] : best[w];
    }
}

static void split(int64_t count, const int32_t *restrict keys, int64_t stride, int32_t *restrict parts,
                  int64_t length) {
    if (stride == 2) {
        for (int64_t i = 0; i < count / 2; i++) {
            const int32_t even = keys[2 * i], odd = keys[2 * i + 1];
            parts[i] = even;
            parts[length + i] = odd;
        }
        if (count % 2 != 0)
            parts[count / 2] = keys[count - 1];
        return;
    }
    for (int64_t p = 0; p < stride; p++) {
        for (int64_t i = 0; i * stride + p < count; i++)
            parts[p * length + i] = keys[i * stride + p];
    }
}

/* Whether any of `count` keys, a constant, is larger. */
static inline __attribute__((always_inline)) int any_above(int count, const int32_t *keys, int32_t bound) {
    int32_t most = INT32_MIN;
#if !defined(__clang__)
#pragma GCC unroll 1 /* unrolled first, it would not become vectors */
#endif
    for (int i = 0; i < count; i++)
        most = keys[i] > most ? keys[i] : most;
    return most > bound;
}

/* Groups, and then parts of them: a heap asks again right behind what it has found. */
#define PART 16
static int64_t above(int64_t count, const int32_t *keys, int32_t bound) {
    int64_t i = 0;
    while (i + GROUP <= count && !any_above(GROUP, keys + i, bound))
        i += GROUP;
    while (i + PART <= count && !any_above(PART, keys + i, bound))
        i += PART;
    while (i < count && keys[i] <= bound)
        i++;
    return i;
}

extern const sb_best_kernels SB_ISA_NAME(sb_best_kernels);
const sb_best_kernels SB_ISA_NAME(sb_best_kernels) = {real_keys, integer_keys, find, beat, beat_apart, split, above};
