/* Cast and CastLike: one element type to another, by the rules of numerics/convert.h and numerics/small.h; to and from
 * text by number_text.h. */
#include <string.h>

#include "base/allocation.h"
#include "numerics/small.h"
#include "ops/convert_loops.h"
#include "ops/element_type.h"
#include "ops/list.h"
#include "ops/loops.h"
#include "ops/number_text.h"

typedef struct cast_params {
    sb_dtype to; /* SB_DTYPE_NONE: that of the second input */
    int saturate, round;
    sb_conversion conversions[SB_DTYPE_COUNT]; /* to `to`, by what from */
} cast_params;

static sb_status prepare_rule(sb_node *node, cast_params *params, sb_error *error) {
    static const char *const names[] = {[SB_ROUND_UP] = "up", [SB_ROUND_DOWN] = "down", [SB_ROUND_NEAREST] = "nearest"};
    int64_t saturate;
    const char *round;
    SB_TRY(sb_node_int(node, "saturate", 1, &saturate, error));
    SB_TRY(sb_node_string(node, "round_mode", "up", &round, error));
    params->saturate = saturate != 0;
    for (params->round = 0; params->round < 3 && strcmp(names[params->round], round) != 0;)
        params->round++;
    if (params->round == 3)
        return sb_fail(error, SB_ERROR_INVALID_MODEL,
                       "node %s (%s): round_mode is \"%.40s\", which is none of up, down and nearest", node->name,
                       node->op->name, round);
    for (int from = 0; from < SB_DTYPE_COUNT; from++)
        params->conversions[from] = (sb_conversion){params->to, (sb_dtype)from, params->saturate, params->round};
    return SB_OK;
}

static sb_status prepare_cast(sb_node *node, sb_error *error) {
    cast_params *params = node->params;
    SB_TRY(sb_node_element_type(node, "to", SB_DTYPE_NONE, &params->to, error));
    if (params->to == SB_DTYPE_NONE)
        return sb_fail(error, SB_ERROR_INVALID_MODEL, "node %s (Cast): attribute to is missing", node->name);
    return prepare_rule(node, params, error);
}

static sb_status prepare_cast_like(sb_node *node, sb_error *error) {
    return prepare_rule(node, node->params, error);
}

static sb_status infer_cast(sb_infer *infer) {
    const sb_fact *input;
    SB_TRY(sb_infer_require(infer, 0, SB_SET_ANY, &input));
    sb_infer_shape_of(infer, 0, input, ((const cast_params *)infer->node->params)->to);
    return SB_OK;
}

static sb_status infer_cast_like(sb_infer *infer) {
    const sb_fact *input, *like;
    SB_TRY(sb_infer_require(infer, 0, SB_SET_ANY, &input));
    SB_TRY(sb_infer_require(infer, 1, SB_SET_ANY, &like));
    sb_infer_shape_of(infer, 0, input, like->dtype);
    return SB_OK;
}

/* ---- text ---- */

/* Rows of number_to_text and of text_to_number: operand 0 is the output. */
typedef struct text_context {
    sb_dtype from, to;
    char (*texts)[SB_NUMBER_TEXT_BYTES]; /* the next one to write */
    sb_string *entries;                  /* its entry */
    const sb_string *culprit;            /* the first text that is no number */
    sb_conversion conversion;            /* from f64 to `to`, if that is a small type */
} text_context;

static void number_to_text(void *opaque, int64_t count, char *const *data, const int64_t *steps) {
    text_context *context = opaque;
    for (int64_t i = 0; i < count; i++) {
        char *text = *context->texts++;
        int length = sb_number_to_text(context->from, data[0] + i * steps[0], text);
        *context->entries++ = (sb_string){text, (size_t)length};
    }
}

static void text_to_number(void *opaque, int64_t count, char *const *data, const int64_t *steps) {
    text_context *context = opaque;
    for (int64_t i = 0; i < count; i++) {
        const sb_string *text = &SB_CONST_AT(sb_string, data[1], steps[1], i);
        bool is_small = sb_dtype_is_small(context->to);
        double wide;
        char *element = data[0] + i * steps[0];
        if (!sb_number_from_text(*text, is_small ? SB_F64 : context->to, is_small ? (void *)&wide : element)) {
            context->culprit = context->culprit == NULL ? text : context->culprit;
            continue;
        }
        if (is_small)
            sb_convert_elements(&context->conversion, 1, (char *const[]){element, (char *)&wide},
                                (const int64_t[]){1, sizeof wide});
    }
}

