/* Cast and CastLike: one element type to another, by the rules of numerics/convert.h; to and from
 * text by number_text.h. */
#include <string.h>

#include "base/allocation.h"
#include "ops/convert_loops.h"
#include "ops/element_type.h"
#include "ops/list.h"
#include "ops/loops.h"
#include "ops/number_text.h"

typedef struct cast_params {
    sb_dtype to;
} cast_params;

#define SET_CAST (SB_SET_PLAIN | SB_SET(SB_STRING))

static sb_status prepare_cast(sb_node *node, sb_error *error) {
    cast_params *params = node->params;
    SB_TRY(sb_node_element_type(node, "to", SB_DTYPE_NONE, &params->to, error));
    if (sb_dtype_is_small(params->to))
        return sb_fail(error, SB_ERROR_UNSUPPORTED, "node %s (Cast): there is no conversion to %s", node->name,
                       sb_dtype_name(params->to));
    if (params->to == SB_DTYPE_NONE)
        return sb_fail(error, SB_ERROR_INVALID_MODEL, "node %s (Cast): attribute to is missing", node->name);
    return SB_OK;
}

static sb_status infer_cast(sb_infer *infer) {
    const sb_fact *input;
    SB_TRY(sb_infer_require(infer, 0, SET_CAST, &input));
    sb_infer_shape_of(infer, 0, input, ((const cast_params *)infer->node->params)->to);
    return SB_OK;
}

static sb_status infer_cast_like(sb_infer *infer) {
    const sb_fact *input, *like;
    SB_TRY(sb_infer_require(infer, 0, SET_CAST, &input));
    SB_TRY(sb_infer_require(infer, 1, SET_CAST, &like));
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
        if (!sb_number_from_text(*text, context->to, data[0] + i * steps[0]) && context->culprit == NULL)
            context->culprit = text;
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
    text_context context = {.to = output->dtype};
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
    sb_walk_run(&walk, sb_convert_loop(to, input->dtype), NULL);
    return SB_OK;
}

static sb_walk_row *loop_cast(const sb_node *node, const sb_dtype *dtypes, sb_isa isa, void **context) {
    *context = NULL;
    return sb_convert_loop_for(isa, ((const cast_params *)node->params)->to, dtypes[0]);
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
     .infer = infer_cast_like,
     .eval = eval_cast,
     .formula = formula_cast},
    {0},
};
