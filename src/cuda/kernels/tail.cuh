/* Element-wise programs behind a contraction, for its kernel.
 *
 *     float value = …;                                the contraction's element, not rounded yet
 *     iv_cuda_tail_place place;
 *     iv_cuda_tail_begin(&p->tail, batch, &place);    once where a thread's elements share a batch
 *     place.row = row; place.column = column;
 *     value = iv_cuda_tail_f32(&p->tail, &place, value);
 *
 * or four elements at once, which costs far less than four times as much: see
 * iv_cuda_tail_f32x4. The result is a value of the output's dtype, widened to f32, so that storing
 * it rounds nothing. A program without steps gives back the base, rounded to its dtype.
 *
 * These take light programs only (iv_cuda_tail_plan_is_light): elementary functions would add some
 * 20,000 instructions to every kernel. */
#ifndef IV_CUDA_KERNELS_TAIL_CUH
#define IV_CUDA_KERNELS_TAIL_CUH

#include "cuda/kernels/kernel.cuh"
#include "cuda/kernels/tail_parameters.h"
#include "numerics/convert.h"
#include "ops/batch_factors_formula.h"
#include "ops/binary_values.h"
#include "ops/unary_values.h"

/* An element of any dtype as f32, by the rules of Cast. */
IV_CUDA_FUNCTION float iv_cuda_tail_element(int dtype, const char *at) {
    switch (dtype) {
    case IV_CUDA_TAIL_F16:
        return iv_f16_to_f32(*(const uint16_t *)(const void *)at);
    case IV_CUDA_TAIL_BF16:
        return iv_bf16_to_f32(*(const uint16_t *)(const void *)at);
    case IV_CUDA_TAIL_U8:
        return (float)*(const uint8_t *)at;
    case IV_CUDA_TAIL_F64:
        return (float)*(const double *)(const void *)at;
    case IV_CUDA_TAIL_U16:
        return (float)*(const uint16_t *)(const void *)at;
    case IV_CUDA_TAIL_U32:
        return (float)*(const uint32_t *)(const void *)at;
    case IV_CUDA_TAIL_U64:
        return iv_f32_from_u64(*(const uint64_t *)(const void *)at);
    case IV_CUDA_TAIL_S8:
        return (float)*(const int8_t *)at;
    case IV_CUDA_TAIL_S16:
        return (float)*(const int16_t *)(const void *)at;
    case IV_CUDA_TAIL_S32:
        return (float)*(const int32_t *)(const void *)at;
    case IV_CUDA_TAIL_S64:
        return iv_f32_from_i64(*(const int64_t *)(const void *)at);
    default:
        return *(const float *)(const void *)at;
    }
}

/* An output element by its place in the matrix that the contraction computes, and where its
 * neighbours are when several are evaluated at once: element j lies at
 * (row + j row_distance, column + j column_distance), in the same batch. */
typedef struct iv_cuda_tail_place {
    int64_t outer, inner; /* batch */
    int64_t row, column;
    int32_t row_distance, column_distance;
} iv_cuda_tail_place;

/* Finds the batch's place; row, column and distances are left at 0. */
IV_CUDA_FUNCTION void iv_cuda_tail_begin(const iv_cuda_tail *tail, int64_t batch,
                                         iv_cuda_tail_place *place) {
    int64_t inner = tail->inner_batch;
    bool narrow = batch <= UINT32_MAX && inner <= UINT32_MAX;
    place->outer = narrow ? (uint32_t)batch / (uint32_t)inner : batch / inner;
    place->inner = batch - place->outer * inner;
    place->row = place->column = 0;
    place->row_distance = place->column_distance = 0;
}

typedef struct iv_cuda_tail_context {
    const iv_cuda_tail *tail;
    const iv_cuda_tail_place *place;
} iv_cuda_tail_context;

IV_CUDA_FUNCTION void iv_cuda_tail_load(iv_cuda_tail_context context, int index, int width,
                                        float *values) {
    const iv_cuda_tail_input *input = &context.tail->inputs[index];
    const iv_cuda_tail_place *place = context.place;
    const char *at = input->data + place->outer * input->steps[0] + place->inner * input->steps[1] +
                     place->row * input->steps[2] + place->column * input->steps[3];
    int64_t distance =
        place->row_distance * input->steps[2] + place->column_distance * input->steps[3];
    if (input->dtype == IV_CUDA_TAIL_F32) {
        IV_CUDA_UNROLL
        for (int j = 0; j < width; j++)
            values[j] = *(const float *)(const void *)(at + j * distance);
        return;
    }
    if (input->dtype == IV_CUDA_TAIL_F16) {
        IV_CUDA_UNROLL
        for (int j = 0; j < width; j++)
            values[j] = iv_f16_to_f32(*(const uint16_t *)(const void *)(at + j * distance));
        return;
    }
    IV_CUDA_UNROLL
    for (int j = 0; j < width; j++)
        values[j] = iv_bf16_to_f32(*(const uint16_t *)(const void *)(at + j * distance));
}

