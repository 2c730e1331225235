/* Element-wise programs behind a contraction, for its kernel.
 *
 *     float value = …;                                the contraction's element, not rounded yet
 *     sb_cuda_epilogue_place place;
 *     sb_cuda_epilogue_begin(&p->epilogue, batch, &place);    once where a thread's elements share a batch
 *     place.row = row; place.column = column;
 *     value = sb_cuda_epilogue_f32(&p->epilogue, &place, value);
 *
 * or four elements at once, which costs far less than four times as much: see
 * sb_cuda_epilogue_f32x4. The result is a value of the output's dtype, widened to f32, so that storing
 * it rounds nothing. A program without steps gives back the base, rounded to its dtype.
 *
 * These take light programs only (sb_cuda_epilogue_plan_is_light): elementary functions would add some
 * 20,000 instructions to every kernel. */
#ifndef SB_CUDA_CONTRACTION_EPILOGUE_CUH
#define SB_CUDA_CONTRACTION_EPILOGUE_CUH

#include "cuda/common/kernel.cuh"
#include "cuda/common/rounding.cuh"
#include "cuda/contraction/epilogue_parameters.h"
#include "numerics/convert.h"
#include "ops/batch_factors_formula.h"
#include "ops/binary_values.h"
#include "ops/unary_values.h"

/* An element of any dtype as f32, by the rules of Cast. */
SB_CUDA_FUNCTION float sb_cuda_epilogue_element(int dtype, const char *at) {
    switch (dtype) {
    case SB_CUDA_EPILOGUE_F16:
        return sb_f16_to_f32(*(const uint16_t *)(const void *)at);
    case SB_CUDA_EPILOGUE_BF16:
        return sb_bf16_to_f32(*(const uint16_t *)(const void *)at);
    case SB_CUDA_EPILOGUE_U8:
        return (float)*(const uint8_t *)at;
    case SB_CUDA_EPILOGUE_F64:
        return (float)*(const double *)(const void *)at;
    case SB_CUDA_EPILOGUE_U16:
        return (float)*(const uint16_t *)(const void *)at;
    case SB_CUDA_EPILOGUE_U32:
        return (float)*(const uint32_t *)(const void *)at;
    case SB_CUDA_EPILOGUE_U64:
        return sb_f32_from_u64(*(const uint64_t *)(const void *)at);
    case SB_CUDA_EPILOGUE_S8:
        return (float)*(const int8_t *)at;
    case SB_CUDA_EPILOGUE_S16:
        return (float)*(const int16_t *)(const void *)at;
    case SB_CUDA_EPILOGUE_S32:
        return (float)*(const int32_t *)(const void *)at;
    case SB_CUDA_EPILOGUE_S64:
        return sb_f32_from_i64(*(const int64_t *)(const void *)at);
    default:
        return *(const float *)(const void *)at;
    }
}

/* An output element by its place in the matrix that the contraction computes, and where its neighbours are when several
 * are evaluated at once: element j lies at (row + j row_distance, column + j column_distance), in the same batch. */
typedef struct sb_cuda_epilogue_place {
    int64_t outer, inner; /* batch */
    int64_t row, column;
    int32_t row_distance, column_distance;
} sb_cuda_epilogue_place;

/* Finds the batch's place; row, column and distances are left at 0. */
SB_CUDA_FUNCTION void sb_cuda_epilogue_begin(const sb_cuda_epilogue *epilogue, int64_t batch,
                                             sb_cuda_epilogue_place *place) {
    int64_t inner = epilogue->inner_batch;
    bool narrow = batch <= UINT32_MAX && inner <= UINT32_MAX;
    place->outer = narrow ? (uint32_t)batch / (uint32_t)inner : batch / inner;
    place->inner = batch - place->outer * inner;
    place->row = place->column = 0;
    place->row_distance = place->column_distance = 0;
}

typedef struct sb_cuda_epilogue_context {
    const sb_cuda_epilogue *epilogue;
    const sb_cuda_epilogue_place *place;
} sb_cuda_epilogue_context;

SB_CUDA_FUNCTION void sb_cuda_epilogue_load(sb_cuda_epilogue_context context, int index, int width, float *values) {
    const sb_cuda_epilogue_input *input = &context.epilogue->inputs[index];
    const sb_cuda_epilogue_place *place = context.place;
    const char *at = input->data + place->outer * input->steps[0] + place->inner * input->steps[1] +
                     place->row * input->steps[2] + place->column * input->steps[3];
    int64_t distance = place->row_distance * input->steps[2] + place->column_distance * input->steps[3];
    if (input->dtype == SB_CUDA_EPILOGUE_F32) {
        SB_CUDA_UNROLL
        for (int j = 0; j < width; j++)
            values[j] = *(const float *)(const void *)(at + j * distance);
        return;
    }
    if (input->dtype == SB_CUDA_EPILOGUE_F16) {
        SB_CUDA_UNROLL
        for (int j = 0; j < width; j++)
            values[j] = sb_f16_to_f32(*(const uint16_t *)(const void *)(at + j * distance));
        return;
    }
    SB_CUDA_UNROLL
    for (int j = 0; j < width; j++)
        values[j] = sb_bf16_to_f32(*(const uint16_t *)(const void *)(at + j * distance));
}

