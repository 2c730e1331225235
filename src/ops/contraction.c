#include "ops/contraction.h"

#include <samebit/tensor.h>

#include <string.h>

#include "numerics/chain.h"
#include "ops/real.h"
#include "tensor/tensor.h"

sb_dtype sb_contraction_accumulator(sb_dtype dtype) {
    return dtype == SB_F16 || dtype == SB_BF16 ? SB_F32 : dtype;
}

/* Chains side by side rather than one after the other: the same operations in the same order for
 * each, without waiting for one sum before the next. */
#define DEFINE_ROW(name, type, step)                                                                                   \
    static void name(int64_t n, int64_t k, const type *a, int64_t a_stride, const type *b, int64_t b_k_stride,         \
                     int64_t b_column_stride, type *acc) {                                                             \
        for (int64_t i = 0; i < k; i++) {                                                                              \
            type left = a[i * a_stride];                                                                               \
            const type *right = b + i * b_k_stride;                                                                    \
            if (b_column_stride == 1) {                                                                                \
                for (int64_t j = 0; j < n; j++)                                                                        \
                    acc[j] = step(left, right[j], acc[j]);                                                             \
            } else {                                                                                                   \
                for (int64_t j = 0; j < n; j++)                                                                        \
                    acc[j] = step(left, right[j * b_column_stride], acc[j]);                                           \
            }                                                                                                          \
        }                                                                                                              \
    }

#define WRAPPING_STEP(left, right, acc) ((acc) + (left) * (right))
DEFINE_ROW(row_f32, float, sb_fma_f32)
DEFINE_ROW(row_f64, double, sb_fma_f64)
DEFINE_ROW(row_u32, uint32_t, WRAPPING_STEP)
DEFINE_ROW(row_u64, uint64_t, WRAPPING_STEP)

static void row_16(sb_chain16_format format, int64_t n, int64_t k, const uint16_t *a, int64_t a_stride,
                   const uint16_t *b, int64_t b_k_stride, int64_t b_column_stride, float *acc) {
    for (int64_t j = 0; j < n; j++)
        acc[j] = sb_chain16(a, a_stride, b + j * b_column_stride, b_k_stride, k, acc[j], format);
}

void sb_contract_row(sb_dtype dtype, int64_t n, int64_t k, const void *a, int64_t a_stride, const void *b,
                     int64_t b_k_stride, int64_t b_column_stride, void *acc) {
    switch (dtype) {
    case SB_F32:
        row_f32(n, k, a, a_stride, b, b_k_stride, b_column_stride, acc);
        break;
    case SB_F64:
        row_f64(n, k, a, a_stride, b, b_k_stride, b_column_stride, acc);
        break;
    case SB_F16:
        row_16(sb_chain16_format_f16(), n, k, a, a_stride, b, b_k_stride, b_column_stride, acc);
        break;
    case SB_BF16:
        row_16(sb_chain16_format_bf16(), n, k, a, a_stride, b, b_k_stride, b_column_stride, acc);
        break;
    case SB_S32:
    case SB_U32:
        row_u32(n, k, a, a_stride, b, b_k_stride, b_column_stride, acc);
        break;
    default:
        row_u64(n, k, a, a_stride, b, b_k_stride, b_column_stride, acc);
        break;
    }
}

static void store_32(int64_t count, const uint32_t *acc, uint32_t *out, int64_t stride) {
    for (int64_t i = 0; i < count; i++)
        out[i * stride] = acc[i];
}

static void store_64(int64_t count, const uint64_t *acc, uint64_t *out, int64_t stride) {
    for (int64_t i = 0; i < count; i++)
        out[i * stride] = acc[i];
}

void sb_contraction_store(sb_dtype dtype, int64_t count, const void *acc, void *out, int64_t stride) {
    if (dtype == SB_F16 || dtype == SB_BF16) {
        for (int64_t i = 0; i < count; i++)
            sb_real_store_f32(dtype, out, i * stride, ((const float *)acc)[i]);
    } else if (sb_dtype_size(dtype) == 4) {
        store_32(count, acc, out, stride);
    } else {
        store_64(count, acc, out, stride);
    }
}

static void copy_row(size_t size, int64_t count, int64_t stride, const char *source, char *target) {
    if (stride == 1) {
        memcpy(target, source, (size_t)count * size);
        return;
    }
#define COPY_AS(type)                                                                                                  \
    for (int64_t i = 0; i < count; i++)                                                                                \
        ((type *)(void *)target)[i] = ((const type *)(const void *)source)[i * stride];
    if (size == 4) {
        COPY_AS(uint32_t)
    } else if (size == 2) {
        COPY_AS(uint16_t)
    } else if (size == 8) {
        COPY_AS(uint64_t)
    } else {
        COPY_AS(uint8_t)
    }
#undef COPY_AS
}

static sb_dtype dtype_of_size(size_t size) {
    return size == 4 ? SB_U32 : size == 2 ? SB_U16 : size == 8 ? SB_U64 : SB_U8;
}

void sb_gather_dense(size_t size, int rank, const int64_t *dims, const int64_t *strides, const void *source,
                     void *target) {
    if (rank < 2) {
        copy_row(size, rank > 0 ? dims[0] : 1, rank > 0 ? strides[0] : 1, source, target);
        return;
    }
    sb_tensor from = {.dtype = dtype_of_size(size), .rank = rank, .data = (char *)(uintptr_t)source};
    sb_tensor to = {.dtype = from.dtype, .rank = rank, .data = target};
    memcpy(from.dims, dims, (size_t)rank * sizeof *dims);
    memcpy(to.dims, dims, (size_t)rank * sizeof *dims);
    memcpy(from.strides, strides, (size_t)rank * sizeof *strides);
    sb_row_major_strides(rank, dims, to.strides);
    sb_tensor_copy_elements(&to, &from);
}
