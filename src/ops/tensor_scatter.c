/* TensorScatter: rows of an update written into a copy of a cache, from a row of its own on for each sample of the batch.
 *
 *     output[b, …, (start[b] + s) …] = update[b, …, s, …]        all other elements are the cache's
 *
 * `linear` refuses rows that do not exist. `circular` goes on at the first row behind the last one, and takes the start,
 * also a negative one, modulo the rows; as there are never more new rows than rows, none is written twice. */
#include "ops/tensor_scatter.h"

#include <string.h>

#include "base/allocation.h"
#include "ops/list.h"
#include "ops/moving.h"
#include "rules/counting.h"
#include "rules/question.h"

static sb_status prepare_tensor_scatter(sb_node *node, sb_error *error) {
    sb_tensor_scatter_params *params = node->params;
    const char *mode;
    SB_TRY(sb_node_int(node, "axis", -2, &params->axis, error));
    SB_TRY(sb_node_string(node, "mode", "linear", &mode, error));
    params->circular = strcmp(mode, "circular") == 0;
    if (!params->circular && strcmp(mode, "linear") != 0)
        return sb_fail(error, SB_ERROR_INVALID_MODEL,
                       "node %s (TensorScatter): mode is \"%s\"; it may be linear or circular", node->name, mode);
    return SB_OK;
}

/* Extents as far as they are known; rows are compared when the node runs, since most are symbols. */
static sb_status infer_extents(const sb_infer *infer, int axis) {
    const sb_fact *cache = sb_infer_input(infer, 0), *update = sb_infer_input(infer, 1);
    const sb_fact *starts = sb_infer_input(infer, 2);
    int64_t rows, count;
    bool fits = update->rank == cache->rank;
    for (int d = 0; d < cache->rank && fits; d++) {
        if (d != axis)
            fits = !sb_dims_clash(cache->dims[d], update->dims[d]);
        else
            fits = !sb_dim_is_constant(cache->dims[d], &rows) || !sb_dim_is_constant(update->dims[d], &count) ||
                   count <= rows;
    }
    char first[SB_FACT_TEXT_BYTES], second[SB_FACT_TEXT_BYTES];
    if (!fits)
        return sb_infer_fail(infer, SB_ERROR_SHAPE,
                             "an update %s does not go into a cache %s: it may have fewer rows along axis %d, and is "
                             "otherwise like it",
                             sb_fact_text(update, first, sizeof first), sb_fact_text(cache, second, sizeof second),
                             axis);
    if (starts != NULL && starts->rank != SB_RANK_UNKNOWN &&
        (starts->rank != 1 || sb_dims_clash(starts->dims[0], cache->dims[0])))
        return sb_infer_fail(infer, SB_ERROR_SHAPE,
                             "write_indices %s must be a list with an entry for each sample of %s",
                             sb_fact_text(starts, first, sizeof first), sb_fact_text(cache, second, sizeof second));
    return SB_OK;
}

static sb_status infer_tensor_scatter(sb_infer *infer) {
    const sb_tensor_scatter_params *params = infer->node->params;
    const sb_fact *cache, *update, *starts;
    int axis;
    SB_TRY(sb_infer_require(infer, 0, SB_SET_ANY, &cache));
    SB_TRY(sb_infer_require(infer, 1, SB_SET(cache->dtype), &update));
    if (sb_infer_input(infer, 2) != NULL)
        SB_TRY(sb_infer_require(infer, 2, SB_SET(SB_S64), &starts));
    sb_infer_shape_of(infer, 0, cache, cache->dtype);
    if (cache->rank == SB_RANK_UNKNOWN)
        return SB_OK;
    SB_TRY(sb_infer_axis(infer, params->axis, cache->rank, &axis));
    if (axis == 0)
        return sb_infer_fail(infer, SB_ERROR_SHAPE, "axis %lld is the batch's, which is not written along",
                             (long long)params->axis);
    return update->rank == SB_RANK_UNKNOWN ? SB_OK : infer_extents(infer, axis);
}

/* ---- what fits: for models whose extents are known only now ---- */

static sb_status check_extents(const sb_call *call, int axis) {
    const sb_tensor *cache = sb_call_input(call, 0), *update = sb_call_input(call, 1), *starts = sb_call_input(call, 2);
    bool fits = update->rank == cache->rank;
    for (int d = 0; d < cache->rank && fits; d++)
        fits = d == axis ? update->dims[d] <= cache->dims[d] : update->dims[d] == cache->dims[d];
    char first[SB_DIMS_TEXT_BYTES], second[SB_DIMS_TEXT_BYTES];
    if (!fits)
        return sb_call_fail(call, SB_ERROR_SHAPE,
                            "an update %s does not go into a cache %s: it may have fewer rows along axis %d, and is "
                            "otherwise like it",
                            sb_dims_text(update->rank, update->dims, first),
                            sb_dims_text(cache->rank, cache->dims, second), axis);
    if (starts != NULL && (starts->rank != 1 || starts->dims[0] != cache->dims[0]))
        return sb_call_fail(call, SB_ERROR_SHAPE,
                            "write_indices %s must be a list with an entry for each of %lld samples",
                            sb_dims_text(starts->rank, starts->dims, first), (long long)cache->dims[0]);
    return SB_OK;
}

static sb_status check_start(const sb_call *call, int64_t sample, int64_t rows, int64_t count, int64_t *start) {
    bool circular = ((const sb_tensor_scatter_params *)call->node->params)->circular;
    if (circular) {
        *start = rows > 0 ? *start % rows : 0;
        *start += *start < 0 ? rows : 0;
        return SB_OK;
    }
    if (*start >= 0 && *start <= rows - count)
        return SB_OK;
    return sb_call_fail(call, SB_ERROR_SHAPE,
                        "%lld rows from row %lld on, which sample %lld is to have, lie outside of the cache's %lld",
                        (long long)count, (long long)*start, (long long)sample, (long long)rows);
}

