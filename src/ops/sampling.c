/* GridSample and AffineGrid. Both evaluate in f64 and round once. */
#include "base/allocation.h"
#include "ops/list.h"
#include "ops/moving.h"
#include "ops/number.h"
#include "ops/sampling_values.h"

_Static_assert(SB_SAMPLE_AXES == SB_MAX_RANK - 2, "spatial axes are those behind batch and channels");

/* ---- GridSample ---- */

static sb_status prepare_sample(sb_node *node, sb_error *error) {
    static const struct {
        const char *name;
        sb_sample_mode mode;
    } modes[] = {{"nearest", SB_SAMPLE_NEAREST},
                 {"bilinear", SB_SAMPLE_LINEAR},
                 {"linear", SB_SAMPLE_LINEAR},
                 {"bicubic", SB_SAMPLE_CUBIC},
                 {"cubic", SB_SAMPLE_CUBIC}};
    static const char *const paddings[] = {"zeros", "border", "reflection"};
    sb_sample_params *params = node->params;
    const char *mode, *padding;
    int64_t align;
    size_t m = 0, p = 0;
    SB_TRY(sb_node_string(node, "mode", "linear", &mode, error));
    SB_TRY(sb_node_string(node, "padding_mode", "zeros", &padding, error));
    SB_TRY(sb_node_int(node, "align_corners", 0, &align, error));
    while (m < 5 && strcmp(mode, modes[m].name) != 0)
        m++;
    while (p < 3 && strcmp(padding, paddings[p]) != 0)
        p++;
    if (m == 5 || p == 3)
        return sb_fail(error, SB_ERROR_INVALID_MODEL, "node %s: GridSample has mode %s and padding_mode %s", node->name,
                       mode, padding);
    *params = (sb_sample_params){modes[m].mode, (sb_sample_padding)p, align != 0};
    return SB_OK;
}

static sb_status infer_sample(sb_infer *infer) {
    const sb_fact *input, *grid;
    SB_TRY(sb_infer_require(infer, 0, SB_SET_PLAIN, &input));
    SB_TRY(sb_infer_require(infer, 1, SB_SET_FLOAT, &grid));
    if (input->rank == SB_RANK_UNKNOWN || grid->rank == SB_RANK_UNKNOWN) {
        sb_fact_set_tensor(&infer->outputs[0], input->dtype, SB_RANK_UNKNOWN, NULL);
        return SB_OK;
    }
    int64_t depth;
    if (input->rank < 3 || grid->rank != input->rank ||
        (sb_dim_is_constant(grid->dims[grid->rank - 1], &depth) && depth != input->rank - 2))
        return sb_infer_fail(infer, SB_ERROR_SHAPE,
                             "an input of rank %d needs a grid of that rank whose last extent is %d", input->rank,
                             input->rank - 2);
    sb_dim dims[SB_MAX_RANK] = {input->dims[0], input->dims[1]};
    for (int d = 2; d < input->rank; d++)
        dims[d] = grid->dims[d - 1];
    sb_fact_set_tensor(&infer->outputs[0], input->dtype, input->rank, dims);
    return SB_OK;
}

static sb_status eval_sample(sb_call *call) {
    const sb_sample_params *params = call->node->params;
    const sb_tensor *input = sb_call_input(call, 0);
    sb_tensor *grid, *output;
    if (sb_call_input(call, 1)->dims[0] != input->dims[0])
        return sb_call_fail(call, SB_ERROR_SHAPE, "input and grid have batches of %lld and %lld",
                            (long long)input->dims[0], (long long)sb_call_input(call, 1)->dims[0]);
    SB_TRY(sb_call_output(call, 0, &output));
    if (sb_tensor_elements(output) == 0)
        return SB_OK;
    int spatial = input->rank - 2;
    for (int d = 2; d < input->rank; d++) {
        if (input->dims[d] == 0)
            return sb_call_fail(call, SB_ERROR_SHAPE, "axis %d is empty: there is nothing to sample", d);
    }
    sb_sample_source source = {.dtype = input->dtype, .axes = spatial, .data = input->data};
    memcpy(source.strides, input->strides + 2, (size_t)spatial * sizeof *source.strides);
    SB_TRY(sb_call_contiguous(call, 1, &grid));
    int64_t points = sb_move_product(output->dims, 2, output->rank), channels = input->dims[1];
    for (int64_t n = 0; n < input->dims[0]; n++) {
        for (int64_t p = 0; p < points; p++) {
            sb_sample_taps taps[SB_SAMPLE_AXES];
            /* A grid point lists the last axis first. */
            for (int d = 0; d < spatial; d++)
                sb_sample_find_taps(
                    params, sb_number_load(grid->dtype, grid->data, (n * points + p) * spatial + spatial - 1 - d),
                    input->dims[d + 2], &taps[d]);
            for (int64_t c = 0; c < channels; c++) {
                int64_t offset = n * input->strides[0] + c * input->strides[1];
                sb_number_store(output->dtype, output->data, (n * channels + c) * points + p,
                                sb_sample_interpolate(&source, taps, offset));
            }
        }
    }
    sb_tensor_release(grid);
    return SB_OK;
}

