/* Dropout: the identity, except in training with a ratio above 0.
 *
 * Then element i (in row-major order) is kept where u >= ratio, as x (1 / (1 - ratio)), and is +0
 * elsewhere. u is uniform in [0, 1): the first word of Philox4x32-10 with the 64-bit seed as its
 * key and i as its counter (numerics/philox.h). Without a seed it is 0, so that two runs agree. */
#include "ops/dropout.h"

#include <string.h>

#include "numerics/convert.h"
#include "ops/convert_loops.h"
#include "ops/dropout_values.h"
#include "ops/list.h"
#include "ops/loops.h"
#include "ops/rows.h"

#define CHUNK 512

static sb_status prepare_dropout(sb_node *node, sb_error *error) {
    sb_dropout_params *params = node->params;
    SB_TRY(sb_node_float(node, "ratio", 0.5f, &params->ratio, error));
    return sb_node_int(node, "seed", 0, &params->seed, error);
}

static sb_status infer_dropout(sb_infer *infer) {
    const sb_fact *input, *other;
    SB_TRY(sb_infer_require(infer, 0, SB_SET_FLOAT, &input));
    if (sb_infer_input(infer, 1) != NULL)
        SB_TRY(sb_infer_require(infer, 1, SB_SET_FLOAT, &other));
    if (sb_infer_input(infer, 2) != NULL)
        SB_TRY(sb_infer_require(infer, 2, SB_SET(SB_BOOL), &other));
    sb_infer_shape_of(infer, 0, input, input->dtype);
    if (infer->output_count > 1)
        sb_infer_shape_of(infer, 1, input, infer->node->version < 10 ? input->dtype : SB_BOOL);
    return SB_OK;
}

sb_status sb_dropout_ratio(const sb_call *call, double *ratio) {
    const sb_tensor *given = sb_call_input(call, 1), *training = sb_call_input(call, 2);
    *ratio = 0;
    if (training == NULL || sb_tensor_elements(training) != 1 || training->data[0] == 0)
        return SB_OK;
    *ratio = (double)((const sb_dropout_params *)call->node->params)->ratio;
    if (given != NULL && sb_tensor_elements(given) == 1)
        sb_convert_row(SB_F64, ratio, given->dtype, given->data, 0, 1);
    if (!(*ratio >= 0 && *ratio < 1))
        return sb_call_fail(call, SB_ERROR_INVALID_ARGUMENT, "the ratio %g is not in [0, 1)", *ratio);
    return SB_OK;
}

/* The whole input is one row of `from`. */
static void drop(const sb_rows *from, sb_tensor *output, sb_tensor *mask, uint64_t seed, double ratio) {
    float narrow[CHUNK];
    double wide[CHUNK];
    bool is_wide = from->tensor->dtype == SB_F64;
    sb_dtype computed = is_wide ? SB_F64 : SB_F32;
    void *values = is_wide ? (void *)wide : (void *)narrow;
    for (int64_t begin = 0; begin < from->length; begin += CHUNK) {
        int64_t count = from->length - begin < CHUNK ? from->length - begin : CHUNK;
        uint8_t kept[CHUNK];
        sb_rows_load(from, 0, begin, count, computed, values);
        for (int64_t i = 0; i < count; i++) {
            kept[i] = ratio == 0 || sb_dropout_keeps(seed, (uint64_t)(begin + i), ratio);
            if (ratio == 0)
                continue;
            narrow[i] = is_wide ? 0 : kept[i] != 0 ? sb_dropout_value_f32(narrow[i], ratio) : 0;
            wide[i] = !is_wide ? 0 : kept[i] != 0 ? sb_dropout_value_f64(wide[i], ratio) : 0;
        }
        if (output != NULL)
            sb_convert_row(output->dtype, output->data + begin * (int64_t)sb_dtype_size(output->dtype), computed,
                           values, (int64_t)sb_dtype_size(computed), count);
        if (mask != NULL)
            sb_convert_row(mask->dtype, mask->data + begin * (int64_t)sb_dtype_size(mask->dtype), SB_BOOL, kept, 1,
                           count);
    }
}

static sb_status eval_dropout(sb_call *call) {
    const sb_dropout_params *params = call->node->params;
    sb_tensor *input = sb_call_input(call, 0), *output = NULL, *mask = NULL;
    double ratio;
    SB_TRY(sb_dropout_ratio(call, &ratio));
    if (sb_call_wants(call, 1))
        SB_TRY(sb_call_output(call, 1, &mask));
    if (sb_call_wants(call, 0) && ratio == 0)
        SB_TRY(sb_call_set_output(call, 0, sb_tensor_retain(input)));
    else if (sb_call_wants(call, 0))
        SB_TRY(sb_call_output(call, 0, &output));
    if (output == NULL && mask == NULL)
        return SB_OK;
    sb_rows rows;
    sb_rows_start(&rows, input, (UINT32_C(1) << input->rank) - 1);
    drop(&rows, output, mask, (uint64_t)params->seed, ratio);
    return SB_OK;
}

const sb_op sb_ops_dropout[] = {
    {.name = "Dropout",
     .domain = "",
     .least_inputs = 1,
     .most_inputs = 3,
     .least_outputs = 1,
     .most_outputs = 2,
     .flags = SB_OP_VIEW,
     .params_size = sizeof(sb_dropout_params),
     .prepare = prepare_dropout,
     .infer = infer_dropout,
     .eval = eval_dropout},
    {0},
};