sb_status sb_tensor_scatter_fits(const sb_call *call, int *axis) {
    const sb_tensor_scatter_params *params = call->node->params;
    SB_TRY(sb_move_axis(call, params->axis, sb_call_input(call, 0)->rank, axis));
    return check_extents(call, *axis);
}

sb_status sb_tensor_scatter_check(const sb_call *call, int *axis, int64_t **starts) {
    const sb_tensor *cache = sb_call_input(call, 0), *update = sb_call_input(call, 1), *given = sb_call_input(call, 2);
    SB_TRY(sb_tensor_scatter_fits(call, axis));
    int64_t batch = cache->dims[0];
    *starts = sb_allocate_array((size_t)batch, sizeof **starts);
    if (*starts == NULL)
        return sb_fail_memory(call->error, (size_t)batch * sizeof **starts);
    sb_status status = SB_OK;
    for (int64_t b = 0; b < batch && status == SB_OK; b++) {
        (*starts)[b] = given != NULL ? ((const int64_t *)(const void *)given->data)[b * given->strides[0]] : 0;
        status = check_start(call, b, cache->dims[*axis], update->dims[*axis], &(*starts)[b]);
    }
    if (status != SB_OK) {
        sb_free(*starts);
        *starts = NULL;
    }
    return status;
}

/* ---- evaluation ---- */

/* A borrowed view of `count` rows of one sample, from row `first` of `axis` on. */
static sb_tensor rows_of(const sb_tensor *tensor, int64_t sample, int axis, int64_t first, int64_t count) {
    sb_tensor view = {.dtype = tensor->dtype, .rank = tensor->rank - 1, .storage = tensor->storage};
    int64_t offset = sample * tensor->strides[0] + first * tensor->strides[axis];
    for (int d = 1; d < tensor->rank; d++) {
        view.dims[d - 1] = d == axis ? count : tensor->dims[d];
        view.strides[d - 1] = tensor->strides[d];
    }
    view.data = tensor->data + offset * (int64_t)sb_dtype_size(tensor->dtype);
    return view;
}

static void write_rows(const sb_tensor *update, sb_tensor *output, int64_t sample, int axis, int64_t from, int64_t to,
                       int64_t count) {
    const sb_tensor source = rows_of(update, sample, axis, from, count);
    sb_tensor target = rows_of(output, sample, axis, to, count);
    sb_tensor_copy_elements(&target, &source);
}

void sb_tensor_scatter_write(const sb_call *call, int axis, const int64_t *starts, sb_tensor *output) {
    const sb_tensor *update = sb_call_input(call, 1);
    int64_t rows = output->dims[axis], count = update->dims[axis];
    for (int64_t b = 0; b < output->dims[0] && sb_tensor_elements(update) != 0; b++) {
        int64_t before_end = rows - starts[b] < count ? rows - starts[b] : count;
        write_rows(update, output, b, axis, 0, starts[b], before_end);
        if (before_end < count)
            write_rows(update, output, b, axis, before_end, 0, count - before_end);
    }
}

static sb_status eval_tensor_scatter(sb_call *call) {
    const sb_tensor *cache = sb_call_input(call, 0);
    sb_tensor *output = NULL;
    int64_t *starts;
    int axis;
    SB_TRY(sb_tensor_scatter_check(call, &axis, &starts));
    sb_status status = sb_move_output(call, 0, cache->dtype, cache->rank, cache->dims, &output);
    if (status == SB_OK) {
        sb_tensor_copy_elements(output, cache);
        sb_tensor_scatter_write(call, axis, starts, output);
    }
    sb_free(starts);
    return sb_move_finish(call, 0, output, status);
}

const sb_op sb_ops_tensor_scatter[] = {
    {.name = "TensorScatter",
     .domain = "",
     .least_inputs = 2,
     .most_inputs = 3,
     .least_outputs = 1,
     .most_outputs = 1,
     .params_size = sizeof(sb_tensor_scatter_params),
     .prepare = prepare_tensor_scatter,
     .infer = infer_tensor_scatter,
     .eval = eval_tensor_scatter},
    {0},
};

/* ---- rules ---- */

static sb_status axes_of_tensor_scatter(const sb_axis_question *question, sb_axis_rule *answer) {
    const sb_tensor_scatter_params *params = question->node->params;
    const sb_fact *cache = sb_axis_input(question, 0);
    if (cache == NULL)
        return sb_axis_unknown(answer, "the rank of an input is not known");
    bool along = question->input < 2 && question->axis == sb_axis_resolve(params->axis, cache->rank);
    if (!along)
        return sb_axis_independent(question, answer, question->axis);
    if (question->input == 0)
        return sb_axis_bounded(question, answer, question->axis, "rows that are written have to exist");
    return sb_axis_bounded(question, answer, SB_AXIS_NONE, "a row behind it would be written");
}

const sb_axes_entry sb_axes_tensor_scatter[] = {
    {.op = {"TensorScatter"},
     .rule = axes_of_tensor_scatter,
     .checked = 4,
     .independent = "batch, every other axis",
     .bounded = "the axis that is written along"},
    {.op = {NULL}},
};

const sb_cost_entry sb_cost_tensor_scatter[] = {
    {.op = {"TensorScatter"}, .flops = &sb_flops_none, .bytes = &sb_bytes_whole},
    {.op = {NULL}},
};
