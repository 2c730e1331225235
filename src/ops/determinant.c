/* Det and Col2Im. */
#include <string.h>

#include "base/allocation.h"
#include "ops/convert_loops.h"
#include "ops/fold.h"
#include "ops/list.h"
#include "ops/moving.h"
#include "ops/number.h"
#include "ops/rows.h"

/* ---- Det ---- */

static sb_status infer_det(sb_infer *infer) {
    const sb_fact *input;
    int64_t rows, columns;
    SB_TRY(sb_infer_require(infer, 0, SB_SET_FLOAT, &input));
    if (input->rank == SB_RANK_UNKNOWN) {
        sb_fact_set_tensor(&infer->outputs[0], input->dtype, SB_RANK_UNKNOWN, NULL);
        return SB_OK;
    }
    if (input->rank < 2)
        return sb_infer_fail(infer, SB_ERROR_SHAPE, "the input has rank %d, not 2 or more", input->rank);
    if (sb_dim_is_constant(input->dims[input->rank - 2], &rows) &&
        sb_dim_is_constant(input->dims[input->rank - 1], &columns) && rows != columns)
        return sb_infer_fail(infer, SB_ERROR_SHAPE, "matrices of %lld by %lld are not square", (long long)rows,
                             (long long)columns);
    sb_fact_set_tensor(&infer->outputs[0], input->dtype, input->rank - 2, input->dims);
    return SB_OK;
}

/* In f64, whatever the dtype: Gaussian elimination, columns ascending; the pivot is the largest
 * magnitude in the column, the first of equal ones; below it, row -= factor * pivot row by fma with
 * factor = element / pivot. The result is the product of the pivots from the first to the last,
 * negated once per exchange of rows, and rounded once. */
static double determinant(double *matrix, int64_t n) {
    double product = 1.0;
    for (int64_t k = 0; k < n; k++) {
        int64_t pivot = k;
        for (int64_t row = k + 1; row < n; row++) {
            if (sb_abs_f64(matrix[row * n + k]) > sb_abs_f64(matrix[pivot * n + k]))
                pivot = row;
        }
        for (int64_t column = k; pivot != k && column < n; column++) {
            double swapped = matrix[k * n + column];
            matrix[k * n + column] = matrix[pivot * n + column];
            matrix[pivot * n + column] = swapped;
        }
        double head = matrix[k * n + k];
        product = pivot != k ? -product * head : product * head;
        if (head == 0.0)
            return product;
        for (int64_t row = k + 1; row < n; row++) {
            double factor = matrix[row * n + k] / head;
            for (int64_t column = k + 1; column < n; column++)
                matrix[row * n + column] = sb_fma_f64(-factor, matrix[k * n + column], matrix[row * n + column]);
        }
    }
    return product;
}

static sb_status eval_det(sb_call *call) {
    sb_tensor *input, *output;
    SB_TRY(sb_call_output(call, 0, &output));
    SB_TRY(sb_call_contiguous(call, 0, &input));
    int64_t n = input->dims[input->rank - 1], matrices = sb_tensor_elements(output);
    double *matrix = sb_allocate_array((size_t)n, (size_t)n * sizeof *matrix);
    sb_status status = matrix == NULL ? sb_fail_memory(call->error, (size_t)(n * n) * 8) : SB_OK;
    if (status == SB_OK && input->dims[input->rank - 2] != n)
        status = sb_call_fail(call, SB_ERROR_SHAPE, "the matrices are not square");
    for (int64_t m = 0; m < matrices && status == SB_OK; m++) {
        for (int64_t i = 0; i < n * n; i++)
            matrix[i] = sb_number_load(input->dtype, input->data, m * n * n + i);
        sb_number_store(output->dtype, output->data, m, determinant(matrix, n));
    }
    sb_free(matrix);
    sb_tensor_release(input);
    return status;
}

/* ---- Col2Im ---- */

