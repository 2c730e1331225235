/* Clip of a stored element, for the host and for devices:
 *
 *     sb_clip_value_<type>(x, least, most)
 *
 * with the bounds in the computing type: t = x < least ? least : x, then t > most ? most : t. */
#ifndef SB_OPS_CLIP_VALUES_H
#define SB_OPS_CLIP_VALUES_H

#include "ops/type_lists.h"

#define SB_DEFINE_CLIP(suffix, type, real, load, store)                                                                \
    static SB_HD_HOT type sb_clip_value_##suffix(type x, real least, real most) {                                      \
        real value = load(x);                                                                                          \
        value = value < least ? least : value;                                                                         \
        return store(value > most ? most : value);                                                                     \
    }
#define SB_DEFINE_CLIP_FLOAT(dtype, suffix, type, real, real_suffix, load, store, unused)                              \
    SB_DEFINE_CLIP(suffix, type, real, load, store)
#define SB_DEFINE_CLIP_INTEGER(dtype, suffix, type, wide, unused) SB_DEFINE_CLIP(suffix, type, type, SB_SAME, SB_SAME)
SB_FLOAT_TYPES(SB_DEFINE_CLIP_FLOAT, )
SB_SIGNED_TYPES(SB_DEFINE_CLIP_INTEGER, )
SB_UNSIGNED_TYPES(SB_DEFINE_CLIP_INTEGER, )
#undef SB_DEFINE_CLIP_INTEGER
#undef SB_DEFINE_CLIP_FLOAT
#undef SB_DEFINE_CLIP

#endif
