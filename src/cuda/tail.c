#include "cuda/tail.h"

#include <stdio.h>
#include <string.h>

#include "base/allocation.h"
#include "cuda/tail_compiler.h"

void iv_cuda_tail_plan_destroy(iv_cuda_tail_plan *plan) {
    iv_free(plan);
}

bool iv_cuda_tail_plan_is_light(const iv_cuda_tail_plan *plan, char *why) {
    const iv_cuda_tail_code *code = &plan->code;
    bool light = code->base_keep < IV_CUDA_TAIL_REGISTER + IV_CUDA_TAIL_LIGHT_REGISTERS;
    for (int i = 0; i < code->count; i++) {
        light = light && code->steps[i].opcode < IV_CUDA_TAIL_FIRST_HEAVY &&
                code->steps[i].keep < IV_CUDA_TAIL_REGISTER + IV_CUDA_TAIL_LIGHT_REGISTERS;
    }
    for (int i = 0; i < plan->input_count; i++) {
        int dtype = iv_cuda_tail_dtype_of(plan->inputs[i].dtype);
        light = light && (dtype == IV_CUDA_TAIL_F32 || dtype == IV_CUDA_TAIL_F16 ||
                          dtype == IV_CUDA_TAIL_BF16);
    }
    if (!light)
        snprintf(why, IV_WHY_BYTES, "the nodes behind the contraction are too much for its kernel");
    return light;
}

bool iv_cuda_tail_supports(const iv_kernel_query *query, const iv_graph *body, char *why) {
    iv_cuda_tail_plan *plan;
    iv_error error;
    iv_status status = iv_cuda_tail_plan_create(body, 1, query->inputs, &plan, &error);
    if (status != IV_OK) {
        *query->exhausted = status == IV_ERROR_OUT_OF_MEMORY;
        snprintf(why, IV_WHY_BYTES, "%.200s", error.message);
        return false;
    }
    bool light = iv_cuda_tail_plan_is_light(plan, why);
    iv_cuda_tail_plan_destroy(plan);
    return light;
}

const iv_cuda_tail_code *iv_cuda_tail_plan_code(const iv_cuda_tail_plan *plan) {
    return &plan->code;
}

int iv_cuda_tail_plan_inputs(const iv_cuda_tail_plan *plan) {
    return plan->input_count;
}

void iv_cuda_tail_operand(const iv_cuda_tail_plan *plan, const iv_call *call, int index,
                          iv_tensor *operand) {
    const iv_cuda_tail_operand_plan *input = &plan->inputs[index];
    memcpy(operand, call->inputs[input->graph_input].tensor, sizeof *operand);
    for (int i = 0; i < input->trailing_ones; i++) {
        operand->dims[operand->rank] = 1;
        operand->strides[operand->rank++] = 0;
    }
}

int iv_cuda_tail_dtype_of(iv_dtype dtype) {
    static const signed char dtypes[IV_DTYPE_COUNT] = {
        [IV_F32] = IV_CUDA_TAIL_F32 + 1,   [IV_F16] = IV_CUDA_TAIL_F16 + 1,
        [IV_BF16] = IV_CUDA_TAIL_BF16 + 1, [IV_BOOL] = IV_CUDA_TAIL_U8 + 1,
        [IV_U8] = IV_CUDA_TAIL_U8 + 1,     [IV_F64] = IV_CUDA_TAIL_F64 + 1,
        [IV_U16] = IV_CUDA_TAIL_U16 + 1,   [IV_U32] = IV_CUDA_TAIL_U32 + 1,
        [IV_U64] = IV_CUDA_TAIL_U64 + 1,   [IV_S8] = IV_CUDA_TAIL_S8 + 1,
        [IV_S16] = IV_CUDA_TAIL_S16 + 1,   [IV_S32] = IV_CUDA_TAIL_S32 + 1,
        [IV_S64] = IV_CUDA_TAIL_S64 + 1};
    return dtypes[dtype] - 1;
}

/* ---- operands by batch, row and column ---- */

/* The step of a run of dimensions that are counted as one, in bytes; false when there is none.
 * Dimensions of another role, and those outside of [first, end), do not matter. */
static bool merged_step(const iv_tensor *spread, const iv_cuda_tail_role *roles,
                        iv_cuda_tail_role role, int first, int end, int64_t *step) {
    int64_t extent = 1;
    *step = 0;
    for (int d = end - 1; d >= first; d--) {
        int64_t stride = spread->strides[d] * (int64_t)iv_dtype_size(spread->dtype);
        if (roles[d] != role || spread->dims[d] == 1)
            continue;
        if (extent == 1)
            *step = stride;
        else if (stride != *step * extent)
            return false;
        extent *= spread->dims[d];
    }
    return true;
}

/* Whether the operand has a step for the batches before dimension `split`, those from there on, rows
 * and columns. */
static bool find_steps(const iv_tensor *spread, const iv_cuda_tail_role *roles, int split,
                       int64_t *steps) {
    return merged_step(spread, roles, IV_CUDA_TAIL_BATCH, 0, split, &steps[0]) &&
           merged_step(spread, roles, IV_CUDA_TAIL_BATCH, split, spread->rank, &steps[1]) &&
           merged_step(spread, roles, IV_CUDA_TAIL_ROW, 0, spread->rank, &steps[2]) &&
           merged_step(spread, roles, IV_CUDA_TAIL_COLUMN, 0, spread->rank, &steps[3]);
}

