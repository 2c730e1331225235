/* Tensors for operators that add many elements up. Include after op_checks.h. */
#ifndef ROWS_SUPPORT_H
#define ROWS_SUPPORT_H

static const sb_dtype float_types[] = {SB_F16, SB_BF16, SB_F32, SB_F64};

/* Ordinary numbers, so that every addition rounds and none gives NaN; or, `awkward`, anything. */
static inline sb_tensor *number_tensor(setting *setting, sb_dtype dtype, int rank, const int64_t *dims, bool awkward) {
    sb_tensor *tensor = any_tensor(setting, dtype, rank, dims);
    size_t count = tensor->storage->bytes / sb_dtype_size(dtype);
    for (size_t i = 0; i < count && !awkward && sb_dtype_is_float(dtype); i++) {
        double value = (double)(int32_t)random_bits(&setting->random) * 0x1p-29;
        if (dtype == SB_F64)
            ((double *)tensor->storage->data)[i] = value;
        else if (dtype == SB_F32)
            ((float *)tensor->storage->data)[i] = (float)value;
        else
            ((uint16_t *)tensor->storage->data)[i] =
                dtype == SB_F16 ? sb_f16_from_f32((float)value) : sb_bf16_from_f32((float)value);
    }
    return tensor;
}

#endif
