/* Fused nodes of element-wise nodes only: one kernel, which reads and writes memory once. And single
 * nodes that are several steps, as webs. */
#include <stdio.h>
#include <string.h>

#include "cuda/kernels/web_parameters.h"
#include "cuda/list.h"
#include "cuda/tail.h"
#include "tensor/walk.h"

_Static_assert(IV_CUDA_TAIL_INPUTS + 1 <= IV_WALK_OPERANDS, "a walk takes a web's operands");

static iv_status create_plan(const iv_kernel_query *query, iv_cuda_tail_plan **plan,
                             iv_error *error) {
    const iv_node *node = query->node;
    if ((node->op->flags & IV_OP_FUSED) != 0)
        return iv_cuda_tail_plan_create(iv_node_graph(node, "body"), 0, query->inputs, plan, error);
    return iv_cuda_tail_plan_create_single(node, query->inputs, &query->outputs[0], plan, error);
}

static bool supports_web(const iv_kernel_query *query, char *why) {
    iv_cuda_tail_plan *plan;
    iv_error error;
    iv_status status = create_plan(query, &plan, &error);
    if (status != IV_OK) {
        *query->exhausted = status == IV_ERROR_OUT_OF_MEMORY;
        snprintf(why, IV_WHY_BYTES, "%.200s", error.message);
        return false;
    }
    iv_cuda_tail_plan_destroy(plan);
    return true;
}

/* In inference: with other outputs it trains. */
static bool supports_normalization(const iv_kernel_query *query, char *why) {
    const iv_node *node = query->node;
    const iv_attribute *training = iv_attributes_find(&node->attributes, "training_mode");
    bool trains = training != NULL && training->kind == IV_ATTRIBUTE_INTS && training->ints[0] != 0;
    for (int i = 1; i < node->output_count; i++)
        trains = trains || node->outputs[i] != IV_NO_VALUE;
    if (trains) {
        snprintf(why, IV_WHY_BYTES, "batch normalisation in training is no web");
        return false;
    }
    return supports_web(query, why);
}

static iv_status prepare_web(const iv_kernel_query *query, void **state, iv_error *error) {
    iv_cuda_tail_plan *plan;
    IV_TRY(create_plan(query, &plan, error));
    *state = plan;
    return IV_OK;
}

static void release_web(void *state) {
    iv_cuda_tail_plan_destroy(state);
}

static void choose_kernel(const iv_cuda_tail_code *code, iv_cuda_work *work) {
    int registers = code->preloaded;
    bool heavy = false;
    for (int i = 0; i < code->count; i++) {
        int kept = code->steps[i].keep - IV_CUDA_TAIL_REGISTER + 1;
        registers = kept > registers ? kept : registers;
        heavy = heavy || code->steps[i].opcode >= IV_CUDA_TAIL_FIRST_HEAVY;
    }
    bool large = registers > IV_CUDA_WEB_REGISTERS;
    work->module = large ? "web_large" : "web";
    work->kernel = large ? "iv_cuda_web_large" : heavy ? "iv_cuda_web_heavy" : "iv_cuda_web_light";
}

/* Whether groups of neighbours start at multiples of their size, wherever they are. */
static bool is_aligned(const iv_walk *walk, int operand, int64_t group) {
    bool aligned = (intptr_t)walk->data[operand] % group == 0;
    for (int d = 0; d < walk->rank - 1; d++)
        aligned = aligned && walk->steps[operand][d] % group == 0;
    return aligned;
}

/* Operand 0 of the walk is the output. */
static void describe_input(const iv_walk *walk, int operand, iv_cuda_web_input *input) {
    int last = walk->rank - 1;
    bool single = true, linear = true, rows = walk->dims[last] % IV_CUDA_WEB_WIDTH == 0;
    int64_t size = input->size, behind = size;
    for (int d = last; d >= 0; d--) {
        single = single && walk->steps[operand][d] == 0;
        linear = linear && walk->steps[operand][d] == behind;
        behind *= walk->dims[d];
    }
    input->data = walk->data[operand];
    memcpy(input->steps, walk->steps[operand], (size_t)walk->rank * sizeof input->steps[0]);
    input->layout = single                                     ? IV_CUDA_WEB_SINGLE
                    : linear                                   ? IV_CUDA_WEB_LINEAR
                    : rows && walk->steps[operand][last] == 0 ? IV_CUDA_WEB_REPEATED
                                                               : IV_CUDA_WEB_ANY;
    bool loads_whole = input->dtype == IV_CUDA_TAIL_F32 || input->dtype == IV_CUDA_TAIL_F16 ||
                       input->dtype == IV_CUDA_TAIL_BF16 || input->dtype == IV_CUDA_TAIL_U8;
    int64_t group = IV_CUDA_WEB_WIDTH * size;
    input->whole =
        loads_whole && !single && walk->steps[operand][last] == size &&
        (linear ? (intptr_t)input->data % group == 0 : rows && is_aligned(walk, operand, group));
}