static sb_status fold_list(sb_node *node, const char *name, int per_axis, int64_t least, int64_t otherwise,
                           int64_t *values, sb_error *error) {
    sb_fold_params *params = node->params;
    int64_t count;
    const int64_t *list;
    for (int i = 0; i < per_axis * SB_MAX_RANK; i++)
        values[i] = otherwise;
    SB_TRY(sb_node_ints(node, name, &count, &list, error));
    if (count == 0)
        return SB_OK;
    if (count % per_axis != 0 || count > per_axis * SB_MAX_RANK ||
        (params->count != 0 && count != per_axis * params->count))
        return sb_fail(error, SB_ERROR_INVALID_MODEL, "node %s: %s has %lld entries", node->name, name,
                       (long long)count);
    params->count = (int)count / per_axis;
    for (int64_t i = 0; i < count; i++) {
        if (list[i] < least || list[i] > INT32_MAX)
            return sb_fail(error, SB_ERROR_INVALID_MODEL, "node %s: %s holds %lld", node->name, name,
                           (long long)list[i]);
        values[i] = list[i];
    }
    return SB_OK;
}

static sb_status prepare_fold(sb_node *node, sb_error *error) {
    sb_fold_params *params = node->params;
    SB_TRY(fold_list(node, "dilations", 1, 1, 1, params->dilations, error));
    SB_TRY(fold_list(node, "strides", 1, 1, 1, params->strides, error));
    return fold_list(node, "pads", 2, 0, 0, params->pads, error);
}

static sb_status infer_fold(sb_infer *infer) {
    const sb_fact *input;
    sb_dim image[SB_MAX_RANK], block[SB_MAX_RANK], dims[SB_MAX_RANK];
    int images, blocks;
    bool image_known, block_known;
    SB_TRY(sb_infer_require(infer, 0, SB_SET_NUMBER, &input));
    SB_TRY(sb_infer_integers(infer, 1, SB_MAX_RANK - 2, image, &images, &image_known));
    SB_TRY(sb_infer_integers(infer, 2, SB_MAX_RANK - 2, block, &blocks, &block_known));
    if (input->rank != SB_RANK_UNKNOWN && input->rank != 3)
        return sb_infer_fail(infer, SB_ERROR_SHAPE, "the input has rank %d, not 3", input->rank);
    if (images < 0) {
        sb_fact_set_tensor(&infer->outputs[0], input->dtype, SB_RANK_UNKNOWN, NULL);
        return SB_OK;
    }
    sb_infer_open(infer, 0, input->dtype, images + 2);
    memcpy(dims, infer->outputs[0].dims, sizeof dims);
    if (input->rank == 3) {
        int64_t area = 1;
        dims[0] = input->dims[0];
        for (int i = 0; i < blocks && block_known; i++) {
            int64_t extent;
            bool fits =
                sb_dim_is_constant(block[i], &extent) && extent >= 1 && !__builtin_mul_overflow(area, extent, &area);
            block_known = fits;
        }
        if (block_known && blocks >= 0)
            dims[1] = sb_dim_floor_divide(infer->scope, input->dims[1], sb_dim_constant(infer->scope, area));
    }
    for (int i = 0; i < images && image_known; i++)
        dims[i + 2] = image[i];
    sb_fact_set_tensor(&infer->outputs[0], input->dtype, images + 2, dims);
    return SB_OK;
}

sb_status sb_fold_plan(const sb_call *call, const sb_tensor *input, sb_fold *plan) {
    const sb_fold_params *params = call->node->params;
    int blocks;
    SB_TRY(sb_move_integers(call, 1, SB_MAX_RANK - 2, plan->image, &plan->rank));
    SB_TRY(sb_move_integers(call, 2, SB_MAX_RANK - 2, plan->block, &blocks));
    if (blocks != plan->rank || (params->count != 0 && params->count != plan->rank))
        return sb_call_fail(call, SB_ERROR_SHAPE, "an image of rank %d and blocks of rank %d", plan->rank, blocks);
    plan->pixels = plan->area = plan->count = 1;
    for (int d = 0; d < plan->rank; d++) {
        bool fits =
            plan->image[d] >= 0 && plan->image[d] <= INT32_MAX && plan->block[d] >= 1 && plan->block[d] <= INT32_MAX;
        int64_t room = fits ? plan->image[d] + params->pads[d] + params->pads[d + plan->rank] -
                                  params->dilations[d] * (plan->block[d] - 1) - 1
                            : -1;
        plan->places[d] = room >= 0 ? room / params->strides[d] + 1 : 0;
        if (!fits || __builtin_mul_overflow(plan->pixels, plan->image[d], &plan->pixels) ||
            __builtin_mul_overflow(plan->area, plan->block[d], &plan->area) ||
            __builtin_mul_overflow(plan->count, plan->places[d], &plan->count))
            return sb_call_fail(call, SB_ERROR_SHAPE, "image or block extent %d does not make sense", d);
    }
    if (input->dims[1] % plan->area != 0 || input->dims[2] != plan->count)
        return sb_call_fail(call, SB_ERROR_SHAPE,
                            "the input has %lld rows and %lld columns, where blocks have %lld "
                            "elements in %lld places",
                            (long long)input->dims[1], (long long)input->dims[2], (long long)plan->area,
                            (long long)plan->count);
    return SB_OK;
}

