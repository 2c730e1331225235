#include "kernel/logp/logp_check.h"

#include <math.h>
#include <stdio.h>

#include "base/error.h"
#include "kernel/contraction/check.h"
#include "kernel/contraction/layout.h"
#include "numerics/logp.h"

/* A chunk of logits: so many rows, unless all of them belong together, and so many elements. Many
 * rows keep the weights from being read more often than their product is worth. Forward, 32 MiB
 * stay in a GPU's cache until they are reduced; backward, each chunk reads and writes the chains of
 * d_hidden, so that chunks are larger: eight rounds of a tile of 256 x 256 for each of 66 pairs of an
 * H200's multiprocessors, which leave none idle in the last one. */
#define MOST_ROWS 4096
#define FORWARD_ELEMENTS ((int64_t)1 << 23)
#define BACKWARD_ELEMENTS ((int64_t)8 * 66 * 256 * 256)
#define LEAST_COLUMNS 512
#define PLACE_ALIGNMENT 256

/* ---- what is asked for ---- */

static sb_status check_structs(const sb_engine *engine, const sb_linear_logp *logp,
                               const sb_linear_logp_gradient *gradient, sb_error *error) {
    if (engine == NULL || logp == NULL)
        return sb_fail(error, SB_ERROR_INVALID_ARGUMENT, "linear_logp needs %s, which is NULL",
                       engine == NULL ? "an engine" : "an sb_linear_logp that describes it");
    if (logp->struct_bytes != sizeof *logp)
        return sb_fail(error, SB_ERROR_INVALID_ARGUMENT,
                       "sb_linear_logp has %zu bytes where this library knows %zu: start from "
                       "SB_LINEAR_LOGP_DEFAULT, and use the library's own header",
                       logp->struct_bytes, sizeof *logp);
    if (gradient != NULL && gradient->struct_bytes != sizeof *gradient)
        return sb_fail(error, SB_ERROR_INVALID_ARGUMENT,
                       "sb_linear_logp_gradient has %zu bytes where this library knows %zu: start from "
                       "SB_LINEAR_LOGP_GRADIENT_DEFAULT, and use the library's own header",
                       gradient->struct_bytes, sizeof *gradient);
    float t = logp->inverse_temperature;
    if (!(t >= 0x1p-20f && t <= 0x1p20f))
        return sb_fail(error, SB_ERROR_INVALID_ARGUMENT, "an inverse temperature of %g: give one from 2^-20 to 2^20",
                       (double)t);
    return SB_OK;
}

static sb_status check_extents(const char *name, const sb_matrix *matrix, sb_error *error) {
    int64_t most = SB_GEMM_MOST_EXTENT;
    if (matrix->rows < 0 || matrix->columns < 0 || matrix->rows > most || matrix->columns > most)
        return sb_fail(error, SB_ERROR_SHAPE, "%s is %lld x %lld: extents go from 0 to 2^48", name,
                       (long long)matrix->rows, (long long)matrix->columns);
    return SB_OK;
}

static sb_status check_operands(const sb_linear_logp *logp, sb_error *error) {
    const sb_matrix *hidden = &logp->hidden, *weight = &logp->weight;
    if (hidden->dtype != SB_BF16 && hidden->dtype != SB_F16)
        return sb_fail(error, SB_ERROR_SHAPE, "hidden is %s: linear_logp takes bf16 and f16; convert it",
                       sb_dtype_name(hidden->dtype));
    if (weight->dtype != hidden->dtype)
        return sb_fail(error, SB_ERROR_SHAPE,
                       "hidden is %s and weight is %s: both must have one dtype; convert one of them",
                       sb_dtype_name(hidden->dtype), sb_dtype_name(weight->dtype));
    SB_TRY(check_extents("hidden", hidden, error));
    SB_TRY(check_extents("weight", weight, error));
    if (hidden->columns != weight->rows)
        return sb_fail(error, SB_ERROR_SHAPE,
                       "hidden is %lld x %lld and weight %lld x %lld: hidden's columns and "
                       "weight's rows are both "
                       "K; swap extents and strides of a weight that has a row for each word",
                       (long long)hidden->rows, (long long)hidden->columns, (long long)weight->rows,
                       (long long)weight->columns);
    if (weight->columns > SB_LINEAR_LOGP_MOST_VOCABULARY)
        return sb_fail(error, SB_ERROR_SHAPE, "weight has %lld columns: a vocabulary has at most 2^24 words",
                       (long long)weight->columns);
    return SB_OK;
}

