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

static iv_status infer_det(iv_infer *infer) {
    const iv_fact *input;
    int64_t rows, columns;
    IV_TRY(iv_infer_require(infer, 0, IV_SET_FLOAT, &input));
    if (input->rank == IV_RANK_UNKNOWN) {
        iv_fact_set_tensor(&infer->outputs[0], input->dtype, IV_RANK_UNKNOWN, NULL);
        return IV_OK;
    }
    if (input->rank < 2)
        return iv_infer_fail(infer, IV_ERROR_SHAPE, "the input has rank %d, not 2 or more",
                             input->rank);
    if (iv_dim_is_constant(input->dims[input->rank - 2], &rows) &&
        iv_dim_is_constant(input->dims[input->rank - 1], &columns) && rows != columns)
        return iv_infer_fail(infer, IV_ERROR_SHAPE, "matrices of %lld by %lld are not square",
                             (long long)rows, (long long)columns);
    iv_fact_set_tensor(&infer->outputs[0], input->dtype, input->rank - 2, input->dims);
    return IV_OK;
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
            if (iv_abs_f64(matrix[row * n + k]) > iv_abs_f64(matrix[pivot * n + k]))
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
                matrix[row * n + column] =
                    iv_fma_f64(-factor, matrix[k * n + column], matrix[row * n + column]);
        }
    }
    return product;
}

static iv_status eval_det(iv_call *call) {
    iv_tensor *input, *output;
    IV_TRY(iv_call_output(call, 0, &output));
    IV_TRY(iv_call_contiguous(call, 0, &input));
    int64_t n = input->dims[input->rank - 1], matrices = iv_tensor_elements(output);
    double *matrix = iv_allocate_array((size_t)n, (size_t)n * sizeof *matrix);
    iv_status status = matrix == NULL ? iv_fail_memory(call->error, (size_t)(n * n) * 8) : IV_OK;
    if (status == IV_OK && input->dims[input->rank - 2] != n)
        status = iv_call_fail(call, IV_ERROR_SHAPE, "the matrices are not square");
    for (int64_t m = 0; m < matrices && status == IV_OK; m++) {
        for (int64_t i = 0; i < n * n; i++)
            matrix[i] = iv_number_load(input->dtype, input->data, m * n * n + i);
        iv_number_store(output->dtype, output->data, m, determinant(matrix, n));
    }
    iv_free(matrix);
    iv_tensor_release(input);
    return status;
}

/* ---- Col2Im ---- */

static iv_status fold_list(iv_node *node, const char *name, int per_axis, int64_t least,
                           int64_t otherwise, int64_t *values, iv_error *error) {
    iv_fold_params *params = node->params;
    int64_t count;
    const int64_t *list;
    for (int i = 0; i < per_axis * IV_MAX_RANK; i++)
        values[i] = otherwise;
    IV_TRY(iv_node_ints(node, name, &count, &list, error));
    if (count == 0)
        return IV_OK;
    if (count % per_axis != 0 || count > per_axis * IV_MAX_RANK ||
        (params->count != 0 && count != per_axis * params->count))
        return iv_fail(error, IV_ERROR_INVALID_MODEL, "node %s: %s has %lld entries", node->name,
                       name, (long long)count);
    params->count = (int)count / per_axis;
    for (int64_t i = 0; i < count; i++) {
        if (list[i] < least || list[i] > INT32_MAX)
            return iv_fail(error, IV_ERROR_INVALID_MODEL, "node %s: %s holds %lld", node->name,
                           name, (long long)list[i]);
        values[i] = list[i];
    }
    return IV_OK;
}

static iv_status prepare_fold(iv_node *node, iv_error *error) {
    iv_fold_params *params = node->params;
    IV_TRY(fold_list(node, "dilations", 1, 1, 1, params->dilations, error));
    IV_TRY(fold_list(node, "strides", 1, 1, 1, params->strides, error));
    return fold_list(node, "pads", 2, 0, 0, params->pads, error);
}

static iv_status infer_fold(iv_infer *infer) {
    const iv_fact *input;
    iv_dim image[IV_MAX_RANK], block[IV_MAX_RANK], dims[IV_MAX_RANK];
    int images, blocks;
    bool image_known, block_known;
    IV_TRY(iv_infer_require(infer, 0, IV_SET_NUMBER, &input));
    IV_TRY(iv_infer_integers(infer, 1, IV_MAX_RANK - 2, image, &images, &image_known));
    IV_TRY(iv_infer_integers(infer, 2, IV_MAX_RANK - 2, block, &blocks, &block_known));
    if (input->rank != IV_RANK_UNKNOWN && input->rank != 3)
        return iv_infer_fail(infer, IV_ERROR_SHAPE, "the input has rank %d, not 3", input->rank);
    if (images < 0) {
        iv_fact_set_tensor(&infer->outputs[0], input->dtype, IV_RANK_UNKNOWN, NULL);
        return IV_OK;
    }
    iv_infer_open(infer, 0, input->dtype, images + 2);
    memcpy(dims, infer->outputs[0].dims, sizeof dims);
    if (input->rank == 3) {
        int64_t area = 1;
        dims[0] = input->dims[0];
        for (int i = 0; i < blocks && block_known; i++) {
            int64_t extent;
            bool fits = iv_dim_is_constant(block[i], &extent) && extent >= 1 &&
                        !__builtin_mul_overflow(area, extent, &area);
            block_known = fits;
        }
        if (block_known && blocks >= 0)
            dims[1] = iv_dim_floor_divide(infer->scope, input->dims[1],
                                          iv_dim_constant(infer->scope, area));
    }
    for (int i = 0; i < images && image_known; i++)
        dims[i + 2] = image[i];
    iv_fact_set_tensor(&infer->outputs[0], input->dtype, images + 2, dims);
    return IV_OK;
}

