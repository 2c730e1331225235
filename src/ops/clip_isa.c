/* The loops of Clip, compiled once per instruction set: t = x < least ? least : x, then t > most ?
 * most : t. */
#include <string.h>

#include "ops/clip.h"
#include "ops/clip_values.h"

#define CLIP_LOOPS(suffix, type, real, load, store)                                                \
    static void fixed_##suffix(void *opaque, int64_t count, char *const *data,                     \
                               const int64_t *steps) {                                             \
        real least, most;                                                                          \
        memcpy(&least, &((const iv_clip_bounds *)opaque)->least, sizeof least);                    \
        memcpy(&most, &((const iv_clip_bounds *)opaque)->most, sizeof most);                       \
        if (steps[0] == sizeof(type) && steps[1] == sizeof(type)) {                                \
            type *restrict out = (type *)(void *)data[0];                                          \
            const type *restrict in = (const type *)(const void *)data[1];                         \
            for (int64_t i = 0; i < count; i++)                                                    \
                out[i] = iv_clip_value_##suffix(in[i], least, most);                                        \
            return;                                                                                \
        }                                                                                          \
        for (int64_t i = 0; i < count; i++)                                                        \
            IV_AT(type, data[0], steps[0], i) =                                                    \
                iv_clip_value_##suffix(IV_CONST_AT(type, data[1], steps[1], i), least, most);               \
    }                                                                                              \
    static void given_##suffix(void *opaque, int64_t count, char *const *data,                     \
                               const int64_t *steps) {                                             \
        if (steps[2] == 0 && steps[3] == 0) {                                                      \
            iv_clip_bounds bounds;                                                                 \
            real least = load(*(const type *)(const void *)data[2]);                               \
            real most = load(*(const type *)(const void *)data[3]);                                \
            memcpy(&bounds.least, &least, sizeof least);                                           \
            memcpy(&bounds.most, &most, sizeof most);                                              \
            fixed_##suffix(&bounds, count, data, steps);                                           \
            return;                                                                                \
        }                                                                                          \
        for (int64_t i = 0; i < count; i++)                                                        \
            IV_AT(type, data[0], steps[0], i) =                                                    \
                iv_clip_value_##suffix(IV_CONST_AT(type, data[1], steps[1], i),                             \
                              load(IV_CONST_AT(type, data[2], steps[2], i)),                       \
                              load(IV_CONST_AT(type, data[3], steps[3], i)));                      \
    }
#define CLIP_FLOAT(dtype, suffix, type, real, real_suffix, load, store, unused)                    \
    CLIP_LOOPS(suffix, type, real, load, store)
#define CLIP_INTEGER(dtype, suffix, type, wide, unused)                                            \
    CLIP_LOOPS(suffix, type, type, IV_SAME, IV_SAME)
IV_FLOAT_TYPES(CLIP_FLOAT, )
IV_SIGNED_TYPES(CLIP_INTEGER, )
IV_UNSIGNED_TYPES(CLIP_INTEGER, )

iv_walk_row *const IV_ISA_NAME(iv_clip_loops)[2][IV_DTYPE_COUNT] = {
    {IV_NUMBER_LOOPS(fixed)},
    {IV_NUMBER_LOOPS(given)},
};
