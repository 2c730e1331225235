/* Pow: element-wise powers whose exponents may have another element type than their bases.
 *
 * Bases and exponents are first converted, by the rules of Cast, to the type that is computed in:
 * f32 for bases of f16, bf16 and f32; f64 for bases of f64, and for integer bases with
 * floating-point exponents; else s64. The result is converted back. */
#include <string.h>

#include "ops/binary.h"
#include "ops/convert_loops.h"
#include "ops/list.h"
#include "ops/loops.h"
#include "ops/power_formula.h"

#define CHUNK 256

typedef struct power_context {
    iv_dtype base, exponent, computed;
    uint32_t divided_by_zero;
} power_context;

static void power_chunk(power_context *context, int64_t count, const void *bases,
                        const void *exponents, void *results) {
    for (int64_t i = 0; i < count; i++) {
        if (context->computed == IV_F32)
            ((float *)results)[i] =
                iv_power_f32(((const float *)bases)[i], ((const float *)exponents)[i]);
        else if (context->computed == IV_F64)
            ((double *)results)[i] =
                iv_power_f64(((const double *)bases)[i], ((const double *)exponents)[i]);
        else
            ((int64_t *)results)[i] = iv_power_s64(
                ((const int64_t *)bases)[i], ((const int64_t *)exponents)[i],
                context->exponent != IV_U64, &context->divided_by_zero, 1);
    }
}

static void power_row(void *opaque, int64_t count, char *const *data, const int64_t *steps) {
    power_context *context = opaque;
    int64_t bases[CHUNK], exponents[CHUNK], results[CHUNK];
    iv_walk_row *store = iv_convert_loop(context->base, context->computed);
    for (int64_t start = 0; start < count; start += CHUNK) {
        int64_t size = count - start < CHUNK ? count - start : CHUNK;
        iv_convert_row(context->computed, bases, context->base, data[1] + start * steps[1],
                       steps[1], size);
        iv_convert_row(context->computed, exponents, context->exponent, data[2] + start * steps[2],
                       steps[2], size);
        power_chunk(context, size, bases, exponents, results);
        char *const operands[2] = {data[0] + start * steps[0], (char *)results};
        int64_t result_steps[2] = {steps[0], (int64_t)iv_dtype_size(context->computed)};
        store(NULL, size, operands, result_steps);
    }
}

static iv_status infer_power(iv_infer *infer) {
    const iv_fact *base, *exponent;
    IV_TRY(iv_infer_require(infer, 0, IV_SET_FLOAT | IV_SET_INDEX, &base));
    IV_TRY(iv_infer_require(infer, 1, IV_SET_NUMBER, &exponent));
    return iv_binary_infer_shape(infer, base->dtype);
}

static iv_status eval_power(iv_call *call) {
    iv_tensor *output, exponents;
    iv_binary_align(call, &exponents);
    IV_TRY(iv_call_output(call, 0, &output));
    const iv_tensor *operands[3] = {output, iv_call_input(call, 0), &exponents};
    power_context context = {
        .base = output->dtype, .exponent = exponents.dtype, .computed = IV_F32};
    if (output->dtype == IV_F64)
        context.computed = IV_F64;
    else if (iv_dtype_is_integer(output->dtype))
        context.computed = iv_dtype_is_float(exponents.dtype) ? IV_F64 : IV_S64;
    iv_walk walk;
    iv_walk_start(&walk, output->rank, output->dims, 3, operands);
    iv_walk_run(&walk, power_row, &context);
    if (context.divided_by_zero != 0)
        return iv_call_fail(call, IV_ERROR_INVALID_ARGUMENT,
                            "integer division by zero: 0 to a negative power");
    return IV_OK;
}

/* Only where nothing is converted. */
static iv_walk_row *loop_power(const iv_node *node, const iv_dtype *dtypes, iv_isa isa,
                               void **context) {
    *context = NULL;
    if (dtypes[0] != dtypes[1] || ((const iv_binary_params *)node->params)->axis >= 0)
        return NULL;
    return IV_PICK_LOOPS(iv_binary_loops, isa)[IV_BINARY_ROW_Pow][dtypes[0]];
}

/* Small constant exponents are products. */
static iv_dim formula_power(const iv_node *node, iv_scope *scope, int count,
                            const iv_dim *operands) {
    int64_t exponent;
    if (!iv_dim_is_constant(operands[1], &exponent) || exponent < 0 || exponent > 8)
        return NULL;
    iv_dim result = iv_dim_constant(scope, 1);
    for (int64_t i = 0; i < exponent; i++)
        result = iv_dim_multiply(scope, result, operands[0]);
    return result;
}

const iv_op iv_ops_power[] = {
    {.name = "Pow",
     .domain = "",
     .least_inputs = 2,
     .most_inputs = 2,
     .least_outputs = 1,
     .most_outputs = 1,
     .flags = IV_OP_ELEMENTWISE,
     .params_size = sizeof(iv_binary_params),
     .prepare = iv_binary_prepare,
     .infer = infer_power,
     .eval = eval_power,
     .formula = formula_power,
     .loop = loop_power},
    {0},
};
