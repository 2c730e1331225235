/* Fused nodes of element-wise nodes only: one kernel, which reads and writes memory once. And single
 * nodes that are several steps, as bodies of one. */
#include <stdio.h>
#include <string.h>

#include "cuda/contraction/epilogue.h"
#include "cuda/elementwise/fixed.h"
#include "cuda/elementwise/fused_elementwise_parameters.h"
#include "cuda/list.h"
#include "tensor/walk.h"

_Static_assert(SB_CUDA_EPILOGUE_INPUTS + 1 <= SB_WALK_OPERANDS, "a walk takes a body's operands");

static sb_status create_plan(const sb_kernel_query *query, sb_cuda_epilogue_plan **plan, sb_error *error) {
    const sb_node *node = query->node;
    if ((node->op->flags & SB_OP_FUSED) != 0)
        return sb_cuda_epilogue_plan_create(sb_node_graph(node, "body"), 0, query->inputs, plan, error);
    return sb_cuda_epilogue_plan_create_single(node, query->inputs, &query->outputs[0], plan, error);
}

static bool supports_fused(const sb_kernel_query *query, char *why) {
    sb_cuda_epilogue_plan *plan;
    sb_error error;
    sb_status status = create_plan(query, &plan, &error);
    if (status != SB_OK) {
        *query->exhausted = status == SB_ERROR_OUT_OF_MEMORY;
        snprintf(why, SB_WHY_BYTES, "%.200s", error.message);
        return false;
    }
    sb_cuda_epilogue_plan_destroy(plan);
    return true;
}

/* In inference: with other outputs it trains. */
static bool supports_normalization(const sb_kernel_query *query, char *why) {
    const sb_node *node = query->node;
    const sb_attribute *training = sb_attributes_find(&node->attributes, "training_mode");
    bool trains = training != NULL && training->kind == SB_ATTRIBUTE_INTS && training->ints[0] != 0;
    for (int i = 1; i < node->output_count; i++)
        trains = trains || node->outputs[i] != SB_NO_VALUE;
    if (trains) {
        snprintf(why, SB_WHY_BYTES, "batch normalisation in training is not element-wise");
        return false;
    }
    return supports_fused(query, why);
}

static sb_status prepare_fused(const sb_kernel_query *query, void **state, sb_error *error) {
    sb_cuda_epilogue_plan *plan;
    SB_TRY(create_plan(query, &plan, error));
    *state = plan;
    return SB_OK;
}

static void release_fused(void *state) {
    sb_cuda_epilogue_plan_destroy(state);
}

/* What a program needs of a kernel. */
typedef struct code_needs {
    int registers;
    bool heavy;
} code_needs;

static code_needs needs_of(const sb_cuda_epilogue_code *code) {
    code_needs needs = {.registers = code->preloaded};
    for (int i = 0; i < code->count; i++) {
        int kept = code->steps[i].keep - SB_CUDA_EPILOGUE_REGISTER + 1;
        needs.registers = kept > needs.registers ? kept : needs.registers;
        needs.heavy = needs.heavy || code->steps[i].opcode >= SB_CUDA_EPILOGUE_FIRST_HEAVY;
    }
    return needs;
}

static void choose_kernel(code_needs needs, sb_cuda_work *work) {
    bool large = needs.registers > SB_CUDA_FUSED_REGISTERS;
    work->module = large ? "fused_elementwise_large" : "fused_elementwise";
    work->kernel = large ? "sb_cuda_fused_large" : needs.heavy ? "sb_cuda_fused_heavy" : "sb_cuda_fused_light";
}

/* Whether groups of neighbours start at multiples of their size, wherever they are. */
static bool is_aligned(const sb_walk *walk, int operand, int64_t group) {
    bool aligned = (intptr_t)walk->data[operand] % group == 0;
    for (int d = 0; d < walk->rank - 1; d++)
        aligned = aligned && walk->steps[operand][d] % group == 0;
    return aligned;
}