/* Adds the columns of one channel to its image: block elements in row-major order, for each the
 * places in row-major order. The image is of the type that is computed in. */
#define DEFINE_FOLD(suffix, type)                                                                                      \
    static void fold_##suffix(const sb_fold_params *params, const sb_fold *plan, const type *values, type *image) {    \
        int64_t element[SB_MAX_RANK] = {0};                                                                            \
        do {                                                                                                           \
            int64_t place[SB_MAX_RANK] = {0};                                                                          \
            do {                                                                                                       \
                int64_t pixel = 0;                                                                                     \
                bool inside = true;                                                                                    \
                for (int d = 0; d < plan->rank && inside; d++) {                                                       \
                    int64_t at = place[d] * params->strides[d] + element[d] * params->dilations[d] - params->pads[d];  \
                    inside = at >= 0 && at < plan->image[d];                                                           \
                    pixel = pixel * plan->image[d] + at;                                                               \
                }                                                                                                      \
                if (inside)                                                                                            \
                    image[pixel] += *values;                                                                           \
                values++;                                                                                              \
            } while (sb_move_next(plan->rank, plan->places, place));                                                   \
        } while (sb_move_next(plan->rank, plan->block, element));                                                      \
    }

DEFINE_FOLD(f32, float)
DEFINE_FOLD(f64, double)
DEFINE_FOLD(u64, uint64_t)

/* Each pixel is the sum, from +0, of what the block elements put there in row-major order; in f32
 * (f64 for f64), and rounded once for f16 and bf16. Integers wrap around. */
static sb_status eval_fold(sb_call *call) {
    const sb_fold_params *params = call->node->params;
    sb_fold plan;
    const sb_tensor *input = sb_call_input(call, 0);
    sb_tensor *output;
    if (input->rank != 3)
        return sb_call_fail(call, SB_ERROR_SHAPE, "the input has rank %d, not 3", input->rank);
    SB_TRY(sb_fold_plan(call, input, &plan));
    SB_TRY(sb_call_output(call, 0, &output));
    sb_dtype computed = sb_dtype_is_float(input->dtype) ? sb_computing_dtype(input->dtype) : SB_U64;
    int64_t channels = input->dims[0] * (input->dims[1] / plan.area);
    int64_t columns = plan.area * plan.count, size = (int64_t)sb_dtype_size(computed);
    void *values, *image = sb_allocate_array((size_t)plan.pixels, (size_t)size);
    if (image == NULL)
        return sb_fail_memory(call->error, (size_t)(plan.pixels * size));
    sb_status status = sb_load_all(input, computed, &values, call->error);
    for (int64_t c = 0; c < channels && status == SB_OK; c++) {
        const void *from = (const char *)values + c * columns * size;
        memset(image, 0, (size_t)(plan.pixels * size));
        if (columns != 0 && computed == SB_F32)
            fold_f32(params, &plan, from, image);
        else if (columns != 0 && computed == SB_F64)
            fold_f64(params, &plan, from, image);
        else if (columns != 0)
            fold_u64(params, &plan, from, image);
        sb_convert_row(output->dtype, output->data + c * plan.pixels * (int64_t)sb_dtype_size(output->dtype), computed,
                       image, size, plan.pixels);
    }
    if (status == SB_OK)
        sb_free(values);
    sb_free(image);
    return status;
}

const sb_op sb_ops_determinant[] = {
    {.name = "Col2Im",
     .domain = "",
     .least_inputs = 3,
     .most_inputs = 3,
     .least_outputs = 1,
     .most_outputs = 1,
     .params_size = sizeof(sb_fold_params),
     .prepare = prepare_fold,
     .infer = infer_fold,
     .eval = eval_fold},
    {.name = "Det",
     .domain = "",
     .least_inputs = 1,
     .most_inputs = 1,
     .least_outputs = 1,
     .most_outputs = 1,
     .infer = infer_det,
     .eval = eval_det},
    {0},
};
