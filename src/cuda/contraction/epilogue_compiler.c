#include "cuda/contraction/epilogue_compiler.h"

#include <string.h>

#include "base/allocation.h"
#include "ops/batch_normalization.h"
#include "ops/binary.h"
#include "ops/clip.h"
#include "ops/convert_loops.h"
#include "ops/list.h"
#include "ops/quantize.h"
#include "ops/unary.h"

#define NOT_USED SIZE_MAX

/* What is known of a value of the graph. */
typedef struct known {
    int source;          /* SB_CUDA_EPILOGUE_REGISTER… or SB_CUDA_EPILOGUE_INPUT…; -1: none yet */
    size_t made;         /* the node that makes it; NOT_USED for inputs */
    size_t last_use;     /* the last node that reads it */
    bool needs_register; /* somebody else than the step behind it reads it */
    sb_dtype dtype;
} known;

typedef struct compiler {
    sb_cuda_epilogue_plan *plan;
    const sb_graph *graph;
    const sb_fact *const *inputs;
    size_t skip;
    known *values;
    bool busy[SB_CUDA_EPILOGUE_REGISTERS];
    sb_error *error;
} compiler;

static sb_status refuse(const compiler *compiler, const sb_node *node, const char *why) {
    return sb_fail(compiler->error, SB_ERROR_UNSUPPORTED, "node %s (%s): %s", node->name, node->op->name, why);
}

/* ---- opcodes ---- */

typedef struct opcode_name {
    const char *name;
    int opcode;
} opcode_name;

#define ENTRY(op) {#op, SB_CUDA_EPILOGUE_##op},
static const opcode_name unary_opcodes[] = {SB_CUDA_EPILOGUE_LIGHT_UNARY(ENTRY) SB_CUDA_EPILOGUE_HEAVY_UNARY(ENTRY)
                                                ENTRY(Not) ENTRY(IsNaN) ENTRY(IsInf){NULL, 0}};
static const opcode_name binary_opcodes[] = {SB_CUDA_EPILOGUE_LIGHT_BINARY(ENTRY) SB_CUDA_EPILOGUE_HEAVY_BINARY(
    ENTRY) SB_CUDA_EPILOGUE_QUESTIONS(ENTRY) ENTRY(And) ENTRY(Or) ENTRY(Xor){NULL, 0}};

static int find_opcode(const opcode_name *names, const char *name) {
    for (; names->name != NULL; names++) {
        if (strcmp(names->name, name) == 0)
            return names->opcode;
    }
    return -1;
}

static bool is_half(sb_dtype dtype) {
    return dtype == SB_F16 || dtype == SB_BF16;
}

/* Whether values of the dtype are numbers of f32, which is what registers hold. */
static bool fits_register(sb_dtype dtype) {
    return dtype == SB_F32 || is_half(dtype) || dtype == SB_BOOL;
}

/* ---- operands ---- */

static int graph_input_index(const sb_graph *graph, sb_value_id value) {
    for (size_t i = 0; i < graph->input_count; i++) {
        if (graph->inputs[i] == value)
            return (int)i;
    }
    return -1;
}

static const sb_fact *input_fact(const compiler *compiler, sb_value_id value) {
    int index = graph_input_index(compiler->graph, value);
    return index >= 0 ? compiler->inputs[index] : NULL;
}

static sb_status add_input(compiler *compiler, const sb_node *node, sb_value_id value, int trailing_ones, int *source) {
    sb_cuda_epilogue_plan *plan = compiler->plan;
    const sb_fact *fact = input_fact(compiler, value);
    if (fact == NULL)
        return refuse(compiler, node, "it reads a value from inside the contraction");
    if (plan->input_count == SB_CUDA_EPILOGUE_INPUTS)
        return refuse(compiler, node, "the group reads too many tensors");
    plan->inputs[plan->input_count] =
        (sb_cuda_epilogue_operand_plan){graph_input_index(compiler->graph, value), trailing_ones, fact->dtype};
    *source = SB_CUDA_EPILOGUE_INPUT + plan->input_count++;
    return SB_OK;
}

