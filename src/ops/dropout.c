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

static iv_status prepare_dropout(iv_node *node, iv_error *error) {
    iv_dropout_params *params = node->params;
    IV_TRY(iv_node_float(node, "ratio", 0.5f, &params->ratio, error));
    return iv_node_int(node, "seed", 0, &params->seed, error);
}

static iv_status infer_dropout(iv_infer *infer) {
    const iv_fact *input, *other;
    IV_TRY(iv_infer_require(infer, 0, IV_SET_FLOAT, &input));
    if (iv_infer_input(infer, 1) != NULL)
        IV_TRY(iv_infer_require(infer, 1, IV_SET_FLOAT, &other));
    if (iv_infer_input(infer, 2) != NULL)
        IV_TRY(iv_infer_require(infer, 2, IV_SET(IV_BOOL), &other));
    iv_infer_shape_of(infer, 0, input, input->dtype);
    if (infer->output_count > 1)
        iv_infer_shape_of(infer, 1, input, infer->node->version < 10 ? input->dtype : IV_BOOL);
    return IV_OK;
}

iv_status iv_dropout_ratio(const iv_call *call, double *ratio) {
    const iv_tensor *given = iv_call_input(call, 1), *training = iv_call_input(call, 2);
    *ratio = 0;
    if (training == NULL || iv_tensor_elements(training) != 1 || training->data[0] == 0)
        return IV_OK;
    *ratio = (double)((const iv_dropout_params *)call->node->params)->ratio;
    if (given != NULL && iv_tensor_elements(given) == 1)
        iv_convert_row(IV_F64, ratio, given->dtype, given->data, 0, 1);
    if (!(*ratio >= 0 && *ratio < 1))
        return iv_call_fail(call, IV_ERROR_INVALID_ARGUMENT, "the ratio %g is not in [0, 1)",
                            *ratio);
    return IV_OK;
}

/* The whole input is one row of `from`. */
static void drop(const iv_rows *from, iv_tensor *output, iv_tensor *mask, uint64_t seed,
                 double ratio) {
    float narrow[CHUNK];
    double wide[CHUNK];
    bool is_wide = from->tensor->dtype == IV_F64;
    iv_dtype computed = is_wide ? IV_F64 : IV_F32;
    void *values = is_wide ? (void *)wide : (void *)narrow;
    for (int64_t begin = 0; begin < from->length; begin += CHUNK) {
        int64_t count = from->length - begin < CHUNK ? from->length - begin : CHUNK;
        uint8_t kept[CHUNK];
        iv_rows_load(from, 0, begin, count, computed, values);
        for (int64_t i = 0; i < count; i++) {
            kept[i] = ratio == 0 || iv_dropout_keeps(seed, (uint64_t)(begin + i), ratio);
            if (ratio == 0)
                continue;
            narrow[i] = is_wide ? 0 : kept[i] != 0 ? iv_dropout_value_f32(narrow[i], ratio) : 0;
            wide[i] = !is_wide ? 0 : kept[i] != 0 ? iv_dropout_value_f64(wide[i], ratio) : 0;
        }
        if (output != NULL)
            iv_convert_row(output->dtype,
                           output->data + begin * (int64_t)iv_dtype_size(output->dtype), computed,
                           values, (int64_t)iv_dtype_size(computed), count);
        if (mask != NULL)
            iv_convert_row(mask->dtype, mask->data + begin * (int64_t)iv_dtype_size(mask->dtype),
                           IV_BOOL, kept, 1, count);
    }
}

static iv_status eval_dropout(iv_call *call) {
    const iv_dropout_params *params = call->node->params;
    iv_tensor *input = iv_call_input(call, 0), *output = NULL, *mask = NULL;
    double ratio;
    IV_TRY(iv_dropout_ratio(call, &ratio));
    if (iv_call_wants(call, 1))
        IV_TRY(iv_call_output(call, 1, &mask));
    if (iv_call_wants(call, 0) && ratio == 0)
        IV_TRY(iv_call_set_output(call, 0, iv_tensor_retain(input)));
    else if (iv_call_wants(call, 0))
        IV_TRY(iv_call_output(call, 0, &output));
    if (output == NULL && mask == NULL)
        return IV_OK;
    iv_rows rows;
    iv_rows_start(&rows, input, (UINT32_C(1) << input->rank) - 1);
    drop(&rows, output, mask, (uint64_t)params->seed, ratio);
    return IV_OK;
}

const iv_op iv_ops_dropout[] = {
    {.name = "Dropout",
     .domain = "",
     .least_inputs = 1,
     .most_inputs = 3,
     .least_outputs = 1,
     .most_outputs = 2,
     .flags = IV_OP_VIEW,
     .params_size = sizeof(iv_dropout_params),
     .prepare = prepare_dropout,
     .infer = infer_dropout,
     .eval = eval_dropout},
    {0},
};
