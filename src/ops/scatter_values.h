/* How an update is combined with what is there. For the host and for devices. */
#ifndef SB_OPS_SCATTER_VALUES_H
#define SB_OPS_SCATTER_VALUES_H

#include <samebit/dtype.h>

#include "numerics/convert.h"
#include "numerics/minmax.h"
#include "ops/real.h"

typedef enum sb_scatter_how {
    SB_SCATTER_SET,
    SB_SCATTER_ADD,
    SB_SCATTER_MUL,
    SB_SCATTER_MAX,
    SB_SCATTER_MIN
} sb_scatter_how;

static SB_HD float sb_scatter_value_f32(sb_scatter_how how, float old, float update) {
    switch (how) {
    case SB_SCATTER_ADD:
        return old + update;
    case SB_SCATTER_MUL:
        return old * update;
    case SB_SCATTER_MAX:
        return sb_max_f32(old, update);
    default:
        return sb_min_f32(old, update);
    }
}

static SB_HD double sb_scatter_value_f64(sb_scatter_how how, double old, double update) {
    switch (how) {
    case SB_SCATTER_ADD:
        return old + update;
    case SB_SCATTER_MUL:
        return old * update;
    case SB_SCATTER_MAX:
        return sb_max_f64(old, update);
    default:
        return sb_min_f64(old, update);
    }
}

#define SB_SCATTER_INTEGER(type)                                                                                       \
    {                                                                                                                  \
        type old = *(type *)(void *)to, update = *(const type *)(const void *)from;                                    \
        switch (how) {                                                                                                 \
        case SB_SCATTER_ADD:                                                                                           \
            old = (type)((uint64_t)old + (uint64_t)update);                                                            \
            break;                                                                                                     \
        case SB_SCATTER_MUL:                                                                                           \
            old = (type)((uint64_t)old * (uint64_t)update);                                                            \
            break;                                                                                                     \
        case SB_SCATTER_MAX:                                                                                           \
            old = update > old ? update : old;                                                                         \
            break;                                                                                                     \
        default:                                                                                                       \
            old = update < old ? update : old;                                                                         \
            break;                                                                                                     \
        }                                                                                                              \
        *(type *)(void *)to = old;                                                                                     \
        break;                                                                                                         \
    }

/** Combines the element at `to` with the one at `from`, rounded to the dtype; not for
 * SB_SCATTER_SET. On bool, add and max are "or", mul and min are "and". */
static SB_HD void sb_scatter_combine(sb_scatter_how how, sb_dtype dtype, char *to, const char *from) {
    switch (dtype) {
    case SB_F16:
    case SB_BF16:
    case SB_F32:
        sb_real_store_f32(dtype, to, 0,
                          sb_scatter_value_f32(how, sb_real_load_f32(dtype, to, 0), sb_real_load_f32(dtype, from, 0)));
        break;
    case SB_F64:
        *(double *)(void *)to = sb_scatter_value_f64(how, *(double *)(void *)to, *(const double *)(const void *)from);
        break;
    case SB_BOOL:
        if (how == SB_SCATTER_ADD || how == SB_SCATTER_MAX)
            *to = (char)(*to | *from);
        else
            *to = (char)(*to & *from);
        break;
    case SB_S8:
        SB_SCATTER_INTEGER(int8_t)
    case SB_S16:
        SB_SCATTER_INTEGER(int16_t)
    case SB_S32:
        SB_SCATTER_INTEGER(int32_t)
    case SB_S64:
        SB_SCATTER_INTEGER(int64_t)
    case SB_U8:
        SB_SCATTER_INTEGER(uint8_t)
    case SB_U16:
        SB_SCATTER_INTEGER(uint16_t)
    case SB_U32:
        SB_SCATTER_INTEGER(uint32_t)
    default:
        SB_SCATTER_INTEGER(uint64_t)
    }
}

#endif