/* The one value of a constant as f32, if it has only one. */
static bool single_constant(const sb_fact *fact, float *value) {
    if (fact == NULL || fact->constant == NULL || fact->dtype == SB_STRING || sb_tensor_elements(fact->constant) != 1)
        return false;
    sb_convert_row(SB_F32, value, fact->constant->dtype, fact->constant->data, 0, 1);
    return true;
}

/* The source of operand `index` of a node. `immediate` NULL: it may not become a number of the step.
 * Any dtype is read as f32; whether that is right the caller knows. */
static sb_status find_operand(compiler *compiler, const sb_node *node, size_t at, int index, float *immediate,
                              int immediate_source, uint8_t *source) {
    sb_value_id value = node->inputs[index];
    known *known = &compiler->values[value];
    float number;
    int found = known->source;
    if (found < 0 && known->made == NOT_USED && immediate != NULL &&
        single_constant(input_fact(compiler, value), &number)) {
        *immediate = number;
        *source = (uint8_t)immediate_source;
        return SB_OK;
    }
    if (found < 0 && known->made != NOT_USED && index < 2 && known->made + 1 == at)
        found = SB_CUDA_EPILOGUE_PREVIOUS;
    if (found < 0) {
        SB_TRY(add_input(compiler, node, value, 0, &found));
        known->source = found;
    }
    *source = (uint8_t)found;
    return SB_OK;
}

/* ---- steps ---- */

static sb_status add_step(compiler *compiler, const sb_node *node, int opcode, sb_cuda_epilogue_step **step) {
    sb_cuda_epilogue_code *code = &compiler->plan->code;
    if (code->count == SB_CUDA_EPILOGUE_STEPS)
        return refuse(compiler, node, "the group has too many steps");
    *step = &code->steps[code->count++];
    (*step)->opcode = (uint8_t)opcode;
    return SB_OK;
}

static sb_status require_dtypes(const compiler *compiler, const sb_node *node, int count) {
    for (int i = 0; i < count; i++) {
        if (node->inputs[i] == SB_NO_VALUE)
            return refuse(compiler, node, "it leaves an input out");
        if (!fits_register(compiler->values[node->inputs[i]].dtype))
            return refuse(compiler, node,
                          "fused element-wise nodes on a GPU compute in f32, and its inputs do not fit that");
    }
    return SB_OK;
}

static sb_status compile_unary(compiler *compiler, const sb_node *node, size_t at) {
    const sb_unary_params *params = node->params;
    int opcode = find_opcode(unary_opcodes, params->by_tanh ? "GeluTanh" : node->op->name);
    sb_cuda_epilogue_step *step;
    if (opcode < 0)
        return refuse(compiler, node, "it has no place in a fused body");
    SB_TRY(require_dtypes(compiler, node, 1));
    SB_TRY(add_step(compiler, node, opcode, &step));
    step->a = params->a;
    step->b = params->b;
    return find_operand(compiler, node, at, 0, NULL, 0, &step->sources[0]);
}

/* A quotient by a power of two is the product with its reciprocal, where that is one too: both round the same number. */
static void divide_by_product(sb_cuda_epilogue_step *step) {
    uint32_t bits = sb_bits_from_f32(step->b), exponent = bits >> 23 & 0xff;
    if (step->opcode != SB_CUDA_EPILOGUE_Div || step->sources[1] != SB_CUDA_EPILOGUE_IMMEDIATE_B ||
        (bits & 0x7fffff) != 0 || exponent == 0 || exponent > 253)
        return;
    step->opcode = SB_CUDA_EPILOGUE_Mul;
    step->b = 1.0f / step->b;
}

