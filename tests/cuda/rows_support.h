/* Tensors for operators that add many elements up. Include after op_checks.h. */
#ifndef ROWS_SUPPORT_H
#define ROWS_SUPPORT_H

static const iv_dtype float_types[] = {IV_F16, IV_BF16, IV_F32, IV_F64};

/* Ordinary numbers, so that every addition rounds and none gives NaN; or, `awkward`, anything. */
static inline iv_tensor *number_tensor(setting *setting, iv_dtype dtype, int rank,
                                       const int64_t *dims, bool awkward) {
    iv_tensor *tensor = any_tensor(setting, dtype, rank, dims);
    size_t count = tensor->storage->bytes / iv_dtype_size(dtype);
    for (size_t i = 0; i < count && !awkward && iv_dtype_is_float(dtype); i++) {
        double value = (double)(int32_t)random_bits(&setting->random) * 0x1p-29;
        if (dtype == IV_F64)
            ((double *)tensor->storage->data)[i] = value;
        else if (dtype == IV_F32)
            ((float *)tensor->storage->data)[i] = (float)value;
        else
            ((uint16_t *)tensor->storage->data)[i] =
                dtype == IV_F16 ? iv_f16_from_f32((float)value) : iv_bf16_from_f32((float)value);
    }
    return tensor;
}

#endif
