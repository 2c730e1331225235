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
    iv_dtype to;
} cast_params;

static iv_status prepare_cast(iv_node *node, iv_error *error) {
    cast_params *params = node->params;
    IV_TRY(iv_node_element_type(node, "to", IV_DTYPE_NONE, &params->to, error));
    if (params->to == IV_DTYPE_NONE)
        return iv_fail(error, IV_ERROR_INVALID_MODEL, "node %s (Cast): attribute to is missing",
                       node->name);
    return IV_OK;
}

static iv_status infer_cast(iv_infer *infer) {
    const iv_fact *input;
    IV_TRY(iv_infer_require(infer, 0, IV_SET_ANY, &input));
    iv_infer_shape_of(infer, 0, input, ((const cast_params *)infer->node->params)->to);
    return IV_OK;
}

static iv_status infer_cast_like(iv_infer *infer) {
    const iv_fact *input, *like;
    IV_TRY(iv_infer_require(infer, 0, IV_SET_ANY, &input));
    IV_TRY(iv_infer_require(infer, 1, IV_SET_ANY, &like));
    iv_infer_shape_of(infer, 0, input, like->dtype);
    return IV_OK;
}

/* ---- text ---- */

/* Rows of number_to_text and of text_to_number: operand 0 is the output. */
typedef struct text_context {
    iv_dtype from, to;
    char (*texts)[IV_NUMBER_TEXT_BYTES]; /* the next one to write */
    iv_string *entries;                  /* its entry */
    const iv_string *culprit;            /* the first text that is no number */
} text_context;

static void number_to_text(void *opaque, int64_t count, char *const *data, const int64_t *steps) {
    text_context *context = opaque;
    for (int64_t i = 0; i < count; i++) {
        char *text = *context->texts++;
        int length = iv_number_to_text(context->from, data[0] + i * steps[0], text);
        *context->entries++ = (iv_string){text, (size_t)length};
    }
}

static void text_to_number(void *opaque, int64_t count, char *const *data, const int64_t *steps) {
    text_context *context = opaque;
    for (int64_t i = 0; i < count; i++) {
        const iv_string *text = &IV_CONST_AT(iv_string, data[1], steps[1], i);
        if (!iv_number_from_text(*text, context->to, data[0] + i * steps[0]) &&
            context->culprit == NULL)
            context->culprit = text;
    }
}

static iv_status cast_to_text(iv_call *call, const iv_tensor *input) {
    int64_t elements = iv_tensor_elements(input);
    text_context context = {.from = input->dtype};
    char(*texts)[IV_NUMBER_TEXT_BYTES] = iv_allocate_array((size_t)elements, sizeof *texts);
    iv_string *entries = iv_allocate_array((size_t)elements, sizeof *entries);
    iv_status status = IV_OK;
    if (texts == NULL || entries == NULL) {
        status = iv_fail_memory(call->error, (size_t)elements * sizeof *texts);
    } else {
        context.texts = texts;
        context.entries = entries;
        iv_walk walk;
        iv_walk_start_ordered(&walk, input->rank, input->dims, 1, &input);
        iv_walk_run(&walk, number_to_text, &context);
        iv_tensor *output;
        status = iv_tensor_from_strings(input->rank, input->dims, entries, &output, call->error);
        if (status == IV_OK)
            status = iv_call_set_output(call, 0, output);
    }
    iv_free(texts);
    iv_free(entries);
    return status;
}

static iv_status cast_from_text(iv_call *call, const iv_tensor *input) {
    iv_tensor *output;
    IV_TRY(iv_call_output(call, 0, &output));
    const iv_tensor *operands[2] = {output, input};
    text_context context = {.to = output->dtype};
    iv_walk walk;
    iv_walk_start_ordered(&walk, output->rank, output->dims, 2, operands);
    iv_walk_run(&walk, text_to_number, &context);
    if (context.culprit != NULL)
        return iv_call_fail(call, IV_ERROR_INVALID_ARGUMENT, "the text \"%.*s\" is not a number",
                            context.culprit->bytes < 64 ? (int)context.culprit->bytes : 64,
                            context.culprit->bytes != 0 ? context.culprit->data : "");
    return IV_OK;
}

static iv_status copy_text(iv_call *call, iv_tensor *input) {
    iv_tensor *packed, *output;
    IV_TRY(iv_tensor_contiguous(input, &packed, call->error));
    iv_status status =
        iv_tensor_from_strings(packed->rank, packed->dims,
                               (const iv_string *)(const void *)packed->data, &output, call->error);
    iv_tensor_release(packed);
    return status == IV_OK ? iv_call_set_output(call, 0, output) : status;
}

/* ---- evaluation ---- */

static iv_status eval_cast(iv_call *call) {
    iv_tensor *input = iv_call_input(call, 0), *output;
    iv_dtype to = call->facts[0].dtype;
    if (to == IV_STRING)
        return input->dtype == IV_STRING ? copy_text(call, input) : cast_to_text(call, input);
    if (input->dtype == IV_STRING)
        return cast_from_text(call, input);
    IV_TRY(iv_call_output(call, 0, &output));
    const iv_tensor *operands[2] = {output, input};
    iv_walk walk;
    iv_walk_start(&walk, output->rank, output->dims, 2, operands);
    iv_walk_run(&walk, iv_convert_loop(to, input->dtype), NULL);
    return IV_OK;
}

static iv_walk_row *loop_cast(const iv_node *node, const iv_dtype *dtypes, iv_isa isa,
                              void **context) {
    *context = NULL;
    return iv_convert_loop_for(isa, ((const cast_params *)node->params)->to, dtypes[0]);
}

/* From s64 to s64, or this is not asked. */
static iv_dim formula_cast(const iv_node *node, iv_scope *scope, int count,
                           const iv_dim *operands) {
    return operands[0];
}

const iv_op iv_ops_cast[] = {
    {.name = "Cast",
     .domain = "",
     .least_inputs = 1,
     .most_inputs = 1,
     .least_outputs = 1,
     .most_outputs = 1,
     .flags = IV_OP_ELEMENTWISE,
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
     .flags = IV_OP_ELEMENTWISE,
     .infer = infer_cast_like,
     .eval = eval_cast,
     .formula = formula_cast},
    {0},
};