static sb_status compile_binary(compiler *compiler, const sb_node *node, size_t at) {
    const sb_binary_params *params = node->params;
    bool truncated = params->variant && strcmp(node->op->name, "Mod") == 0;
    int opcode = find_opcode(binary_opcodes, truncated ? "Fmod" : node->op->name);
    sb_cuda_epilogue_step *step;
    if (opcode < 0)
        return refuse(compiler, node, "it has no place in a fused body");
    if (params->axis >= 0)
        return refuse(compiler, node, "it broadcasts along an axis of its own");
    /* Exponents of Pow may have any dtype: it computes with them converted to f32. */
    SB_TRY(require_dtypes(compiler, node, opcode == SB_CUDA_EPILOGUE_Pow ? 1 : 2));
    if (opcode == SB_CUDA_EPILOGUE_Pow && compiler->values[node->inputs[1]].made != NOT_USED)
        SB_TRY(require_dtypes(compiler, node, 2));
    SB_TRY(add_step(compiler, node, opcode, &step));
    SB_TRY(find_operand(compiler, node, at, 0, &step->a, SB_CUDA_EPILOGUE_IMMEDIATE_A, &step->sources[0]));
    SB_TRY(find_operand(compiler, node, at, 1, &step->b, SB_CUDA_EPILOGUE_IMMEDIATE_B, &step->sources[1]));
    /* power_formula.h: a square is one product. */
    if (opcode == SB_CUDA_EPILOGUE_Pow && step->sources[1] == SB_CUDA_EPILOGUE_IMMEDIATE_B && step->b == 2) {
        step->opcode = SB_CUDA_EPILOGUE_Mul;
        step->sources[1] = step->sources[0];
    }
    divide_by_product(step);
    return SB_OK;
}

/* Max, Min, Sum, Mean: a chain of steps, rounded at its end. */
static sb_status compile_variadic(compiler *compiler, const sb_node *node, size_t at) {
    const char *name = node->op->name;
    int count = node->input_count;
    sb_cuda_epilogue_step *step;
    SB_TRY(require_dtypes(compiler, node, count));
    int opcode = strcmp(name, "Max") == 0   ? SB_CUDA_EPILOGUE_Max
                 : strcmp(name, "Min") == 0 ? SB_CUDA_EPILOGUE_Min
                                            : SB_CUDA_EPILOGUE_Add;
    SB_TRY(add_step(compiler, node, count == 1 ? SB_CUDA_EPILOGUE_Copy : opcode, &step));
    SB_TRY(find_operand(compiler, node, at, 0, &step->a, SB_CUDA_EPILOGUE_IMMEDIATE_A, &step->sources[0]));
    for (int i = 1; i < count; i++) {
        if (i > 1)
            SB_TRY(add_step(compiler, node, opcode, &step));
        SB_TRY(find_operand(compiler, node, at, i, &step->b, SB_CUDA_EPILOGUE_IMMEDIATE_B, &step->sources[1]));
    }
    if (strcmp(name, "Mean") != 0)
        return SB_OK;
    SB_TRY(add_step(compiler, node, SB_CUDA_EPILOGUE_Div, &step));
    step->b = (float)count;
    step->sources[1] = SB_CUDA_EPILOGUE_IMMEDIATE_B;
    return SB_OK;
}

static bool is_single(const sb_fact *fact) {
    int64_t extent = 0;
    return fact != NULL &&
           (fact->rank == 0 || (fact->rank == 1 && sb_dim_is_constant(fact->dims[0], &extent) && extent == 1));
}

static sb_status compile_clip(compiler *compiler, const sb_node *node, size_t at) {
    sb_cuda_epilogue_step *step;
    SB_TRY(require_dtypes(compiler, node, 1));
    SB_TRY(add_step(compiler, node, SB_CUDA_EPILOGUE_Clip, &step));
    SB_TRY(find_operand(compiler, node, at, 0, NULL, 0, &step->sources[0]));
    step->a = -sb_infinity_f32();
    step->b = sb_infinity_f32();
    step->sources[1] = SB_CUDA_EPILOGUE_IMMEDIATE_A;
    step->sources[2] = SB_CUDA_EPILOGUE_IMMEDIATE_B;
    if (node->input_count == 1) {
        step->a = ((const sb_clip_params *)node->params)->least;
        step->b = ((const sb_clip_params *)node->params)->most;
    }
    for (int i = 1; i < node->input_count; i++) {
        if (node->inputs[i] == SB_NO_VALUE)
            continue;
        if (!is_single(input_fact(compiler, node->inputs[i])))
            return refuse(compiler, node, "its bounds are not known to be scalars");
        SB_TRY(find_operand(compiler, node, NOT_USED, i, i == 1 ? &step->a : &step->b,
                            SB_CUDA_EPILOGUE_IMMEDIATE_A + i - 1, &step->sources[i]));
    }
    return SB_OK;
}