static sb_status check_same_extents(const char *name, const sb_matrix *matrix, const char *other_name,
                                    const sb_matrix *other, sb_error *error) {
    if (matrix->rows == other->rows && matrix->columns == other->columns)
        return SB_OK;
    return sb_fail(error, SB_ERROR_SHAPE, "%s is %lld x %lld, and %s is %lld x %lld: give it the same extents", name,
                   (long long)matrix->rows, (long long)matrix->columns, other_name, (long long)other->rows,
                   (long long)other->columns);
}

static sb_status check_gradient(const sb_engine *engine, const sb_linear_logp *logp,
                                const sb_linear_logp_gradient *gradient, sb_error *error) {
    const sb_matrix *d_hidden = &gradient->d_hidden, *d_weight = &gradient->d_weight;
    const sb_row_map *map = gradient->rows;
    if (d_hidden->data != NULL) {
        SB_TRY(check_same_extents("d_hidden", d_hidden, "hidden", &logp->hidden, error));
        if (d_hidden->dtype != SB_F32 && d_hidden->dtype != logp->hidden.dtype)
            return sb_fail(error, SB_ERROR_SHAPE, "d_hidden is %s: it must be f32 or hidden's %s",
                           sb_dtype_name(d_hidden->dtype), sb_dtype_name(logp->hidden.dtype));
    }
    if (d_weight->data != NULL) {
        SB_TRY(check_same_extents("d_weight", d_weight, "weight", &logp->weight, error));
        if (d_weight->dtype != SB_F32 && d_weight->dtype != logp->hidden.dtype)
            return sb_fail(error, SB_ERROR_SHAPE, "d_weight is %s: it must be f32 or hidden's %s",
                           sb_dtype_name(d_weight->dtype), sb_dtype_name(logp->hidden.dtype));
        if (d_weight->dtype != SB_F32 && gradient->accumulate)
            return sb_fail(error, SB_ERROR_SHAPE,
                           "d_weight is %s, and its chains are to continue from it: that takes f32, in which they are "
                           "kept",
                           sb_dtype_name(d_weight->dtype));
    }
    if (map != NULL && map->engine != engine->number)
        return sb_fail(error, SB_ERROR_INVALID_ARGUMENT,
                       "the row map was made by another engine: make one with sb_row_map_create and the "
                       "engine that computes the gradients");
    if (map != NULL && map->rows != logp->hidden.rows)
        return sb_fail(error, SB_ERROR_SHAPE,
                       "the samples of the row map have %lld rows together, and hidden has %lld: both must be "
                       "equal",
                       (long long)map->rows, (long long)logp->hidden.rows);
    return SB_OK;
}

/* ---- the workspace ---- */

static int64_t smaller(int64_t a, int64_t b) {
    return a < b ? a : b;
}

/* Takes room for rows × columns elements behind what is taken; false when that overflows. */
static bool take(size_t *bytes, size_t *place, int64_t rows, int64_t columns, size_t element) {
    size_t size;
    *place = *bytes;
    return !__builtin_mul_overflow((size_t)rows, (size_t)columns, &size) &&
           !__builtin_mul_overflow(size, element, &size) && !__builtin_add_overflow(size, PLACE_ALIGNMENT - 1, &size) &&
           !__builtin_add_overflow(*bytes, size / PLACE_ALIGNMENT * PLACE_ALIGNMENT, bytes) && *bytes <= SIZE_MAX / 2;
}

sb_status sb_logp_lay_out(sb_logp_plan *plan, int64_t rows, int64_t columns, sb_error *error) {
    bool backward = plan->gradient != NULL;
    plan->rows = rows;
    plan->columns = columns;
    /* A single chunk finishes the chains at once. */
    plan->rounds_d_hidden = plan->wants_d_hidden && plan->v > columns && plan->gradient->d_hidden.dtype != SB_F32;
    plan->bytes = 0;
    bool fits = take(&plan->bytes, &plan->logits, rows, columns, sizeof(float));
    if (backward)
        fits = fits && take(&plan->bytes, &plan->gradients, rows, columns, sizeof(uint16_t));
    else
        fits = fits && take(&plan->bytes, &plan->pairs, plan->blocks, rows, sizeof(sb_logp_pair)) &&
               take(&plan->bytes, &plan->chosen, rows, 1, sizeof(float));
    if (plan->rounds_d_hidden)
        fits = fits && take(&plan->bytes, &plan->d_hidden, rows, plan->k, sizeof(float));
    if (!fits)
        return sb_fail(error, SB_ERROR_INVALID_ARGUMENT,
                       "linear_logp of %lld rows, K %lld and a vocabulary of %lld needs more bytes than there "
                       "are addresses: give it fewer rows at a time",
                       (long long)plan->m, (long long)plan->k, (long long)plan->v);
    return SB_OK;
}

