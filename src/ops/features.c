/* What prepares features, of ai.onnx.ml: ArrayFeatureExtractor and Binarizer. */
#include "base/allocation.h"
#include "ops/list.h"
#include "ops/loops.h"
#include "ops/moving.h"
#include "rules/counting.h"
#include "rules/question.h"

#define DOMAIN "ai.onnx.ml"
#define SET_FEATURES (SB_SET(SB_F32) | SB_SET(SB_F64) | SB_SET(SB_S32) | SB_SET(SB_S64))

/* ---- ArrayFeatureExtractor: of each row, along the last axis, the elements that the second input lists. A single row
 * comes out as a matrix of one row. Indices count from the end when negative. ---- */

static sb_status infer_extractor(sb_infer *infer) {
    const sb_fact *data, *indices;
    SB_TRY(sb_infer_require(infer, 0, SET_FEATURES | SB_SET(SB_STRING), &data));
    SB_TRY(sb_infer_require(infer, 1, SB_SET(SB_S64), &indices));
    if (data->rank == SB_RANK_UNKNOWN || indices->rank == SB_RANK_UNKNOWN) {
        sb_fact_set_tensor(&infer->outputs[0], data->dtype, SB_RANK_UNKNOWN, NULL);
        return SB_OK;
    }
    if (data->rank == 0)
        return sb_infer_fail(infer, SB_ERROR_SHAPE, "the data have no axis to take elements along: rank 0");
    sb_dim dims[SB_MAX_RANK];
    int rank = data->rank == 1 ? 2 : data->rank;
    dims[0] = sb_dim_constant(infer->scope, 1);
    for (int d = 0; d < data->rank - 1; d++)
        dims[d] = data->dims[d];
    dims[rank - 1] = sb_dim_product(infer->scope, indices->dims, 0, indices->rank);
    sb_fact_set_tensor(&infer->outputs[0], data->dtype, rank, dims);
    return SB_OK;
}

static sb_status extract(const sb_call *call, const sb_tensor *data, int64_t count, int64_t *indices, char *to) {
    int last = data->rank - 1;
    int64_t extent = data->dims[last], rows = sb_move_product(data->dims, 0, last);
    size_t size = sb_dtype_size(data->dtype);
    for (int64_t i = 0; i < count; i++)
        SB_TRY(sb_move_check(call, last, indices[i], extent, &indices[i]));
    for (int64_t row = 0; row < rows; row++)
        for (int64_t i = 0; i < count; i++, to += size)
            sb_move_element(to, data->data + (size_t)(row * extent + indices[i]) * size, size);
    return SB_OK;
}

static sb_status eval_extractor(sb_call *call) {
    sb_tensor *data, *output = NULL;
    int64_t *indices = NULL, count;
    SB_TRY(sb_call_contiguous(call, 0, &data));
    sb_status status = sb_move_indices(call, sb_call_input(call, 1), &indices, &count);
    if (status == SB_OK)
        status = sb_move_output_fact(call, 0, &output);
    if (status == SB_OK)
        status = extract(call, data, count, indices, output->data);
    status = sb_move_finish(call, 0, output, status);
    sb_free(indices);
    sb_tensor_release(data);
    return status;
}

/* ---- Binarizer: 1 where x > threshold, else 0, also of NaN. Integers compare as f64, to which s64 round. ---- */

typedef struct binarizer_params {
    float threshold;
} binarizer_params;

static sb_status prepare_binarizer(sb_node *node, sb_error *error) {
    return sb_node_float(node, "threshold", 0.0f, &((binarizer_params *)node->params)->threshold, error);
}

static sb_status infer_binarizer(sb_infer *infer) {
    const sb_fact *data;
    SB_TRY(sb_infer_require(infer, 0, SET_FEATURES, &data));
    sb_infer_shape_of(infer, 0, data, data->dtype);
    return SB_OK;
}

#define BINARIZE(type)                                                                                                 \
    static void binarize_##type(void *opaque, int64_t count, char *const *data, const int64_t *steps) {                \
        const double threshold = (double)((const binarizer_params *)opaque)->threshold;                                \
        for (int64_t i = 0; i < count; i++)                                                                            \
            SB_AT(type, data[0], steps[0], i) = (double)SB_CONST_AT(type, data[1], steps[1], i) > threshold;           \
    }
BINARIZE(float)
BINARIZE(double)
BINARIZE(int32_t)
BINARIZE(int64_t)

static sb_status eval_binarizer(sb_call *call) {
    const sb_tensor *input = sb_call_input(call, 0);
    sb_tensor *output;
    SB_TRY(sb_call_output(call, 0, &output));
    sb_walk_row *row = input->dtype == SB_F32   ? binarize_float
                       : input->dtype == SB_F64 ? binarize_double
                       : input->dtype == SB_S32 ? binarize_int32_t
                                                : binarize_int64_t;
    sb_walk walk;
    sb_walk_start(&walk, output->rank, output->dims, 2, (const sb_tensor *const[]){output, input});
    sb_walk_run(&walk, row, call->node->params);
    return SB_OK;
}

const sb_op sb_ops_features[] = {
    {.name = "ArrayFeatureExtractor",
     .domain = "ai.onnx.ml",
     .least_inputs = 2,
     .most_inputs = 2,
     .least_outputs = 1,
     .most_outputs = 1,
     .infer = infer_extractor,
     .eval = eval_extractor},
    {.name = "Binarizer",
     .domain = "ai.onnx.ml",
     .least_inputs = 1,
     .most_inputs = 1,
     .least_outputs = 1,
     .most_outputs = 1,
     .params_size = sizeof(binarizer_params),
     .prepare = prepare_binarizer,
     .infer = infer_binarizer,
     .eval = eval_binarizer},
    {0},
};

/* ---- rules ---- */

/* A single row is axis 1 of the output; of the indices, a single axis is the output's last. */
static sb_status axes_of_extractor(const sb_axis_question *question, sb_axis_rule *answer) {
    const sb_fact *data = sb_axis_input(question, 0), *indices = sb_axis_input(question, 1);
    if (data == NULL || indices == NULL)
        return sb_axis_unknown(answer, "the ranks are not known");
    if (question->input == 1 && indices->rank == 1)
        return sb_axis_independent(question, answer, data->rank == 1 ? 1 : data->rank - 1);
    if (question->input == 1)
        return sb_axis_exact(answer, "the indices become one axis");
    if (question->axis == data->rank - 1)
        return sb_axis_bounded(question, answer, SB_AXIS_NONE, "indices choose from it");
    return sb_axis_independent(question, answer, question->axis);
}

static sb_status axes_of_binarizer(const sb_axis_question *question, sb_axis_rule *answer) {
    return sb_axis_independent(question, answer, question->axis);
}

const sb_axes_entry sb_axes_features[] = {
    {.op = {"ArrayFeatureExtractor", DOMAIN},
     .rule = axes_of_extractor,
     .checked = 2,
     .independent = "all but the last; a single axis of indices",
     .bounded = "the last, from which indices choose",
     .exact = "several axes of indices"},
    {.op = {"Binarizer", DOMAIN}, .rule = axes_of_binarizer, .independent = "every axis"},
    {.op = {NULL}},
};

const sb_cost_entry sb_cost_features[] = {
    {.op = {"ArrayFeatureExtractor", DOMAIN}, .flops = &sb_flops_none, .bytes = &sb_bytes_written},
    {.op = {"Binarizer", DOMAIN}, .flops = &sb_flops_per_output, .number = 1, .bytes = &sb_bytes_whole},
    {.op = {NULL}},
};