static sb_status compile_where(compiler *compiler, const sb_node *node, size_t at) {
    sb_cuda_epilogue_step *step;
    SB_TRY(require_dtypes(compiler, node, 3));
    SB_TRY(add_step(compiler, node, SB_CUDA_EPILOGUE_Where, &step));
    SB_TRY(find_operand(compiler, node, at, 0, NULL, 0, &step->sources[0]));
    SB_TRY(find_operand(compiler, node, at, 1, &step->a, SB_CUDA_EPILOGUE_IMMEDIATE_A, &step->sources[1]));
    return find_operand(compiler, node, at, 2, &step->b, SB_CUDA_EPILOGUE_IMMEDIATE_B, &step->sources[2]);
}

/* Every dtype that is read becomes f32 as Cast has it; from there on only f16, bf16 and bool are one
 * more step, and from wide integers and f64 that would be a second rounding. */
static sb_status compile_cast(compiler *compiler, const sb_node *node, size_t at, sb_dtype to) {
    sb_cuda_epilogue_step *step;
    sb_dtype from = compiler->values[node->inputs[0]].dtype;
    bool exact = fits_register(from) || from == SB_U8 || from == SB_S8 || from == SB_U16 || from == SB_S16;
    if (!fits_register(to) || from == SB_STRING || (!exact && is_half(to)) || (from == SB_F64 && to == SB_BOOL))
        return refuse(compiler, node,
                      "fused element-wise nodes on a GPU compute in f32, and its types do not fit that");
    /* A truth value that came in with other bits counts as 1. */
    bool truth = to != from && (to == SB_BOOL || from == SB_BOOL);
    SB_TRY(add_step(compiler, node, truth ? SB_CUDA_EPILOGUE_Truth : SB_CUDA_EPILOGUE_Copy, &step));
    return find_operand(compiler, node, at, 0, NULL, 0, &step->sources[0]);
}

static sb_status compile_normalization(compiler *compiler, const sb_node *node, size_t at) {
    const sb_fact *result = &compiler->graph->values[node->outputs[0]].fact;
    sb_cuda_epilogue_step *step;
    int source = 0;
    SB_TRY(require_dtypes(compiler, node, 1));
    SB_TRY(add_step(compiler, node, SB_CUDA_EPILOGUE_Normalize, &step));
    SB_TRY(find_operand(compiler, node, at, 0, NULL, 0, &step->sources[0]));
    step->a = sb_batch_normalization_epsilon(node);
    for (int i = 1; i < 5; i++) {
        const sb_fact *fact = input_fact(compiler, node->inputs[i]);
        if (fact == NULL || fact->rank != 1 || result->rank < 1)
            return refuse(compiler, node, "its statistics are not lists from outside");
        bool single = result->rank == 1;
        if (single ? !is_single(fact) : !sb_dim_equal(fact->dims[0], result->dims[1]))
            return refuse(compiler, node, "its statistics are not known to have a value for each channel");
        SB_TRY(add_input(compiler, node, node->inputs[i], single ? 0 : result->rank - 2, &source));
    }
    step->sources[1] = (uint8_t)(source - 3);
    return SB_OK;
}

/* ---- quantization: integers are floats here too ---- */

static sb_status find_single(const compiler *compiler, const sb_node *node, sb_quantize_single *single) {
    if (sb_quantize_is_single(compiler->graph, compiler->inputs, node, single))
        return SB_OK;
    return refuse(compiler, node, "it has not one constant scale and zero point, of f32 and 8 or 16 bits");
}

/* A step of the value before and a number. */
static sb_status add_number_step(compiler *compiler, const sb_node *node, int opcode, float number) {
    sb_cuda_epilogue_step *step;
    SB_TRY(add_step(compiler, node, opcode, &step));
    step->sources[1] = SB_CUDA_EPILOGUE_IMMEDIATE_B;
    step->b = number;
    return SB_OK;
}

