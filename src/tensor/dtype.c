#include <invar/dtype.h>
#include <invar/tensor.h>

#include <string.h>

static const struct {
    const char *name;
    size_t size;
} dtypes[IV_DTYPE_COUNT] = {
    [IV_DTYPE_NONE] = {"none", 0},
    [IV_BOOL] = {"bool", 1},
    [IV_U8] = {"u8", 1},
    [IV_U16] = {"u16", 2},
    [IV_U32] = {"u32", 4},
    [IV_U64] = {"u64", 8},
    [IV_S8] = {"s8", 1},
    [IV_S16] = {"s16", 2},
    [IV_S32] = {"s32", 4},
    [IV_S64] = {"s64", 8},
    [IV_F16] = {"f16", 2},
    [IV_BF16] = {"bf16", 2},
    [IV_F32] = {"f32", 4},
    [IV_F64] = {"f64", 8},
    [IV_STRING] = {"string", sizeof(iv_string)},
};

size_t iv_dtype_size(iv_dtype dtype) {
    return (unsigned)dtype < IV_DTYPE_COUNT ? dtypes[dtype].size : 0;
}

const char *iv_dtype_name(iv_dtype dtype) {
    return (unsigned)dtype < IV_DTYPE_COUNT ? dtypes[dtype].name : "unknown";
}

iv_dtype iv_dtype_from_name(const char *name) {
    for (int i = 1; name != NULL && i < IV_DTYPE_COUNT; i++) {
        if (strcmp(name, dtypes[i].name) == 0)
            return (iv_dtype)i;
    }
    return IV_DTYPE_NONE;
}

bool iv_dtype_is_float(iv_dtype dtype) {
    return dtype >= IV_F16 && dtype <= IV_F64;
}

bool iv_dtype_is_integer(iv_dtype dtype) {
    return dtype >= IV_U8 && dtype <= IV_S64;
}
