#include <samebit/dtype.h>
#include <samebit/tensor.h>

#include <string.h>

static const struct {
    const char *name;
    size_t size;
    int bits; /* packed, where that is less than `size` bytes */
} dtypes[SB_DTYPE_COUNT] = {
    [SB_DTYPE_NONE] = {"none", 0},
    [SB_BOOL] = {"bool", 1},
    [SB_U8] = {"u8", 1},
    [SB_U16] = {"u16", 2},
    [SB_U32] = {"u32", 4},
    [SB_U64] = {"u64", 8},
    [SB_S8] = {"s8", 1},
    [SB_S16] = {"s16", 2},
    [SB_S32] = {"s32", 4},
    [SB_S64] = {"s64", 8},
    [SB_F16] = {"f16", 2},
    [SB_BF16] = {"bf16", 2},
    [SB_F32] = {"f32", 4},
    [SB_F64] = {"f64", 8},
    [SB_STRING] = {"string", sizeof(sb_string)},
    [SB_F8E4M3FN] = {"f8e4m3fn", 1},
    [SB_F8E4M3FNUZ] = {"f8e4m3fnuz", 1},
    [SB_F8E5M2] = {"f8e5m2", 1},
    [SB_F8E5M2FNUZ] = {"f8e5m2fnuz", 1},
    [SB_F8E8M0] = {"f8e8m0", 1},
    [SB_F4E2M1] = {"f4e2m1", 1, 4},
    [SB_S4] = {"s4", 1, 4},
    [SB_U4] = {"u4", 1, 4},
    [SB_S2] = {"s2", 1, 2},
    [SB_U2] = {"u2", 1, 2},
    [SB_F6E2M3] = {"f6e2m3", 1, 6},
    [SB_F6E3M2] = {"f6e3m2", 1, 6},
};

size_t sb_dtype_size(sb_dtype dtype) {
    return (unsigned)dtype < SB_DTYPE_COUNT ? dtypes[dtype].size : 0;
}

int sb_dtype_bits(sb_dtype dtype) {
    if ((unsigned)dtype >= SB_DTYPE_COUNT || dtype == SB_STRING)
        return 0;
    return dtypes[dtype].bits != 0 ? dtypes[dtype].bits : (int)(8 * dtypes[dtype].size);
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

bool sb_dtype_is_small(sb_dtype dtype) {
    return dtype >= SB_F8E4M3FN && dtype <= SB_F6E3M2;
}