/* The quotient, cut to the range before it is rounded, whose ends are integers; NaN counts as 0; and the zero point. */
static sb_status compile_quantize(compiler *compiler, const sb_node *node, size_t at) {
    sb_quantize_single single;
    sb_cuda_epilogue_step *step;
    SB_TRY(find_single(compiler, node, &single));
    SB_TRY(add_number_step(compiler, node, SB_CUDA_EPILOGUE_Div, single.scale));
    step = &compiler->plan->code.steps[compiler->plan->code.count - 1];
    SB_TRY(find_operand(compiler, node, at, 0, NULL, 0, &step->sources[0]));
    divide_by_product(step);
    SB_TRY(add_step(compiler, node, SB_CUDA_EPILOGUE_Clip, &step));
    step->a = (float)(single.least - single.zero);
    step->b = (float)(single.most - single.zero);
    step->sources[1] = SB_CUDA_EPILOGUE_IMMEDIATE_A;
    step->sources[2] = SB_CUDA_EPILOGUE_IMMEDIATE_B;
    SB_TRY(add_step(compiler, node, SB_CUDA_EPILOGUE_ThresholdedRelu, &step));
    step->a = -sb_infinity_f32(); /* which NaN is not above */
    SB_TRY(add_number_step(compiler, node, SB_CUDA_EPILOGUE_Add, SB_QUANTIZE_ROUNDING));
    return add_number_step(compiler, node, SB_CUDA_EPILOGUE_Sub, SB_QUANTIZE_ROUNDING - (float)single.zero);
}

static sb_status compile_dequantize(compiler *compiler, const sb_node *node, size_t at) {
    sb_cuda_epilogue_code *code = &compiler->plan->code;
    sb_quantize_single single;
    uint8_t source = SB_CUDA_EPILOGUE_PREVIOUS;
    SB_TRY(find_single(compiler, node, &single));
    SB_TRY(find_operand(compiler, node, at, 0, NULL, 0, &source));
    bool behind =
        source == SB_CUDA_EPILOGUE_PREVIOUS && at > 0 && sb_node_is(compiler->graph->nodes[at - 1], "QuantizeLinear");
    if (behind && at > compiler->skip && !compiler->values[node->inputs[0]].needs_register) {
        code->steps[code->count - 1].b += (float)single.zero; /* both zero points at once: integers, and exact */
    } else if (single.zero != 0) {
        SB_TRY(add_number_step(compiler, node, SB_CUDA_EPILOGUE_Sub, (float)single.zero));
        code->steps[code->count - 1].sources[0] = source;
        source = SB_CUDA_EPILOGUE_PREVIOUS;
    }
    SB_TRY(add_number_step(compiler, node, SB_CUDA_EPILOGUE_Mul, single.scale));
    code->steps[code->count - 1].sources[0] = source;
    return SB_OK;
}

static bool is_of(const sb_node *node, const sb_op *family, int count) {
    return node->op >= family && node->op < family + count;
}

static sb_status compile_operator(compiler *compiler, const sb_node *node, size_t at) {
    const char *name = node->op->name;
    if (is_of(node, sb_ops_unary, SB_UNARY_ROW_GeluTanh))
        return compile_unary(compiler, node, at);
    if (is_of(node, sb_ops_binary, SB_BINARY_ROW_Fmod) || strcmp(name, "Pow") == 0)
        return compile_binary(compiler, node, at);
    if (strcmp(name, "Max") == 0 || strcmp(name, "Min") == 0 || strcmp(name, "Sum") == 0 || strcmp(name, "Mean") == 0)
        return compile_variadic(compiler, node, at);
    if (strcmp(name, "Clip") == 0)
        return compile_clip(compiler, node, at);
    if (strcmp(name, "Where") == 0)
        return compile_where(compiler, node, at);
    if (strcmp(name, "Cast") == 0 || strcmp(name, "CastLike") == 0)
        return compile_cast(compiler, node, at, compiler->values[node->outputs[0]].dtype);
    if (strcmp(name, "BatchNormalization") == 0)
        return compile_normalization(compiler, node, at);
    if (sb_node_is(node, "QuantizeLinear"))
        return compile_quantize(compiler, node, at);
    if (sb_node_is(node, "DequantizeLinear"))
        return compile_dequantize(compiler, node, at);
    return refuse(compiler, node, "it has no place in a fused body");
}

/* ---- registers ---- */