/* Gives an operand y's extents, with a stride of 0 where it is repeated. */
static void spread_operand(const iv_tensor *y, iv_tensor *operand) {
    int missing = y->rank - operand->rank;
    for (int d = y->rank - 1; d >= 0; d--) {
        int from = d - missing;
        operand->strides[d] =
            from < 0 || operand->dims[from] == 1 ? 0 : operand->strides[from];
    }
    operand->rank = y->rank;
    memcpy(operand->dims, y->dims, sizeof operand->dims);
}

/* The dimension at which to cut the batch in two so that most operands have steps. */
static int choose_split(int count, const iv_tensor *spread, int rank, const iv_cuda_tail_role *roles) {
    int best = 0, most = -1;
    int64_t steps[4];
    for (int split = 0; split <= rank; split++) {
        int fits = 0;
        for (int i = 0; i < count; i++)
            fits += find_steps(&spread[i], roles, split, steps);
        if (fits > most) {
            most = fits;
            best = split;
        }
    }
    return best;
}

/* Puts a whole copy in the place of an operand. */
static iv_status make_dense(iv_call *call, const iv_tensor *y, iv_tensor *spread) {
    iv_tensor dense;
    void *memory;
    memcpy(&dense, spread, sizeof dense);
    iv_row_major_strides(y->rank, y->dims, dense.strides);
    IV_TRY(iv_call_scratch(call, (size_t)iv_tensor_elements(y) * iv_dtype_size(dense.dtype), &memory));
    dense.data = memory;
    IV_TRY(iv_call_copy(call, &dense, spread));
    memcpy(spread, &dense, sizeof dense);
    return IV_OK;
}

/* ---- programs that need no interpreter ---- */

/* The input that a source stands for, by itself or by the register that it is loaded to; -1 for any other. */
static int input_of(const iv_cuda_tail_code *code, int source) {
    int index = source - IV_CUDA_TAIL_REGISTER;
    if (source >= IV_CUDA_TAIL_INPUT)
        return source - IV_CUDA_TAIL_INPUT;
    return index >= 0 && index < code->preloaded ? code->preloads[index] : -1;
}

/* What a quick step does, or -1 when it is not quick. Sums are the same either way round. */
static int quick_of(const iv_cuda_tail *tail, const iv_cuda_tail_step *step) {
    bool first = step->sources[0] == IV_CUDA_TAIL_PREVIOUS, second = step->sources[1] == IV_CUDA_TAIL_PREVIOUS;
    if (step->rounding != IV_CUDA_TAIL_F32 || step->keep != 0)
        return -1;
    if (step->opcode == IV_CUDA_TAIL_Relu && first)
        return IV_CUDA_TAIL_QUICK_RELU;
    if (step->opcode == IV_CUDA_TAIL_Clip && first && step->sources[1] == IV_CUDA_TAIL_IMMEDIATE_A &&
        step->sources[2] == IV_CUDA_TAIL_IMMEDIATE_B)
        return IV_CUDA_TAIL_QUICK_CLIP;
    int input = input_of(&tail->code, step->sources[first ? 1 : 0]);
    bool adds = step->opcode == IV_CUDA_TAIL_Add && first != second && input >= 0 &&
                tail->inputs[input].dtype == IV_CUDA_TAIL_F32;
    return adds ? input : -1;
}

static void find_quick(iv_cuda_tail *tail) {
    const iv_cuda_tail_code *code = &tail->code;
    tail->quick_count = 0;
    if (code->base_rounding != IV_CUDA_TAIL_F32 || code->base_keep != 0 || code->count > IV_CUDA_TAIL_QUICK)
        return;
    for (int i = 0; i < code->count; i++) {
        int quick = quick_of(tail, &code->steps[i]);
        if (quick < 0)
            return;
        tail->quick[i] = (uint8_t)quick;
    }
    tail->quick_count = (uint8_t)code->count;
}

iv_status iv_cuda_tail_start(iv_call *call, const iv_cuda_tail_plan *plan, const iv_tensor *y,
                             const iv_cuda_tail_role *roles, iv_cuda_tail *tail,
                             iv_cuda_work *work) {
    int count = plan != NULL ? plan->input_count : 0;
    iv_tensor spread[IV_CUDA_TAIL_INPUTS];
    memset(tail, 0, sizeof *tail);
    if (plan != NULL)
        tail->code = plan->code;
    else
        tail->code.base_rounding = (uint8_t)iv_cuda_tail_dtype_of(y->dtype);
    tail->inner_batch = 1;
    for (int i = 0; i < count; i++) {
        iv_cuda_tail_operand(plan, call, i, &spread[i]);
        spread_operand(y, &spread[i]);
    }
    int split = choose_split(count, spread, y->rank, roles);
    for (int d = split; d < y->rank; d++) {
        if (roles[d] == IV_CUDA_TAIL_BATCH)
            tail->inner_batch *= y->dims[d] > 0 ? y->dims[d] : 1;
    }
    for (int i = 0; i < count; i++) {
        iv_cuda_tail_input *input = &tail->inputs[i];
        if (!find_steps(&spread[i], roles, split, input->steps)) {
            IV_TRY(make_dense(call, y, &spread[i]));
            if (!find_steps(&spread[i], roles, split, input->steps))
                return iv_call_fail(call, IV_ERROR_INTERNAL,
                                    "dimensions of one role do not follow each other");
        }
        input->data = spread[i].data;
        input->dtype = iv_cuda_tail_dtype_of(spread[i].dtype);
        iv_cuda_work_reads(work, &spread[i]);
    }
    find_quick(tail);
    return IV_OK;
}