#define SB_EVALUATOR_NAME sb_cuda_epilogue_evaluate_1
#define SB_EVALUATOR_WIDTH 1
#define SB_EVALUATOR_HEAVY 0
#define SB_EVALUATOR_REGISTERS SB_CUDA_EPILOGUE_LIGHT_REGISTERS
#define SB_EVALUATOR_CONTEXT sb_cuda_epilogue_context
#define SB_EVALUATOR_LOAD(context, input, values) sb_cuda_epilogue_load(context, input, 1, values)
#define SB_EVALUATOR_BEGIN SB_EVALUATOR_LOAD
#define SB_EVALUATOR_END(context, input, values) (void)0
#include "cuda/contraction/epilogue_evaluator.cuh"

#define SB_EVALUATOR_NAME sb_cuda_epilogue_evaluate_4
#define SB_EVALUATOR_WIDTH 4
#define SB_EVALUATOR_HEAVY 0
#define SB_EVALUATOR_REGISTERS SB_CUDA_EPILOGUE_LIGHT_REGISTERS
#define SB_EVALUATOR_CONTEXT sb_cuda_epilogue_context
#define SB_EVALUATOR_LOAD(context, input, values) sb_cuda_epilogue_load(context, input, 4, values)
#define SB_EVALUATOR_BEGIN SB_EVALUATOR_LOAD
#define SB_EVALUATOR_END(context, input, values) (void)0
#include "cuda/contraction/epilogue_evaluator.cuh"

/* The program's value where the contraction's is `value`. */
SB_CUDA_FUNCTION float sb_cuda_epilogue_f32(const sb_cuda_epilogue *epilogue, const sb_cuda_epilogue_place *place,
                                            float value) {
    sb_cuda_epilogue_context context = {epilogue, place};
    sb_cuda_epilogue_evaluate_1(&epilogue->code, context, &value);
    return value;
}

/* The next step of a quick program for four elements. */
SB_CUDA_FUNCTION void sb_cuda_epilogue_quick_step(const sb_cuda_epilogue *epilogue, int at,
                                                  const sb_cuda_epilogue_place *place, float *values) {
    const int what = epilogue->quick[at];
    if (what == SB_CUDA_EPILOGUE_QUICK_RELU) {
        SB_CUDA_UNROLL
        for (int j = 0; j < 4; j++)
            values[j] = sb_unary_Relu_f32(values[j], 0, 0);
    } else if (what == SB_CUDA_EPILOGUE_QUICK_CLIP) {
        const float least = epilogue->code.steps[at].a, most = epilogue->code.steps[at].b;
        SB_CUDA_UNROLL
        for (int j = 0; j < 4; j++) {
            float raised = values[j] < least ? least : values[j];
            values[j] = raised > most ? most : raised;
        }
    } else {
        const sb_cuda_epilogue_input *input = &epilogue->inputs[what];
        const char *data = input->data + place->outer * input->steps[0] + place->inner * input->steps[1] +
                           place->row * input->steps[2] + place->column * input->steps[3];
        int64_t distance = place->row_distance * input->steps[2] + place->column_distance * input->steps[3];
        SB_CUDA_UNROLL
        for (int j = 0; j < 4; j++)
            values[j] = values[j] + *(const float *)(const void *)(data + j * distance);
    }
}

/* The same for four elements at `place` and its distances, in registers if indices into `values`
 * are constants. Elements outside of the matrix must not be asked for: their operands are loaded. */
SB_CUDA_FUNCTION void sb_cuda_epilogue_f32x4(const sb_cuda_epilogue *epilogue, const sb_cuda_epilogue_place *place,
                                             float *values) {
    sb_cuda_epilogue_context context = {epilogue, place};
    if (epilogue->quick_count > 0) {
        /* Straight ahead, without the interpreter's jumps. */
        sb_cuda_epilogue_quick_step(epilogue, 0, place, values);
        if (epilogue->quick_count > 1)
            sb_cuda_epilogue_quick_step(epilogue, 1, place, values);
        if (epilogue->quick_count > 2)
            sb_cuda_epilogue_quick_step(epilogue, 2, place, values);
        if (epilogue->quick_count > 3)
            sb_cuda_epilogue_quick_step(epilogue, 3, place, values);
        return;
    }
    sb_cuda_epilogue_evaluate_4(&epilogue->code, context, values);
}

#endif