/* ---- AffineGrid ---- */

static sb_status prepare_affine(sb_node *node, sb_error *error) {
    sb_sample_params *params = node->params;
    int64_t align;
    SB_TRY(sb_node_int(node, "align_corners", 0, &align, error));
    params->align_corners = align != 0;
    return SB_OK;
}

static sb_status infer_affine(sb_infer *infer) {
    const sb_fact *theta;
    sb_dim size[5], dims[5];
    int count;
    bool known;
    SB_TRY(sb_infer_require(infer, 0, SB_SET_FLOAT, &theta));
    SB_TRY(sb_infer_integers(infer, 1, 5, size, &count, &known));
    if (count >= 0 && count != 4 && count != 5)
        return sb_infer_fail(infer, SB_ERROR_SHAPE, "the size has %d entries, not 4 or 5", count);
    if (count < 0) {
        sb_fact_set_tensor(&infer->outputs[0], theta->dtype, SB_RANK_UNKNOWN, NULL);
        return SB_OK;
    }
    sb_infer_open(infer, 0, theta->dtype, count);
    for (int d = 0; d < count; d++)
        dims[d] = known ? size[d == 0 ? 0 : d + 1 < count ? d + 1 : d] : infer->outputs[0].dims[d];
    dims[count - 1] = sb_dim_constant(infer->scope, count - 2);
    sb_fact_set_tensor(&infer->outputs[0], theta->dtype, count, dims);
    return SB_OK;
}

/* Coordinate r of a point is a chain of fma from +0 over row r of theta: x, y (and z), then 1. */
static sb_status eval_affine(sb_call *call) {
    const sb_sample_params *params = call->node->params;
    sb_tensor *theta, *output;
    SB_TRY(sb_call_output(call, 0, &output));
    SB_TRY(sb_call_contiguous(call, 0, &theta));
    int spatial = output->rank - 2;
    sb_status status = SB_OK;
    if (theta->rank != 3 || theta->dims[0] != output->dims[0] || theta->dims[1] != spatial ||
        theta->dims[2] != spatial + 1)
        status = sb_call_fail(call, SB_ERROR_SHAPE, "theta must be [%lld,%d,%d]", (long long)output->dims[0], spatial,
                              spatial + 1);
    int64_t index[SB_MAX_RANK] = {0}, element = 0;
    bool more = status == SB_OK && sb_tensor_elements(output) != 0;
    for (; more; more = sb_move_next(output->rank - 1, output->dims, index)) {
        for (int r = 0; r < spatial; r++) {
            double sum = 0.0;
            int64_t row = (index[0] * spatial + r) * (spatial + 1);
            for (int c = 0; c <= spatial; c++) {
                int axis = spatial - c; /* x is the last spatial axis */
                double at = c == spatial
                                ? 1.0
                                : sb_sample_grid_coordinate(params->align_corners, index[axis], output->dims[axis]);
                sum = sb_fma_f64(sb_number_load(theta->dtype, theta->data, row + c), at, sum);
            }
            sb_number_store(output->dtype, output->data, element++, sum);
        }
    }
    sb_tensor_release(theta);
    return status;
}

#define SAMPLING_OP(op_name, prepare_function, infer_function, eval_function)                                          \
    {                                                                                                                  \
        .name = op_name, .domain = "", .least_inputs = 2, .most_inputs = 2, .least_outputs = 1, .most_outputs = 1,     \
        .params_size = sizeof(sb_sample_params), .prepare = prepare_function, .infer = infer_function,                 \
        .eval = eval_function                                                                                          \
    }

const sb_op sb_ops_sampling[] = {
    SAMPLING_OP("AffineGrid", prepare_affine, infer_affine, eval_affine),
    SAMPLING_OP("GridSample", prepare_sample, infer_sample, eval_sample),
    {0},
};
