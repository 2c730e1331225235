/* Products for tests: operands in memory of their own, with strides of any kind, and a definition
 * written down once more. Include after cmocka.h. */
#ifndef PRODUCT_CASES_H
#define PRODUCT_CASES_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <samebit/gemm.h>

#include "base/error.h"
#include "numerics/chain.h"
#include "numerics/convert.h"
#include "numerics/elementary.h"
#include "support/random.h"

#define CHECK_OK(expression)                                                                                           \
    do {                                                                                                               \
        sb_error error_ = {SB_OK, ""};                                                                                 \
        sb_error *error = &error_;                                                                                     \
        if ((expression) != SB_OK)                                                                                     \
            fail_msg("%s", error->message);                                                                            \
    } while (0)

/* A matrix whose block of memory ends where its elements do. */
typedef struct block {
    sb_matrix matrix;
    char *bytes;
    size_t size;
} block;

static inline void block_free(block *b) {
    free(b->bytes);
    *b = (block){.bytes = NULL};
}

static inline uint16_t from_f32(sb_dtype dtype, float value) {
    return dtype == SB_BF16 ? sb_bf16_from_f32(value) : sb_f16_from_f32(value);
}

/* Mostly ordinary numbers, and everything that is not. */
static inline float random_value(random_source *source, bool special) {
    uint32_t bits = (uint32_t)random_bits(source);
    switch (special ? random_between(source, 0, 24) : 24) {
    case 0:
        return sb_bits_to_f32(bits); /* anything, NaN among it */
    case 1:
        return sb_bits_to_f32(bits & 0x807fffffu); /* subnormal */
    case 2:
        return sb_bits_to_f32(bits & 0x80000000u); /* zeros of both signs */
    case 3:
        return sb_bits_to_f32(0x7f000000u | (bits & 0x807fffffu)); /* huge */
    case 4:
        return random_between(source, 0, 40) ? 0.5f : sb_bits_to_f32(0x7f800000u | bits);
    default:
        return ((float)(int32_t)bits) * 0x1p-30f; /* -2 to 2 */
    }
}

static inline void random_element(random_source *source, sb_dtype dtype, bool special, char *at) {
    if (dtype == SB_F32) {
        float value = random_value(source, special);
        memcpy(at, &value, sizeof value);
        return;
    }
    uint16_t bits = from_f32(dtype, random_value(source, special));
    if (special && random_between(source, 0, 12) == 0) /* the format's own subnormals */
        bits = (uint16_t)(random_bits(source) & (dtype == SB_BF16 ? 0x807f : 0x83ff));
    memcpy(at, &bits, sizeof bits);
}

/* Gives `matrix`, whose dtype, extents and strides are set, a block filled with random elements. */
static inline block make_block(random_source *source, sb_matrix matrix, int64_t batches, bool special) {
    const int64_t strides[] = {matrix.row_stride, matrix.column_stride, matrix.batch_stride};
    const int64_t counts[] = {matrix.rows, matrix.columns, batches};
    int64_t below = 0, above = 0;
    bool empty = false;
    for (int i = 0; i < 3; i++) {
        int64_t reach = (counts[i] - 1) * strides[i];
        empty = empty || counts[i] == 0;
        *(reach < 0 ? &below : &above) += reach;
    }
    size_t size = sb_dtype_size(matrix.dtype);
    block made = {.size = empty ? 0 : (size_t)(above - below + 1) * size};
    made.bytes = malloc(made.size + 1);
    assert_non_null(made.bytes);
    for (size_t i = 0; i < made.size; i += size)
        random_element(source, matrix.dtype, special, made.bytes + i);
    made.matrix = matrix;
    made.matrix.data = empty ? NULL : made.bytes - below * (int64_t)size;
    return made;
}

