/* SwiGLU of stored elements, for the host and for devices: sb_gated_value_<type>(gate, value, alpha). f16 and bf16 are
 * widened, computed in f32 and rounded once. */
#ifndef SB_OPS_GATED_VALUES_H
#define SB_OPS_GATED_VALUES_H

#include "numerics/elementary.h"
#include "ops/type_lists.h"

/* Two products of the gate, then one with the value. */
#define SB_DEFINE_VALUES(dtype, suffix, type, real, real_suffix, load, store, unused)                                  \
    static SB_HD_HOT type sb_gated_value_##suffix(type gate, type value, float alpha) {                                \
        real x = load(gate);                                                                                           \
        return store((x * sb_sigmoid_##real_suffix((real)alpha * x)) * load(value));                                   \
    }
SB_FLOAT_TYPES(SB_DEFINE_VALUES, )
#undef SB_DEFINE_VALUES

#endif
