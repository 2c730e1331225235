/* How an update is combined with what is there. For the host and for devices. */
#ifndef IV_OPS_SCATTER_VALUES_H
#define IV_OPS_SCATTER_VALUES_H

#include <invar/dtype.h>

#include "numerics/convert.h"
#include "numerics/minmax.h"
#include "ops/real.h"

typedef enum iv_scatter_how {
    IV_SCATTER_SET,
    IV_SCATTER_ADD,
    IV_SCATTER_MUL,
    IV_SCATTER_MAX,
    IV_SCATTER_MIN
} iv_scatter_how;

static IV_HD float iv_scatter_value_f32(iv_scatter_how how, float old, float update) {
    switch (how) {
    case IV_SCATTER_ADD:
        return old + update;
    case IV_SCATTER_MUL:
        return old * update;
    case IV_SCATTER_MAX:
        return iv_max_f32(old, update);
    default:
        return iv_min_f32(old, update);
    }
}

static IV_HD double iv_scatter_value_f64(iv_scatter_how how, double old, double update) {
    switch (how) {
    case IV_SCATTER_ADD:
        return old + update;
    case IV_SCATTER_MUL:
        return old * update;
    case IV_SCATTER_MAX:
        return iv_max_f64(old, update);
    default:
        return iv_min_f64(old, update);
    }
}

#define IV_SCATTER_INTEGER(type)                                                                   \
    {                                                                                              \
        type old = *(type *)(void *)to, update = *(const type *)(const void *)from;                \
        switch (how) {                                                                             \
        case IV_SCATTER_ADD:                                                                       \
            old = (type)((uint64_t)old + (uint64_t)update);                                        \
            break;                                                                                 \
        case IV_SCATTER_MUL:                                                                       \
            old = (type)((uint64_t)old * (uint64_t)update);                                        \
            break;                                                                                 \
        case IV_SCATTER_MAX:                                                                       \
            old = update > old ? update : old;                                                     \
            break;                                                                                 \
        default:                                                                                   \
            old = update < old ? update : old;                                                     \
            break;                                                                                 \
        }                                                                                          \
        *(type *)(void *)to = old;                                                                 \
        break;                                                                                     \
    }

/** Combines the element at `to` with the one at `from`, rounded to the dtype; not for
 * IV_SCATTER_SET. On bool, add and max are "or", mul and min are "and". */
static IV_HD void iv_scatter_combine(iv_scatter_how how, iv_dtype dtype, char *to,
                                     const char *from) {
    switch (dtype) {
    case IV_F16:
    case IV_BF16:
    case IV_F32:
        iv_real_store_f32(dtype, to, 0,
                          iv_scatter_value_f32(how, iv_real_load_f32(dtype, to, 0),
                                               iv_real_load_f32(dtype, from, 0)));
        break;
    case IV_F64:
        *(double *)(void *)to =
            iv_scatter_value_f64(how, *(double *)(void *)to, *(const double *)(const void *)from);
        break;
    case IV_BOOL:
        if (how == IV_SCATTER_ADD || how == IV_SCATTER_MAX)
            *to = (char)(*to | *from);
        else
            *to = (char)(*to & *from);
        break;
    case IV_S8:
        IV_SCATTER_INTEGER(int8_t)
    case IV_S16:
        IV_SCATTER_INTEGER(int16_t)
    case IV_S32:
        IV_SCATTER_INTEGER(int32_t)
    case IV_S64:
        IV_SCATTER_INTEGER(int64_t)
    case IV_U8:
        IV_SCATTER_INTEGER(uint8_t)
    case IV_U16:
        IV_SCATTER_INTEGER(uint16_t)
    case IV_U32:
        IV_SCATTER_INTEGER(uint32_t)
    default:
        IV_SCATTER_INTEGER(uint64_t)
    }
}

#endif
