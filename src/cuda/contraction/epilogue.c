#include "cuda/contraction/epilogue.h"

#include <stdio.h>
#include <string.h>

#include "base/allocation.h"
#include "cuda/contraction/epilogue_compiler.h"
#include "cuda/contraction/gemm16_nodes.h"

void sb_cuda_epilogue_plan_destroy(sb_cuda_epilogue_plan *plan) {
    sb_free(plan);
}

bool sb_cuda_epilogue_plan_is_light(const sb_cuda_epilogue_plan *plan, char *why) {
    const sb_cuda_epilogue_code *code = &plan->code;
    bool light = code->base_keep < SB_CUDA_EPILOGUE_REGISTER + SB_CUDA_EPILOGUE_LIGHT_REGISTERS;
    for (int i = 0; i < code->count; i++) {
        light = light && code->steps[i].opcode < SB_CUDA_EPILOGUE_FIRST_HEAVY &&
                code->steps[i].keep < SB_CUDA_EPILOGUE_REGISTER + SB_CUDA_EPILOGUE_LIGHT_REGISTERS;
    }
    for (int i = 0; i < plan->input_count; i++) {
        int dtype = sb_cuda_epilogue_dtype_of(plan->inputs[i].dtype);
        light =
            light && (dtype == SB_CUDA_EPILOGUE_F32 || dtype == SB_CUDA_EPILOGUE_F16 || dtype == SB_CUDA_EPILOGUE_BF16);
    }
    if (!light)
        snprintf(why, SB_WHY_BYTES, "the nodes behind the contraction are too much for its kernel");
    return light;
}

bool sb_cuda_epilogue_supports(const sb_kernel_query *query, const sb_graph *body, char *why) {
    sb_cuda_epilogue_plan *plan;
    sb_error error;
    sb_status status = sb_cuda_epilogue_plan_create(body, 1, query->inputs, &plan, &error);
    if (status != SB_OK) {
        *query->exhausted = status == SB_ERROR_OUT_OF_MEMORY;
        snprintf(why, SB_WHY_BYTES, "%.200s", error.message);
        return false;
    }
    sb_dtype dtype = query->outputs[0].dtype;
    bool fits = dtype == SB_F16 || dtype == SB_BF16 ? sb_gemm16_nodes_fit(plan, dtype, why)
                                                    : sb_cuda_epilogue_plan_is_light(plan, why);
    sb_cuda_epilogue_plan_destroy(plan);
    return fits;
}

const sb_cuda_epilogue_code *sb_cuda_epilogue_plan_code(const sb_cuda_epilogue_plan *plan) {
    return &plan->code;
}

int sb_cuda_epilogue_plan_inputs(const sb_cuda_epilogue_plan *plan) {
    return plan->input_count;
}

void sb_cuda_epilogue_operand(const sb_cuda_epilogue_plan *plan, const sb_call *call, int index, sb_tensor *operand) {
    const sb_cuda_epilogue_operand_plan *input = &plan->inputs[index];
    memcpy(operand, call->inputs[input->graph_input].tensor, sizeof *operand);
    for (int i = 0; i < input->trailing_ones; i++) {
        operand->dims[operand->rank] = 1;
        operand->strides[operand->rank++] = 0;
    }
}

int sb_cuda_epilogue_dtype_of(sb_dtype dtype) {
    static const signed char dtypes[SB_DTYPE_COUNT] = {
        [SB_F32] = SB_CUDA_EPILOGUE_F32 + 1, [SB_F16] = SB_CUDA_EPILOGUE_F16 + 1, [SB_BF16] = SB_CUDA_EPILOGUE_BF16 + 1,
        [SB_BOOL] = SB_CUDA_EPILOGUE_U8 + 1, [SB_U8] = SB_CUDA_EPILOGUE_U8 + 1,   [SB_F64] = SB_CUDA_EPILOGUE_F64 + 1,
        [SB_U16] = SB_CUDA_EPILOGUE_U16 + 1, [SB_U32] = SB_CUDA_EPILOGUE_U32 + 1, [SB_U64] = SB_CUDA_EPILOGUE_U64 + 1,
        [SB_S8] = SB_CUDA_EPILOGUE_S8 + 1,   [SB_S16] = SB_CUDA_EPILOGUE_S16 + 1, [SB_S32] = SB_CUDA_EPILOGUE_S32 + 1,
        [SB_S64] = SB_CUDA_EPILOGUE_S64 + 1};
    return dtypes[dtype] - 1;
}

