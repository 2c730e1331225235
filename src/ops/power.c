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
    sb_dtype base, exponent, computed;
    uint32_t divided_by_zero;
} power_context;

static void power_chunk(power_context *context, int64_t count, const void *bases, const void *exponents,
                        void *results) {
    for (int64_t i = 0; i < count; i++) {
        if (context->computed == SB_F32)
            ((float *)results)[i] = sb_power_f32(((const float *)bases)[i], ((const float *)exponents)[i]);
        else if (context->computed == SB_F64)
            ((double *)results)[i] = sb_power_f64(((const double *)bases)[i], ((const double *)exponents)[i]);
        else
            ((int64_t *)results)[i] = sb_power_s64(((const int64_t *)bases)[i], ((const int64_t *)exponents)[i],
                                                   context->exponent != SB_U64, &context->divided_by_zero, 1);
    }
}

static void power_row(void *opaque, int64_t count, char *const *data, const int64_t *steps) {
    power_context *context = opaque;
    int64_t bases[CHUNK], exponents[CHUNK], results[CHUNK];
    sb_walk_row *store = sb_convert_loop(context->base, context->computed);
    for (int64_t start = 0; start < count; start += CHUNK) {
        int64_t size = count - start < CHUNK ? count - start : CHUNK;
        sb_convert_row(context->computed, bases, context->base, data[1] + start * steps[1], steps[1], size);
        sb_convert_row(context->computed, exponents, context->exponent, data[2] + start * steps[2], steps[2], size);
        power_chunk(context, size, bases, exponents, results);
        char *const operands[2] = {data[0] + start * steps[0], (char *)results};
        int64_t result_steps[2] = {steps[0], (int64_t)sb_dtype_size(context->computed)};
        store(NULL, size, operands, result_steps);
    }
}

static sb_status infer_power(sb_infer *infer) {
    const sb_fact *base, *exponent;
    SB_TRY(sb_infer_require(infer, 0, SB_SET_FLOAT | SB_SET_INDEX, &base));
    SB_TRY(sb_infer_require(infer, 1, SB_SET_NUMBER, &exponent));
    return sb_binary_infer_shape(infer, base->dtype);
}

static sb_status eval_power(sb_call *call) {
    sb_tensor *output, exponents;
    sb_binary_align(call, &exponents);
    SB_TRY(sb_call_output(call, 0, &output));
    const sb_tensor *operands[3] = {output, sb_call_input(call, 0), &exponents};
    power_context context = {.base = output->dtype, .exponent = exponents.dtype, .computed = SB_F32};
    if (output->dtype == SB_F64)
        context.computed = SB_F64;
    else if (sb_dtype_is_integer(output->dtype))
        context.computed = sb_dtype_is_float(exponents.dtype) ? SB_F64 : SB_S64;
    sb_walk walk;
    sb_walk_start(&walk, output->rank, output->dims, 3, operands);
    sb_walk_run(&walk, power_row, &context);
    if (context.divided_by_zero != 0)
        return sb_call_fail(call, SB_ERROR_INVALID_ARGUMENT, "integer division by zero: 0 to a negative power");
    return SB_OK;
}

/* A row of powers of f32 by exponents of another type, which are converted first; a repeated one once. */
static void power_mixed(const sb_dtype *exponent, sb_walk_row *power, int64_t count, char *const *data,
                        const int64_t *steps) {
    const int64_t most = steps[2] == 0 ? count : CHUNK;
    float exponents[CHUNK];
    for (int64_t start = 0; start < count; start += most) {
        int64_t size = count - start < most ? count - start : most;
        sb_convert_row(SB_F32, exponents, *exponent, data[2] + start * steps[2], steps[2], steps[2] == 0 ? 1 : size);
        power(NULL, size, (char *const[]){data[0] + start * steps[0], data[1] + start * steps[1], (char *)exponents},
              (const int64_t[]){steps[0], steps[1], steps[2] == 0 ? 0 : (int64_t)sizeof *exponents});
    }
}

#define MIXED_LOOP(isa)                                                                                                \
    static void power_mixed_##isa(void *opaque, int64_t count, char *const *data, const int64_t *steps) {              \
        power_mixed(opaque, sb_binary_loops_##isa[SB_BINARY_ROW_Pow][SB_F32], count, data, steps);                     \
    }
MIXED_LOOP(scalar)
#if SB_HAS_X86_KERNELS
MIXED_LOOP(avx2)
MIXED_LOOP(avx512)
#endif

static const sb_dtype exponent_types[] = {SB_F16, SB_BF16, SB_F64, SB_S8,  SB_S16, SB_S32,
                                          SB_S64, SB_U8,   SB_U16, SB_U32, SB_U64};

/* Where nothing is converted but exponents to f32. */
static sb_walk_row *loop_power(const sb_node *node, const sb_dtype *dtypes, sb_isa isa, void **context) {
    *context = NULL;
    if (((const sb_binary_params *)node->params)->axis >= 0)
        return NULL;
    if (dtypes[0] == dtypes[1])
        return SB_PICK_LOOPS(sb_binary_loops, isa)[SB_BINARY_ROW_Pow][dtypes[0]];
    for (size_t i = 0; i < sizeof exponent_types / sizeof *exponent_types && dtypes[0] == SB_F32; i++) {
        *context = (void *)(uintptr_t)&exponent_types[i];
        if (exponent_types[i] == dtypes[1])
            return SB_PICK_LOOPS(power_mixed, isa);
    }
    return NULL;
}

/* Small constant exponents are products. */
static sb_dim formula_power(const sb_node *node, sb_scope *scope, int count, const sb_dim *operands) {
    int64_t exponent;
    if (!sb_dim_is_constant(operands[1], &exponent) || exponent < 0 || exponent > 8)
        return NULL;
    sb_dim result = sb_dim_constant(scope, 1);
    for (int64_t i = 0; i < exponent; i++)
        result = sb_dim_multiply(scope, result, operands[0]);
    return result;
}

const sb_op sb_ops_power[] = {
    {.name = "Pow",
     .domain = "",
     .least_inputs = 2,
     .most_inputs = 2,
     .least_outputs = 1,
     .most_outputs = 1,
     .flags = SB_OP_ELEMENTWISE,
     .params_size = sizeof(sb_binary_params),
     .prepare = sb_binary_prepare,
     .infer = infer_power,
     .eval = eval_power,
     .formula = formula_power,
     .loop = loop_power},
    {0},
};
