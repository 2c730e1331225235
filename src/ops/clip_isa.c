/* The loops of Clip, compiled once per instruction set: t = x < least ? least : x, then t > most ?
 * most : t. */
#include <string.h>

#include "ops/clip.h"
#include "ops/clip_values.h"

#define CLIP_LOOPS(suffix, type, real, load, store)                                                                    \
    static void fixed_##suffix(void *opaque, int64_t count, char *const *data, const int64_t *steps) {                 \
        real least, most;                                                                                              \
        memcpy(&least, &((const sb_clip_bounds *)opaque)->least, sizeof least);                                        \
        memcpy(&most, &((const sb_clip_bounds *)opaque)->most, sizeof most);                                           \
        if (steps[0] == sizeof(type) && steps[1] == sizeof(type)) {                                                    \
            type *restrict out = (type *)(void *)data[0];                                                              \
            const type *restrict in = (const type *)(const void *)data[1];                                             \
            for (int64_t i = 0; i < count; i++)                                                                        \
                out[i] = sb_clip_value_##suffix(in[i], least, most);                                                   \
            return;                                                                                                    \
        }                                                                                                              \
        for (int64_t i = 0; i < count; i++)                                                                            \
            SB_AT(type, data[0], steps[0], i) =                                                                        \
                sb_clip_value_##suffix(SB_CONST_AT(type, data[1], steps[1], i), least, most);                          \
    }                                                                                                                  \
    static void given_##suffix(void *opaque, int64_t count, char *const *data, const int64_t *steps) {                 \
        if (steps[2] == 0 && steps[3] == 0) {                                                                          \
            sb_clip_bounds bounds;                                                                                     \
            real least = load(*(const type *)(const void *)data[2]);                                                   \
            real most = load(*(const type *)(const void *)data[3]);                                                    \
            memcpy(&bounds.least, &least, sizeof least);                                                               \
            memcpy(&bounds.most, &most, sizeof most);                                                                  \
            fixed_##suffix(&bounds, count, data, steps);                                                               \
            return;                                                                                                    \
        }                                                                                                              \
        for (int64_t i = 0; i < count; i++)                                                                            \
            SB_AT(type, data[0], steps[0], i) = sb_clip_value_##suffix(SB_CONST_AT(type, data[1], steps[1], i),        \
                                                                       load(SB_CONST_AT(type, data[2], steps[2], i)),  \
                                                                       load(SB_CONST_AT(type, data[3], steps[3], i))); \
    }
#define LOWER_LOOP(suffix, type, real, load)                                                                           \
    static void lower_##suffix(void *opaque, int64_t count, char *const *data, const int64_t *steps) {                 \
        sb_clip_bounds bounds = *(const sb_clip_bounds *)opaque;                                                       \
        const int64_t step = steps[2] == 0 ? count : 1;                                                                \
        for (int64_t i = 0; i < count; i += step) {                                                                    \
            real least = load(SB_CONST_AT(type, data[2], steps[2], i));                                                \
            memcpy(&bounds.least, &least, sizeof least);                                                               \
            fixed_##suffix(&bounds, step, (char *const[]){data[0] + i * steps[0], data[1] + i * steps[1]}, steps);     \
        }                                                                                                              \
    }
#define CLIP_FLOAT(dtype, suffix, type, real, real_suffix, load, store, unused)                                        \
    CLIP_LOOPS(suffix, type, real, load, store)                                                                        \
    LOWER_LOOP(suffix, type, real, load)
#define CLIP_INTEGER(dtype, suffix, type, wide, unused) CLIP_LOOPS(suffix, type, type, SB_SAME, SB_SAME)
SB_FLOAT_TYPES(CLIP_FLOAT, )
SB_SIGNED_TYPES(CLIP_INTEGER, )
SB_UNSIGNED_TYPES(CLIP_INTEGER, )

sb_walk_row *const SB_ISA_NAME(sb_clip_loops)[3][SB_DTYPE_COUNT] = {
    {SB_NUMBER_LOOPS(fixed)},
    {SB_NUMBER_LOOPS(given)},
    {SB_FLOAT_LOOPS(lower)},
};