/* ---- operands by batch, row and column ---- */

/* The step of a run of dimensions that are counted as one, in bytes; false when there is none.
 * Dimensions of another role, and those outside of [first, end), do not matter. */
static bool merged_step(const sb_tensor *spread, const sb_cuda_epilogue_role *roles, sb_cuda_epilogue_role role,
                        int first, int end, int64_t *step) {
    int64_t extent = 1;
    *step = 0;
    for (int d = end - 1; d >= first; d--) {
        int64_t stride = spread->strides[d] * (int64_t)sb_dtype_size(spread->dtype);
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

/* Whether the operand has a step for the batches before dimension `split`, those from there on, rows and columns. */
static bool find_steps(const sb_tensor *spread, const sb_cuda_epilogue_role *roles, int split, int64_t *steps) {
    return merged_step(spread, roles, SB_CUDA_EPILOGUE_BATCH, 0, split, &steps[0]) &&
           merged_step(spread, roles, SB_CUDA_EPILOGUE_BATCH, split, spread->rank, &steps[1]) &&
           merged_step(spread, roles, SB_CUDA_EPILOGUE_ROW, 0, spread->rank, &steps[2]) &&
           merged_step(spread, roles, SB_CUDA_EPILOGUE_COLUMN, 0, spread->rank, &steps[3]);
}

/* Gives an operand y's extents, with a stride of 0 where it is repeated. */
static void spread_operand(const sb_tensor *y, sb_tensor *operand) {
    int missing = y->rank - operand->rank;
    for (int d = y->rank - 1; d >= 0; d--) {
        int from = d - missing;
        operand->strides[d] = from < 0 || operand->dims[from] == 1 ? 0 : operand->strides[from];
    }
    operand->rank = y->rank;
    memcpy(operand->dims, y->dims, sizeof operand->dims);
}

/* The dimension at which to cut the batch in two so that most operands have steps. */
static int choose_split(int count, const sb_tensor *spread, int rank, const sb_cuda_epilogue_role *roles) {
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
static sb_status make_dense(sb_call *call, const sb_tensor *y, sb_tensor *spread) {
    sb_tensor dense;
    void *memory;
    memcpy(&dense, spread, sizeof dense);
    sb_row_major_strides(y->rank, y->dims, dense.strides);
    SB_TRY(sb_call_workspace(call, (size_t)sb_tensor_elements(y) * sb_dtype_size(dense.dtype), &memory));
    dense.data = memory;
    SB_TRY(sb_call_copy(call, &dense, spread));
    memcpy(spread, &dense, sizeof dense);
    return SB_OK;
}

sb_status sb_cuda_epilogue_place_operands(sb_call *call, const sb_cuda_epilogue_plan *plan, const sb_tensor *y,
                                          const sb_cuda_epilogue_role *roles, sb_cuda_epilogue_input *inputs,
                                          int64_t *inner_batch, sb_cuda_work *work) {
    int count = plan->input_count;
    sb_tensor spread[SB_CUDA_EPILOGUE_INPUTS];
    *inner_batch = 1;
    for (int i = 0; i < count; i++) {
        sb_cuda_epilogue_operand(plan, call, i, &spread[i]);
        spread_operand(y, &spread[i]);
    }
    int split = choose_split(count, spread, y->rank, roles);
    for (int d = split; d < y->rank; d++) {
        if (roles[d] == SB_CUDA_EPILOGUE_BATCH)
            *inner_batch *= y->dims[d] > 0 ? y->dims[d] : 1;
    }
    for (int i = 0; i < count; i++) {
        if (!find_steps(&spread[i], roles, split, inputs[i].steps)) {
            SB_TRY(make_dense(call, y, &spread[i]));
            if (!find_steps(&spread[i], roles, split, inputs[i].steps))
                return sb_call_fail(call, SB_ERROR_INTERNAL, "dimensions of one role do not follow each other");
        }
        inputs[i].data = spread[i].data;
        inputs[i].dtype = sb_cuda_epilogue_dtype_of(spread[i].dtype);
        sb_cuda_work_reads(work, &spread[i]);
    }
    return SB_OK;
}

/* ---- programs that need no interpreter ---- */

/* The input that a source stands for, by itself or by the register that it is loaded to; -1 for any other. */
static int input_of(const sb_cuda_epilogue_code *code, int source) {
    int index = source - SB_CUDA_EPILOGUE_REGISTER;
    if (source >= SB_CUDA_EPILOGUE_INPUT)
        return source - SB_CUDA_EPILOGUE_INPUT;
    return index >= 0 && index < code->preloaded ? code->preloads[index] : -1;
}

/* What a quick step does, or -1 when it is not quick. Sums are the same either way round. */
static int quick_of(const sb_cuda_epilogue *epilogue, const sb_cuda_epilogue_step *step) {
    bool first = step->sources[0] == SB_CUDA_EPILOGUE_PREVIOUS, second = step->sources[1] == SB_CUDA_EPILOGUE_PREVIOUS;
    if (step->rounding != SB_CUDA_EPILOGUE_F32 || step->keep != 0)
        return -1;
    if (step->opcode == SB_CUDA_EPILOGUE_Relu && first)
        return SB_CUDA_EPILOGUE_QUICK_RELU;
    if (step->opcode == SB_CUDA_EPILOGUE_Clip && first && step->sources[1] == SB_CUDA_EPILOGUE_IMMEDIATE_A &&
        step->sources[2] == SB_CUDA_EPILOGUE_IMMEDIATE_B)
        return SB_CUDA_EPILOGUE_QUICK_CLIP;
    int input = input_of(&epilogue->code, step->sources[first ? 1 : 0]);
    bool adds = step->opcode == SB_CUDA_EPILOGUE_Add && first != second && input >= 0 &&
                epilogue->inputs[input].dtype == SB_CUDA_EPILOGUE_F32;
    return adds ? input : -1;
}

static void find_quick(sb_cuda_epilogue *epilogue) {
    const sb_cuda_epilogue_code *code = &epilogue->code;
    epilogue->quick_count = 0;
    if (code->base_rounding != SB_CUDA_EPILOGUE_F32 || code->base_keep != 0 || code->count > SB_CUDA_EPILOGUE_QUICK)
        return;
    for (int i = 0; i < code->count; i++) {
        int quick = quick_of(epilogue, &code->steps[i]);
        if (quick < 0)
            return;
        epilogue->quick[i] = (uint8_t)quick;
    }
    epilogue->quick_count = (uint8_t)code->count;
}

sb_status sb_cuda_epilogue_start(sb_call *call, const sb_cuda_epilogue_plan *plan, const sb_tensor *y,
                                 const sb_cuda_epilogue_role *roles, sb_cuda_epilogue *epilogue, sb_cuda_work *work) {
    memset(epilogue, 0, sizeof *epilogue);
    epilogue->inner_batch = 1;
    if (plan != NULL) {
        epilogue->code = plan->code;
        SB_TRY(sb_cuda_epilogue_place_operands(call, plan, y, roles, epilogue->inputs, &epilogue->inner_batch, work));
    } else {
        epilogue->code.base_rounding = (uint8_t)sb_cuda_epilogue_dtype_of(y->dtype);
    }
    find_quick(epilogue);
    return SB_OK;
}
