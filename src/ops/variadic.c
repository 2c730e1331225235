/* Max, Min, Sum and Mean of any number of inputs, broadcast against each other.
 *
 * The running value starts as the first input and takes the others in order; f16 and bf16 keep it in f32 and round once
 * at the end. Max and Min: a NaN wins, +0 > -0. Mean: the sum divided by (float)n. */
#include <string.h>

#include "base/allocation.h"
#include "numerics/minmax.h"
#include "ops/binary.h"
#include "ops/convert_loops.h"
#include "ops/list.h"
#include "ops/variadic.h"

/* Operand 0 is the running value in the computing type, operand 1 an input. */
#define JOIN_LOOP(name, running, type, value)                                                                          \
    static void name(void *opaque, int64_t count, char *const *data, const int64_t *steps) {                           \
        for (int64_t i = 0; i < count; i++) {                                                                          \
            running left = SB_AT(running, data[0], steps[0], i);                                                       \
            type right = SB_CONST_AT(type, data[1], steps[1], i);                                                      \
            SB_AT(running, data[0], steps[0], i) = value;                                                              \
        }                                                                                                              \
    }
#define FLOAT_LOOPS(dtype, suffix, type, real, real_suffix, load, store, unused)                                       \
    JOIN_LOOP(Max_##suffix, real, type, sb_max_##real_suffix(left, load(right)))                                       \
    JOIN_LOOP(Min_##suffix, real, type, sb_min_##real_suffix(left, load(right)))                                       \
    JOIN_LOOP(Sum_##suffix, real, type, left + load(right))
#define INTEGER_LOOPS(dtype, suffix, type, wide, unused)                                                               \
    JOIN_LOOP(Max_##suffix, type, type, left > right ? left : right)                                                   \
    JOIN_LOOP(Min_##suffix, type, type, left < right ? left : right)
SB_FLOAT_TYPES(FLOAT_LOOPS, )
SB_SIGNED_TYPES(INTEGER_LOOPS, )
SB_UNSIGNED_TYPES(INTEGER_LOOPS, )

typedef struct variadic_traits {
    bool mean;
    int row; /* of the loops for two inputs */
    sb_walk_row *loops[SB_DTYPE_COUNT];
} variadic_traits;

/* In the order of sb_ops_variadic. */
static const variadic_traits traits[] = {
    {.row = SB_BINARY_ROW_Max, .loops = {SB_NUMBER_LOOPS(Max)}},
    {.row = SB_BINARY_ROW_Min, .loops = {SB_NUMBER_LOOPS(Min)}},
    {.row = SB_BINARY_ROW_Add, .loops = {SB_FLOAT_LOOPS(Sum)}},
    {.mean = true, .loops = {SB_FLOAT_LOOPS(Sum)}},
};

static sb_status infer_variadic(sb_infer *infer) {
    int count = infer->input_count - infer->node->capture_count;
    uint32_t dtypes = sb_loop_dtypes(traits[infer->node->op - sb_ops_variadic].loops);
    for (int i = 0; i < count; i++) {
        const sb_fact *fact;
        SB_TRY(sb_infer_require(infer, i, dtypes, &fact));
        if (fact->dtype != infer->inputs[0]->dtype)
            return sb_infer_fail(infer, SB_ERROR_INVALID_MODEL,
                                 "input %d has dtype %s where input 0 has %s: put a Cast before it", i,
                                 sb_dtype_name(fact->dtype), sb_dtype_name(infer->inputs[0]->dtype));
    }
    return sb_infer_broadcast(infer, 0, infer->inputs[0]->dtype, count, infer->inputs);
}

static void divide_all(sb_dtype dtype, void *values, int64_t elements, int count) {
    float *narrow = values;
    double *wide = values;
    for (int64_t i = 0; i < elements; i++) {
        if (dtype == SB_F64)
            wide[i] = wide[i] / (double)count;
        else
            narrow[i] = narrow[i] / (float)count;
    }
}

/* Leaves the result in `running`, a row-major tensor over memory of the computing type. */
static void run_variadic(const sb_call *call, const sb_tensor *running) {
    const variadic_traits *of = &traits[call->node->op - sb_ops_variadic];
    int count = call->input_count - call->node->capture_count;
    for (int i = 0; i < count; i++) {
        const sb_tensor *operands[2] = {running, call->inputs[i].tensor};
        sb_walk walk;
        sb_walk_start(&walk, running->rank, running->dims, 2, operands);
        sb_walk_run(&walk, i == 0 ? sb_convert_loop(running->dtype, operands[1]->dtype) : of->loops[operands[1]->dtype],
                    NULL);
    }
    if (of->mean)
        divide_all(running->dtype, running->data, sb_tensor_elements(running), count);
}

static sb_status eval_variadic(sb_call *call) {
    sb_tensor *output, running;
    SB_TRY(sb_call_output(call, 0, &output));
    memcpy(&running, output, sizeof running);
    if (output->dtype != SB_F16 && output->dtype != SB_BF16) {
        run_variadic(call, &running);
        return SB_OK;
    }
    int64_t elements = sb_tensor_elements(output);
    float *values = sb_allocate_array((size_t)elements, sizeof *values);
    if (values == NULL)
        return sb_fail_memory(call->error, (size_t)elements * sizeof *values);
    running.dtype = SB_F32;
    running.data = (char *)values;
    run_variadic(call, &running);
    sb_convert_row(output->dtype, output->data, SB_F32, values, sizeof *values, elements);
    sb_free(values);
    return SB_OK;
}

static sb_status prepare_variadic(sb_node *node, sb_error *error) {
    ((sb_variadic_params *)node->params)->inputs = node->input_count - node->capture_count;
    return SB_OK;
}

/* Two inputs are one operation. */
static sb_walk_row *loop_variadic(const sb_node *node, const sb_dtype *dtypes, sb_isa isa, void **context) {
    const variadic_traits *of = &traits[node->op - sb_ops_variadic];
    const int inputs = ((const sb_variadic_params *)node->params)->inputs;
    *context = node->params;
    if (inputs == 2 && !of->mean)
        return SB_PICK_LOOPS(sb_binary_loops, isa)[of->row][dtypes[0]];
    return SB_PICK_LOOPS(sb_variadic_loops, isa)[node->op - sb_ops_variadic][dtypes[0]];
}

static sb_dim formula_max(const sb_node *node, sb_scope *scope, int count, const sb_dim *operands) {
    sb_dim result = operands[0];
    for (int i = 1; i < count; i++)
        result = sb_dim_maximum(scope, result, operands[i]);
    return result;
}

static sb_dim formula_min(const sb_node *node, sb_scope *scope, int count, const sb_dim *operands) {
    sb_dim result = operands[0];
    for (int i = 1; i < count; i++)
        result = sb_dim_minimum(scope, result, operands[i]);
    return result;
}

/* clang-format off */
#define VARIADIC_OP(op_name, ...)                                                                  \
    {.name = op_name, .domain = "", .least_inputs = 1, .most_inputs = -1, .least_outputs = 1,      \
     .most_outputs = 1, .flags = SB_OP_ELEMENTWISE, .params_size = sizeof(sb_variadic_params),     \
     .prepare = prepare_variadic, .infer = infer_variadic,                                         \
     .eval = eval_variadic, .loop = loop_variadic, __VA_ARGS__}

const sb_op sb_ops_variadic[] = {
    VARIADIC_OP("Max", .formula = formula_max),
    VARIADIC_OP("Min", .formula = formula_min),
    VARIADIC_OP("Sum", .formula = NULL),
    VARIADIC_OP("Mean", .formula = NULL),
    {0},
};
/* clang-format on */