static int64_t chunk_columns(int64_t rows, int64_t vocabulary, int64_t elements) {
    int64_t columns = elements / rows / SB_LOGP_BLOCK * SB_LOGP_BLOCK;
    int64_t all = (vocabulary + SB_LOGP_BLOCK - 1) / SB_LOGP_BLOCK * SB_LOGP_BLOCK;
    columns = columns > LEAST_COLUMNS ? columns : LEAST_COLUMNS;
    columns = smaller(columns, all);
    return columns > 0 ? columns : SB_LOGP_BLOCK;
}

sb_status sb_logp_measure(const sb_engine *engine, const sb_linear_logp *logp, const sb_linear_logp_gradient *gradient,
                          sb_logp_plan *plan, sb_error *error) {
    SB_TRY(check_structs(engine, logp, gradient, error));
    SB_TRY(check_operands(logp, error));
    if (gradient != NULL)
        SB_TRY(check_gradient(engine, logp, gradient, error));
    *plan = (sb_logp_plan){.logp = logp,
                           .gradient = gradient,
                           .m = logp->hidden.rows,
                           .k = logp->hidden.columns,
                           .v = logp->weight.columns};
    plan->blocks = (plan->v + SB_LOGP_BLOCK - 1) / SB_LOGP_BLOCK;
    plan->wants_d_hidden = gradient != NULL && gradient->d_hidden.data != NULL;
    plan->wants_d_weight = gradient != NULL && gradient->d_weight.data != NULL;
    /* The chains of d_weight go over all rows. */
    int64_t rows = plan->wants_d_weight ? plan->m : smaller(plan->m, MOST_ROWS);
    rows = rows > 0 ? rows : 1;
    int64_t elements = gradient != NULL ? BACKWARD_ELEMENTS : FORWARD_ELEMENTS;
    return sb_logp_lay_out(plan, rows, chunk_columns(rows, plan->v, elements), error);
}

/* ---- memory ---- */

typedef struct operand {
    const char *name;
    sb_matrix matrix;
    bool is_written;
    bool has_elements;
    sb_gemm_layout layout; /* where it has elements */
} operand;

enum { MOST_OPERANDS = 9 };

typedef struct operands {
    int count;
    operand all[MOST_OPERANDS];
} operands;

static void add_matrix(operands *list, const char *name, const sb_matrix *matrix, bool is_written) {
    operand *operand = &list->all[list->count++];
    operand->name = name;
    operand->matrix = *matrix;
    operand->matrix.batch_stride = 0;
    operand->is_written = is_written;
    operand->has_elements = matrix->rows > 0 && matrix->columns > 0;
}

static void add_vector(operands *list, const char *name, sb_dtype dtype, const void *data, int64_t count,
                       bool is_written) {
    const sb_matrix matrix = {
        .dtype = dtype, .data = (void *)data, .rows = 1, .columns = count, .row_stride = count, .column_stride = 1};
    add_matrix(list, name, &matrix, is_written);
}

static operands list_operands(const sb_logp_plan *plan) {
    const sb_linear_logp *logp = plan->logp;
    const sb_linear_logp_gradient *gradient = plan->gradient;
    operands list = {0};
    bool forward = gradient == NULL;
    add_matrix(&list, "hidden", &logp->hidden, false);
    add_matrix(&list, "weight", &logp->weight, false);
    add_vector(&list, "targets", SB_S64, logp->targets, plan->m, false);
    if (!forward || logp->maximum != NULL || logp->sum != NULL) {
        add_vector(&list, "maximum", SB_S32, logp->maximum, plan->m, forward);
        add_vector(&list, "sum", SB_F32, logp->sum, plan->m, forward);
    }
    if (forward)
        add_vector(&list, "logp", SB_F32, logp->logp, plan->m, true);
    else
        add_vector(&list, "d_logp", SB_F32, gradient->d_logp, plan->m, false);
    if (plan->wants_d_hidden)
        add_matrix(&list, "d_hidden", &gradient->d_hidden, true);
    if (plan->wants_d_weight)
        add_matrix(&list, "d_weight", &gradient->d_weight, true);
    add_vector(&list, "workspace", SB_U8, logp->workspace, (int64_t)plan->bytes, true);
    return list;
}

