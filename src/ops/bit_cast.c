/* BitCast: the same bits as elements of another type of the same size. A view.
 *
 * A truth value is 0 or 1 (elsewhere in Samebit too): bytes that are neither are refused, not changed. */
#include "ops/element_type.h"
#include "ops/list.h"
#include "ops/loops.h"
#include "rules/counting.h"
#include "rules/question.h"

typedef struct bit_cast_params {
    sb_dtype to;
} bit_cast_params;

static sb_status prepare_bit_cast(sb_node *node, sb_error *error) {
    bit_cast_params *params = node->params;
    SB_TRY(sb_node_element_type(node, "to", SB_DTYPE_NONE, &params->to, error));
    if (params->to == SB_DTYPE_NONE || params->to == SB_STRING)
        return sb_fail(error, SB_ERROR_INVALID_MODEL, "node %s (BitCast): attribute to %s", node->name,
                       params->to == SB_STRING ? "is text, which has no size" : "is missing");
    return SB_OK;
}

static sb_status infer_bit_cast(sb_infer *infer) {
    sb_dtype to = ((const bit_cast_params *)infer->node->params)->to;
    const sb_fact *input;
    SB_TRY(sb_infer_require(infer, 0, SB_SET_ANY & ~SB_SET(SB_STRING), &input));
    if (sb_dtype_size(input->dtype) != sb_dtype_size(to))
        return sb_infer_fail(infer, SB_ERROR_INVALID_MODEL,
                             "%s has elements of another size than %s: put a Cast there to convert values",
                             sb_dtype_name(input->dtype), sb_dtype_name(to));
    sb_infer_shape_of(infer, 0, input, to);
    return SB_OK;
}

static void find_other(void *opaque, int64_t count, char *const *data, const int64_t *steps) {
    const uint8_t **other = opaque;
    for (int64_t i = 0; i < count && *other == NULL; i++) {
        const uint8_t *byte = &SB_CONST_AT(uint8_t, data[0], steps[0], i);
        *other = *byte > 1 ? byte : NULL;
    }
}

static sb_status eval_bit_cast(sb_call *call) {
    sb_tensor *input = sb_call_input(call, 0), *output;
    sb_dtype to = ((const bit_cast_params *)call->node->params)->to;
    const uint8_t *other = NULL;
    const sb_tensor *operand = input;
    sb_walk walk;
    if (to == SB_BOOL && input->dtype != SB_BOOL) {
        sb_walk_start_ordered(&walk, input->rank, input->dims, 1, &operand);
        sb_walk_run(&walk, find_other, (void *)&other);
    }
    if (other != NULL)
        return sb_call_fail(call, SB_ERROR_INVALID_ARGUMENT, "an element is 0x%02x, which is no truth value: 0 or 1",
                            *other);
    SB_TRY(sb_tensor_over(input->storage, input->data, to, input->rank, input->dims, input->strides, &output,
                          call->error));
    return sb_call_set_output(call, 0, output);
}

const sb_op sb_ops_bit_cast[] = {
    {.name = "BitCast",
     .domain = "",
     .least_inputs = 1,
     .most_inputs = 1,
     .least_outputs = 1,
     .most_outputs = 1,
     .flags = SB_OP_VIEW,
     .params_size = sizeof(bit_cast_params),
     .prepare = prepare_bit_cast,
     .infer = infer_bit_cast,
     .eval = eval_bit_cast},
    {0},
};

static sb_status axes_of_bit_cast(const sb_axis_question *question, sb_axis_rule *answer) {
    bool looked_at =
        ((const bit_cast_params *)question->node->params)->to == SB_BOOL && sb_axis_asked(question)->dtype != SB_BOOL;
    answer->checked = answer->checked && looked_at;
    return sb_axis_independent(question, answer, question->axis);
}

const sb_axes_entry sb_axes_bit_cast[] = {
    {.op = {"BitCast"}, .rule = axes_of_bit_cast, .checked = 1, .independent = "every axis"},
    {.op = {NULL}},
};

const sb_cost_entry sb_cost_bit_cast[] = {
    {.op = {"BitCast"}, .flops = &sb_flops_none, .bytes = &sb_bytes_view},
    {.op = {NULL}},
};
