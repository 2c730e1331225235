#include <samebit/dtype.h>
#include <samebit/tensor.h>

#include <string.h>

static const struct {
    const char *name;
    size_t size;
} dtypes[SB_DTYPE_COUNT] = {
    [SB_DTYPE_NONE] = {"none", 0}, [SB_BOOL] = {"bool", 1}, [SB_U8] = {"u8", 1},
    [SB_U16] = {"u16", 2},         [SB_U32] = {"u32", 4},   [SB_U64] = {"u64", 8},
    [SB_S8] = {"s8", 1},           [SB_S16] = {"s16", 2},   [SB_S32] = {"s32", 4},
    [SB_S64] = {"s64", 8},         [SB_F16] = {"f16", 2},   [SB_BF16] = {"bf16", 2},
    [SB_F32] = {"f32", 4},         [SB_F64] = {"f64", 8},   [SB_STRING] = {"string", sizeof(sb_string)},
};

size_t sb_dtype_size(sb_dtype dtype) {
    return (unsigned)dtype < SB_DTYPE_COUNT ? dtypes[dtype].size : 0;
}

const char *sb_dtype_name(sb_dtype dtype) {
    return (unsigned)dtype < SB_DTYPE_COUNT ? dtypes[dtype].name : "unknown";
}

sb_dtype sb_dtype_from_name(const char *name) {
    for (int i = 1; name != NULL && i < SB_DTYPE_COUNT; i++) {
        if (strcmp(name, dtypes[i].name) == 0)
            return (sb_dtype)i;
    }
    return SB_DTYPE_NONE;
}

bool sb_dtype_is_float(sb_dtype dtype) {
    return dtype >= SB_F16 && dtype <= SB_F64;
}

bool sb_dtype_is_integer(sb_dtype dtype) {
    return dtype >= SB_U8 && dtype <= SB_S64;
}