#define IV_TAIL_NAME iv_cuda_tail_evaluate_1
#define IV_TAIL_WIDTH 1
#define IV_TAIL_HEAVY 0
#define IV_TAIL_REGISTERS IV_CUDA_TAIL_LIGHT_REGISTERS
#define IV_TAIL_CONTEXT iv_cuda_tail_context
#define IV_TAIL_LOAD(context, input, values) iv_cuda_tail_load(context, input, 1, values)
#define IV_TAIL_BEGIN IV_TAIL_LOAD
#define IV_TAIL_END(context, input, values) (void)0
#include "cuda/kernels/tail_evaluator.cuh"

#define IV_TAIL_NAME iv_cuda_tail_evaluate_4
#define IV_TAIL_WIDTH 4
#define IV_TAIL_HEAVY 0
#define IV_TAIL_REGISTERS IV_CUDA_TAIL_LIGHT_REGISTERS
#define IV_TAIL_CONTEXT iv_cuda_tail_context
#define IV_TAIL_LOAD(context, input, values) iv_cuda_tail_load(context, input, 4, values)
#define IV_TAIL_BEGIN IV_TAIL_LOAD
#define IV_TAIL_END(context, input, values) (void)0
#include "cuda/kernels/tail_evaluator.cuh"

/* The program's value where the contraction's is `value`. */
IV_CUDA_FUNCTION float iv_cuda_tail_f32(const iv_cuda_tail *tail, const iv_cuda_tail_place *place,
                                        float value) {
    iv_cuda_tail_context context = {tail, place};
    iv_cuda_tail_evaluate_1(&tail->code, context, &value);
    return value;
}

/* The next step of a quick program for four elements. */
IV_CUDA_FUNCTION void iv_cuda_tail_quick_step(const iv_cuda_tail *tail, int at,
                                              const iv_cuda_tail_place *place, float *values) {
    const int what = tail->quick[at];
    if (what == IV_CUDA_TAIL_QUICK_RELU) {
        IV_CUDA_UNROLL
        for (int j = 0; j < 4; j++)
            values[j] = iv_unary_Relu_f32(values[j], 0, 0);
    } else if (what == IV_CUDA_TAIL_QUICK_CLIP) {
        const float least = tail->code.steps[at].a, most = tail->code.steps[at].b;
        IV_CUDA_UNROLL
        for (int j = 0; j < 4; j++) {
            float raised = values[j] < least ? least : values[j];
            values[j] = raised > most ? most : raised;
        }
    } else {
        const iv_cuda_tail_input *input = &tail->inputs[what];
        const char *data = input->data + place->outer * input->steps[0] +
                           place->inner * input->steps[1] + place->row * input->steps[2] +
                           place->column * input->steps[3];
        int64_t distance =
            place->row_distance * input->steps[2] + place->column_distance * input->steps[3];
        IV_CUDA_UNROLL
        for (int j = 0; j < 4; j++)
            values[j] = values[j] + *(const float *)(const void *)(data + j * distance);
    }
}

/* The same for four elements at `place` and its distances, in registers if indices into `values`
 * are constants. Elements outside of the matrix must not be asked for: their operands are loaded. */
IV_CUDA_FUNCTION void iv_cuda_tail_f32x4(const iv_cuda_tail *tail, const iv_cuda_tail_place *place,
                                         float *values) {
    iv_cuda_tail_context context = {tail, place};
    if (tail->quick_count > 0) {
        /* Straight ahead, without the interpreter's jumps. */
        iv_cuda_tail_quick_step(tail, 0, place, values);
        if (tail->quick_count > 1)
            iv_cuda_tail_quick_step(tail, 1, place, values);
        if (tail->quick_count > 2)
            iv_cuda_tail_quick_step(tail, 2, place, values);
        if (tail->quick_count > 3)
            iv_cuda_tail_quick_step(tail, 3, place, values);
        return;
    }
    iv_cuda_tail_evaluate_4(&tail->code, context, values);
}

#endif