static int take_register(compiler *compiler) {
    for (int i = 0; i < SB_CUDA_EPILOGUE_REGISTERS; i++) {
        if (!compiler->busy[i]) {
            compiler->busy[i] = true;
            return SB_CUDA_EPILOGUE_REGISTER + i;
        }
    }
    return -1;
}

static bool is_register(int source) {
    return source >= SB_CUDA_EPILOGUE_REGISTER && source < SB_CUDA_EPILOGUE_IMMEDIATE_A;
}

/* Gives back the registers of values that node `at` reads last. */
static void release_registers(compiler *compiler, const sb_node *node, size_t at) {
    for (int i = 0; i < node->input_count; i++) {
        if (node->inputs[i] == SB_NO_VALUE)
            continue;
        const known *known = &compiler->values[node->inputs[i]];
        if (known->last_use == at && is_register(known->source))
            compiler->busy[known->source - SB_CUDA_EPILOGUE_REGISTER] = false;
    }
}

static uint8_t rounding_of(sb_dtype dtype) {
    return is_half(dtype) ? (uint8_t)sb_cuda_epilogue_dtype_of(dtype) : SB_CUDA_EPILOGUE_F32;
}

static sb_status compile_node(compiler *compiler, size_t at) {
    const sb_node *node = compiler->graph->nodes[at];
    known *result = &compiler->values[node->outputs[0]];
    bool turned_back = sb_node_is(node, "QuantizeLinear") && at + 1 < compiler->graph->node_count;
    if (!fits_register(result->dtype) && !turned_back)
        return refuse(compiler, node,
                      "fused element-wise nodes on a GPU compute in f32, and its result does not fit that");
    SB_TRY(compile_operator(compiler, node, at));
    sb_cuda_epilogue_step *last = &compiler->plan->code.steps[compiler->plan->code.count - 1];
    last->rounding = rounding_of(result->dtype);
    release_registers(compiler, node, at);
    if (!result->needs_register)
        return SB_OK;
    result->source = take_register(compiler);
    if (result->source < 0)
        return refuse(compiler, node, "the group has too many values at once");
    last->keep = (uint8_t)result->source;
    return SB_OK;
}

/* ---- the whole ---- */

/* Operands of these that come third or later belong to a step of their own, which no longer follows
 * the step that made them. */
static void note_uses(compiler *compiler) {
    const sb_graph *graph = compiler->graph;
    for (size_t v = 0; v < graph->value_count; v++)
        compiler->values[v] =
            (known){.source = -1, .made = NOT_USED, .last_use = NOT_USED, .dtype = graph->values[v].fact.dtype};
    for (size_t i = 0; i < graph->input_count; i++) {
        if (compiler->inputs[i] != NULL)
            compiler->values[graph->inputs[i]].dtype = compiler->inputs[i]->dtype;
    }
    for (size_t n = compiler->skip > 0 ? compiler->skip - 1 : 0; n < graph->node_count; n++) {
        const sb_node *node = graph->nodes[n];
        for (int i = 0; i < node->input_count && n >= compiler->skip; i++) {
            if (node->inputs[i] == SB_NO_VALUE)
                continue;
            known *known = &compiler->values[node->inputs[i]];
            known->last_use = n;
            known->needs_register |= i >= 2 || known->made + 1 != n;
        }
        compiler->values[node->outputs[0]].made = n;
    }
}

static bool has_shape(const sb_fact *fact, const sb_fact *result) {
    bool same = fact->rank == result->rank;
    for (int d = 0; d < result->rank && same; d++)
        same = sb_dim_equal(fact->dims[d], result->dims[d]);
    return same;
}

/* Loads inputs of the output's shape to registers before anything else, up to `most`: they arrive
 * together, and are read from memory once. */
static sb_status preload(compiler *compiler, int most) {
    const sb_graph *graph = compiler->graph;
    sb_cuda_epilogue_code *code = &compiler->plan->code;
    const sb_node *last = graph->nodes[graph->node_count - 1];
    for (size_t i = 0; i < graph->input_count && code->preloaded < most; i++) {
        known *known = &compiler->values[graph->inputs[i]];
        if (known->last_use == NOT_USED || compiler->inputs[i] == NULL ||
            !has_shape(compiler->inputs[i], &graph->values[last->outputs[0]].fact))
            continue;
        int source;
        SB_TRY(add_input(compiler, last, graph->inputs[i], 0, &source));
        known->source = take_register(compiler);
        code->preloads[code->preloaded++] = (uint8_t)(source - SB_CUDA_EPILOGUE_INPUT);
    }
    return SB_OK;
}