/* What is the same for all parts of the output. */
typedef struct web_launch {
    iv_call *call;
    const iv_cuda_tail_plan *plan;
    const iv_tensor *out;
    iv_tensor inputs[IV_CUDA_TAIL_INPUTS];
    int input_count;
} web_launch;

static void fill_web(const web_launch *launch, const iv_walk *walk, iv_cuda_web *web) {
    memset(web, 0, sizeof *web);
    web->code = *iv_cuda_tail_plan_code(launch->plan);
    web->elements = (uint32_t)walk->elements;
    web->rank = walk->rank;
    web->out_dtype = (uint8_t)iv_cuda_tail_dtype_of(launch->out->dtype);
    web->out = walk->data[0];
    web->whole =
        (uintptr_t)web->out % (IV_CUDA_WEB_WIDTH * iv_dtype_size(launch->out->dtype)) == 0;
    for (int d = 0; d < walk->rank; d++)
        web->divisors[d] = iv_cuda_divisor_of((uint32_t)walk->dims[d]);
    for (int i = 0; i < launch->input_count; i++) {
        web->inputs[i].dtype = (uint8_t)iv_cuda_tail_dtype_of(launch->inputs[i].dtype);
        web->inputs[i].size = (uint8_t)iv_dtype_size(launch->inputs[i].dtype);
        describe_input(walk, 1 + i, &web->inputs[i]);
    }
}

static iv_status launch_part(const web_launch *launch, const iv_walk *walk) {
    iv_cuda_web web;
    iv_cuda_work work = {.parameters = &web, .parameter_bytes = sizeof web};
    fill_web(launch, walk, &web);
    for (int i = 0; i < launch->input_count; i++)
        iv_cuda_work_reads(&work, &launch->inputs[i]);
    iv_cuda_work_writes(&work, launch->out);
    choose_kernel(&web.code, &work);
    work.threads = IV_CUDA_WEB_THREADS;
    int64_t per_block = (int64_t)IV_CUDA_WEB_THREADS * IV_CUDA_WEB_WIDTH;
    work.blocks = iv_cuda_call_blocks(launch->call, (walk->elements + per_block - 1) / per_block);
    return iv_cuda_call_launch(launch->call, &work);
}

/* Halves the outermost dimension until a part is small enough for 32-bit indices; parts of a single
 * row begin at groups. */
static iv_status launch_parts(const web_launch *launch, const iv_walk *walk) {
    if (walk->elements <= IV_CUDA_WEB_MOST)
        return launch_part(launch, walk);
    iv_walk part = *walk;
    int d = 0;
    while (part.dims[d] == 1)
        d++;
    int64_t half = part.dims[d] / 2, inner = walk->elements / part.dims[d];
    half += d == walk->rank - 1 ? -half & (IV_CUDA_WEB_WIDTH - 1) : 0;
    part.dims[d] = half;
    part.elements = half * inner;
    IV_TRY(launch_parts(launch, &part));
    part.dims[d] = walk->dims[d] - half;
    part.elements = walk->elements - half * inner;
    for (int i = 0; i < walk->operands; i++)
        part.data[i] += half * walk->steps[i][d];
    return launch_parts(launch, &part);
}

static iv_status launch_web(iv_call *call) {
    web_launch launch = {.call = call, .plan = call->state};
    const iv_tensor *operands[1 + IV_CUDA_TAIL_INPUTS];
    iv_tensor *out;
    IV_TRY(iv_call_output(call, 0, &out));
    if (iv_tensor_elements(out) == 0)
        return IV_OK;
    launch.out = operands[0] = out;
    launch.input_count = iv_cuda_tail_plan_inputs(launch.plan);
    for (int i = 0; i < launch.input_count; i++) {
        iv_cuda_tail_operand(launch.plan, call, i, &launch.inputs[i]);
        operands[1 + i] = &launch.inputs[i];
    }
    iv_walk walk;
    iv_walk_start_ordered(&walk, out->rank, out->dims, 1 + launch.input_count, operands);
    return launch_parts(&launch, &walk);
}

#define WEB(operator, place)                                                                       \
    {                                                                                              \
        .op = operator, .domain = place, .name = "elementwise-web", .supports = supports_web,      \
        .prepare = prepare_web, .release = release_web, .launch = launch_web                       \
    }
const iv_kernel iv_cuda_kernels_web[] = {
    WEB("Fused", "invar"), WEB("Max", ""), WEB("Min", ""), WEB("Sum", ""), WEB("Mean", ""),
    {.op = "BatchNormalization",
     .name = "batch-normalization",
     .supports = supports_normalization,
     .prepare = prepare_web,
     .release = release_web,
     .launch = launch_web},
    {0},
};