/* Strides of one of many kinds; those of what is written keep elements apart. */
static inline void random_strides(random_source *source, sb_matrix *matrix, int64_t batches, bool written) {
    int64_t pad = random_between(source, 0, 2) ? 0 : random_between(source, 1, 9);
    int64_t step = random_between(source, 0, 3) ? 1 : random_between(source, 2, 3);
    int64_t order = random_between(source, 0, 3);
    if (order == 0) { /* batches between the columns' elements */
        matrix->batch_stride = step;
        matrix->column_stride = step * (batches + pad);
        matrix->row_stride = matrix->column_stride * (matrix->columns + 1);
    } else if (order == 1) { /* transposed */
        matrix->row_stride = step;
        matrix->column_stride = step * matrix->rows + pad;
        matrix->batch_stride = matrix->column_stride * matrix->columns + pad;
    } else {
        matrix->column_stride = step;
        matrix->row_stride = step * matrix->columns + pad;
        matrix->batch_stride = matrix->row_stride * matrix->rows + pad;
    }
    int64_t *const strides[] = {&matrix->row_stride, &matrix->column_stride, &matrix->batch_stride};
    for (int i = 0; i < 3; i++) {
        int64_t kind = random_between(source, 0, 7);
        if (kind == 0)
            *strides[i] = -*strides[i];
        if (kind == 1 && !written)
            *strides[i] = 0;
    }
}

static inline sb_matrix random_matrix(random_source *source, sb_dtype dtype, int64_t rows, int64_t columns,
                                      int64_t batches, bool written) {
    sb_matrix matrix = {.dtype = dtype, .rows = rows, .columns = columns};
    random_strides(source, &matrix, batches, written);
    return matrix;
}

/* A packed matrix of random elements, the rows of all batches behind each other. */
static inline block packed_block(random_source *source, sb_dtype dtype, int64_t rows, int64_t columns, int64_t batches,
                                 bool special) {
    sb_matrix matrix = {.dtype = dtype,
                        .rows = rows,
                        .columns = columns,
                        .row_stride = columns,
                        .column_stride = 1,
                        .batch_stride = rows * columns};
    return make_block(source, matrix, batches, special);
}

static inline sb_matrix transposed(sb_matrix matrix) {
    sb_matrix other = matrix;
    other.rows = matrix.columns;
    other.columns = matrix.rows;
    other.row_stride = matrix.column_stride;
    other.column_stride = matrix.row_stride;
    return other;
}

/* Rows [begin, begin + count). */
static inline sb_matrix rows_of(sb_matrix matrix, int64_t begin, int64_t count) {
    matrix.data = (char *)matrix.data + begin * matrix.row_stride * (int64_t)sb_dtype_size(matrix.dtype);
    matrix.rows = count;
    return matrix;
}

/* ---- the definition, once more ---- */

static inline float element_of(const sb_matrix *matrix, int64_t batch, int64_t row, int64_t column) {
    int64_t index = batch * matrix->batch_stride + row * matrix->row_stride + column * matrix->column_stride;
    if (matrix->dtype == SB_F32)
        return ((const float *)matrix->data)[index];
    uint16_t bits = ((const uint16_t *)matrix->data)[index];
    return matrix->dtype == SB_BF16 ? sb_bf16_to_f32(bits) : sb_f16_to_f32(bits);
}

static inline uint16_t bits_of(const sb_matrix *matrix, int64_t batch, int64_t row, int64_t column) {
    return ((const uint16_t *)
                matrix->data)[batch * matrix->batch_stride + row * matrix->row_stride + column * matrix->column_stride];
}

static inline float expected_step(sb_dtype dtype, const uint16_t *a, const uint16_t *b, float acc) {
    return dtype == SB_BF16 ? sb_chain16_step_bf16(a, b, acc) : sb_chain16_step_f16(a, b, acc);
}