static sb_status cast_to_text(sb_call *call, const sb_tensor *input) {
    int64_t elements = sb_tensor_elements(input);
    text_context context = {.from = input->dtype};
    char(*texts)[SB_NUMBER_TEXT_BYTES] = sb_allocate_array((size_t)elements, sizeof *texts);
    sb_string *entries = sb_allocate_array((size_t)elements, sizeof *entries);
    sb_status status = SB_OK;
    if (texts == NULL || entries == NULL) {
        status = sb_fail_memory(call->error, (size_t)elements * sizeof *texts);
    } else {
        context.texts = texts;
        context.entries = entries;
        sb_walk walk;
        sb_walk_start_ordered(&walk, input->rank, input->dims, 1, &input);
        sb_walk_run(&walk, number_to_text, &context);
        sb_tensor *output;
        status = sb_tensor_from_strings(input->rank, input->dims, entries, &output, call->error);
        if (status == SB_OK)
            status = sb_call_set_output(call, 0, output);
    }
    sb_free(texts);
    sb_free(entries);
    return status;
}

static sb_status cast_from_text(sb_call *call, const sb_tensor *input) {
    sb_tensor *output;
    SB_TRY(sb_call_output(call, 0, &output));
    const sb_tensor *operands[2] = {output, input};
    text_context context = {.to = output->dtype, .conversion = sb_cast_conversion(call->node, output->dtype, SB_F64)};
    sb_walk walk;
    sb_walk_start_ordered(&walk, output->rank, output->dims, 2, operands);
    sb_walk_run(&walk, text_to_number, &context);
    if (context.culprit != NULL)
        return sb_call_fail(call, SB_ERROR_INVALID_ARGUMENT, "the text \"%.*s\" is not a number",
                            context.culprit->bytes < 64 ? (int)context.culprit->bytes : 64,
                            context.culprit->bytes != 0 ? context.culprit->data : "");
    return SB_OK;
}

static sb_status copy_text(sb_call *call, sb_tensor *input) {
    sb_tensor *packed, *output;
    SB_TRY(sb_tensor_contiguous(input, &packed, call->error));
    sb_status status = sb_tensor_from_strings(packed->rank, packed->dims, (const sb_string *)(const void *)packed->data,
                                              &output, call->error);
    sb_tensor_release(packed);
    return status == SB_OK ? sb_call_set_output(call, 0, output) : status;
}

/* ---- evaluation ---- */

sb_conversion sb_cast_conversion(const sb_node *node, sb_dtype to, sb_dtype from) {
    const cast_params *params = node->params;
    return (sb_conversion){to, from, params->saturate, params->round};
}

static sb_status eval_cast(sb_call *call) {
    sb_tensor *input = sb_call_input(call, 0), *output;
    sb_dtype to = call->facts[0].dtype;
    if (to == SB_STRING)
        return input->dtype == SB_STRING ? copy_text(call, input) : cast_to_text(call, input);
    if (input->dtype == SB_STRING)
        return cast_from_text(call, input);
    SB_TRY(sb_call_output(call, 0, &output));
    const sb_tensor *operands[2] = {output, input};
    sb_walk walk;
    sb_walk_start(&walk, output->rank, output->dims, 2, operands);
    sb_conversion conversion = sb_cast_conversion(call->node, to, input->dtype);
    sb_walk_run(&walk, sb_convert_elements, &conversion);
    return SB_OK;
}

static sb_walk_row *loop_cast(const sb_node *node, const sb_dtype *dtypes, sb_isa isa, void **context) {
    cast_params *params = node->params;
    *context = &params->conversions[dtypes[0]];
    return sb_convert_loop_for(isa, params->to, dtypes[0]);
}

/* From s64 to s64, or this is not asked. */
static sb_dim formula_cast(const sb_node *node, sb_scope *scope, int count, const sb_dim *operands) {
    return operands[0];
}

const sb_op sb_ops_cast[] = {
    {.name = "Cast",
     .domain = "",
     .least_inputs = 1,
     .most_inputs = 1,
     .least_outputs = 1,
     .most_outputs = 1,
     .flags = SB_OP_ELEMENTWISE,
     .params_size = sizeof(cast_params),
     .prepare = prepare_cast,
     .infer = infer_cast,
     .eval = eval_cast,
     .formula = formula_cast,
     .loop = loop_cast},
    {.name = "CastLike",
     .domain = "",
     .least_inputs = 2,
     .most_inputs = 2,
     .least_outputs = 1,
     .most_outputs = 1,
     .flags = SB_OP_ELEMENTWISE,
     .params_size = sizeof(cast_params),
     .prepare = prepare_cast_like,
     .infer = infer_cast_like,
     .eval = eval_cast,
     .formula = formula_cast},
    {0},
};