/* Operand 0 of the walk is the output. */
static void describe_input(const sb_walk *walk, int operand, sb_cuda_fused_input *input) {
    int last = walk->rank - 1;
    bool single = true, linear = true, rows = walk->dims[last] % SB_CUDA_FUSED_WIDTH == 0;
    int64_t size = input->size, behind = size;
    for (int d = last; d >= 0; d--) {
        single = single && walk->steps[operand][d] == 0;
        linear = linear && walk->steps[operand][d] == behind;
        behind *= walk->dims[d];
    }
    input->data = walk->data[operand];
    memcpy(input->steps, walk->steps[operand], (size_t)walk->rank * sizeof input->steps[0]);
    input->layout = single                                    ? SB_CUDA_FUSED_SINGLE
                    : linear                                  ? SB_CUDA_FUSED_LINEAR
                    : rows && walk->steps[operand][last] == 0 ? SB_CUDA_FUSED_REPEATED
                                                              : SB_CUDA_FUSED_ANY;
    bool loads_whole = input->dtype == SB_CUDA_EPILOGUE_F32 || input->dtype == SB_CUDA_EPILOGUE_F16 ||
                       input->dtype == SB_CUDA_EPILOGUE_BF16 || input->dtype == SB_CUDA_EPILOGUE_U8;
    int64_t group = SB_CUDA_FUSED_WIDTH * size;
    input->whole = loads_whole && !single && walk->steps[operand][last] == size &&
                   (linear ? (intptr_t)input->data % group == 0 : rows && is_aligned(walk, operand, group));
}

/* What is the same for all parts of the output. */
typedef struct fused_launch {
    sb_call *call;
    const sb_cuda_epilogue_plan *plan;
    const sb_tensor *out;
    sb_tensor inputs[SB_CUDA_EPILOGUE_INPUTS];
    const sb_tensor *operands[1 + SB_CUDA_EPILOGUE_INPUTS]; /* the output, and those */
    int input_count;
    bool sixteen; /* all of them are f16, or all bf16 */
    bool fixed;   /* and the program has a kernel without an interpreter */
    sb_cuda_fixed_match match;
} fused_launch;

static void fill_fused(const fused_launch *launch, const sb_walk *walk, sb_cuda_fused *fused) {
    memset(fused, 0, sizeof *fused);
    fused->code = *sb_cuda_epilogue_plan_code(launch->plan);
    fused->elements = (uint32_t)walk->elements;
    fused->rank = walk->rank;
    fused->out_dtype = (uint8_t)sb_cuda_epilogue_dtype_of(launch->out->dtype);
    fused->out = walk->data[0];
    fused->whole = (uintptr_t)fused->out % (SB_CUDA_FUSED_WIDTH * sb_dtype_size(launch->out->dtype)) == 0;
    for (int d = 0; d < walk->rank; d++)
        fused->divisors[d] = sb_cuda_divisor_of((uint32_t)walk->dims[d]);
    for (int i = 0; i < launch->input_count; i++) {
        fused->inputs[i].dtype = (uint8_t)sb_cuda_epilogue_dtype_of(launch->inputs[i].dtype);
        fused->inputs[i].size = (uint8_t)sb_dtype_size(launch->inputs[i].dtype);
        describe_input(walk, 1 + i, &fused->inputs[i]);
    }
}

/* By a kernel of eight elements a thread, where the elements lie as it needs them. */
static sb_status launch_sixteen(const fused_launch *launch, code_needs needs, const sb_walk *walk, bool *done) {
    const sb_cuda_epilogue_code *code = sb_cuda_epilogue_plan_code(launch->plan);
    sb_dtype dtype = launch->out->dtype;
    *done = false;
    if (launch->fixed)
        SB_TRY(sb_cuda_fixed_launch(launch->call, &launch->match, dtype, walk, launch->operands, done));
    if (*done || !launch->sixteen || needs.registers > SB_CUDA_FIXED_REGISTERS)
        return SB_OK;
    return sb_cuda_fixed_interpret(launch->call, code, needs.heavy, dtype, walk, launch->operands, done);
}