static sb_status compile(compiler *compiler, int preloads) {
    const sb_graph *graph = compiler->graph;
    sb_cuda_epilogue_code *code = &compiler->plan->code;
    note_uses(compiler);
    if (compiler->skip > 0) {
        known *base = &compiler->values[graph->nodes[compiler->skip - 1]->outputs[0]];
        if (!fits_register(base->dtype))
            return refuse(compiler, graph->nodes[compiler->skip - 1], "its result does not fit f32");
        code->base_rounding = rounding_of(base->dtype);
        if (base->needs_register) {
            base->source = take_register(compiler);
            code->base_keep = (uint8_t)base->source;
        }
    }
    SB_TRY(preload(compiler, preloads));
    for (size_t n = compiler->skip; n < graph->node_count; n++)
        SB_TRY(compile_node(compiler, n));
    return SB_OK;
}

/* Bodies without a contraction load ahead; behind a contraction the base is there already. Fewer loads leave more
 * registers for values. */
sb_status sb_cuda_epilogue_plan_create(const sb_graph *graph, size_t skip, const sb_fact *const *inputs,
                                       sb_cuda_epilogue_plan **plan, sb_error *error) {
    sb_cuda_epilogue_plan *fresh = sb_allocate_array(1, sizeof *fresh);
    known *values = sb_allocate_array(graph->value_count, sizeof *values);
    sb_status status = SB_OK;
    if (fresh == NULL || values == NULL)
        status = sb_fail_memory(error, sizeof *fresh + graph->value_count * sizeof *values);
    for (int preloads = skip == 0 ? 4 : 0; status == SB_OK; preloads--) {
        compiler compiler = {
            .plan = fresh, .graph = graph, .inputs = inputs, .skip = skip, .values = values, .error = error};
        memset(fresh, 0, sizeof *fresh);
        status = compile(&compiler, preloads);
        if (status != SB_ERROR_UNSUPPORTED || preloads == 0)
            break;
        status = SB_OK;
    }
    sb_free(values);
    if (status != SB_OK) {
        sb_free(fresh);
        return status;
    }
    *plan = fresh;
    return SB_OK;
}

sb_status sb_cuda_epilogue_plan_create_single(const sb_node *node, const sb_fact *const *inputs, const sb_fact *output,
                                              sb_cuda_epilogue_plan **plan, sb_error *error) {
    /* A graph around a copy of the node that has values of its own: value i is input i, and the last
     * one the output. Everything in it is borrowed. */
    size_t count = (size_t)node->input_count;
    sb_node copy = *node, *nodes[1] = {&copy};
    sb_value_id result = (sb_value_id)count;
    sb_value_info *values = sb_allocate_array(count + 1, sizeof *values);
    sb_value_id *ids = sb_allocate_array(2 * count + 1, sizeof *ids);
    sb_status status = SB_OK;
    if (values == NULL || ids == NULL)
        status = sb_fail_memory(error, (count + 1) * (sizeof *values + 2 * sizeof *ids));
    for (size_t i = 0; i < count && status == SB_OK; i++) {
        ids[i] = node->inputs[i] != SB_NO_VALUE ? (sb_value_id)i : SB_NO_VALUE;
        ids[count + i] = (sb_value_id)i;
    }
    if (status == SB_OK) {
        values[count].fact = *output;
        copy.inputs = ids;
        copy.output_count = 1;
        copy.outputs = &result;
        sb_graph graph = {.value_count = count + 1,
                          .values = values,
                          .node_count = 1,
                          .nodes = nodes,
                          .input_count = count,
                          .inputs = ids + count};
        status = sb_cuda_epilogue_plan_create(&graph, 0, inputs, plan, error);
    }
    sb_free(values);
    sb_free(ids);
    return status;
}