iv_status iv_fold_plan(const iv_call *call, const iv_tensor *input, iv_fold *plan) {
    const iv_fold_params *params = call->node->params;
    int blocks;
    IV_TRY(iv_move_integers(call, 1, IV_MAX_RANK - 2, plan->image, &plan->rank));
    IV_TRY(iv_move_integers(call, 2, IV_MAX_RANK - 2, plan->block, &blocks));
    if (blocks != plan->rank || (params->count != 0 && params->count != plan->rank))
        return iv_call_fail(call, IV_ERROR_SHAPE, "an image of rank %d and blocks of rank %d",
                            plan->rank, blocks);
    plan->pixels = plan->area = plan->count = 1;
    for (int d = 0; d < plan->rank; d++) {
        bool fits = plan->image[d] >= 0 && plan->image[d] <= INT32_MAX && plan->block[d] >= 1 &&
                    plan->block[d] <= INT32_MAX;
        int64_t room = fits ? plan->image[d] + params->pads[d] + params->pads[d + plan->rank] -
                                  params->dilations[d] * (plan->block[d] - 1) - 1
                            : -1;
        plan->places[d] = room >= 0 ? room / params->strides[d] + 1 : 0;
        if (!fits || __builtin_mul_overflow(plan->pixels, plan->image[d], &plan->pixels) ||
            __builtin_mul_overflow(plan->area, plan->block[d], &plan->area) ||
            __builtin_mul_overflow(plan->count, plan->places[d], &plan->count))
            return iv_call_fail(call, IV_ERROR_SHAPE,
                                "image or block extent %d does not make sense", d);
    }
    if (input->dims[1] % plan->area != 0 || input->dims[2] != plan->count)
        return iv_call_fail(call, IV_ERROR_SHAPE,
                            "the input has %lld rows and %lld columns, where blocks have %lld "
                            "elements in %lld places",
                            (long long)input->dims[1], (long long)input->dims[2],
                            (long long)plan->area, (long long)plan->count);
    return IV_OK;
}

/* Adds the columns of one channel to its image: block elements in row-major order, for each the
 * places in row-major order. The image is of the type that is computed in. */
#define DEFINE_FOLD(suffix, type)                                                                  \
    static void fold_##suffix(const iv_fold_params *params, const iv_fold *plan,                   \
                              const type *values, type *image) {                                   \
        int64_t element[IV_MAX_RANK] = {0};                                                        \
        do {                                                                                       \
            int64_t place[IV_MAX_RANK] = {0};                                                      \
            do {                                                                                   \
                int64_t pixel = 0;                                                                 \
                bool inside = true;                                                                \
                for (int d = 0; d < plan->rank && inside; d++) {                                   \
                    int64_t at = place[d] * params->strides[d] +                                   \
                                 element[d] * params->dilations[d] - params->pads[d];              \
                    inside = at >= 0 && at < plan->image[d];                                       \
                    pixel = pixel * plan->image[d] + at;                                           \
                }                                                                                  \
                if (inside)                                                                        \
                    image[pixel] += *values;                                                       \
                values++;                                                                          \
            } while (iv_move_next(plan->rank, plan->places, place));                               \
        } while (iv_move_next(plan->rank, plan->block, element));                                  \
    }

DEFINE_FOLD(f32, float)
DEFINE_FOLD(f64, double)
DEFINE_FOLD(u64, uint64_t)

/* Each pixel is the sum, from +0, of what the block elements put there in row-major order; in f32
 * (f64 for f64), and rounded once for f16 and bf16. Integers wrap around. */
static iv_status eval_fold(iv_call *call) {
    const iv_fold_params *params = call->node->params;
    iv_fold plan;
    const iv_tensor *input = iv_call_input(call, 0);
    iv_tensor *output;
    if (input->rank != 3)
        return iv_call_fail(call, IV_ERROR_SHAPE, "the input has rank %d, not 3", input->rank);
    IV_TRY(iv_fold_plan(call, input, &plan));
    IV_TRY(iv_call_output(call, 0, &output));
    iv_dtype computed = iv_dtype_is_float(input->dtype) ? iv_computing_dtype(input->dtype) : IV_U64;
    int64_t channels = input->dims[0] * (input->dims[1] / plan.area);
    int64_t columns = plan.area * plan.count, size = (int64_t)iv_dtype_size(computed);
    void *values, *image = iv_allocate_array((size_t)plan.pixels, (size_t)size);
    if (image == NULL)
        return iv_fail_memory(call->error, (size_t)(plan.pixels * size));
    iv_status status = iv_load_all(input, computed, &values, call->error);
    for (int64_t c = 0; c < channels && status == IV_OK; c++) {
        const void *from = (const char *)values + c * columns * size;
        memset(image, 0, (size_t)(plan.pixels * size));
        if (columns != 0 && computed == IV_F32)
            fold_f32(params, &plan, from, image);
        else if (columns != 0 && computed == IV_F64)
            fold_f64(params, &plan, from, image);
        else if (columns != 0)
            fold_u64(params, &plan, from, image);
        iv_convert_row(output->dtype,
                       output->data + c * plan.pixels * (int64_t)iv_dtype_size(output->dtype),
                       computed, image, size, plan.pixels);
    }
    if (status == IV_OK)
        iv_free(values);
    iv_free(image);
    return status;
}

const iv_op iv_ops_determinant[] = {
    {.name = "Col2Im",
     .domain = "",
     .least_inputs = 3,
     .most_inputs = 3,
     .least_outputs = 1,
     .most_outputs = 1,
     .params_size = sizeof(iv_fold_params),
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