static sb_status check_operand(operand *operand, sb_error *error) {
    const sb_matrix *matrix = &operand->matrix;
    size_t size = sb_dtype_size(matrix->dtype);
    if (!operand->has_elements)
        return SB_OK;
    if (matrix->data == NULL)
        return sb_fail(error, SB_ERROR_INVALID_ARGUMENT, "%s is NULL, and has %lld x %lld elements", operand->name,
                       (long long)matrix->rows, (long long)matrix->columns);
    if ((uintptr_t)matrix->data % size != 0)
        return sb_fail(error, SB_ERROR_INVALID_ARGUMENT, "%s: %p is not aligned to the %zu bytes of an element",
                       operand->name, matrix->data, size);
    if (!sb_gemm_layout_of(matrix, matrix->row_stride, 1, &operand->layout))
        return sb_fail(error, SB_ERROR_INVALID_ARGUMENT,
                       "%s: %lld x %lld elements with strides %lld and %lld lie further apart than addresses "
                       "reach: strides count elements",
                       operand->name, (long long)matrix->rows, (long long)matrix->columns,
                       (long long)matrix->row_stride, (long long)matrix->column_stride);
    if (operand->is_written && !sb_gemm_layout_is_distinct(&operand->layout))
        return sb_fail(error, SB_ERROR_INVALID_ARGUMENT,
                       "%s: elements coincide, with strides %lld and %lld: each stride of what is "
                       "written must "
                       "be larger than what the smaller one spans",
                       operand->name, (long long)matrix->row_stride, (long long)matrix->column_stride);
    return SB_OK;
}

static sb_status check_workspace(const sb_logp_plan *plan, sb_error *error) {
    const sb_linear_logp *logp = plan->logp;
    if (logp->workspace_bytes < plan->bytes)
        return sb_fail(error, SB_ERROR_INVALID_ARGUMENT,
                       "the workspace has %zu bytes, and %zu are needed: ask sb_linear_logp_workspace",
                       logp->workspace_bytes, plan->bytes);
    if ((uintptr_t)logp->workspace % PLACE_ALIGNMENT != 0)
        return sb_fail(error, SB_ERROR_INVALID_ARGUMENT, "the workspace %p is not aligned to %d bytes", logp->workspace,
                       PLACE_ALIGNMENT);
    return SB_OK;
}

static sb_status check_apart(const operands *list, sb_error *error) {
    for (int i = 0; i < list->count; i++) {
        for (int j = 0; j < list->count; j++) {
            const operand *one = &list->all[i], *other = &list->all[j];
            if (i != j && one->is_written && one->has_elements && other->has_elements &&
                !sb_gemm_layouts_are_apart(&one->layout, &other->layout))
                return sb_fail(error, SB_ERROR_INVALID_ARGUMENT,
                               "%s overlaps %s: what is written needs memory of its own", one->name, other->name);
        }
    }
    return SB_OK;
}

/* Where an operand's first element lies. */
static sb_status check_place(const sb_engine *engine, const operand *operand, sb_error *error) {
    int index;
    SB_TRY(engine->interface->locate(engine, operand->matrix.data, &index, error));
    if (index == engine->device_index)
        return SB_OK;
    return sb_fail(error, SB_ERROR_INVALID_ARGUMENT,
                   "%s (%p) is not in the memory of device %d, %s, on which the engine computes: "
                   "copy it there",
                   operand->name, operand->matrix.data, engine->device_index, engine->device_name);
}

static sb_status check_targets(const sb_logp_plan *plan, sb_error *error) {
    const sb_linear_logp *logp = plan->logp;
    for (int64_t row = 0; row < plan->m; row++) {
        int64_t target = logp->targets[row];
        if (sb_logp_target_kind(target, logp->ignore_index, plan->v) == SB_LOGP_TARGET_INVALID)
            return sb_fail(error, SB_ERROR_INVALID_ARGUMENT,
                           "the target of row %lld is %lld: give one from 0 to %lld, or %lld, "
                           "which is ignored",
                           (long long)row, (long long)target, (long long)plan->v - 1, (long long)logp->ignore_index);
    }
    return SB_OK;
}

sb_status sb_logp_check_memory(sb_engine *engine, const sb_logp_plan *plan, sb_error *error) {
    operands list = list_operands(plan);
    SB_TRY(check_workspace(plan, error));
    for (int i = 0; i < list.count; i++)
        SB_TRY(check_operand(&list.all[i], error));
    SB_TRY(check_apart(&list, error));
    if (!sb_engine_on_device(engine))
        return check_targets(plan, error);
    for (int i = 0; i < list.count; i++) {
        if (list.all[i].has_elements)
            SB_TRY(check_place(engine, &list.all[i], error));
    }
    return SB_OK;
}
