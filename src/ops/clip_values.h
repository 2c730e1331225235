/* Clip of a stored element, for the host and for devices:
 *
 *     iv_clip_value_<type>(x, least, most)
 *
 * with the bounds in the computing type: t = x < least ? least : x, then t > most ? most : t. */
#ifndef IV_OPS_CLIP_VALUES_H
#define IV_OPS_CLIP_VALUES_H

#include "ops/type_lists.h"

#define IV_DEFINE_CLIP(suffix, type, real, load, store)                                            \
    static IV_HD_HOT type iv_clip_value_##suffix(type x, real least, real most) {                  \
        real value = load(x);                                                                      \
        value = value < least ? least : value;                                                     \
        return store(value > most ? most : value);                                                 \
    }
#define IV_DEFINE_CLIP_FLOAT(dtype, suffix, type, real, real_suffix, load, store, unused)          \
    IV_DEFINE_CLIP(suffix, type, real, load, store)
#define IV_DEFINE_CLIP_INTEGER(dtype, suffix, type, wide, unused)                                  \
    IV_DEFINE_CLIP(suffix, type, type, IV_SAME, IV_SAME)
IV_FLOAT_TYPES(IV_DEFINE_CLIP_FLOAT, )
IV_SIGNED_TYPES(IV_DEFINE_CLIP_INTEGER, )
IV_UNSIGNED_TYPES(IV_DEFINE_CLIP_INTEGER, )
#undef IV_DEFINE_CLIP_INTEGER
#undef IV_DEFINE_CLIP_FLOAT
#undef IV_DEFINE_CLIP

#endif