static sb_status launch_part(const fused_launch *launch, const sb_walk *walk) {
    code_needs needs = needs_of(sb_cuda_epilogue_plan_code(launch->plan));
    bool done;
    SB_TRY(launch_sixteen(launch, needs, walk, &done));
    if (done)
        return SB_OK;
    sb_cuda_fused fused;
    sb_cuda_work work = {.parameters = &fused, .parameter_bytes = sizeof fused};
    fill_fused(launch, walk, &fused);
    for (int i = 0; i < launch->input_count; i++)
        sb_cuda_work_reads(&work, &launch->inputs[i]);
    sb_cuda_work_writes(&work, launch->out);
    choose_kernel(needs, &work);
    work.threads = SB_CUDA_FUSED_THREADS;
    int64_t per_block = (int64_t)SB_CUDA_FUSED_THREADS * SB_CUDA_FUSED_WIDTH;
    work.blocks = sb_cuda_call_blocks(launch->call, (walk->elements + per_block - 1) / per_block);
    return sb_cuda_call_launch(launch->call, &work);
}

/* Halves the outermost dimension until a part is small enough for 32-bit indices; parts of a single
 * row begin at groups. */
static sb_status launch_parts(const fused_launch *launch, const sb_walk *walk) {
    if (walk->elements <= SB_CUDA_FUSED_MOST)
        return launch_part(launch, walk);
    sb_walk part = *walk;
    int d = 0;
    while (part.dims[d] == 1)
        d++;
    int64_t half = part.dims[d] / 2, inner = walk->elements / part.dims[d];
    half += d == walk->rank - 1 ? -half & (SB_CUDA_FUSED_WIDTH - 1) : 0;
    part.dims[d] = half;
    part.elements = half * inner;
    SB_TRY(launch_parts(launch, &part));
    part.dims[d] = walk->dims[d] - half;
    part.elements = walk->elements - half * inner;
    for (int i = 0; i < walk->operands; i++)
        part.data[i] += half * walk->steps[i][d];
    return launch_parts(launch, &part);
}

/* Whether all operands have the output's 16 bits, and the program then a kernel of its own. */
static void look_for_kernel(fused_launch *launch) {
    sb_dtype dtype = launch->out->dtype;
    launch->sixteen = dtype == SB_F16 || dtype == SB_BF16;
    for (int i = 0; i < launch->input_count; i++)
        launch->sixteen = launch->sixteen && launch->inputs[i].dtype == dtype;
    launch->fixed =
        launch->sixteen && sb_cuda_fixed_find(sb_cuda_epilogue_plan_code(launch->plan), dtype, &launch->match);
}

static sb_status launch_fused(sb_call *call) {
    fused_launch launch = {.call = call, .plan = call->state};
    sb_tensor *out;
    launch.input_count = sb_cuda_epilogue_plan_inputs(launch.plan);
    for (int i = 0; i < launch.input_count; i++) {
        sb_cuda_epilogue_operand(launch.plan, call, i, &launch.inputs[i]);
        launch.operands[1 + i] = &launch.inputs[i];
    }
    SB_TRY(sb_cuda_output_like(call, 0, launch.input_count, launch.operands + 1, &out));
    if (sb_tensor_elements(out) == 0)
        return SB_OK;
    launch.out = launch.operands[0] = out;
    look_for_kernel(&launch);
    sb_walk walk;
    if (sb_cuda_has_channels_last(out)) /* in the order of memory */
        sb_walk_start(&walk, out->rank, out->dims, 1 + launch.input_count, launch.operands);
    else
        sb_walk_start_ordered(&walk, out->rank, out->dims, 1 + launch.input_count, launch.operands);
    return launch_parts(&launch, &walk);
}

#define FUSED(operator, place)                                                                                         \
    {                                                                                                                  \
        .op = operator, .domain = place, .name = "elementwise-fused", .supports = supports_fused,                      \
        .prepare = prepare_fused, .release = release_fused, .launch = launch_fused                                     \
    }
const sb_kernel sb_cuda_kernels_fused_elementwise[] = {
    FUSED("Fused", "samebit"),
    FUSED("Max", ""),
    FUSED("Min", ""),
    FUSED("Sum", ""),
    FUSED("Mean", ""),
    {.op = "BatchNormalization",
     .name = "batch-normalization",
     .supports = supports_normalization,
     .prepare = prepare_fused,
     .release = release_fused,
     .launch = launch_fused},
    {0},
};