/* A chain whose k is cut into samples of `lengths`, each into groups of 16. */
static inline float expected_chain(const sb_gemm *gemm, int samples, const int64_t *lengths, int64_t batch, int64_t row,
                                   int64_t b_column, float acc) {
    int64_t k = 0;
    for (int s = 0; s < samples; s++) {
        for (int64_t end = k + lengths[s]; k < end;) {
            uint16_t left[16] = {0}, right[16] = {0};
            for (int i = 0; i < 16 && k < end; i++, k++) {
                left[i] = bits_of(&gemm->a, batch, row, k);
                right[i] = bits_of(&gemm->b, batch, k, b_column);
            }
            acc = expected_step(gemm->a.dtype, left, right, acc);
        }
    }
    return acc;
}

static inline float expected_activation(sb_activation activation, float y) {
    switch (activation) {
    case SB_ACTIVATION_RELU:
        return y < 0.0f ? 0.0f : y;
    case SB_ACTIVATION_SILU:
        return y * sb_sigmoid_f32(y);
    case SB_ACTIVATION_GELU:
        return 0.5f * y * (1.0f + sb_erf_f32(y * 0.70710678118654752440f));
    case SB_ACTIVATION_GELU_TANH:
        return 0.5f * y * (1.0f + sb_tanh_f32(0.79788456080286535588f * (y + 0.044715f * (y * y * y))));
    default:
        return y;
    }
}

/* Element (row, column) of C before its rounding; C still has what it had before. */
static inline float expected_element(const sb_gemm *gemm, int samples, const int64_t *lengths, int64_t batch,
                                     int64_t row, int64_t column) {
    float sides[2] = {0, 0};
    int64_t n = gemm->c.columns;
    for (int side = 0; side < (gemm->gate == SB_GATE_NONE ? 1 : 2); side++) {
        int64_t b_column = gemm->gate == SB_GATE_INTERLEAVED ? 2 * column + side : column + side * n;
        float start = gemm->accumulate ? element_of(&gemm->c, batch, row, column) : 0.0f;
        float y = expected_chain(gemm, samples, lengths, batch, row, b_column, start);
        if (gemm->scale != 1.0f)
            y = y * gemm->scale;
        if (gemm->bias.data != NULL)
            y = y + element_of(&gemm->bias, batch, 0, b_column);
        sides[side] = y;
    }
    float y = expected_activation(gemm->activation, sides[0]);
    if (gemm->gate != SB_GATE_NONE)
        y = y * sides[1];
    if (gemm->residual.data != NULL)
        y = y + element_of(&gemm->residual, batch, row, column);
    return y;
}

/* The bytes of C's block after the product. The caller frees them. */
static inline char *expected_block(const sb_gemm *gemm, int samples, const int64_t *lengths, const block *c) {
    char *bytes = malloc(c->size + 1);
    assert_non_null(bytes);
    memcpy(bytes, c->bytes, c->size);
    for (int64_t batch = 0; batch < gemm->batches; batch++) {
        for (int64_t row = 0; row < gemm->c.rows; row++) {
            for (int64_t column = 0; column < gemm->c.columns; column++) {
                float y = expected_element(gemm, samples, lengths, batch, row, column);
                int64_t index =
                    batch * gemm->c.batch_stride + row * gemm->c.row_stride + column * gemm->c.column_stride;
                char *at = bytes + ((char *)gemm->c.data - c->bytes) + index * (int64_t)sb_dtype_size(gemm->c.dtype);
                uint32_t wide = y == y ? sb_bits_from_f32(y) : 0x7fc00000u;
                uint16_t narrow = gemm->c.dtype == SB_F32 ? 0 : from_f32(gemm->c.dtype, y);
                if (gemm->c.dtype == SB_F32)
                    memcpy(at, &wide, sizeof wide);
                else
                    memcpy(at, &narrow, sizeof narrow);
            }
        }
    }
    return bytes;
}

/* ---- engines ---- */

static inline sb_engine *make_engine(sb_isa isa, int threads) {
    sb_engine_options options = SB_ENGINE_OPTIONS_DEFAULT;
    options.isa = isa;
    options.threads = threads;
    sb_engine *engine = NULL;
    CHECK_OK(sb_engine_create(&options, &engine, error));
    return engine;
}

#endif
